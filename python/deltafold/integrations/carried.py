"""Facts of a part that the history of a framework has no member for, as one JSON object.

In: deltas, parts.  Out: a JSON object for a framework's own field of provider facts; the part of
the contract again.

Laws: the object has the names of the contract (`providerState`, `annotations`, `refusal`,
`redacted`, `inputFormat`, `incomplete`). It never repeats the text or the arguments, which the
framework has. A part that goes through a framework's history is rendered as it was received.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from deltafold.message.parts import (
    MessagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    part_from_wire,
)

if TYPE_CHECKING:
    from deltafold._core import MessageDelta

MEMBER: Final = "deltafold"
"""Name of the object among a framework's provider facts."""

Carried: TypeAlias = dict[str, Any]


def added(carried: Carried | None, delta: "MessageDelta") -> Carried | None:
    """Return the facts of a part after a delta of it; None if the delta adds none.

    The result is a new object, so that the events that were sent before keep their facts.
    """
    more: Carried = {}
    if (state := delta.provider_state) is not None:
        more["providerState"] = state
    if annotations := delta.annotations:
        more["annotations"] = [*(carried or {}).get("annotations", ()), *annotations]
    if delta.refusal:
        more["refusal"] = True
    if delta.redacted:
        more["redacted"] = True
    if delta.incomplete:
        more["incomplete"] = True
    if delta.input_format == "text":
        more["inputFormat"] = "text"
    return {**(carried or {}), **more} if more else None


def state_of(carried: Mapping[str, object]) -> Mapping[str, Any]:
    """Return the data of the provider state; empty without a state."""
    state = carried.get("providerState")
    data = cast("Mapping[str, object]", state).get("data") if isinstance(state, Mapping) else None
    return cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {}


def carried_in(facts: Mapping[str, object] | None) -> Carried | None:
    """Return the object among the provider facts of a part, None if it is not there."""
    found = None if facts is None else facts.get(MEMBER)
    return cast("Carried", found) if isinstance(found, dict) else None


def text_part(text: str, carried: Mapping[str, Any]) -> TextPart:
    """Make a text part of its text and its facts."""
    return TextPart(
        text=text,
        annotations=carried.get("annotations"),
        refusal=carried.get("refusal", False),
        provider_state=carried.get("providerState"),
    )


def thinking_part(text: str, carried: Mapping[str, Any]) -> ThinkingPart:
    """Make a thinking part of its text and its facts."""
    return ThinkingPart(
        text=text,
        redacted=carried.get("redacted", False),
        provider_state=carried.get("providerState"),
    )


def call_part(call_id: str, name: str, arguments: str, carried: Mapping[str, Any]) -> ToolCallPart:
    """Make a tool call of its id, name, raw arguments and facts."""
    return ToolCallPart(
        tool_call_id=call_id,
        tool_name=name,
        raw_args_text=arguments,
        input_format=carried.get("inputFormat", "json"),
        incomplete=carried.get("incomplete", False),
        provider_state=carried.get("providerState"),
    )


def whole_part(carried: Mapping[str, Any]) -> MessagePart | None:
    """Return the part that was carried whole: a provider's block, an image or a file."""
    part = carried.get("part")
    return part_from_wire(cast("Mapping[str, object]", part)) if isinstance(part, dict) else None


def cache_marked(
    parts: Sequence[MessagePart], dialect: str, lifetime: str | None = None
) -> list[MessagePart]:
    """Return the parts with a cache mark behind the last one; unchanged where no part is marked.

    Args:
        parts: the parts of a message.
        dialect: the dialect of the request.
        lifetime: "5m" or "1h"; None is the provider's default.
    """
    ttl = {} if lifetime is None else {"ttl": lifetime}
    if dialect == "bedrock-converse":
        block = {"cachePoint": {"type": "default", **ttl}}
        state: Carried = {"dialect": dialect, "data": {"block": block}}
        return [*parts, TextPart(text="", provider_state=state)]
    if dialect != "anthropic-messages" or not parts:
        return list(parts)
    *others, last = parts
    mark = {"members": {"cache_control": {"type": "ephemeral", **ttl}}}
    known = last.provider_state or {"dialect": dialect, "data": {}}
    data = cast("Mapping[str, object]", known.get("data") or {})
    state = {**known, "data": {**data, **mark}}
    return [*others, last.model_copy(update={"provider_state": state})]
