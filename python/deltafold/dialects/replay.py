"""What all dialects ask of a message before they send it back.

In: messages and their parts.  Out: whose secrets they carry, and what can be said of them again.

Law: provider state goes back only to the dialect and the model that it came from; everybody else
refuses it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from deltafold.errors import MisuseError
from deltafold.messages import (
    Message,
    MessagePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def own_state(part: MessagePart, dialect: str, model_id: str) -> Mapping[str, object] | None:
    """Return the data of the part's provider state if this dialect and model made it, else None."""
    state = part.provider_state
    if state is None or state.get("dialect") != dialect or state.get("modelId") != model_id:
        return None
    data = state.get("data")
    return cast("Mapping[str, object]", data) if isinstance(data, Mapping) else None


def answered_calls(messages: Sequence[Message]) -> frozenset[str]:
    """Return the ids of all tool calls that a tool message answers."""
    return frozenset(
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResultPart)
    )


def is_sendable(call: ToolCallPart, answered: frozenset[str]) -> bool:
    """Whether a call belongs in a request: one that was cut off does only if it was answered."""
    return not call.incomplete or call.tool_call_id in answered


def result_text(result: ToolResultPart) -> str:
    """Return the content of a tool result as text; an object as compact JSON.

    Raises:
        MisuseError: the content holds a part that is no text.
    """
    if isinstance(result.content, str):
        return result.content
    if isinstance(result.content, dict):
        return json.dumps(result.content, ensure_ascii=False, separators=(",", ":"))
    texts: list[str] = []
    for part in result.content:
        if not isinstance(part, TextPart):
            raise unsupported(part, "a tool result")
        texts.append(part.text)
    return "".join(texts)


def unsupported(part: MessagePart, place: str) -> MisuseError:
    """Make the error for a part that a dialect has no form for."""
    return MisuseError(f"{place} cannot carry a {part.kind} part here: replace it with text")
