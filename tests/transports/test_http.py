"""Requests over real HTTP: every client, both kinds, both event loops, one behaviour."""

import asyncio
import gzip
import re
import socket
import sys
import threading
import time
import zlib
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import anyio
import httpx
import httpx2
import pytest

from deltafold import ErrorCode, ErrorMapper, MisuseError
from deltafold.testing import Recording, ReplayServer
from deltafold.transports.http import (
    RedirectError,
    aclose_http_client,
    close_http_client,
    http_client_kind,
    make_http_client,
    may_follow,
    open_http,
    open_http_async,
)
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.timeouts import Timeouts
from http_ways import WAYS, Answer, fetch, request_to, run_async, with_source
from replay_servers import wait_until_closed

every_way = pytest.mark.parametrize("way", WAYS)
# One for each way of waiting: httpx2 waits as httpx does.
every_wait = pytest.mark.parametrize("way", ["httpx", "httpx, asyncio", "httpx2, trio", "aiohttp"])

EVENTS = b"data: 1\n\ndata: 2\n\ndata: 3\n\n"


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer({"/": Recording.of_events(EVENTS)}) as replay:
        yield replay
        wait_until_closed(replay)


@every_way
def test_a_request_goes_out_as_it_is_and_the_bytes_come_back(
    way: str, server: ReplayServer
) -> None:
    request = HttpRequest(
        "POST", f"{server.url}/?a=1", {"x-key": "k"}, {"b": [2, "x y"], "c": True, "d": None}, b"{}"
    )
    answer = fetch(way, request)
    assert (answer.status, answer.body, answer.failure) == (200, EVENTS, None)
    assert answer.headers is not None
    assert answer.headers["content-type"] == "text/event-stream"
    [sent] = server.requests
    assert (sent.method, sent.path, sent.body) == ("POST", "/?a=1&b=2&b=x+y&c=true", b"{}")
    assert sent.headers["x-key"] == "k"


@every_way
def test_an_error_status_is_a_response_with_its_headers_and_body(
    way: str, server: ReplayServer
) -> None:
    server.queue(Recording.error(429, {"error": 1}, {"retry-after": "3", "X-Request-Id": "r"}))
    answer = fetch(way, request_to(server.url))
    assert (answer.status, answer.body, answer.failure) == (429, b'{"error": 1}', None)
    assert answer.headers is not None
    assert (answer.headers["retry-after"], answer.headers["x-request-id"]) == ("3", "r")


@every_way
def test_escapes_of_a_path_stay_as_they_are(way: str, server: ReplayServer) -> None:
    path = "/model/a%3Ab%2Fc/converse-stream"
    fetch(way, request_to(server.url + path))
    assert server.requests[0].path == path


@every_way
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_body_arrives_as_what_it_was(
    way: str, encoding: str, server: ReplayServer
) -> None:
    packed = gzip.compress(EVENTS) if encoding == "gzip" else zlib.compress(EVENTS)
    headers = {"content-type": "text/event-stream", "content-encoding": encoding}
    server.queue(replace(Recording.of(packed, piece_bytes=5), headers=headers))
    answer = fetch(way, request_to(server.url))
    assert (answer.body, answer.failure) == (EVENTS, None)


@every_way
def test_what_is_no_gzip_is_a_protocol_error(way: str, server: ReplayServer) -> None:
    server.queue(replace(Recording.of(b"no gzip at all"), headers={"content-encoding": "gzip"}))
    answer = fetch(way, request_to(server.url))
    assert answer.failure is not None
    assert ErrorMapper().map(answer.failure).code is ErrorCode.PROTOCOL_ERROR


# Redirects.


@every_way
@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_that_keeps_the_request_is_followed_to_the_same_origin(
    way: str, status: int, server: ReplayServer
) -> None:
    server.queue(Recording.error(status, {}, {"location": "/v2?b=2"}), Recording.of(b"there"))
    answer = fetch(way, request_to(f"{server.url}/v1", a=1))
    assert (answer.status, answer.body, answer.failure) == (200, b"there", None)
    assert [sent.path for sent in server.requests] == ["/v1?a=1", "/v2?b=2"]
    assert [sent.body for sent in server.requests] == [b"{}", b"{}"]


@pytest.mark.one_in(3)
@every_way
def test_a_redirect_whose_body_stalls_leaves_the_call_its_time(
    way: str, server: ReplayServer
) -> None:
    stalled = Recording.of_events(EVENTS).stopping("stall", 9)
    server.queue(
        replace(stalled, status=307, headers={"location": "/v2"}),
        Recording.of_events(EVENTS, delay=0.15),
    )
    answer = fetch(way, request_to(f"{server.url}/v1"))
    assert (answer.status, answer.body, answer.failure) == (200, EVENTS, None)


