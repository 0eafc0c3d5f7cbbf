"""The gateway: files by their address, for upstreams that take only bytes."""

import asyncio
import base64
import ipaddress
import json
import socket
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from deltafold import ModelError
from deltafold.gateway import FetchedFile, FileFetcher, create_app
from deltafold.testing import ReplayServer
from gateway_clients import TEXT, recorded
from gateways import gateway, serve_process, served, upstream

PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
LOOPBACK: Final = ["127.0.0.0/8", "::1/128"]


async def _image(_: Request) -> Response:
    return Response(PNG, media_type="image/png")


async def _moved(request: Request) -> Response:
    return RedirectResponse(request.query_params["to"])


async def _endless(_: Request) -> Response:
    async def chunks() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 4_096
            await asyncio.sleep(0)

    return StreamingResponse(chunks(), media_type="image/png")


async def _silent(request: Request) -> Response:
    # The server waits for this answer when it ends.
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return Response(b"")


async def _packed(_: Request) -> Response:
    return Response(PNG, headers={"content-encoding": "gzip"}, media_type="image/png")


async def _echo(request: Request) -> Response:
    return Response(json.dumps(dict(request.headers)), media_type="text/plain")


@pytest.fixture(scope="module")
def files() -> Iterator[str]:
    names = {
        "/image.png": _image,
        "/moved": _moved,
        "/endless": _endless,
        "/silent": _silent,
        "/packed": _packed,
        "/echo": _echo,
    }
    with served(Starlette(routes=[Route(path, answer) for path, answer in names.items()])) as url:
        yield url


def fetched(url: str, **options: Any) -> FetchedFile:  # noqa: ANN401 - those of `FileFetcher`
    async def fetch() -> FetchedFile:
        async with FileFetcher(**options) as fetcher:
            return await fetcher.fetch(url)

    return asyncio.run(fetch())


def test_a_file_of_an_allowed_network_is_fetched(files: str) -> None:
    assert fetched(f"{files}/image.png", networks=LOOPBACK) == FetchedFile(PNG, "image/png")
    moved = f"{files}/moved?to=/moved%3Fto=/image.png"
    assert fetched(moved, networks=LOOPBACK).data == PNG
    named = files.replace("127.0.0.1", "localhost")
    headers = json.loads(fetched(f"{named}/echo", networks=LOOPBACK).data)
    assert headers["host"] == named.removeprefix("http://")
    assert not {"authorization", "cookie"} & headers.keys()


PRIVATE: Final = [
    "http://127.0.0.1/x",
    "http://localhost/x",
    "http://10.0.0.1/x",
    "http://172.16.0.1/x",
    "http://192.168.0.1/x",
    "http://169.254.169.254/latest/meta-data",
    "http://100.64.0.1/x",
    "http://0.0.0.0/x",
    "http://224.0.0.1/x",
    "http://255.255.255.255/x",
    "http://[::1]/x",
    "http://[::ffff:127.0.0.1]/x",
    "http://[::ffff:7f00:1]/x",
    "http://[fe80::1]/x",
    "http://[fd00::1]/x",
    "http://[2002:7f00:1::]/x",
    "http://[64:ff9b::7f00:1]/x",
    "http://[64:ff9b:1::a00:1]/x",
    "http://192.0.0.192/x",
    "http://[::ffff:192.0.0.192]/x",
    "http://2130706433/x",
    "http://0x7f.1/x",
    "http://127.1/x",
    "http://user:password@127.0.0.1/x",
]


@pytest.mark.parametrize("url", PRIVATE)
def test_a_private_address_is_never_called(url: str) -> None:
    with pytest.raises(ModelError, match=r"is not public|Error") as raised:
        fetched(url)
    assert raised.value.status == 400
    assert "is not fetched" in raised.value.message


