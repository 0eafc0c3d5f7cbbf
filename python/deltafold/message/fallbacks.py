"""Server-side fallback: an answer that one model began and another one served.

In: the parts of an answer.  Out: the boundary between the models, and the calls before it.

Law: a call before the last boundary is not of the model that served the answer. It does not run,
gets no result and is not sent back; the refusal may have cut it off, although its block has ended.
Source: Anthropic, "Refusals and fallback", continuing the conversation, and `BetaFallbackBlock` of
anthropic-sdk-python 2.14 (read 2026-11).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from deltafold.contract.kinds import json_object
from deltafold.message.parts import MessagePart, ProviderPart, ToolCallPart

_DIALECT: Final = "anthropic-messages"


class _Answer(Protocol):
    """A message."""

    @property
    def parts(self) -> Sequence[MessagePart]: ...

    @property
    def tool_calls(self) -> list[ToolCallPart]: ...


@dataclass(frozen=True, slots=True)
class Boundary:
    """The last boundary of an answer.

    Attributes:
        index: index of its part.
        asked: the model that the request named, as the request wrote it.
        served: the model that served the answer.
        dialect: dialect of the block.
    """

    index: int
    asked: str
    served: str
    dialect: str = _DIALECT


def is_boundary(part: MessagePart) -> bool:
    """Return whether a part is the boundary between two models."""
    return (
        isinstance(part, ProviderPart)
        and part.dialect == _DIALECT
        and part.block.get("type") == "fallback"
    )


def last_boundary(parts: Sequence[MessagePart]) -> Boundary | None:
    """Return the last boundary of an answer, None if one model wrote all of it."""
    found = [
        (index, part.block)
        for index, part in enumerate(parts)
        if isinstance(part, ProviderPart) and is_boundary(part)
    ]
    if not found:
        return None
    first, (index, last) = found[0][1], found[-1]
    return Boundary(index, _model(first, "from"), _model(last, "to"))


def calls_before_fallback(parts: Sequence[MessagePart]) -> frozenset[str]:
    """Return the ids of the calls before the last boundary, which must not run.

    >>> calls_before_fallback(message.parts)
    frozenset()
    """
    boundary = last_boundary(parts)
    if boundary is None:
        return frozenset()
    before = parts[: boundary.index]
    return frozenset(part.tool_call_id for part in before if isinstance(part, ToolCallPart))


def served_calls(answer: _Answer) -> list[ToolCallPart]:
    """Return the calls of an answer without those before its last boundary."""
    calls = answer.tool_calls
    left_out = calls_before_fallback(answer.parts) if calls else ()
    return [call for call in calls if call.tool_call_id not in left_out] if left_out else calls


def declined_calls(*members: Mapping[str, object]) -> Literal["filter", "hold"]:
    """Return the option `declined_calls` of the encoder of a stream.

    Calls are held back only where the request lets the server hand the answer over, because its
    client gets them later.

    >>> declined_calls(config.extra_body)
    'filter'

    Args:
        members: members that are added to the body of the request.
    """
    return "hold" if any(one.get("fallbacks") for one in members) else "filter"


def _model(block: dict[str, object], side: str) -> str:
    model = (json_object(block.get(side)) or {}).get("model")
    return model if isinstance(model, str) else ""
