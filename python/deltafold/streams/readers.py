"""Readers of a stream: its source, and the two loops, one that waits and one that awaits.

In: what opens a `Source` or an `AsyncSource` (transports/sources.py).  Out: what a step of the
cursor makes of each read; the end of the source.

Laws:
- Pull only: nothing is read before it is requested, and at most one transport chunk ahead.
- The terminal delta is returned at once.  The next step, or closing, reads the rest of the body
  within bounds (transports/draining.py), so that the connection can be used again.
- Observers see each chunk before it is decoded.  A stream without them pays one look for them.
- A loop that is left early leaves no generator that has to be awaited.
"""

import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Generic, NoReturn, Self, TypeAlias, TypeVar, cast

from deltafold._core import OVER, DeltaBatch
from deltafold.errors.mapper import ErrorMapper
from deltafold.message import data_types
from deltafold.message.notebook import display_live
from deltafold.streams import excerpts
from deltafold.streams.core import (
    NO_CALL,
    CallContext,
    Read,
    Step,
    StreamCore,
)
from deltafold.streams.mistakes import CallerError, finished
from deltafold.streams.options import DecoderOptions
from deltafold.transports.drain import adrain, drain
from deltafold.transports.responses import source_of_chunks
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.unready import LineWatch

if TYPE_CHECKING:
    from deltafold.transports.timeouts import AsyncTimedChunks, TaskWatch

T = TypeVar("T")
SourceT = TypeVar("SourceT", Source, AsyncSource)

Tee: TypeAlias = Callable[[bytes], object]
"""Receives the bytes of the body as they arrive, before they are decoded."""

AsyncTee: TypeAlias = Callable[[bytes], Awaitable[object] | None]
"""Like `Tee`; the result is awaited."""


class _Reader(StreamCore, Generic[SourceT]):
    """Members that both kinds of reader share.

    Attributes:
        kind: the class of the stream, as a warning names it.
        closing: the method that closes the stream.
        source: the open source; None before it is opened, and after its release.
        observers: see each chunk before it is decoded.
        is_watched: whether some chunks need more than a step.
        is_finishing: whether the rest of the body is being read.
    """

    __slots__ = ("__weakref__", "is_finishing", "is_watched", "observers", "source")

    kind: ClassVar[str]
    closing: ClassVar[str]

    source: SourceT | None

    def __init__(
        self,
        dialect: "data_types.ProtocolName | None",
        error_mapper: ErrorMapper | None,
        options: DecoderOptions,
        call: CallContext | None,
    ) -> None:
        self.source = None
        super().__init__(dialect, error_mapper, options, call or NO_CALL)
        self.observers: list[Callable[[bytes], object]] = []
        if excerpts.IS_WATCHED:
            self.recent = excerpts.RecentBytes()
            self.observers.append(self.recent)
        self.is_watched = bool(self.observers)
        self.is_finishing = False

    def __del__(self) -> None:
        """Warn of a stream that was read, and dropped before it was closed."""
        source = self.source
        if source is None or not self.cursor.started:
            return
        try:
            message = f"abandoned {self!r}: {self.closing} it"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)
        finally:
            if isinstance(source, Source):
                with suppress(Exception):
                    source.close()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.dialect} {self.status}>"

    def show(self) -> None:
        """Show the message in a notebook, and again while the stream is read."""
        self.display = display_live(self)
        self.is_watched = self.is_watched or self.display is not None

    def stepped(self, read: Read) -> DeltaBatch:
        """Decode and fold the outcome of a read, and show it where the stream is displayed."""
        batch = self.step(read)
        if self.display is not None:
            self.display.update(self)
        return batch

    def left(self) -> bool:
        """Give the stream up unless it has ended, and return whether the source is open."""
        if not self.settle():
            self.cancel("the stream was closed before its end")
            if self.display is not None:
                self.display.update(self)
        return self.source is not None

    @property
    def is_busy(self) -> bool:
        """True while the source is being read."""
        return self.cursor.reading or self.is_finishing

    def _watch(self, observer: Callable[[bytes], object]) -> None:
        self.observers.append(observer)
        self.is_watched = True

    def _take(self, source: Source | AsyncSource) -> None:
        """Take the status and the headers of a source."""
        self.opened(source)
        if source.lines:
            self._watch(LineWatch())
        if self.is_diverted:
            self.is_watched = True

    def _absorbed(self, chunk: bytes, step: Step[T]) -> T | None:
        """Handle a chunk that the observers have seen, and forget those that have seen enough."""
        if self.is_diverted:
            return step(self.stepped(chunk))
        self.observers = [
            one for one in self.observers if not (isinstance(one, LineWatch) and one.is_over)
        ]
        self.is_watched = bool(self.observers)
        return step(chunk)


