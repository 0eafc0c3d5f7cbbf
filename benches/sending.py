"""The server of the loopback measurements: bare sockets, one after the other, without waiting.

In: requests for `/<dialect>/<few|each>/<events>`, whatever follows.  Out: so many events, each in
an HTTP chunk of its own, in writes of 64 KiB or one write an event.

Laws: every stream has one write a turn, so that writes stay apart; nothing is awaited between two
writes: against a server that is slower, a client is measured as it idles, waking for every event
to find no second one.
"""

import re
import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Final, cast

from bodies import feeds

WRITE_BYTES: Final = 64 * 1024

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


@cache
def writes_of(dialect: str, writes: str, events: int) -> tuple[bytes, ...]:
    """Return the chunks of the answer to one request."""
    chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in feeds(dialect, events, "1 event")]
    if writes == "few":
        body = b"".join(chunks)
        chunks = [body[at : at + WRITE_BYTES] for at in range(0, len(body), WRITE_BYTES)]
    return (_HEAD, *chunks, b"0\r\n\r\n")


class Stream:
    """One connection: its received request bytes, and its chunks to send."""

    __slots__ = ("at", "connection", "received", "rest", "writes")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = b""
        self.writes: tuple[bytes, ...] = ()
        self.at = 0
        self.rest = b""

    def receive(self) -> bool:
        """Read; say whether the client is still there."""
        try:
            data = self.connection.recv(65536)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head + b"\r\n")
        if end and len(body) >= (0 if length is None else int(length[1])):
            self.received = b""
            _, dialect, writes, events, *_ = head.split(b" ")[1].decode().split("/")
            self.writes, self.at = writes_of(dialect, writes, int(events)), 0
        return bool(data)

    def send(self) -> bool:
        """Send the next write, or the rest of one; say whether the socket took all of it."""
        data = self.rest or self.writes[self.at]
        try:
            taken = self.connection.send(data)
        except BlockingIOError:
            taken = 0
        self.rest = data[taken:]
        if self.rest:
            return False
        self.at += 1
        return True

    @property
    def over(self) -> bool:
        """Return whether nothing is left to send."""
        return self.at >= len(self.writes)


class Sender:
    """All streams of the server, and whose turn it is."""

    def __init__(self, *, sleeps: bool) -> None:
        self.sleeps = sleeps
        self.selector = selectors.DefaultSelector()
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.listening.settimeout(0)
        self.selector.register(self.listening, selectors.EVENT_READ)
        self.sending: dict[Stream, None] = {}

    def accept(self) -> None:
        """Take a new connection."""
        with suppress(BlockingIOError):
            connection, _ = self.listening.accept()
            connection.settimeout(0)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(connection, selectors.EVENT_READ, Stream(connection))

    def listen(self) -> None:
        """Serve requests and writable connections; wait only if there is nothing to send."""
        for key, events in self.selector.select(None if self.sleeps and not self.sending else 0):
            stream = cast("Stream | None", key.data)
            if stream is None:
                self.accept()
                continue
            if events & selectors.EVENT_WRITE:
                self.selector.modify(stream.connection, selectors.EVENT_READ, stream)
            if events & selectors.EVENT_READ and not stream.receive():
                self.forget(stream)
            elif not stream.over:
                self.sending[stream] = None

    def send(self) -> None:
        """Give each stream one write."""
        for stream in tuple(self.sending):
            try:
                taken = stream.send()
            except ConnectionError:
                self.forget(stream)
                continue
            if stream.over:
                del self.sending[stream]
            elif not taken:
                # The client is slower: its turn comes when there is room again.
                del self.sending[stream]
                both = selectors.EVENT_READ | selectors.EVENT_WRITE
                self.selector.modify(stream.connection, both, stream)

    def forget(self, stream: Stream) -> None:
        """Close a stream whose client has gone."""
        self.sending.pop(stream, None)
        self.selector.unregister(stream.connection)
        stream.connection.close()


def serve(say: Callable[[int], None], *, sleeps: bool) -> None:
    """Serve until this process is ended.

    Args:
        say: receives the port.
        sleeps: whether to sleep while there is nothing to do. The kernel charges the waking to the
            client that sends the next request, and only if it came late enough.
    """
    sender = Sender(sleeps=sleeps)
    say(cast("int", sender.listening.getsockname()[1]))
    while True:
        sender.listen()
        sender.send()
