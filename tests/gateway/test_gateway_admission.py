"""Who may call the gateway: hooks that authenticate, this machine, owners of conversations."""

import asyncio
import json
import socket
from typing import Any, Final

import httpx2
import pytest
from starlette.requests import Request

from deltafold import ErrorCode
from deltafold.gateway import ClientRequest, ModelTable, create_app, refusal
from deltafold.gateway.admission import is_name_of_this_machine
from deltafold.testing import ReplayServer, answer
from gateways import gateway, served, upstream

CHAT: Final = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
LISTS: Final = ("/v1/models", "/v1beta/models")


def headers_of(url: str, host: str | None, origin: str | None) -> dict[str, str]:
    port = url.rpartition(":")[2]
    given = {"host": host.format(port=port)} if host else {}
    return given | ({"origin": origin} if origin else {})


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        (None, "https://evil.example"),
        (None, "null"),
        (None, "chrome-extension://abcdef"),
        (None, "https://localhost.evil.example"),
        ("evil.example:{port}", None),
        ("evil.example", "http://evil.example"),
        ("127.0.0.1.evil.example:{port}", None),
        ("[2001:db8::1]:{port}", None),
    ],
)
def test_a_page_of_another_site_is_refused(host: str | None, origin: str | None) -> None:
    with gateway("openai-chat") as (url, server):
        server.queue(answer("openai-chat", "PRIVATE"))
        headers = headers_of(url, host, origin)
        posted = httpx2.post(url + "/v1/chat/completions", json=CHAT, headers=headers)
        listed = httpx2.get(url + "/v1/models", headers=headers)
        requests = server.requests
    assert (posted.status_code, listed.status_code) == (403, 403)
    assert posted.json()["error"]["message"]
    assert not requests


@pytest.mark.parametrize(
    ("host", "origin", "content_type"),
    [
        (None, None, "application/json"),
        (None, None, "application/x-www-form-urlencoded"),
        (None, None, "text/plain"),
        ("localhost:{port}", "http://localhost:3000", "application/json"),
        ("LOCALHOST:{port}", "https://127.0.0.1", "application/json"),
        ("[::1]:{port}", "tauri://localhost", "application/json"),
        ("app.localhost:{port}", None, "application/json"),
        ("gateway:{port}", None, "application/json"),
    ],
)
def test_programs_and_pages_of_this_machine_go_on_working(
    host: str | None, origin: str | None, content_type: str
) -> None:
    with gateway("openai-chat") as (url, server):
        server.queue(answer("openai-chat", "hello"))
        headers = headers_of(url, host, origin) | {"content-type": content_type}
        body = b'{"model":"m","messages":[{"role":"user","content":"?"}]}'
        response = httpx2.post(url + "/v1/chat/completions", content=body, headers=headers)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    "options",
    [
        {"allowed_hosts": ["llm.example"], "allowed_origins": ["https://ui.example/"]},
        {"allow_anyone": True},
    ],
)
def test_settings_admit_other_hosts_and_pages(options: dict[str, Any]) -> None:
    headers = {"host": "llm.example:80", "origin": "https://ui.example"}
    with gateway("openai-chat", **options) as (url, server):
        server.queue(answer("openai-chat", "hello"))
        response = httpx2.post(url + "/v1/chat/completions", json=CHAT, headers=headers)
    assert response.status_code == 200


def test_names_of_this_machine() -> None:
    mine = (
        "localhost",
        "127.0.0.1",
        "127.1.2.3",
        "::1",
        "::ffff:127.0.0.1",
        "mybox",
        "a.localhost",
    )
    others = (
        "example.org",
        "10.0.0.1",
        "2001:db8::1",
        "",
        None,
        "localhost.example",
        "127.0.0.1.x.y",
    )
    assert all(map(is_name_of_this_machine, mine))
    assert not any(map(is_name_of_this_machine, others))


def next_name(options: dict[str, Any]) -> str:
    return next(iter(options))


async def nobody(_: Request) -> None:
    raise refusal("no", ErrorCode.AUTHENTICATION, 401)


async def nobody_after_the_body(_: Request, __: ClientRequest) -> None:
    raise refusal("no", ErrorCode.AUTHENTICATION, 401)


@pytest.mark.parametrize(
    "options", [{"on_connect": nobody}, {"on_request": nobody_after_the_body}], ids=next_name
)
def test_every_route_but_the_health_asks_for_authentication(options: dict[str, Any]) -> None:
    with gateway("openai-chat", **options) as (url, server):
        for path in LISTS:
            response = httpx2.get(url + path)
            assert response.status_code == 401, path
            assert response.json()["error"]["message"] == "no"
        headers = {"anthropic-version": "2023-06-01"}
        listed = httpx2.get(url + "/v1/models", headers=headers)
        assert listed.json()["error"]["type"] == "authentication_error"
        assert httpx2.post(url + "/v1/chat/completions", json=CHAT).status_code == 401
        assert httpx2.post(url + "/v1/messages/count_tokens", json=CHAT).status_code == 401
        assert httpx2.get(url + "/health").status_code == 200
        assert not server.requests


