"""Limits of one call: waiting times, and the errors after them.

In: `Timeouts`, and the chunks of a body.  Out: the same chunks, or a `TimeoutError` that names the
limit and its seconds.

Laws: a limit runs only while a reader waits. A limit that passed before a read never discards
received bytes, except `total`. All waits of an event loop share one timer of asyncio.
"""

import asyncio
import math
import sys
import threading
from abc import ABC, abstractmethod
from asyncio import current_task
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Final, Literal, Protocol, Self, TypeAlias, cast
from weakref import WeakSet

Limit: TypeAlias = Literal["connect", "pool", "first_byte", "idle", "total"]

_MISSED: Final[dict[Limit, str]] = {
    "connect": "no connection within {:g} s (timeouts.connect)",
    "pool": "no free connection within {:g} s (timeouts.pool)",
    "first_byte": "no answer within {:g} s (timeouts.first_byte)",
    "idle": "no more bytes within {:g} s (timeouts.idle)",
    "total": "the call was not over within {:g} s (timeouts.total)",
}
_LONGEST: Final = 2_000_000
"""CPython hands the timeout of a socket to `poll` as milliseconds in a C int."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Limits of the waiting times of a call, in seconds; None removes a limit.

    The longest limit is 2,000,000 seconds (23 days): a longer one overflows the timers of sockets.

    >>> deltafold.load_model("openai/gpt-5.6-terra", timeouts=Timeouts(idle=30, total=300))

    Attributes:
        connect: to establish a connection: for TCP, and again for TLS.
        pool: to wait for a free connection of the client (`max_connections`).
        first_byte: from the request to the response's headers, and from these to the first byte of
            the body. A provider may send its headers at once and think for minutes.
        idle: between two reads of the body.
        total: the whole call, from the request to the last byte.

    Raises:
        ValueError: a limit is not above 0, or above 2,000,000.
    """

    connect: float | None = 10.0
    pool: float | None = None
    first_byte: float | None = 120.0
    idle: float | None = 120.0
    total: float | None = None

    def __post_init__(self) -> None:
        """Check the limits."""
        for name in _MISSED:
            seconds = cast("float | None", getattr(self, name))
            if seconds is not None and not 0 < seconds <= _LONGEST:
                raise ValueError(
                    f"{name} must be above 0 and at most {_LONGEST:,} seconds, or None for no "
                    f"limit, not {seconds}"
                )


