"""One request and its response on one connection.

In: the bytes of the request, then the bytes that the connection receives.  Out: status, headers,
and the received chunks of the body, without HTTP's framing but still compressed.

Laws: the parser appends the body directly to a list, and the reader takes the whole list, so that a
chunk of HTTP costs no call of Python. Received chunks are returned before a failure is raised. A
connection is reused only after a whole response without further bytes. Unread bytes of the body are
bounded, and so are heads, chunk extensions and trailers.

Source: RFC 9112, sections 6.3 (end of a body), 7 (chunked) and 9.3 (persistent connections).
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
    """A second, unrequested response begins."""


class Exchange(asyncio.Protocol):
    """A sent request and its response: an iterator over the chunks of its body.

    Args:
        connection: the connection; it becomes its own protocol again after the response.
        make_parser: `httptools.HttpResponseParser`.
        has_body: whether the response may have a body; a response to HEAD has none.
        on_end: called once, with the information whether the connection can be reused.

    Attributes:
        status: the status, 0 before it arrives.
        headers: the headers, names in lower case, repeated headers joined by a comma.
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
        """Send the request; the transport buffers bytes that the socket does not accept."""
        if len(body) <= _JOINED_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)

    async def head(self) -> None:
        """Wait for status and headers.

        Raises:
            ConnectionLostError: the server sent no answer.
            ResponseError: the answer is not HTTP/1.1.
            ProtocolViolationError: the answer exceeds the limits of a response.
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
        """Close the connection at once and fail the reader; do nothing after a whole response.

        Args:
            why: the error of the reader.
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

    # Callbacks of the transport.

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and wake the reader, once for all of them."""
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
        """End the body if the connection delimits it; otherwise fail the reader."""
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

    # Callbacks of the parser.

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
        """Classify the response and determine the end of its body."""
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

    # The end of the response.

    def _too_long(self) -> ProtocolViolationError:
        where = "the response's trailers or chunk extensions" if self._headed else "its headers"
        return ProtocolViolationError(
            f"{where} are more than {_BYTES_WITHOUT_BODY // 1024} KiB or {_MAX_HEADERS} fields"
        )

    def _stop(self, error: Exception) -> None:
        """Handle an error of the parser; bytes after a whole response only cost the connection."""
        if self._whole:
            self._overrun = True
            return
        # The parser wraps exceptions of a callback.
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
        # After an incomplete request, its rest would be read as the next request.
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
    """Replacement of the parser after the exchange has ended."""
    del data
