"""Clients: connections of a Model, given by the caller or made on first use.

In: the client of the caller, or the name of a transport; the vendor's address and key.  Out: a
`Caller`, which sends prepared requests and returns unread responses.

Laws: no network before a request. A client of the wrong kind or SDK raises at once, and the error
names both. Each event loop that calls has an asynchronous client of its own, which is made here and
does not retry: only a request whose used connection was lost unread is sent once more
(`transports/http.py`). The variables of the environment are read at the first call through a
client.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Self, TypeAlias, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.log import LOGGER
from deltafold.contract.names import ProtocolName, RequestProtocol
from deltafold.models.environment import (
    address_from_environment,
    headers_from_environment,
    key_from_environment,
    token_from_environment,
)
from deltafold.models.vendors import Vendor
from deltafold.transports.http import (
    ClientKind,
    aclose_http_client,
    close_http_client,
    http_client_kind,
    make_http_client,
    open_http,
    open_http_async,
)
from deltafold.transports.packages import check_transport
from deltafold.transports.pools import connection_limit
from deltafold.transports.requests import HttpRequest, PreparedRequest
from deltafold.transports.sdks import ClientSettings, Sdk
from deltafold.transports.secrets import (
    Redactor,
    clean_headers,
    clean_key,
    secrets_in_headers,
    secrets_in_query,
    secrets_in_url,
    secrets_of_client,
    secrets_of_environment,
    shown_url,
)
from deltafold.transports.sources import AsyncSource, Source, Tap, Transport
from deltafold.transports.timeouts import Timeouts

_STREAMED: Final = "text/event-stream, application/json"
_BOTH: Final[frozenset[ClientKind]] = frozenset({"synchronous", "asynchronous"})


@dataclass(frozen=True, slots=True)
class Caller:
    """A client, and all further data of a request through it.

    Attributes:
        client: a client of an SDK or of HTTP, or a transport.
        sdk: the interface of the SDK, None for plain HTTP or a transport.
        base_url: the address without a final slash, "" if only the SDK has it.
        headers: the headers of the key and of the protocol.
        dialect: the dialect of the response.
        timeouts: limits for plain HTTP.
        taps: wrappers of the client that see the bytes.
        resend_lost: `HttpRequest.resend_lost`, for plain HTTP.
    """

    client: object = field(repr=False)
    sdk: Sdk | None
    base_url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    dialect: ProtocolName
    timeouts: Timeouts
    taps: tuple[Tap, ...] = field(repr=False)
    resend_lost: bool = True

    def open(self, request: PreparedRequest) -> Source:
        """Send a request and return the unread response."""
        if self.sdk is None:
            return open_http(self.client, self._http(request))
        source = self.sdk.open(self.client, request)
        try:
            for tap in self.taps:
                source = tap.tap(source, self._http(request))
        except BaseException:
            source.close()
            raise
        return source

    def open_async(self, request: PreparedRequest) -> Awaitable[AsyncSource]:
        """Send a request and return the unread response."""
        if self.sdk is None:
            return open_http_async(self.client, self._http(request))
        return self._open_sdk(self.sdk, request)

    async def _open_sdk(self, sdk: Sdk, request: PreparedRequest) -> AsyncSource:
        source = await sdk.open_async(self.client, request)
        try:
            for tap in self.taps:
                source = tap.tap_async(source, self._http(request))
        except BaseException:
            await source.close()
            raise
        return source

    def at_segment(self, segment: str) -> Self:
        """Return the caller of the address with another last segment in place of `/v1`."""
        base = self.base_url.removesuffix("/v1").removesuffix(segment)
        return replace(self, base_url=f"{base}{segment}")

    def redactor(self, request: PreparedRequest) -> Redactor:
        """Return the redactor of the call's secrets."""
        secrets = [
            *secrets_in_headers(self.headers),
            *secrets_in_headers(request.headers),
            *secrets_in_query(request.query),
            *secrets_in_url(self.base_url),
            *secrets_of_environment(),
        ]
        client: object | None = self.client
        while client is not None:
            secrets += secrets_of_client(client)
            client = client.client if isinstance(client, Tap) else None
        return Redactor(secrets)

    def _http(self, request: PreparedRequest) -> HttpRequest:
        path, query = request.path, request.query
        if "?" in path:
            path, _, fixed = path.partition("?")
            pairs = (pair.partition("=") for pair in fixed.split("&") if pair)
            query = {**{name: value for name, _, value in pairs}, **query}
        headers = {
            "content-type": "application/json",
            "accept": _STREAMED if request.stream else "application/json",
            **self.headers,
        }
        if request.headers:
            headers |= clean_headers(request.headers)
        return HttpRequest(
            request.method,
            self.base_url + path,
            headers,
            query,
            request.content,
            self.timeouts,
            self.resend_lost,
        )


