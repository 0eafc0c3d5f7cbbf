"""Replay of recorded streams over real HTTP.

In: `Recording`s.  Out: a server on the loopback interface that answers with them, and counts its
connections and requests.

Laws: bytes are sent as recorded, one HTTP chunk per piece. Leaving the `with` closes every socket
and ends every thread.
"""

import contextlib
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self, cast

from deltafold.testing.playlist import Playlist, Recordings, Request
from deltafold.testing.recording import Ending, Recording

# SO_LINGER on, 0 seconds: close() then sends a reset instead of an orderly end.
_LINGER_RESET = struct.pack("ii", 1, 0)


class ReplayServer(Playlist):
    """An HTTP/1.1 server on the loopback interface that answers with recordings.

    >>> with ReplayServer({"/v1/messages": Recording.read("answer.sse")}) as server:
    ...     client = anthropic.Anthropic(base_url=server.url, api_key="unused")

    Args:
        recordings: answers by request path without the query (`/v1beta/models/*`), or answers to
            the requests in their order.
        flat_out: leaves the recorded pauses out.

    Attributes:
        requests: what was asked, in order.
    """

    def __init__(self, recordings: Recordings | None = None, *, flat_out: bool = False) -> None:
        super().__init__(recordings)
        self.flat_out = flat_out
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The server's base URL, without a slash at the end."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def connections(self) -> int:
        """Number of accepted connections."""
        return self._server.accepted

    @property
    def open_connections(self) -> int:
        """Number of open connections."""
        return len(self._server.sockets)

    def pause(self, seconds: float) -> bool:
        """Wait, unless the server closes or plays without delay; return whether to continue."""
        return not seconds or self.flat_out or not self._server.closing.wait(seconds)

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
    request_queue_size = 1024
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
                # The handler that reads the socket sees the end and closes it. A socket whose
                # client has closed it cannot be shut down again.
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
        """Log nothing: a test reads `requests`."""

    def _replay(self, recording: Recording) -> None:
        replay = self._replaying.replay
        if not replay.pause(recording.headers_after):
            self.close_connection = True
            return
        if recording.before_headers and recording.ending != "end":
            self._stop(recording.ending)
            return
        self.send_response(recording.status)
        for name, value in recording.headers.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for after, piece in recording.pieces_sent():
            if not replay.pause(after):
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if recording.ending == "end":
            self.wfile.write(b"0\r\n\r\n")
        else:
            self._stop(recording.ending)

    def _stop(self, ending: Ending) -> None:
        self.close_connection = True
        if ending == "stall":
            # Silence until the client leaves or the server closes: either ends this read.
            self.rfile.read(1)
        elif ending == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            self.connection.close()
