"""Streams of a Model with a fallback: the answers of several Models as one stream.

In: the call of the first Model, and what finds the next one after a failure.  Out: the streams of
`stream` and `stream_sync`, with one beginning and one end.

Laws: the deltas before the first part of an answer are held back until that part arrives, so that
no reader sees the beginning of an answer that another Model gives. Each text is read once. Readers
do not see a failure that moves the call on; the telemetry of the failed call has it. All ways of
reading a stream share one position.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any, Final, Generic, Self, TypeVar

from deltafold._core import DeltaBatch, MessageDelta
from deltafold.contract.kinds import DeltaKind
from deltafold.contract.usage import sum_of_usage
from deltafold.message import data_types
from deltafold.models.prepared import Following, Prepared
from deltafold.models.spliced import Splice
from deltafold.streams.core import StreamCore
from deltafold.streams.delta_streams import AsyncDeltaStream, DeltaStream
from deltafold.streams.output_streams import AsyncOutputStream, Expected, OutputStream
from deltafold.streams.readers import AsyncReader, AsyncTee, AwaitedValues, Reader, Tee

T = TypeVar("T")
CoreT = TypeVar("CoreT", Reader, AsyncReader)

_BEFORE_CONTENT: Final = {DeltaKind.START, DeltaKind.USAGE}
"""Deltas of an answer without content."""


class _Journey:
    """The position of a stream in its chain of Models.

    Attributes:
        continued: the streams whose answers another Model has continued.
        call: the call of the last Model, None if the first one answers.
        rest: the deltas of a batch that were not taken yet.
    """

    def __init__(self, following: Following) -> None:
        self.continued: list[StreamCore] = []
        self.call: Prepared | None = None
        self.rest: Iterator[MessageDelta] = iter(())
        self._following = following
        self._held: list[MessageDelta] = []
        self._begun = False
        # If no further Model can continue a text, the text need not be followed.
        self._splice = Splice() if following.continues else None

    def taken(
        self, core: StreamCore, batch: DeltaBatch
    ) -> tuple[DeltaBatch | None, Prepared | None]:
        """Take the deltas of a read.

        Returns:
            The deltas that the reader sees now, None if there are none; and the call of the next
            Model, None if the same one goes on.
        """
        is_last = batch.ends_stream
        if self._begun and self._splice is None and not is_last:
            return batch, None
        fails = is_last and core.status == "error"
        following = self._following.after(core) if fails else None
        deltas: Iterable[MessageDelta] = batch
        if self._splice is not None:
            deltas = [*self._splice.deltas(batch)]
        if following is not None:
            return self._moved(core, following, [*self._held, *deltas]), following
        if fails and self._splice is not None:
            deltas = [*deltas, *self._splice.failed()]
        if not self._begun:
            deltas = [*self._held, *deltas]
            self._held = []
            if not is_last and all(delta.kind in _BEFORE_CONTENT for delta in deltas):
                self._held = deltas
                return None, None
            self._begun = True
        return (DeltaBatch._of([*deltas]) if deltas is not batch else batch), None  # noqa: SLF001 - made for this

    def _moved(
        self, core: StreamCore, following: Prepared, deltas: list[MessageDelta]
    ) -> DeltaBatch | None:
        """Return the deltas of an answer that the next Model continues; drop those of another."""
        self._held = []
        self.call = following
        if not core.assembler.snapshot().parts:
            self._splice = self._splice and Splice()
            return None
        self._begun = True
        self.continued.append(core)
        if self._splice is not None:
            self._splice.continue_after(core.snapshot(), following.row.name)
        return DeltaBatch._of(deltas)  # noqa: SLF001 - as above

    def left(self) -> DeltaBatch | None:
        """Return the deltas of a batch that were not taken one by one."""
        first = next(self.rest, None)
        return None if first is None else DeltaBatch._of([first, *self.rest])  # noqa: SLF001 - as above

    def moved_unseen(self, core: StreamCore) -> Prepared | None:
        """Return the next call after the failure of an answer whose deltas nobody reads."""
        following = self._following.after(core) if core.status == "error" else None
        if following is not None:
            self._moved(core, following, [])
        return following


def _followed(old: AsyncReader | Reader, new: AsyncReader | Reader) -> None:
    """Show the next answer where the one before it was shown."""
    if old.display is not None:
        new.display, new.is_watched = old.display, True


class _Awaited(Generic[T]):
    """Iterator over what a function returns, to the first None."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Awaitable[T | None]]) -> None:
        self._read = read

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next value.

        Raises:
            StopAsyncIteration: the stream has ended.
        """
        value = await self._read()
        if value is None:
            raise StopAsyncIteration
        return value


class _AwaitedDeltas:
    """Iterator over the deltas of each read."""

    __slots__ = ("_journey", "_read")

    def __init__(self, journey: _Journey, read: Callable[[], Awaitable[DeltaBatch | None]]) -> None:
        self._journey = journey
        self._read = read

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> MessageDelta:
        """Return the next delta.

        Raises:
            StopAsyncIteration: the stream has ended.
        """
        while True:
            delta = next(self._journey.rest, None)
            if delta is not None:
                return delta
            batch = await self._read()
            if batch is None:
                raise StopAsyncIteration
            self._journey.rest = iter(batch)


class _Sums(Generic[CoreT]):
    """Usage and cost of all calls of a stream."""

    _core: CoreT
    _journey: _Journey

    @property
    def moved_to(self) -> tuple[str, str, str] | None:
        """Vendor, specification and model that the call has moved to, None if it has not."""
        call = self._journey.call
        return None if call is None else (call.vendor, call.specification, call.model_id)

    @property
    def _cores(self) -> list[StreamCore]:
        return [*self._journey.continued, self._core]

    @property
    def usage(self) -> "data_types.Usage | None":
        """The usage in force, with that of the answers that were continued."""
        known = [core.assembler.usage for core in self._cores]
        counted = [usage for usage in known if usage is not None]
        return sum_of_usage(counted) if len(counted) > 1 else next(iter(counted), None)

    @property
    def cost_usd(self) -> float | None:
        """Cost so far in US dollars; None if it is unknown."""
        known = [core.cost.usd for core in self._cores]
        costs = [cost for cost in known if cost is not None]
        return sum(costs) if costs else None

    @property
    def cost_unpriced(self) -> tuple[str, ...]:
        """Names of what was billed so far and is not in the cost; () if the cost is complete."""
        return tuple(dict.fromkeys(name for core in self._cores for name in core.cost.unpriced))

    @property
    def is_lower_bound(self) -> bool:
        """Whether something was billed that `cost_usd` leaves out."""
        return bool(self.cost_unpriced)


class FallingStream(_Sums[Reader], DeltaStream):
    """A `DeltaStream` of a Model with a fallback."""

    def __init__(self, following: Following, *given: Any, **settings: Any) -> None:  # noqa: ANN401 - those of the stream
        self._journey = _Journey(following)
        self._tee: Tee | None = settings.get("tee")
        super().__init__(*given, **settings)
        self._batches = self._core.values(self._core.cursor.batches)

    def _batch(self) -> DeltaBatch | None:
        """Return the deltas of the next read, None after the end."""
        if (rest := self._journey.left()) is not None:
            return rest
        while (batch := next(self._batches, None)) is not None:
            old = self._core
            seen, following = self._journey.taken(old, batch)
            if following is not None:
                self._follow(following)
                old.close()
            if seen is not None:
                return seen
        return None

    def _follow(self, call: Prepared) -> None:
        """Read the answer of another Model from now on."""
        old = self._core
        self._core = Reader(
            call.open,
            call.caller.dialect,
            error_mapper=call.error_mapper,
            tee=self._tee,
            call=call,
            options=call.options,
        )
        _followed(old, self._core)
        self._batches = self._core.values(self._core.cursor.batches)

    def __iter__(self) -> Iterator[MessageDelta]:
        journey = self._journey
        while True:
            yield from journey.rest
            batch = self._batch()
            if batch is None:
                return
            journey.rest = iter(batch)

    def batches(self) -> Iterator[DeltaBatch]:
        """Return an iterator over the deltas of each read."""
        return iter(self._batch, None)

    def text(self) -> Iterator[str]:
        """Return an iterator over the text of the answer as it arrives.

        Raises:
            ModelError: the stream ended in an error; all received text was yielded before.
        """
        yield from filter(None, (batch.text for batch in self.batches()))
        self._core.raise_failure()

    def final_message(self) -> "data_types.Message":
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has the parts received
                before.
        """
        self._journey.rest = iter(())
        while True:
            old = self._core
            old.read_to_end()
            following = self._journey.moved_unseen(old)
            if following is None:
                return old.final_message()
            self._follow(following)
            old.close()

    def close(self) -> None:
        """Release the connection and keep the received parts."""
        self._journey.rest = iter(())
        super().close()

    def __exit__(self, *exception: object) -> None:
        self.close()


