"""Streams: bytes of a response in, deltas, text and the final message out.

In: a `Source` of byte chunks (models/transport.py), or bytes that the caller feeds.  Out:
`MessageDelta`, `DeltaBatch`, `str`, `Message`.  `stream_core.py` holds all that happens between two
reads; `DeltaStream` and `AsyncDeltaStream` add only how one waits.

Laws:
- Pull only: nothing is read before it is asked for, and at most one transport chunk ahead.
- Iterating never raises for a failure of the provider or the network: it yields start, the error,
  and ends. `text()` and `final_message()` raise `ModelError`.  A caller's mistake raises where it
  is made.
- Closing keeps what came; before the end it counts as `cancelled`.  Cancellation is folded in and
  raised again.
"""

import contextlib
import warnings
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
)
from types import TracebackType
from typing import Self, Unpack

from deltafold._core import Decoder, DeltaBatch, MessageAssembler, MessageDelta, fold_bodies
from deltafold.contract import Usage
from deltafold.errors import ErrorMapper
from deltafold.messages import Message
from deltafold.models.transport import (
    AsyncSource,
    Source,
    async_source_of,
    dialect_of,
    source_of,
)
from deltafold.stream_core import (
    DecoderOptions,
    Read,
    Status,
    StreamCore,
    is_misuse,
    text_of,
)


class Fold:
    """Decoder and assembler in one, for a caller who owns the bytes.

    >>> fold = Fold("openai-chat")
    >>> for chunk in chunks:
    ...     fold.feed(chunk)
    >>> fold.close()
    >>> fold.message.text

    Args:
        dialect: the wire protocol of the bytes, one of `deltafold.dialect_names()`.
        options: the options of `Decoder`.

    Raises:
        UnknownDialectError: there is no such dialect.
    """

    __slots__ = ("_assembler", "_decoder")

    def __init__(self, dialect: str, **options: Unpack[DecoderOptions]) -> None:
        self._decoder = Decoder(dialect, **options)
        self._assembler = MessageAssembler(self._decoder.run_id)

    def feed(self, data: bytes | bytearray | memoryview, /) -> int:
        """Fold the next bytes of the body, in any chunking; returns how many deltas they completed.

        Raises:
            MisuseError: called after `close()`, or by two threads at once.
        """
        return self._decoder.feed_into(self._assembler, data)

    def close(self) -> int:
        """Say that the body has ended; returns how many deltas that completed."""
        return self._decoder.close_into(self._assembler)

    def snapshot(self) -> Message:
        """Return the message as far as it has come; an empty one before the first delta."""
        return self._assembler.snapshot()

    @property
    def message(self) -> Message:
        """The final message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has what came before.
            MisuseError: the stream has not ended yet.
        """
        return self._assembler.build_final_message()

    @property
    def text(self) -> str:
        """All text of the answer so far."""
        return self._assembler.text

    @property
    def usage(self) -> Usage | None:
        """The usage record in force, None before the first one."""
        return self._assembler.usage

    @property
    def status(self) -> Status:
        """Where the stream stands: idle, started, done or error."""
        return self._assembler.status

    @property
    def assembler(self) -> MessageAssembler:
        """The assembler itself: parts, tool calls, error."""
        return self._assembler


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


