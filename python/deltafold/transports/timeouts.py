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
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self, TypeAlias, TypeVar, cast

from deltafold._core import CallLimits, LoopTimer, TaskWatch

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
    """Limits of the waiting times of a call, in seconds; None removes a limit.

    The longest limit is 2,000,000 seconds (23 days): a longer one overflows the timers of sockets.

    >>> deltafold.load_model("openai/gpt-5", timeouts=Timeouts(idle=30, total=300))

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


class Limits(CallLimits):
    """The timeouts of a call that has begun, and the errors that name them."""

    __slots__ = ()

    def has(self, limit: Limit) -> bool:
        """Return whether the limit is set."""
        return getattr(self.timeouts, limit) is not None

    def failed(self, raised: BaseException, limit: Limit | None, is_late: bool) -> BaseException:
        """Return the exception to raise where a read within a limit has raised this one.

        Args:
            raised: the exception of the read.
            limit: the limit that the read would have reached first.
            is_late: whether the read was cancelled because it took too long.
        """
        if limit is None or not (is_late or is_timeout(raised)):
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
    if timer is None or not timer.is_of(loop):
        timer = _LAST.timer = LoopTimer(loop)
    return TaskWatch(timer)


class _Last(threading.local):
    """The timer of the event loop that the thread ran last."""

    timer: LoopTimer | None = None


_LAST: Final = _Last()


class ExpiredError(TimeoutError):
    """A wait of a `Watch` took too long."""


class _CancelScope(Protocol):
    deadline: float

    @property
    def cancelled_caught(self) -> bool: ...


class _Trio(Protocol):
    def CancelScope(self) -> AbstractContextManager[_CancelScope, bool]: ...  # noqa: N802 - trio's name
    def current_time(self) -> float: ...


class ScopeWatch:
    """Limiter of waits under trio, each inside of a cancel scope."""

    __slots__ = ("_scope", "_trio")

    def __init__(self) -> None:
        # Without asyncio, the caller has imported trio.
        self._trio = cast("_Trio", sys.modules["trio"])
        self._scope: _CancelScope | None = None

    @contextmanager
    def within(self, seconds: float | None) -> Generator[None]:
        """Begin a wait of so many seconds at most; None removes the limit."""
        try:
            with self._trio.CancelScope() as self._scope:
                self.allow(seconds)
                yield
                return
            raise ExpiredError
        finally:
            self._scope = None

    async def __call__(self, seconds: float | None, waiting: Awaitable[T]) -> T:
        """Wait for a read."""
        with self.within(seconds):
            return await waiting

    def allow(self, seconds: float | None) -> None:
        """Let the wait take so many seconds from now on; None removes the limit."""
        if self._scope is not None:
            now = self._trio.current_time()
            self._scope.deadline = math.inf if seconds is None else now + seconds


Watch: TypeAlias = TaskWatch | ScopeWatch
"""Limits waits: `with watch.within(seconds)` raises `ExpiredError` after so many seconds."""

LimitsAndWatch: TypeAlias = tuple[Limits, Watch]
"""The limits of a call, and the watch that ends a wait which exceeds them."""
