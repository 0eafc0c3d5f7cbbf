"""The gateway: another upstream continues an answer that broke off after its first byte."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

import httpx2
import pytest

import wire_deltas
from any_name import AnyName
from deltafold import (
    Encoder,
    Message,
    MessageAssembler,
    MessageDelta,
    ModelError,
    fold,
    message_deltas,
)
from deltafold.contract.kinds import DeltaKind
from deltafold.contract.usage import Usage
from deltafold.gateway import ClientRequest, create_app
from deltafold.message.parts import TextPart, ThinkingPart, ToolCallPart
from deltafold.models.spliced import Splice
from deltafold.testing import Recording, ReplayServer
from gateways import served, upstream
from speakers import stream, text

ROUTES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "openai-chat": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "?"}], "stream_options": {"include_usage": True}},
    ),
    "openai-responses": ("/v1/responses", {"input": "?"}),
    "anthropic-messages": (
        "/v1/messages",
        {"messages": [{"role": "user", "content": "?"}], "max_tokens": 9},
    ),
    "gemini": (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "?"}]}]},
    ),
}
LIVES: Final = "It rains in Oslo, and the sun shines in Rome."


def mistral(said: str, *, counts: tuple[int, int] = (11, 7)) -> Recording:
    """Return an answer of Mistral, in pieces of words."""
    pieces = [f"{word} " for word in said.split(" ")]
    pieces[-1] = pieces[-1][:-1]
    body = stream("mistral", text(*pieces), counts=counts)
    return Recording.of(body)


def cut(recording: Recording, mark: bytes) -> Recording:
    """Return a recording that breaks off before the event with the mark."""
    body = recording.body
    return Recording.of(body[: body.rindex(b"data:", 0, body.index(mark))])


@contextmanager
def two(*answers: Recording, **options: Any) -> Generator[tuple[str, ReplayServer]]:  # noqa: ANN401 - those of `create_app`
    """Serve a gateway whose model is twice the same upstream."""
    with ReplayServer() as server:
        server.queue(*answers)
        models = [upstream("mistral", server.url), upstream("mistral", server.url)]
        with served(create_app({"m": models}, **options)) as url:
            yield url, server


def asked(url: str, protocol: str, *, streams: bool = True) -> httpx2.Response:
    path, body = ROUTES[protocol]
    if not streams:
        path = path.replace(":streamGenerateContent?alt=sse", ":generateContent")
    return httpx2.post(url + path, json={"model": "m", "stream": streams, **body})


@pytest.mark.parametrize("protocol", ROUTES)
@pytest.mark.parametrize("is_repeated", [True, False], ids=["repeats", "goes on"])
def test_the_next_upstream_continues_the_text(protocol: AnyName, *, is_repeated: bool) -> None:
    told: list[Message] = []

    async def on_message(_: ClientRequest, message: Message, error: ModelError | None) -> None:
        assert error is None
        told.append(message)

    first = cut(mistral(LIVES), b"sun")
    rest = LIVES if is_repeated else LIVES[LIVES.index("sun") :]
    with two(first, mistral(rest), continue_answers=True, on_message=on_message) as (url, server):
        content = asked(url, protocol).content
    answer = fold(content, protocol)
    assert answer.text == LIVES
    assert answer.meta.usage is not None
    assert answer.meta.usage.output_tokens == 7
    note = b": the answer broke off after %d characters; another goes on\n\n"
    assert content.count(note % LIVES.index("sun")) == 1
    assert [message.text for message in told] == [LIVES]
    assert [warning["code"] for warning in told[0].meta.warnings] == ["continued"]
    sent = json.loads(server.requests[1].body)["messages"][-1]
    assert sent["role"] == "assistant"
    assert sent["prefix"] is True


@pytest.mark.parametrize("protocol", ROUTES)
def test_a_whole_answer_is_continued_too(protocol: str) -> None:
    first, rest = cut(mistral(LIVES), b"sun"), mistral("sun shines in Rome.")
    with two(first, rest, continue_answers=True) as (url, _):
        given = asked(url, protocol, streams=False)
    assert LIVES in given.text


@pytest.mark.parametrize("options", [{}, {"passthrough": False}])
def test_nobody_goes_on_unless_the_caller_asked(options: dict[str, bool]) -> None:
    with two(cut(mistral(LIVES), b"sun"), mistral(LIVES), **options) as (url, server):
        content = asked(url, "openai-chat").content
        assert len(server.requests) == 1
    with pytest.raises(ModelError):
        fold(content, "openai-chat")


def test_the_last_upstream_fails_with_the_first_text_kept() -> None:
    first, second = cut(mistral(LIVES), b"sun"), cut(mistral("sun shines in Rome."), b"Rome")
    with two(first, second, continue_answers=True) as (url, server):
        content = asked(url, "anthropic-messages").content
        assert len(server.requests) == 2
    with pytest.raises(ModelError) as raised:
        fold(content, "anthropic-messages")
    partial = raised.value.partial_message
    assert partial is not None
    assert partial.text == "It rains in Oslo, and the sun shines in "


def test_an_upstream_that_continues_no_answer_is_not_asked() -> None:
    with ReplayServer() as server:
        server.queue(cut(mistral(LIVES), b"sun"))
        models = [upstream("mistral", server.url), upstream("gemini", server.url)]
        with served(create_app({"m": models}, continue_answers=True)) as url:
            content = asked(url, "openai-chat").content
        assert len(server.requests) == 1
    with pytest.raises(ModelError):
        fold(content, "openai-chat")


def test_the_hook_sees_a_pattern_across_the_break() -> None:
    async def hide(_: ClientRequest, _kind: DeltaKind, said: str) -> str:
        return said.replace("the sun", "the ***")

    first, rest = cut(mistral(LIVES), b"sun"), mistral("sun shines in Rome.")
    with two(first, rest, continue_answers=True, on_delta=hide, hold_back=8) as (url, _):
        answer = fold(asked(url, "openai-chat").content, "openai-chat")
    assert answer.text == LIVES.replace("the sun", "the ***")


def message(*parts: TextPart | ThinkingPart | ToolCallPart) -> Message:
    made = Message.assistant(*parts)
    made.meta.usage = Usage(input_tokens=5, output_tokens=3, total_tokens=8)
    made.meta.response_id = "r"
    return made


RESTS: Final = {
    "text": (message(TextPart(text="Rome.")), "It rains. Rome."),
    "space": (message(TextPart(text=" Rome.")), "It rains. Rome."),
    "the text again": (message(TextPart(text="It rains. Rome.")), "It rains. Rome."),
    "only the text again": (message(TextPart(text="It rains.")), "It rains. "),
    "a beginning of the text": (message(TextPart(text="It r")), "It rains. It r"),
    "nothing": (message(), "It rains. "),
    "thinking": (message(ThinkingPart(text="Hm."), TextPart(text="Rome.")), "It rains. Rome."),
}


@pytest.mark.parametrize("rest", RESTS)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "ended"])
@pytest.mark.parametrize("size", [1, 3, 99])
def test_spliced_deltas_are_those_of_one_answer(rest: str, size: int, *, is_open: bool) -> None:
    said, wanted = RESTS[rest]
    call = ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text="{}")
    said = said.model_copy(update={"parts": [*said.parts, call]})
    partial = message(TextPart(text="It rains. "))
    before = message_deltas(partial)[: 2 if is_open else 3]
    splice, encoder = Splice(), Encoder("openai-chat")
    deltas = list(splice.deltas(before))
    splice.continue_after(partial, "mistral")
    for delta in (one for given in message_deltas(said) for one in pieces(given, size)):
        deltas += splice.deltas([delta])
    assert all(one.seq < other.seq for one, other in pairwise(deltas))
    assert len({delta.run_id for delta in deltas}) == 1
    answer = fold(b"".join(map(encoder.feed, deltas)) + encoder.close(), "openai-chat")
    assert answer.text == wanted
    assert [one.tool_call_id for one in answer.tool_calls] == ["c"]


def pieces(delta: Any, size: int) -> Iterator[Any]:  # noqa: ANN401 - a delta
    """Yield a delta of text in pieces of so many characters."""
    if delta.kind is not DeltaKind.TEXT:
        yield delta
        return
    said = delta.text
    for at in range(0, len(said), size):
        payload = dict(delta.payload) | {"textDelta": said[at : at + size]}
        yield type(delta)(delta.run_id, delta.seq, delta.kind, payload, delta.timestamp)


def test_a_piece_of_audio_ends_no_text() -> None:
    answers: list[list[tuple[str, wire_deltas.Wire]]] = [
        [
            wire_deltas.start(),
            wire_deltas.text("It rains ", partIndex=0),
            ("audio", {"audioDelta": "AAEC"}),
            wire_deltas.part_end(0),
            wire_deltas.error("connection_lost"),
        ],
        [
            wire_deltas.start(),
            ("audio", {"audioDelta": "AwQF"}),
            wire_deltas.text("in Oslo.", partIndex=0),
            wire_deltas.part_end(0),
            wire_deltas.done(),
        ],
    ]
    splice, assembler = Splice(), MessageAssembler()
    for said in answers:
        deltas = [MessageDelta.from_dict(one) for one in wire_deltas.numbered(*said)]
        for delta in splice.deltas(deltas):
            assembler.consume(delta)
        splice.continue_after(assembler.snapshot(), "mistral")
    message = assembler.build_final_message()
    assert [part.kind for part in message.parts] == ["text"]
    assert message.text == "It rains in Oslo."
