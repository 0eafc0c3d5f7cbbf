"""An upstream that is lost inside of an answer: what the client sees, in each way of `on_cut`.

Source: the table of programs in docs/gateway.md.
"""

import json
from typing import Final, NamedTuple

import httpx2
import pytest

from deltafold import DeltaKind, ErrorCode, Message, ModelError
from deltafold.gateway import ClientRequest, create_app
from deltafold.gateway.hooks import OnDelta
from deltafold.testing import Recording, ReplayServer
from gateway_clients import PATHS, TEXT, body_of, request_of
from gateways import gateway, served, upstream

WAYS: Final = ("event", "break", "event_and_break")
CLOSINGS: Final = (b"content_block_stop", b"output_item.done", b'finish_reason":"', b"finishReason")


class Seen(NamedTuple):
    """What a client read, and whether the body ended as it should."""

    content: bytes
    is_whole: bool


def read(url: str, dialect: str) -> Seen:
    content, is_whole = b"", True
    asked = request_of(dialect)
    try:
        with httpx2.stream("POST", url + PATHS[dialect], json=asked) as response:
            for chunk in response.iter_raw():
                content += chunk
    except httpx2.RemoteProtocolError:
        is_whole = False
    return Seen(content, is_whole)


ENDS: Final = {
    "anthropic-messages": b"event: content_block_stop",
    "openai-chat": b'"finish_reason":"stop"',
}


def cut(dialect: str) -> Recording:
    """Return an answer without what follows its text."""
    body = body_of(TEXT, dialect)
    return Recording.of(body[: body.rfind(b"\n\n", 0, body.index(ENDS[dialect])) + 2])


@pytest.mark.parametrize("way", [None, *WAYS])
@pytest.mark.parametrize("source", ENDS)
@pytest.mark.parametrize("client", PATHS)
def test_a_lost_upstream_is_seen_in_the_way_that_was_chosen(
    client: str, source: str, way: str | None
) -> None:
    errors: list[ModelError | None] = []

    async def on_message(_: ClientRequest, message: Message, error: ModelError | None) -> None:
        errors.append(error)
        assert message.text

    with gateway(source, on_cut=way, on_message=on_message) as (url, server):
        server.queue(cut(source))
        seen = read(url, client)
    assert seen.is_whole is (way in {None, "event"})
    assert (b"connection lost" in seen.content) is (way != "break")
    assert (b"error" in seen.content.replace(b'"error":null', b"")) is (way != "break")
    if source != client:
        assert not any(closing in seen.content for closing in CLOSINGS)
    assert [error and error.code for error in errors] == [ErrorCode.CONNECTION_LOST]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", PATHS)
def test_the_error_event_of_a_provider_ends_cleanly_in_every_way(client: str, way: str) -> None:
    body = body_of(TEXT, "anthropic-messages")
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}
    error = b"event: error\ndata: %b\n\n" % json.dumps(busy).encode()
    with gateway("anthropic-messages", on_cut=way) as (url, server):
        server.queue(Recording.of(body[: body.index(b"event: message_delta")] + error))
        seen = read(url, client)
    assert seen.is_whole
    assert b"Busy" in seen.content
    assert b"connection lost" not in seen.content


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_before_the_first_byte_is_an_http_error_in_every_way(way: str) -> None:
    with gateway("anthropic-messages", on_cut=way) as (url, server):
        server.queue(*[Recording.of(b": comment\n\n")] * 3)
        response = httpx2.post(url + PATHS["openai-chat"], json=request_of("openai-chat"))
    assert response.status_code >= 500
    assert response.json()["error"]["message"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", ["openai-chat", "anthropic-messages"])
def test_garbage_is_a_lost_upstream(client: str, way: str) -> None:
    body = body_of(TEXT, client)
    body = body[: body.index(b"data:", body.index(b"Oslo"))] + b'data: {"a": \x00\n\n'
    with gateway(client, on_cut=way) as (url, server):
        server.queue(Recording.of(body))
        seen = read(url, client)
    assert seen.is_whole is (way == "event")
    assert (b"connection lost" in seen.content) is (way != "break")


async def kept(_: ClientRequest, _kind: DeltaKind, text: str) -> str:
    return text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("guard", [None, kept], ids=["without a hook", "guarded"])
def test_text_that_a_hook_held_back_leaves_before_the_break(
    guard: OnDelta | None, way: str
) -> None:
    options = {} if guard is None else {"on_delta": guard, "hold_back": 1_000}
    with gateway("anthropic-messages", on_cut=way, **options) as (url, server):
        server.queue(cut("anthropic-messages"))
        seen = read(url, "openai-chat")
    lines = [line[6:] for line in seen.content.splitlines() if line.startswith(b"data: {")]
    chunks = [json.loads(line) for line in lines]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk.get("choices")]
    text = "".join(delta.get("content") or "" for delta in deltas)
    assert text
    assert TEXT.text.startswith(text)
    assert seen.is_whole is (way == "event")


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_call_that_was_cut_is_not_closed(*, goes_on: bool) -> None:
    body = body_of(TEXT, "anthropic-messages")
    start = {
        "type": "content_block_start",
        "index": 9,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "pay", "input": None},
    }
    args = {"type": "input_json_delta", "partial_json": '{"n":'}
    delta: dict[str, object] = {"type": "content_block_delta", "index": 9, "delta": args}
    events = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in (start, delta))
    body = body[: body.index(b"event: message_delta")] + events
    with ReplayServer() as server:
        server.queue(Recording.of(body))
        models = [upstream("anthropic-messages", server.url)] * 2
        app = create_app({"m": models}, passthrough=False, continue_answers=goes_on)
        with served(app) as url:
            seen = read(url, "anthropic-messages")
    assert len(server.requests) == 1
    after = seen.content[seen.content.index(b"tool_use") :]
    assert b"content_block_stop" not in after
    assert b"connection lost" in after
