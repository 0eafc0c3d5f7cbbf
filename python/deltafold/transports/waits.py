"""Waits: the tries of one request, the limits of their waits, and what follows a failure.

In: a request, the limits of its call, and the failures of its client.  Out: the settings of the
next try, whether there is one, and the limit that was exceeded.

Laws: those of `transports/http.py`: a request is sent once more only if its used connection closed
before a byte of the answer, and then on a new connection. A try that waits for a free connection is
no request yet. httpx shows such a wait by its end alone. After a second, the request therefore
waits again, behind those that came meanwhile. aiohttp shows it to a look at its coroutine.
"""

from collections.abc import Mapping
from time import monotonic
from typing import Final, Protocol, cast

from deltafold.contract.log import LOGGER
from deltafold.transports.deadlines import ReadLimit, bound_reads_of_caller
from deltafold.transports.lost_connections import (
    AT_ONCE_SECONDS,
    MAX_REFUSALS,
    NewConnection,
    UsedConnectionError,
    is_closed,
    unanswered_by_aiohttp,
    unanswered_by_httpcore,
    was_used,
)
from deltafold.transports.pools import WAIT_SECONDS, waits_in_pool, warn_of_wait
from deltafold.transports.requests import HttpRequest
from deltafold.transports.secrets import shown_url
from deltafold.transports.timeouts import Limit, Limits, TaskWatch, Watch, is_timeout

# Names of exceptions of the clients, and of this package, and the stage that took too long.
_STAGES: Final = {
    "ConnectTimeout": "connect",
    "ConnectionTimeoutError": "connect",
    "ReadTimeout": "answer",
    "WriteTimeout": "answer",
    "LateReadError": "answer",
    "SocketTimeoutError": "answer",
    "ExpiredError": "answer",
    "PoolTimeout": "pool",
    "TimeoutError": "total",
}


class _TracedRequest(Protocol):
    """Request of httpcore."""

    method: bytes
    extensions: dict[str, object]


# Stages that httpcore reports to a `trace` extension, without the prefix `http11.` or `http2.`.
_REQUEST_GOES_OUT: Final = ".send_request_headers.started"


class Waits:
    """The tries of one request: their limits, the limit that a failure means, and what follows it.

    Attributes:
        limits: the limits of the call.
        connect: the limit that ends the wait for a connection to be made.
        pool: the limit that ends the wait for a free connection.
        answer: the limit that ends the wait for the headers.
    """

    __slots__ = (
        "_client",
        "_has_waited",
        "_is_again",
        "_request",
        "_sent",
        "_waits_on",
        "answer",
        "connect",
        "limits",
        "pool",
    )

    limits: Limits
    connect: Limit
    pool: Limit
    answer: Limit

    def __init__(self, client: object, request: HttpRequest, limits: Limits) -> None:
        self._client = client
        self._request = request
        self.limits = limits
        self._sent: float | None = None
        self._is_again = self._has_waited = self._waits_on = False

    def goes_on(self, failure: Exception) -> bool:
        """Return whether the request is to be handed to the client again after a failure."""
        return self._goes_on_waiting(failure) or self._was_lost(failure)

    def missed(self, exception: Exception) -> TimeoutError | None:
        """Return the error that names the exceeded limit; None if no limit was exceeded."""
        if is_timeout(exception):
            for base in type(exception).__mro__:
                stage = _STAGES.get(base.__name__)
                if stage is None:
                    continue
                limit = self._limit_of(stage)
                if self.limits.has(limit):
                    return self.limits.missed(limit)
        return None

    def _limit_of(self, stage: str) -> Limit:
        if stage == "connect":
            return self.connect
        if stage == "pool":
            return self.pool
        return self.answer if stage == "answer" else "total"

    def _pool_seconds(self) -> float | None:
        """Return how long this try may wait for a free connection: a second, then the rest."""
        if not self._has_waited:
            self.pool, seconds = self.limits.of("pool")
            self._waits_on = seconds is None or seconds > WAIT_SECONDS
            return WAIT_SECONDS if self._waits_on else seconds
        whole = self.limits.timeouts.pool
        rest = None if whole is None else max(whole - WAIT_SECONDS, 0.0)
        seconds = self.limits.left(rest)
        self.pool = "pool" if seconds == rest else "total"
        return seconds

    def _goes_on_waiting(self, failure: Exception) -> bool:
        """Return whether the request waits longer for a free connection, after the first second."""
        if self._has_waited or not self._waits_on or type(failure).__name__ != "PoolTimeout":
            return False
        self._has_waited = True
        warn_of_wait(self._client, self._request.url)
        return True

    def _was_lost(self, failure: Exception) -> bool:
        """Return whether the request is sent once more, because its connection was lost."""
        sent = self._sent
        if sent is None or self._is_again or not self._request.resend_lost:
            return False
        if monotonic() - sent > AT_ONCE_SECONDS:
            return False
        if not is_closed(failure) or not self._is_unanswered(failure):
            return False
        self._is_again, self._sent = True, None
        LOGGER.info(
            "%r: the connection closed before a byte of the answer; the request is sent once more",
            shown_url(self._request.url),
        )
        return True

    def _is_unanswered(self, failure: Exception) -> bool:
        return unanswered_by_httpcore(failure)