class Limits:
    """The timeouts of a call that has begun, and the errors that name them.

    Attributes:
        timeouts: the waiting times.
        ends: the time of `monotonic` at which the whole call must be over; None without a limit.
    """

    __slots__ = ("ends", "timeouts")

    def __init__(self, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self.ends = None if timeouts.total is None else monotonic() + timeouts.total

    def has(self, limit: Limit) -> bool:
        """Return whether the limit is set."""
        return getattr(self.timeouts, limit) is not None

    def of(self, limit: Limit) -> tuple[Limit, float | None]:
        """Return the limit that a wait reaches first, and the seconds until then."""
        seconds = cast("float | None", getattr(self.timeouts, limit))
        left = self.left(seconds)
        return (limit if left == seconds else "total"), left

    def left(self, seconds: float | None) -> float | None:
        """Return the seconds of a wait, at most those until the whole call must be over."""
        if self.ends is None:
            return seconds
        left = max(self.ends - monotonic(), 0.0)
        return left if seconds is None else min(seconds, left)

    def allow(self, limit: Limit, watch: "Watch") -> Limit:
        """Limit the current wait of a watch, and return the limit that ends it first."""
        first, seconds = self.of(limit)
        watch.allow(seconds)
        return first

    def end_within(self, seconds: float) -> None:
        """Let the call take so many seconds at most from now on."""
        ends = monotonic() + seconds
        self.ends = ends if self.ends is None else min(self.ends, ends)

    def failed(self, raised: BaseException, limit: Limit) -> BaseException:
        """Return the exception to raise where a read has raised this one.

        Args:
            raised: the exception of the read.
            limit: the limit that the read would have reached first.
        """
        if not is_timeout(raised):
            return raised
        missed = self.missed(limit)
        missed.__cause__ = raised
        return missed

    def missed(self, limit: Limit) -> TimeoutError:
        """Make the error that names the exceeded limit."""
        seconds = cast("float | None", getattr(self.timeouts, limit))
        if seconds is None:
            return TimeoutError("the rest of the body did not come in time")
        return TimeoutError(_MISSED[limit].format(seconds))


def is_timeout(exception: BaseException) -> bool:
    """Return whether an exception of an HTTP client is a timeout."""
    names = {base.__name__ for base in type(exception).__mro__}
    return bool(names & {"TimeoutException", "TimeoutError", "ServerTimeoutError"})


class TimedChunks:
    """Chunks of a body that is read synchronously, each within its limit.

    Args:
        chunks: the body.
        limits: the limits of the call.
        allow: sets the seconds of the client's next read.
    """

    __slots__ = ("_allow", "_chunks", "_limit", "_limits")

    def __init__(
        self,
        chunks: Iterator[bytes],
        limits: Limits,
        allow: Callable[[float | None], None],
    ) -> None:
        self._chunks = chunks
        self._limits = limits
        self._limit: Limit = "first_byte"
        self._allow = allow

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        limit, seconds = self._limits.of(self._limit)
        self._allow(seconds)
        try:
            chunk = next(self._chunks)
        except Exception as exception:
            if is_timeout(exception) and seconds is not None:
                raise self._limits.missed(limit) from exception
            raise
        self._limit = "idle"
        return chunk


class AsyncTimedChunks:
    """Chunks of a body that is awaited, each within its limit.

    A coroutine for each chunk costs as much as decoding a short event.  Where `own_watch` is set, a
    reader may do without it: `own_watch.begin(allowed)`, `read`, then `arrived` or `failure`.

    Args:
        read: returns an awaitable of the next chunk.
        limits: the limits of the call.
        watch: limits the waits.
        first: replaces `read` until the first chunk came.
        ends_empty: whether an empty chunk is the end of the body.

    Attributes:
        read: returns an awaitable of the next chunk.
        allowed: the seconds that the next read may take; None without a limit.
        own_watch: the watch, if it is one of asyncio and the whole call has no limit.
        is_begun: whether a chunk has come.
    """

    __slots__ = (
        "_ends_empty",
        "_limit",
        "_limits",
        "_seconds",
        "_then",
        "_watch",
        "allowed",
        "is_begun",
        "own_watch",
        "read",
    )

    def __init__(
        self,
        read: "ReadChunk",
        limits: Limits,
        watch: "Watch",
        first: "ReadChunk | None" = None,
        *,
        ends_empty: bool = False,
    ) -> None:
        self.read = first or read
        self._then = read
        self._limits = limits
        self._limit: Limit = "first_byte"
        self.allowed = self._seconds = limits.timeouts.first_byte
        self._watch = watch
        is_own = isinstance(watch, TaskWatch) and limits.ends is None
        self.own_watch = watch if is_own else None
        self._ends_empty = ends_empty
        self.is_begun = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        self._seconds = self._limits.left(self.allowed)
        self._watch.begin(self._seconds)
        try:
            chunk = await self.read()
        except BaseException as raised:  # noqa: BLE001 - raised again
            failed = self.failure(raised)
            try:
                if failed is raised:
                    raise
                raise failed from raised
            finally:
                del failed  # its traceback holds this frame
        self._watch.done()
        self.arrived(chunk)
        return chunk

    def arrived(self, chunk: bytes) -> None:
        """Take the chunk of a read, whose wait has ended.

        Raises:
            StopAsyncIteration: the chunk is the end of the body.
        """
        if not self.is_begun:
            self.is_begun = True
            self.read, self._limit = self._then, "idle"
            self.allowed = self._seconds = self._limits.timeouts.idle
        if not chunk and self._ends_empty:
            raise StopAsyncIteration

    def failure(self, raised: BaseException) -> BaseException:
        """End a read that has raised, and return the exception to raise."""
        raised = self._watch.end(raised)
        if self._seconds is None or isinstance(raised, StopAsyncIteration):
            return raised
        limit = self._limit if self._seconds == self.allowed else "total"
        return self._limits.failed(raised, limit)


def under_asyncio() -> bool:
    """Return whether the caller runs in an event loop of asyncio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def watch() -> "Watch":
    """Return the limiter of one task's waits, under asyncio or trio."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return ScopeWatch()
    timer = _LAST.timer
    if timer is None or timer.loop is not loop:
        timer = _LAST.timer = _LoopTimer(loop)
    return TaskWatch(timer)


class _LoopTimer:
    """The one timer of asyncio that all waits of an event loop share.

    It rings no later than the first wait ends, is never cancelled because a wait is over, and is
    not set again without a wait that has a limit: setting and cancelling a timer for each call
    costs as much as decoding a short answer.

    Attributes:
        loop: the event loop.
        time: the loop's clock.
        rings: the time of the loop's clock at which the timer rings; infinite without one.
    """

    __slots__ = ("_handle", "_watches", "loop", "rings", "time")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        # The clock of asyncio's own loops, without the function of Python around it.
        has_own_clock = type(loop).time is not asyncio.BaseEventLoop.time
        self.time = loop.time if has_own_clock else monotonic
        self.rings = math.inf
        self._handle: asyncio.TimerHandle | None = None
        self._watches: WeakSet[TaskWatch] = WeakSet()

    def cover(self, watch: "TaskWatch", due: float) -> None:
        """Ring for a wait at this time at the latest."""
        self._watches.add(watch)
        watch.covered = True
        if due < self.rings:
            if self._handle is not None:
                self._handle.cancel()
            self._set(due)

    def _set(self, due: float) -> None:
        self._handle = self.loop.call_at(due, self._ring)
        self.rings = due

    def _ring(self) -> None:
        """Cancel the tasks whose waits are due, and set the timer for the next one."""
        now, following = self.time(), math.inf
        self._handle, self.rings = None, math.inf
        late: list[TaskWatch] = []
        for watch in tuple(self._watches):
            if watch.task is None or watch.due == math.inf:
                watch.covered = False
                self._watches.discard(watch)
            elif watch.due <= now:
                late.append(watch)
            else:
                following = min(following, watch.due)
        if following < math.inf:
            self._set(following)
        for watch in late:
            watch.expire()


class _Last(threading.local):
    """The timer of the event loop that the thread ran last."""

    timer: _LoopTimer | None = None


_LAST: Final = _Last()


class ExpiredError(TimeoutError):
    """A wait of a `Watch` took too long."""


def _expired(raised: BaseException) -> ExpiredError:
    """Make the error for a wait that its limit has ended by this cancellation."""
    expired = ExpiredError()
    expired.__cause__ = raised
    return expired


class Watch(ABC):
    """Limiter of the waits of one task at a time: `begin`, then `done` or `end`."""

    __slots__ = ()

    @abstractmethod
    def begin(self, seconds: float | None) -> None:
        """Begin a wait of so many seconds at most; None removes the limit."""

    @abstractmethod
    def done(self) -> None:
        """End a wait that has returned."""

    @abstractmethod
    def end(self, raised: BaseException) -> BaseException:
        """End a wait that has raised; return `ExpiredError` for one that took too long."""

    @abstractmethod
    def allow(self, seconds: float | None) -> None:
        """Let the wait take so many seconds from now on; None removes the limit."""

    @contextmanager
    def within(self, seconds: float | None) -> Generator[None]:
        """Begin a wait that ends with a `with` block.

        Raises:
            ExpiredError: on leaving: the wait took too long.
        """
        self.begin(seconds)
        try:
            yield
        except BaseException as raised:  # noqa: BLE001 - raised again
            ended = self.end(raised)
            try:
                if ended is raised:
                    raise
                raise ended from raised
            finally:
                del ended  # its traceback holds this frame
        self.done()


class TaskWatch(Watch):
    """Limiter under asyncio, as `asyncio.timeout` limits a wait.

    Attributes:
        task: the task that waits; None between two waits.
        due: the end of the wait by the loop's clock; infinite without a limit.
        covered: whether the timer knows of this watch.
        extend: is called when the wait is due, and returns the seconds for which it may go on; None
            ends it. A wait that raises removes it.
    """

    __slots__ = (
        "__weakref__",
        "_cancelling",
        "_expired",
        "_timer",
        "covered",
        "due",
        "extend",
        "task",
    )

    def __init__(self, timer: _LoopTimer) -> None:
        self._timer = timer
        self._cancelling = 0
        self._expired = False
        self.task: asyncio.Task[object] | None = None
        self.due = math.inf
        self.covered = False
        self.extend: Callable[[], float | None] | None = None

    def begin(self, seconds: float | None) -> None:
        """Begin a wait of the current task."""
        timer = self._timer
        task = self.task = current_task(timer.loop)
        self._cancelling = 0 if task is None else task.cancelling()
        self._expired = False
        if seconds is None:
            self.due = math.inf
            return
        due = self.due = timer.time() + seconds
        if due < timer.rings or not self.covered:
            timer.cover(self, due)

    def done(self) -> None:
        """Forget the task."""
        self.task = None

    def end(self, raised: BaseException) -> BaseException:
        """Take an own cancellation of the task back."""
        task, self.task = self.task, None
        self.extend = None
        if not self._expired or task is None or not isinstance(raised, asyncio.CancelledError):
            return raised
        # Another cancellation that came meanwhile is not taken back.
        return _expired(raised) if task.uncancel() <= self._cancelling else raised

    def allow(self, seconds: float | None) -> None:
        """Move the end of the wait."""
        if seconds is None:
            self.due = math.inf
            return
        self.due = due = self._timer.time() + seconds
        if self.task is not None and (due < self._timer.rings or not self.covered):
            self._timer.cover(self, due)

    def expire(self) -> None:
        """Cancel the task that waits, once, unless its wait is extended."""
        more = None if self.extend is None else self.extend()
        if more is not None:
            self.allow(more)
            return
        self._expired, self.due = True, math.inf
        if self.task is not None:
            self.task.cancel()


class _CancelScope(Protocol):
    deadline: float

    def __enter__(self) -> object: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool: ...


class _Trio(Protocol):
    def CancelScope(self) -> _CancelScope: ...  # noqa: N802 - trio's name
    def current_time(self) -> float: ...


class ScopeWatch(Watch):
    """Limiter under trio: each wait is inside of a cancel scope."""

    __slots__ = ("_scope", "_trio")

    def __init__(self) -> None:
        # Without asyncio, the caller has imported trio.
        self._trio = cast("_Trio", sys.modules["trio"])
        self._scope: _CancelScope | None = None

    def begin(self, seconds: float | None) -> None:
        """Enter a scope."""
        self._scope = self._trio.CancelScope()
        self._scope.__enter__()
        self.allow(seconds)

    def done(self) -> None:
        """Leave the scope."""
        scope, self._scope = self._scope, None
        if scope is not None:
            scope.__exit__(None, None, None)

    def end(self, raised: BaseException) -> BaseException:
        """Leave the scope, which may have been cancelled."""
        scope, self._scope = self._scope, None
        if scope is not None and scope.__exit__(type(raised), raised, raised.__traceback__):
            return _expired(raised)
        return raised

    def allow(self, seconds: float | None) -> None:
        """Move the deadline of the scope."""
        if self._scope is not None:
            now = self._trio.current_time()
            self._scope.deadline = math.inf if seconds is None else now + seconds


ReadChunk: TypeAlias = Callable[[], Awaitable[bytes]]
"""Returns an awaitable of the next chunk."""

LimitsAndWatch: TypeAlias = tuple[Limits, Watch]
"""The limits of a call, and the watch that ends a wait which exceeds them."""