@every_wait
@pytest.mark.parametrize(
    ("status", "location"),
    [
        (307, "http://localhost:1/v2"),
        (308, "https://other.test/v2"),
        (301, "/v2"),
        (302, "/login"),
        (303, "/v2"),
    ],
)
def test_any_other_redirect_is_an_error_that_names_the_target(
    way: str, status: int, location: str, server: ReplayServer
) -> None:
    server.queue(Recording.error(status, {}, {"location": location}))
    answer = fetch(way, request_to(f"{server.url}/v1"))
    assert isinstance(answer.failure, RedirectError)
    assert re.search(rf"HTTP {status} .*{location}", str(answer.failure))
    assert len(server.requests) == 1
    fields = ErrorMapper().map(answer.failure)
    assert (fields.code, fields.retryable) == (ErrorCode.PROTOCOL_ERROR, False)


@every_way
def test_a_circle_of_redirects_ends(way: str, server: ReplayServer) -> None:
    server.recordings["/"] = Recording.error(307, {}, {"location": "/"})
    answer = fetch(way, request_to(f"{server.url}/"))
    assert isinstance(answer.failure, RedirectError)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("url", "target", "may"),
    [
        ("http://a/", "http://a/b", True),
        ("http://a/", "https://a/b", True),
        ("https://a/", "http://a/b", False),
        ("https://a/", "https://a:8443/b", False),
        ("https://a/", "https://b/", False),
        ("http://a:8000/", "https://a/", False),
    ],
)
def test_a_key_goes_only_to_the_same_origin_or_to_tls_on_it(
    url: str, target: str, may: bool
) -> None:
    assert may_follow(url, target) is may


# Limits.


