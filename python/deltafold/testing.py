"""Replay of recorded streams over real HTTP, for the tests of whoever builds on deltafold.

In: `Recording`s: the exact bytes of a response body, where they were split, and the pauses between.
Out: a server on the loopback interface that answers with them, and counts what it was asked.

Laws: bytes go out as recorded, one HTTP chunk a piece; nothing but the standard library is needed;
leaving the `with` closes every socket and ends every thread.
"""

import contextlib
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias, cast

# How the body stops: whole; the connection closed in the middle; reset; or left open in silence.
Ending: TypeAlias = Literal["end", "cut", "reset", "stall"]

# SO_LINGER on, 0 seconds: close() then sends a reset instead of an orderly end.
_LINGER_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded response.

    Attributes:
        pieces: the body as it came: seconds of silence before each piece, and its bytes.
        status: the HTTP status.
        headers: response headers beside those of the transfer itself.
        ending: how the body stops.
        stop_after: with an ending other than `end`: after how many bytes of body, None for all of
            them.
    """

    pieces: tuple[tuple[float, bytes], ...]
    status: int = 200
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"content-type": "text/event-stream"}
    )
    ending: Ending = "end"
    stop_after: int | None = None

    @classmethod
    def of(cls, body: bytes, *, piece_bytes: int | None = None) -> Self:
        """Make a recording of a whole body without pauses, in pieces of so many bytes."""
        size = piece_bytes or max(len(body), 1)
        return cls(tuple((0.0, body[at : at + size]) for at in range(0, len(body), size)))

    @classmethod
    def of_events(cls, body: bytes, *, delay: float = 0.0) -> Self:
        """Make a recording of an SSE body: one piece an event, so many seconds apart."""
        events = body.split(b"\n\n")
        whole = [event + b"\n\n" for event in events[:-1]] + ([events[-1]] if events[-1] else [])
        return cls(tuple((delay, event) for event in whole))

    @classmethod
    def read(cls, path: Path | str, *, delay: float = 0.0) -> Self:
        """Read an SSE body from a file; see `of_events`."""
        return cls.of_events(Path(path).read_bytes(), delay=delay)

    @classmethod
    def error(cls, status: int, body: object, headers: Mapping[str, str] | None = None) -> Self:
        """Make an answer with an error status and a JSON body."""
        piece = (0.0, json.dumps(body).encode())
        return cls((piece,), status, {"content-type": "application/json", **(headers or {})})

    def stopping(self, ending: Ending, after: int | None = None) -> Self:
        """Return the same recording that stops after so many bytes of body, in this way."""
        return replace(self, ending=ending, stop_after=after)

    @property
    def body(self) -> bytes:
        """The bytes that go out."""
        return b"".join(piece for _, piece in self.pieces)[: self.stop_after]


@dataclass(frozen=True, slots=True)
class Request:
    """One request that the server was sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> object:
        """Return the body as parsed JSON."""
        return json.loads(self.body)


class ReplayServer:
    """An HTTP/1.1 server on the loopback interface that answers with recordings.

    >>> with ReplayServer({"/v1/messages": Recording.read("answer.sse")}) as server:
    ...     client = anthropic.Anthropic(base_url=server.url, api_key="unused")

    A queued recording answers the next request, whatever its path; then the recordings by path do,
    again and again; any other request gets a 404.

    Args:
        recordings: answers by request path, without the query.
        flat_out: leaves the recorded pauses out.
    """

    def __init__(
        self, recordings: Mapping[str, Recording] | None = None, *, flat_out: bool = False
    ) -> None:
        self.flat_out = flat_out
        self.recordings = dict(recordings or {})
        self.requests: list[Request] = []
        self._queue: deque[Recording] = deque()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def queue(self, *recordings: Recording) -> None:
        """Answer the next requests with these, in this order."""
        self._queue.extend(recordings)

    @property
    def url(self) -> str:
        """The server's base URL, without a slash at the end."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def connections(self) -> int:
        """How many connections were accepted."""
        return self._server.accepted

    @property
    def open_connections(self) -> int:
        """How many connections are open now."""
        return len(self._server.sockets)

    def answer_to(self, request: Request) -> Recording:
        """Choose the recording that answers a request."""
        self.requests.append(request)
        if self._queue:
            return self._queue.popleft()
        path = request.path.partition("?")[0]
        missing = Recording.error(404, {"error": {"message": f"no recording for {path}"}})
        return self.recordings.get(path, missing)

    def pause(self, seconds: float) -> bool:
        """Wait, unless the server closes; returns whether it goes on."""
        return not self._server.closing.wait(seconds)

    def close(self) -> None:
        """Close every connection and end every thread."""
        if self._server.closing.is_set():
            return
        self._server.closing.set()
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """Counts connections and can end those that are left open."""

    daemon_threads = True
    # Tests open many connections at once; the default of 5 would refuse some.
    request_queue_size = 128
    block_on_close = True

    def __init__(self, replay: ReplayServer) -> None:
        self.replay = replay
        self.accepted = 0
        self.closing = threading.Event()
        self.sockets: set[socket.socket] = set()
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_close(self) -> None:
        with self.lock:
            for connection in self.sockets:
                # The handler that reads it sees the end and closes it.  One whose client has gone
                # already has nothing to shut down.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        super().server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _replaying(self) -> _Server:
        return cast("_Server", self.server)

    def setup(self) -> None:
        super().setup()
        with self._replaying.lock:
            self._replaying.accepted += 1
            self._replaying.sockets.add(self.connection)

    def finish(self) -> None:
        with self._replaying.lock:
            self._replaying.sockets.discard(self.connection)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            # The client left in the middle, or the server closes: either ends this connection.
            self.close_connection = True

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body)
        self._replay(self._replaying.replay.answer_to(request))

    do_GET = do_POST  # noqa: N815 - the name that the standard library looks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        """Say nothing: a test reads `requests`."""

    def _replay(self, recording: Recording) -> None:
        self.send_response(recording.status)
        for name, value in recording.headers.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        replay = self._replaying.replay
        left = len(recording.body)
        for delay, piece in recording.pieces:
            if delay and not replay.flat_out and not replay.pause(delay):
                break
            sent = piece[:left]
            left -= len(sent)
            if sent:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(sent), sent))
        self._end(recording.ending)

    def _end(self, ending: Ending) -> None:
        if ending == "end":
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True
        if ending == "stall":
            # Silence until the client leaves or the server closes: either ends this read.
            self.rfile.read(1)
        elif ending == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            self.connection.close()
