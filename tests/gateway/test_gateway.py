"""The gateway: official clients of four protocols in front of recorded upstreams."""

import asyncio
import gzip
import inspect
import json
import re
import socket
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anthropic
import httpx2
import openai
import pytest
from google import genai
from starlette.applications import Starlette
from starlette.requests import Request

from deltafold import (
    AnthropicModel,
    ErrorCode,
    Message,
    MisuseError,
    Model,
    ModelError,
    OpenAIChatModel,
)
from deltafold.gateway import (
    ClientRequest,
    MemoryStore,
    ModelTable,
    create_app,
    read_table,
    refusal,
)
from deltafold.gateway.file_settings import FileSettings
from deltafold.message.parts import TextPart
from deltafold.models.call_inputs import CallFacts
from deltafold.streams.core import Observer, StreamCore
from deltafold.testing import Recording, ReplayServer
from gateway_clients import (
    CALLS,
    CLIENTS,
    READ,
    TEXT,
    answer,
    by_chat,
    by_messages,
    by_responses,
    clients,
    opened,
    recorded,
)
from gateways import gateway, served

__all__ = ["clients"]  # the fixture closes clients

UPSTREAMS: Final = (
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "gemini",
    "ollama",
)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("dialect", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_client_reads_text_calls_and_usage_of_any_upstream(
    client: str, dialect: str, *, streams: bool
) -> None:
    with gateway(dialect) as (url, server):
        server.queue(recorded(TEXT, dialect), recorded(CALLS, dialect))
        got = READ[client](url, streams=streams)
        assert got.text == TEXT.text
        assert got.tokens == (11, 7)
        got = READ[client](url, streams=streams)
        assert got.text == CALLS.text
        assert got.calls == [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]
    sent = server.requests[0]
    assert b"weather" in sent.body
    assert b"upstream-model" in sent.body or "upstream-model" in sent.path


STATUS: Final[dict[int, type[openai.APIError]]] = {
    401: openai.AuthenticationError,
    404: openai.NotFoundError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
}


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("status", STATUS)
def test_a_refusal_keeps_its_status_retry_after_and_class(status: int, *, streams: bool) -> None:
    body = {"error": {"type": "some_error", "message": "the upstream said no"}}
    headers = {"retry-after": "7", "request-id": "req_upstream"}
    with gateway("anthropic-messages") as (url, server):
        server.queue(*[Recording.error(status, body, headers)] * 3)
        with pytest.raises(STATUS[status]) as raised:
            by_chat(url, streams=streams)
        assert "the upstream said no" in str(raised.value)
        response: Any = getattr(raised.value, "response")  # noqa: B009 - of the statuses alone
        assert response.status_code == status
        assert response.headers["retry-after"] == "7"
        with pytest.raises(anthropic.APIStatusError) as told:
            by_messages(url, streams=streams)
        assert told.value.status_code == status
        with pytest.raises(openai.APIStatusError) as said:
            by_responses(url, streams=streams)
        assert said.value.status_code == status


@pytest.mark.parametrize("client", CLIENTS)
def test_a_cut_upstream_is_no_success_of_the_client(client: str) -> None:
    whole = recorded(TEXT, "anthropic-messages")
    body = b"".join(piece for _, piece in whole.pieces)
    cut = Recording.of(body[: body.index(b"event: message_delta")])
    with gateway("anthropic-messages") as (url, server):
        server.queue(cut)
        with pytest.raises(
            (openai.APIError, anthropic.APIError, genai.errors.APIError, ValueError)
        ):
            READ[client](url, streams=True)


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_a_packed_request_is_unpacked_within_the_bound(packing: str) -> None:
    pack: Callable[[bytes], bytes] = gzip.compress if packing == "gzip" else zlib.compress
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    headers = {"content-encoding": packing}
    with gateway("openai-chat", max_body_bytes=100_000) as (url, server):
        server.queue(recorded(TEXT, "openai-chat"))
        path = f"{url}/v1/chat/completions"
        body = pack(json.dumps(asked).encode())
        assert httpx2.post(path, content=body, headers=headers).status_code == 200
        asked["messages"][0]["content"] = "?" * 1_000_000
        body = pack(json.dumps(asked).encode())
        assert len(body) < 10_000
        large = httpx2.post(path, content=body, headers=headers)
        assert (large.status_code, "more than 100,000 bytes" in large.text) == (413, True)
        broken = httpx2.post(path, content=body[:9] + b"\xff" * 99, headers=headers)
        assert (broken.status_code, f"not valid {packing}" in broken.text) == (415, True)
        other = httpx2.post(path, content=body, headers={"content-encoding": "zstd"})
        assert (other.status_code, "the body is in zstd" in other.text) == (415, True)
        assert len(server.requests) == 1


@pytest.mark.parametrize("accepted", ["gzip, br", "identity"])
def test_a_long_whole_answer_is_packed_for_a_client_that_accepts_it(accepted: str) -> None:
    long = answer(TextPart(text="It rains. " * 1_000))
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    with gateway("anthropic-messages") as (url, server):
        path = f"{url}/v1/chat/completions"
        server.queue(*[recorded(long, "anthropic-messages")] * 2)
        given = httpx2.post(path, json=body, headers={"accept-encoding": accepted})
        assert given.json()["choices"][0]["message"]["content"] == long.text
        assert given.headers.get("content-encoding") == ("gzip" if "gzip" in accepted else None)
        streamed = httpx2.post(path, json={**body, "stream": True})
        assert "content-encoding" not in streamed.headers


@pytest.mark.parametrize("dialect", ["anthropic-messages", "openai-chat"])
def test_betas_go_to_an_upstream_of_the_same_protocol(dialect: str) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    headers = {"anthropic-beta": "context-management-2025-06-27", "x-api-key": "client-key"}
    with ReplayServer() as server:
        server.queue(recorded(TEXT, dialect))
        adapter = AnthropicModel if dialect == "anthropic-messages" else OpenAIChatModel
        own = {"model_id": "u", "extra_headers": {"Anthropic-Beta": "own-beta"}}
        model: Any = adapter(own, base_url=server.url, api_key="upstream-key")
        with served(create_app({"m": model})) as url:
            assert httpx2.post(f"{url}/v1/messages", json=body, headers=headers).status_code == 200
        sent = {name.lower(): value for name, value in server.requests[0].headers.items()}
    betas = "own-beta,context-management-2025-06-27" if adapter is AnthropicModel else "own-beta"
    assert sent["anthropic-beta"] == betas
    assert "client-key" not in sent.values()


def test_the_clients_headers_and_key_are_not_forwarded() -> None:
    with gateway("openai-chat") as (url, server):
        server.queue(recorded(TEXT, "openai-chat"))
        by_chat(url, streams=True)
    headers = {name.lower(): value for name, value in server.requests[0].headers.items()}
    assert headers["authorization"] == "Bearer upstream-key"
    assert not {name for name in headers if name.startswith("x-stainless")}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/chat/completions", b"{", 400),
        ("/v1/chat/completions", b"[]", 400),
        ("/v1/chat/completions", b'{"messages":[]}', 400),
        ("/v1/chat/completions", b'{"model":"m","messages":3}', 400),
        ("/v1/chat/completions", b'{"model":"other","messages":[]}', 404),
        ("/v1/messages", b'{"model":"other","max_tokens":1,"messages":[]}', 404),
        ("/v1/responses", b'{"model":"m","input":"?","previous_response_id":"gone"}', 404),
        ("/v1beta/models/m:embedContent", b"{}", 404),
        ("/v1/chat/completions", b'{"model":"m"}', 400),
        ("/v1/messages", b'{"model":"m","max_tokens":1}', 400),
        ("/v1beta/models/m:generateContent", b"{}", 400),
        ("/v1/messages", b"[" * 18_000, 400),
        ("/v1/messages", b" " * 20_000, 413),  # too large
    ],
)
def test_a_wrong_request_is_refused_in_the_clients_form(
    path: str, body: bytes, status: int
) -> None:
    with gateway("openai-chat", max_body_bytes=19_000) as (url, server):
        response = httpx2.post(url + path, content=body)
        assert response.status_code == status
        assert "error" in response.json()
        assert not server.requests


