"""Requests: the request that a Model prepares, and the HTTP request that a client sends.

Laws: `repr` shows no header, query or body, since each may hold a secret. A change is a copy. The
classes are not frozen, because making a frozen object takes five times as long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast
from urllib.parse import urlencode

from deltafold.transports.secrets import shown_url
from deltafold.transports.timeouts import Timeouts


@dataclass(slots=True)
class PreparedRequest:
    """Request of an adapter; nothing changes it.

    Attributes:
        path: path below the vendor's base address, with the query of the endpoint.
        body: the members of the JSON body.
        headers: the caller's headers, which replace others.
        query: the caller's query parameters.
        stream: whether the answer is streamed.
        content: the body as JSON.
        method: the HTTP method.
    """

    path: str
    body: Mapping[str, object] = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    query: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    stream: bool = True
    content: bytes = field(default=b"", repr=False)
    method: Literal["GET", "POST"] = "POST"


@dataclass(slots=True)
class HttpRequest:
    """One HTTP request; nothing changes it.

    Attributes:
        method: the HTTP method.
        url: the URL; it may have a query.
        headers: headers to add to the client's own, including the key.
        query: members of the URL's query; None is left out, a list is repeated.
        content: the body.
        timeouts: limits of the waiting times.
        resend_lost: whether the request is sent once more over a new connection, where a used one
            closed before a byte of the answer.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    query: Mapping[str, object]
    content: bytes
    timeouts: Timeouts = field(default_factory=Timeouts)
    resend_lost: bool = True

    def __repr__(self) -> str:
        """Show the method and the address, without possible secrets."""
        return f"{type(self).__name__}({self.method} {shown_url(self.url)})"

    @property
    def full_url(self) -> str:
        """The URL with the query."""
        if not self.query:
            return self.url
        pairs = [
            (name, _query_text(value))
            for name, values in self.query.items()
            if values is not None
            for value in (cast("list[object]", values) if isinstance(values, list) else [values])
        ]
        if not pairs:
            return self.url
        return f"{self.url}{'&' if '?' in self.url else '?'}{urlencode(pairs)}"


def _query_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
