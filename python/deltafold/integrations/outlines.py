"""Outline of an answer: everything about its parts except for their texts.

In: a message; or an outline, and the texts that a framework stored.  Out: JSON for the metadata
of the framework's message; the parts of the message again.

Laws: an outline names the parts in their order, with their provider state, annotations and the
length of their text. An outline fits an answer only if the lengths and the ids of the calls are
those of the stored texts and calls. Other answers have no outline, because they were changed. A
call before a fallback is marked as declined: it may be missing, because it does not run.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from deltafold.integrations.carried import call_part, text_part, thinking_part, whole_part
from deltafold.message.fallbacks import calls_before_fallback
from deltafold.message.messages import Message
from deltafold.message.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart

Outline: TypeAlias = list[dict[str, Any]]

_OUTSIDE = frozenset({"text", "toolCallId", "toolName", "arguments", "rawArgsText"})
"""Members of parts that the framework stores itself."""

_OF_CALLS = frozenset({"inputFormat", "incomplete"})


def outline_of(message: Message) -> Outline:
    """Return the outline of an answer."""
    declined = calls_before_fallback(message.parts)
    return [
        {**_outlined(part), "declined": True}
        if isinstance(part, ToolCallPart) and part.tool_call_id in declined
        else _outlined(part)
        for part in message.parts
    ]


def is_plain(outline: Outline) -> bool:
    """Return whether the text and the calls of an answer say everything."""
    if [entry["kind"] for entry in outline] not in (["text"], ["tool_call"], []):
        return False
    return all(entry.keys() <= {"kind", "length", "id"} for entry in outline)


def _outlined(part: MessagePart) -> dict[str, Any]:
    wire = part.model_dump(mode="json")
    payload = cast("dict[str, Any]", wire["payload"])
    state = {} if part.provider_state is None else {"providerState": part.provider_state}
    rest = {name: value for name, value in payload.items() if name not in _OUTSIDE}
    match part:
        case TextPart() | ThinkingPart():
            return {"kind": part.kind, "length": len(part.text), **rest, **state}
        case ToolCallPart():
            kept = {name: value for name, value in rest.items() if name in _OF_CALLS}
            is_canonical = part.raw_args_text == canonical(part.arguments)
            raw = {} if is_canonical else {"arguments": part.raw_args_text}
            # A framework may have no form for a call without its end.
            name = {"name": part.tool_name} if part.incomplete else {}
            return {"kind": part.kind, "id": part.tool_call_id, **name, **kept, **raw, **state}
        case _:
            return {"kind": "part", "part": wire}


def canonical(arguments: object) -> str | None:
    """Return arguments as compact JSON, which needs no copy; None if they are not an object."""
    if not isinstance(arguments, Mapping):
        return None
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def parts_of_outline(
    outline: Sequence[Mapping[str, Any]],
    text: str,
    thinking: str,
    calls: Mapping[str, tuple[str, object]],
) -> list[MessagePart] | None:
    """Return the parts of an answer; None if the outline does not fit it.

    Args:
        outline: the outline.
        text: the text of the answer.
        thinking: the reasoning of the answer.
        calls: the name and the arguments of each call, by its id. The arguments are an object, or
            text where they are not one.
    """
    parts: list[MessagePart] = []
    at = {"text": 0, "thinking": 0}
    named: list[str] = []
    for entry in outline:
        kind = entry.get("kind")
        if kind in at:
            begin = at[kind]
            at[kind] = begin + int(entry.get("length", 0))
            source, make = (text, text_part) if kind == "text" else (thinking, thinking_part)
            parts.append(make(source[begin : at[kind]], entry))
        elif kind == "tool_call":
            call_id = str(entry["id"])
            if entry.get("declined") and call_id not in calls:
                continue
            name, arguments = calls.get(call_id, (entry.get("name"), ""))
            if name is None:
                return None
            raw = entry.get("arguments")
            if raw is None:
                raw = arguments if isinstance(arguments, str) else canonical(arguments)
            named.append(call_id)
            parts.append(call_part(call_id, name, raw or "", entry))
        elif (whole := whole_part(entry)) is not None:
            parts.append(whole)
    fits = at["text"] == len(text) and at["thinking"] == len(thinking) and set(named) >= set(calls)
    return parts if fits else None
