"""Sources: unread response bodies with status and headers, and the objects that open them.

Law: every transport returns one of these two types, so that streams do not depend on HTTP clients.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from deltafold.transports.requests import HttpRequest
    from deltafold.transports.timeouts import Limits


@dataclass(slots=True)
class Source:
    """A response body that is read synchronously.

    Attributes:
        chunks: the bytes of the body, in their original order and pieces.
        close: releases or closes the connection; may be called twice.
        status: the HTTP status, 200 without HTTP.
        headers: the headers of the response, names in lower case.
        rest: while it is entered, limits the reads of this thread by a deadline of
            `time.monotonic()`; raises on entering if they cannot be limited. None if the body has
            no connection of its own.
        lines: whether the chunks are an argument of the caller, which may be lines that have lost
            their ends.
    """

    chunks: Iterator[bytes]
    close: Callable[[], object]
    status: int
    headers: Mapping[str, str]
    rest: Callable[[float], AbstractContextManager[None]] | None = None
    lines: bool = False


@dataclass(slots=True)
class AsyncSource:
    """A response body that is read asynchronously; the other members are those of `Source`.

    Attributes:
        over_connection: whether the body has a connection of its own, which can be reused after the
            body was read to its end.
        limits: the limits that the chunks obey, None if they obey none.
        is_over: whether the body has come to its end, nothing of it is left to read, and its client
            has released the connection. A stream does not close such a body. None if the client
            does not know, or if `close` must be called in any case.
    """

    chunks: AsyncIterator[bytes]
    close: Callable[[], Awaitable[object]]
    status: int
    headers: Mapping[str, str]
    over_connection: bool = False
    lines: bool = False
    limits: "Limits | None" = None
    is_over: Callable[[], bool] | None = None

    @property
    def has_rest(self) -> bool:
        """Whether something of the body may be left to read before its connection is reused."""
        return self.over_connection and not (self.is_over is not None and self.is_over())


@runtime_checkable
class Transport(Protocol):
    """Replacement of an HTTP client, synchronous and asynchronous.

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
    """Wrapper of a client that opens responses itself, such as an SDK's client.

    Attributes:
        client: the wrapped client.
    """

    client: object

    def tap(self, source: Source, request: "HttpRequest") -> Source:
        """Return a source of the same bytes that are listened to."""
        ...

    def tap_async(self, source: AsyncSource, request: "HttpRequest") -> AsyncSource:
        """Return a source of the same bytes that are listened to."""
        ...
