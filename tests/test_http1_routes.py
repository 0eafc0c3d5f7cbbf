"""The ways of `Http1Client` to a server: TLS, and proxies."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trustme

from deltafold import ErrorCode, MisuseError
from deltafold.transports.http import open_http_async
from deltafold.transports.http1 import Http1Client
from deltafold.transports.http1.request import target_of
from deltafold.transports.http1.routes import Routes, proxy_of
from deltafold.transports.requests import HttpRequest
from deltafold.transports.timeouts import Timeouts
from http1_servers import (
    CHUNKED,
    HELLO,
    LOST,
    OK,
    PROTOCOL,
    Server,
    answering,
    ask,
    code_of,
    request_of,
    serving,
)
from http_ways import request_to

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
            assert "h2 was negotiated" in str(answer.failure)

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


def test_a_server_has_to_wait_for_a_slow_reader_over_tls_too(certificates: Certificates) -> None:
    sent = 0
    size = 64 * 1024

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request_of(reader)
        writer.write(OK + b"\r\n")
        for _ in range(512):
            writer.write(bytes(size))
            await writer.drain()
            sent += size

    async def main() -> None:
        async with (
            serving(talk, certificates.server) as server,
            Http1Client(ssl=certificates.client) as client,
        ):
            response = await client.send(request_to(server.url))
            seen = -1
            while seen != sent:
                seen = sent
                await asyncio.sleep(0.05)
            assert sent < 256 * size
            # The body ends with the connection, which ends while its last bytes are unread.
            assert sum([len(chunk) async for chunk in response]) == 512 * size

    asyncio.run(main())


# Proxies.


@asynccontextmanager
async def proxying(
    answer: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
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

    async with serving(talk, tls) as server:
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
        (b"HTTP/1.1 200 OK\r\n\r\nmore", PROTOCOL, "after its answer to CONNECT"),
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


def test_a_proxy_is_spoken_to_over_tls_and_tls_goes_through_it(certificates: Certificates) -> None:
    async def main() -> None:
        async with (
            proxying(tls=certificates.server) as proxy,
            answering(HELLO, HELLO, tls=certificates.server) as server,
            Http1Client(ssl=certificates.client, proxy=f"https://localhost:{proxy.port}") as client,
        ):
            for _ in range(2):
                assert (await ask(client, request_to(server.url))).body == b"hello"
            assert (await ask(client, request_to("http://api.test/"))).body == b"hello"
            assert [head.split()[0] for head in proxy.heads] == [b"CONNECT", b"POST"]

    asyncio.run(main())


@pytest.mark.parametrize("proxy", [False, True])
def test_tls_and_a_tunnel_that_do_not_come_about_miss_connect(*, proxy: bool) -> None:
    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with serving(talk) as server:
            way = f"http://127.0.0.1:{server.port}" if proxy else None
            async with Http1Client(proxy=way, trust_env=False) as client:
                url = server.url.replace("http", "https")
                answer = await ask(client, request_to(url, Timeouts(connect=0.1)))
                assert "0.1 s (timeouts.connect)" in str(answer.failure)
                task = asyncio.create_task(ask(client, request_to(url)))
                await asyncio.sleep(0.05)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert client.open_connections == 0

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
