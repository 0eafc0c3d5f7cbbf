"""Limits of one call: waiting times, and the errors after them.

In: `Timeouts`, and the chunks of a body.  Out: the same chunks, or a `TimeoutError` that names the
limit and its seconds.

Laws: a limit runs only while a reader waits. A limit that passed before a read never discards
received bytes, except `total`. Waiting costs one timer per stream instead of one per read: a timer
whose wait is over only reschedules itself.
"""

import asyncio
import math
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self, TypeAlias, TypeVar, cast

T = TypeVar("T")
Limit: TypeAlias = Literal["connect", "first_byte", "idle", "total"]

_MISSED: Final[dict[Limit, str]] = {
    "connect": "no connection within {:g} s (timeouts.connect)",
    "first_byte": "no answer within {:g} s (timeouts.first_byte)",
    "idle": "no more bytes within {:g} s (timeouts.idle)",
    "total": "the call was not over within {:g} s (timeouts.total)",
}
_LONGEST: Final = 2_000_000
"""CPython hands the timeout of a socket to `poll` as milliseconds in a C int."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Limits of the waiting times of a call, in seconds; None is no limit.

    The longest limit is 2,000,000 seconds (23 days): a longer one overflows the timers of sockets.

    Attributes:
        connect: to establish a connection: for TCP, and again for TLS.
        first_byte: from the request to the response's headers, and from these to the first byte of
            the body. A provider may send its headers at once and think for minutes.
        idle: between two reads of the body.
        total: the whole call, from the request to the last byte.

    Raises:
        ValueError: a limit is not above 0, or above 2,000,000.
    """

    connect: float | None = 10.0
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
    """The timeouts of a call that has begun."""

    __slots__ = ("_ends", "timeouts")

    def __init__(self, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self._ends = None if timeouts.total is None else time.monotonic() + timeouts.total

    def of(self, limit: Limit) -> tuple[Limit, float | None]:
        """Return the limit that a wait reaches first, and how many seconds are left until then."""
        seconds = cast("float | None", getattr(self.timeouts, limit))
        if self._ends is None:
            return limit, seconds
        left = max(self._ends - time.monotonic(), 0.0)
        return (limit, seconds) if seconds is not None and seconds < left else ("total", left)

    def has(self, limit: Limit) -> bool:
        """Return whether the limit is set."""
        return getattr(self.timeouts, limit) is not None

    def missed(self, limit: Limit) -> TimeoutError:
        """Make the error that names the exceeded limit."""
        seconds = cast("float", getattr(self.timeouts, limit))
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
    """Chunks of a body that is awaited, each within its limit, under asyncio and trio."""

    __slots__ = ("_chunks", "_limit", "_limits", "_within")

    def __init__(self, chunks: AsyncIterator[bytes], limits: Limits) -> None:
        self._chunks = chunks
        self._limits = limits
        self._limit: Limit = "first_byte"
        self._within = watch()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        limit, seconds = self._limits.of(self._limit)
        try:
            if seconds is None:
                chunk = await anext(self._chunks)
            else:
                chunk = await self._within(seconds, self._chunks.__anext__())
        except Exception as exception:
            if seconds is not None and is_timeout(exception):
                raise self._limits.missed(limit) from exception
            raise
        self._limit = "idle"
        return chunk

    def close(self) -> None:
        """End the timer; closing the body is its owner's."""
        self._within.close()


def under_asyncio() -> bool:
    """Return whether the caller runs in an event loop of asyncio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def watch() -> "Watch":
    """Return the limiter of one task's waits, under asyncio or trio; the caller closes it."""
    return _AsyncioWatch() if under_asyncio() else _TrioWatch()


class _AsyncioWatch:
    """Cancels the task that waits too long, as `asyncio.timeout` does, with one timer for all."""

    __slots__ = ("_cancelling", "_due", "_expired", "_loop", "_task", "_timer")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._cancelling = 0
        self._due = math.inf
        self._expired = False

    async def __call__(self, seconds: float, read: Awaitable[bytes]) -> bytes:
        # Only a task can await.
        task = self._task = cast("asyncio.Task[object]", asyncio.current_task())
        self._cancelling = task.cancelling()
        self._due = self._loop.time() + seconds
        if self._timer is None or self._due < self._timer.when():
            self._set()
        try:
            return await read
        except asyncio.CancelledError as cancelled:
            if self._expired and task.uncancel() <= self._cancelling:
                raise TimeoutError from cancelled
            raise
        finally:
            self._task = None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self) -> None:
        self.close()
        self._timer = self._loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._task is None:
            return
        if self._loop.time() < self._due:
            self._set()
        else:
            self._expired = True
            self._task.cancel()


class _Trio(Protocol):
    def fail_after(self, seconds: float) -> AbstractContextManager[object]: ...


class _TrioWatch:
    """Waits inside of a cancel scope."""

    __slots__ = ("_trio",)

    def __init__(self) -> None:
        # Without asyncio, the caller has imported trio.
        self._trio = cast("_Trio", sys.modules["trio"])

    async def __call__(self, seconds: float, read: Awaitable[bytes]) -> bytes:
        try:
            with self._trio.fail_after(seconds):
                return await read
        except Exception as exception:
            if type(exception).__name__ == "TooSlowError":
                raise TimeoutError from exception
            raise

    def close(self) -> None:
        """A scope ends with its wait."""


Watch: TypeAlias = _AsyncioWatch | _TrioWatch
"""Awaits a read for so many seconds at most, then raises `TimeoutError`."""
