"""Streams: bytes of a response in, deltas, text and the final message out.

In: a `Source` of byte chunks (transports/sources.py).  Out: `MessageDelta`, `DeltaBatch`, `str`,
`Message`.  `stream_core.py` holds all that happens between two reads; `DeltaStream` and
`AsyncDeltaStream` add only how one waits.

Laws:
- Pull only: nothing is read before it is asked for, and at most one transport chunk ahead.
- Iterating never raises for a failure of the provider or the network: it yields start, the error,
  and ends. `text()` and `final_message()` raise `ModelError`.  A caller's mistake raises where it
  is made.
- The terminal delta is handed out at once.  The step after it, or closing, reads the rest of the
  body within bounds (transports/draining.py), so that the connection serves the next call.
- Closing keeps what came; before the end it counts as `cancelled`.  Cancellation is folded in and
  raised again.
"""

import contextlib
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Self, TypeAlias, TypeVar, Unpack

from deltafold._core import DeltaBatch, MessageDelta
from deltafold.contract import Usage
from deltafold.cost import CostSource
from deltafold.error_mapping import ErrorMapper
from deltafold.errors import ModelError
from deltafold.messages import Message
from deltafold.stream_core import (
    CallContext,
    CallerError,
    DecoderOptions,
    Read,
    Status,
    StreamCore,
    text_of,
)
from deltafold.timing import Timing
from deltafold.transports.draining import adrain, drain
from deltafold.transports.response_info import ResponseInfo
from deltafold.transports.responses import async_source_of, dialect_of, http_response, source_of
from deltafold.transports.secrets import Redactor, secrets_of_response
from deltafold.transports.sources import AsyncSource, Source

Tee: TypeAlias = Callable[[bytes], object]
"""Gets the body's bytes as they come, before they are decoded."""

AsyncTee: TypeAlias = Callable[[bytes], Awaitable[object] | None]
"""As `Tee`; what it returns is awaited."""


class _Stream:
    """What both kinds of stream show of themselves."""

    __slots__ = ("__weakref__", "_core")

    def __init__(self, core: StreamCore) -> None:
        self._core = core

    def __repr__(self) -> str:
        core = self._core
        return f"<{type(self).__name__} {core.decoder.dialect} {core.assembler.status}>"

    def snapshot(self) -> Message:
        """Return the message as far as it has come; readable at any time, also after closing."""
        return self._core.assembler.snapshot()

    @property
    def usage(self) -> Usage | None:
        """The usage record in force, None before the first one."""
        return self._core.assembler.usage

    @property
    def status(self) -> Status:
        """Where the stream stands: idle, started, done or error."""
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
    def timing(self) -> Timing:
        """How fast it is so far, in seconds."""
        return self._core.timing

    @property
    def cost_usd(self) -> float | None:
        """What it has cost so far, in US dollars; None where that is not known."""
        return self._core.cost.usd

    @property
    def cost_source(self) -> CostSource | None:
        """Who says what it cost: the provider, or the price list of genai-prices."""
        return self._core.cost.source

    @property
    def error(self) -> ModelError | None:
        """What ended the stream; None while it runs, and when it ended well."""
        return self._core.error()

    def ended_message(self) -> Message:
        """Return the message of a stream that was read to its end.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has what came before.
            MisuseError: it has not ended yet.
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

    __slots__ = ("_open", "_source", "_tee")

    def __init__(
        self,
        open_source: Callable[[], Source],
        dialect: str,
        *,
        error_mapper: ErrorMapper | None = None,
        tee: Tee | None = None,
        call: CallContext | None = None,
        **options: Unpack[DecoderOptions],
    ) -> None:
        self._source: Source | None = None
        self._open = open_source
        self._tee = tee
        super().__init__(StreamCore(dialect, error_mapper, options, call))

    def __iter__(self) -> Iterator[MessageDelta]:
        core = self._core
        yield from core.pending
        while (batch := self._next_batch()) is not None:
            core.pending = iter(batch)
            yield from core.pending

    def batches(self) -> Iterator[DeltaBatch]:
        """Yield the deltas of each read together, the cheapest way to see all of them."""
        while (batch := self._next_batch()) is not None:
            yield batch

    def text(self) -> Iterator[str]:
        """Yield the answer's text as it comes.

        Raises:
            ModelError: the stream ended in an error, after all text that came was yielded.
        """
        yield from text_of(self._core.pending)
        while (batch := self._next_batch()) is not None:
            if text := batch.text:
                yield text
        self._core.final_message()

    def final_message(self) -> Message:
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has what came before.
        """
        core = self._core
        while not core.ended:
            core.step_into(self._read())
        self._finish()
        return core.final_message()

    def close(self) -> None:
        """Give the connection back and keep what came.

        A stream that had not ended is `cancelled`, and its connection is closed.
        """
        self._core.cancel("the stream was closed before its end")
        self._core.pending = iter(())
        if self._core.busy:
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

    def __del__(self) -> None:
        if getattr(self, "_source", None) is not None:
            warnings.warn(
                f"abandoned {self!r}: close it", ResourceWarning, stacklevel=2, source=self
            )
            self._release()

    def _next_batch(self) -> DeltaBatch | None:
        core = self._core
        while not core.ended:
            batch = core.step(self._read())
            if len(batch):
                return batch
        self._finish()
        return None

    def _read(self) -> Read:
        core = self._core
        core.begin_read()
        try:
            if self._source is None:
                core.begin_request()
                self._source = self._open()
                core.opened(self._source)
                core.after_headers()
            chunk = next(self._source.chunks, None)
            if chunk is None:
                self._release()
            elif self._tee is not None:
                _call(self._tee, chunk)
            return chunk  # noqa: TRY300 - an `else` would leave the guard against the caller's errors
        except CallerError as carried:
            core.cancel("the caller's own code raised")
            self._release()
            raise carried.__cause__ or carried from None
        except Exception as exception:
            misuse = core.misuse(exception)
            if misuse is exception:
                raise
            if misuse is not None:
                raise misuse from misuse.__cause__
            self._release()
            return exception
        except BaseException:
            core.cancel("reading was interrupted")
            self._release()
            raise
        finally:
            core.busy = False

    def _finish(self) -> None:
        """Read out what follows the terminal event, so that the connection serves again."""
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
            # A connection that fails while it is given up takes nothing from what was received.
            with contextlib.suppress(Exception):
                source.close()


