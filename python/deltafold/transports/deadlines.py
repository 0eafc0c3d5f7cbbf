"""Deadlines for the blocking reads of httpx and httpx2.

In: the `network_stream` of httpcore, from which a connection is read.  Out: the same stream, whose
`read` obeys deadlines.

Laws: httpcore reads the limit of a request once and applies it to every `recv`. A server that sends
one byte at a time therefore never exceeds it. A bounded stream applies the time until the deadline
instead.  A read of other code keeps its own limit.  A `read` that was replaced for a rest is put
back after it, so that later requests of the caller do not pay for it.  Nothing runs beside the
read: no thread, no timer.  A finalizer or a signal handler may read a rest at any time, so that the
lock is one that a thread may take twice.

Source: httpcore 1.0.9 and httpcore2 2.16, `NetworkStream.read(max_bytes, timeout)` (documented as
the interface of network backends) and the `trace` extension.
"""

import os
import sys
import time
import weakref
from threading import RLock, get_ident
from types import TracebackType
from typing import ClassVar, Final, Protocol, cast

# httpcore requires a number even without a limit, for streams that cannot be bounded.
_NO_LIMIT_SECONDS: Final = 24 * 3600.0


class _Change:
    """The lock that is held while `read` is replaced or put back.

    Once a body has ended, its connection may serve another thread.
    """

    lock: ClassVar = RLock()

    @classmethod
    def renew(cls) -> None:
        """Forget a lock that another thread held at a fork, which is not in the child."""
        cls.lock = RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_Change.renew)


class LateReadError(TimeoutError):
    """A read was due to end before it began: many small reads used up the time."""


class UnlimitedReadsError(Exception):
    """The reads of a stream cannot be limited."""


class ReadLimit(float):
    """Read limit of one request: httpcore sees seconds, a bounded stream sees the deadline.

    Attributes:
        until: the deadline by `time.monotonic()`; None is no deadline.
    """

    __slots__ = ("until",)

    until: float | None

    @classmethod
    def of(cls, seconds: float | None) -> "ReadLimit":
        """Make a limit that begins now."""
        limit = cls(_NO_LIMIT_SECONDS if seconds is None else seconds)
        limit.allow(seconds)
        return limit

    def allow(self, seconds: float | None) -> None:
        """Let the reads to come take so many seconds altogether, from now on."""
        self.until = None if seconds is None else time.monotonic() + seconds


class _Stream(Protocol):
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes: ...


class _BoundedReads:
    """Replacement of the `read` of one stream.

    Attributes:
        is_kept: true if a Model uses the connection; the replacement is then permanent.
        rests: the deadlines of rests, by thread. Once a body has ended, its connection may serve
            another thread at any time.
    """

    __slots__ = ("_stream", "is_kept", "rests")

    def __init__(self, stream: object) -> None:
        # The stream holds this object.
        self._stream = weakref.ref(stream)
        self.is_kept = False
        self.rests: dict[int, float] = {}

    def __call__(self, max_bytes: int, timeout: float | None = None) -> bytes:
        until = timeout.until if isinstance(timeout, ReadLimit) else None
        if isinstance(timeout, ReadLimit):
            timeout = None
        if self.rests:
            rest = self.rests.get(get_ident())
            if rest is not None:
                until = rest if until is None else min(rest, until)
        if until is not None:
            left = until - time.monotonic()
            if left <= 0:
                raise LateReadError("the time limit of this read has passed")
            timeout = left if timeout is None else min(timeout, left)
        stream = self._stream()
        return cast("type[_Stream]", type(stream)).read(cast("_Stream", stream), max_bytes, timeout)

    @property
    def is_needed(self) -> bool:
        """Whether some read has to obey a deadline."""
        return self.is_kept or bool(self.rests)

    def put_back(self, stream: object) -> None:
        """Give a stream its own `read` back, unless some read needs this one."""
        members = vars(stream)
        if not self.is_needed and members.get("read") is self:
            members.pop("read", None)


def bound_reads(stream: object) -> bool:
    """Make all reads of a stream obey `ReadLimit` from now on; False where they cannot."""
    with _Change.lock:
        bounded = _bounded(stream)
        if bounded is None:
            return False
        bounded.is_kept = True
        # A finalizer may have put the stream's own `read` back meanwhile.
        return _bounded(stream) is bounded or bound_reads(stream)


class RestWithin:
    """Lets the reads of this thread end at a deadline, while it is entered.

    >>> with RestWithin(stream, time.monotonic() + 0.25):
    ...     chunk = next(chunks, None)

    Args:
        stream: the `network_stream` of a response.
        until: the deadline, by `time.monotonic()`.

    Raises:
        UnlimitedReadsError: on entering: the reads of this stream cannot be limited.
    """

    __slots__ = ("_bounded", "_outer", "_stream", "_until")

    _bounded: _BoundedReads
    _outer: float | None

    def __init__(self, stream: object, until: float) -> None:
        self._stream = stream
        self._until = until

    def __enter__(self) -> None:
        stream, thread = self._stream, get_ident()
        with _Change.lock:
            while True:
                bounded = _bounded(stream)
                if bounded is None:
                    name = type(stream).__qualname__
                    raise UnlimitedReadsError(f"the reads of a {name} cannot be limited")
                self._bounded, self._outer = bounded, bounded.rests.get(thread)
                bounded.rests[thread] = self._until
                # A finalizer may have put the stream's own `read` back meanwhile.
                if _bounded(stream) is bounded:
                    return
                bounded.rests.pop(thread, None)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        bounded, thread = self._bounded, get_ident()
        if self._outer is None:
            bounded.rests.pop(thread, None)
        else:
            bounded.rests[thread] = self._outer
        with _Change.lock:
            bounded.put_back(self._stream)


def bound_reads_of_caller() -> None:
    """Bound the stream of the connection that calls a `trace` extension.

    httpcore names the stage of a request there, but not its connection, which is the `self` of one
    of the calling frames.  A version that keeps its stream elsewhere is not bounded: then its limit
    holds for each `recv` alone.
    """
    # Documented for CPython; nothing else leads there.
    frame = sys._getframe(2)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as said
    while frame is not None:
        stream: object = getattr(frame.f_locals.get("self"), "_network_stream", None)
        if stream is not None:
            bound_reads(stream)
            return
        frame = frame.f_back  # type: ignore[assignment]  # the annotation of the first frame


def _bounded(stream: object) -> _BoundedReads | None:
    members = getattr(stream, "__dict__", None)
    if not isinstance(members, dict) or members is not getattr(stream, "__dict__", None):
        return None
    if not callable(getattr(type(stream), "read", None)):
        return None
    known = cast("dict[str, object]", members)
    found = known.get("read") or known.setdefault("read", _BoundedReads(stream))
    return found if isinstance(found, _BoundedReads) else None
