"""Tools that a conversation declares or names: those of a search, and those added on the way.

In: blocks and items of the provider.  Out: the text that other dialects get in their place.

Source: Anthropic's pages "Tool search tool" and "Mid-conversation tool changes"; OpenAI's guide
"Tool search" (read 2026-11).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from deltafold.contract.kinds import json_array, json_object
from deltafold.message.messages import MessagePart, ProviderPart, TextPart

_HEADS: Final[Mapping[str, str]] = {
    "tool_addition": "Tools added",
    "tool_removal": "Tools removed",
    "tool_definition": "Tools added",
    "tool_reference": "Tools found",
    "tool_search_output": "Tools found",
    "tool_search_tool_result": "Tools found",
}


def tools_said(block: Mapping[str, object]) -> str:
    """Return the text of a block that names tools, "" for another block.

    >>> tools_said({"type": "tool_reference", "tool_name": "tide"})
    'Tools found: tide'
    """
    head = _HEADS.get(str(block.get("type")))
    if head is None:
        return ""
    names = ", ".join(_names(block))
    return f"{head}: {names}" if names else f"{head}: none"


def said_elsewhere(part: MessagePart, dialect: str) -> MessagePart:
    """Return the text that stands for a block of another dialect which names tools."""
    if not isinstance(part, ProviderPart) or part.dialect == dialect:
        return part
    said = tools_said(part.block)
    return TextPart(text=said) if said else part


def _names(block: Mapping[str, object], within: str = "") -> Iterator[str]:
    """Yield the names of the tools in a block, with their namespaces."""
    for inner in _inner(block):
        kind, name = inner.get("type"), inner.get("name", inner.get("tool_name"))
        if kind == "namespace" and isinstance(name, str):
            yield from _names(inner, name)
        elif isinstance(name, str) and name:
            yield f"{within}__{name}" if within and within != name else name
        else:
            yield from _names(inner, within)


def _inner(block: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Yield the tools of a block, or the objects that hold them."""
    if isinstance(block.get("tool_name"), str):
        yield {"name": block["tool_name"]}
        return
    for member in ("tool", "definition", "content"):
        inner = json_object(block.get(member))
        if inner is not None:
            yield inner
    for member in ("tools", "tool_references"):
        for each in json_array(block.get(member)):
            inner = json_object(each)
            if inner is not None:
                yield inner
