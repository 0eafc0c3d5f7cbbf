"""Streams: bytes of a response in, deltas, text and the final message out.

In: a `Source` of byte chunks (transports/sources.py).  Out: `MessageDelta`, `DeltaBatch`, `str`,
`Message`.  `stream_core.py` has the work between two reads; `DeltaStream` and `AsyncDeltaStream`
differ only in how they wait.

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
from typing import Self, TypeAlias, Unpack

from deltafold import data_types, excerpts
from deltafold._core import (
    NOTHING,
    AsyncStreamIterator,
    DeltaBatch,
    Encoder,
    MessageDelta,
    SourceGuard,
    StreamAwaitable,
    StreamIterator,
)
from deltafold.error_mapping import ErrorMapper
from deltafold.errors import ModelError
from deltafold.notebook import display_live, stream_html
from deltafold.stream_core import (
    NO_CALL,
    CallContext,
    CallerError,
    DecoderOptions,
    ForeignCall,
    Read,
    Status,
    StreamCore,
    finished,
    of_the_caller,
)
from deltafold.transports.draining import adrain, drain
from deltafold.transports.response_info import ResponseInfo
from deltafold.transports.responses import (
    async_source_of,
    dialect_of,
    plain_chunks,
    source_of,
    source_of_chunks,
)
from deltafold.transports.sources import AsyncSource, Source

Tee: TypeAlias = Callable[[bytes], object]
"""Receives the bytes of the body as they arrive, before they are decoded."""

AsyncTee: TypeAlias = Callable[[bytes], Awaitable[object] | None]
"""Like `Tee`; the result is awaited."""


class _Stream:
    """Members that both kinds of stream share."""

    __slots__ = ("__weakref__", "_core")

    _core: StreamCore

    def __repr__(self) -> str:
        return self._core.shown(type(self))

    def _repr_html_(self) -> str:
        """Return the message so far as a notebook shows it."""
        return stream_html(self)

    def _ipython_display_(self) -> None:
        """Show the message in a notebook, and again while the stream is read."""
        core = self._core
        core.display = display_live(self)
        if core.display is not None and not core.ended:
            core.divert()

    def _stepped(self, read: Read) -> DeltaBatch:
        """Decode and fold the outcome of a read, and show it where the stream is displayed."""
        batch = self._core.step(read)
        self._show()
        return batch

    def _cancel(self, message: str) -> None:
        self._core.cancel(message)
        self._show()

    def _show(self) -> None:
        if self._core.display is not None:
            self._core.display.update(self)

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
        return self._core.assembler.status

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
    def error(self) -> ModelError | None:
        """Error that ended the stream; None while it runs and after success."""
        return self._core.error()

    def ended_message(self) -> "data_types.Message":
        """Return the message of a stream that was read to its end.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has the parts received
                before.
            MisuseError: the stream has not ended yet.
        """
        return self._core.final_message()


class DeltaStream(_Stream):
    """A stream that is read by waiting for it.  Made by `stream()` and `Model.stream_sync()`.

    >>> with deltafold.stream(response) as stream:
    ...     for delta in stream:
    ...         ...
    ...     message = stream.final_message()

    The ways of reading share one position: what one has taken, another does not see again.
    """

    __slots__ = ("_guard", "_open", "_source", "_tee")

    _guard: SourceGuard | None

    def __init__(
        self,
        origin: Callable[[], Source] | Iterator[bytes],
        dialect: str,
        *,
        error_mapper: ErrorMapper | None = None,
        tee: Tee | None = None,
        call: CallContext | None = None,
        **options: Unpack[DecoderOptions],
    ) -> None:
        self._source: Source | None = None
        self._tee = tee
        core = self._core = StreamCore(dialect, error_mapper, options, call or NO_CALL)
        if tee is not None:
            core.give_chunks(tee)
        if excerpts.IS_WATCHED:
            core.keep_recent()
        if callable(origin):
            self._open = origin
        else:
            source = self._source = source_of_chunks(origin)
            core.watch_lines()
            core.attach(origin, closes=source is not None)
            if source is not None:
                self._guard = SourceGuard(core, source, type(self))

    def __iter__(self) -> Iterator[MessageDelta]:
        return StreamIterator.deltas(self._core, self)

    def batches(self) -> Iterator[DeltaBatch]:
        """Return an iterator over the deltas of each read, the cheapest way to see all of them."""
        return StreamIterator.batches(self._core, self)

    def text(self) -> Iterator[str]:
        """Return an iterator over the text of the answer as it arrives.

        Raises:
            ModelError: the stream ended in an error; all received text was yielded before.
        """
        return StreamIterator.texts(self._core, self)

    def final_message(self) -> "data_types.Message":
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has the parts received
                before.
        """
        core = self._core
        StreamIterator.read_to_end(core, self)
        return core.final_message()

    def close(self) -> None:
        """Release the connection and keep the received parts.

        A stream that has not ended becomes `cancelled`, and its connection is closed.
        """
        core = self._core
        if not core.settle():
            self._cancel("the stream was closed before its end")
        if self._source is not None:
            if core.busy:
                self._release()
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _begin(self) -> Iterator[bytes]:
        """Open the source."""
        if self._source is None:
            core = self._core
            observer = core.call.begin()
            if observer is not None:
                core.observed_by(observer)
            self._source = self._open()
            self._guard = SourceGuard(core, self._source, type(self))
            core.opened(self._source)
            if core.call.after_headers is not None:
                core.after_headers()
        return self._source.chunks

    def _received(self, chunk: bytes | None) -> DeltaBatch:
        """Handle the end of the body, or a chunk of a stream that needs attention."""
        if chunk is None:
            self._release()
        return self._stepped(chunk)

    def _teed(self, chunk: bytes, _: object) -> DeltaBatch:
        """Handle a chunk whose tee returned something, which nothing here waits for."""
        return self._stepped(chunk)

    def _tee_failed(self, raised: BaseException) -> DeltaBatch:
        """Handle an exception of the tee."""
        return self._failed(of_the_caller(raised))

    def _failed(self, failure: BaseException) -> DeltaBatch:
        """Handle an exception of a read: raise the caller's own, and fold one of the transport."""
        core = self._core
        if isinstance(failure, CallerError):
            core.cancel("the caller's own code raised")
            self._release()
            raise failure.__cause__ or failure from None
        if not isinstance(failure, Exception):
            core.cancel("reading was interrupted")
            self._release()
            raise failure
        misuse = core.misuse(failure)
        if misuse is failure:
            raise failure
        if misuse is not None:
            raise misuse from misuse.__cause__
        self._release()
        return self._stepped(failure)

    def _finish(self) -> None:
        """Read the rest of the body after the terminal event, to reuse the connection."""
        core, source = self._core, self._source
        if source is None or core.busy:
            return
        core.busy = True
        try:
            if core.has_rest:
                drain(source, self._tee)
        finally:
            core.busy = False
            self._release()

    def _release(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            self._core.detach()
            self._guard = None
            # A failure while the connection is released does not affect the received parts.
            try:  # noqa: SIM105 - contextlib.suppress costs as much as decoding an event
                source.close()
            except Exception:  # noqa: BLE001, S110 - as said
                pass


class AsyncDeltaStream(_Stream):
    """A stream that is read by awaiting it, under any event loop.

    `astream()` and `Model.stream()` make it.

    >>> async with model.stream("Hello") as stream:
    ...     async for delta in stream:
    ...         ...
    ...     message = await stream.final_message()

    The ways of reading share one position: what one has taken, another does not see again.
    """

    __slots__ = ("_guard", "_open", "_source", "_tee")

    _guard: SourceGuard | None

    def __init__(
        self,
        open_source: Callable[[], Awaitable[AsyncSource]],
        dialect: str,
        *,
        error_mapper: ErrorMapper | None = None,
        tee: AsyncTee | None = None,
        call: CallContext | None = None,
        **options: Unpack[DecoderOptions],
    ) -> None:
        self._source: AsyncSource | None = None
        self._open = open_source
        self._tee = tee
        self._core = StreamCore(dialect, error_mapper, options, call or NO_CALL)
        if tee is not None:
            self._core.give_chunks(tee)
        if excerpts.IS_WATCHED:
            self._core.keep_recent()

    def __aiter__(self) -> AsyncIterator[MessageDelta]:
        return AsyncStreamIterator.deltas(self._core, self)

    def __anext__(self) -> Coroutine[object, None, MessageDelta]:
        return StreamAwaitable.delta(self._core, self)

    def batches(self) -> AsyncIterator[DeltaBatch]:
        """Return an iterator over the deltas of each read, the cheapest way to see all of them."""
        return AsyncStreamIterator.batches(self._core, self)

    def text(self) -> AsyncIterator[str]:
        """Return an iterator over the text of the answer as it arrives.

        Raises:
            ModelError: the stream ended in an error; all received text was yielded before.
        """
        return AsyncStreamIterator.texts(self._core, self)

    def writes_to(self, encoder: Encoder) -> None:
        """Name the encoder that is fed with the deltas of this stream, by the same thread.

        This is a hint for processes with thousands of streams. While the HTTP client prepares the
        next chunk, the processor loads the memory of the encoder too, which other streams have
        displaced from its caches. Only the first encoder counts.

        >>> encoder = deltafold.Encoder("anthropic-messages")
        >>> async with model.stream("Hello") as stream:
        ...     stream.writes_to(encoder)
        ...     async for batch in stream.batches():
        ...         events = encoder.feed(batch)
        """
        self._core.fetch_with(encoder)

    async def final_message(self) -> "data_types.Message":
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has the parts received
                before.
        """
        core = self._core
        await StreamAwaitable.read_to_end(core, self)
        return core.final_message()

    async def aclose(self) -> None:
        """Release the connection and keep the received parts.

        A stream that has not ended becomes `cancelled`, and its connection is closed.
        """
        core = self._core
        if not core.settle():
            self._cancel("the stream was closed before its end")
        if self._source is None:
            return
        if core.busy:
            await self._release()
        finishing = self._finish()
        if finishing is not None:
            await finishing

    async def __aenter__(self) -> Self:
        return self

    def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> Awaitable[None]:
        if self._source is None and self._core.settle():
            return NOTHING
        return self.aclose()

    async def _begin(self) -> AsyncIterator[bytes]:
        """Open the source."""
        if self._source is None:
            core = self._core
            observer = core.call.begin()
            if observer is not None:
                core.observed_by(observer)
            self._source = await self._open()
            self._guard = SourceGuard(core, self._source, type(self))
            core.opened(self._source)
            if core.call.after_headers is not None:
                await finished(core.after_headers())
        return self._source.chunks

    async def _received(self, chunk: bytes | None) -> DeltaBatch:
        """Handle the end of the body, or a chunk of a stream that needs attention."""
        if chunk is None:
            await self._release()
        return self._stepped(chunk)

    async def _teed(self, chunk: bytes, waiting: object) -> DeltaBatch:
        """Handle a chunk whose tee returned something, which may have to be awaited."""
        try:
            await finished(waiting)
        except BaseException as exception:  # noqa: BLE001 - raised again
            return await self._failed(exception)
        return self._stepped(chunk)

    async def _tee_failed(self, raised: BaseException) -> DeltaBatch:
        """Handle an exception of the tee."""
        return await self._failed(of_the_caller(raised))

    async def _failed(self, failure: BaseException) -> DeltaBatch:
        """Handle an exception of a read: raise the caller's own, and fold one of the transport."""
        core = self._core
        if isinstance(failure, CallerError):
            core.cancel("the caller's own code raised")
            await self._release()
            raise failure.__cause__ or failure from None
        if not isinstance(failure, Exception):
            core.cancel("the task that read was cancelled")
            if not isinstance(failure, GeneratorExit):  # nobody waits any more
                await self._release()
            raise failure
        misuse = core.misuse(failure)
        if misuse is failure:
            raise failure
        if misuse is not None:
            raise misuse from misuse.__cause__
        await self._release()
        return self._stepped(failure)

    def _finish(self) -> Awaitable[None] | None:
        """Read the rest of the body after the terminal event, to reuse the connection.

        Return None if there is nothing to release.
        """
        core, source = self._core, self._source
        if source is None or core.busy:
            return None
        if self._is_released(source):
            return None
        if core.has_rest and source.over_connection:
            return self._drained(source)
        return self._release()

    async def _drained(self, source: AsyncSource) -> None:
        core = self._core
        core.busy = True
        try:
            await adrain(source, None if self._tee is None else self._tee_rest)
        except GeneratorExit:  # Nobody waits any more, so that nothing can be awaited.
            raise
        except BaseException:
            await self._release()
            raise
        finally:
            core.busy = False
        await self._release()

    async def _tee_rest(self, chunk: bytes) -> None:
        if self._tee is not None and isinstance(waiting := self._tee(chunk), Awaitable):
            await waiting

    def _forget(self) -> None:
        """Forget the source, which is closed or will be."""
        self._core.detach()
        self._source = self._guard = None

    def _is_released(self, source: AsyncSource) -> bool:
        """Return whether the client has released the connection; then forget the source."""
        if source.is_over is None or not source.is_over():
            return False
        self._forget()
        return True

    def _release(self) -> Awaitable[None]:
        source = self._source
        if source is None or self._is_released(source):
            return NOTHING
        self._forget()
        return _closed(source)


async def _closed(source: AsyncSource) -> None:
    # A failure while the connection is released does not affect the received parts.
    try:  # noqa: SIM105 - as above
        await source.close()
    except Exception:  # noqa: BLE001, S110 - as said
        pass


def stream(
    response: object,
    dialect: str | None = None,
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
            response of httpx, httpx2 or requests, bytes, or any iterable of bytes.
        dialect: the wire protocol; None takes it from an SDK's response.
        error_mapper: maps the failures of the transport; None is the default table.
        tee: receives the bytes of the body as they arrive, before they are decoded; a gateway
            forwards them.
        options: the options of `Decoder`; status and headers come from the response unless given.

    Raises:
        UnknownDialectError: the dialect is not known, or was not given and the response does not
            determine it.
        MisuseError: the response can only be awaited.
    """
    chunks = None if dialect is None or "status" in options else plain_chunks(response)
    if dialect is not None and chunks is not None:
        return DeltaStream(chunks, dialect, error_mapper=error_mapper, tee=tee, **options)
    source = source_of(response)

    def opened() -> Source:
        return source

    named, call = dialect or dialect_of(response), ForeignCall(response)
    return DeltaStream(opened, named, error_mapper=error_mapper, tee=tee, call=call, **options)


def astream(
    response: object,
    dialect: str | None = None,
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

    async def opened() -> AsyncSource:
        return source

    named, call = dialect or dialect_of(response), ForeignCall(response)
    return AsyncDeltaStream(opened, named, error_mapper=error_mapper, tee=tee, call=call, **options)