def test_a_response_object_repeats_the_settings_of_its_request() -> None:
    asked = {"temperature": 0.25, "metadata": {"trace": "t1"}, "store": False, "max_tool_calls": 3}
    with gateway("gemini") as (url, server):
        server.queue(recorded(TEXT, "gemini"))
        long = {"instructions": "x" * 9_000}
        body = {"model": "m", "input": "?", **asked, **long}
        given = httpx2.post(f"{url}/v1/responses", json=body).json()
    assert {name: given[name] for name in asked} == asked
    assert (given["top_p"], given["truncation"], given["instructions"]) == (1.0, "disabled", None)


def test_a_response_is_continued_by_its_id() -> None:
    with gateway("openai-chat") as (url, server):
        server.queue(recorded(TEXT, "openai-chat"), recorded(TEXT, "openai-chat"))
        client: Any = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
        first = client.responses.create(model="m", input="first")
        client.responses.create(model="m", input="second", previous_response_id=first.id)
    messages: Any = json.loads(server.requests[1].body)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


def test_the_store_is_bounded() -> None:
    async def fill() -> None:
        store = MemoryStore(max_responses=2, max_bytes=10_000)
        for name in "abc":
            await store.put(name, [Message.user("Hi")])
        assert await store.get("a") is None
        assert await store.get("c") is not None
        await store.put("large", [Message.user("x" * 20_000)])
        assert await store.get("large") is None
        await store.put("d", [Message.user("x" * 9_500)])
        assert await store.get("b") is None

    asyncio.run(fill())


