"""HTTP: sends a request through a client and returns the bytes of the response.

In: `HttpRequest`, and a client of httpx, httpx2 or aiohttp, or a `Transport`.
Out: `Source` or `AsyncSource`, unread, with status and headers.

Laws: an HTTP client is imported only to make one; a client is recognised by its class. A response
of any status is returned, because its body describes the error. A limit that is exceeded is a
`TimeoutError` that names it. Nothing is sent twice, with two exceptions:

- to follow a redirect that keeps the method and the body (307, 308) to the same origin, which may
  receive the key;
- once more, over a new connection, where a used connection closed within a second after the request
  was sent, and not one byte of an answer had come: its server had closed the idle connection before
  it could read the request. `HttpRequest.resend_lost` turns this off. After a byte, over a new
  connection, over HTTP/2, after a second, or where the client does not show its connection, nothing
  is sent again.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast
from urllib.parse import urljoin, urlsplit

from deltafold.contract.exceptions import MisuseError
from deltafold.transports.drain import adrain, drain
from deltafold.transports.packages import (
    MAX_CONNECTIONS,
    MAX_IDLE_CONNECTIONS,
    check_transport,
    import_package,
)
from deltafold.transports.requests import HttpRequest
from deltafold.transports.secrets import Redactor, secrets_of_environment, shown_url
from deltafold.transports.send import CLIENT_FUNCTIONS, Package, open_httpx
from deltafold.transports.sources import AsyncSource, Source, Transport
from deltafold.transports.timeouts import Limits, under_asyncio, watch

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

ClientKind: TypeAlias = Literal["synchronous", "asynchronous"]

_MAX_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class RedirectError(Exception):
    """The server redirected the request to a place that the client must not follow by itself."""


# Package and name of the class, its kind, and the interface that it implements.
_CLIENTS: Final[Mapping[tuple[str, str], tuple[ClientKind, Package]]] = {
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
        source = open_httpx(cast("httpx.Client", client), request, limits)
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
        functions = CLIENT_FUNCTIONS[known[1]]
    else:
        functions = CLIENT_FUNCTIONS[_package_of(client, known, "asynchronous")]
    limits = Limits(request.timeouts)
    waiting = watch()
    for _ in range(_MAX_REDIRECTS):
        waits = functions.waits(client, request, limits, waiting)
        while True:
            sending = functions.send(client, request, waits)
            try:
                with waiting.within(waits.first_seconds):
                    response = await sending
                break
            except Exception as exception:
                if waits.goes_on(exception):
                    continue
                missed = waits.missed(exception)
                if missed is None:
                    raise
                raise missed from exception
        waits.is_open = True
        source = functions.source(response, (limits, waiting), request)
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


def make_http_client(
    kind: ClientKind, transport: str = "httpx2", max_connections: int = MAX_CONNECTIONS
) -> object:
    """Make a client with the settings of the adapters; it speaks HTTP/2 if `h2` is installed.

    Proxies and certificates are those of the environment (`HTTPS_PROXY`, `NO_PROXY`,
    `SSL_CERT_FILE`).  The caller closes the client.

    >>> client = make_http_client("asynchronous", "aiohttp")

    Args:
        kind: synchronous or asynchronous.
        transport: the package: `httpx`, `httpx2`, or `aiohttp`, which is asynchronous only and the
            fastest for many streams.
        max_connections: the number of connections at once; a further request waits for one.

    Raises:
        MisuseError: the transport is not known or not installed, it does not support this kind, or
            it is made outside of the event loop that it needs.
    """
    check_transport(transport)
    if transport == "aiohttp":
        if kind == "synchronous":
            raise MisuseError("transport: aiohttp is asynchronous only; httpx is both")
        return _make_aiohttp_session(max_connections)
    package = import_package(transport)
    limits = package.Limits(
        max_connections=max_connections, max_keepalive_connections=MAX_IDLE_CONNECTIONS
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


def _known(client: object) -> tuple[ClientKind, Package] | None:
    own: type = type(client)
    return _known_class(own)


@lru_cache(maxsize=128)
def _known_class(kind: type) -> tuple[ClientKind, Package] | None:
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        known = _CLIENTS.get((package, base.__name__))
        if known is not None:
            return known
    return None


def _package_of(
    client: object, known: tuple[ClientKind, Package] | None, kind: ClientKind
) -> Package:
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
    """Return the request to send next, None if the response is not a redirect."""
    target = redirect_target(request.full_url, status, headers.get("location"))
    return None if target is None else replace(request, url=target, query={})


def redirect_target(url: str, status: int, location: str | None) -> str | None:
    """Return the URL of the next request, None if the response is not a redirect.

    Source: RFC 9110, sections 15.4.2 to 15.4.9: 307 and 308 keep the method, the others let a
    client turn POST into GET, which would lose the request.

    Raises:
        RedirectError: the request must not follow.
    """
    if status not in _REDIRECTS or location is None:
        return None
    try:
        target = urljoin(url, location)
        follows = status in {307, 308} and may_follow(url, target)
    except ValueError:
        raise RedirectError(
            f"HTTP {status} from {shown_url(url)}: its Location is no URL; check the base URL"
        ) from None
    if follows:
        return target
    raise RedirectError(
        f"HTTP {status} from {shown_url(url)} to {shown_url(target)}: use that address instead"
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


_BUFFER_BYTES: Final = 64 * 1024
"""What a body of aiohttp may hold before its connection waits; by itself it holds up to 512 KiB."""


def _make_aiohttp_session(max_connections: int) -> object:
    package = import_package("aiohttp")
    if not under_asyncio():
        raise MisuseError("transport: an aiohttp session is made inside of a running event loop")
    connector = package.TCPConnector(limit=max_connections)
    session: object = package.ClientSession(
        connector=connector, trust_env=True, read_bufsize=_BUFFER_BYTES
    )
    return session
