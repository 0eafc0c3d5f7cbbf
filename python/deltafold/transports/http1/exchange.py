"""One request and its response on one connection.

In: the request's bytes, then what the connection receives.  Out: status, headers, and the body's
chunks as they came, unpacked from HTTP but not from gzip.

Laws: the parser hands the body straight to a list, and its reader takes the whole list, so that a
chunk of HTTP costs no call of Python; what came is handed out before a failure is told; a
connection is given back only after a whole response with nothing behind it; what nobody reads yet
is bounded, so are the bytes that are no body: heads, chunk extensions, trailers.

Source: RFC 9112, sections 6.3 (where a body ends), 7 (chunked) and 9.3 (what may be kept).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from deltafold.transports.http1.connecting import Connection
from deltafold.transports.http1.errors import (
    ConnectionLostError,
    ProtocolViolationError,
    ResponseError,
)

if TYPE_CHECKING:
    import httptools

# Beyond this the server has to wait: as much as asyncio reads at once.
_UNREAD_BYTES: Final = 256 * 1024
# Providers send two dozen headers in two KiB; servers themselves accept 8 to 64 KiB of them.
_BYTES_WITHOUT_BODY: Final = 64 * 1024
_MAX_HEADERS: Final = 200
# A longer body is not copied to make one packet of it and its head.
_JOINED_BYTES: Final = 64 * 1024

_SWITCHING_PROTOCOLS: Final = 101
_FIRST_FINAL_STATUS: Final = 200
_NO_BODY: Final = frozenset({204, 304})


class _BeyondError(Exception):
    """A second response begins, which nobody asked for."""


class Exchange(asyncio.Protocol):
    """A request that was sent, and its response: an iterator over the chunks of its body.

    Args:
        connection: what it goes over; it listens again when this is over.
        make_parser: `httptools.HttpResponseParser`.
        has_body: whether the response may have one: that to HEAD has none.
        on_end: is told once, with whether the connection may be used again.

    Attributes:
        status: the response's, 0 before it came.
        headers: the response's, names in lower case, those of one name joined by a comma.
    """

    __slots__ = (
        "_bare_bytes",
        "_chunks",
        "_connection",
        "_ended",
        "_failure",
        "_feed",
        "_field_bytes",
        "_has_body",
        "_headed",
        "_header_count",
        "_interim",
        "_keep",
        "_loop",
        "_on_end",
        "_overrun",
        "_parser",
        "_paused",
        "_transport",
        "_unread_bytes",
        "_until_end",
        "_waiter",
        "_whole",
        "headers",
        "on_body",
        "status",
    )

    def __init__(
        self,
        connection: Connection,
        make_parser: "type[httptools.HttpResponseParser]",
        on_end: Callable[[Connection, bool], None],
        *,
        has_body: bool,
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._connection = connection
        self._transport = connection.transport
        self._loop = asyncio.get_running_loop()
        self._on_end = on_end
        self._has_body = has_body
        self._chunks: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._header_count = 0
        self._field_bytes = 0
        self._bare_bytes = 0
        self._unread_bytes = 0
        self._headed = self._interim = self._whole = self._overrun = False
        self._keep = self._until_end = self._paused = self._ended = False
        # The parser looks for its callbacks, this one among them, when it is made.
        self.on_body = self._chunks.append
        self._parser: httptools.HttpResponseParser | None = make_parser(self)
        self._feed: Callable[[bytes], None] = self._parser.feed_data
        self._transport.set_protocol(self)

    def write(self, head: bytes, body: bytes) -> None:
        """Send the request; the transport keeps what the socket does not take at once."""
        if len(body) <= _JOINED_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)

    async def head(self) -> None:
        """Wait for status and headers.

        Raises:
            ConnectionLostError: there was no answer.
            ResponseError: the answer is no HTTP/1.1.
            ProtocolViolationError: it is more than an answer may be.
        """
        while not self._headed:
            await self._more()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunks = self._chunks
        while not chunks:
            if self._whole:
                raise StopAsyncIteration
            await self._more()
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._unread_bytes = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return body

    async def aclose(self) -> None:
        """Give the response up: its connection is closed, unless the response is whole."""
        self.abandon("the response was closed")

    def abandon(self, why: str) -> None:
        """Close the connection at once and fail whoever reads; nothing once the response is whole.

        Args:
            why: what the reader is told.
        """
        if not self._ended:
            self._chunks.clear()
            self._fail(ConnectionLostError(why))
            self._wake()

    async def _more(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        await self._waiter

    # What the transport tells.

    def data_received(self, data: bytes) -> None:
        """Parse what came and wake the reader, once for all of it."""
        if self._ended:
            return
        chunks = self._chunks
        had = len(chunks)
        try:
            self._feed(data)
        except Exception as error:  # noqa: BLE001 - the parser's, and those of the callbacks
            self._stop(error)
        if self._whole:
            self._finish()
        elif len(chunks) != had:
            self._bare_bytes = 0
            self._unread_bytes += len(data)
            if self._unread_bytes > _UNREAD_BYTES and not self._paused and not self._ended:
                self._paused = True
                self._transport.pause_reading()
        else:
            self._bare_bytes += len(data)
            if self._bare_bytes > _BYTES_WITHOUT_BODY:
                self._fail(self._too_long())
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Say whether that was the body's end."""
        if not self._ended:
            if self._until_end and exc is None:
                self._whole = True
                self._end(reusable=False)
            else:
                where = "in the midst of the body" if self._headed else "before the answer"
                failure = ConnectionLostError(f"the connection was lost {where}")
                failure.__cause__ = exc
                self._fail(failure)
            self._wake()
        self._connection.connection_lost(exc)

    # What the parser tells.

    def on_message_begin(self) -> None:
        """Refuse a second response."""
        if self._whole:
            raise _BeyondError

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or count a trailer."""
        self._header_count += 1
        self._field_bytes += len(name) + len(value)
        if self._header_count > _MAX_HEADERS or self._field_bytes > _BYTES_WITHOUT_BODY:
            raise self._too_long()
        if not self._headed:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            known = self.headers.get(key)
            self.headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """Decide what the response is and where its body ends."""
        parser = self._parser
        if parser is None:
            return
        status = parser.get_status_code()
        if status < _FIRST_FINAL_STATUS and status != _SWITCHING_PROTOCOLS:
            self._interim = True
            self.headers = {}
            return
        coding = self.headers.get("transfer-encoding", "chunked")
        if status == _SWITCHING_PROTOCOLS or coding.strip().lower() != "chunked":
            what = "switches protocols" if status == _SWITCHING_PROTOCOLS else f"comes as {coding}"
            raise ProtocolViolationError(f"the response {what}, which was not asked for")
        self.status = status
        self._headed = True
        self._keep = parser.should_keep_alive()
        self._whole = not self._has_body
        self._until_end = status not in _NO_BODY and not (
            {"transfer-encoding", "content-length"} & self.headers.keys()
        )

    def on_message_complete(self) -> None:
        """Take the end of an interim response, or of the one that counts."""
        if self._interim:
            self._interim = False
        else:
            self._whole = True

    # How it ends.

    def _too_long(self) -> ProtocolViolationError:
        where = "the response's trailers or chunk extensions" if self._headed else "its headers"
        return ProtocolViolationError(
            f"{where} are more than {_BYTES_WITHOUT_BODY // 1024} KiB or {_MAX_HEADERS} fields"
        )

    def _stop(self, error: Exception) -> None:
        """Take what stopped the parser: bytes behind a whole response harm only the connection."""
        if self._whole:
            self._overrun = True
            return
        # The parser wraps what a callback raised.
        own = error.__context__
        if isinstance(own, ProtocolViolationError):
            self._fail(own)
            return
        failure = ResponseError(f"the answer is no HTTP/1.1: {error}")
        failure.__cause__ = error
        self._fail(failure)

    def _finish(self) -> None:
        if not self._has_body and self._chunks:
            self._chunks.clear()
            self._overrun = True
        # Where the request is not all sent, its rest would be taken for the next one.
        sent = self._transport.get_write_buffer_size() == 0
        usable = not self._transport.is_closing()
        self._end(reusable=self._keep and sent and usable and not self._overrun)

    def _fail(self, failure: Exception) -> None:
        if not self._ended:
            self._failure = failure
            self._end(reusable=False)

    def _end(self, *, reusable: bool) -> None:
        if self._ended:
            return
        self._ended = True
        # The parser holds this object, which holds the parser.
        self._parser = None
        self._feed = _no_more
        if reusable:
            self._transport.set_protocol(self._connection)
            if self._paused:
                self._transport.resume_reading()
        else:
            self._transport.abort()
        self._paused = False
        self._on_end(self._connection, reusable)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _no_more(data: bytes) -> None:
    """Stand for the parser of an exchange that is over."""
    del data