class BlockingWaits(Waits):
    """Limits that httpx applies itself, because nothing runs beside a thread that waits."""

    __slots__ = ("_new", "_read")

    def __init__(self, client: object, request: HttpRequest, limits: Limits) -> None:
        super().__init__(client, request, limits)
        self._new: NewConnection | None = None

    def extensions(self) -> dict[str, object]:
        """Return the extensions of the next try."""
        self.connect, connect_seconds = self.limits.of("connect")
        self.answer, answer_seconds = self.limits.of("first_byte")
        self._read = ReadLimit.of(answer_seconds)
        if self._is_again:
            self._new = NewConnection()
        # The names of httpx's extension.
        seconds: dict[str, float | None] = {
            "connect": connect_seconds,
            "read": self._read,
            "write": answer_seconds,
            "pool": self._pool_seconds(),
        }
        return {"timeout": seconds, "trace": self.trace}

    def allow(self, seconds: float | None) -> None:
        """Set the limit of the next read, in seconds."""
        self._read.allow(seconds)

    def trace(self, stage: str, info: Mapping[str, object]) -> None:
        """Begin the limit of the headers when the request is sent; a `trace` extension."""
        if self._new is not None:
            self._new.stage(stage, info)
        if not stage.endswith(_REQUEST_GOES_OUT):
            return
        request = cast("_TracedRequest", info["request"])
        # The request of a tunnel goes out before the caller's.
        if request.method != b"CONNECT":
            request.extensions.pop("trace", None)
        bound_reads_of_caller()
        self.answer, seconds = self.limits.of("first_byte")
        self.allow(seconds)
        self._sent = monotonic()


class AwaitedWaits(Waits):
    """Limits of a `Watch`, which ends the wait of a task.

    Attributes:
        watch: the watch.
        is_open: whether the headers have come.
        first_seconds: how long the first wait may take; the watch is set again during it.
    """

    __slots__ = ("first_seconds", "is_open", "watch")

    def __init__(self, client: object, request: HttpRequest, limits: Limits, watch: Watch) -> None:
        super().__init__(client, request, limits)
        self.watch = watch
        self.connect = "connect"
        self.answer, self.first_seconds = "total", limits.of("total")[1]
        self.is_open = False

    def begin_answer(self) -> None:
        """Begin the limit of the headers.  The body may go out after these have come."""
        if not self.is_open:
            self.answer = self.limits.allow("first_byte", self.watch)
            self._sent = monotonic()


class AwaitedHttpxWaits(AwaitedWaits):
    """Limits of a request through httpx: the watch has all but those of a connection."""

    __slots__ = ()

    def extensions(self) -> dict[str, object]:
        """Return the extensions of the next try."""
        # Where the headers cannot be written, the body does not begin.
        self._sent = monotonic()
        seconds: dict[str, float | None] = {
            "connect": self._request.timeouts.connect,
            "read": None,
            "write": None,
            "pool": self._pool_seconds(),
        }
        if not self._is_again:
            return {"timeout": seconds}
        return {"timeout": seconds, "trace": NewConnection().stage_async}


class AiohttpWaits(AwaitedWaits):
    """Limits of a request through aiohttp, whose connections show more than its settings limit."""

    __slots__ = ("_is_refused", "_parser", "_refusals", "_sending", "_step", "_waited")

    def __init__(self, client: object, request: HttpRequest, limits: Limits, watch: Watch) -> None:
        super().__init__(client, request, limits, watch)
        self._parser: object = None
        self._is_refused, self._refusals = False, 0

    def begin_body(self, writer: object) -> None:
        """Begin the limit of the headers, which go out with the body.

        Args:
            writer: aiohttp's writer of the body.

        Raises:
            UsedConnectionError: nothing was sent: this try must have a new connection.
        """
        protocol = cast("object", getattr(writer, "protocol", None))
        self._parser = None
        if was_used(protocol):
            if self._is_again:
                self._is_refused = True
                raise UsedConnectionError
            self._parser = cast("object", getattr(protocol, "_parser", None))
        if isinstance(self.watch, TaskWatch):
            self.watch.extend = None
        self.begin_answer()

    def goes_on(self, failure: Exception) -> bool:
        """Return whether the request is to be handed to the client again after a failure."""
        if not self._is_refused:
            return self._was_lost(failure)
        self._is_refused = False
        self._refusals += 1
        return self._refusals <= MAX_REFUSALS

    def look_after(self, sending: object) -> None:
        """Look at an unsent request once a second: it may wait for a free connection.

        Args:
            sending: what `ClientSession.request` has returned.
        """
        if isinstance(self.watch, TaskWatch):
            self._sending, self._waited = sending, 0.0
            self.first_seconds = self._next_step()
            self.watch.extend = self._look

    def _next_step(self) -> float:
        pool = self.limits.timeouts.pool
        step = WAIT_SECONDS if pool is None else min(WAIT_SECONDS, pool - self._waited)
        self._step = cast("float", self.limits.left(step))
        return self._step

    def _look(self) -> float | None:
        """Return the seconds until the next look, None if a limit has passed."""
        if self.limits.left(None) == 0:
            return None
        if waits_in_pool(self._sending):
            self._waited += self._step
            if self._waited >= WAIT_SECONDS and not self._has_waited:
                self._has_waited = True
                warn_of_wait(self._client, self._request.url)
            pool = self.limits.timeouts.pool
            if pool is not None and self._waited >= pool:
                self.answer = "pool"
                return None
        return self._next_step()

    def _is_unanswered(self, failure: Exception) -> bool:
        return self._parser is not None and unanswered_by_aiohttp(failure, self._parser)