_Place: TypeAlias = tuple[ClientKind, object]
"""How a client waits, and the event loop that it belongs to, None for a synchronous client."""


class Clients:
    """The clients of one Model."""

    def __init__(
        self,
        vendor: Vendor,
        dialect: RequestProtocol,
        model: str,
        sdk: Sdk | None,
        key_headers: Callable[[str], Mapping[str, str]],
        *,
        token_headers: Callable[[str], Mapping[str, str]],
        own: bool,
        client: object | None,
        base_url: str | None,
        api_key: str | None,
        transport: str,
        timeouts: Timeouts,
        resend_lost: bool,
        max_connections: int,
    ) -> None:
        self._vendor = vendor
        self._dialect: RequestProtocol = dialect
        self._model = model
        self._sdk = sdk
        self._key_headers = key_headers
        self._token_headers = token_headers
        self._own = own
        self._base_url = base_url
        self._api_key = api_key
        self._transport = transport
        self._timeouts = timeouts
        self._resend_lost = resend_lost
        self._max_connections = max_connections
        self._taps: tuple[Tap, ...] = ()
        while client is not None and _is_tap(client):
            self._taps = (cast("Tap", client), *self._taps)
            client = cast("Tap", client).client
        self._client = client
        self._kinds = _BOTH if client is None else self._kinds_of(client)
        self._made: dict[_Place, object] = {}
        self._replaced: list[tuple[_Place, object]] = []
        self._recognised: tuple[object, bool] = (None, False)
        self._known: dict[_Place, Caller] = {}
        if transport != "sdk":
            check_transport(transport)
        elif sdk is None:
            raise MisuseError(
                f"transport: {model} has no SDK that gives bytes; leave it out, or name an HTTP "
                "client"
            )

    def copied(self, key_headers: Callable[[str], Mapping[str, str]]) -> Self:
        """Return the clients of a copied Model, which has its own function for the headers."""
        other = copy(self)
        other._key_headers = key_headers  # noqa: SLF001 - of this class
        return other

    def __getstate__(self) -> dict[str, object]:
        """Return the state for a copy or a pickle, without the clients that were made here."""
        own: dict[str, object] = {
            "_made": {},
            "_replaced": [],
            "_recognised": (None, False),
            "_known": {},
        }
        return {**vars(self), **own}

    def caller(self, kind: ClientKind) -> Caller:
        """Return the caller for synchronous or asynchronous requests.

        Raises:
            MisuseError: the client is of the other kind; the key or the address is missing; no
                package that makes a client is installed.
        """
        # The connections of an asynchronous client belong to the event loop that opened them.
        place = kind, _running_loop() if kind == "asynchronous" else None
        known = self._known.get(place)
        if known is not None:
            return known
        client = self._client
        if client is None:
            client = self._made_client(place)
        elif kind not in self._kinds:
            call = "stream_sync()" if kind == "synchronous" else "stream()"
            other = next(iter(self._kinds))
            raise MisuseError(
                f"{call} needs a {kind} client, and this Model has the {other} "
                f"{type(client).__name__}: give it the other kind, or call the other method"
            )
        sdk = self._sdk_of(client)
        if sdk is not None:
            dialect = sdk.dialect(client, self._dialect)
            return Caller(client, sdk, "", {}, dialect, self._timeouts, self._taps)
        self._forget_closed_loops()
        caller = self._known[place] = self._http_caller(client)
        return caller

    def _http_caller(self, client: object) -> Caller:
        key = self._key(required=self._client is None)
        token = token_from_environment(self._vendor) if key is None else None
        headers = headers_from_environment(self._vendor)
        if key is not None:
            headers |= self._key_headers(key)
        elif token is not None:
            headers |= self._token_headers(token)
        return Caller(
            client,
            None,
            self._address(),
            headers,
            self._dialect,
            self._timeouts,
            self._taps,
            self._resend_lost,
        )

    def allow_connections(self, number: int) -> None:
        """Let the clients that are made here have so many connections at least.

        A client with fewer is replaced for later calls, and closed with the others: its calls go
        on. A client of the caller stays as it is, and the log says what it lacks.
        """
        if self._client is not None:
            limit = connection_limit(self._client)
            if limit is not None and limit < number:
                LOGGER.warning(
                    "%s: %s requests at once were asked for, and the client that was passed has "
                    "%s connections; the others wait for a free one",
                    self._model,
                    f"{number:,}",
                    f"{limit:,}",
                )
        elif number > self._max_connections:
            self._max_connections = number
            self._replaced += self._made.items()
            self._made.clear()
            self._known.clear()

    @property
    def through_sdk(self) -> bool:
        """True if an SDK sends the requests."""
        if self._client is None:
            return self._transport == "sdk"
        return self._sdk_of(self._client) is not None

    def close(self) -> None:
        """Close the synchronous clients that were made here."""
        for client in self._taken(("synchronous", None)):
            self._close(client)

    def _close(self, client: object) -> None:
        if self._transport == "sdk":
            _close_of(client, "synchronous")()
        else:
            close_http_client(client)

    async def aclose(self) -> None:
        """Close the asynchronous clients that were made here for this event loop."""
        self._forget_closed_loops()
        for client in self._taken(("asynchronous", _running_loop())):
            if self._transport != "sdk":
                await aclose_http_client(client)
                continue
            closing = _close_of(client, "asynchronous")()
            if isinstance(closing, Awaitable):
                await closing

    def _taken(self, place: _Place) -> list[object]:
        """Forget the clients of a place that were made here, and return them."""
        self._known.pop(place, None)
        clients = [client for other, client in self._replaced if other == place]
        self._replaced = [one for one in self._replaced if one[0] != place]
        made = self._made.pop(place, None)
        return clients if made is None else [*clients, made]

    def _forget_closed_loops(self) -> None:
        """Let go of clients that nobody can close any more, because their event loop has ended."""
        for place in (*self._made, *self._known):
            if getattr(place[1], "is_closed", bool)():
                self._taken(place)

    def _sdk_of(self, client: object) -> Sdk | None:
        """Return the SDK if the client is one of its clients."""
        known, is_sdk = self._recognised
        if known is not client:
            is_sdk = self._sdk is not None and bool(self._sdk.kinds(client))
            self._recognised = (client, is_sdk)
        return self._sdk if is_sdk else None

    def _kinds_of(self, client: object) -> frozenset[ClientKind]:
        if self._sdk is not None and (kinds := self._sdk.kinds(client)):
            return kinds
        if _is_transport(client):
            return _BOTH
        kind = http_client_kind(client)
        if kind is not None:
            return frozenset({kind})
        through = f"a client of the {self._sdk.package} SDK, or of" if self._sdk else "a client of"
        raise MisuseError(
            f"client: {self._model} calls through {through} httpx, httpx2 or aiohttp, "
            f"not a {type(client).__module__}.{type(client).__qualname__}"
        )

    def _made_client(self, place: _Place) -> object:
        made = self._made.get(place)
        if made is None:
            client = self._make(place[0])
            made = self._made.setdefault(place, client)
            if made is not client:
                # Another thread was faster: all of them share the connections of one client.
                self._close(client)
        return made

    def _make(self, kind: ClientKind) -> object:
        if self._transport != "sdk" or self._sdk is None:
            self._key(required=True)
            self._address()
            return make_http_client(kind, self._transport, self._max_connections)
        # An SDK has the address of its own service, and reads variables that replace it.
        base_url = self._base_url if self._own else self._address()
        key = self._key(required=False) if self._own else self._key(required=True) or "unused"
        settings = ClientSettings(base_url, key, self._timeouts.idle, self._max_connections)
        return self._sdk.make_client(kind, settings)

    def _address(self) -> str:
        base_url = (
            self._base_url
            or address_from_environment(self._vendor, self._dialect)
            or self._vendor.addresses[self._dialect]
        )
        if base_url is None:
            raise MisuseError(
                f"{self._vendor.name} is called through a client of its SDK: pass one, or a "
                "base_url"
            )
        if "{" in base_url:
            raise MisuseError(
                f"{self._vendor.name} is at {shown_url(base_url)}: pass base_url, or a client"
            )
        return base_url.strip().rstrip("/")

    def _key(self, *, required: bool) -> str | None:
        vendor, variable = self._vendor, self._vendor.key_variable
        key = clean_key(self._api_key or "", "api_key") or key_from_environment(vendor)
        if key is None and variable and required and token_from_environment(vendor) is None:
            raise MisuseError(
                f"{self._vendor.name} needs a key: set {variable}, pass api_key, or pass a client"
            )
        return key


def _close_of(client: object, kind: ClientKind) -> Callable[[], object]:
    """Return the function that closes an SDK's client; mistralai closes its own when it is left."""
    close = cast("Callable[[], object] | None", getattr(client, "close", None))
    leave = "__aexit__" if kind == "asynchronous" else "__exit__"
    return close or partial(getattr(client, leave), None, None, None)


def _is_transport(client: object) -> bool:
    return isinstance(client, Transport)


def _is_tap(client: object) -> bool:
    """Return whether this wraps an SDK's client, which opens its responses itself."""
    inner = getattr(client, "client", None)
    return (
        callable(getattr(client, "tap", None))
        and inner is not None
        and not _is_transport(inner)
        and http_client_kind(inner) is None
    )


def _running_loop() -> object:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # another event loop than asyncio's, or none
        return None
