"""Causes of an exception, and the reason why a connection could not be made.

In: an exception of an SDK or HTTP client.  Out: the exceptions that led to it. If no connection was
made, also the class of the failure and the address.

Laws: nothing is imported to recognise an exception; class names decide. A circular chain is
followed once.
"""

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

DNS_FAILURE: Final = "gaierror"
REFUSED: Final = "ConnectionRefusedError"
UNTRUSTED: Final = "SSLCertVerificationError"
NO_TLS: Final = "SSLError"

_REASON_OF_CLASS: Final = {
    "gaierror": DNS_FAILURE,
    "ClientConnectorDNSError": DNS_FAILURE,  # aiohttp, with a resolver of its own
    "NameResolutionError": DNS_FAILURE,  # urllib3
    "ConnectionRefusedError": REFUSED,
    "SSLCertVerificationError": UNTRUSTED,
}
_NOT_TLS: Final = frozenset({"HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "WRONG_VERSION_NUMBER"})
"""`reason` of OpenSSL for a first record that is none of TLS, such as a line of HTTP."""

_REFUSED_TEXT: Final = f"[Errno {errno.ECONNREFUSED}]"
"""In the text with which asyncio joins the failures of several addresses."""


@dataclass(frozen=True, slots=True)
class NoConnection:
    """The reason why a connection could not be made.

    Attributes:
        reason: `DNS_FAILURE`, `REFUSED`, `UNTRUSTED` or `NO_TLS`; each is the name of a built-in
            exception.
        text: the text of the exception that has the reason.
    """

    reason: str
    text: str


def causes(exception: BaseException, *, implicit: bool = True) -> Iterator[BaseException]:
    """Yield an exception and its causes, each once.

    Args:
        exception: the last of the chain.
        implicit: whether an exception that was being handled counts where no cause was named.
    """
    seen: set[int] = set()
    one: BaseException | None = exception
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        context = None if one.__suppress_context__ or not implicit else one.__context__
        one = one.__cause__ or context


def no_connection(exception: BaseException, *, implicit: bool = True) -> NoConnection | None:
    """Return the reason why no connection was made, None where the exception shows none."""
    seen: set[int] = set()
    waiting = [exception]
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        reason = _reason_of(one)
        if reason is not None:
            return NoConnection(reason, str(one))
        waiting += [*causes(one, implicit=implicit), *_held(one)]
    return None


def _reason_of(exception: BaseException) -> str | None:
    for base in type(exception).__mro__:
        if base.__name__ in _REASON_OF_CLASS:
            return _REASON_OF_CLASS[base.__name__]
    if getattr(exception, "reason", None) in _NOT_TLS:
        return NO_TLS
    refused = isinstance(exception, OSError) and _REFUSED_TEXT in str(exception)
    return REFUSED if refused else None


def address_of(exception: BaseException) -> str | None:
    """Return host and port that an HTTP client's exception was on its way to."""
    for cause in causes(exception):
        try:
            url = cast("object", getattr(getattr(cause, "request", None), "url", None))
        except RuntimeError:  # httpx: an exception that was made without a request
            continue
        host, port = (cast("object", getattr(url, name, None)) for name in ("host", "port"))
        if isinstance(host, str) and host:
            return host if port is None else f"{host}:{port}"
    return None


def _held(exception: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that an exception holds.

    A group has one for each address that was tried. httpcore and requests pass the exception that
    they wrap as an argument, and httpcore hides it as a cause.
    """
    held: tuple[object, ...] = exception.args
    if isinstance(exception, BaseExceptionGroup):
        held = cast("tuple[object, ...]", exception.exceptions)
    yield from (one for one in held if isinstance(one, BaseException))