@pytest.mark.parametrize("url", ["http://[64:ff9b:1::a00:1]/x", "http://192.0.0.192/x"])
def test_an_address_that_a_version_of_python_takes_for_public_is_not_called(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
        monkeypatch.setattr(kind, "is_global", True)
    with pytest.raises(ModelError, match="is not public"):
        fetched(url)


def test_a_redirection_to_a_private_address_is_not_followed(files: str) -> None:
    private = "http://10.0.0.1/x"
    with pytest.raises(ModelError, match=r"10\.0\.0\.1 is not public"):
        fetched(f"{files}/moved?to={private}", networks=LOOPBACK)


def test_each_address_of_a_name_must_be_public(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> list[tuple[object, ...]]:
        places = [("93.184.216.34", 80), ("127.0.0.1", 80)]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(ModelError, match=r"127\.0\.0\.1 is not public"):
        fetched("http://two-faced.example/x")


def test_the_connection_goes_to_the_address_that_was_looked_at(
    files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    port = int(files.rpartition(":")[2])

    def resolve(host: object, *_: object, **__: object) -> list[tuple[object, ...]]:
        asked.append(host)
        address = "127.0.0.1" if host in {"once.example", "127.0.0.1"} else "10.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    got = fetched(f"http://once.example:{port}/image.png", networks=LOOPBACK)
    assert got.data == PNG
    assert asked.count("once.example") == 1


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/endless", "more than 100,000 bytes"),
        ("/silent", r"more than 0\.3 s"),
        ("/packed", "its server packed it"),
        ("/gone", "its server answered 404"),
        ("/moved?to=file:///etc/passwd", "no address of http"),
        ("/moved?to=/moved%3Fto=/moved%253Fto=/moved%25253Fto=/image.png", "more than 3 times"),
    ],
)
def test_what_cannot_be_fetched_says_why(files: str, path: str, why: str) -> None:
    with pytest.raises(ModelError, match=why):
        fetched(files + path, networks=LOOPBACK, max_bytes=100_000, max_seconds=0.3)


def asking(url: str) -> dict[str, object]:
    content = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


def sent_by(dialect: str, body: dict[str, object], **options: Any) -> tuple[httpx2.Response, bytes]:  # noqa: ANN401 - those of `create_app`
    """Return the gateway's answer, and the body that the upstream got."""
    with gateway(dialect, **options) as (url, server):
        server.queue(recorded(TEXT, dialect))
        response = httpx2.post(f"{url}/v1/chat/completions", json=body)
        return response, server.requests[0].body if server.requests else b""


@pytest.mark.parametrize("dialect", ["ollama", "bedrock-converse"])
def test_an_upstream_that_takes_bytes_gets_the_bytes(files: str, dialect: str) -> None:
    body = asking(f"{files}/image.png")
    response, sent = sent_by(dialect, body, fetcher=FileFetcher(networks=LOOPBACK))
    assert response.status_code == 200
    assert base64.b64encode(PNG) in sent


def test_an_upstream_that_takes_addresses_gets_the_address() -> None:
    address = "http://10.0.0.1/image.png"  # which is not called here
    response, sent = sent_by("anthropic-messages", asking(address), fetcher=FileFetcher())
    assert response.status_code == 200
    assert address.encode() in sent


@pytest.mark.parametrize("streams", [True, False])
def test_a_file_that_cannot_be_fetched_is_the_clients_mistake(*, streams: bool) -> None:
    body = asking("http://127.0.0.1/image.png") | {"stream": streams}
    response, sent = sent_by("ollama", body, fetcher=FileFetcher())
    assert response.status_code == 400
    assert "127.0.0.1 is not public" in response.json()["error"]["message"]
    assert not sent


def test_nothing_is_fetched_without_a_fetcher(files: str) -> None:
    response, sent = sent_by("ollama", asking(f"{files}/image.png"))
    assert response.status_code == 200
    assert b"left out" in sent


def test_a_fallback_that_takes_bytes_gets_the_bytes(files: str) -> None:
    body = asking(f"{files}/image.png")
    with ReplayServer() as server:
        models = [upstream("anthropic-messages", server.url), upstream("ollama", server.url)]
        app = create_app({"m": models}, fetcher=FileFetcher(networks=LOOPBACK))
        with served(app) as url:
            server.queue(recorded(TEXT, "anthropic-messages"))
            assert httpx2.post(f"{url}/v1/chat/completions", json=body).status_code == 200
        assert base64.b64encode(PNG) in server.requests[0].body


def test_all_files_of_a_request_share_the_bound(files: str) -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": f"{files}/image.png?{number}"}}
        for number in range(6)
    ]
    body: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": parts}]}
    bound = FileFetcher(networks=LOOPBACK, max_bytes=len(PNG) * 5)
    response, _ = sent_by("ollama", body, fetcher=bound)
    assert response.status_code == 400
    assert "the files have more than" in response.json()["error"]["message"]


def test_files_in_results_of_tools_are_fetched(files: str) -> None:
    image = {"type": "image", "source": {"type": "url", "url": f"{files}/image.png"}}
    use: dict[str, object] = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [image]}
    body: dict[str, object] = {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ],
    }
    with gateway("bedrock-converse", fetcher=FileFetcher(networks=LOOPBACK)) as (url, server):
        server.queue(recorded(TEXT, "bedrock-converse"))
        assert httpx2.post(f"{url}/v1/messages", json=body).status_code == 200
        assert base64.b64encode(PNG) in server.requests[0].body


def asking_for(urls: Iterable[str]) -> dict[str, object]:
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {"model": "m", "messages": [{"role": "user", "content": images}]}


