"""Streams: bytes of a response in, deltas, text and the final message out.

In: a `Source` of byte chunks (transports/sources.py).  Out: `MessageDelta`, `DeltaBatch`, `str`,
`Message`.  `readers.py` has the loops that read.

Laws:
- Pull only: nothing is read before it is requested, and at most one transport chunk ahead.
- Iterating never raises for a failure of the provider or the network: it yields start and the
  error, and ends. `text()` and `final_message()` raise `ModelError`.  A mistake of the caller
  raises at the call.
- The terminal delta is returned at once.  The next step, or closing, reads the rest of the body
  within bounds (transports/draining.py), so that the connection can be used again.
- Closing keeps the received parts; before the end the stream becomes `cancelled`.  Cancellation is
  folded in and raised again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar, Unpack

from deltafold._core import DeltaBatch, MessageDelta
from deltafold.errors.mapper import ErrorMapper
from deltafold.errors.model_error import ModelError
from deltafold.message import data_types
from deltafold.message.notebook import stream_card
from deltafold.message.shown import Shown
from deltafold.streams.core import CallContext, Status
from deltafold.streams.foreign_calls import ForeignCall
from deltafold.streams.options import DecoderOptions
from deltafold.streams.readers import (
    AsyncReader,
    AsyncTee,
    AwaitedTexts,
    AwaitedValues,
    Reader,
    Tee,
)
from deltafold.transports.addresses import dialect_of_address
from deltafold.transports.followed import followed, followed_async
from deltafold.transports.response_info import ResponseInfo
from deltafold.transports.responses import async_source_of, plain_chunks, source_of
from deltafold.transports.sources import AsyncSource, Source

if TYPE_CHECKING:
    from deltafold.message.card import Card
    from deltafold.streams.events import EventMaker, StreamEvent

ReaderT = TypeVar("ReaderT", Reader, AsyncReader)


class _Stream(Shown, Generic[ReaderT]):
    """Members that both kinds of stream share."""

    __slots__ = ("__weakref__", "_core")

    _core: ReaderT

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._core.dialect} {self.status}>"

    def _card(self) -> "Card":
        return stream_card(self)

    def _ipython_display_(self) -> None:
        """Show the message in a notebook, and again while the stream is read."""
        self._core.show()

    def snapshot(self) -> "data_types.Message":
        """Return the message with everything that was received so far.

        It is readable at any time, also after closing. After the end it has the facts about the
        call, as `final_message` has.
        """
        return self._core.snapshot()

    @property
    def usage(self) -> "data_types.Usage | None":
        """The usage record in force, None before the first one."""
        return self._core.assembler.usage

    @property
    def status(self) -> Status:
        """Status of the stream: idle, started, done or error."""
        return self._core.status

    @property
    def run_id(self) -> str:
        """The run that this stream's deltas belong to."""
        return self._core.decoder.run_id

    @property
    def response(self) -> ResponseInfo | None:
        """The response's status, headers and rate limits, None before they came."""
        return self._core.response

    @property
    def timing(self) -> "data_types.Timing":
        """Timing so far, in seconds."""
        return self._core.timing

    @property
    def cost_usd(self) -> float | None:
        """Cost so far in US dollars; None if it is unknown."""
        return self._core.cost.usd

    @property
    def cost_source(self) -> "data_types.CostSource | None":
        """Source of the cost: the provider, or the price list of genai-prices."""
        return self._core.cost.source

    @property
    def cost_unpriced(self) -> tuple[str, ...]:
        """Names of what was billed so far and is not in the cost; () if the cost is complete."""
        return self._core.cost.unpriced

    @property
    def is_lower_bound(self) -> bool:
        """Whether something was billed that `cost_usd` leaves out."""
        return self._core.cost.is_lower_bound

    @property
    def ended_at(self) -> int | None:
        """Bytes of the body up to the end of the event that ended it.

        None before, and where the end of the body is that of the stream. Line ends that belong to
        the event may follow.
        """
        return self._core.decoder.ended_at

    @property
    def holds_error(self) -> bool:
        """Whether the body brought an error that ends the stream later, with no content before.

        Source: docs/protocols/decoding.md#g17.
        """
        return self._core.decoder.holds_error

    @property
    def error(self) -> ModelError | None:
        """Error that ended the stream; None while it runs and after success."""
        return self._core.error()

    def _event_maker(self) -> "EventMaker":
        # The module imports pydantic, which streams without events and messages do not need.
        from deltafold.streams.events import EventMaker  # noqa: PLC0415 - as said

        return EventMaker(lambda: self.message, lambda: self.error)

    @property
    def message(self) -> "data_types.Message":
        """The message of a stream that was read to its end; `final_message` reads to it first.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has the parts received
                before.
            MisuseError: the stream has not ended yet.
        """
        return self._core.final_message()


