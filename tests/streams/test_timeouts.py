"""Limits of a call without HTTP: one timer an event loop, and the caller's cancellation is kept."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager

import anyio
import anyio.lowlevel
import pytest

from deltafold.transports.deadlines import (
    ReadLimit,
    RestWithin,
    UnlimitedReadsError,
    bound_reads,
)
from deltafold.transports.timeouts import (
    AsyncTimedChunks,
    ExpiredError,
    Limits,
    TaskWatch,
    TimedChunks,
    Timeouts,
    watch,
)

every_loop = pytest.mark.parametrize("loop", ["asyncio", "trio"])


class Chunks:
    """A chunk after each of these pauses."""

    def __init__(self, *pauses: float) -> None:
        self.pauses = list(pauses)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self.pauses:
            raise StopAsyncIteration
        await anyio.sleep(self.pauses.pop(0))
        return b"x"


def timed(chunks: AsyncIterator[bytes], **timeouts: float | None) -> AsyncTimedChunks:
    return AsyncTimedChunks(chunks.__anext__, Limits(Timeouts(**timeouts)), watch())


def run(loop: str, main: Callable[[], Awaitable[None]]) -> None:
    anyio.run(main, backend=loop)


@every_loop
def test_each_wait_has_its_own_limit(loop: str) -> None:
    async def main() -> None:
        chunks = timed(Chunks(0.15, 0.01, 9), first_byte=0.3, idle=0.05)
        assert [await anext(chunks), await anext(chunks)] == [b"x", b"x"]
        with pytest.raises(TimeoutError, match=r"no more bytes within 0\.05 s"):
            await anext(chunks)

    run(loop, main)


@every_loop
def test_many_short_waits_miss_no_limit(loop: str) -> None:
    async def main() -> None:
        chunks = timed(Chunks(*[0.01] * 20), first_byte=0.1, idle=0.1)
        assert len([chunk async for chunk in chunks]) == 20

    run(loop, main)


@contextmanager
def counting_timers() -> Generator[list[float]]:
    """Yield the times for which the event loop sets timers."""
    loop = asyncio.get_running_loop()
    made: list[float] = []
    call_at = loop.call_at

    def counted(when: float, *arguments: object, **named: object) -> object:
        made.append(when)
        return call_at(when, *arguments, **named)  # type: ignore[arg-type]  # as they came

    loop.call_at = counted  # type: ignore[method-assign,assignment]  # to count
    yield made
    loop.call_at = call_at  # type: ignore[method-assign]


async def read_all(*pauses: float, **timeouts: float | None) -> int:
    return len([chunk async for chunk in timed(Chunks(*pauses), **timeouts)])


def test_one_timer_serves_all_waits_of_an_event_loop() -> None:
    async def main() -> None:
        with counting_timers() as made:
            for _ in range(3):
                assert await read_all(*[0] * 100, first_byte=60, idle=60) == 100
            together = [read_all(0, 0, 0, first_byte=60, idle=60) for _ in range(100)]
            assert await asyncio.gather(*together) == [3] * 100
            assert len(made) == 1

    asyncio.run(main())


def test_a_timer_without_a_wait_is_not_set_again() -> None:
    async def main() -> None:
        with counting_timers() as made:
            assert await read_all(0, 0, first_byte=0.05, idle=60) == 2
            begun = len(made)
            await asyncio.sleep(0.1)
            assert len(made) == begun + 1  # that of `sleep`

    asyncio.run(main())


def test_the_first_of_several_waits_to_be_due_ends_first() -> None:
    async def main() -> None:
        ended: list[float] = []

        async def wait(seconds: float) -> None:
            with pytest.raises(TimeoutError):
                await read_all(9, first_byte=seconds)
            ended.append(seconds)

        await asyncio.gather(wait(0.2), wait(0.05), wait(0.1), read_all(0.3, first_byte=60))
        assert ended == [0.05, 0.1, 0.2]

    asyncio.run(main())


def watches() -> int:
    return sum(isinstance(one, TaskWatch) for one in gc.get_objects())


def test_a_watch_is_forgotten_with_its_chunks() -> None:
    async def main() -> None:
        before = watches()
        chunks = timed(Chunks(0), first_byte=60, idle=60)
        assert [chunk async for chunk in chunks] == [b"x"]
        assert watches() == before + 1
        del chunks
        assert watches() == before

    asyncio.run(main())


def test_a_read_after_a_ring_of_the_timer_has_its_limit() -> None:
    async def main() -> None:
        chunks = timed(Chunks(0, 0, 9), first_byte=0.05, idle=0.05)
        for _ in range(2):
            assert await anext(chunks) == b"x"
            await asyncio.sleep(0.1)
        with pytest.raises(TimeoutError, match="no more bytes"):
            await anext(chunks)

    asyncio.run(main())


@pytest.mark.parametrize("gives_up", ["close", "forget", "cancel"])
def test_the_limit_of_a_read_that_was_given_up_ends_no_later_wait(gives_up: str) -> None:
    async def main() -> None:
        chunks = timed(Chunks(9, 9), first_byte=0.05, idle=0.05)
        if gives_up == "cancel":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await anext(chunks)
        else:
            read = chunks.__anext__()
            read.send(None)
            if gives_up == "close":
                read.close()
            del read
        await asyncio.sleep(0.1)

    asyncio.run(main())


@every_loop
def test_a_function_reads_the_chunks_within_their_limits(loop: str) -> None:
    async def main() -> None:
        pieces = [b"a", b"b", b""]

        async def read() -> bytes:
            await anyio.sleep(0 if pieces else 9)
            return pieces.pop(0)

        chunks = AsyncTimedChunks(read, Limits(Timeouts(idle=0.05)), watch(), ends_empty=True)
        assert [chunk async for chunk in chunks] == [b"a", b"b"]
        with pytest.raises(TimeoutError, match=r"timeouts\.first_byte"):
            await anext(AsyncTimedChunks(read, Limits(Timeouts(first_byte=0.05)), watch()))

    run(loop, main)


@every_loop
def test_a_function_reads_until_the_first_bytes_came(loop: str) -> None:
    async def main() -> None:
        pieces = [b"b", b""]
        asked: list[str] = []

        async def read() -> bytes:
            return pieces.pop(0)

        async def first() -> bytes:
            asked.append("first")
            await anyio.lowlevel.checkpoint()
            return b"a"

        limits = Limits(Timeouts())
        chunks = AsyncTimedChunks(read, limits, watch(), first, ends_empty=True)
        assert [chunk async for chunk in chunks] == [b"a", b"b"]
        assert asked == ["first"]

    run(loop, main)


@every_loop
def test_the_whole_call_ends_a_read_that_may_take_longer(loop: str) -> None:
    async def main() -> None:
        chunks = timed(Chunks(0.01, 9), first_byte=30, idle=30, total=0.1)
        assert await anext(chunks) == b"x"
        with pytest.raises(TimeoutError, match=r"timeouts\.total"):
            await anext(chunks)

    run(loop, main)


def test_a_wait_is_allowed_less_while_it_lasts() -> None:
    async def main() -> None:
        limiter = watch()
        asyncio.get_running_loop().call_later(0.01, limiter.allow, 0.05)
        with pytest.raises(ExpiredError) as raised, limiter.within(None):
            await asyncio.sleep(9)
        assert isinstance(raised.value.__cause__, asyncio.CancelledError)
        limiter.allow(0.01)  # nothing waits
        await asyncio.sleep(0.05)

    asyncio.run(main())


def test_a_watch_does_not_keep_the_task_whose_wait_is_over() -> None:
    async def read() -> AsyncTimedChunks:
        chunks = timed(Chunks(0, 0), first_byte=60, idle=60)
        assert [chunk async for chunk in chunks] == [b"x", b"x"]
        return chunks

    async def main() -> None:
        task = asyncio.create_task(read())
        chunks = await task
        ended = weakref.ref(task)
        del task
        await asyncio.sleep(0)
        assert ended() is None
        del chunks

    asyncio.run(main())


@every_loop
def test_a_read_is_awaited_only_once(loop: str) -> None:
    async def main() -> None:
        read = timed(Chunks(0)).__anext__()
        assert await read == b"x"
        with pytest.raises(RuntimeError, match="already awaited"):
            await read

    run(loop, main)


@every_loop
def test_a_missed_limit_leaves_the_task_able_to_go_on(loop: str) -> None:
    async def main() -> None:
        chunks = timed(Chunks(9), first_byte=0.05)
        with pytest.raises(TimeoutError):
            await anext(chunks)
        if loop == "asyncio":
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
        await anyio.sleep(0.05)

    run(loop, main)


def test_the_limit_of_somebody_else_stays_theirs() -> None:
    async def main() -> None:
        chunks = timed(Chunks(9), first_byte=30)
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(0.05):
                await anext(chunks)
        assert "timeouts." not in str(raised.value)
        chunks = timed(Chunks(9), first_byte=0.05)
        with pytest.raises(TimeoutError, match=r"timeouts\.first_byte"):
            async with asyncio.timeout(30):
                await anext(chunks)

    asyncio.run(main())


def test_a_cancellation_at_the_moment_of_a_limit_is_not_lost() -> None:
    async def read() -> None:
        chunks = timed(Chunks(9), first_byte=0.05)
        await anext(chunks)

    async def main() -> None:
        task = asyncio.create_task(read())
        await asyncio.sleep(0)
        # Both happen in one turn of the loop: the timer is due, and the task is cancelled.
        time.sleep(0.1)  # noqa: ASYNC251 - the loop stands still on purpose
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


@every_loop
def test_a_failure_that_only_looks_like_a_limit_stays_what_it_is(loop: str) -> None:
    class Failing(Chunks):
        async def __anext__(self) -> bytes:
            raise TimeoutError("[Errno 110] Connection timed out")

    async def main() -> None:
        with pytest.raises(TimeoutError, match="Errno 110"):
            await anext(timed(Failing(), first_byte=None))

    run(loop, main)


# In threads: httpcore's stream gets a deadline instead of a limit for each read.


class Reading:
    """A stream like httpcore's; it keeps the limits that its reads were given."""

    def __init__(self) -> None:
        self.limits: list[float | None] = []

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.limits.append(timeout)
        return b"x" * max_bytes


