"""Token counts through the gateway: hooks have them in any case, Chat clients if they asked."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import httpx2
import pytest

from any_name import AnyName
from client_requests import asked
from deltafold import Message, fold
from deltafold.gateway import create_app
from deltafold.gateway.pass_through import PassedBytes, without_usage
from deltafold.message.parts import TextPart
from deltafold.models.adapters import adapter_of
from gateway_clients import CLIENTS, answer
from recorded_upstreams import written

WORDS: Final = 'The "usage": {"total_tokens": 1} of Brest — 17:42. '
ANSWER: Final = answer(TextPart(text=WORDS * 3))
COUNTS: Final = (11, 7, 18)
SIZES: Final = (1, 7, 61, 1 << 16)
ASKS: Final[dict[str, Any]] = {"stream_options": {"include_usage": True}}


class Pieces(httpx2.AsyncByteStream):
    """A body in pieces of one size."""

    def __init__(self, body: bytes, size: int) -> None:
        self._body, self._size = body, size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), self._size):
            yield self._body[start : start + self._size]


class Upstream(httpx2.AsyncBaseTransport):
    """A provider that sends usage of Chat only to a request for it, as OpenAI does."""

    def __init__(self, dialect: str, size: int = 1 << 16, body: bytes | None = None) -> None:
        self.requests: list[dict[str, Any]] = []
        self._dialect, self._size, self._body = dialect, size, body

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(await request.aread()))
        options: dict[str, Any] = self.requests[-1].get("stream_options") or {}
        body = self._body
        if body is None and self._dialect == "openai-chat":
            wants_usage = options.get("include_usage") is True
            body = written(ANSWER, self._dialect, include_usage=wants_usage)
        elif body is None:
            body = written(ANSWER, self._dialect)
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=Pieces(body, self._size))


async def called(
    upstream: Upstream,
    dialect: str,
    client: str,
    *,
    streams: bool,
    more: Mapping[str, object] | None = None,
    config: Mapping[str, object] | None = None,
    fails: bool = False,
    **options: Any,  # noqa: ANN401 - those of `create_app`
) -> tuple[bytes, Message]:
    """Return the answer that a client has, and the message that the hook has."""
    told: list[Message] = []

    async def account(_: object, message: Message, error: object) -> None:
        assert (error is not None) == fails
        told.append(message)

    adapter = adapter_of(dialect)
    assert adapter is not None
    async with httpx2.AsyncClient(transport=upstream) as provider:
        model = adapter(
            {"model_id": "upstream-model", **(config or {})},
            client=provider,
            base_url="http://upstream.example",
            api_key="k",
        )
        app = create_app({"m": model}, on_message=account, **options)
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            path, body = asked(client, streams=streams)
            response = await http.post(path, json={**body, **(more or {})})
    assert response.status_code == 200, response.text
    (message,) = told
    return response.content, message


def counts(message: Message) -> tuple[int | None, ...] | None:
    usage = message.meta.usage
    if usage is None:
        return None
    return usage.input_tokens, usage.output_tokens, usage.total_tokens


def chunks(stream: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data:").strip() for line in stream.splitlines()]
    return [json.loads(line) for line in lines if line.startswith(b"{")]


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("dialect", CLIENTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_hook_and_client_have_the_counts_of_the_upstream(
    client: AnyName, dialect: str, *, streams: bool
) -> None:
    more = ASKS if client == "openai-chat" and streams else {}
    for size in SIZES:
        data, told = asyncio.run(
            called(Upstream(dialect, size), dialect, client, streams=streams, more=more)
        )
        read = fold(data, client)
        assert (counts(told), counts(read)) == (COUNTS, COUNTS)
        assert told.text == read.text == ANSWER.text


@pytest.mark.parametrize("more", [{}, {"stream_options": {"include_usage": False}}])
@pytest.mark.parametrize("passes", [True, False], ids=["passed", "written"])
@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_chat_client_reads_no_record_that_it_did_not_ask_for(
    dialect: str, more: Mapping[str, object], *, passes: bool
) -> None:
    for size in SIZES:
        data, told = asyncio.run(
            called(
                Upstream(dialect, size),
                dialect,
                "openai-chat",
                streams=True,
                more=more,
                passthrough=passes,
            )
        )
        assert counts(told) == COUNTS
        assert not any(chunk.get("usage") for chunk in chunks(data))
        assert all(chunk["choices"] for chunk in chunks(data))
        assert fold(data, "openai-chat").text == ANSWER.text
        assert data.endswith(b"data: [DONE]\n\n")


def test_the_events_beside_the_record_pass_byte_for_byte() -> None:
    body = written(ANSWER, "openai-chat")
    events = body.split(b"\n\n")
    (record,) = (event for event in events if b'"usage":{' in event)
    expected = body.replace(record + b"\n\n", b"")
    for size, ends in itertools.product(SIZES, (b"\n", b"\r\n", b"\r")):
        upstream = Upstream("openai-chat", size, body.replace(b"\n", ends))
        data, told = asyncio.run(called(upstream, "openai-chat", "openai-chat", streams=True))
        assert data.rstrip() == expected.replace(b"\n", ends).rstrip()
        assert counts(told) == COUNTS
        upstream = Upstream("openai-chat", size, body.replace(b"\n", ends))
        data, _ = asyncio.run(
            called(upstream, "openai-chat", "openai-chat", streams=True, more=ASKS)
        )
        assert data.rstrip() == body.replace(b"\n", ends).rstrip()


FINISH: Final = b'{"index":0,"delta":{},"finish_reason":"stop","x":"\\ud83c\\udf0a"}'
TEXT: Final = b'{"index":0,"delta":{"content":"Hi"},"finish_reason":null}'
USAGE: Final = b'{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}'
ENDINGS: Final = {
    "in each chunk": (
        b'data: {"choices":[%b],"usage":%b}\n\ndata: {"choices":[%b],"usage" : %b,"citations":[1]}'
        b"\n\ndata: [DONE]\n\n" % (TEXT, USAGE, FINISH, USAGE)
    ),
    "in two lines of data": (
        b'data: {"choices":[%b]}\n\nid: 7\ndata: {"choices":[%b],"citations":[1],\n'
        b'data: "usage":%b}\n\ndata: [DONE]\n\n' % (TEXT, FINISH, USAGE)
    ),
    "without an end": (
        b'data: {"choices":[%b],"citations":[1]}\n\ndata: {"choices":[%b]}\n\n'
        b'data: {"choices":[],"usage":%b}' % (TEXT, FINISH, USAGE)
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_record_of_a_vendor_leaves_and_the_rest_of_its_chunk_stays(ending: str) -> None:
    body = ENDINGS[ending]
    for size in SIZES:
        data, told = asyncio.run(
            called(Upstream("openai-chat", size, body), "openai-chat", "openai-chat", streams=True)
        )
        assert counts(told) == COUNTS
        got = chunks(data.replace(b",\ndata:", b","))
        assert [chunk["choices"] for chunk in got] == [[json.loads(TEXT)], [json.loads(FINISH)]]
        assert [chunk["citations"] for chunk in got if "citations" in chunk] == [[1]]
        assert b"usage" not in data
        assert data.count(b"id: 7\n") == body.count(b"id: 7\n")
        assert data.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("more", "config", "sent"),
    [
        ({}, {}, {"include_usage": True}),
        ({"stream_options": {"include_usage": False}}, {}, {"include_usage": True}),
        (ASKS, {"include_usage": False}, None),
        ({}, {"include_usage": False}, None),
        (
            {"stream_options": {"include_obfuscation": False}},
            {},
            {"include_obfuscation": False, "include_usage": True},
        ),
        (
            {"stream_options": {"include_obfuscation": False}},
            {"include_usage": False},
            {"include_obfuscation": False},
        ),
        (
            {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
            {},
            {"include_usage": True, "continuous_usage_stats": True},
        ),
        ({"stream_options": {"continuous_usage_stats": True}}, {}, {"include_usage": True}),
        (
            {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
            {"include_usage": False},
            None,
        ),
        (
            {"stream_options": {"include_usage": True, "a": 1}, "b": 2},
            {"extra_body": {"stream_options": {"include_usage": True, "c": 3}}},
            {"include_usage": True, "c": 3},
        ),
        ({"b": 2}, {"extra_body": {"stream_options": {"c": 3}}}, {"c": 3}),
        ({}, {"extra_body": {"stream_options": {"c": 3}}}, {"c": 3}),
    ],
)
def test_the_settings_of_the_model_decide_whether_it_is_asked(
    more: Mapping[str, object], config: Mapping[str, object], sent: object
) -> None:
    upstream = Upstream("openai-chat")
    asyncio.run(
        called(upstream, "openai-chat", "openai-chat", streams=True, more=more, config=config)
    )
    (request,) = upstream.requests
    assert request.get("stream_options") == sent
    assert request.get("b") == more.get("b")


def test_all_answers_pass_to_a_client_that_did_not_ask_for_usage() -> None:
    two = [TEXT, TEXT.replace(b'"index":0', b'"index":1'), FINISH]
    two.append(FINISH.replace(b'"index":0', b'"index":1'))
    body = b"".join(b'data: {"choices":[%b],"usage":null}\n\n' % choice for choice in two)
    record = b'data: {"choices":[],"usage":%b}\n\n' % USAGE
    end = b"data: [DONE]\n\n"
    for size in SIZES:
        upstream = Upstream("openai-chat", size, body + record + end)
        data, told = asyncio.run(
            called(upstream, "openai-chat", "openai-chat", streams=True, more={"n": 2})
        )
        assert data == body + end
        assert counts(told) == COUNTS


CITED: Final = b'{"id":"c","choices":[],"citations":["https://tide.example"],"usage":%b}' % USAGE
FILTERED: Final = (
    b'{"choices":[],"prompt_filter_results":[{"prompt_index":0}],"error":null,"usage":%b}' % USAGE
)


@pytest.mark.parametrize("beside", [CITED, FILTERED], ids=["citations", "prompt_filter_results"])
def test_what_a_vendor_sends_in_the_chunk_of_the_record_stays(beside: bytes) -> None:
    body = b'data: {"choices":[%b]}\n\ndata: {"choices":[%b]}\n\ndata: %b\n\ndata: [DONE]\n\n'
    for size in SIZES:
        upstream = Upstream("openai-chat", size, body % (TEXT, FINISH, beside))
        data, told = asyncio.run(called(upstream, "openai-chat", "openai-chat", streams=True))
        *_, last = chunks(data)
        assert last == {
            name: value for name, value in json.loads(beside).items() if name != "usage"
        }
        assert counts(told) == COUNTS


def test_an_error_in_the_chunk_of_the_record_arrives() -> None:
    failed = b'{"choices":[],"usage":%b,"error":{"message":"out of memory","code":500}}' % USAGE
    passed = PassedBytes("openai-chat", without_usage)
    passed.add(b"data: %b\n\n" % failed)
    (chunk,) = chunks(passed.take())
    assert chunk["error"]["message"] == "out of memory"


def test_an_event_that_is_nested_too_deeply_passes_unread() -> None:
    deep = b'data: {"usage":{},"choices":%b%b}\n\n' % (b"[" * 200_000, b"]" * 200_000)
    passed = PassedBytes("openai-chat", without_usage)
    passed.add(deep)
    assert passed.take() == deep


def test_an_error_that_is_no_event_arrives_in_any_chunking() -> None:
    """Behind the events of the same chunk it was taken for one of them."""
    body = b'data: {"choices":[%b]}\n\n{"error":{"message":"out of memory"}}\n' % TEXT
    for size, more in itertools.product(SIZES, ({}, ASKS)):
        upstream = Upstream("openai-chat", size, body)
        data, _ = asyncio.run(
            called(upstream, "openai-chat", "openai-chat", streams=True, more=more, fails=True)
        )
        *_, last = chunks(data)
        assert last["error"]["message"] == "out of memory"
