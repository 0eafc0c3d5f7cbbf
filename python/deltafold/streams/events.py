"""Events of a stream for user interfaces: parts that begin, grow and end.

In: the deltas of one stream.  Out: `StreamEvent`s.

Laws: the start of a part comes before its deltas, and its stop after them.  A text or thinking part
stops at its delta `part_end`; in deltas made by hand, which may leave it out, before the terminal.
An event `tool_use` has the whole call and comes at its end.  The last event is `message_stop` or
`error`.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self, cast

from deltafold._core import MessageDelta
from deltafold.contract.kinds import DeltaKind, FinishReason
from deltafold.contract.usage import Usage
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message, MessagePart, ToolCallPart


class StreamEventKind(StrEnum):
    """Kind of a `StreamEvent`.

    >>> with model.stream_message_sync("When is high tide?") as events:
    ...     kinds = [event.kind for event in events]
    >>> kinds[0] is StreamEventKind.MESSAGE_START, kinds[-1] is StreamEventKind.MESSAGE_STOP
    (True, True)
    """

    MESSAGE_START = "message_start"
    PART_START = "part_start"
    PART_DELTA = "part_delta"
    PART_STOP = "part_stop"
    TOOL_USE = "tool_use"
    AUDIO = "audio"
    USAGE = "usage"
    MESSAGE_STOP = "message_stop"
    ERROR = "error"


_KINDS: Final = {
    DeltaKind.START: StreamEventKind.MESSAGE_START,
    DeltaKind.AUDIO: StreamEventKind.AUDIO,
    DeltaKind.USAGE: StreamEventKind.USAGE,
}
"""Kinds of the deltas that belong to no part, and of their events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One event. Members that its kind does not use are None.

    >>> with model.stream_message_sync("When is high tide?") as events:
    ...     texts = [event.text for event in events if event.kind == "part_delta"]
    >>> "".join(texts)
    'At 17:42.'

    Attributes:
        part_index: index of the part in the message (part_start, part_delta, part_stop, tool_use).
        part_kind: `text`, `thinking`, `tool_call`, `image`, `file_ref` or `provider`.
        text: new text, thinking or arguments text (part_delta); all text of the part (part_stop).
        part: an image, a file or a block of a provider (part_stop).
        tool_call: a complete call, whose arguments are an object (tool_use). The end of the answer
            may still forbid it: `runnable_tool_calls` of the message at message_stop decides.
        usage: the current usage record (usage).
        finish_reason: the reason why the model stopped (message_stop).
        message: the whole message (message_stop).
        error: the failure (error); its `partial_message` has the parts received before.
        delta: the delta that caused the event; of an event `audio`, its `audio` is the new data.
    """

    kind: StreamEventKind
    delta: MessageDelta
    part_index: int | None = None
    part_kind: str | None = None
    text: str | None = None
    part: MessagePart | None = None
    tool_call: ToolCallPart | None = None
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    message: Message | None = None
    error: ModelError | None = None


@dataclass(slots=True)
class _Open:
    """A part that has begun and not stopped."""

    kind: str
    texts: list[str] = field(default_factory=list[str])
    start: MessageDelta | None = None


class EventMaker:
    """Turns the deltas of one stream into events.

    Args:
        message: returns the final message; called once, at the end.
        error: returns the error that ended the stream.
    """

    __slots__ = ("_calls", "_error", "_message", "_open", "_stopped")

    def __init__(
        self, message: Callable[[], Message], error: Callable[[], ModelError | None]
    ) -> None:
        self._message = message
        self._error = error
        self._open: dict[int, _Open] = {}
        self._stopped: set[int] = set()
        self._calls: dict[str, int] = {}

    def events(self, delta: MessageDelta) -> Iterator[StreamEvent]:
        """Yield the events of one delta, in order."""
        match delta.kind:
            case DeltaKind.START | DeltaKind.AUDIO | DeltaKind.USAGE:
                yield StreamEvent(kind=_KINDS[delta.kind], delta=delta, usage=delta.usage)
            case DeltaKind.TEXT | DeltaKind.THINKING:
                yield from self._text(delta)
            case DeltaKind.PART_END:
                yield from self._stop_text(delta, delta.part_index or 0)
            case DeltaKind.TOOL_CALL_START:
                yield from self._call_start(delta)
            case DeltaKind.TOOL_CALL_ARGS:
                index = self._calls[delta.tool_call_id or ""]
                yield self._grown(delta, index, delta.args_text or "")
            case DeltaKind.TOOL_CALL_END:
                yield from self._call_end(delta)
            case DeltaKind.PART:
                yield from self._whole_part(delta)
            case DeltaKind.DONE | DeltaKind.ERROR:
                yield from self._end(delta)

    def awaited(self, deltas: AsyncIterator[MessageDelta]) -> AsyncIterator[StreamEvent]:
        """Return an iterator over the events of deltas that are awaited."""
        return AwaitedEvents(deltas, self)

    def _end(self, delta: MessageDelta) -> Iterator[StreamEvent]:
        # Deltas made by hand may leave out `part_end`.
        for index in [index for index, part in self._open.items() if part.kind != "tool_call"]:
            yield from self._stop_text(delta, index)
        if delta.kind is DeltaKind.ERROR:
            yield StreamEvent(kind=StreamEventKind.ERROR, delta=delta, error=self._error())
            return
        yield StreamEvent(
            kind=StreamEventKind.MESSAGE_STOP,
            delta=delta,
            message=self._message(),
            finish_reason=delta.finish_reason,
        )

    def _text(self, delta: MessageDelta) -> Iterator[StreamEvent]:
        index = delta.part_index or 0
        if index not in self._open:
            if index in self._stopped:
                return  # attributes on an empty text
            kind = "text" if delta.kind is DeltaKind.TEXT else "thinking"
            self._open[index] = _Open(kind)
            yield _started(delta, index, kind)
        # An empty text carries annotations, a signature or log probabilities alone.
        if delta.text:
            yield self._grown(delta, index, delta.text)

    def _call_start(self, delta: MessageDelta) -> Iterator[StreamEvent]:
        index = delta.part_index or 0
        self._calls[delta.tool_call_id or ""] = index
        self._open[index] = _Open("tool_call", start=delta)
        yield _started(delta, index, "tool_call")

    def _call_end(self, delta: MessageDelta) -> Iterator[StreamEvent]:
        index = self._calls[delta.tool_call_id or ""]
        ended = self._open.pop(index)
        arguments = "".join(ended.texts)
        yield StreamEvent(
            kind=StreamEventKind.PART_STOP,
            delta=delta,
            part_index=index,
            part_kind="tool_call",
            text=arguments,
        )
        if ended.start is None:
            return
        call = ToolCallPart(
            tool_call_id=delta.tool_call_id or "",
            tool_name=ended.start.tool_name or "",
            raw_args_text=arguments,
            incomplete=delta.incomplete,
            input_format=ended.start.input_format or "json",
            provider_state=delta.provider_state or ended.start.provider_state,
        )
        if call.arguments is not None and not call.incomplete:
            yield StreamEvent(
                kind=StreamEventKind.TOOL_USE,
                delta=delta,
                part_index=index,
                part_kind="tool_call",
                tool_call=call,
            )

    def _whole_part(self, delta: MessageDelta) -> Iterator[StreamEvent]:
        index = delta.part_index or 0
        part = cast("MessagePart", delta.part)
        yield _started(delta, index, part.kind)
        yield StreamEvent(
            kind=StreamEventKind.PART_STOP,
            delta=delta,
            part_index=index,
            part_kind=part.kind,
            part=part,
        )

    def _grown(self, delta: MessageDelta, index: int, text: str) -> StreamEvent:
        part = self._open[index]
        part.texts.append(text)
        return StreamEvent(
            kind=StreamEventKind.PART_DELTA,
            delta=delta,
            part_index=index,
            part_kind=part.kind,
            text=text,
        )

    def _stop_text(self, delta: MessageDelta, index: int) -> Iterator[StreamEvent]:
        part = self._open.pop(index)
        self._stopped.add(index)
        yield StreamEvent(
            kind=StreamEventKind.PART_STOP,
            delta=delta,
            part_index=index,
            part_kind=part.kind,
            text="".join(part.texts),
        )


class AwaitedEvents:
    """Iterator over the events of deltas that are awaited; it holds nothing to close."""

    __slots__ = ("_deltas", "_events", "_maker")

    def __init__(self, deltas: AsyncIterator[MessageDelta], maker: EventMaker) -> None:
        self._deltas = deltas
        self._maker = maker
        self._events: Iterator[StreamEvent] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        """Return the next event.

        Raises:
            StopAsyncIteration: the stream has ended.
        """
        while (event := next(self._events, None)) is None:
            self._events = self._maker.events(await anext(self._deltas))
        return event


def _started(delta: MessageDelta, index: int, kind: str) -> StreamEvent:
    return StreamEvent(
        kind=StreamEventKind.PART_START, delta=delta, part_index=index, part_kind=kind
    )
