"""The gateway: passed bytes, guarded text, and the next upstream after a failure."""

import asyncio
import json
from typing import Any, Final

import httpx2
import openai
import pytest

from any_name import AnyName
from deltafold import DeltaKind, ErrorCode, Message, MisuseError, ModelError, fold
from deltafold.gateway import ClientRequest, ModelTable, create_app, refusal
from deltafold.gateway.pass_through import PassedBytes
from deltafold.gateway.streamed_answers import Pulse
from deltafold.message.parts import TextPart
from deltafold.streams.encoded import encode_message
from deltafold.testing import Recording, ReplayServer
from gateway_clients import (
    CALLS,
    CLIENTS,
    PATHS,
    READ,
    TEXT,
    body_of,
    clients,
    recorded,
    request_of,
)
from gateways import gateway, served, upstream
from splits import SIZES, halves, sized

__all__ = ["clients"]  # the fixture closes clients

PASSED: Final = ("openai-chat", "openai-responses", "anthropic-messages")


def answer_of(url: str, dialect: str, *, usage: bool = True) -> httpx2.Response:
    return httpx2.post(url + PATHS[dialect], json=request_of(dialect, usage=usage))


@pytest.mark.parametrize("dialect", CLIENTS)
def test_bytes_pass_unchanged_where_the_upstream_speaks_the_clients_protocol(dialect: str) -> None:
    told: list[str] = []

    async def on_message(_: ClientRequest, message: Message, error: ModelError | None) -> None:
        told.append(message.text)
        assert error is None

    # A member that no encoder would write.
    body = body_of(TEXT, dialect).replace(b'data: {"', b'data: {"vendor_extra":[1.50],"', 1)
    with gateway(dialect, on_message=on_message) as (url, server):
        server.queue(Recording.of(body, piece_bytes=7))
        response = answer_of(url, dialect)
    assert response.content == body
    assert response.headers["content-type"].startswith("text/event-stream")
    assert told == [TEXT.text]


def test_bytes_do_not_pass_to_a_client_that_did_not_ask_for_usage() -> None:
    with gateway("openai-chat") as (url, server):
        server.queue(recorded(TEXT, "openai-chat"))
        text = answer_of(url, "openai-chat", usage=False).text
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert all(chunk["choices"] for chunk in chunks)


def test_bytes_do_not_pass_when_told_not_to() -> None:
    with gateway("openai-chat", passthrough=False) as (url, server):
        body = body_of(TEXT, "openai-chat").replace(b"{", b'{"vendor_extra":1,', 1)
        server.queue(Recording.of(body))
        content = answer_of(url, "openai-chat").content
    assert b"vendor_extra" not in content
    assert fold(content, "openai-chat").text == TEXT.text


@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_cut_of_passed_bytes_ends_in_the_clients_error(dialect: str) -> None:
    body = body_of(TEXT, dialect)
    cut = body.index(b"Oslo") + 1
    with gateway(dialect) as (url, server):
        server.queue(*[Recording.of(body[:cut])] * 2)
        content = answer_of(url, dialect).content
        end = body.rfind(b"\n\n", 0, cut) + 2
        assert content.startswith(body[:end])  # whole events, and no part of one
        assert b"error" in content[end:]
        with pytest.raises(Exception, match=r"(?i)any sign|unknown|error"):
            READ[dialect](url, streams=True)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic-messages"])
@pytest.mark.parametrize("missing", range(1, 40, 3))
def test_the_event_after_the_content_is_completed(dialect: str, missing: int) -> None:
    body = body_of(TEXT, dialect)
    with gateway(dialect) as (url, server):
        missing = min(missing, len(body) - body.rfind(b"\n\n", 0, -2) - 2)
        server.queue(Recording.of(body[:-missing]))
        content = answer_of(url, dialect).content
    assert content in {body, body[:-missing] + b"\n\n"}