def _raise(raises: BaseException, raised: BaseException) -> NoReturn:
    """Raise an exception in the place of another one, or of itself."""
    try:
        if raises is raised:
            raise raised
        raise raises from raises.__cause__
    finally:
        del raises, raised  # their tracebacks hold this frame


class Reader(_Reader[Source]):
    """Reader that waits.

    Args:
        origin: opens the source, or is the chunks themselves.
        dialect: the wire protocol; None if the first events tell it.
        error_mapper: maps failures of the transport.
        tee: receives the bytes.
        call: the call of the stream.
        options: the options of `Decoder`.
    """

    __slots__ = ("_chunks", "_open", "_tee")

    kind = "DeltaStream"
    closing = "close"

    def __init__(
        self,
        origin: Callable[[], Source] | Iterator[bytes],
        dialect: "data_types.ProtocolName | None",
        *,
        error_mapper: ErrorMapper | None,
        tee: Tee | None,
        call: CallContext | None,
        options: DecoderOptions,
    ) -> None:
        super().__init__(dialect, error_mapper, options, call)
        self._tee = tee
        self._chunks: Iterator[bytes] | None = None
        if callable(origin):
            self._open = origin
        else:
            self.is_attached = True
            self._chunks = origin
            self.source = source_of_chunks(origin)
            self._watch(LineWatch())
        if tee is not None:
            self._watch(self._teed)

    def values(self, step: Step[T]) -> Iterator[T]:
        """Yield what a step makes of each read; this is the loop that waits."""
        value = step()
        while value is None or value is not OVER or (value := self.over(step)) is not None:
            if value is not None:
                yield value
                value = step()
                continue
            decoding = outside = False
            try:
                for chunk in self._begun() if self._chunks is None else self._chunks:
                    if self.is_watched:
                        value = self._watched(chunk, step)
                    else:
                        decoding = True
                        value = step(chunk)
                        decoding = False
                    while value is not None and value is not OVER:
                        outside = True
                        yield value
                        value = step()
                        outside = False
                    if value is OVER:
                        break
                else:
                    self._release()
                    value = step(self.stepped(None))
            except BaseException as raised:
                if outside:
                    raise
                value = self._raised(raised, step, decoding=decoding)
        self._finish()

    def texts(self) -> Iterator[str]:
        """Yield the text of each read, and raise the error that ended the stream."""
        yield from self.values(self.cursor.texts)
        self.raise_failure()

    def read_to_end(self) -> None:
        """Fold the stream to its end."""
        values: Iterator[object] = self.values(self.cursor.fold)
        for _ in values:
            pass

    def close(self) -> None:
        """Release the connection; a stream that has not ended becomes `cancelled`."""
        if self.left():
            if self.is_busy:
                self._release()
            self._finish()

    def _begun(self) -> Iterator[bytes]:
        """Open the source."""
        observer = self.call.begin()
        if observer is not None:
            self.observed_by(observer)
        source = self.source = self._open()
        self._take(source)
        if self.call.after_headers is not None:
            self.after_headers()
        self._chunks = source.chunks
        return source.chunks

    def _teed(self, chunk: bytes) -> None:
        """Give a chunk to the tee, and ignore the result."""
        if self._tee is not None:
            try:
                self._tee(chunk)
            except Exception as raised:
                raise CallerError from raised

    def _watched(self, chunk: bytes, step: Step[T]) -> T | None:
        """Handle a chunk that needs more than a step."""
        for observe in self.observers:
            observe(chunk)
        return self._absorbed(chunk, step)

    def _raised(self, raised: BaseException, step: Step[T], *, decoding: bool) -> T | None:
        """Handle an exception of a read: raise the caller's own, and fold one of the transport."""
        raises = failure = None
        try:
            raises, releases, failure = self.verdict(raised, decoding=decoding)
            if releases:
                self._release()
            if raises is not None:
                _raise(raises, raised)
            return step(self.stepped(failure))
        finally:
            self.cursor.leave()
            del raised, raises, failure  # their tracebacks hold this frame

    def _finish(self) -> None:
        """Read the rest of the body after the terminal event, to reuse the connection."""
        source = self.source
        if source is None or self.is_busy:
            return
        self.is_finishing = True
        try:
            if self.has_rest:
                drain(source, self._tee)
        finally:
            self.is_finishing = False
            self._release()

    def _release(self) -> None:
        source, self.source = self.source, None
        if source is not None:
            # A failure while the connection is released does not affect the received parts.
            try:  # noqa: SIM105 - contextlib.suppress costs as much as decoding an event
                source.close()
            except Exception:  # noqa: BLE001, S110 - as said
                pass


