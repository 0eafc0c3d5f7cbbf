"""Routes of requests: directly to the server, or through a proxy.

In: a `Target`, the given proxy, the environment.  Out: `Route`, the key of the pool of connections.

Laws: the environment is read as `urllib.request` reads it, `NO_PROXY` too. An unsupported proxy is
an error; it is never ignored. No message shows its password.
"""

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from deltafold.exceptions import MisuseError
from deltafold.transports.http1.request import Target, basic_authorization, bracketed


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy, over TLS if its scheme is https."""

    scheme: str
    host: str
    port: int
    authorization: str | None = field(repr=False)

    def __str__(self) -> str:
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class Route:
    """Destination of a connection, and the proxy on the way."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None

    @property
    def is_forwarded(self) -> bool:
        """Whether the proxy reads the requests; requests of https go through a tunnel."""
        return self.proxy is not None and self.scheme == "http"

    @property
    def forwarded_headers(self) -> Mapping[str, str]:
        """Headers for the proxy in a request that it reads."""
        if self.proxy is None or self.proxy.authorization is None:
            return {}
        return {"proxy-authorization": self.proxy.authorization}


class Routes:
    """Routes of one client.

    Args:
        proxy: the proxy of every request; None reads the environment.
        trust_env: whether the environment is read.
    """

    __slots__ = ("_environment", "_known", "_proxy")

    def __init__(self, proxy: str | None, *, trust_env: bool) -> None:
        self._proxy = None if proxy is None else proxy_of(proxy)
        self._environment: Mapping[str, str] = {}
        if proxy is None and trust_env:
            self._environment = urllib.request.getproxies()
        self._known: dict[tuple[str, str, int], Route] = {}

    def route_to(self, target: Target) -> Route:
        """Return the route, the same object for the same server.

        Raises:
            MisuseError: the environment names a proxy that cannot be used.
        """
        key = (target.scheme, target.host, target.port)
        route = self._known.get(key)
        if route is None:
            route = self._known[key] = Route(*key, self._proxy_for(target))
        return route

    def _proxy_for(self, target: Target) -> Proxy | None:
        if self._proxy is not None:
            return self._proxy
        url = self._environment.get(target.scheme) or self._environment.get("all")
        if not url:
            return None
        place = f"{bracketed(target.host)}:{target.port}"
        if urllib.request.proxy_bypass(target.host) or urllib.request.proxy_bypass(place):
            return None
        return proxy_of(url)


def proxy_of(url: str) -> Proxy:
    """Parse the URL of a proxy; the default scheme is http.

    >>> str(proxy_of("user:secret@proxy.test:3128"))
    'http://proxy.test:3128'

    Raises:
        MisuseError: the text is not a URL, or its scheme is not supported.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        # The error quotes the text of the port, which may be a password.
        raise MisuseError(
            "proxy: its URL cannot be read: escape special characters of its user and password"
        ) from None
    if parts.scheme.startswith("socks"):
        raise MisuseError(
            f"proxy: {parts.scheme} is not spoken by httptools; transport='httpx2' does, with "
            "httpx2's extra: pip install 'httpx2[socks]'"
        )
    if parts.scheme not in {"http", "https"} or not host:
        raise MisuseError("proxy must be an http or https URL with a host")
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    authorization = basic_authorization(parts.username, parts.password)
    return Proxy(parts.scheme, host, port, authorization)