def test_an_error_event_of_the_upstream_passes_once() -> None:
    body = body_of(TEXT, "anthropic-messages")
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}
    error = b"event: error\ndata: %b\n\n" % json.dumps(busy).encode()
    body = body[: body.index(b"event: message_delta")] + error
    with gateway("anthropic-messages") as (url, server):
        server.queue(Recording.of(body))
        assert answer_of(url, "anthropic-messages").content == body


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n\r\n"])
def test_an_error_that_is_no_event_is_told_in_one(end: str) -> None:
    # Vertex AI sends the error of a stream that breaks as a bare object between events.
    body = body_of(TEXT, "gemini")
    body = body[: body.index(b"\n\n") + 2]
    error = {"error": {"code": 503, "message": "Busy today", "status": "UNAVAILABLE"}}
    with gateway("gemini") as (url, server):
        server.queue(
            Recording.of_events(body + json.dumps(error, indent=2).encode() + end.encode())
        )
        content = answer_of(url, "gemini").content
    assert content.startswith(body)
    last = content.rstrip().splitlines()[-1]
    assert json.loads(last.removeprefix(b"data: "))["error"]["message"] == "Busy today"


def test_the_last_event_passes_without_the_empty_line_after_it() -> None:
    body = b'data: {"promptFeedback":{"blockReason":"SAFETY"}}'
    with gateway("gemini") as (url, server):
        server.queue(Recording.of_events(body))
        assert answer_of(url, "gemini").content == body + b"\n\n"


@pytest.mark.parametrize("dialect", PASSED)
@pytest.mark.parametrize("size", [None, 7])
def test_a_whole_answer_that_is_called_a_stream_of_events_is_written_as_one(
    dialect: AnyName, size: int | None
) -> None:
    body = encode_message(TEXT, dialect).body
    with gateway(dialect) as (url, server):
        server.queue(Recording.of(b"\n" + body, piece_bytes=size))
        content = answer_of(url, dialect).content
    assert fold(content, dialect).text == TEXT.text
    assert b"data: " in content


def test_a_refusal_of_the_same_protocol_keeps_its_status() -> None:
    with gateway("openai-chat") as (url, server):
        server.queue(
            Recording.error(429, {"error": {"message": "slow down"}}, {"retry-after": "3"})
        )
        response = answer_of(url, "openai-chat")
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")
    assert response.json()["error"]["message"] == "slow down"


def test_keep_alives_stand_between_passed_events() -> None:
    body = body_of(TEXT, "openai-chat")
    at = body.index(b"\n\n") + 2
    with gateway("openai-chat", keep_alive=0.3) as (url, server):
        server.queue(recorded(TEXT, "openai-chat"))
        answer_of(url, "openai-chat")  # imports what a first call imports
        server.queue(Recording(((0.0, body[:at]), (1.0, body[at:]))))
        content = answer_of(url, "openai-chat").content
        assert b": keep-alive\n\n" in content
        assert content.replace(b": keep-alive\n\n", b"") == body
        server.queue(Recording(((0.9, body),)))  # silence before the first byte
        assert fold(answer_of(url, "openai-chat").content, "openai-chat").text == TEXT.text


def test_a_sign_of_life_is_not_late_where_the_clock_is_coarse() -> None:
    """A clock of milliseconds, as uvloop's, may show less than the period when it is over."""
    period = 0.01
    last = next(at / 1000 for at in range(1000, 2000) if at / 1000 + period - at / 1000 < period)

    async def count_of_beats() -> int:
        beats: list[float] = []

        async def beat() -> None:
            beats.append(pulse.last)

        pulse = Pulse(period, beat)
        pulse.last, pulse.time = last, lambda: last + period
        await asyncio.sleep(5 * period)
        pulse.stop()
        return len(beats)

    assert asyncio.run(count_of_beats())


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_whole_events_leave_whatever_the_chunks(end: bytes) -> None:
    body = b": begin\n\n data: a\ndata: b\n\ndata: c\n\ndata: {".replace(b"\n", end)
    for chunks in (*halves(body), *(sized(body, size) for size in SIZES)):
        passed = PassedBytes("gemini")
        got = b""
        for chunk in chunks:
            passed.add(chunk)
            taken = passed.take()
            assert not taken or (got + taken).endswith(end + end)
            got += taken
        assert got + passed.close() == body[: -len(b"data: {")]