class Limited:
    """A stream whose reads return their limit."""

    def read(self, _bytes: int, timeout: float | None = None) -> float | None:
        return timeout


def test_many_reads_share_one_deadline() -> None:
    stream = Reading()
    assert bound_reads(stream)
    limit = ReadLimit.of(0.2)
    assert stream.read(1, timeout=limit) == b"x"
    time.sleep(0.05)
    assert stream.read(1, timeout=limit) == b"x"
    first, second = stream.limits
    assert first is not None
    assert second is not None
    assert 0 < second < first <= 0.2
    time.sleep(0.2)
    with pytest.raises(TimeoutError):
        stream.read(1, timeout=limit)
    limit.allow(30)
    stream.read(1, timeout=limit)
    limit.allow(None)
    stream.read(1, timeout=limit)
    assert stream.limits[-1] is None


def test_a_bounded_stream_obeys_everybody_else() -> None:
    stream = Reading()
    assert bound_reads(stream)
    assert bound_reads(stream)
    stream.read(1, 7)
    stream.read(1, timeout=None)
    assert stream.limits == [7, None]


def test_the_deadline_of_a_rest_is_that_of_its_thread_alone() -> None:
    stream = Reading()
    assert bound_reads(stream)
    with RestWithin(stream, time.monotonic() + 0.5):
        stream.read(1, 7)
        other = threading.Thread(target=stream.read, args=(1, 8))
        other.start()
        other.join()
    stream.read(1, 9)
    within, beside, after = stream.limits
    assert within is not None
    assert within <= 0.5
    assert (beside, after) == (8, 9)