class AsyncDeltaStream(_Stream):
    """A stream that is read by awaiting it, under any event loop.

    `astream()` and `Model.stream()` make it.

    >>> async with model.stream("Hello") as stream:
    ...     async for delta in stream:
    ...         ...
    ...     message = await stream.final_message()

    The ways of reading share one position: what one has taken, another does not see again.
    """

    __slots__ = ("_open", "_source", "_tee")

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
        super().__init__(StreamCore(dialect, error_mapper, options, call))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> MessageDelta:
        # Not an async generator: one that is left early would wait for the event loop to close it.
        core = self._core
        while (delta := next(core.pending, None)) is None:
            batch = await self._next_batch()
            if batch is None:
                raise StopAsyncIteration
            core.pending = iter(batch)
        return delta

    def batches(self) -> AsyncIterator[DeltaBatch]:
        """Yield the deltas of each read together, the cheapest way to see all of them."""
        return _Batches(self._next_batch)

    def text(self) -> AsyncIterator[str]:
        """Yield the answer's text as it comes.

        Raises:
            ModelError: the stream ended in an error, after all text that came was yielded.
        """
        return _Texts(self._core, self._next_batch)

    async def final_message(self) -> Message:
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has what came before.
        """
        core = self._core
        while not core.ended:
            core.step_into(await self._read())
        await self._finish()
        return core.final_message()

    async def aclose(self) -> None:
        """Give the connection back and keep what came.

        A stream that had not ended is `cancelled`, and its connection is closed.
        """
        self._core.cancel("the stream was closed before its end")
        self._core.pending = iter(())
        if self._core.busy:
            await self._release()
        await self._finish()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if getattr(self, "_source", None) is not None:
            warnings.warn(
                f"abandoned {self!r}: aclose it", ResourceWarning, stacklevel=2, source=self
            )

    async def _next_batch(self) -> DeltaBatch | None:
        core = self._core
        while not core.ended:
            batch = core.step(await self._read())
            if len(batch):
                return batch
        await self._finish()
        return None

    async def _read(self) -> Read:
        core = self._core
        core.begin_read()
        try:
            if self._source is None:
                core.begin_request()
                self._source = await self._open()
                core.opened(self._source)
                await _finished(core.after_headers())
            try:
                chunk = await self._source.chunks.__anext__()
            except StopAsyncIteration:
                await self._release()
                return None
            if self._tee is not None:
                await _finished(_call(self._tee, chunk))
            return chunk  # noqa: TRY300 - an `else` would leave the guard against the caller's errors
        except CallerError as carried:
            core.cancel("the caller's own code raised")
            await self._release()
            raise carried.__cause__ or carried from None
        except Exception as exception:
            misuse = core.misuse(exception)
            if misuse is exception:
                raise
            if misuse is not None:
                raise misuse from misuse.__cause__
            await self._release()
            return exception
        except GeneratorExit:  # Nobody waits any more, so that nothing can be awaited.
            core.cancel("the task that read was given up")
            raise
        except BaseException:
            core.cancel("the task that read was cancelled")
            await self._release()
            raise
        finally:
            core.busy = False

    async def _finish(self) -> None:
        """Read out what follows the terminal event, so that the connection serves again."""
        core, source = self._core, self._source
        if source is None or core.busy:
            return
        core.busy = True
        try:
            if core.has_rest:
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

    async def _release(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            # A connection that fails while it is given up takes nothing from what was received.
            with contextlib.suppress(Exception):
                await source.close()


class _Batches:
    """The batches of an `AsyncDeltaStream`."""

    __slots__ = ("_next_batch",)

    def __init__(self, next_batch: Callable[[], Awaitable[DeltaBatch | None]]) -> None:
        self._next_batch = next_batch

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> DeltaBatch:
        batch = await self._next_batch()
        if batch is None:
            raise StopAsyncIteration
        return batch


class _Texts:
    """The text of an `AsyncDeltaStream`."""

    __slots__ = ("_core", "_next_batch")

    def __init__(
        self, core: StreamCore, next_batch: Callable[[], Awaitable[DeltaBatch | None]]
    ) -> None:
        self._core = core
        self._next_batch = next_batch

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        for text in text_of(self._core.pending):
            return text
        while (batch := await self._next_batch()) is not None:
            if text := batch.text:
                return text
        self._core.final_message()
        raise StopAsyncIteration


_T = TypeVar("_T")


def _call(function: Callable[[bytes], _T], chunk: bytes) -> _T:
    """Call the caller's own code; what it raises is the caller's, no failure of the transport."""
    try:
        return function(chunk)
    except Exception as exception:
        raise CallerError from exception


async def _finished(result: object) -> None:
    """Await what the caller's own code returned, where it is to be awaited."""
    if isinstance(result, Awaitable):
        try:
            await result
        except Exception as exception:
            raise CallerError from exception