class DeltaStream(_Stream[Reader]):
    """A stream that is read by waiting for it.  Made by `stream()` and `Model.stream_sync()`.

    >>> with deltafold.stream(response) as stream:
    ...     for delta in stream:
    ...         ...
    ...     message = stream.final_message()

    The ways of reading share one position: what one has taken, another does not see again.
    """

    __slots__ = ()

    def __init__(
        self,
        origin: Callable[[], Source] | Iterator[bytes],
        dialect: "data_types.ProtocolName | None",
        *,
        error_mapper: ErrorMapper | None = None,
        tee: Tee | None = None,
        call: CallContext | None = None,
        **options: Unpack[DecoderOptions],
    ) -> None:
        self._core = Reader(
            origin, dialect, error_mapper=error_mapper, tee=tee, call=call, options=options
        )

    def __iter__(self) -> Iterator[MessageDelta]:
        core = self._core
        return core.values(core.cursor.deltas)

    def batches(self) -> Iterator[DeltaBatch]:
        """Return an iterator over the deltas of each read, the cheapest way to see all of them."""
        core = self._core
        return core.values(core.cursor.batches)

    def events(self) -> "Iterator[StreamEvent]":
        """Return an iterator over events: parts that begin, grow and stop, and whole calls.

        >>> with deltafold.stream(response) as stream:
        ...     calls = [
        ...         event.tool_call for event in stream.events() if event.kind == "tool_use"
        ...     ]
        """
        maker = self._event_maker()
        return (event for delta in self for event in maker.events(delta))

    def text(self) -> Iterator[str]:
        """Return an iterator over the text of the answer as it arrives.

        Raises:
            ModelError: the stream ended in an error; all received text was yielded before.
        """
        return self._core.texts()

    def final_message(self) -> "data_types.Message":
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has the parts received
                before.
        """
        self._core.read_to_end()
        return self._core.final_message()

    def close(self) -> None:
        """Release the connection and keep the received parts.

        A stream that has not ended becomes `cancelled`, and its connection is closed.
        """
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._core.close()


class AsyncDeltaStream(_Stream[AsyncReader]):
    """A stream that is read by awaiting it, under any event loop.

    `astream()` and `Model.stream()` make it.

    >>> async with model.stream("Hello") as stream:
    ...     async for delta in stream:
    ...         ...
    ...     message = await stream.final_message()

    The ways of reading share one position: what one has taken, another does not see again.
    """

    __slots__ = ()

    def __init__(
        self,
        open_source: Callable[[], Awaitable[AsyncSource]],
        dialect: "data_types.ProtocolName | None",
        *,
        error_mapper: ErrorMapper | None = None,
        tee: AsyncTee | None = None,
        call: CallContext | None = None,
        **options: Unpack[DecoderOptions],
    ) -> None:
        self._core = AsyncReader(
            open_source, dialect, error_mapper=error_mapper, tee=tee, call=call, options=options
        )

    def __aiter__(self) -> AsyncIterator[MessageDelta]:
        core = self._core
        return AwaitedValues(core, core.cursor.deltas)

    def __anext__(self) -> Coroutine[object, None, MessageDelta]:
        core = self._core
        return AwaitedValues(core, core.cursor.deltas).__anext__()

    def batches(self) -> AsyncIterator[DeltaBatch]:
        """Return an iterator over the deltas of each read, the cheapest way to see all of them."""
        core = self._core
        return AwaitedValues(core, core.cursor.batches)

    def events(self) -> "AsyncIterator[StreamEvent]":
        """Return an iterator over events: parts that begin, grow and stop, and whole calls."""
        return self._event_maker().awaited(aiter(self))

    def text(self) -> AsyncIterator[str]:
        """Return an iterator over the text of the answer as it arrives.

        Raises:
            ModelError: the stream ended in an error; all received text was yielded before.
        """
        return AwaitedTexts(self._core)

    async def final_message(self) -> "data_types.Message":
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has the parts received
                before.
        """
        await self._core.read_to_end()
        return self._core.final_message()

    async def aclose(self) -> None:
        """Release the connection and keep the received parts.

        A stream that has not ended becomes `cancelled`, and its connection is closed.
        """
        await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._core.close()


def stream(
    response: object,
    dialect: "data_types.ProtocolName | None" = None,
    *,
    error_mapper: ErrorMapper | None = None,
    tee: Tee | None = None,
    **options: Unpack[DecoderOptions],
) -> DeltaStream:
    """Read a response that another client has opened.

    >>> client = openai.OpenAI()
    >>> response = client.chat.completions.create(model="m", messages=messages, stream=True)
    >>> with deltafold.stream(response) as stream:
    ...     stream.final_message().text
    'At 17:42.'

    Args:
        response: openai's or anthropic's `with_streaming_response` or raw response or `Stream`, a
            response of httpx, httpx2 or requests, bytes, or any iterable of bytes or of events. An
            event is a dict of the wire, an object of an SDK, or an object with its attributes.
        dialect: the wire protocol; None takes it from the address of the response, or else from the
            first events.
        error_mapper: maps the failures of the transport; None is the default table.
        tee: receives the bytes or events of the body as they arrive, before they are decoded; a
            gateway forwards them.
        options: the options of `Decoder`; status and headers come from the response unless given.

    Raises:
        UnknownDialectError: there is no such dialect; or, while the stream is read, none was given
            and the body does not tell its own.
        MisuseError: the response can only be awaited.
        TypeError: the response, or an item of it while it is read, is neither bytes nor an event.
    """
    chunks = None if "status" in options else plain_chunks(response)
    if chunks is not None:
        return DeltaStream(chunks, dialect, error_mapper=error_mapper, tee=tee, **options)
    source = source_of(response)
    call = ForeignCall(response, followed(response, source))
    named = dialect or dialect_of_address(response)

    def opened() -> Source:
        return source

    return DeltaStream(opened, named, error_mapper=error_mapper, tee=tee, call=call, **options)


def astream(
    response: object,
    dialect: "data_types.ProtocolName | None" = None,
    *,
    error_mapper: ErrorMapper | None = None,
    tee: AsyncTee | None = None,
    **options: Unpack[DecoderOptions],
) -> AsyncDeltaStream:
    """Await a response that another client has opened; the asynchronous form of `stream()`.

    >>> async with deltafold.astream([body], "openai-chat") as stream:
    ...     message = await stream.final_message()
    """
    source = async_source_of(response)
    call = ForeignCall(response, followed_async(response, source))
    named = dialect or dialect_of_address(response)

    async def opened() -> AsyncSource:
        return source

    return AsyncDeltaStream(opened, named, error_mapper=error_mapper, tee=tee, call=call, **options)
