"""Every answer of a response as a stream and a body of another protocol, each under its number."""

from typing import Any, cast

import pytest

import deltafold
from any_name import AnyName
from choice_chunks import chat, chunk, said
from deltafold import ChoicesEncoder, Decoder, DeltaBatch, Limits, MessageDelta, MisuseError
from protocol_bodies import CHAT

TARGETS = ("gemini", "gemini-array", "openai-chat")


def encoded(target: AnyName, body: bytes, size: int) -> tuple[ChoicesEncoder[bytes], bytes]:
    decoder = Decoder(CHAT, choice="all")
    encoder = ChoicesEncoder(target)
    written = [encoder.feed(decoder.feed(body[at : at + size])) for at in range(0, len(body), size)]
    written += [encoder.feed(decoder.close()), encoder.close()]
    return encoder, b"".join(written)


def reader(target: str) -> AnyName:
    return "openai-chat" if target == "openai-chat" else "gemini"


def folded(body: bytes, dialect: AnyName) -> dict[int, deltafold.Message]:
    assemblers = deltafold.fold_choices(body, dialect)
    return {number: one.build_final_message() for number, one in assemblers.items()}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [1, 90, 100_000])
def test_every_answer_comes_back_under_its_number(target: str, size: int) -> None:
    source = folded(chat(5), CHAT)
    encoder, body = encoded(target, chat(5), size)
    assert (encoder.status, encoder.finished, encoder.failed) == (200, True, False)
    found = folded(body, reader(target))
    assert list(found) == list(source)
    for number, message in source.items():
        assert found[number].text == message.text
        calls = [(call.tool_name, call.arguments) for call in message.tool_calls]
        assert [(call.tool_name, call.arguments) for call in found[number].tool_calls] == calls


@pytest.mark.parametrize("target", TARGETS)
def test_a_cut_response_ends_in_one_error(target: AnyName) -> None:
    cut = chat(3)[: len(chat(3)) // 2]
    encoder, body = encoded(target, cut, 50)
    assert encoder.failed
    assert body.count(b'"error":{') == 1
    assert b"[DONE]" not in body
    with pytest.raises(deltafold.ModelError):
        deltafold.fold(body, reader(target))


@pytest.mark.parametrize("target", TARGETS)
def test_a_refused_request_is_an_http_error(target: AnyName) -> None:
    decoder = Decoder(CHAT, choice="all", status=429, headers={"retry-after": "7"})
    encoder = ChoicesEncoder(target)
    encoder.feed(decoder.feed(b'{"error":{"message":"slow down"}}'))
    encoder.feed(decoder.close())
    undecided = encoder.status
    body = encoder.close()
    assert undecided is None
    assert encoder.status == 429
    assert encoder.headers is not None
    assert encoder.headers["retry-after"] == "7"
    assert b"slow down" in body


def test_deltas_and_mappings() -> None:
    encoder = ChoicesEncoder("openai-chat", as_bytes=False, request_id="r")
    deltas = {
        number: MessageDelta("run", 1, "start", {"modelId": "m", "requestId": "r"})
        for number in (0, 3)
    }
    assert encoder.feed(deltas) == []
    texts = {
        number: MessageDelta("run", 2, "text", {"textDelta": f"t{number}", "partIndex": 0})
        for number in (3, 0)
    }
    chunks = cast("list[Any]", encoder.feed(texts))
    found = [(one["choices"][0]["index"], one["choices"][0]["delta"]) for one in chunks]
    assert found == [
        (3, {"role": "assistant", "content": ""}),
        (3, {"content": "t3"}),
        (0, {"role": "assistant", "content": ""}),
        (0, {"content": "t0"}),
    ]
    assert encoder.keep_alive() == []
    assert "error" in encoder.close()[-1]


def test_whole_bodies_hold_every_answer() -> None:
    messages = folded(chat(4), CHAT)
    for target in ("openai-chat", "gemini"):
        answer = deltafold.encode_choices(messages, target)
        found = folded(answer.body, target)
        assert [message.text for message in found.values()] == [
            message.text for message in messages.values()
        ]
        assert answer.status == 200
        assemblers = deltafold.fold_choices(chat(4), CHAT)
        assert (
            folded(deltafold.encode_choices(assemblers, target).body, target).keys() == found.keys()
        )
    with pytest.raises(MisuseError, match="at least one"):
        deltafold.encode_choices({}, "gemini")
    with pytest.raises(MisuseError, match="ollama has one answer"):
        deltafold.encode_choices(messages, "ollama")


def test_misuse_is_named() -> None:
    with pytest.raises(MisuseError, match=r"anthropic-messages has one answer.*gemini, "):
        ChoicesEncoder("anthropic-messages")
    with pytest.raises(TypeError, match='no option "color"'):
        ChoicesEncoder("gemini", **cast("Any", {"color": 1}))
    encoder = ChoicesEncoder("gemini", limits=Limits(choices=1))
    with pytest.raises(TypeError, match="not str"):
        encoder.feed(cast("Any", {0: "text"}))
    decoder = Decoder(CHAT, choice="all")
    with pytest.raises(MisuseError, match="more answers"):
        encoder.feed(decoder.feed(said(0, "a") + said(1, "b")))
    encoder.close()
    assert encoder.close() == b""
    batches: dict[int, DeltaBatch] = decoder.feed(chunk("") + said(0, "c"))
    with pytest.raises(MisuseError, match="after close"):
        encoder.feed(batches)
    assert repr(encoder) == "<ChoicesEncoder to gemini>"
    assert (encoder.target, encoder.notes) == ("gemini", [])