def test_hooks_see_and_change_requests_and_see_messages() -> None:
    ended: list[tuple[str, ModelError | None]] = []

    async def on_request(request: Request, asked: ClientRequest) -> ClientRequest | None:
        assert asked.model_id == "m"
        if request.headers.get("authorization") != "Bearer right":
            raise refusal("who are you?", ErrorCode.AUTHENTICATION, 401)
        return None

    async def on_message(asked: ClientRequest, message: Message, error: ModelError | None) -> None:
        assert asked.protocol == "openai-chat"
        ended.append((message.text, error))

    with gateway("openai-chat", on_request=on_request, on_message=on_message) as (url, server):
        server.queue(recorded(TEXT, "openai-chat"))
        with pytest.raises(openai.AuthenticationError, match="who are you"):
            by_chat(url, streams=True)
        assert not server.requests
        client: Any = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="right", max_retries=0))
        list(client.chat.completions.create(model="m", messages=[], stream=True))
    assert ended == [(TEXT.text, None)]


def test_a_pattern_of_the_table_completes_the_name_of_the_model() -> None:
    table = ModelTable(
        {"exact": "openai/gpt-5", "claude-*": "anthropic/claude-*", "*": "ollama/*"}, api_key="k"
    )
    found = [table.find(name) for name in ("exact", "claude-opus-4-6", "qwen3")]
    assert [(one.model.provider_id, one.model_id) for one in found] == [
        ("openai", "gpt-5"),
        ("anthropic", "claude-opus-4-6"),
        ("ollama", "qwen3"),
    ]
    assert table.find("claude-a").model is table.find("claude-b").model  # one client for all


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        ({}, "empty"),
        ({"a": "no-such-vendor/m"}, "'a': name: unknown vendor"),
        ({"a*b*": "openai/gpt-5"}, "more than one"),
        ({"a": {"max_tokens": 5}}, "names no model"),
        ({"a": {"model": "openai/gpt-5", "max_token": 5}}, "max_token"),
    ],
)
def test_a_wrong_table_names_its_entry(entries: dict[str, Any], error: str) -> None:
    with pytest.raises(MisuseError, match=re.escape(error)):
        ModelTable(entries)


def test_a_table_is_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(
        '[models]\n"a" = "openai/gpt-5"\n[models.b]\nmodel = "vllm/q"\nmax_tokens = 5\n'
    )
    table = read_table(path)
    assert table.names == ["a", "b"]
    assert table.find("b").model.get_config().max_tokens == 5
    for text, error in (("x", "gateway.toml"), ("a = 1", r"[models]"), ("[models]\n[b]", "b")):
        path.write_text(text)
        with pytest.raises(MisuseError, match=re.escape(error)):
            read_table(path)


def test_each_argument_of_a_model_has_a_type_in_files() -> None:
    arguments = inspect.signature(Model).parameters.values()
    names = {one.name for one in arguments if one.kind is one.KEYWORD_ONLY}
    # A name and a specification say the first two; the last is a field of the configuration.
    others = names - {"vendor", "markup", "cache_config"}
    assert {*FileSettings.model_fields} == {*others, "specification"}


