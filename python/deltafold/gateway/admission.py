"""Admission: who may call the gateway, before the body of a request is read.

In: the head of a request.  Out: the owner of the responses that the request stores, or a refusal.

Laws: without a hook that authenticates, only programs and pages of this machine are answered: the
client's address, the name in `Host` and the `Origin` of a page are those of this machine, because a
page of another site can send a request here, and the name of another site can lead here. With one,
every route but `/health` asks it. An owner is what `on_connect` returns, else a digest of the
client's credentials, so that no store holds a key.
Source: RFC 6454 for `Origin`; "DNS rebinding" for `Host`.
"""

import asyncio
import hashlib
import ipaddress
import socket
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, cast
from urllib.parse import urlsplit

from starlette.requests import Request

from deltafold.contract.kinds import ErrorCode
from deltafold.contract.log import LOGGER
from deltafold.errors.model_error import ModelError
from deltafold.gateway.hooks import OnConnect, guarded
from deltafold.gateway.refusals import refusal

CONNECT_SECONDS: Final = 60.0

_CREDENTIALS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
"""Headers in which clients of the protocols send their key; Gemini's may send `?key=` too."""


class Admission:
    """The rules of one application.

    Args:
        on_connect: authenticates a request by its head.
        seconds: how long it may take. A client that leaves meanwhile is not noticed, because its
            body is not read yet.
        is_open: whether something else authenticates, or nothing shall.
        allowed_hosts: names in `Host` that count as names of this machine.
        allowed_origins: origins of pages that may call, as `https://example.org`.
    """

    def __init__(
        self,
        on_connect: OnConnect | None = None,
        *,
        seconds: float = CONNECT_SECONDS,
        is_open: bool = False,
        allowed_hosts: Iterable[str] = (),
        allowed_origins: Iterable[str] = (),
    ) -> None:
        self._on_connect = on_connect
        self._seconds = seconds
        self._is_open = is_open or on_connect is not None
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in allowed_origins)

    async def owner(self, request: Request) -> str:
        """Admit a request, and return the owner of the responses that it stores.

        Raises:
            ModelError: the request is refused.
        """
        if not self._is_open:
            self.check_local(request)
        named = await self._authenticated(request)
        return _digest(request) if named is None else f"owner:{named}"

    async def _authenticated(self, request: Request) -> str | None:
        """Return the owner that the hook names."""
        hook = self._on_connect
        if hook is None:
            return None
        try:
            async with asyncio.timeout(self._seconds):
                return cast("str | None", await guarded("on_connect", str | None, hook, request))
        except TimeoutError as error:
            text = "the hook on_connect took longer than %g s (connect_seconds): nothing passes"
            LOGGER.error(text, self._seconds)
            message = "the hook on_connect of the gateway took too long (connect_seconds)"
            raise refusal(message, ErrorCode.OVERLOADED, 503) from error

    def check_local(self, request: Request) -> None:
        """Refuse what does not come from this machine.

        Raises:
            ModelError: the address, the host or the origin is that of another one.
        """
        if not is_local(request):
            raise _forbidden("it has no authentication")
        host = request.url.hostname
        if not (is_name_of_this_machine(host) or (host or "").lower() in self._hosts):
            raise _forbidden(f"and {host!r} is no name of it (allowed_hosts)")
        origin = request.headers.get("origin")
        if origin is None or origin.lower() in self._origins:
            return
        if not _is_own_origin(origin):
            raise _forbidden(f"and a page of {origin!r} is not on it (allowed_origins)")


def is_local(request: Request) -> bool:
    """Return whether the client of a request is on this machine."""
    host = None if request.client is None else request.client.host
    if host is None:
        return True  # a socket of this machine
    return host == "testclient" or _is_loopback(host)


def is_name_of_this_machine(host: str | None) -> bool:
    """Return whether a host is a loopback address or a name that leads to this machine alone.

    A name without a dot is one of the local network or of `/etc/hosts`. No other site can register
    such a domain.

    >>> is_name_of_this_machine("127.0.0.1"), is_name_of_this_machine("example.org")
    (True, False)
    """
    if not host:
        return False
    name = host.lower().rstrip(".")
    if name.endswith(".localhost") or name == _own_name():
        return True
    return _is_loopback(name) or ("." not in name and ":" not in name)


@lru_cache(maxsize=256)
def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    inner = getattr(address, "ipv4_mapped", None)
    return (inner or address).is_loopback


@lru_cache(maxsize=1)
def _own_name() -> str:
    return socket.gethostname().lower()


def _is_own_origin(origin: str) -> bool:
    """Return whether a page is on this machine; the host of an extension's origin is its id."""
    try:
        parts = urlsplit(origin)
        host = parts.hostname
    except ValueError:
        return False
    is_page = parts.scheme.lower() in {"http", "https"}
    return is_name_of_this_machine(host) if is_page else host == "localhost"


def _forbidden(why: str) -> ModelError:
    message = f"this gateway answers programs and pages of its own machine only: {why}"
    return refusal(message, ErrorCode.PERMISSION, 403)


def _digest(request: Request) -> str:
    """Return a digest of the credentials of a request, "" without any."""
    given = [f"{name}:{request.headers[name]}" for name in _CREDENTIALS if name in request.headers]
    given += [f"key:{key}" for key in request.query_params.getlist("key")]
    return hashlib.sha256("\n".join(given).encode()).hexdigest() if given else ""
