"""Parts and messages of a history while it is repaired.

In: messages.  Out: their pieces, and the questions that repairing asks about them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from deltafold.contract.kinds import FinishReason
from deltafold.dialects.replay import compact
from deltafold.dialects.turns import CLOSING, OPENING
from deltafold.message.fallbacks import Boundary
from deltafold.message.messages import KINDS_OF_ROLE as KINDS
from deltafold.message.messages import (
    ContentPart,
    Message,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


@dataclass(slots=True)
class Piece:
    """A part and its origin; for a result, also the call that it answers."""

    part: MessagePart
    message: int
    index: int
    answers: "Piece | None" = None
    answer: "Piece | None" = None
    call_id: str | None = None
    """New id of the call, if it is renamed."""
    boundary: Boundary | None = None
    """The boundary of an answer that another model took over, before or after the part."""
    defect: str | None = None
    """The reason why the provider refuses a block of its own tool, None if it takes it."""

    @property
    def is_before_fallback(self) -> bool:
        """Whether another model took over after the part: the renderer leaves most of it out."""
        return self.boundary is not None and self.index < self.boundary.index

    @property
    def is_boundary(self) -> bool:
        """Whether the part is that boundary, which the renderer needs in every dialect."""
        return self.boundary is not None and self.index == self.boundary.index

    @property
    def is_left_out(self) -> bool:
        """Whether no provider is sent the part: a call or a server tool that never ran."""
        if self.defect is not None:
            return True
        if not isinstance(self.part, ToolCallPart) or self.answer is not None:
            return False
        return self.part.incomplete or self.is_before_fallback


@dataclass(slots=True)
class Turn:
    """A message while it is mended."""

    role: Role
    pieces: list[Piece]
    source: Message
    number: int
    is_whole: bool = True
    """Whether this is an original message, as opposed to a piece of one."""
    following: list[Message] = field(default_factory=list[Message])


def is_said_by_user(turn: Turn) -> bool:
    """Return whether the turn is a text of the user."""
    texts = [piece.part.text for piece in turn.pieces if isinstance(piece.part, TextPart)]
    return turn.role is Role.USER and any(text.strip() for text in texts)


def is_plain(messages: Sequence[Message]) -> bool:
    """Return whether the history is text that the user begins; only its end can be a problem."""
    is_begun = False
    for message in messages:
        if message.role is Role.USER:
            is_begun = True
        elif message.role is Role.TOOL or (message.role is Role.ASSISTANT and not is_begun):
            return False
        parts = message.parts
        if not parts:
            return False
        for part in parts:
            if type(part) is not TextPart or not part.text or part.text.isspace():
                return False
    return is_begun


def ends_with_answer(messages: Sequence[Message]) -> bool:
    """Return whether the history ends with a text of the assistant that nothing continues.

    An answer that paused, or that ends in a tool of the server, goes back as it is.
    """
    if not messages or messages[-1].role is not Role.ASSISTANT or not messages[-1].parts:
        return False
    last = messages[-1]
    has_block = any(isinstance(part, ProviderPart) for part in last.parts)
    is_paused = has_block or last.meta.finish_reason is FinishReason.PAUSE
    return isinstance(last.parts[-1], TextPart) and not is_paused


def closing_after(answer: Message) -> Message:
    """Make a message of the user behind an answer, at its time."""
    return Message.user(CLOSING).model_copy(update={"timestamp": answer.timestamp})


def split_at_texts(turn: Turn) -> Iterator["Turn"]:
    """Yield a turn; an answer in pieces that end with its calls, where a text follows these."""
    start = 0
    has_call = False
    for place, piece in enumerate(turn.pieces):
        if isinstance(piece.part, TextPart) and has_call:
            yield replace(turn, pieces=turn.pieces[start:place], is_whole=False)
            start, has_call = place, False
        has_call |= isinstance(piece.part, ToolCallPart) and piece.answer is not None
    rest = turn.pieces[start:]
    yield turn if start == 0 else replace(turn, pieces=rest, is_whole=False)


def speakers_at(turns: Sequence[Turn], position: int, *, ends_at_text: bool) -> list[Turn]:
    """Return the turn at a position, with the neighbouring ones of the same answer.

    The protocols read neighbouring messages of the assistant as one, or are sent one. With
    `ends_at_text`, a text after answered calls begins another answer.
    """
    speakers = [turns[position]]
    if turns[position].role is not Role.ASSISTANT:
        return speakers
    for at in range(position + 1, len(turns)):
        turn = turns[at]
        if turn.role is not Role.ASSISTANT or (ends_at_text and _begins_anew(speakers[-1], turn)):
            break
        speakers.append(turn)
    return speakers


def _begins_anew(before: Turn, turn: Turn) -> bool:
    is_text = bool(turn.pieces) and isinstance(turn.pieces[0].part, TextPart)
    calls = (piece for piece in before.pieces if isinstance(piece.part, ToolCallPart))
    return is_text and any(call.answer is not None for call in calls)


def opening_beside(beside: Message | None) -> Message:
    """Make a message of the user, at the time of an existing message."""
    opening = Message.user(OPENING)
    return opening if beside is None else opening.model_copy(update={"timestamp": beside.timestamp})


def speaks(message: Message) -> bool:
    """Return whether the message has content that every provider accepts.

    Media of an answer do not count.
    """
    if message.role is Role.ASSISTANT:
        return any(follows(part) for part in message.parts)
    return message.role is not Role.SYSTEM


def home(part: MessagePart, role: Role) -> Role:
    """Return the role of a message that may hold the part."""
    if part.kind in KINDS[role]:
        return role
    if isinstance(part, ToolResultPart):
        return Role.TOOL
    return Role.USER if part.kind in KINDS[Role.USER] else Role.ASSISTANT


def pairs_in_order(turns: Sequence[Turn]) -> Iterator[tuple[Piece, Piece]]:
    """Yield results whose ids are those of no call, each with the unanswered call before it.

    They are paired in order where a run of results has as many as its calls are unanswered.
    Programs that lose or rewrite ids keep this order.
    """
    known = {
        piece.part.tool_call_id
        for turn in turns
        for piece in turn.pieces
        if isinstance(piece.part, ToolCallPart)
    }
    calls: list[Piece] = []
    results: list[Piece] = []
    is_answering = False
    for turn in turns:
        if is_answering and turn.role is not Role.TOOL:
            yield from _as_many(results, calls)
            calls, results = [], []
        is_answering = turn.role is Role.TOOL
        if turn.role is Role.USER:
            calls = []
        for piece in turn.pieces:
            if isinstance(piece.part, ToolCallPart) and piece.answer is None:
                calls.append(piece)
            if isinstance(piece.part, ToolResultPart) and piece.answers is None:
                results += [piece] if piece.part.tool_call_id not in known else []
    yield from _as_many(results, calls)


def _as_many(results: list[Piece], calls: list[Piece]) -> list[tuple[Piece, Piece]]:
    return [*zip(results, calls, strict=True)] if len(results) == len(calls) else []


def id_of(call: Piece) -> str:
    """Return the id of a call after repairing."""
    part = call.part
    own = part.tool_call_id if isinstance(part, ToolCallPart) else ""
    return call.call_id or own


def as_message(turn: Turn, parts: list[MessagePart]) -> Message:
    """Return the original message if its parts are equal, otherwise one with these parts."""
    source = turn.source
    if (
        turn.is_whole
        and len(parts) == len(source.parts)
        and all(a is b for a, b in zip(parts, source.parts, strict=True))
    ):
        return source
    if turn.is_whole:
        return source.model_copy(update={"parts": parts})
    return Message(role=turn.role, parts=parts, run_id=source.run_id, timestamp=source.timestamp)


def as_said(result: ToolResultPart) -> list[ContentPart]:
    """Return the content of a result, after a line that describes the result."""
    head = TextPart(text=f"[result of the call {result.tool_call_id!r}]")
    if isinstance(result.content, str):
        return [head, TextPart(text=result.content)] if result.content.strip() else [head]
    if isinstance(result.content, dict):
        return [head, TextPart(text=compact(result.content))]
    return [head, *(part for part in result.content if not is_blank(part, _text(part).strip()))]


def _text(part: MessagePart) -> str:
    return part.text if isinstance(part, TextPart) else ""


def holds_something(data: object) -> bool:
    """Return whether state holds a signature that is not empty."""
    return isinstance(data, Mapping) and any(cast("Mapping[str, object]", data).values())


def is_blank(part: MessagePart, said: str) -> bool:
    """Return whether a text is blank and carries nothing that must go back to its provider."""
    is_bare = isinstance(part, TextPart) and not part.annotations
    return is_bare and not said and part.provider_state is None


def follows(part: MessagePart) -> bool:
    """Return whether a part becomes an item that can follow reasoning."""
    if isinstance(part, TextPart):
        return bool(part.text)
    return isinstance(part, ToolCallPart | ProviderPart)
