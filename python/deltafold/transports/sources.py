"""Sources: unread response bodies with status and headers, and the objects that open them.

Law: every transport returns one of these two types, so that streams do not depend on HTTP clients.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from deltafold.transports.requests import HttpRequest


@dataclass(slots=True)
class Source:
    """A response body that is read by waiting for it.

    Attributes:
        chunks: the body's bytes in the order and pieces in which they came.
        close: gives the connection back or closes it; may be called twice.
        status: the HTTP status, 200 where there was no HTTP.
        headers: the response's headers, names in lower case.
        rest: bounds the reads of this thread by a deadline of `time.monotonic()` while it is
            entered; None where the body does not come over a connection of its own, or its reads
            cannot be bounded.
    """

    chunks: Iterator[bytes]
    close: Callable[[], object]
    status: int
    headers: Mapping[str, str]
    rest: Callable[[float], AbstractContextManager[None]] | None = None


@dataclass(slots=True)
class AsyncSource:
    """A response body that is read by awaiting it; the other members are those of `Source`.

    Attributes:
        over_connection: whether the body comes over a connection of its own, which serves again
            when the body was read to its end.
    """

    chunks: AsyncIterator[bytes]
    close: Callable[[], Awaitable[object]]
    status: int
    headers: Mapping[str, str]
    over_connection: bool = False


@runtime_checkable
class Transport(Protocol):
    """What answers requests in place of an HTTP client, in both ways of waiting.

    `deltafold.testing` has two; a `Model` takes one as its client.
    """

    def open(self, request: "HttpRequest") -> Source:
        """Send the request and return the unread response, whatever its status."""
        ...

    async def open_async(self, request: "HttpRequest") -> AsyncSource:
        """Send the request and return the unread response, whatever its status."""
        ...


@runtime_checkable
class Tap(Protocol):
    """What listens to the responses of a client that opens them by itself, such as an SDK's.

    Attributes:
        client: the client inside.
    """

    client: object

    def tap(self, source: Source, request: "HttpRequest") -> Source:
        """Return a source of the same bytes that are listened to."""
        ...

    def tap_async(self, source: AsyncSource, request: "HttpRequest") -> AsyncSource:
        """Return a source of the same bytes that are listened to."""
        ...
