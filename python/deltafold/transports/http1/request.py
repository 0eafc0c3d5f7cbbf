"""Requests: the target, and the head of the request.

In: a URL, headers, a body's length.  Out: `Target`, and bytes.

Laws: no header can add another header or end the head. Only this module frames the body. Escapes of
the URL are unchanged.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from deltafold.exceptions import MisuseError
from deltafold.transports.secrets import shown_url

_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
# Source: RFC 9110, sections 5.6.2 (token) and 5.5 (field values: no CR, LF or NUL). A surrogate
# cannot be encoded.
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN_IN_VALUE: Final = re.compile("[\r\n\0\ud800-\udfff]")
_HOST: Final = re.compile(r"[0-9A-Za-z._~!$&'()*+,;=:%-]+")
# Source: RFC 3986, section 2.2, and the percent sign of existing escapes.
_RESERVED_AND_ESCAPES: Final = "!#$%&'()*+,/:;=?@[]~"


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a request.

    Attributes:
        scheme: `http` or `https`.
        host: a name, or an address without brackets.
        port: the port, by default that of the scheme.
        path: the path with the query, as it is sent.
        authorization: the header for the user and password of the URL, None without them.
    """

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)
    authorization: str | None = field(repr=False)

    @property
    def authority(self) -> str:
        """Host and port as in `Host`: the scheme's own port is left out."""
        host = bracketed(self.host)
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def target_of(url: str) -> Target:
    """Read a URL.

    >>> target_of("http://[::1]:8000/v1?a=b").authority
    '[::1]:8000'

    Raises:
        MisuseError: it is no URL of HTTP.
    """
    try:
        parts = urlsplit(url)
        host, port = unquote(parts.hostname or ""), parts.port
        if not host.isascii():
            host = host.encode("idna").decode()
        path = quote(parts.path or "/", safe=_RESERVED_AND_ESCAPES)
        if parts.query:
            path += "?" + quote(parts.query, safe=_RESERVED_AND_ESCAPES)
    except ValueError:
        # The error quotes the text of the port, which may be a password.
        raise MisuseError(f"url: {shown_url(url)!r} is not a URL") from None
    if parts.scheme not in _PORTS or not _HOST.fullmatch(host):
        raise MisuseError(f"url: {shown_url(url)!r} is not an http or https URL with a host")
    authorization = basic_authorization(parts.username, parts.password)
    return Target(
        parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path, authorization
    )


def basic_authorization(user: str | None, password: str | None) -> str | None:
    """Return the header's value for a user of a URL, None without one."""
    if user is None:
        return None
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def bracketed(host: str) -> str:
    """Return a host in the form that precedes a port."""
    return f"[{host}]" if ":" in host else host


def request_head(
    method: str, path: str, target: Target, headers: Mapping[str, str], body_bytes: int
) -> bytes:
    """Return the head of a request.

    Args:
        method: the HTTP method.
        path: the path of the target, or the whole URL for a proxy.
        target: the target.
        headers: the caller's headers; names in any case.
        body_bytes: the length of the body.

    Raises:
        MisuseError: a header would break the head, or frames the body itself.
    """
    if not _TOKEN.fullmatch(method):
        raise MisuseError(f"method: {method!r} is not an HTTP method")
    lines: dict[str, str] = {"host": target.authority, "accept-encoding": "gzip, deflate"}
    if target.authorization is not None:
        lines["authorization"] = target.authorization
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise MisuseError(f"headers: {name!r} is not a valid header name")
        if _FORBIDDEN_IN_VALUE.search(value):
            raise MisuseError(
                f"headers: the value of {name} has a line end, a NUL or half a character"
            )
        lines[name.lower()] = value.strip(" \t")
    if "transfer-encoding" in lines:
        raise MisuseError("headers: the client sets transfer-encoding itself")
    if lines.get("content-length", str(body_bytes)) != str(body_bytes):
        raise MisuseError(f"headers: content-length is not {body_bytes}, the length of the body")
    if body_bytes or method in {"POST", "PUT", "PATCH"}:
        lines["content-length"] = str(body_bytes)
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode()