def test_a_list_of_models_gives_the_hook_a_request_without_a_model() -> None:
    seen: list[tuple[str, str]] = []

    async def on_request(_: Request, asked: ClientRequest) -> None:
        seen.append((asked.protocol, asked.model_id))

    with gateway("openai-chat", on_request=on_request) as (url, _):
        assert [httpx2.get(url + path).status_code for path in LISTS] == [200, 200]
    assert seen == [("openai-chat", ""), ("gemini", "")]


def test_the_head_is_refused_before_the_body_is_read() -> None:
    with gateway("openai-chat", on_connect=nobody) as (url, _):
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
            connection.sendall(head + b"content-length: 1000000\r\n\r\n{")
            assert connection.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_a_hook_that_hangs_before_the_body_ends() -> None:
    ended: list[str] = []

    async def hangs(_: Request) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    with gateway("openai-chat", on_connect=hangs, connect_seconds=0.05) as (url, server):
        response = httpx2.post(url + "/v1/chat/completions", json=CHAT)
        assert response.status_code == 503
        assert "connect_seconds" in response.json()["error"]["message"]
        assert httpx2.get(url + "/v1/models").status_code == 503
        assert not server.requests
    assert ended == ["cancelled"] * 2


def stored(url: str, key: str | None, **members: object) -> httpx2.Response:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    body = {"model": "m", **members}
    return httpx2.post(url + "/v1/responses", json=body, headers=headers)


async def anybody(_: Request) -> None:
    return None


async def owner_by_header(request: Request) -> str:
    return request.headers["authorization"].rpartition("-")[0]


@pytest.mark.parametrize("streams", [False, True])
def test_a_conversation_belongs_to_the_key_of_its_client(*, streams: bool) -> None:
    with gateway("openai-chat", on_connect=anybody) as (url, server):
        for text in ("one", "two", "three"):
            server.queue(answer("openai-chat", text))
        first = stored(url, "alice", input="ALICE", stream=streams)
        response_id = first.json()["id"] if not streams else id_of(first.text)
        assert response_id.startswith("resp_")
        assert stored(url, "bob", input="x", previous_response_id=response_id).status_code == 404
        assert stored(url, None, input="x", previous_response_id=response_id).status_code == 404
        second = stored(url, "bob", input="BOB")
        assert second.json()["id"] != response_id
        third = stored(url, "alice", input="go on", previous_response_id=response_id)
        assert third.status_code == 200
        sent: Any = server.requests[-1].json()
    assert [message["content"] for message in sent["messages"]] == ["ALICE", "one", "go on"]


def id_of(events: str) -> str:
    lines = [line[6:] for line in events.splitlines() if line.startswith("data: {")]
    ids = {json.loads(line)["response"]["id"] for line in lines if '"response":' in line}
    assert len(ids) == 1
    return str(ids.pop())


def test_the_owner_is_what_the_hook_names() -> None:
    with gateway("openai-chat", on_connect=owner_by_header) as (url, server):
        server.queue(answer("openai-chat", "one"), answer("openai-chat", "two"))
        first = stored(url, "alice-1", input="ALICE").json()["id"]
        assert stored(url, "bob-1", input="x", previous_response_id=first).status_code == 404
        assert stored(url, "alice-2", input="x", previous_response_id=first).status_code == 200


def passing(url: str, text: str, **members: object) -> httpx2.Response:
    return stored(url, "alice", input=text, stream=True, **members)


@pytest.mark.parametrize("same", [False, True])
def test_an_id_of_an_upstream_that_comes_twice_is_not_continued(*, same: bool) -> None:
    with gateway("openai-responses", on_connect=anybody) as (url, server):
        for text in ("one", "one" if same else "two", "three"):
            server.queue(answer("openai-responses", text))
        passed = id_of(passing(url, "A").text)
        assert id_of(passing(url, "A" if same else "B").text) == passed
        third = passing(url, "go on", previous_response_id=passed)
    assert third.status_code == (200 if same else 404)


def test_an_upstream_of_two_names_does_not_mix_what_they_store() -> None:
    with ReplayServer() as server:
        table = ModelTable({name: upstream("openai-chat", server.url) for name in "mn"})
        with served(create_app(table, on_connect=anybody)) as url:
            server.queue(*[answer("openai-chat", "x")] * 2)
            first = stored(url, "alice", input="?")
            second = httpx2.post(
                url + "/v1/responses",
                json={"model": "n", "input": "?"},
                headers={"authorization": "Bearer alice"},
            )
    assert first.json()["id"] != second.json()["id"]