class Counted:
    """A server of files, each of which it answers after some time, and the requests that it got."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.asked: list[str] = []
        self._seconds = seconds
        self.app = Starlette(routes=[Route("/{name}", self._answer)])

    async def _answer(self, request: Request) -> Response:
        self.asked.append(request.path_params["name"])
        await asyncio.sleep(self._seconds)
        return Response(PNG, media_type="image/png")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize("streams", [True, False])
def test_a_request_that_names_too_many_files_fetches_none(path: str, *, streams: bool) -> None:
    server, fetcher = Counted(), FileFetcher(networks=LOOPBACK)
    with served(server.app) as files:
        urls = [f"{files}/{number}" for number in range(65)]
        body = asking_for(urls) | {"stream": streams, "max_tokens": 9}
        if path == "/v1/messages":
            content = [{"type": "image", "source": {"type": "url", "url": url}} for url in urls]
            body["messages"] = [{"role": "user", "content": content}]
        with gateway("ollama", fetcher=fetcher) as (url, upstream_server):
            response = httpx2.post(f"{url}{path}", json=body)
            assert not upstream_server.requests
    assert response.status_code == 400
    assert "more than 64 files (max_files)" in response.json()["error"]["message"]
    assert not server.asked


def test_as_many_files_as_are_allowed_are_fetched_each_once() -> None:
    server = Counted()
    with served(server.app) as files:
        body = asking_for(f"{files}/{number % 64}" for number in range(128))
        response, _ = sent_by("ollama", body, fetcher=FileFetcher(networks=LOOPBACK))
        assert response.status_code == 200
        assert sorted(server.asked) == sorted(map(str, range(64)))
        few = FileFetcher(networks=LOOPBACK, max_files=2)
        response, _ = sent_by("ollama", asking_for(f"{files}/{n}" for n in range(3)), fetcher=few)
    assert response.status_code == 400
    assert "more than 2 files (max_files)" in response.json()["error"]["message"]


def test_files_that_an_upstream_takes_by_address_are_not_counted() -> None:
    body = asking_for(f"http://10.0.0.1/{number}.png" for number in range(65))
    response, _ = sent_by("anthropic-messages", body, fetcher=FileFetcher())
    assert response.status_code == 200


def test_all_files_of_a_request_share_one_deadline() -> None:
    server = Counted(seconds=0.2)
    with served(server.app) as files:
        body = asking_for(f"{files}/{number}" for number in range(40))
        fetcher = FileFetcher(networks=LOOPBACK, max_total_seconds=0.5)
        response, sent = sent_by("ollama", body, fetcher=fetcher)
        assert response.status_code == 400
        assert "took more than 0.5 s (max_total_seconds)" in response.json()["error"]["message"]
        assert not sent
        assert len(server.asked) < 20


def test_a_file_that_cannot_be_fetched_ends_the_fetching_of_the_others() -> None:
    ended: list[str] = []

    async def silent(request: Request) -> Response:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        ended.append(request.url.path)
        return Response(b"")

    async def gone(_: Request) -> Response:
        return Response(status_code=404)

    with served(Starlette(routes=[Route("/gone", gone), Route("/{name}", silent)])) as files:
        body = asking_for(f"{files}/{name}" for name in ("a", "b", "gone"))
        with gateway("ollama", fetcher=FileFetcher(networks=LOOPBACK)) as (url, _):
            response = httpx2.post(f"{url}/v1/chat/completions", json=body)
            assert response.status_code == 400
            assert "its server answered 404" in response.json()["error"]["message"]
            for _ in range(100):
                if len(ended) == 2:
                    break
                time.sleep(0.02)
            assert sorted(ended) == ["/a", "/b"]


@pytest.mark.parametrize("streams", [True, False])
def test_fetching_ends_when_the_client_has_left(*, streams: bool) -> None:
    server, fetcher = Counted(seconds=0.1), FileFetcher(networks=LOOPBACK)
    with served(server.app) as files, gateway("ollama", fetcher=fetcher) as (url, upstream_server):
        body = asking_for(f"{files}/{number}" for number in range(64)) | {"stream": streams}
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=0.3)
        time.sleep(0.3)  # the gateway has seen the end of the connection
        asked = len(server.asked)
        time.sleep(0.5)
        assert len(server.asked) == asked < 64
        assert not upstream_server.requests
        assert httpx2.get(f"{url}/health").status_code == 200


def test_the_command_bounds_the_files_of_a_request(tmp_path: Path) -> None:
    table = tmp_path / "models.toml"
    table.write_text('[models.m]\nmodel = "ollama/llava"\nspecification = "ollama"\n')
    with serve_process("--fetch-files", str(table)) as (url, _):
        body = asking_for(f"http://127.0.0.1:9/{number}" for number in range(65))
        response = httpx2.post(f"{url}/v1/chat/completions", json=body)
    assert response.status_code == 400
    assert "more than 64 files (max_files)" in response.json()["error"]["message"]
