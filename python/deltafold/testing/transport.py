"""Replay of recorded streams inside this process: no socket, no server, no HTTP client.

In: `Recording`s.  Out: a transport that a `Model` takes as its client.

Laws: the chunks are the recorded pieces. A fault is the exception that a connection would raise. A
limit of the request that is exceeded is a `TimeoutError` that names it, after the same time. The
transport runs under asyncio, under trio and in threads.
"""

import asyncio
import sys
import threading
import zlib
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final, Protocol, Self, cast
from urllib.parse import urlsplit

from deltafold.testing.playlist import Playlist, Recordings, Request
from deltafold.testing.recording import Ending, Recording
from deltafold.transports.encodings import ContentDecodingError
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.timeouts import Limit, Limits, under_asyncio

_FAULTS: Final[dict[Ending, Callable[[], Exception]]] = {
    "cut": lambda: ConnectionError("the connection was closed in the middle of the response"),
    "reset": lambda: ConnectionResetError("the connection was reset by the peer"),
    "stall": lambda: TimeoutError("no more bytes came, and the connection stayed open"),
}
_TRANSFER_HEADERS: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def fault_of(ending: Ending) -> Exception | None:
    """Return the exception that a reader gets at the end of a body; None for a complete one."""
    fault = _FAULTS.get(ending)
    return None if fault is None else fault()


class ReplayTransport(Playlist):
    """Answers requests with recordings, inside of this process.

    >>> transport = ReplayTransport(Recording.load_all("recordings/weather"))
    >>> model = AnthropicModel({"model_id": "claude-demo"}, client=transport)

    Args:
        recordings: answers by request path without the query (`/v1beta/models/*`), or answers to
            the requests in their order.
        flat_out: leaves the recorded pauses out.

    Attributes:
        requests: what was asked, in order; a model's key is among the headers.
    """

    def __init__(self, recordings: Recordings | None = None, *, flat_out: bool = False) -> None:
        super().__init__(recordings)
        self.flat_out = flat_out

    def open(self, request: HttpRequest) -> Source:
        """Return the recorded response.

        Raises:
            TimeoutError: it did not begin within the request's limits.
            ConnectionError: the recording stops before its headers.
        """
        playing = self._begin(request)
        playing.wait(*playing.opening())
        return Source(playing, playing.close, playing.recording.status, playing.headers)

    async def open_async(self, request: HttpRequest) -> AsyncSource:
        """Return the recorded response; the asynchronous form of `open`."""
        playing = self._begin(request)
        sleep = asyncio.sleep if under_asyncio() else cast("_Trio", sys.modules["trio"]).sleep
        awaited = _Awaited(playing, sleep)
        await awaited.wait(*playing.opening())
        return AsyncSource(awaited, awaited.aclose, playing.recording.status, playing.headers)

    def _begin(self, request: HttpRequest) -> "_Playing":
        parts = urlsplit(request.full_url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        headers = {name.lower(): value for name, value in request.headers.items()}
        recording = self.answer_to(Request(request.method, path, headers, request.content))
        return _Playing(recording, Limits(request.timeouts), flat_out=self.flat_out)


class _Trio(Protocol):
    async def sleep(self, seconds: float) -> None: ...


class _Playing:
    """Playback of one response: the waiting times, and the waiting in a thread."""

    def __init__(self, recording: Recording, limits: Limits, *, flat_out: bool) -> None:
        self.recording = recording
        names = {name.lower(): value for name, value in recording.headers.items()}
        self.headers = {
            name: value for name, value in names.items() if name not in _TRANSFER_HEADERS
        }
        self._limits = limits
        self._limit: Limit = "first_byte"
        self._flat_out = flat_out
        self._closed = threading.Event()
        self._pieces = recording.pieces_sent()
        packed = names.get("content-encoding", "identity") != "identity"
        # The first bytes distinguish gzip from deflate.
        self._unzip = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed else None

    def opening(self) -> tuple[float, Exception | None]:
        """Return the waiting time for the headers, and the failure after it."""
        fault = self._fault() if self.recording.before_headers else (0.0, None)
        return self._within(self.recording.headers_after, fault)

    def step(self) -> tuple[float, Exception | None, bytes | None]:
        """Return the waiting time for the next piece, the failure after it, and the piece."""
        after, piece = next(self._pieces, (0.0, None))
        seconds, failure = self._within(after, self._fault() if piece is None else (0.0, None))
        self._limit = "idle"
        return seconds, failure, piece

    def decoded(self, piece: bytes) -> bytes:
        """Undo the content encoding."""
        if self._unzip is None:
            return piece
        try:
            return self._unzip.decompress(piece)
        except zlib.error as error:
            raise ContentDecodingError(
                f"the body is not compressed as its content-encoding says: {error}"
            ) from error

    def wait(self, seconds: float, failure: Exception | None) -> None:
        """Wait in this thread, then raise the failure if there is one."""
        if seconds and self._closed.wait(None if seconds == inf else seconds):
            raise ConnectionError("the response was closed")
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the waiting."""
        self._closed.set()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        seconds, failure, piece = self.step()
        self.wait(seconds, failure)
        if piece is None:
            raise StopIteration
        return self.decoded(piece)

    def _fault(self) -> tuple[float, Exception | None]:
        ending = self.recording.ending
        if ending == "stall":
            return inf, None
        return 0.0, fault_of(ending)

    def _within(
        self, after: float, fault: tuple[float, Exception | None]
    ) -> tuple[float, Exception | None]:
        seconds = (0.0 if self._flat_out else after) + fault[0]
        limit, allowed = self._limits.of(self._limit)
        if allowed is not None and seconds > allowed:
            return allowed, self._limits.missed(limit)
        return seconds, fault[1]


class _Awaited:
    """The same response, awaited."""

    def __init__(self, playing: _Playing, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._playing = playing
        self._sleep = sleep

    async def wait(self, seconds: float, failure: Exception | None) -> None:
        """Wait, then raise the failure if there is one."""
        # Yield to other tasks even without a waiting time.
        await self._sleep(seconds)
        if failure is not None:
            raise failure

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        seconds, failure, piece = self._playing.step()
        await self.wait(seconds, failure)
        if piece is None:
            raise StopAsyncIteration
        return self._playing.decoded(piece)

    async def aclose(self) -> None:
        """Do nothing: a replay holds no resources."""
