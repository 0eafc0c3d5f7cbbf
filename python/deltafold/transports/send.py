"""Sending: hands a request to a client, within the limits of the call.

In: `HttpRequest`, and a client of httpx, httpx2 or aiohttp.  Out: `Source` or `AsyncSource` of the
response, whose chunks obey the limits.

Laws: the limit of the headers begins when the request is sent, not while it waits for a connection.
A redirect is not followed. An exception of the client that means an exceeded limit is a
`TimeoutError` that names it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.transports.deadlines import ReadLimit, bound_reads_of_caller
from deltafold.transports.packages import import_package
from deltafold.transports.requests import HttpRequest
from deltafold.transports.responses import source_of, source_of_aiohttp, source_of_httpx
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.timeouts import (
    Limit,
    Limits,
    LimitsAndWatch,
    ScopeWatch,
    TimedChunks,
    Watch,
    is_timeout,
)

if TYPE_CHECKING:
    import aiohttp
    import httpx

Package: TypeAlias = Literal["httpx", "aiohttp"]
"""The interface of a client: httpx2 has that of httpx."""


class _Waits:
    """Limits of the wait for the headers, and the limit that each failure of a client means."""

    __slots__ = ("answer", "connect", "limits")

    limits: Limits
    connect: Limit
    answer: Limit

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
        return self.answer if stage == "answer" else "total"


# Names of exceptions of the clients, and of this package, and the stage that took too long.
_STAGES: Final = {
    "ConnectTimeout": "connect",
    "ConnectionTimeoutError": "connect",
    "ReadTimeout": "answer",
    "WriteTimeout": "answer",
    "LateReadError": "answer",
    "SocketTimeoutError": "answer",
    "ExpiredError": "answer",
    "PoolTimeout": "total",
    "TimeoutError": "total",
}


class _TracedRequest(Protocol):
    """Request of httpcore."""

    method: bytes
    extensions: dict[str, object]


# Stages that httpcore reports to a `trace` extension, without the prefix `http11.` or `http2.`.
_REQUEST_GOES_OUT: Final = ".send_request_headers.started"


class _BlockingWaits(_Waits):
    """Limits that httpx applies itself, because nothing runs beside a thread that waits."""

    __slots__ = ("_read", "seconds")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.connect, connect_seconds = limits.of("connect")
        self.answer, answer_seconds = limits.of("first_byte")
        _, whole_seconds = limits.of("total")
        self._read = ReadLimit.of(answer_seconds)
        # The names of httpx's extension.  A request may wait for a free connection of the pool as
        # long as the call may take, because the caller has made the other requests.
        self.seconds: dict[str, float | None] = {
            "connect": connect_seconds,
            "read": self._read,
            "write": answer_seconds,
            "pool": whole_seconds,
        }

    def allow(self, seconds: float | None) -> None:
        """Set the limit of the next read, in seconds."""
        self._read.allow(seconds)

    def trace(self, stage: str, info: Mapping[str, object]) -> None:
        """Begin the limit of the headers when the request is sent; a `trace` extension."""
        if not stage.endswith(_REQUEST_GOES_OUT):
            return
        request = cast("_TracedRequest", info["request"])
        # The request of a tunnel goes out before the caller's.
        if request.method != b"CONNECT":
            request.extensions.pop("trace", None)
        bound_reads_of_caller()
        self.answer, seconds = self.limits.of("first_byte")
        self.allow(seconds)


class AwaitedWaits(_Waits):
    """Limits of a `Watch`, which ends the wait of a task."""

    __slots__ = ("is_open", "watch")

    def __init__(self, limits: Limits, watch: Watch) -> None:
        self.limits = limits
        self.watch = watch
        self.connect = "connect"
        self.answer = "total"
        self.is_open = False

    def begin_answer(self) -> None:
        """Begin the limit of the headers.  The body may go out after these have come."""
        if not self.is_open:
            self.answer = self.limits.allow("first_byte", self.watch)


def open_httpx(client: "httpx.Client", request: HttpRequest, limits: Limits) -> Source:
    """Send a request and return its response, unread.

    Raises:
        TimeoutError: a limit was exceeded.
        Exception: any other exception of the client.
    """
    waits = _BlockingWaits(limits)
    sent = _httpx_request(client, request, {"timeout": waits.seconds, "trace": waits.trace})
    try:
        response = client.send(sent, stream=True, follow_redirects=False)
    except Exception as exception:
        missed = waits.missed(exception)
        if missed is None:
            raise
        raise missed from exception
    source = source_of(response)
    source.chunks = TimedChunks(source.chunks, limits, waits.allow)
    return source


def _sending_httpx(
    client: "httpx.AsyncClient", request: HttpRequest, waits: AwaitedWaits
) -> "Awaitable[httpx.Response]":
    # The watch has all limits but that of a connection, so that httpx makes no timers.
    seconds: dict[str, float | None] = {
        "connect": request.timeouts.connect,
        "read": None,
        "write": None,
        "pool": None,
    }
    sent = _httpx_request(client, request, {"timeout": seconds})
    kind: type = type(sent.stream)
    sent.stream = _announced_stream(kind)(sent.stream, waits.begin_answer)
    return client.send(sent, stream=True, follow_redirects=False)


def _httpx_request(
    client: "httpx.Client | httpx.AsyncClient",
    request: HttpRequest,
    extensions: Mapping[str, object],
) -> "httpx.Request":
    kind: type = type(client.base_url)
    return client.build_request(
        request.method,
        _httpx_url(kind, request.full_url),
        headers=request.headers,
        content=request.content,
        extensions=extensions,
    )


@cache
def _announced_stream(kind: type) -> Any:  # noqa: ANN401 - a subclass of a class of httpx
    """Make a class of bodies that report their sending.

    A `trace` extension would cost two coroutines for each of its stages, and only httpcore has it.
    """
    base: Any = next((one for one in kind.__mro__ if one.__name__ == "AsyncByteStream"), kind)

    class AnnouncedStream(base):  # type: ignore[misc]  # of an untyped variable
        """Wraps the body of the request, which a subclass of the client may have changed."""

        def __init__(self, stream: _AnyStream, begins: Callable[[], None]) -> None:
            self.stream = stream
            self.begins = begins

        def __iter__(self) -> Iterator[bytes]:
            return iter(self.stream)

        def __aiter__(self) -> AsyncIterator[bytes]:
            self.begins()
            return aiter(self.stream)

        async def aclose(self) -> None:
            await self.stream.aclose()

    return AnnouncedStream


class _AnyStream(Protocol):
    """Body of a request of httpx."""

    def __iter__(self) -> Iterator[bytes]: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


@lru_cache(maxsize=128)
def _httpx_url(kind: type, url: str) -> "httpx.URL":
    """Parse a URL. httpx takes as long for that as the decoder for a hundred events."""
    return cast("httpx.URL", kind(url))


def _sending_aiohttp(
    session: "aiohttp.ClientSession", request: HttpRequest, waits: AwaitedWaits
) -> "Awaitable[aiohttp.ClientResponse]":
    if isinstance(waits.watch, ScopeWatch):
        raise MisuseError("client: aiohttp runs under asyncio only; httpx runs here")
    body: Any = b""
    if request.content:
        body = _announced_body()(request.content)
        body.begins = waits.begin_answer
    # Without a body nothing reports the sending, so that aiohttp applies the limit.
    read = None if request.content else waits.limits.of("first_byte")[1]
    return session.request(
        request.method,
        _aiohttp_url(request.full_url),
        headers=request.headers,
        data=body,
        allow_redirects=False,
        raise_for_status=False,
        timeout=_aiohttp_timeout(request.timeouts.connect, read),
    )


@lru_cache(maxsize=32)
def _aiohttp_timeout(connect: float | None, read: float | None) -> "aiohttp.ClientTimeout":
    make: type[aiohttp.ClientTimeout] = import_package("aiohttp").ClientTimeout
    return make(sock_connect=connect, sock_read=read)


@lru_cache(maxsize=128)
def _aiohttp_url(url: str) -> Any:  # noqa: ANN401 - a class of a module that aiohttp brings
    # The URL is encoded: aiohttp would rewrite escapes, and a signature would not match.
    return import_module("yarl").URL(url, encoded=True)


@cache
def _announced_body() -> Any:  # noqa: ANN401 - a subclass of a class that is not imported here
    """Make a class of bodies that report their sending, because aiohttp has no other hook."""
    payload: Any = import_module("aiohttp.payload")

    class AnnouncedBody(payload.BytesPayload):  # type: ignore[misc]  # of an untyped module
        begins: Callable[[], None]

        def write_with_length(self, writer: object, length: int | None) -> Awaitable[None]:
            self.begins()
            return super().write_with_length(writer, length)  # type: ignore[no-any-return]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - as above

    return AnnouncedBody


class ClientFunctions(NamedTuple):
    """Functions for the asynchronous clients of a package.

    Attributes:
        send: sends a request.
        source: makes the unread source of its response.
    """

    send: Callable[[Any, HttpRequest, AwaitedWaits], Awaitable[Any]]
    source: Callable[[Any, LimitsAndWatch, HttpRequest], AsyncSource]


def _source_of_httpx(
    response: "httpx.Response", timed: LimitsAndWatch, _: HttpRequest
) -> AsyncSource:
    return source_of_httpx(response, timed)


def _unlimit_reads(response: "aiohttp.ClientResponse") -> None:
    """Remove the limit of the headers, which would go on counting between the reads of the body."""
    connection = response.connection
    if connection is not None and connection.protocol is not None:
        connection.protocol.read_timeout = None


def _source_of_aiohttp(
    response: "aiohttp.ClientResponse", timed: LimitsAndWatch, request: HttpRequest
) -> AsyncSource:
    if not request.content:
        _unlimit_reads(response)
    return source_of_aiohttp(response, timed)


CLIENT_FUNCTIONS: Final[Mapping[Package, ClientFunctions]] = {
    "httpx": ClientFunctions(_sending_httpx, _source_of_httpx),
    "aiohttp": ClientFunctions(_sending_aiohttp, _source_of_aiohttp),
}
