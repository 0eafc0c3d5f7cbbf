"""What `Http1Client` makes of servers that do as they like, and what it sends.

What it shares with the other clients is in test_http.py and the tables of the models.
"""

import asyncio
import gzip
import tracemalloc
import zlib
from dataclasses import dataclass
from typing import Final

import pytest

from deltafold import ErrorCode, MisuseError
from deltafold.transports.http import open_http_async
from deltafold.transports.http1 import Http1Client
from deltafold.transports.http1.request import target_of
from deltafold.transports.requests import HttpRequest
from deltafold.transports.responses import async_source_of
from http1_servers import (
    CHUNKED,
    HELLO,
    LOST,
    OK,
    PROTOCOL,
    answering,
    ask,
    code_of,
    request_of,
    serving,
    until,
)
from http_ways import request_to

# Where a body ends, and what a server may not do.

MANY: Final = b"".join(b"x-%d: 1\r\n" % number for number in range(300))


@dataclass(frozen=True)
class Row:
    """What a server sends before it closes, and what becomes of it."""

    sent: bytes
    body: bytes = b""
    code: ErrorCode | None = None
    says: str = ""


ROWS: Final = {
    "length": Row(HELLO, b"hello"),
    "chunks": Row(CHUNKED + b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", b"hello!"),
    "chunks with extensions and trailers": Row(
        CHUNKED + b"5;a=b\r\nhello\r\n0;c\r\nx-sum: 1\r\n\r\n", b"hello"
    ),
    "until the end": Row(OK + b"\r\nhello", b"hello"),
    "until the end, HTTP/1.0": Row(b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello"),
    "a head of many bytes": Row(
        OK + b"".join(b"a%d: %b\r\n" % (one, b"x" * 600) for one in range(90)) + b"\r\nhello",
        b"hello",
    ),
    "no content": Row(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "not modified": Row(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n"),
    "interim responses": Row(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + HELLO,
        b"hello",
    ),
    "a second response": Row(HELLO + HELLO, b"hello"),
    "garbage behind the response": Row(HELLO + b"garbage", b"hello"),
    "an offer of HTTP/2": Row(
        OK + b"upgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 5\r\n\r\nhello", b"hello"
    ),
    "cut length": Row(OK + b"content-length: 9\r\n\r\nhello", b"hello", LOST, "midst of the body"),
    "cut chunk": Row(CHUNKED + b"9\r\nhello", b"hello", LOST, "midst of the body"),
    "no last chunk": Row(CHUNKED + b"5\r\nhello\r\n", b"hello", LOST, "midst of the body"),
    "nothing": Row(b"", b"", LOST, "before the answer"),
    "half a head": Row(OK + b"content-le", b"", LOST, "before the answer"),
    "only interim": Row(b"HTTP/1.1 100 Continue\r\n\r\n", b"", LOST, "before the answer"),
    "no HTTP": Row(b"SSH-2.0-OpenSSH_9\r\n", b"", LOST, "no HTTP/1.1"),
    "HTTP/2": Row(b"\0\0\x12\4\0\0\0\0\0", b"", LOST, "no HTTP/1.1"),
    "no chunk size": Row(CHUNKED + b"5\r\nhello\r\nxyz\r\n", b"hello", LOST, "no HTTP/1.1"),
    "length and chunks": Row(
        OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\nhello", b"", LOST, "Content-L"
    ),
    "two lengths": Row(
        OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!", b"", LOST, "Content-Length"
    ),
    "a NUL in a header": Row(OK + b"a: b\0c\r\n\r\n", b"", LOST, "header value"),
    "too many headers": Row(OK + MANY + b"\r\n", b"", PROTOCOL, "200 fields"),
    "a header without an end": Row(OK + b"a: " + b"x" * 300_000, b"", PROTOCOL, "64 KiB"),
    "a long header": Row(OK + b"a: " + b"x" * 70_000 + b"\r\n\r\n", b"", PROTOCOL, "64 KiB"),
    "interim responses without an end": Row(
        b"HTTP/1.1 100 Continue\r\na: b\r\n\r\n" * 20_000, b"", PROTOCOL, "200 fields"
    ),
    "too many trailers": Row(
        CHUNKED + b"5\r\nhello\r\n0\r\n" + MANY, b"hello", PROTOCOL, "trailers"
    ),
    "a trailer without an end": Row(
        CHUNKED + b"5\r\nhello\r\n0\r\na: " + b"x" * 900_000, b"hello", PROTOCOL, "trailers"
    ),
    "an extension without an end": Row(
        CHUNKED + b"5\r\nhello\r\n5;" + b"x" * 900_000, b"hello", PROTOCOL, "chunk extensions"
    ),
    "another protocol": Row(
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"",
        PROTOCOL,
        "101|sw",
    ),
    "another transfer coding": Row(
        OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"", PROTOCOL, "gzip, chunked"
    ),
    "brotli": Row(
        OK + b"content-encoding: br\r\ncontent-length: 2\r\n\r\nxx", b"", PROTOCOL, "is in br"
    ),
    "no gzip": Row(
        OK + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\nxx",
        b"",
        PROTOCOL,
        "not valid gzip",
    ),
    "raw deflate": Row(
        OK + b"content-encoding: deflate\r\n\r\n" + zlib.compress(b"hello")[2:-4], b"hello"
    ),
    "gzip in two members": Row(
        OK + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"hel") + gzip.compress(b"lo"),
        b"hello",
    ),
}


WHOLE: Final = [name for name, row in ROWS.items() if row.code is None and len(row.sent) < 1000]


@pytest.mark.parametrize("row", ROWS)
def test_what_a_server_sends_ends_in_its_body_or_in_one_error(row: str) -> None:
    wanted = ROWS[row]

    async def main() -> None:
        async with answering(wanted.sent, then="close") as server, Http1Client() as client:
            answer = await ask(client, request_to(server.url))
            assert (answer.body, code_of(answer)) == (wanted.body, wanted.code)
            if wanted.code is not None:
                assert wanted.says.split("|")[-1] in str(answer.failure)
            assert len(server.heads) == 1

    asyncio.run(main())


@pytest.mark.parametrize("row", WHOLE)
def test_a_response_in_single_bytes_is_the_same(row: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        for at in range(len(ROWS[row].sent)):
            writer.write(ROWS[row].sent[at : at + 1])
            await writer.drain()
            await asyncio.sleep(0)

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            answer = await ask(client, request_to(server.url))
            assert (answer.body, answer.failure) == (ROWS[row].body, None)

    asyncio.run(main())


def test_a_response_to_head_has_no_body_and_gives_its_connection_back() -> None:
    async def main() -> None:
        answer = OK + b"content-length: 5\r\n\r\n"
        async with answering(answer, HELLO) as server, Http1Client() as client:
            source = await client.send(HttpRequest("HEAD", server.url, {}, {}, b""))
            assert source.headers["content-length"] == "5"
            assert [chunk async for chunk in source] == []
            assert (await ask(client, request_to(server.url))).body == b"hello"
            assert server.connections == 1

    asyncio.run(main())


def test_a_bomb_is_unpacked_in_bounded_steps() -> None:
    packed = gzip.compress(bytes(100_000_000))

    async def main() -> None:
        head = OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
        async with answering(head + packed) as server, Http1Client() as client:
            source = await open_http_async(client, request_to(server.url))
            tracemalloc.start()
            sizes = [len(chunk) async for chunk in source.chunks]
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert sum(sizes) == 100_000_000
            assert max(sizes) <= 256 * 1024
            assert most < 5_000_000

    asyncio.run(main())


# What goes out.


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("x-a", "b\r\nx-evil: 1", "value of x-a"),
        ("x-a", "b\nx-evil: 1", "value of x-a"),
        ("x-a", "b\0", "value of x-a"),
        ("x-a", "b\ud800", "value of x-a"),
        ("x-a\r\nx-evil", "1", r"'x-a\\r\\nx-evil' is not a valid header name"),
        ("x a", "1", "'x a' is not a valid header name"),
        ("", "1", "'' is not a valid header name"),
        ("Transfer-Encoding", "chunked", "transfer-encoding"),
        ("Content-Length", "7", "content-length is not 2"),
    ],
)
def test_a_header_that_would_break_the_head_is_misuse(name: str, value: str, says: str) -> None:
    async def main() -> None:
        async with Http1Client() as client:
            request = HttpRequest("POST", "http://localhost:1/", {name: value}, {}, b"{}")
            with pytest.raises(MisuseError, match=says):
                await open_http_async(client, request)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("method", "url", "says"),
    [
        ("POST", "ftp://host/", "not an http or https URL"),
        ("POST", "http:///path", "not an http or https URL"),
        ("POST", "http://host:port/", "not a URL"),
        ("POST", "http://ho%0d%0ast/", "not an http or https URL"),
        (
            "POST",
            "ftp://me:secret@host/?key=secret",
            r"^url: 'ftp://host/' is not an http or https URL",
        ),
        ("POST", "http://host/\ud800", "not a URL"),
        ("GET / HTTP/1.1\r\n\r\nPOST", "http://localhost:1/", "method"),
    ],
)
def test_a_request_line_that_cannot_be_is_misuse(method: str, url: str, says: str) -> None:
    async def main() -> None:
        async with Http1Client() as client:
            with pytest.raises(MisuseError, match=says):
                await open_http_async(client, HttpRequest(method, url, {}, {}, b""))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("http://host", "host", "/"),
        ("https://host:443/a%2Fb?c=%20#d", "host", "/a%2Fb?c=%20"),
        ("http://host:443/", "host:443", "/"),
        ("http://[::1]:8000/ü b", "[::1]:8000", "/%C3%BC%20b"),
        ("http://bücher.test/\r\nx", "xn--bcher-kva.test", "/x"),
    ],
)
def test_a_url_becomes_host_and_path(url: str, authority: str, path: str) -> None:
    target = target_of(url)
    assert (target.authority, target.path) == (authority, path)