class AsyncReader(_Reader[AsyncSource]):
    """Reader that awaits, under any event loop; the arguments are those of `Reader`.

    Attributes:
        following: reads the next chunk of the open source.
        timed: chunks whose limit the loop applies itself; None for others.
        watch: ends the waits for these chunks.
    """

    __slots__ = ("_open", "_tee", "following", "timed", "watch")

    kind = "AsyncDeltaStream"
    closing = "aclose"
    interruption = "the task that read was cancelled"

    def __init__(
        self,
        open_source: Callable[[], Awaitable[AsyncSource]],
        dialect: "data_types.ProtocolName | None",
        *,
        error_mapper: ErrorMapper | None,
        tee: AsyncTee | None,
        call: CallContext | None,
        options: DecoderOptions,
    ) -> None:
        super().__init__(dialect, error_mapper, options, call)
        self._open = open_source
        self._tee = tee
        self.following: Callable[[], Awaitable[bytes]] | None = None
        self.timed: AsyncTimedChunks | None = None
        self.watch: TaskWatch | None = None
        self.is_watched = self.is_watched or tee is not None

    async def read_to_end(self) -> None:
        """Fold the stream to its end."""
        with suppress(StopAsyncIteration):
            await AwaitedValues(self, self.cursor.fold).__anext__()

    async def close(self) -> None:
        """Release the connection; a stream that has not ended becomes `cancelled`."""
        if self.left():
            if self.is_busy:
                await self._release()
            await self.finish()

    async def begun(self) -> Callable[[], Awaitable[bytes]]:
        """Open the source, and return what reads its next chunk."""
        observer = self.call.begin()
        if observer is not None:
            self.observed_by(observer)
        source = self.source = await self._open()
        self._take(source)
        if self.call.after_headers is not None:
            await finished(self.after_headers())
        chunks = source.chunks
        # The module of the class imports asyncio, which synchronous programs do not need.
        self.watch = getattr(chunks, "own_watch", None)
        if self.watch is not None:
            self.timed = cast("AsyncTimedChunks", chunks)
        following = self.following = chunks.__anext__
        return following

    async def watched(self, chunk: bytes, step: Step[T]) -> T | None:
        """Handle a chunk that needs more than a step."""
        for observe in self.observers:
            observe(chunk)
        if self._tee is not None:
            try:
                waiting = self._tee(chunk)
            except Exception as raised:
                raise CallerError from raised
            if waiting is not None:
                await finished(waiting)
        value = self._absorbed(chunk, step)
        self.is_watched = self.is_watched or self._tee is not None
        return value

    async def raised(self, raised: BaseException, step: Step[T], *, decoding: bool) -> T | None:
        """Handle an exception of a read: raise the caller's own, and fold one of the transport."""
        if self.timed is not None and not decoding:
            raised = self.timed.failure(raised)
        raises = failure = None
        try:
            if isinstance(raised, StopAsyncIteration) and not decoding:
                await self._release()
                return step(self.stepped(None))
            raises, releases, failure = self.verdict(raised, decoding=decoding)
            if releases:
                await self._release()
            if raises is not None:
                _raise(raises, raised)
            return step(self.stepped(failure))
        finally:
            self.cursor.leave()
            del raised, raises, failure  # their tracebacks hold this frame

    async def finish(self) -> None:
        """Read the rest of the body after the terminal event, to reuse the connection."""
        source = self.source
        if source is None or self.is_busy or self._is_released(source):
            return
        if self.has_rest and source.over_connection:
            await self._drained(source)
        else:
            await self._release()

    async def _drained(self, source: AsyncSource) -> None:
        self.is_finishing = True
        try:
            await adrain(source, None if self._tee is None else self._tee_rest)
        except GeneratorExit:  # Nobody waits any more, so that nothing can be awaited.
            raise
        except BaseException:
            await self._release()
            raise
        finally:
            self.is_finishing = False
        await self._release()

    async def _tee_rest(self, chunk: bytes) -> None:
        if self._tee is not None and isinstance(waiting := self._tee(chunk), Awaitable):
            await waiting

    def _is_released(self, source: AsyncSource) -> bool:
        """Return whether the client has released the connection; then forget the source."""
        if source.is_over is None or not source.is_over():
            return False
        self.source = None
        return True

    async def _release(self) -> None:
        source = self.source
        if source is not None and not self._is_released(source):
            self.source = None
            # A failure while the connection is released does not affect the received parts.
            try:  # noqa: SIM105 - as above
                await source.close()
            except Exception:  # noqa: BLE001, S110 - as said
                pass


