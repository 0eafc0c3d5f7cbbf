"""Lost connections: whether a request whose connection closed may be sent once more.

In: the failure of a request, and the objects of its client that show the connection.  Out: whether
the connection had served an earlier request and closed before a byte of the answer; and a trace
that sends a request over a new connection only.

Laws: only a closed connection counts, no timeout. Missing evidence means no: a client, a version or
a transport that does not show its connection never sends a request twice. The evidence is read
after a failure, so that a call which succeeds does not pay for it.

Source: httpcore 1.0.9 and httpcore2 2.16 (`HTTP11Connection`, the `trace` extension), h11 0.16
(`Connection.trailing_data`, `Connection.their_state`), aiohttp 3.12 to 3.14
(`ClientResponse.start`, `HttpResponseParser.feed_data`).
"""

import errno
import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final, cast
from weakref import WeakSet

from deltafold.transports.timeouts import is_timeout

AT_ONCE_SECONDS: Final = 1.0
"""A server that has closed an idle connection resets a request within a round trip."""

MAX_REFUSALS: Final = 100
"""Reused connections that a second try gives up; a client made here keeps so many at most."""

_CLOSED: Final = frozenset(
    {"ReadError", "WriteError", "RemoteProtocolError", "ServerDisconnectedError", "ClientOSError"}
)
"""Exceptions of httpx and aiohttp for a connection that closed."""

_CLOSING: Final = frozenset(
    {None, errno.ECONNABORTED, errno.ECONNRESET, errno.EPIPE, errno.ESHUTDOWN}
)
"""Errors of a socket that the other side closed; no other one is known to be harmless."""

_CLOSING_TLS: Final = frozenset({"SSLEOFError", "SSLZeroReturnError"})

_PROBE_REASON: Final = "Nothing Before"
_PROBE: Final = f"HTTP/1.1 204 {_PROBE_REASON}\r\n\r\n".encode()
"""A whole answer, which a parser reads as such only if it has read no byte of another one."""

_used: WeakSet[object] = WeakSet()
"""Connections of aiohttp over which a request has gone out."""


class NoNewConnectionError(ConnectionError):
    """The request had to be sent once more, and the client gave it no new connection."""


class UsedConnectionError(Exception):
    """A request that may go out on a new connection only was given one that was used before."""


def is_closed(failure: Exception) -> bool:
    """Return whether a request failed because its connection closed."""
    names = {base.__name__ for base in type(failure).__mro__}
    if names.isdisjoint(_CLOSED) or is_timeout(failure):
        return False
    return all(
        cause.errno in _CLOSING or type(cause).__name__ in _CLOSING_TLS
        for cause in _causes(failure)
        if isinstance(cause, OSError)
    )


def unanswered_by_httpcore(failure: Exception) -> bool:
    """Return whether a used connection of httpcore closed before a byte of the answer.

    The connection is the `self` of the function that awaited the headers, in the traceback.
    HTTP/2 has another function, and is not resent: other requests share its connection.
    """
    frame = _frame_that_awaits(failure, "_receive_response_headers", "event")
    if frame is None:
        return False
    connection = frame.f_locals.get("self")
    state = cast("object", getattr(connection, "_h11_state", None))
    used = cast("object", getattr(connection, "_request_count", None))
    received = cast("object", getattr(state, "trailing_data", None))
    return (
        isinstance(used, int)
        and used > 1
        # After an answer that is no HTTP, it would be an error.
        and str(getattr(state, "their_state", None)) == "SEND_RESPONSE"
        and isinstance(received, tuple)
        and cast("tuple[object, ...]", received)[:1] == (b"",)
    )


def was_used(connection: object) -> bool:
    """Return whether a request has gone out over a connection of aiohttp, and note that one does.

    Args:
        connection: the protocol of the connection.
    """
    if connection is None or connection in _used:
        return connection is not None
    _used.add(connection)
    return False


def unanswered_by_aiohttp(failure: Exception, parser: object) -> bool:
    """Return whether a connection of aiohttp closed before a byte of the answer.

    Args:
        failure: the exception of the request.
        parser: the parser of the connection, which was used before.
    """
    if _frame_that_awaits(failure, "start", "message") is None:
        return False
    own: Any = parser
    try:
        # A parser that has begun a head goes on with that one. Blank lines begin no head.
        (((message, _),), _, _) = own.feed_data(_PROBE)
    except Exception:  # noqa: BLE001 - whatever the beginning of a head leads to
        return False
    return bool(message.reason == _PROBE_REASON)


class NewConnection:
    """`trace` extension of httpcore that lets a request go out on a new connection only.

    Before a byte is sent, httpcore closes a used connection and takes the next one.
    """

    __slots__ = ("_is_new", "_refusals")

    def __init__(self) -> None:
        self._is_new = False
        self._refusals = 0

    def stage(self, stage: str, info: Mapping[str, object]) -> None:
        """Look at a stage; a new connection begins with another one than the request.

        Raises:
            NoNewConnectionError: the client has too many used connections.
            Exception: that of httpcore which makes its pool take another connection.
        """
        # A used connection of HTTP/2 is shared: it cannot be given up.
        if not stage.startswith("http11."):
            self._is_new = True
            return
        request: Any = info.get("request")
        if self._is_new or stage != "http11.send_request_headers.started":
            return
        if request.method == b"CONNECT":  # of a tunnel, before the caller's request
            return
        self._refusals += 1
        package = sys.modules.get(type(request).__module__.partition(".")[0])
        refused = getattr(package, "ConnectionNotAvailable", None)
        if refused is None or self._refusals > MAX_REFUSALS:
            raise NoNewConnectionError("no new connection for a request that is sent once more")
        raise refused

    async def stage_async(self, stage: str, info: Mapping[str, object]) -> None:
        """Look at a stage of an asynchronous connection."""
        self.stage(stage, info)


def _causes(failure: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, each once."""
    seen: set[int] = set()
    one: BaseException | None = failure
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__


def _frame_that_awaits(failure: BaseException, function: str, answer: str) -> FrameType | None:
    """Return the frame of a function that waited for its first answer; None if it had one.

    Args:
        failure: the exception, in whose traceback the function is.
        function: the name of the function.
        answer: the local variable of the function that is set by each answer, an informational one
            (1xx) too. A function without it is another one.
    """
    for cause in _causes(failure):
        traceback = cause.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            code = frame.f_code
            if code.co_name == function and answer in code.co_varnames:
                return None if answer in frame.f_locals else frame
            traceback = traceback.tb_next
    return None