class DeltaStream(_Stream):
    """A stream that is read by waiting for it.  Made by `stream()` and `Model.stream_sync()`.

    >>> with deltafold.stream(response) as stream:
    ...     for delta in stream:
    ...         ...
    ...     message = stream.final_message()

    The ways of reading share one position: what one has taken, another does not see again.
    """

    __slots__ = ("_open", "_source")

    def __init__(
        self,
        open_source: Callable[[], Source],
        dialect: str,
        *,
        error_mapper: ErrorMapper | None = None,
        **options: Unpack[DecoderOptions],
    ) -> None:
        self._source: Source | None = None
        self._open = open_source
        super().__init__(StreamCore(dialect, error_mapper, options))

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
        self._core.assembler.build_final_message()

    def final_message(self) -> Message:
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has what came before.
        """
        core = self._core
        while not core.ended:
            core.step_into(self._read())
            self._release_at_end()
        return core.assembler.build_final_message()

    def close(self) -> None:
        """Close the connection and keep what came; a stream that had not ended is `cancelled`."""
        self._core.cancel("the stream was closed before its end")
        self._core.pending = iter(())
        self._release_at_end()

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
            self._release_at_end()
            if len(batch):
                return batch
        return None

    def _read(self) -> Read:
        core = self._core
        core.begin_read()
        try:
            if self._source is None:
                self._source = self._open()
                core.opened(self._source)
            return next(self._source.chunks, None)
        except Exception as exception:
            if is_misuse(exception):
                raise
            return exception
        except BaseException:
            core.cancel("reading was interrupted")
            raise
        finally:
            core.busy = False

    def _release_at_end(self) -> None:
        if self._core.ended:
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

    __slots__ = ("_open", "_source")

    def __init__(
        self,
        open_source: Callable[[], Awaitable[AsyncSource]],
        dialect: str,
        *,
        error_mapper: ErrorMapper | None = None,
        **options: Unpack[DecoderOptions],
    ) -> None:
        self._source: AsyncSource | None = None
        self._open = open_source
        super().__init__(StreamCore(dialect, error_mapper, options))

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
            await self._release_at_end()
        return core.assembler.build_final_message()

    async def aclose(self) -> None:
        """Close the connection and keep what came; a stream that had not ended is `cancelled`."""
        self._core.cancel("the stream was closed before its end")
        self._core.pending = iter(())
        await self._release_at_end()

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
            await self._release_at_end()
            if len(batch):
                return batch
        return None

    async def _read(self) -> Read:
        core = self._core
        core.begin_read()
        try:
            if self._source is None:
                self._source = await self._open()
                core.opened(self._source)
            return await anext(self._source.chunks, None)
        except Exception as exception:
            if is_misuse(exception):
                raise
            return exception
        except BaseException:
            core.cancel("the task that read was cancelled")
            raise
        finally:
            core.busy = False

    async def _release_at_end(self) -> None:
        source, ended = self._source, self._core.ended
        if ended and source is not None:
            self._source = None
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
        self._core.assembler.build_final_message()
        raise StopAsyncIteration


def stream(
    response: object,
    dialect: str | None = None,
    *,
    error_mapper: ErrorMapper | None = None,
    **options: Unpack[DecoderOptions],
) -> DeltaStream:
    """Read a response that somebody else has opened.

    Args:
        response: openai's or anthropic's `with_streaming_response` or raw response or `Stream`, a
            response of httpx, httpx2 or requests, bytes, or any iterable of bytes.
        dialect: the wire protocol; None takes it from an SDK's response.
        error_mapper: names the failures of the transport; None is the default table.
        options: the options of `Decoder`; status and headers come from the response unless given.

    Raises:
        UnknownDialectError: the dialect is not known, or was not given and the response does not
            tell.
        MisuseError: the response can only be awaited.
    """
    source = source_of(response)

    def opened() -> Source:
        return source

    return DeltaStream(
        opened, dialect or dialect_of(response), error_mapper=error_mapper, **options
    )


def astream(
    response: object,
    dialect: str | None = None,
    *,
    error_mapper: ErrorMapper | None = None,
    **options: Unpack[DecoderOptions],
) -> AsyncDeltaStream:
    """Await a response that somebody else has opened; what `stream()` is for asynchronous code."""
    source = async_source_of(response)

    async def opened() -> AsyncSource:
        return source

    return AsyncDeltaStream(
        opened, dialect or dialect_of(response), error_mapper=error_mapper, **options
    )


def fold(
    body: bytes | bytearray | memoryview | Iterable[bytes],
    dialect: str,
    **options: Unpack[DecoderOptions],
) -> Message:
    """Fold a whole body, or its chunks, into the message.

    A body in one piece is folded with the GIL released.

    >>> deltafold.fold(body, "anthropic-messages").text

    Raises:
        ModelError: the stream ended in an error; `partial_message` has what came before.
        UnknownDialectError: there is no such dialect.
    """
    if isinstance(body, bytes | bytearray | memoryview):
        return fold_many([bytes(body)], dialect, threads=1, **options)[0].build_final_message()
    with stream(body, dialect, **options) as opened:
        return opened.final_message()


def fold_many(
    bodies: Iterable[bytes | bytearray | memoryview],
    dialect: str,
    threads: int | None = None,
    **options: Unpack[DecoderOptions],
) -> list[MessageAssembler]:
    """Fold many whole bodies at once, on all cores, with the GIL released.

    Returns one assembler a body, in their order; each makes its message when asked for it, and
    shows a failed one in `error`. A `run_id` that is given is that of all; without one each body
    has its own.

    >>> folded = deltafold.fold_many(bodies, "openai-chat")
    >>> [one.text for one in folded if one.error is None]

    Args:
        bodies: the response bodies.
        dialect: the wire protocol of all of them.
        threads: how many threads; as many as there are cores when not given.
        options: the options of `Decoder`.

    Raises:
        UnknownDialectError: there is no such dialect.
        ValueError: `threads` is 0.
    """
    decoder = Decoder(dialect, **options)
    one_run = options.get("run_id") is not None
    whole = [bytes(body) for body in bodies]  # `bytes` of bytes is the same object
    return fold_bodies(decoder, whole, one_run=one_run, threads=threads)


async def afold(
    chunks: bytes | bytearray | memoryview | AsyncIterable[bytes] | Iterable[bytes],
    dialect: str,
    **options: Unpack[DecoderOptions],
) -> Message:
    """Fold a whole body, or its chunks as they come, into the message; raises as `fold()` does."""
    async with astream(chunks, dialect, **options) as opened:
        return await opened.final_message()
