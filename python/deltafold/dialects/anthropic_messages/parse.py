"""Parser of request bodies of Anthropic's Messages API; the inverse of `render.py`.

Law: a user message with tool results becomes two messages: the results, and the rest.
Source: docs/protocols/anthropic-messages.md#blocks, docs/protocols/anthropic-messages.md#request.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Final, cast

from deltafold.contract.kinds import json_array, json_object
from deltafold.dialects.anthropic_messages.render import (
    DIALECT,
    MAX_CACHE_MARKS,
    OF_CALLS,
    TOOL_CHOICES,
)
from deltafold.dialects.envelopes import Item, joined
from deltafold.dialects.found_tools import tools_said
from deltafold.dialects.reader import (
    Reader,
    address,
    as_object,
    call_of,
    data_url,
    listed,
    maybe_text,
    media_of,
    objects,
    shown_text,
    text,
    thinking_of,
    tool_of,
)
from deltafold.dialects.rendered import IN_BLOCK, IN_INPUT, WITHDRAWN, Object
from deltafold.message.messages import (
    ContentPart,
    FileRefPart,
    ImagePart,
    ProviderPart,
    Role,
    TextPart,
    ToolResultPart,
)
from deltafold.specs.tool_specs import ToolSpec

_CHANGING: Final = frozenset({"compaction", "tool_addition", "tool_definition", "tool_removal"})
"""Types of the blocks that change the tools."""
_MODES: Final = {word: mode for mode, word in TOOL_CHOICES.items()}
_OF_SOURCE: Final = frozenset({"type", "media_type", "data", "url", "file_id"})
"""Members of a source; a source with another one is kept whole."""

_SHOWN_AS_TEXT: Final = frozenset({"document", "search_result"})


_MARK: Final[Object] = {"cache_control?": {"type": "ephemeral"}}

_PLAIN_TEXT: Final[Object] = {"type": "text", "text": "$text", **_MARK}

PLAIN: Final[Object] = {
    "history": "messages",
    # More marks than the API takes are removed, which depends on all of them.
    "most": {"cache_control": MAX_CACHE_MARKS},
    "beside": {"system": {"$or": ["$text", [_PLAIN_TEXT]]}},
    "rows": [
        {
            "speaker": "user",
            "item": {
                "role": "user",
                "content": {
                    "$or": [
                        "$text",
                        [
                            _PLAIN_TEXT,
                            {
                                "type": "tool_result",
                                "tool_use_id": "$result",
                                "content?": {
                                    "$or": ["$text", "", [{"type": "text", "text": "$text"}]]
                                },
                                "is_error?": {"$or": [False, True]},
                                **_MARK,
                            },
                        ],
                    ]
                },
            },
        },
        {
            "speaker": "assistant",
            "item": {
                "role": "assistant",
                "content": {
                    "$or": [
                        "$text",
                        [
                            _PLAIN_TEXT,
                            {
                                "type": "tool_use",
                                "id": "$call",
                                "name": "$name",
                                "input": "$input",
                                **_MARK,
                            },
                            {
                                "type": "thinking",
                                "thinking": {"$or": ["$optional", ""]},
                                "signature": "$optional",
                            },
                        ],
                    ]
                },
            },
        },
    ],
}
"""Plain messages, in the form that `rust/core/src/stencil/rows.rs` reads."""


def read_body(reader: Reader) -> None:
    """Read a request body."""
    system = [
        _said(reader, block, "system")
        for block in listed(reader.body.pop("system", None), "system")
    ]
    if system:
        reader.say(Role.SYSTEM, system)
    # Older clients write -1 for a setting that is not set, which the API takes.
    for name in ("top_k", "top_p"):
        if reader.body.get(name) == -1:
            reader.unset[name] = reader.body.pop(name)
    messages = list(objects(reader.body.pop("messages", None), "messages"))
    for message, place in messages:
        _read_message(reader, message, place)
    for tool, place in objects(reader.body.pop("tools", None), "tools"):
        _read_tool(reader, tool, place)
    _read_changes(reader, messages)
    _read_tool_choice(reader)
    cache = reader.body.pop("cache_control", None)
    if cache is not None:
        lifetime = as_object(cache, "cache_control").get("ttl")
        reader.config["cache_config"] = {"strategy": "auto", "lifetime": lifetime}


def _read_tool(reader: Reader, tool: Object, place: str) -> None:
    if "input_schema" in tool:
        reader.tools.append(_function(reader, tool, place))
    else:
        reader.provider_tool(tool)


def _function(reader: Reader, tool: Object, place: str) -> ToolSpec:
    known = {"name", "description", "input_schema", "strict"}
    extra = {name: value for name, value in tool.items() if name not in known}
    return tool_of(reader, tool, as_object(tool["input_schema"], place), extra, place)


def _read_changes(reader: Reader, messages: Sequence[tuple[Object, str]]) -> None:
    """Declare the tools that the messages define, the last definition of a name; mark the removed.

    The list of tools stays as it is in each request; what is offered after the last message is what
    other dialects declare.
    """
    defined: dict[str, ToolSpec] = {}
    removed: set[str] = set()
    for change, place in _changes(messages):
        tool = json_object(change.get("tool")) or change
        definition = json_object(tool.get("definition"))
        if tool.get("type") == "tool_definition" and definition and "input_schema" in definition:
            function = _function(reader, {**definition, IN_INPUT: True}, place)
            # The last place: the tool is offered from there on.
            defined.pop(function.name, None)
            defined[function.name] = function
            removed.discard(function.name)
        elif tool.get("type") == "tool_reference" and isinstance(name := tool.get("name"), str):
            if change.get("type") == "tool_removal":
                removed.add(name)
            elif change.get("type") == "tool_addition":
                removed.discard(name)
    for index, tool_in_list in enumerate(reader.tools):
        if tool_in_list.name in removed or tool_in_list.name in defined:
            extra = {**tool_in_list.extra, WITHDRAWN: True}
            reader.tools[index] = tool_in_list.model_copy(update={"extra": extra})
    reader.tools += [tool for name, tool in defined.items() if name not in removed]


def _changes(messages: Sequence[tuple[Object, str]]) -> Iterator[tuple[Object, str]]:
    """Yield the blocks that may change the tools; those of a compacted range are in its block."""
    for message, place in messages:
        for number, given in enumerate(json_array(message.get("content"))):
            block = json_object(given)
            if block is None or str(block.get("type")) not in _CHANGING:
                continue
            where = f"{place}[{number}]"
            yield dict(block), where
            for change in json_array(block.get("tool_changes")):
                yield dict(json_object(change) or {}), where


def _read_tool_choice(reader: Reader) -> None:
    value = reader.body.pop("tool_choice", None)
    if value is None:
        return
    choice = as_object(value, "tool_choice")
    kind = text(choice.get("type"), "tool_choice.type")
    reader.config["tool_choice"] = (
        {"mode": "tool", "name": choice.get("name")} if kind == "tool" else _MODES.get(kind, kind)
    )
    if "disable_parallel_tool_use" in choice:
        reader.config["parallel_tool_calls"] = not choice["disable_parallel_tool_use"]


def _read_message(reader: Reader, message: Object, place: str) -> None:
    role = text(message.get("role"), f"{place}.role")
    extras = reader.unknown(message, {"role", "content"}, place)
    blocks = listed(message.get("content"), f"{place}.content")
    if role == "assistant":
        items = [
            _of_assistant(reader, block, f"{place}.content[{number}]")
            for number, block in enumerate(blocks)
        ]
        reader.say(Role.ASSISTANT, joined(items), extras)
        return
    placed = [(block, f"{place}.content[{number}]") for number, block in enumerate(blocks)]
    results = [item for item in placed if item[0].get("type") == "tool_result"]
    others = [item for item in placed if item[0].get("type") != "tool_result"]
    said = [part for block, where in others for part in _with_images(reader, block, where)]
    of_results = None if said else extras
    reader.answer([_result(reader, block, where) for block, where in results], of_results)
    if role == "system":
        reader.say(Role.SYSTEM, said, {**extras, "role": role})
    elif said or not results:
        reader.say(Role.USER, said, extras)


def _extras(block: Object, *known: str) -> Object:
    return {name: value for name, value in block.items() if name not in {"type", *known}}


def _of_assistant(reader: Reader, block: Object, place: str) -> Item:
    match block.get("type"):
        case "text":
            return _text(reader, block)
        case "thinking":
            return _thinking(reader, block, "signature", place)
        case "redacted_thinking":
            return _thinking(reader, block, "data", place)
        case "tool_use":
            members = _extras(block, "id", "name", "input", *OF_CALLS)
            state: Object = {name: block[name] for name in OF_CALLS if name in block}
            if members:
                state["members"] = members
            return call_of(
                str(block.get("id", "")),
                str(block.get("name", "")),
                block.get("input"),
                reader.state(state),
            )
        case _:
            return ProviderPart(dialect=DIALECT, block=block)


def _thinking(reader: Reader, block: Object, member: str, place: str) -> Item:
    said = str(block.get("thinking", ""))
    beside = _extras(block, "thinking", member)
    envelope = reader.opened(block.get(member), f"{place}.{member}", beside)
    if envelope is not None:
        return envelope.carried(said)
    if member == "data":
        return thinking_of("", reader.state(block), redacted=True)
    # Messages of other servers have an empty signature, which the API refuses.
    unsigned = () if block.get("signature") else ("signature",)
    return thinking_of(said, reader.state(_extras(block, "thinking", *unsigned)))


def _text(reader: Reader, block: Object) -> TextPart:
    said = text(block.get("text"), "text")
    if not said.strip():
        return reader.as_sent(said, block)
    return TextPart(
        text=said,
        annotations=cast("list[object] | None", block.get("citations")) or None,
        provider_state=reader.extras(_extras(block, "text", "citations")),
    )


def _said(reader: Reader, block: Object, place: str) -> TextPart | ImagePart | FileRefPart:
    """Read a content block of a user or system message."""
    kind = block.get("type")
    if kind == "text":
        return _text(reader, block)
    if kind in {"image", "document"}:
        part = _media(reader, block)
        if part is not None:
            return part
    shown = tools_said(block)
    if shown:
        return reader.as_sent(shown, block)
    shown = shown_text(block)
    if kind in _SHOWN_AS_TEXT and shown:
        return reader.as_sent(shown, block)
    return reader.block(block, f"{place}: {kind}", shown)


def _with_images(
    reader: Reader, block: Object, place: str
) -> Iterator[TextPart | ImagePart | FileRefPart]:
    yield _said(reader, block, place)
    yield from _images_in(reader, block)


def _images_in(reader: Reader, block: Object) -> Iterator[ImagePart | FileRefPart]:
    """Yield the images in the content of a document; its own dialect sends the block with them."""
    source = json_object(block.get("source")) if block.get("type") == "document" else None
    for given in json_array((source or {}).get("content")):
        inner = json_object(given) or {}
        image = _media(reader, dict(inner)) if inner.get("type") == "image" else None
        if image is not None:
            yield image.model_copy(update={"provider_state": reader.own({IN_BLOCK: True})})


def _inside(reader: Reader, block: Object, place: str) -> ContentPart:
    """Read a content block of a tool result; a block without text becomes a provider part."""
    if block.get("type") == "text" or tools_said(block) or shown_text(block):
        return _said(reader, block, place)
    media = _media(reader, block) if block.get("type") in {"image", "document"} else None
    return media or ProviderPart(dialect=DIALECT, block=block)


def _media(reader: Reader, block: Object) -> ImagePart | FileRefPart | None:
    source = as_object(block.get("source"), "source")
    is_image = block["type"] == "image"
    name = maybe_text(block.get("title"), "title")
    # Only data has a name: an address keeps the title as a member.
    is_named = str(source.get("type")) in {"base64", "text"}
    known = [] if source.keys() - _OF_SOURCE else ["source"]
    state = reader.extras(_extras(block, *known, *(["title"] if is_named else [])))
    mime_type = maybe_text(source.get("media_type"), "source.media_type")
    match source.get("type"):
        case "base64":
            return media_of(mime_type, text(source.get("data"), "source.data"), name, state)
        case "url" if is_image:
            return ImagePart(
                mime_type="image/*",
                url=address(source.get("url"), "source.url"),
                provider_state=state,
            )
        case "url":
            return FileRefPart(path=address(source.get("url"), "source.url"), provider_state=state)
        case "file":
            stored = "image/*" if is_image else None
            path = address(source.get("file_id"), "source.file_id")
            return FileRefPart(path=path, mime_type=stored, provider_state=state)
        case "text":
            data = b64encode(text(source.get("data"), "source.data").encode()).decode()
            path = data_url("text/plain", data, name)
            return FileRefPart(path=path, mime_type="text/plain", provider_state=state)
        case _:
            return None


def _result(reader: Reader, block: Object, place: str) -> ToolResultPart:
    content = block.get("content")
    parts: str | list[ContentPart]
    if content is None or isinstance(content, str):
        parts = content or ""
    else:
        parts = [
            part
            for inner, where in objects(content, f"{place}.content")
            for part in (_inside(reader, inner, where), *_images_in(reader, inner))
        ]
    known = ("tool_use_id", "content", "is_error")
    return ToolResultPart(
        tool_call_id=str(block.get("tool_use_id", "")),
        content=parts,
        is_error=bool(block.get("is_error")),
        provider_state=reader.extras(_extras(block, *known)),
    )
