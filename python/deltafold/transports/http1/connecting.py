"""Establishing of connections: TCP, the proxy's tunnel, TLS.

In: a `Route` and the limits of the call.  Out: an unused `Connection`.

Laws: each step has the limit `connect` anew. A step that fails or is cancelled leaves no open
socket. A connection on which the server sends unrequested bytes is closed.
"""

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import Final, cast

from deltafold.transports.http1.addresses import socket_to
from deltafold.transports.http1.errors import (
    ConnectionLostError,
    ProtocolViolationError,
    ProxyError,
    ResponseError,
)
from deltafold.transports.http1.request import bracketed
from deltafold.transports.http1.routes import Proxy, Route
from deltafold.transports.timeouts import Limits, within

_MAX_HEAD_BYTES: Final = 64 * 1024
# The limit `connect` is ours; asyncio's own of 60 s would come before a longer one.
_NO_LIMIT_SECONDS: Final = 24 * 3600.0
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: ([^\r\n]*))?\r\n")


class Connection(asyncio.Protocol):
    """A connection, and the protocol that watches it between requests.

    Args:
        route: the route of the connection.
        on_lost: called when the socket is closed.
    """

    __slots__ = ("_on_lost", "idle_since", "lost", "route", "spoke", "transport")

    transport: asyncio.Transport

    def __init__(self, route: Route, on_lost: Callable[["Connection"], None]) -> None:
        self.route = route
        self.idle_since = 0.0
        self.spoke = False
        self.lost = False
        self._on_lost = on_lost

    @property
    def usable(self) -> bool:
        """Whether a request can be sent on the connection."""
        return not self.lost and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Close the connection, because no request asked for these bytes."""
        del data
        self.spoke = True
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the socket is closed."""
        del exc
        self.lost = True
        self._on_lost(self)


async def connect(
    route: Route,
    limits: Limits,
    tls: Callable[[], ssl.SSLContext],
    on_lost: Callable[[Connection], None],
) -> Connection:
    """Make a connection.

    Args:
        route: the route.
        limits: the limits of the call.
        tls: makes the TLS context when it is needed.
        on_lost: called when the connection is closed.

    Raises:
        TimeoutError: a step took longer than `connect`.
        ConnectionLostError: the host does not answer, or TLS failed.
        ProxyError: the proxy refused.
    """
    connection = Connection(route, on_lost)
    proxy = route.proxy
    host, port = (route.host, route.port) if proxy is None else (proxy.host, proxy.port)
    await within(limits, "connect", _open(connection, host, port))
    try:
        if proxy is not None and proxy.scheme == "https":
            await within(limits, "connect", _start_tls(connection, tls(), proxy.host))
        if proxy is not None and not route.is_forwarded:
            await within(limits, "connect", _open_tunnel(connection, route, proxy))
        if route.scheme == "https":
            await within(limits, "connect", _start_tls(connection, tls(), route.host))
    except BaseException:
        connection.transport.abort()
        raise
    return connection


async def _open(connection: Connection, host: str, port: int) -> None:
    try:
        made = await socket_to(host, port)
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=made)
    except (OSError, UnicodeError) as error:
        raise ConnectionLostError(f"{bracketed(host)}:{port}: {error}") from error


async def _start_tls(connection: Connection, context: ssl.SSLContext, host: str) -> None:
    loop = asyncio.get_running_loop()
    try:
        transport = await loop.start_tls(
            connection.transport,
            connection,
            context,
            server_hostname=host,
            ssl_handshake_timeout=_NO_LIMIT_SECONDS,
        )
    except (OSError, ValueError) as error:  # a host that no certificate can name is a ValueError
        raise ConnectionLostError(f"TLS with {host}: {error}") from error
    if transport is None:
        raise ConnectionLostError(f"TLS with {host}: the connection was lost")
    connection.transport = transport
    agreed = cast("ssl.SSLObject", transport.get_extra_info("ssl_object"))
    if agreed.selected_alpn_protocol() not in {None, "http/1.1"}:
        raise ProtocolViolationError(
            f"TLS with {host}: {agreed.selected_alpn_protocol()} was negotiated, because the TLS "
            "context of the client offered it; Http1Client supports HTTP/1.1 only"
        )


class _Tunnel(asyncio.Protocol):
    """Waits for the answer to CONNECT, which has no body."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._received = b""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self._received += data
        ended = b"\r\n\r\n" in self._received or len(self._received) > _MAX_HEAD_BYTES
        if ended and not self.answer.done():
            self.answer.set_result(self._received)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_result(self._received)
        self._connection.connection_lost(exc)


async def _open_tunnel(connection: Connection, route: Route, proxy: Proxy) -> None:
    """Send CONNECT to the proxy.  Source: RFC 9110, section 9.3.6."""
    place = f"{bracketed(route.host)}:{route.port}"
    head = f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n"
    if proxy.authorization is not None:
        head += f"proxy-authorization: {proxy.authorization}\r\n"
    transport, tunnel = connection.transport, _Tunnel(connection)
    transport.set_protocol(tunnel)
    transport.write(f"{head}\r\n".encode())
    answer = await tunnel.answer
    said, end, more = answer.partition(b"\r\n\r\n")
    status = _STATUS_LINE.match(said + b"\r\n")
    if not said:
        raise ConnectionLostError(f"the proxy {proxy} closed the connection")
    if status is None or not end:
        raise ResponseError(f"the proxy {proxy} does not answer in HTTP/1.1")
    number, reason = int(status[1]), (status[2] or b"").decode("latin-1")
    if not 200 <= number < 300:  # noqa: PLR2004 - what success is in HTTP
        raise ProxyError(f"the proxy {proxy} answered {number} {reason} for {place}", number)
    if more:
        raise ProtocolViolationError(f"the proxy {proxy} sent bytes after its answer to CONNECT")
    transport.set_protocol(connection)
