"""Client of HTTP/1.1: a pool of connections, and requests on them.

In: `HttpRequest`s and their limits.  Out: `Exchange`s, whose status and headers have arrived.

Laws: a request is sent once, on a connection that its server had not closed. Requests that wait for
a connection are served in order. A cancelled request holds nothing. The client belongs to the event
loop that first used it.
"""

import asyncio
from ssl import SSLContext, create_default_context
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, cast

from deltafold.exceptions import MisuseError
from deltafold.transports.http1.connecting import Connection, connect
from deltafold.transports.http1.errors import ConnectionLostError, ProtocolViolationError
from deltafold.transports.http1.exchange import Exchange
from deltafold.transports.http1.request import request_head, target_of
from deltafold.transports.http1.routes import Route, Routes
from deltafold.transports.packages import MAX_CONNECTIONS, MAX_IDLE_CONNECTIONS, import_package
from deltafold.transports.requests import HttpRequest
from deltafold.transports.timeouts import Limits, under_asyncio, within

if TYPE_CHECKING:
    import httptools


# Less than servers and balancers wait before they close: 60 s and more.
_IDLE_SECONDS: Final = 15.0


class Http1Client:
    """A client of HTTP/1.1 under asyncio, made for streams: the C parser `httptools` and sockets.

    It supports http and https, also through proxies; it does not support HTTP/2, SOCKS or trio.  It
    accepts gzip and deflate, sends each request once and follows no redirect by itself.

    >>> async with Http1Client() as client:
    ...     model = AnthropicModel({"model_id": "claude-sonnet-4-5"}, client=client)

    Args:
        ssl: the TLS context; None makes that of `ssl.create_default_context()`, which reads
            `SSL_CERT_FILE`.
        proxy: `http://user:password@host:port`, for every request; None reads the environment
            (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).
        trust_env: whether proxies of the environment are used.
        max_connections: maximum number of open connections; further requests wait, as long as
            `Timeouts.total`.
        max_idle_connections: number of connections that are kept for later requests.
        idle_seconds: time for which they are kept.

    Raises:
        MisuseError: httptools is not installed, the proxy cannot be used, or the maximum of
            connections is 0.
    """

    def __init__(
        self,
        *,
        ssl: SSLContext | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        max_connections: int = MAX_CONNECTIONS,
        max_idle_connections: int = MAX_IDLE_CONNECTIONS,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> None:
        self._make_parser: type[httptools.HttpResponseParser] = import_package(
            "httptools"
        ).HttpResponseParser
        if max_connections < 1:
            raise MisuseError(f"max_connections must be at least 1, not {max_connections}")
        self._tls = ssl
        self._routes = Routes(proxy, trust_env=trust_env)
        self._max_connections = max_connections
        self._max_idle_connections = max_idle_connections
        self._idle_seconds = idle_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns = asyncio.Semaphore(max_connections)
        self._open: set[Connection] = set()
        self._none_open = asyncio.Event()
        # In the order in which they became idle.
        self._idle: dict[Connection, None] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    @property
    def open_connections(self) -> int:
        """Number of open connections, including idle ones."""
        return len(self._open)

    @property
    def idle_connections(self) -> int:
        """Number of idle connections."""
        return len(self._idle)

    async def send(self, request: HttpRequest, limits: Limits | None = None) -> Exchange:
        """Send a request and wait for the headers of its response.

        Args:
            request: the request.
            limits: the limits of a call that has begun; None begins one with the request's
                timeouts.

        Returns:
            The response: `status`, `headers`, an iterator over the chunks of the body, still
            compressed by `content-encoding`, and `aclose()`.

        Raises:
            MisuseError: the URL or a header cannot be sent, the client is closed, or it is used
                outside of its event loop.
            TimeoutError: a limit was exceeded; the message names it.
            ConnectionError: the connection failed, or the answer is not HTTP.
            ProtocolViolationError: the answer exceeds the limits of a response.
        """
        self._check_loop()
        limits = Limits(request.timeouts) if limits is None else limits
        target = target_of(request.full_url)
        route = self._routes.route_to(target)
        path, headers = target.path, request.headers
        if route.is_forwarded:
            path = f"http://{target.authority}{path}"
            headers = {**headers, **route.forwarded_headers}
        head = request_head(request.method, path, target, headers, len(request.content))
        await within(limits, "total", self._turns.acquire())
        try:
            connection = await self._connected(route, limits)
        except BaseException:
            self._turns.release()
            raise
        exchange = Exchange(
            connection, self._make_parser, self._ended, has_body=request.method != "HEAD"
        )
        try:
            exchange.write(head, request.content)
            await within(limits, "first_byte", exchange.head())
        except BaseException:
            exchange.abandon("the request was given up")
            raise
        return exchange

    async def aclose(self) -> None:
        """Close every connection, those that are being read too; may be called twice."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        if self._loop is None or self._loop.is_closed():
            return
        for connection in tuple(self._open):
            protocol = connection.transport.get_protocol()
            if isinstance(protocol, Exchange):
                protocol.abandon("the client was closed")
            connection.transport.abort()
        if self._open:
            await self._none_open.wait()

    def _check_loop(self) -> None:
        if not under_asyncio():
            raise MisuseError("client: httptools runs under asyncio only; httpx2 runs here")
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise MisuseError("client: this Http1Client belongs to another event loop")
        if self._closed:
            raise MisuseError("client: this Http1Client is closed")

    async def _connected(self, route: Route, limits: Limits) -> Connection:
        while (kept := self._kept(route)) is not None:
            try:
                # One turn of the loop polls the socket, the next one has read it. It has then seen
                # the end, if the server closed the connection meanwhile.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            except BaseException:
                kept.transport.abort()
                raise
            if kept.usable:
                return kept
        if self._idle and len(self._open) >= self._max_connections:
            self._drop(next(iter(self._idle)))
        connection = await connect(route, limits, self._tls_context, self._lost)
        if connection.spoke:
            raise ProtocolViolationError("the server sent bytes before the request")
        if self._closed or not connection.usable:
            connection.transport.abort()
            raise ConnectionLostError("the connection was closed before the request")
        self._open.add(connection)
        self._none_open.clear()
        return connection

    def _kept(self, route: Route) -> Connection | None:
        """Take an idle connection, that which was used last."""
        for connection in reversed(self._idle):
            if connection.route is route:
                del self._idle[connection]
                return connection
        return None

    def _tls_context(self) -> SSLContext:
        if self._tls is None:
            self._tls = create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    def _ended(self, connection: Connection, reusable: bool) -> None:
        """Take a connection back from an exchange."""
        self._turns.release()
        if not reusable:
            return
        if self._closed or not self._max_idle_connections:
            connection.transport.abort()
            return
        if len(self._idle) >= self._max_idle_connections:
            self._drop(next(iter(self._idle)))
        loop = cast("asyncio.AbstractEventLoop", self._loop)
        connection.idle_since = loop.time()
        self._idle[connection] = None
        if self._sweeping is None:
            self._sweeping = loop.call_later(self._idle_seconds, self._sweep)

    def _sweep(self) -> None:
        """Close connections that were idle for too long."""
        loop = cast("asyncio.AbstractEventLoop", self._loop)
        self._sweeping = None
        for connection in tuple(self._idle):
            due = connection.idle_since + self._idle_seconds
            if due > loop.time():
                self._sweeping = loop.call_at(due, self._sweep)
                return
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        del self._idle[connection]
        connection.transport.abort()

    def _lost(self, connection: Connection) -> None:
        self._idle.pop(connection, None)
        self._open.discard(connection)
        if not self._open:
            self._none_open.set()
