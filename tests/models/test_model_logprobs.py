"""Log probabilities of a Model's answers: kept exactly if the request asks for them."""

import json
from typing import Any

import pytest

import deltafold
from any_name import AnyName
from deltafold import Encoder, Message, MessageDelta, Model
from deltafold.models.adapters import adapter_of
from deltafold.testing import Recording, ReplayServer

LOGPROBS: dict[str, Any] = {
    "tokens": ["Hi", "!"],
    "logprobs": [-0.25, -1.5],
    "top": [[{"token": "Hi", "logprob": -0.25}, {"token": "Yo", "logprob": -2.0}], []],
}
INCLUDED = {"include": ["message.output_text.logprobs"]}
ASKING: list[tuple[str, dict[str, Any]]] = [
    ("openai-chat", {"logprobs": True}),
    ("openai-chat", {"extra_body": {"logprobs": True}}),
    ("openai-chat", {"extra_body": {"return_token_ids": True}}),
    ("openai-responses", INCLUDED),
    ("openai-responses", {"top_logprobs": 2}),
    ("gemini", {"logprobs": True, "top_logprobs": 2}),
    ("ollama", {"logprobs": True}),
    ("mistral", {"logprobs": True}),
]
NOT_ASKING: list[tuple[str, dict[str, Any]]] = [
    ("openai-chat", {"logprobs": False}),
    ("openai-responses", {"include": ["reasoning.encrypted_content"]}),
    ("gemini", {"extra_body": {"generationConfig": {"topK": 2}}}),
    ("ollama", {}),
]


def recorded(dialect: AnyName) -> Recording:
    """Write an answer with log probabilities in a dialect."""
    steps: list[tuple[str, dict[str, Any]]] = [
        ("start", {"modelId": "m", "requestId": "answer_1"}),
        ("text", {"textDelta": "Hi!", "partIndex": 0, "logprobs": LOGPROBS}),
        ("part_end", {"partIndex": 0}),
        ("done", {"finishReason": "stop"}),
    ]
    encoder = Encoder("openai-chat" if dialect == "mistral" else dialect)
    written = [
        encoder.feed(MessageDelta("run", seq, kind, payload))
        for seq, (kind, payload) in enumerate(steps, 1)
    ]
    content_type = "application/x-ndjson" if dialect == "ollama" else "text/event-stream"
    return Recording.of(b"".join(written), content_type=content_type)


def model_of(dialect: str, server: ReplayServer, settings: dict[str, Any]) -> Model[Any]:
    make = adapter_of(dialect)
    assert make is not None
    return make({"model_id": "m", **settings}, base_url=server.url, api_key="key")


def asked(dialect: str, settings: dict[str, Any]) -> Message:
    with (
        ReplayServer({"*": recorded(dialect)}) as server,
        model_of(dialect, server, settings) as model,
    ):
        message = model.send_message_sync("Hello")
    assert message.text == "Hi!"
    return message


@pytest.mark.parametrize(("dialect", "settings"), ASKING)
def test_an_answer_keeps_the_logprobs_that_its_request_asks_for(
    dialect: str, settings: dict[str, Any]
) -> None:
    logprobs = asked(dialect, settings).meta.logprobs
    assert logprobs is not None
    assert logprobs.tokens == LOGPROBS["tokens"]
    assert logprobs.logprobs.tolist() == LOGPROBS["logprobs"]
    assert logprobs.top_tokens == ["Hi", "Yo"]


@pytest.mark.parametrize(("dialect", "settings"), NOT_ASKING)
def test_an_answer_leaves_out_logprobs_that_its_request_does_not_ask_for(
    dialect: str, settings: dict[str, Any]
) -> None:
    assert asked(dialect, settings).meta.logprobs is None


def test_a_call_and_a_body_of_the_caller_ask_for_logprobs() -> None:
    body: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "logprobs": True,
    }
    with (
        ReplayServer({"*": recorded("openai-chat")}) as server,
        model_of("openai-chat", server, {}) as model,
    ):
        of_call = model.stream_sync("Hello", logprobs=True).final_message()
        of_body = model.stream_request_sync(body).final_message()
    assert of_call.meta.logprobs == of_body.meta.logprobs
    assert of_call.meta.logprobs is not None


def test_a_whole_response_keeps_its_logprobs() -> None:
    message = deltafold.fold(recorded("openai-chat").body, "openai-chat", logprobs=True)
    whole = deltafold.encode_message(message, "openai-chat").body
    with (
        ReplayServer({"*": Recording.of(whole, content_type="application/json")}) as server,
        model_of("openai-chat", server, {"logprobs": True}) as model,
    ):
        received = model.send_message_sync("Hello", stream=False)
    assert received.meta.logprobs == message.meta.logprobs
    assert received.meta.logprobs is not None


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini", "ollama"])
def test_a_message_is_written_with_its_logprobs(target: AnyName) -> None:
    message = deltafold.fold(recorded("openai-chat").body, "openai-chat", logprobs=True)
    encoded = deltafold.encode_message(message, target)
    read = deltafold.fold(encoded.body, target, logprobs=True)
    assert read.meta.logprobs == message.meta.logprobs
    assert encoded.notes == []


def test_the_deltas_of_a_message_fold_to_its_logprobs() -> None:
    logprobs = deltafold.Logprobs.from_dict(LOGPROBS)
    call = deltafold.ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text="{}")
    thinking = deltafold.ThinkingPart(text="Hm")
    for parts in ([thinking, deltafold.TextPart(text="Hi")], [thinking, call], [call], []):
        message = Message.assistant(*parts)
        message.meta.logprobs = logprobs
        assembler = deltafold.MessageAssembler()
        for delta in deltafold.message_deltas(message):
            assembler.consume(delta)
        folded = assembler.build_final_message()
        assert folded.meta.logprobs == logprobs
        assert folded.text == message.text


def test_the_stream_of_responses_keeps_the_logprobs_after_the_last_text() -> None:
    chunks: list[dict[str, Any]] = [
        {"delta": {"content": text}, "logprobs": {"content": [{"token": text, "logprob": -1.0}]}}
        for text in ("a", "b", "c")
    ]
    chunks.append({"delta": {}, "finish_reason": "stop"})
    body = b"".join(
        b"data: %b\n\n" % json.dumps({"id": "c", "choices": [{"index": 0, **chunk}]}).encode()
        for chunk in chunks
    )
    transcoder = deltafold.Transcoder(
        deltafold.Decoder("openai-chat", logprobs=True), "openai-responses"
    )
    written = transcoder.feed(body + b"data: [DONE]\n\n") + transcoder.close()
    logprobs = deltafold.fold(written, "openai-responses", logprobs=True).meta.logprobs
    assert logprobs is not None
    assert logprobs.tokens == ["a", "b", "c"]
    assert [note["code"] for note in transcoder.notes] == []
