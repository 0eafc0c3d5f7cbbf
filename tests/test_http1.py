"""What is `Http1Client`'s own: its pool, TLS, proxies, and servers that do as they like.

What it shares with the other clients is in test_http.py and the tables of the models.
"""

import asyncio
import gzip
import re
import socket
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import trustme

from deltafold import ErrorCode, ErrorMapper, MisuseError
from deltafold.models.http import (
    HttpRequest,
    Timeouts,
    aclose_http_client,
    http_client_kind,
    make_http_client,
    open_http_async,
)
from deltafold.models.http1 import Http1Client
from deltafold.models.http1.addresses import Address, by_turns, socket_to
from deltafold.models.http1.request import target_of
from deltafold.models.http1.routes import Routes, proxy_of
from http_ways import Answer, request_to

OK: Final = b"HTTP/1.1 200 OK\r\n"
HELLO: Final = OK + b"content-length: 5\r\n\r\nhello"
CHUNKED: Final = OK + b"transfer-encoding: chunked\r\n\r\n"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass
class Server:
    """A server of one event loop, and what it saw."""

    port: int = 0
    scheme: str = "http"
    connections: int = 0
    heads: list[bytes] = field(default_factory=list[bytes])

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}/v1"


async def request_of(reader: asyncio.StreamReader) -> bytes:
    """Read one request; the body is `{}` or nothing."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b"content-length: 2\r\n" in head:
        await reader.readexactly(2)
    return head


@asynccontextmanager
async def serving(
    talk: Talk, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncGenerator[Server]:
    """Serve with a function; a client that leaves ends it."""
    server = Server(scheme="http" if tls is None else "https")

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            await talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(one, host, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        # What its own connections are still doing is over when their clients are.
        for _ in range(5):
            await asyncio.sleep(0.001)


@asynccontextmanager
async def answering(
    *answers: bytes,
    then: str = "wait",
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
) -> AsyncGenerator[Server]:
    """Serve each request of a connection with the next of these bytes, then wait or close."""
    heads: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            heads.append(await request_of(reader))
            writer.write(answer)
            await writer.drain()
        if then == "wait":
            await reader.read()

    async with serving(talk, tls, host) as server:
        server.heads = heads
        yield server


async def ask(client: object, request: HttpRequest) -> Answer:
    """Send a request and read its response as far as it comes."""
    answer = Answer()
    try:
        source = await open_http_async(client, request)
        answer.status, answer.headers = source.status, dict(source.headers)
        try:
            async for chunk in source.chunks:
                answer.body += chunk
        finally:
            await source.close()
    except Exception as exception:  # noqa: BLE001 - whatever it raises is the subject
        answer.failure = exception
    return answer


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


def code_of(answer: Answer) -> ErrorCode | None:
    return None if answer.failure is None else ErrorMapper().map(answer.failure).code


# Where a body ends, and what a server may not do.

LOST, PROTOCOL = ErrorCode.CONNECTION_LOST, ErrorCode.PROTOCOL_ERROR
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
        OK + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\nxx", b"", PROTOCOL, "no gzip"
    ),
    "raw deflate": Row(
        OK + b"content-encoding: deflate\r\n\r\n" + zlib.compress(b"hello")[2:-4], b"hello"
    ),
    "gzip in two members": Row(
        OK + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"hel") + gzip.compress(b"lo"),
        b"hello",
    ),
}


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


@pytest.mark.parametrize("row", [name for name, row in ROWS.items() if row.code is None])
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
        ("x-a\r\nx-evil", "1", r"'x-a\\r\\nx-evil' is no name"),
        ("x a", "1", "'x a' is no name"),
        ("", "1", "'' is no name"),
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
        ("POST", "ftp://host/", "no URL of http"),
        ("POST", "http:///path", "no URL of http"),
        ("POST", "http://host:port/", "no URL"),
        ("POST", "http://ho%0d%0ast/", "no URL of http"),
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


@pytest.mark.parametrize(
    ("families", "turns"),
    [("4", "4"), ("466", "466"), ("6644", "6464"), ("64444", "64444"), ("4466", "4646")],
)
def test_families_of_addresses_take_turns(families: str, turns: str) -> None:
    kinds = {"4": socket.AF_INET, "6": socket.AF_INET6}
    addresses: list[Address] = [
        (kinds[family], socket.SOCK_STREAM, 0, "", (family, number))
        for number, family in enumerate(families)
    ]
    found = by_turns(addresses)
    assert "".join(str(one[4][0]) for one in found) == turns
    assert sorted(one[4][1] for one in found) == list(range(len(families)))


def test_a_silent_address_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.2", 0), backlog=0) as full:
            port = full.getsockname()[1]
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.settimeout(0)
                filler.connect_ex(("127.0.0.2", port))
            listening = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", port)

            async def resolved(*_: object, **__: object) -> list[Address]:
                return [
                    (socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))
                    for host in ("127.0.0.3", "127.0.0.2", "127.0.0.1")
                ]

            monkeypatch.setattr(loop, "getaddrinfo", resolved)
            with await socket_to("api.test", port) as found:
                assert found.getpeername() == ("127.0.0.1", port)
            listening.close()
            for filler in fillers:
                filler.close()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_where_no_address_answers_all_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]

        async def resolved(*_: object, **__: object) -> list[Address]:
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))
                for host in ("127.0.0.1", "127.0.0.2")
            ]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
        async with Http1Client(trust_env=False) as client:
            answer = await ask(client, request_to(f"http://api.test:{port}/"))
        assert code_of(answer) is LOST
        assert re.search(rf"^api.test:{port}: .*127.0.0.1.*127.0.0.2", str(answer.failure))

    asyncio.run(main())


# The pool.


def test_connections_are_kept_and_shared_out_in_turn() -> None:
    async def main() -> None:
        async with answering(*[HELLO] * 9) as server, Http1Client(max_connections=2) as client:
            request = request_to(server.url)
            answers = await asyncio.gather(*(ask(client, request) for _ in range(8)))
            assert [answer.body for answer in answers] == [b"hello"] * 8
            assert server.connections == 2

    asyncio.run(main())


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"connection: close\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        HELLO + HELLO,
        HELLO + b"x",
    ],
)
def test_a_connection_that_must_not_be_used_again_is_closed(answer: bytes) -> None:
    async def main() -> None:
        async with answering(answer) as server, Http1Client() as client:
            for _ in range(3):
                assert (await ask(client, request_to(server.url))).body == b"hello"
            assert server.connections == 3

    asyncio.run(main())


def test_a_kept_connection_that_its_server_closed_is_not_used() -> None:
    async def main() -> None:
        async with answering(HELLO, then="close") as server, Http1Client() as client:
            for _ in range(3):
                assert (await ask(client, request_to(server.url))).body == b"hello"
            assert server.connections == 3

    asyncio.run(main())


def test_a_kept_connection_on_which_its_server_speaks_is_not_used() -> None:
    late = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(HELLO)
        await late.wait()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            assert (await ask(client, request_to(server.url))).status == 200
            late.set()
            await asyncio.sleep(0.02)
            assert (await ask(client, request_to(server.url))).status == 200
            assert server.connections == 2

    asyncio.run(main())


def test_a_request_is_not_sent_twice_when_its_kept_connection_dies() -> None:
    requests = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await request_of(reader)
        requests += 1
        writer.write(HELLO)
        await request_of(reader)
        requests += 1

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            assert (await ask(client, request_to(server.url))).body == b"hello"
            assert code_of(await ask(client, request_to(server.url))) is LOST
            assert requests == 2

    asyncio.run(main())


def test_idle_connections_are_bounded_in_number_and_in_time() -> None:
    async def main() -> None:
        async with (
            answering(HELLO, HELLO) as server,
            Http1Client(max_idle_connections=2, idle_seconds=0.05) as client,
        ):
            await asyncio.gather(*(ask(client, request_to(server.url)) for _ in range(5)))
            assert client.idle_connections == 2
            await until(lambda: client.open_connections == 0)

    asyncio.run(main())


def test_an_idle_connection_to_another_place_gives_way() -> None:
    async def main() -> None:
        async with (
            answering(HELLO) as one,
            answering(HELLO) as other,
            Http1Client(max_connections=1) as client,
        ):
            assert (await ask(client, request_to(one.url))).body == b"hello"
            assert (await ask(client, request_to(other.url))).body == b"hello"
            await until(lambda: client.open_connections == 1)

    asyncio.run(main())


def test_waiting_for_a_connection_ends_with_total_and_leaves_the_turn_to_others() -> None:
    async def main() -> None:
        async with (
            answering(HELLO) as server,
            answering(OK + b"content-length: 9\r\n\r\nhello") as slow,
            Http1Client(max_connections=1) as client,
        ):
            held = await open_http_async(client, request_to(slow.url))
            waiting = await ask(client, request_to(server.url, Timeouts(total=0.05)))
            assert "0.05 s (timeouts.total)" in str(waiting.failure)
            cancelled = asyncio.create_task(ask(client, request_to(server.url)))
            served = asyncio.create_task(ask(client, request_to(server.url)))
            await asyncio.sleep(0.01)
            cancelled.cancel()
            await held.close()
            assert (await served).body == b"hello"
            with pytest.raises(asyncio.CancelledError):
                await cancelled

    asyncio.run(main())


@pytest.mark.parametrize("turns", range(12))
@pytest.mark.parametrize("idle", [0, 1])
def test_a_call_that_is_cancelled_at_any_turn_holds_nothing(idle: int, turns: int) -> None:
    async def main() -> None:
        async with (
            answering(HELLO, HELLO, HELLO) as server,
            Http1Client(max_connections=1, max_idle_connections=idle) as client,
        ):
            await ask(client, request_to(server.url))
            task = asyncio.create_task(ask(client, request_to(server.url)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            answer = await ask(client, request_to(server.url, Timeouts(total=5)))
            assert answer.body == b"hello"

    asyncio.run(main())


# Reading slowly, leaving, closing.


def test_a_server_has_to_wait_for_a_slow_reader() -> None:
    sent = 0
    size = 64 * 1024

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request_of(reader)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        writer.write(CHUNKED)
        for _ in range(512):
            writer.write(b"%x\r\n%b\r\n" % (size, bytes(size)))
            await writer.drain()
            sent += size
        writer.write(b"0\r\n\r\n")
        await reader.read()

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            response = await client.send(request_to(server.url))
            seen = -1
            while seen != sent:
                seen = sent
                await asyncio.sleep(0.05)
            # What is neither with the reader nor with the server is in the buffers of the system.
            assert sent < 256 * size
            assert sum([len(chunk) async for chunk in response]) == 512 * size
            assert client.idle_connections == 1

    asyncio.run(main())


def test_a_client_that_is_closed_ends_what_is_being_read() -> None:
    async def main() -> None:
        # A body until the end of its connection must not pass for whole.
        async with answering(OK + b"\r\nhello") as server:
            client = Http1Client()
            source = await open_http_async(client, request_to(server.url))
            assert await anext(source.chunks) == b"hello"
            reading = asyncio.ensure_future(source.chunks.__anext__())
            await asyncio.sleep(0)
            await client.aclose()
            await client.aclose()
            with pytest.raises(ConnectionError, match="client was closed"):
                await reading
            with pytest.raises(MisuseError, match="closed"):
                await open_http_async(client, request_to(server.url))
            assert client.open_connections == 0

    asyncio.run(main())


def test_a_client_belongs_to_its_event_loop() -> None:
    client = Http1Client(max_idle_connections=0)

    async def use() -> Answer:
        async with answering(HELLO) as server:
            return await ask(client, request_to(server.url))

    assert asyncio.run(use()).body == b"hello"
    answer = asyncio.run(use())
    assert isinstance(answer.failure, MisuseError)
    assert "another event loop" in str(answer.failure)
    asyncio.run(client.aclose())


def test_it_is_known_as_an_asynchronous_client() -> None:
    async def main() -> None:
        client = make_http_client("asynchronous", "httptools")
        assert isinstance(client, Http1Client)
        assert http_client_kind(client) == "asynchronous"
        await aclose_http_client(client)

    asyncio.run(main())


def test_the_server_that_speaks_first_is_refused() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.test ESMTP\r\n")
        await writer.drain()

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            assert code_of(await ask(client, request_to(server.url))) in {LOST, PROTOCOL}

    asyncio.run(main())


# TLS.


@dataclass(frozen=True)
class Certificates:
    """An authority of its own, and both sides of a connection that trusts it."""

    server: ssl.SSLContext
    client: ssl.SSLContext


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    authority: Any = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    server.set_alpn_protocols(["h2", "http/1.1"])
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return Certificates(server, client)


def test_tls_is_spoken_and_its_connections_are_kept(certificates: Certificates) -> None:
    async def main() -> None:
        async with (
            answering(HELLO, HELLO, tls=certificates.server) as server,
            Http1Client(ssl=certificates.client) as client,
        ):
            for _ in range(2):
                assert (await ask(client, request_to(server.url))).body == b"hello"
            assert server.connections == 1

    asyncio.run(main())


def test_a_certificate_of_somebody_else_or_for_another_name_is_refused(
    certificates: Certificates,
) -> None:
    async def main() -> None:
        async with answering(HELLO, tls=certificates.server) as server:
            async with Http1Client() as strict:
                answer = await ask(strict, request_to(server.url))
                assert code_of(answer) is LOST
                assert "CERTIFICATE_VERIFY_FAILED" in str(answer.failure)
            async with Http1Client(ssl=certificates.client) as client:
                url = server.url.replace("localhost", "127.0.0.1")
                answer = await ask(client, request_to(url))
                assert "IP address mismatch" in str(answer.failure)
            assert server.heads == []

    asyncio.run(main())


def test_a_context_that_offers_http_2_is_an_error_that_says_so(certificates: Certificates) -> None:
    context = ssl.create_default_context(cadata=None)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])

    async def main() -> None:
        async with (
            answering(HELLO, tls=certificates.server) as server,
            Http1Client(ssl=context) as client,
        ):
            answer = await ask(client, request_to(server.url))
            assert code_of(answer) is PROTOCOL
            assert "h2 was agreed upon" in str(answer.failure)

    asyncio.run(main())


def test_a_stream_over_tls_that_is_left_does_not_wait_for_its_server(
    certificates: Certificates,
) -> None:
    stuck = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(CHUNKED + b"5\r\nhello\r\n")
        await stuck.wait()

    async def main() -> None:
        async with serving(talk, certificates.server) as server:
            async with asyncio.timeout(5), Http1Client(ssl=certificates.client) as client:
                source = await open_http_async(client, request_to(server.url))
                assert await anext(source.chunks) == b"hello"
                await source.close()
                source = await open_http_async(client, request_to(server.url))
            assert client.open_connections == 0
            stuck.set()
            await asyncio.sleep(0.01)

    asyncio.run(main())


# Proxies.


@asynccontextmanager
async def proxying(answer: bytes = b"") -> AsyncGenerator[Server]:
    """Serve as a proxy: tunnels to where CONNECT asks, answers other requests itself."""
    heads: list[bytes] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await request_of(reader)
            heads.append(head)
            if answer or not head.startswith(b"CONNECT"):
                writer.write(answer or HELLO)
                continue
            host, _, port = head.split()[1].decode().rpartition(":")
            there = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(
                copy(reader, there[1]), copy(there[0], writer), return_exceptions=True
            )
            return

    async with serving(talk) as server:
        server.heads = heads
        yield server


def test_https_goes_through_a_tunnel(certificates: Certificates) -> None:
    async def main() -> None:
        async with proxying() as proxy, answering(HELLO, HELLO, tls=certificates.server) as server:
            url = f"http://me:secret@127.0.0.1:{proxy.port}"
            async with Http1Client(ssl=certificates.client, proxy=url) as client:
                for _ in range(2):
                    request = HttpRequest("POST", server.url, {"x-key": "k"}, {}, b"{}")
                    assert (await ask(client, request)).body == b"hello"
            [head] = proxy.heads
            place = f"localhost:{server.port}"
            assert head.decode() == (
                f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n"
                "proxy-authorization: Basic bWU6c2VjcmV0\r\n\r\n"
            )
            assert b"proxy-authorization" not in b"".join(server.heads)
            assert (proxy.connections, server.connections) == (1, 1)

    asyncio.run(main())


def test_http_is_asked_for_in_the_whole() -> None:
    async def main() -> None:
        async with proxying() as proxy:
            url = f"me:secret@127.0.0.1:{proxy.port}"
            async with Http1Client(proxy=url) as client:
                for _ in range(2):
                    answer = await ask(client, request_to("http://api.test/v1", a=1))
                    assert answer.body == b"hello"
            assert proxy.heads[0].startswith(
                b"POST http://api.test/v1?a=1 HTTP/1.1\r\nhost: api.test\r\n"
            )
            assert b"proxy-authorization: Basic bWU6c2VjcmV0\r\n" in proxy.heads[0]
            assert proxy.connections == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
            ErrorCode.INVALID_REQUEST,
            "answered 407 Proxy Authentication Required for api.test:443",
        ),
        (b"HTTP/1.1 503 Busy\r\n\r\n", ErrorCode.OVERLOADED, "answered 503 Busy"),
        (b"garbage\r\n\r\n", LOST, "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 99_999, LOST, "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\nmore", PROTOCOL, "bytes of its own"),
    ],
)
def test_a_proxy_that_refuses_is_named_without_its_password(
    answer: bytes, code: ErrorCode, says: str
) -> None:
    async def main() -> None:
        async with proxying(answer) as proxy:
            url = f"http://me:secret@127.0.0.1:{proxy.port}"
            async with Http1Client(proxy=url) as client:
                failed = await ask(client, request_to("https://api.test/"))
                assert code_of(failed) is code
                assert says in str(failed.failure)
                assert f"http://127.0.0.1:{proxy.port}" in str(failed.failure)
                assert "secret" not in str(failed.failure)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({"HTTPS_PROXY": "http://a:1"}, "https://api.test/", "http://a:1"),
        ({"https_proxy": "a:1"}, "https://api.test/", "http://a:1"),
        ({"https_proxy": "http://a:1"}, "http://api.test/", None),
        ({"HTTP_PROXY": "https://u:p@a"}, "http://api.test/", "https://a:443"),
        ({"ALL_PROXY": "http://[::1]:2"}, "https://api.test/", "http://[::1]:2"),
        ({"all_proxy": "a:1", "NO_PROXY": "api.test"}, "https://api.test/", None),
        ({"ALL_PROXY": "a:1", "no_proxy": ".test,x"}, "https://api.test/", None),
        ({"ALL_PROXY": "a:1", "no_proxy": "api.test:443"}, "https://api.test/", None),
        ({"ALL_PROXY": "a:1", "no_proxy": "api.test:444"}, "https://api.test/", "http://a:1"),
        ({"ALL_PROXY": "a:1", "no_proxy": "*"}, "http://api.test/", None),
        ({}, "https://api.test/", None),
    ],
)
def test_the_environment_names_the_proxy(
    environment: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = Routes(None, trust_env=True).route_to(target_of(url)).proxy
    assert (None if found is None else str(found)) == proxy
    assert Routes(None, trust_env=False).route_to(target_of(url)).proxy is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("socks5://a:1", r"socks5 .*transport='httpx2'.*pip install 'httpx2\[socks\]'"),
        ("ftp://a:1", "http or https"),
        ("http://", "http or https"),
        ("http://a:b", "cannot be read"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_misuse(url: str, says: str) -> None:
    with pytest.raises(MisuseError, match=says):
        Http1Client(proxy=url)
    with pytest.raises(MisuseError, match=says):
        proxy_of(url)