def test_the_reads_after_a_rest_are_those_of_the_stream_itself() -> None:
    stream = Reading()
    until = time.monotonic() + 0.5

    def other() -> None:
        with RestWithin(stream, until):
            stream.read(1, 7)

    with RestWithin(stream, until):
        beside = threading.Thread(target=other)
        beside.start()
        beside.join()
        assert "read" in vars(stream)
        # A finalizer may drain another stream of the same connection.
        with RestWithin(stream, until - 0.4):
            stream.read(1, 7)
        stream.read(1, 7)
    first, nested, last = stream.limits
    assert nested is not None
    assert nested <= 0.1 < min(first or 0, last or 0)
    assert "read" not in vars(stream)
    assert bound_reads(stream)
    with RestWithin(stream, until):
        pass
    assert "read" in vars(stream)


def test_threads_that_share_a_stream_keep_their_deadlines() -> None:
    stream = Limited()
    wrong: list[float | None] = []

    def rests() -> None:
        for _ in range(500):
            with RestWithin(stream, time.monotonic() + 5):
                within = stream.read(1, 99)
            if within is None or within > 5 or stream.read(1, 99) != 99:
                wrong.append(within)

    threads = [threading.Thread(target=rests) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert "read" not in vars(stream)


class Interrupted:
    """A stream that runs other code while its reads are bounded, as a finalizer may."""

    def __init__(self) -> None:
        self.limits: list[float | None] = []
        self.depth = 0

    def __getattribute__(self, name: str) -> object:
        if name == "__dict__" and self.depth == 0:
            self.depth += 1
            with RestWithin(self, time.monotonic() + 2):
                self.limits.append(self.read(1, 99))
            self.depth -= 1
        return super().__getattribute__(name)

    def read(self, _bytes: int, timeout: float | None = None) -> float | None:
        return timeout


def test_a_finalizer_may_read_a_rest_while_another_begins() -> None:
    stream = Interrupted()
    limits: list[float | None] = []

    def rest() -> None:
        with RestWithin(stream, time.monotonic() + 5):
            limits.append(stream.read(1, 99))

    reading = threading.Thread(target=rest, daemon=True)
    reading.start()
    reading.join(20)
    assert not reading.is_alive(), "the finalizer waits for a lock"
    assert [limit is not None and 2 < limit <= 5 for limit in limits] == [True]
    assert len(stream.limits) > 1
    assert all(limit is not None and limit <= 2 for limit in stream.limits)
    assert stream.read(1, 99) == 99


def test_a_stream_that_cannot_be_bounded_is_left_alone() -> None:
    assert not bound_reads(object())
    with pytest.raises(UnlimitedReadsError, match="object"), RestWithin(object(), 1):
        pass


def test_a_client_that_listens_is_told_what_each_read_may_take() -> None:
    told: list[float | None] = []
    limits = Limits(Timeouts(first_byte=5, idle=2, total=None))
    assert list(TimedChunks(iter([b"a", b"b"]), limits, told.append)) == [b"a", b"b"]
    assert told == [5, 2, 2]


def test_the_whole_call_shortens_what_is_left_for_a_read() -> None:
    limits = Limits(Timeouts(first_byte=5, idle=2, total=0.5))
    limit, seconds = limits.of("first_byte")
    assert limit == "total"
    assert seconds is not None
    assert 0 < seconds <= 0.5
    time.sleep(0.01)
    assert (limits.of("idle")[1] or 0) < seconds
    assert Limits(Timeouts(first_byte=1, total=9)).of("first_byte") == ("first_byte", 1)
    assert Limits(Timeouts(connect=None)).of("connect") == ("connect", None)