def stream(
    response: object,
    dialect: str | None = None,
    *,
    error_mapper: ErrorMapper | None = None,
    tee: Tee | None = None,
    **options: Unpack[DecoderOptions],
) -> DeltaStream:
    """Read a response that somebody else has opened.

    Args:
        response: openai's or anthropic's `with_streaming_response` or raw response or `Stream`, a
            response of httpx, httpx2 or requests, bytes, or any iterable of bytes.
        dialect: the wire protocol; None takes it from an SDK's response.
        error_mapper: names the failures of the transport; None is the default table.
        tee: gets the body's bytes as they come, untouched, before they are decoded: a gateway
            forwards them.
        options: the options of `Decoder`; status and headers come from the response unless given.

    Raises:
        UnknownDialectError: the dialect is not known, or was not given and the response does not
            tell.
        MisuseError: the response can only be awaited.
    """
    source = source_of(response)

    def opened() -> Source:
        return source

    named, call = dialect or dialect_of(response), _call_of(response)
    return DeltaStream(opened, named, error_mapper=error_mapper, tee=tee, call=call, **options)


def astream(
    response: object,
    dialect: str | None = None,
    *,
    error_mapper: ErrorMapper | None = None,
    tee: AsyncTee | None = None,
    **options: Unpack[DecoderOptions],
) -> AsyncDeltaStream:
    """Await a response that somebody else has opened; what `stream()` is for asynchronous code."""
    source = async_source_of(response)

    async def opened() -> AsyncSource:
        return source

    named, call = dialect or dialect_of(response), _call_of(response)
    return AsyncDeltaStream(opened, named, error_mapper=error_mapper, tee=tee, call=call, **options)


def _call_of(response: object) -> CallContext:
    """Say what is known of a call that somebody else has made: the secrets of its request."""
    return CallContext(redactor=lambda: Redactor(secrets_of_response(http_response(response))))