SECRET: Final = "sun in Rome"


async def redact(_: ClientRequest, kind: DeltaKind, text: str) -> str:
    return text.replace(SECRET, "***") if kind is DeltaKind.TEXT else text.replace("Rome", "R***")


@pytest.mark.parametrize("dialect", PASSED)
@pytest.mark.parametrize("together", [True, False], ids=["one read", "later"])
def test_nothing_passes_behind_the_end_of_the_stream(dialect: str, *, together: bool) -> None:
    told: list[Message] = []

    async def on_message(_: ClientRequest, message: Message, __: ModelError | None) -> None:
        told.append(message)

    body, late = body_of(TEXT, dialect), body_of(CALLS, dialect)
    pieces = [(0.0, body + late)] if together else [(0.0, body), (0.001, late)]
    with gateway(dialect, on_message=on_message) as (url, server):
        server.queue(Recording(tuple(pieces)))
        content = answer_of(url, dialect).content
    assert content == body
    assert [message.text for message in told] == [TEXT.text]


@pytest.mark.parametrize("dialect", CLIENTS)
@pytest.mark.parametrize("together", [True, False], ids=["one read", "later"])
def test_nothing_follows_the_error_after_an_event_that_cannot_be_read(
    dialect: str, *, together: bool
) -> None:
    body = body_of(TEXT, dialect)
    first, gap, rest = body.partition(b"\n\n")
    garbage = b"data: {gar\xffbage\n\n"
    pieces = (first + gap, garbage, rest)
    given = ((0.0, b"".join(pieces)),) if together else tuple((0.001, one) for one in pieces)
    with gateway(dialect) as (url, server):
        server.queue(Recording(given))
        content = answer_of(url, dialect).content
    assert content.startswith(first + gap)
    assert garbage.strip() not in content
    assert TEXT.text[-5:].encode() not in content
    assert b"error" in content[len(first) :]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_hook_replaces_text_across_the_borders_of_deltas(client: str, *, streams: bool) -> None:
    pieces = [Message.assistant(letter).parts[0] for letter in TEXT.text]
    spelled = Message.assistant(*pieces)
    spelled.meta.usage = TEXT.meta.usage
    options: Any = {"on_delta": redact, "hold_back": len(SECRET)}
    with gateway("anthropic-messages", **options) as (url, server):
        server.queue(recorded(TEXT, "anthropic-messages"), recorded(CALLS, "anthropic-messages"))
        got = READ[client](url, streams=streams)
        assert got.text == "Rain in Oslo, ***."
        got = READ[client](url, streams=streams)
        assert [arguments for _, arguments in got.calls] == [{"city": "Oslo"}, {"city": "R***"}]


def test_held_text_is_bounded_and_leaves_in_order() -> None:
    seen: list[str] = []

    async def look(_: ClientRequest, kind: DeltaKind, text: str) -> str:
        if kind is DeltaKind.TEXT:
            seen.append(text)
        return text

    pieces = Message.assistant(*(TextPart(text=f"{number},") for number in range(200)))
    with gateway("openai-chat", on_delta=look, hold_back=10) as (url, server):
        server.queue(recorded(pieces, "openai-chat"))
        content = answer_of(url, "openai-chat").content
    assert fold(content, "openai-chat").text == pieces.text
    assert max(map(len, seen)) < 4_000  # never the whole text again and again
    assert sum(map(len, seen)) < 200 * 20


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_hook_ends_the_answer_in_the_clients_error(client: str, *, streams: bool) -> None:
    ended: list[tuple[str, ErrorCode | None]] = []

    async def stop(_: ClientRequest, kind: DeltaKind, text: str) -> str:
        if kind is DeltaKind.TEXT and "Rome" in text:
            raise refusal("this is not said here", ErrorCode.CONTENT_BLOCKED, 400)
        return text

    async def on_message(_: ClientRequest, message: Message, error: ModelError | None) -> None:
        ended.append((message.text, None if error is None else error.code))

    with gateway("anthropic-messages", on_delta=stop, on_message=on_message) as (url, server):
        server.queue(recorded(TEXT, "anthropic-messages"))
        if client == "gemini":
            # The protocol tells this with the status 200.
            path = PATHS[client] if streams else "/v1beta/models/m:generateContent"
            response = httpx2.post(url + path, json=request_of(client))
            assert ('"finishReason":"SAFETY"' if streams else "blockReason") in response.text
            assert "Rome" not in response.text
            assert response.headers["content-type"] == (
                "text/event-stream" if streams else "application/json"
            )
        else:
            with pytest.raises(Exception, match="not said here"):
                READ[client](url, streams=streams)
    assert ended == [(TEXT.text, ErrorCode.CONTENT_BLOCKED if streams else None)]