class AwaitedValues(Generic[T]):
    """Iterator over what a step makes of each read; this is the loop that awaits.

    An asynchronous generator that a loop leaves early must be closed by the event loop. This object
    holds nothing between two values.
    """

    __slots__ = ("_reader", "_step")

    def __init__(self, reader: AsyncReader, step: Step[T]) -> None:
        self._reader = reader
        self._step = step

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next value.

        Raises:
            StopAsyncIteration: the stream has ended.
        """
        reader, step = self._reader, self._step
        value = step()
        if value is None:
            decoding = False
            try:
                following = reader.following or await reader.begun()
                timed, watch = reader.timed, reader.watch
                while value is None:
                    if timed is None or watch is None:
                        chunk = await following()
                    else:
                        watch.begin(timed.allowed)
                        chunk = await timed.read()
                        watch.task = None
                        if not chunk or not timed.is_begun:
                            timed.arrived(chunk)
                    if reader.is_watched:
                        value = await reader.watched(chunk, step)
                    else:
                        decoding = True
                        value = step(chunk)
                        decoding = False
            except BaseException as raised:  # noqa: BLE001 - most are raised again
                value = await reader.raised(raised, step, decoding=decoding)
        if value is OVER:
            value = reader.over(step)
            if value is None:
                await reader.finish()
                self.ended()
                raise StopAsyncIteration
        return value  # type: ignore[return-value]  # a value of the step

    def ended(self) -> None:
        """Do what follows the last value."""


class AwaitedTexts(AwaitedValues[str]):
    """Iterator over the text of each read, which raises the error that ended the stream."""

    __slots__ = ()

    def __init__(self, reader: AsyncReader) -> None:
        super().__init__(reader, reader.cursor.texts)

    def ended(self) -> None:
        """Raise the error of the stream."""
        self._reader.raise_failure()
