"""Chunks: an answer that a client of Gemini's protocol sends back in pieces.

In: the messages of a request.  Out: the messages, with one for each answer.

Law: a chat of Gemini's client keeps each chunk of a stream as a content of its own. For Gemini they
stay as they are. Elsewhere the reasoning belongs beside the calls that it led to, and all results
behind all calls, as DeepSeek requires it; no provider takes an empty message.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import cast

from deltafold.dialects.envelopes import is_piece
from deltafold.message.messages import Message, MessagePart, Role, TextPart, ThinkingPart


def whole_answers(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield messages; neighbouring ones of the assistant are one."""
    for role, group in groupby(messages, lambda message: message.role):
        run = list(group)
        if role is not Role.ASSISTANT or len(run) == 1:
            yield from run
            continue
        parts = [part for message in run for part in message.parts]
        yield run[0].model_copy(update={"parts": list(_joined(parts))})


def _joined(parts: Sequence[MessagePart]) -> Iterator[MessagePart]:
    """Yield parts; a text that a stream cut into pieces is one, and an empty piece is none."""
    for kind, group in groupby(parts, _kind_of_piece):
        pieces = list(group)
        if kind is None:
            yield from pieces
            continue
        first = cast("TextPart | ThinkingPart", pieces[0])
        text = "".join(cast("TextPart | ThinkingPart", piece).text for piece in pieces)
        if text:
            yield first.model_copy(update={"text": text})


def _kind_of_piece(part: MessagePart) -> str | None:
    """Return the kind of a text that may be a piece of a longer one, None for any other part."""
    if isinstance(part, TextPart) and (part.annotations or part.refusal):
        return None
    return next((kind for kind in ("text", "thinking") if is_piece(part, kind)), None)
