"""Servers that send arbitrary bytes: each client gives a body or one error."""

import gzip
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

import pytest

from deltafold import ErrorCode, ErrorMapper
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.timeouts import Timeouts
from http_ways import WAYS, fetch, request_to, with_source

OK: Final = b"HTTP/1.1 200 OK\r\n"
HELLO: Final = OK + b"content-length: 5\r\n\r\nhello"
CHUNKED: Final = OK + b"transfer-encoding: chunked\r\n\r\n"
MANY: Final = b"".join(b"x-%d: 1\r\n" % number for number in range(20_000))
LIMITS: Final = Timeouts(connect=5, first_byte=5, idle=5)

every_way = pytest.mark.parametrize("way", WAYS)


@contextmanager
def answering(sent: bytes, *, in_single_bytes: bool = False) -> Generator[tuple[str, list[bytes]]]:
    """Serve each connection with these bytes after its request, then close it."""
    seen: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        received = b""
        while not received.endswith(b"\r\n\r\n{}"):
            data = connection.recv(65536)
            if not data:
                return
            received += data
        seen.append(received)
        pieces = [sent[at : at + 1] for at in range(len(sent))] if in_single_bytes else [sent]
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # A client that leaves resets the connection.
            with connection, suppress(OSError):
                talk(connection)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", seen
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


WHOLE: Final = {
    "length": HELLO,
    "chunks": CHUNKED + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    "chunks with extensions and trailers": CHUNKED + b"5;a=b\r\nhello\r\n0;c\r\nx-sum: 1\r\n\r\n",
    "until the end": OK + b"\r\nhello",
    "until the end, HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "many headers": OK + b"".join(b"a%d: b\r\n" % one for one in range(90)) + b"\r\nhello",
    "interim responses": b"HTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + HELLO,
    "a second response": HELLO + HELLO,
    "garbage behind the response": HELLO + b"garbage",
    "gzip in two members": OK
    + b"content-encoding: gzip\r\n\r\n"
    + gzip.compress(b"hel")
    + gzip.compress(b"lo"),
    "raw deflate": OK + b"content-encoding: deflate\r\n\r\n" + zlib.compress(b"hello")[2:-4],
}
BROKEN: Final = {
    "cut length": OK + b"content-length: 9\r\n\r\nhello",
    "cut chunk": CHUNKED + b"9\r\nhello",
    "no last chunk": CHUNKED + b"5\r\nhello\r\n",
    "nothing": b"",
    "half a head": OK + b"content-le",
    "only interim": b"HTTP/1.1 100 Continue\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH_9\r\n",
    "HTTP/2": b"\0\0\x12\4\0\0\0\0\0",
    "no chunk size": CHUNKED + b"5\r\nhello\r\nxyz\r\n",
    "two lengths": OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "a NUL in a header": OK + b"a: b\0c\r\n\r\n",
    "a header without an end": OK + b"a: " + b"x" * 300_000,
    "headers without an end": OK + MANY,
    "interim responses without an end": b"HTTP/1.1 100 Continue\r\na: b\r\n\r\n" * 20_000,
    "no gzip": OK + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\nxx",
}


# Limits of the clients, described in docs/transports.md.
REFUSED: Final = {
    ("aiohttp", "garbage behind the response"),
    ("httpx", "gzip in two members"),
    ("httpx2", "gzip in two members"),
}
UNBOUNDED: Final = {
    ("httpx", "gzip"),
    ("httpx", "deflate"),
    ("httpx, asyncio", "deflate"),
    ("httpx, trio", "deflate"),
}
WHOLE_WAYS: Final = [(way, row) for row in WHOLE for way in WAYS if (way, row) not in REFUSED]
# httpx and httpx2 tell the two forms of deflate apart by the first chunk, which one byte cannot do.
IN_BYTES: Final = [
    (way, row) for way, row in WHOLE_WAYS if row != "raw deflate" or not way.startswith("httpx")
]


@pytest.mark.parametrize(("way", "row"), WHOLE_WAYS)
def test_a_whole_response_is_its_body(way: str, row: str) -> None:
    with answering(WHOLE[row]) as (url, seen):
        answer = fetch(way, request_to(url, LIMITS))
    assert (answer.status, answer.body, answer.failure) == (200, b"hello", None)
    assert len(seen) == 1


@pytest.mark.parametrize(("way", "row"), IN_BYTES)
def test_a_response_in_single_bytes_is_the_same(way: str, row: str) -> None:
    with answering(WHOLE[row], in_single_bytes=True) as (url, _):
        answer = fetch(way, request_to(url, LIMITS))
    assert (answer.body, answer.failure) == (b"hello", None)


@every_way
@pytest.mark.parametrize("row", BROKEN)
def test_a_broken_response_is_one_error_after_what_came(way: str, row: str) -> None:
    with answering(BROKEN[row]) as (url, seen):
        answer = fetch(way, request_to(url, LIMITS))
    assert b"hello".startswith(answer.body)
    assert answer.failure is not None
    code = ErrorMapper().map(answer.failure).code
    assert code in {ErrorCode.CONNECTION_LOST, ErrorCode.PROTOCOL_ERROR}
    # The request may have been executed: it is sent once.
    assert len(seen) == 1


@every_way
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_bomb_is_unpacked_in_bounded_steps(way: str, encoding: str) -> None:
    bomb = bytes(30_000_000)
    packed = gzip.compress(bomb) if encoding == "gzip" else zlib.compress(bomb)
    head = b"content-encoding: %b\r\ncontent-length: %d\r\n\r\n" % (encoding.encode(), len(packed))

    def use(source: Source) -> list[int]:
        return [len(chunk) for chunk in source.chunks]

    async def use_async(source: AsyncSource) -> list[int]:
        return [len(chunk) async for chunk in source.chunks]

    with answering(OK + head + packed) as (url, _):
        tracemalloc.start()
        try:
            sizes = with_source(way, request_to(url, LIMITS), use, use_async)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sum(sizes) == len(bomb)
    if (way, encoding) not in UNBOUNDED:
        assert max(sizes) <= 1 << 20
        assert most < 6 << 20
