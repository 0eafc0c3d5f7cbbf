"""Handovers: what goes back of an answer that one model began and another one served.

In: the parts of an answer, and the model of the next request.  Out: the parts that are left out,
and whose state a part has.

Laws: before the last boundary, texts, boundaries and tools of the server with their results go
back; thinking, connector texts and calls do not, and no result of such a call does. State after the
boundary goes to the model that was asked and to the model that served the answer: the request names
the one, and the API lets the other one answer.
Source: Anthropic, "Refusals and fallback", continuing the conversation (read 2026-11).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from deltafold.dialects.model_names import is_state_of, same_model
from deltafold.message.fallbacks import Boundary
from deltafold.message.messages import MessagePart, ProviderPart, ThinkingPart, ToolCallPart

_OWN_TO_THE_MODEL: Final = frozenset({"connector_text"})


def left_out(parts: Sequence[MessagePart], boundary: Boundary) -> frozenset[int]:
    """Return the indexes of the parts before a boundary that are not sent again."""
    before = parts[: boundary.index]
    answered = {part.block.get("tool_use_id") for part in before if isinstance(part, ProviderPart)}
    return frozenset(
        index
        for index, part in enumerate(before)
        if isinstance(part, ThinkingPart | ToolCallPart)
        or (isinstance(part, ProviderPart) and _is_left_out(part, boundary, answered))
    )


def _is_left_out(part: ProviderPart, boundary: Boundary, answered: set[object]) -> bool:
    if part.dialect != boundary.dialect:
        return False
    kind = part.block.get("type")
    is_unanswered = kind == "server_tool_use" and part.block.get("id") not in answered
    return kind in _OWN_TO_THE_MODEL or is_unanswered


def is_state_after(boundary: Boundary, state: Mapping[str, object], model_id: str) -> bool:
    """Return whether state after a boundary belongs to a model."""
    models = [model for model in (boundary.asked, boundary.served) if model]
    return any(same_model(model, model_id) for model in models) and any(
        is_state_of(state, model) for model in models
    )