OVERLOADED: Final = Recording.error(529, {"error": {"type": "overloaded_error", "message": "Busy"}})


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
def test_the_next_upstream_answers_when_one_failed_before_its_first_byte(
    client: str, *, streams: bool
) -> None:
    with ReplayServer() as first, ReplayServer() as second:
        first.queue(OVERLOADED)
        second.queue(recorded(TEXT, "openai-chat"))
        models = [upstream("anthropic-messages", first.url), upstream("openai-chat", second.url)]
        with served(create_app({"m": models})) as url:
            assert READ[client](url, streams=streams).text == TEXT.text
    assert len(first.requests) == len(second.requests) == 1


def test_text_that_waits_is_dropped_with_the_upstream_that_failed() -> None:
    body = body_of(TEXT, "anthropic-messages")
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}
    error = b"event: error\ndata: %b\n\n" % json.dumps(busy).encode()
    at = body.index(b"event: content_block_delta")
    at = body.index(b"event: content_block_delta", at + 1)  # before the second text
    with ReplayServer() as first, ReplayServer() as second:
        first.queue(Recording.of(body[:at] + error))
        second.queue(recorded(CALLS, "openai-chat"))
        models = [upstream("anthropic-messages", first.url), upstream("openai-chat", second.url)]
        app = create_app({"m": models}, on_delta=redact, hold_back=100)
        with served(app) as url:
            content = answer_of(url, "openai-chat").content
    assert fold(content, "openai-chat").text == CALLS.text


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_wrong_request_goes_to_no_other_upstream(*, streams: bool) -> None:
    with ReplayServer() as first, ReplayServer() as second:
        first.queue(Recording.error(400, {"error": {"message": "wrong tools"}}))
        models = [upstream("openai-chat", first.url), upstream("openai-chat", second.url)]
        with served(create_app({"m": models})) as url, pytest.raises(openai.BadRequestError):
            READ["openai-chat"](url, streams=streams)
    assert not second.requests


def test_the_last_failure_is_told_when_all_upstreams_fail() -> None:
    with ReplayServer() as first, ReplayServer() as second:
        first.queue(OVERLOADED)
        second.queue(Recording.error(429, {"error": {"message": "slow down"}}))
        models = [upstream("anthropic-messages", first.url), upstream("openai-chat", second.url)]
        with (
            served(create_app({"m": models})) as url,
            pytest.raises(openai.RateLimitError, match="slow down"),
        ):
            READ["openai-chat"](url, streams=True)


def test_a_model_without_a_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with served(create_app({"m": "openai/gpt-5"})) as url:
        response = answer_of(url, "openai-chat")
    assert response.status_code == 500
    assert "OPENAI_API_KEY" in response.json()["error"]["message"]


def test_a_pattern_completes_every_name_of_a_list() -> None:
    table = ModelTable({"c-*": ["anthropic/claude-*", "openai/gpt-*"]}, api_key="k")
    found = table.find("c-5")
    assert found.model_id == "claude-5"
    assert found.fallback is not None
    assert (found.fallback.model_id, found.fallback.fallback) == ("gpt-5", None)
    with pytest.raises(MisuseError, match="names no model"):
        ModelTable({"m": []})
    asyncio.run(table.aclose())