class AsyncFallingStream(_Sums[AsyncReader], AsyncDeltaStream):
    """An `AsyncDeltaStream` of a Model with a fallback."""

    def __init__(self, following: Following, *given: Any, **settings: Any) -> None:  # noqa: ANN401 - those of the stream
        self._journey = _Journey(following)
        self._tee: AsyncTee | None = settings.get("tee")
        super().__init__(*given, **settings)
        self._batches = AwaitedValues(self._core, self._core.cursor.batches)

    async def _batch(self) -> DeltaBatch | None:
        """Return the deltas of the next read, None after the end."""
        if (rest := self._journey.left()) is not None:
            return rest
        while True:
            old = self._core
            try:
                batch = await self._batches.__anext__()
            except StopAsyncIteration:
                return None
            seen, following = self._journey.taken(old, batch)
            if following is not None:
                self._follow(following)
                await old.close()
            if seen is not None:
                return seen

    def _follow(self, call: Prepared) -> None:
        """Read the answer of another Model from now on."""
        old = self._core
        self._core = AsyncReader(
            call.open_async,
            call.caller.dialect,
            error_mapper=call.error_mapper,
            tee=self._tee,
            call=call,
            options=call.options,
        )
        _followed(old, self._core)
        self._batches = AwaitedValues(self._core, self._core.cursor.batches)

    def __aiter__(self) -> AsyncIterator[MessageDelta]:
        return _AwaitedDeltas(self._journey, self._batch)

    def __anext__(self) -> Coroutine[object, None, MessageDelta]:
        return _AwaitedDeltas(self._journey, self._batch).__anext__()

    def batches(self) -> AsyncIterator[DeltaBatch]:
        """Return an iterator over the deltas of each read."""
        return _Awaited(self._batch)

    def text(self) -> AsyncIterator[str]:
        """Return an iterator over the text of the answer as it arrives.

        Raises:
            ModelError: the stream ended in an error; all received text was yielded before.
        """
        return _Awaited(self._text)

    async def _text(self) -> str | None:
        while (batch := await self._batch()) is not None:
            if text := batch.text:
                return text
        self._core.raise_failure()
        return None

    async def final_message(self) -> "data_types.Message":
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has the parts received
                before.
        """
        self._journey.rest = iter(())
        while True:
            old = self._core
            await old.read_to_end()
            following = self._journey.moved_unseen(old)
            if following is None:
                return old.final_message()
            self._follow(following)
            await old.close()

    async def aclose(self) -> None:
        """Release the connection and keep the received parts."""
        self._journey.rest = iter(())
        await super().aclose()

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


class _FallingOutputStream(FallingStream, OutputStream[Any, Any]):
    """An `OutputStream` of a Model with a fallback."""

    def _follow(self, call: Prepared) -> None:
        super()._follow(call)
        if call.written.expected is not None:
            self._outcome.follow(call.written.expected, self._core.assembler)


class _AsyncFallingOutputStream(AsyncFallingStream, AsyncOutputStream[Any, Any]):
    """An `AsyncOutputStream` of a Model with a fallback."""

    def _follow(self, call: Prepared) -> None:
        super()._follow(call)
        if call.written.expected is not None:
            self._outcome.follow(call.written.expected, self._core.assembler)


def falling(
    following: Following, expected: Expected[Any, Any] | None
) -> Callable[..., DeltaStream]:
    """Return what makes the stream of a call with a fallback.

    Args:
        following: finds the next call after a failure.
        expected: the output that the answer is expected to hold.
    """
    if expected is None:
        return partial(FallingStream, following)
    return partial(_FallingOutputStream, following, expected)


def falling_async(
    following: Following, expected: Expected[Any, Any] | None
) -> Callable[..., AsyncDeltaStream]:
    """Return what makes the stream of an asynchronous call with a fallback."""
    if expected is None:
        return partial(AsyncFallingStream, following)
    return partial(_AsyncFallingOutputStream, following, expected)
