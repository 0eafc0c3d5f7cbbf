"""HTTP: sends a request through a client and returns the bytes of the response.

In: `HttpRequest`, and a client of httpx, httpx2 or aiohttp, or a `Transport`.
Out: `Source` or `AsyncSource`, unread, with status and headers.

Laws: an HTTP client is imported only to make one; a client is recognised by its class. A response
of any status is returned, because its body describes the error. Nothing is sent twice, except to
follow a redirect that keeps the method and the body (307, 308) to the same origin, which may
receive the key. A limit that is exceeded is a `TimeoutError` that names it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
)
from urllib.parse import urljoin, urlsplit

from deltafold._core import AsyncTimedChunks
from deltafold.exceptions import MisuseError
from deltafold.transports.deadlines import ReadLimit, bound_reads_of_caller
from deltafold.transports.draining import adrain, drain
from deltafold.transports.packages import (
    EXTRAS,
    MAX_CONNECTIONS,
    MAX_IDLE_CONNECTIONS,
    import_package,
)
from deltafold.transports.requests import HttpRequest
from deltafold.transports.responses import source_of, source_of_aiohttp, source_of_httpx
from deltafold.transports.secrets import Redactor, secrets_of_environment, shown_url
from deltafold.transports.sources import AsyncSource, Source, Transport
from deltafold.transports.timeouts import (
    Limit,
    Limits,
    ScopeWatch,
    TimedChunks,
    Watch,
    is_timeout,
    under_asyncio,
    watch,
)

if TYPE_CHECKING:
    import aiohttp
    import httpx

__all__ = [
    "ClientKind",
    "RedirectError",
    "aclose_http_client",
    "close_http_client",
    "http_client_kind",
    "make_http_client",
    "open_http",
    "open_http_async",
]

T = TypeVar("T")
ClientKind: TypeAlias = Literal["synchronous", "asynchronous"]

_MAX_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class RedirectError(Exception):
    """The server redirected the request to a place that the client must not follow by itself."""


_Package: TypeAlias = Literal["httpx", "aiohttp"]

# Package and name of the class, its kind, and the interface that it implements.
_CLIENTS: Final[Mapping[tuple[str, str], tuple[ClientKind, _Package]]] = {
    ("httpx", "Client"): ("synchronous", "httpx"),
    ("httpx", "AsyncClient"): ("asynchronous", "httpx"),
    ("httpx2", "Client"): ("synchronous", "httpx"),
    ("httpx2", "AsyncClient"): ("asynchronous", "httpx"),
    ("aiohttp", "ClientSession"): ("asynchronous", "aiohttp"),
}


def http_client_kind(client: object) -> ClientKind | None:
    """Return how a client waits; None for a `Transport`, which does both, and for other objects.

    >>> http_client_kind(httpx.AsyncClient())
    'asynchronous'
    """
    known = _known(client)
    return None if known is None else known[0]


def open_http(client: object, request: HttpRequest) -> Source:
    """Send a request and return its response, unread.

    Args:
        client: `httpx.Client`, `httpx2.Client` or a `Transport`.
        request: the request.

    Raises:
        MisuseError: the client is asynchronous, or not an HTTP client.
        TimeoutError: a limit was exceeded; the message names it.
        RedirectError: the server redirects to another origin, or asks for another method.
        Exception: any exception of the client when it cannot reach the server.
    """
    own: type = type(client)
    known = _known_class(own)
    if known is None and isinstance(client, Transport):
        return client.open(request)
    _package_of(client, known, "synchronous")
    limits = Limits(request.timeouts)
    for _ in range(_MAX_REDIRECTS):
        source = _open_httpx(cast("httpx.Client", client), request, limits)
        try:
            onward = _redirected(request, source.status, source.headers)
            if onward is None:
                return source
            drain(source)
        except BaseException:
            source.close()
            raise
        source.close()
        request = onward
    raise RedirectError(f"{shown_url(request.url)}: redirected {_MAX_REDIRECTS} times")


async def open_http_async(client: object, request: HttpRequest) -> AsyncSource:
    """Send a request and return its response, unread; the asynchronous form of `open_http`.

    Args:
        client: `httpx.AsyncClient`, `httpx2.AsyncClient`, `aiohttp.ClientSession` or a `Transport`.
        request: the request.

    Raises:
        MisuseError: the client is synchronous, not an HTTP client, or made for another event loop.
    """
    own: type = type(client)
    known = _known_class(own)
    if known is None and isinstance(client, Transport):
        return await client.open_async(request)
    if known is not None and known[0] == "asynchronous":
        way = _WAYS[known[1]]
    else:
        way = _WAYS[_package_of(client, known, "asynchronous")]
    limits = Limits(request.timeouts)
    waiting = watch()
    for _ in range(_MAX_REDIRECTS):
        waits = _AwaitedWaits(limits, waiting)
        sending = way.send(client, request, waits)
        try:
            # A request may wait for a free connection of the pool as long as the call may take.
            with waiting.within(limits.of("total")[1]):
                response = await sending
        except Exception as exception:
            missed = waits.missed(exception)
            if missed is None:
                raise
            raise missed from exception
        waits.is_open = True
        source = way.source(response, request, limits, waiting)
        onward = await _onward(request, source) if source.status in _REDIRECTS else None
        if onward is None:
            # `adrain` shortens the limits that a source names, and these are those of the call.
            source.limits = limits
            return source
        request = onward
    raise RedirectError(f"{shown_url(request.url)}: redirected {_MAX_REDIRECTS} times")


async def _onward(request: HttpRequest, source: AsyncSource) -> HttpRequest | None:
    """Close the source of a redirect and return the next request; None for any other response."""
    try:
        onward = _redirected(request, source.status, source.headers)
        if onward is None:
            return None
        if source.has_rest:
            await adrain(source)
    except BaseException:
        await source.close()
        raise
    await source.close()
    return onward


def make_http_client(kind: ClientKind, transport: str = "httpx2") -> object:
    """Make a client with the settings of the adapters.

    The client allows many connections, and HTTP/2 if `h2` is installed.

    Proxies and certificates are those of the environment (`HTTPS_PROXY`, `NO_PROXY`,
    `SSL_CERT_FILE`).  The caller closes the client.

    >>> client = make_http_client("asynchronous", "aiohttp")

    Args:
        kind: synchronous or asynchronous.
        transport: the package: `httpx`, `httpx2`, or `aiohttp`, which is asynchronous only and the
            fastest for many streams.

    Raises:
        MisuseError: the transport is not known or not installed, it does not support this kind, or
            it is made outside of the event loop that it needs.
    """
    if transport not in EXTRAS:
        raise MisuseError(f"unknown transport {transport!r}; known: {', '.join(EXTRAS)}")
    if transport == "aiohttp":
        if kind == "synchronous":
            raise MisuseError("transport: aiohttp is asynchronous only; httpx is both")
        return _make_aiohttp_session()
    package = import_package(transport)
    limits = package.Limits(
        max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_IDLE_CONNECTIONS
    )
    make = package.Client if kind == "synchronous" else package.AsyncClient
    try:
        client: object = make(limits=limits, http2=find_spec("h2") is not None)
    except Exception as exception:
        # Of a proxy that the environment names, for one: the message may quote its URL.
        redacted = Redactor(secrets_of_environment()).exception(exception)
        if redacted is exception:
            raise
        raise redacted from redacted.__cause__
    return client


def close_http_client(client: object) -> None:
    """Close a synchronous client and its idle connections.

    Raises:
        MisuseError: the client is asynchronous, or no HTTP client.
    """
    _package_of(client, _known(client), "synchronous")
    cast("httpx.Client", client).close()


async def aclose_http_client(client: object) -> None:
    """Close an asynchronous client and its idle connections.

    Raises:
        MisuseError: the client is synchronous, or no HTTP client.
    """
    if _package_of(client, _known(client), "asynchronous") == "aiohttp":
        await cast("aiohttp.ClientSession", client).close()
    else:
        await cast("httpx.AsyncClient", client).aclose()


def _known(client: object) -> tuple[ClientKind, _Package] | None:
    own: type = type(client)
    return _known_class(own)


@lru_cache(maxsize=128)
def _known_class(kind: type) -> tuple[ClientKind, _Package] | None:
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        known = _CLIENTS.get((package, base.__name__))
        if known is not None:
            return known
    return None


def _package_of(
    client: object, known: tuple[ClientKind, _Package] | None, kind: ClientKind
) -> _Package:
    if known is not None and known[0] == kind:
        return known[1]
    name = f"{type(client).__module__}.{type(client).__qualname__}"
    if known is None:
        raise MisuseError(
            f"client: {name} is not a supported HTTP client; supported: "
            "httpx.Client, httpx.AsyncClient, those of httpx2, and aiohttp.ClientSession"
        )
    raise MisuseError(f"client must be {kind}, and a {name} is {known[0]}")


def _redirected(
    request: HttpRequest, status: int, headers: Mapping[str, str]
) -> HttpRequest | None:
    """Return the request to send next, None if the response is not a redirect.

    Source: RFC 9110, sections 15.4.2 to 15.4.9: 307 and 308 keep the method, the others let a
    client turn POST into GET, which would lose the request.
    """
    location = headers.get("location")
    if status not in _REDIRECTS or location is None:
        return None
    try:
        target = urljoin(request.full_url, location)
        follows = status in {307, 308} and may_follow(request.full_url, target)
    except ValueError:
        raise RedirectError(
            f"HTTP {status} from {shown_url(request.url)}: its Location is no URL; "
            "check the base URL"
        ) from None
    if follows:
        return replace(request, url=target, query={})
    raise RedirectError(
        f"HTTP {status} from {shown_url(request.url)} to {shown_url(target)}: use that address "
        "instead"
    )


def may_follow(url: str, target: str) -> bool:
    """Return whether a request with a key may follow a redirect.

    It may go to the same origin, or to TLS on the same host.
    """
    old, new = urlsplit(url), urlsplit(target)
    if old.hostname != new.hostname:
        return False
    if (old.scheme, old.port) == (new.scheme, new.port):
        return True
    return (old.scheme, old.port, new.scheme, new.port) == ("http", None, "https", None)


class _Waits:
    """Limits of the wait for the headers, and the limit that each failure of a client means."""

    __slots__ = ("answer", "connect", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.connect: Limit = "connect"
        self.answer: Limit = "first_byte"

    def missed(self, exception: Exception) -> TimeoutError | None:
        """Return the error of the exceeded limit in place of a timeout of the client."""
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


class _BlockingWaits(_Waits):
    """Limits that httpx applies itself, because nothing runs beside a thread that waits."""

    __slots__ = ("_read", "seconds")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.connect, connect_seconds = limits.of("connect")
        self.answer, answer_seconds = limits.of("first_byte")
        _, whole_seconds = limits.of("total")
        self._read = ReadLimit.of(answer_seconds)
        # The names of httpx's extension.  A request may wait for a free connection of the pool as
        # long as the call may take: waiting there is the caller's own doing.
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


class _AwaitedWaits(_Waits):
    """Limits of a `Watch`, which ends the wait of a task."""

    __slots__ = ("is_open", "watch")

    def __init__(self, limits: Limits, watch: Watch) -> None:
        self.limits = limits
        self.watch = watch
        self.connect: Limit = "connect"
        self.answer: Limit = "total"
        self.is_open = False

    def begin_answer(self) -> None:
        """Begin the limit of the headers.  The body may go out after these have come."""
        if not self.is_open:
            self.answer = self.limits.allow("first_byte", self.watch)


class _TracedRequest(Protocol):
    method: bytes
    extensions: dict[str, object]


# Stages that httpcore reports to a `trace` extension, without the prefix `http11.` or `http2.`.
_REQUEST_GOES_OUT: Final = ".send_request_headers.started"


def _open_httpx(client: "httpx.Client", request: HttpRequest, limits: Limits) -> Source:
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
    client: "httpx.AsyncClient", request: HttpRequest, waits: _AwaitedWaits
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
    """Parse a URL, which takes httpx as long as decoding a hundred events."""
    return cast("httpx.URL", kind(url))


def _sending_aiohttp(
    session: "aiohttp.ClientSession", request: HttpRequest, waits: _AwaitedWaits
) -> "Awaitable[aiohttp.ClientResponse]":
    if isinstance(waits.watch, ScopeWatch):
        raise MisuseError("client: aiohttp runs under asyncio only; httpx runs here")
    body: Any = b""
    if request.content:
        body = _announced_body()(request.content)
        body.begins = waits.begin_answer
    # Only the sending of a body can be noticed.
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


def _unlimit_reads(response: "aiohttp.ClientResponse") -> None:
    """Remove the limit of the headers, which would go on counting between the reads of the body."""
    connection = response.connection
    if connection is not None and connection.protocol is not None:
        connection.protocol.read_timeout = None


class _Way(NamedTuple):
    """How the clients of one package send a request, and the source of their response."""

    send: Callable[[Any, HttpRequest, _AwaitedWaits], Awaitable[Any]]
    source: Callable[[Any, HttpRequest, Limits, Watch], AsyncSource]


def _timed_httpx(
    response: "httpx.Response", _: HttpRequest, limits: Limits, waiting: Watch
) -> AsyncSource:
    source = source_of_httpx(response, is_own=True)
    source.chunks = AsyncTimedChunks(source.chunks, limits, waiting)
    return source


def _timed_aiohttp(
    response: "aiohttp.ClientResponse", request: HttpRequest, limits: Limits, waiting: Watch
) -> AsyncSource:
    if not request.content:
        _unlimit_reads(response)
    return source_of_aiohttp(response, (limits, waiting))


_WAYS: Final[Mapping[_Package, _Way]] = {
    "httpx": _Way(_sending_httpx, _timed_httpx),
    "aiohttp": _Way(_sending_aiohttp, _timed_aiohttp),
}


@lru_cache(maxsize=32)
def _aiohttp_timeout(connect: float | None, read: float | None) -> "aiohttp.ClientTimeout":
    make: type[aiohttp.ClientTimeout] = import_package("aiohttp").ClientTimeout
    return make(sock_connect=connect, sock_read=read)


@lru_cache(maxsize=128)
def _aiohttp_url(url: str) -> Any:  # noqa: ANN401 - a class of a module that aiohttp brings
    # It is encoded: aiohttp would rewrite escapes that a signature counts on.
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


_BUFFER_BYTES: Final = 64 * 1024
"""What a body of aiohttp may hold before its connection waits; by itself it holds up to 512 KiB."""


def _make_aiohttp_session() -> object:
    package = import_package("aiohttp")
    if not under_asyncio():
        raise MisuseError("transport: an aiohttp session is made inside of a running event loop")
    connector = package.TCPConnector(limit=MAX_CONNECTIONS)
    session: object = package.ClientSession(
        connector=connector, trust_env=True, read_bufsize=_BUFFER_BYTES
    )
    return session