@contextmanager
def silent_server(*, accepts: bool) -> Generator[str]:
    """A server that never answers; with `accepts=False` one whose queue of connections is full."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listening.getsockname()[1]
        for _ in range(0 if accepts else 4):
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0)
            filler.connect_ex(("127.0.0.1", port))
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def garbling_server() -> Generator[str]:
    """A server that answers with bytes other than HTTP, as a TLS port does, and closes."""

    def answer() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(b"\x15\x03\x01\x00\x02\x02\x50\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@every_way
def test_an_answer_that_is_no_http_is_a_lost_connection(way: str) -> None:
    with garbling_server() as url:
        answer = fetch(way, request_to(url))
    assert answer.failure is not None
    fields = ErrorMapper().map(answer.failure)
    assert (fields.code, fields.status) == (ErrorCode.CONNECTION_LOST, None)


def assert_missed(answer: Answer, limit: str, seconds: str) -> None:
    assert isinstance(answer.failure, TimeoutError)
    assert str(answer.failure).endswith(f"within {seconds} s (timeouts.{limit})")
    fields = ErrorMapper().map(answer.failure)
    assert (fields.code, fields.retryable) == (ErrorCode.TIMEOUT, True)
    assert fields.message == str(answer.failure)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue refuses")
@every_way
def test_a_connection_that_does_not_come_about_misses_connect(way: str) -> None:
    with silent_server(accepts=False) as url:
        assert_missed(fetch(way, request_to(url, Timeouts(connect=0.2))), "connect", "0.2")


@every_wait
@pytest.mark.parametrize(
    ("timeouts", "limit"),
    [
        (Timeouts(first_byte=0.2), "first_byte"),
        (Timeouts(total=0.2), "total"),
        (Timeouts(first_byte=0.2, idle=30, total=30), "first_byte"),
    ],
)
def test_an_answer_that_does_not_come_misses_its_limit(
    way: str, timeouts: Timeouts, limit: str
) -> None:
    with silent_server(accepts=True) as url:
        assert_missed(fetch(way, request_to(url, timeouts)), limit, "0.2")


@pytest.mark.one_in(5)
@every_wait
@pytest.mark.parametrize("after", [0, 9])
@pytest.mark.parametrize(
    ("timeouts", "first", "later"),
    [
        (Timeouts(first_byte=0.2, idle=0.2), "first_byte", "idle"),
        (Timeouts(first_byte=0.2, idle=None), "first_byte", None),
        (Timeouts(first_byte=None, idle=0.2), None, "idle"),
        (Timeouts(first_byte=30, idle=0.2), None, "idle"),
        (Timeouts(first_byte=0.2, idle=30), "first_byte", None),
        (Timeouts(total=0.2), "total", "total"),
        (Timeouts(first_byte=None, idle=None, total=0.2), "total", "total"),
    ],
)
def test_a_body_that_stalls_misses_its_limit(
    way: str,
    after: int,
    timeouts: Timeouts,
    first: str | None,
    later: str | None,
    server: ReplayServer,
) -> None:
    limit = later if after else first
    if limit is None:
        timeouts = replace(timeouts, total=0.3)
    server.queue(Recording.of_events(EVENTS).stopping("stall", after))
    answer = fetch(way, request_to(server.url, timeouts))
    assert answer.body == EVENTS[:after]
    assert_missed(answer, limit or "total", "0.2" if limit else "0.3")


@every_wait
def test_a_body_that_keeps_coming_misses_no_limit_but_total(way: str, server: ReplayServer) -> None:
    server.queue(Recording.of_events(b"a\n\n" * 10, delay=0.03))
    timeouts = Timeouts(first_byte=0.4, idle=0.3)
    assert fetch(way, request_to(server.url, timeouts)).body == b"a\n\n" * 10
    server.queue(Recording.of_events(b"a\n\n" * 100, delay=0.03))
    answer = fetch(way, request_to(server.url, replace(timeouts, total=0.3)))
    assert answer.body.startswith(b"a\n\na\n\n")
    assert_missed(answer, "total", "0.3")


@every_wait
def test_time_that_the_reader_takes_is_not_idle(way: str, server: ReplayServer) -> None:
    server.queue(Recording.of_events(EVENTS, delay=0.01))
    request = request_to(server.url, Timeouts(first_byte=0.2, idle=0.1))

    def use(source: Source) -> bytes:
        first = next(source.chunks)
        time.sleep(0.3)
        return first + b"".join(source.chunks)

    async def use_async(source: AsyncSource) -> bytes:
        first = await anext(source.chunks)
        await anyio.sleep(0.3)
        return first + b"".join([chunk async for chunk in source.chunks])

    assert with_source(way, request, use, use_async) == EVENTS


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_a_limit_of_no_time_is_refused_by_name(seconds: float) -> None:
    with pytest.raises(ValueError, match="idle must be above 0"):
        Timeouts(idle=seconds)


# Giving up.


@every_way
def test_a_body_that_is_left_closes_its_connection_and_may_be_closed_twice(
    way: str, server: ReplayServer
) -> None:
    server.queue(Recording.of_events(EVENTS).stopping("stall"))

    def use(source: Source) -> bytes:
        first = next(source.chunks)
        source.close()
        source.close()
        return first

    async def use_async(source: AsyncSource) -> bytes:
        first = await anext(source.chunks)
        await source.close()
        await source.close()
        return first

    request = request_to(server.url, Timeouts(idle=30))
    assert EVENTS.startswith(with_source(way, request, use, use_async))


@every_way
def test_a_whole_body_gives_its_connection_back(way: str, server: ReplayServer) -> None:
    package, backend = WAYS[way]
    request = request_to(server.url, Timeouts(idle=30))

    async def twice() -> None:
        client = make_http_client("asynchronous", package)
        for _ in range(2):
            source = await open_http_async(client, request)
            assert b"".join([chunk async for chunk in source.chunks]) == EVENTS
            await source.close()
        await aclose_http_client(client)

    if backend:
        run_async(backend, twice)
    else:
        client = make_http_client("synchronous", package)
        for _ in range(2):
            source = open_http(client, request)
            assert b"".join(source.chunks) == EVENTS
            source.close()
        close_http_client(client)
    assert server.connections == 1


@every_way
def test_a_cancelled_read_is_cancelled_and_no_timeout(way: str, server: ReplayServer) -> None:
    _, backend = WAYS[way]
    if not backend:
        return
    server.queue(Recording.of_events(EVENTS).stopping("stall", 9))
    seen: list[bytes] = []

    async def use_async(source: AsyncSource) -> None:
        with anyio.move_on_after(0.2) as scope:
            async for chunk in source.chunks:
                seen.append(chunk)  # noqa: PERF401 - what came before the cancellation counts
        assert scope.cancelled_caught

    with_source(way, request_to(server.url, Timeouts(idle=30)), lambda _: None, use_async)
    assert b"".join(seen) == EVENTS[:9]


# Clients.


def test_a_client_is_known_by_its_class_and_those_derived_from_it() -> None:
    class Mine(httpx.Client):
        pass

    for client in (httpx.Client(), httpx2.Client(), Mine()):
        assert http_client_kind(client) == "synchronous"
        close_http_client(client)

    async def main() -> None:
        for client in (httpx.AsyncClient(), httpx2.AsyncClient(), aiohttp.ClientSession()):
            assert http_client_kind(client) == "asynchronous"
            await aclose_http_client(client)

    asyncio.run(main())
    assert http_client_kind(object()) is None
    assert http_client_kind("httpx") is None


def test_a_client_of_the_wrong_kind_or_of_none_is_misuse() -> None:
    request = request_to("http://127.0.0.1:1/")

    async def main() -> None:
        async with httpx.AsyncClient() as waiting:
            with pytest.raises(MisuseError, match="client must be synchronous"):
                open_http(waiting, request)
        with httpx.Client() as blocking:
            with pytest.raises(MisuseError, match="client must be asynchronous"):
                await open_http_async(blocking, request)
            with pytest.raises(MisuseError, match="client must be asynchronous"):
                await aclose_http_client(blocking)
        with pytest.raises(
            MisuseError, match=r"builtins.str is not a supported HTTP client; .*aiohttp"
        ):
            await open_http_async("httpx", request)

    asyncio.run(main())


def test_a_transport_that_cannot_be_made_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MisuseError, match=r"known: httpx, httpx2, aiohttp$"):
        make_http_client("synchronous", "urllib")
    with pytest.raises(MisuseError, match="aiohttp is asynchronous only"):
        make_http_client("synchronous", "aiohttp")
    with pytest.raises(MisuseError, match="event loop"):
        make_http_client("asynchronous", "aiohttp")
    for transport in ("httpx", "httpx2", "aiohttp"):
        monkeypatch.setitem(sys.modules, transport, None)
        with pytest.raises(MisuseError, match=rf"pip install 'deltafold\[{transport}\]'"):
            make_http_client("asynchronous", transport)


def test_aiohttp_under_trio_is_misuse_that_names_the_way_out() -> None:
    sessions: list[aiohttp.ClientSession] = []

    async def make() -> None:
        sessions.append(aiohttp.ClientSession())

    async def use() -> None:
        with pytest.raises(MisuseError, match="asyncio only"):
            await open_http_async(sessions[0], request_to("http://127.0.0.1:1/"))

    async def main() -> None:
        await make()
        await anyio.to_thread.run_sync(run_async, "trio", use)
        await sessions[0].close()

    asyncio.run(main())


def test_the_hooks_of_an_httpx_client_see_the_body(server: ReplayServer) -> None:
    seen: list[bytes] = []

    async def hook(request: httpx.Request) -> None:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        seen.append(request.content)
        seen.append(await request.aread())
        seen.append(b"".join([part async for part in request.stream]))

    async def main() -> None:
        async with httpx.AsyncClient(event_hooks={"request": [hook]}) as client:
            source = await open_http_async(client, request_to(server.url))
            await source.close()

    asyncio.run(main())
    assert seen == [server.requests[0].body] * 3


class Upper(httpx2.AsyncClient):
    """Makes bodies in its own way."""

    def build_request(self, *given: Any, **options: Any) -> httpx2.Request:  # noqa: ANN401
        content: bytes = options.pop("content")

        async def parts() -> AsyncIterator[bytes]:
            yield content.upper()

        options["headers"] |= {"content-length": str(len(content))}
        body = parts() if b"parts" in content else content.upper()
        return super().build_request(*given, content=body, **options)


@pytest.mark.parametrize("content", [b"whole", b"in parts"])
def test_a_body_that_an_httpx_client_makes_is_sent(content: bytes, server: ReplayServer) -> None:
    async def main() -> None:
        async with Upper() as client:
            request = replace(request_to(server.url), content=content)
            source = await open_http_async(client, request)
            await source.close()

    asyncio.run(main())
    assert server.requests[0].body == content.upper()


class Silent(httpx2.AsyncBaseTransport):
    """Takes a request and never answers."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        assert b"".join([part async for part in request.stream])
        await anyio.sleep_forever()
        raise AssertionError


def test_a_transport_of_httpx_that_never_answers_misses_the_limit_of_the_answer() -> None:
    async def main() -> None:
        request = request_to("http://x/", Timeouts(first_byte=0.05, total=8))
        async with httpx2.AsyncClient(transport=Silent()) as client:
            with pytest.raises(TimeoutError, match=r"timeouts\.first_byte"):
                await open_http_async(client, request)

    asyncio.run(main())