def test_the_head_says_what_is_needed_once() -> None:
    async def main() -> None:
        async with answering(HELLO) as server, Http1Client() as client:
            url = server.url.replace("://", "://me:a%40b@")
            headers = {"X-Key": " k ", "accept-encoding": "identity"}
            await ask(client, HttpRequest("POST", url, headers, {"q": "1"}, b"{}"))
            line, *lines = server.heads[0].decode().split("\r\n")
            assert line == "POST /v1?q=1 HTTP/1.1"
            assert sorted(lines) == [
                "",
                "",
                "accept-encoding: identity",
                "authorization: Basic bWU6YUBi",
                "content-length: 2",
                f"host: localhost:{server.port}",
                "x-key: k",
            ]

    asyncio.run(main())


def test_an_address_of_version_6_is_reached() -> None:
    async def main() -> None:
        async with answering(HELLO, host="::1") as server, Http1Client() as client:
            url = server.url.replace("localhost", "[::1]")
            assert (await ask(client, request_to(url))).body == b"hello"
            assert f"host: [::1]:{server.port}\r\n".encode() in server.heads[0]

    asyncio.run(main())


def test_a_refusal_of_a_body_that_is_still_on_its_way_arrives() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        await asyncio.sleep(0.02)

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            for _ in range(2):
                request = HttpRequest("POST", server.url, {}, {}, bytes(30_000_000))
                answer = await ask(client, request)
                assert (answer.status, answer.body, answer.failure) == (413, b"big", None)
            # The rest of the body would be taken for the next request.
            assert server.connections == 2

    asyncio.run(main())


def test_a_large_body_arrives_whole() -> None:
    bodies: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            bodies.append(len(await reader.readexactly(5_000_000)))
            writer.write(HELLO)

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            request = HttpRequest("POST", server.url, {}, {}, bytes(5_000_000))
            for _ in range(2):
                assert (await ask(client, request)).body == b"hello"
            assert (bodies, server.connections) == ([5_000_000, 5_000_000], 1)

    asyncio.run(main())


def test_a_response_is_a_source_by_itself() -> None:
    async def main() -> None:
        async with answering(CHUNKED + b"5\r\nhello\r\n") as server, Http1Client() as client:
            response = await client.send(request_to(server.url))
            source = async_source_of(response)
            assert (source.status, source.headers["transfer-encoding"]) == (200, "chunked")
            assert await anext(source.chunks) == b"hello"
            await source.close()
            await until(lambda: client.open_connections == 0)

    asyncio.run(main())