def test_a_file_gives_the_timeouts_of_a_model(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        path = tmp_path / "gateway.toml"
        path.write_text(
            '[models.a]\nmodel = "vllm/q"\n'
            f'base_url = "http://127.0.0.1:{silent.getsockname()[1]}/v1"\n'
            "timeouts = { first_byte = 0.1, total = 900 }\n"
        )
        with pytest.raises(ModelError, match=r"0\.1") as raised:
            read_table(path).find("a").model.send_message_sync("When is high tide?")
    assert raised.value.code is ErrorCode.TIMEOUT


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("base_url = 3", "base_url: Input should be a valid string"),
        ("api_key = true", "api_key: Input should be a valid string"),
        ("specification = 3", "specification: Input should be a valid string"),
        ("transport = 3", "transport: Input should be a valid string"),
        ('transport = "htpx"', "transport: 'htpx' is not known; known: httpx, httpx2, aiohttp"),
        ('resend_lost = "no"', "resend_lost: Input should be a valid boolean"),
        ('max_connections = "5"', "max_connections: Input should be a valid integer"),
        ("max_connections = 0", "max_connections must be at least 1"),
        ('ends_without_reason = "yes"', "ends_without_reason: Input should be a valid boolean"),
        ("timeouts = 3", "timeouts: Input should be"),
        ("timeouts = { idles = 3 }", "timeouts: there is no limit idles; did you mean 'idle'?"),
        ("timeouts = { idle = 0 }", "idle must be above 0"),
        ('timeouts = { idle = "x" }', "timeouts: idle: Input should be a valid number"),
        ('client = "x"', "client: a file cannot give it, only a program"),
        ("hooks = {}", "hooks: a file cannot give it, only a program"),
    ],
)
def test_a_setting_of_a_wrong_type_is_refused_with_the_file(
    tmp_path: Path, setting: str, error: str
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(f'[models.a]\nmodel = "vllm/q"\n{setting}\n')
    with pytest.raises(MisuseError, match=re.escape(error)) as raised:
        read_table(path)
    assert str(raised.value).startswith("models: 'a': ")


def test_another_machine_needs_a_hook_or_leave() -> None:
    app = create_app({"m": "openai/gpt-5"})

    async def ask(app: Starlette) -> httpx2.Response:
        transport = httpx2.ASGITransport(app, client=("203.0.113.9", 5))
        async with httpx2.AsyncClient(transport=transport, base_url="http://g") as client:
            return await client.get("/v1/models")

    assert asyncio.run(ask(app)).status_code == 403
    open_app = create_app({"m": "openai/gpt-5"}, allow_anyone=True)
    assert asyncio.run(ask(open_app)).status_code == 200


def test_models_are_listed_in_the_form_of_each_client() -> None:
    with gateway("openai-chat") as (url, _):
        chat: Any = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k"))
        assert [model.id for model in chat.models.list()] == ["m"]
        messages: Any = opened(anthropic.Anthropic(base_url=url, api_key="k"))
        assert [model.id for model in messages.models.list()] == ["m"]
        count = messages.messages.count_tokens(
            model="m", messages=[{"role": "user", "content": "word " * 400}]
        )
        assert 300 < count.input_tokens < 700
        assert httpx2.get(f"{url}/health").json() == {"status": "ok"}


def test_silence_of_the_upstream_is_bridged() -> None:
    with gateway("openai-chat", keep_alive=0.05) as (url, server):
        body = b"".join(piece for _, piece in recorded(TEXT, "openai-chat").pieces)
        server.queue(Recording(((0.4, body),)))
        asked: dict[str, object] = {"model": "m", "max_tokens": 9, "messages": [], "stream": True}
        lines = httpx2.post(f"{url}/v1/messages", json=asked).text
    assert lines.count("event: ping") >= 2
    assert lines.rstrip().endswith('{"type":"message_stop"}')


class Noting:
    """Observer that notes how a call ended."""

    def __init__(self, ended: list[str]) -> None:
        self._ended = ended

    def ended(self, core: StreamCore) -> None:
        error = core.error()
        self._ended.append("done" if error is None else error.code.value)


@pytest.mark.parametrize("pause", [0.05, 20.0], ids=["flowing", "silent"])
def test_the_disconnect_of_a_client_ends_the_call_of_the_upstream(pause: float) -> None:
    body = b"".join(piece for _, piece in recorded(TEXT, "openai-chat").pieces)
    half = body.index(b"\n\n") + 2
    rest = [body[at : at + 20] for at in range(half, len(body), 20)]
    recording = Recording(((0.0, body[:half]), *((pause, piece) for piece in rest)))

    def read_a_little(url: str) -> None:
        with httpx2.stream("POST", f"{url}/v1/chat/completions", json=ASKED) as response:
            chunks = response.iter_raw()
            for _ in range(3 if pause > 1 else 1):  # later chunks are keep-alives
                next(chunks)

    assert ends_of_a_call(recording, read_a_little, keep_alive=0.02) == ["cancelled"]


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_client_that_leaves_before_the_first_byte_ends_the_call(*, streams: bool) -> None:
    recording = Recording(((20.0, b"data: {}\n\n"),))

    def leave(url: str) -> None:
        asked = {**ASKED, "stream": streams}
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{url}/v1/chat/completions", json=asked, timeout=0.5)

    assert ends_of_a_call(recording, leave) == ["cancelled"]


ASKED: Final[dict[str, object]] = {"model": "m", "messages": [], "stream": True}


def ends_of_a_call(
    recording: Recording, call: Callable[[str], None], **options: float
) -> list[str]:
    """Return how the upstream's calls ended within four seconds after a client's call."""
    ended: list[str] = []

    def observe(facts: CallFacts) -> Observer:
        assert facts.model_id == "upstream-model"
        return Noting(ended)

    with ReplayServer() as server:
        server.queue(recording)
        model = OpenAIChatModel(
            {"model_id": "upstream-model"},
            base_url=f"{server.url}/v1",
            api_key="k",
            telemetry=observe,
        )
        app = create_app({"m": model}, keep_alive=options.get("keep_alive"))
        with served(app) as url:
            call(url)
            for _ in range(200):
                if ended:
                    break
                time.sleep(0.02)
    return ended
