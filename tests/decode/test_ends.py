"""Ends of a stream without a finish reason: an end mark alone is a cut, other signs say whole.

Source: docs/protocols/decoding.md#g12.
"""

import json
from typing import Any, Final

import pytest

import deltafold
from any_name import AnyName
from deltafold import ErrorCode, FinishReason, ModelError, load_model
from deltafold.gateway import ModelTable
from deltafold.testing import Recording, ReplayTransport
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    Wire,
    anthropic,
    call_chunk,
    chunk,
    event,
    message_delta,
    message_start,
    said,
    text_block,
)
from speakers import typed
from splits import everywhere, warning_codes

GEMINI: Final = "gemini"
OLLAMA: Final = "ollama"
COHERE: Final = "cohere-chat"
RESPONSES: Final = "openai-responses"
COUNTS: Final[Wire] = {"prompt_tokens": 9, "completion_tokens": 3}
CALL: Final = call_chunk('{"n":1}', name="pay", index=0, id="a")
STOP: Final = anthropic("message_stop")
AUDIO: Final = {"id": "a", "data": "AAAA", "transcript": "Tide"}


def line(**members: object) -> bytes:
    return json.dumps({"model": "m", **members}).encode() + b"\n"


def usage(counts: Wire, **delta: object) -> bytes:
    return chunk(delta, usage=counts)


def gemini_text(text: str) -> bytes:
    return event({"candidates": [{"content": {"parts": [{"text": text}]}}]})


TEXT_OF_COHERE: Final = typed("message-start", id="r") + typed(
    "content-delta", index=0, delta={"message": {"content": {"text": "Tide"}}}
)
CUTS: Final[dict[str, tuple[str, bytes]]] = {
    "text": (CHAT, said("Tide") + DONE),
    "call": (CHAT, CALL + DONE),
    "usage in each chunk": (CHAT, usage(COUNTS, content="Tide") + DONE),
    "usage before the content": (CHAT, said("T") + usage(COUNTS) + said("ide") + DONE),
    "usage before a call": (CHAT, said("T") + usage(COUNTS) + CALL + DONE),
    "usage without counts": (CHAT, said("Tide") + usage({}) + DONE),
    "Mistral": ("mistral", said("Tide") + DONE),
    "Messages": (ANTHROPIC, message_start() + text_block(0, "Tide") + STOP),
    "Messages without a stop reason": (
        ANTHROPIC,
        message_start() + text_block(0, "Tide") + message_delta(None, {}) + STOP,
    ),
    "Ollama": (OLLAMA, line(message={"content": "Tide"}, done=False) + line(done=True)),
    "Ollama with an empty reason": (
        OLLAMA,
        line(message={"content": "Tide"}, done=False) + line(done=True, done_reason=""),
    ),
    "Gemini": (GEMINI, gemini_text("Tide") + DONE),
    "Gemini's array": (GEMINI, b"[" + gemini_text("Tide")[6:].strip() + b"]"),
    "Cohere": (COHERE, TEXT_OF_COHERE + typed("message-end", delta={})),
    "Responses": (
        RESPONSES,
        typed("response.output_text.delta", output_index=0, content_index=0, delta="Tide") + DONE,
    ),
}


@pytest.mark.parametrize(("dialect", "body"), CUTS.values(), ids=CUTS)
def test_an_end_mark_behind_content_alone_is_a_cut(dialect: AnyName, body: bytes) -> None:
    deltas, message = everywhere(dialect, body)
    assert deltas[-1].error_code == ErrorCode.CONNECTION_LOST
    assert message.parts
    assert not message.runnable_tool_calls
    with pytest.raises(ModelError) as caught:
        deltafold.fold(body, dialect)
    assert caught.value.retryable


def test_the_error_names_the_setting() -> None:
    with pytest.raises(ModelError, match="ends_without_reason=True") as caught:
        deltafold.fold(said("Tide") + DONE, CHAT)
    assert caught.value.partial_message is not None
    assert caught.value.partial_message.text == "Tide"


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (CHAT, DONE),
        (CHAT, chunk({"role": "assistant", "content": ""}) + DONE),
        (ANTHROPIC, STOP),
        (ANTHROPIC, message_start() + STOP),
        (GEMINI, DONE),
        (OLLAMA, line(done=True)),
    ],
)
def test_an_end_mark_alone_is_a_protocol_error_that_may_be_repeated(
    dialect: AnyName, body: bytes
) -> None:
    with pytest.raises(ModelError) as caught:
        deltafold.fold(body, dialect)
    assert caught.value.code == ErrorCode.PROTOCOL_ERROR
    assert caught.value.retryable


WHOLE: Final[dict[str, tuple[str, bytes]]] = {
    "usage": (CHAT, said("Tide") + usage(COUNTS)),
    "usage without choices": (CHAT, said("Tide") + event({"choices": [], "usage": COUNTS})),
    "usage in each chunk and at the end": (CHAT, usage(COUNTS, content="Tide") + usage(COUNTS)),
    "end of the audio": (CHAT, chunk({"audio": AUDIO}) + chunk({"audio": {"expires_at": 1}})),
    "Messages": (
        ANTHROPIC,
        message_start() + text_block(0, "Tide") + message_delta(None, {"output_tokens": 3}),
    ),
    "Ollama": (
        OLLAMA,
        line(message={"content": "Tide"}, done=False) + line(done=True, eval_count=3),
    ),
    "Cohere": (
        COHERE,
        TEXT_OF_COHERE + typed("message-end", delta={"usage": {"tokens": {"output_tokens": 3}}}),
    ),
}


@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize(("dialect", "body"), WHOLE.values(), ids=WHOLE)
def test_another_sign_says_that_the_answer_is_whole(
    dialect: str, body: bytes, *, mark: bool
) -> None:
    ends = {CHAT: DONE, ANTHROPIC: STOP}
    _, message = everywhere(dialect, body + ends.get(dialect, b"") * mark)
    assert message.text == "Tide"
    assert message.meta.finish_reason == FinishReason.OTHER
    assert not warning_codes(message)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (
            CHAT,
            {"object": "chat.completion", "choices": [{"message": {"content": "Tide"}}]},
        ),
        (ANTHROPIC, {"type": "message", "id": "m", "content": [{"type": "text", "text": "Tide"}]}),
        (OLLAMA, {"message": {"content": "Tide"}, "done": True}),
        ("bedrock-converse", {"output": {"message": {"content": [{"text": "Tide"}]}}}),
        (COHERE, {"id": "r", "message": {"content": [{"type": "text", "text": "Tide"}]}}),
    ],
)
def test_a_whole_body_without_a_finish_reason_is_an_answer(dialect: AnyName, body: Wire) -> None:
    message = deltafold.fold(json.dumps(body).encode(), dialect)
    assert message.text == "Tide"


def test_an_empty_answer_that_was_counted_is_whole() -> None:
    message = deltafold.fold(usage(COUNTS, role="assistant", content="") + DONE, CHAT)
    assert not message.parts
    with pytest.raises(ModelError, match="without any sign"):
        deltafold.fold(usage(COUNTS, role="assistant", content=""), CHAT)


def test_a_finish_reason_in_camel_case_is_read() -> None:
    choice = {"index": 0, "delta": {"content": "Tide"}, "finishReason": "length"}
    _, message = everywhere(CHAT, event({"choices": [choice]}) + DONE)
    assert message.meta.finish_reason == FinishReason.LENGTH


def flat(**members: object) -> bytes:
    return chunk({"type": "tool_use", **members})


def test_the_calls_of_snowflake_are_read_and_their_cut_is_no_end() -> None:
    body = flat(tool_use_id="t1", name="tide") + flat(input='{"port":') + flat(input='"Brest"}')
    _, message = everywhere(CHAT, body)
    assert not message.runnable_tool_calls
    last = chunk({"type": "tool_use", "input": '"Brest"}'}, usage=COUNTS)
    ended = body.removesuffix(flat(input='"Brest"}')) + last
    with pytest.raises(ModelError) as caught:
        deltafold.fold(ended, CHAT)
    assert caught.value.code == ErrorCode.CONNECTION_LOST
    (call,) = deltafold.fold(ended, CHAT, ends_without_reason=True).runnable_tool_calls
    assert (call.tool_name, call.arguments) == ("tide", {"port": "Brest"})


def test_a_call_behind_another_sign_runs() -> None:
    _, message = everywhere(CHAT, CALL + usage(COUNTS) + DONE)
    assert [call.tool_name for call in message.runnable_tool_calls] == ["pay"]


# Services without any sign.


@pytest.mark.parametrize("mark", [DONE, b""])
def test_a_service_that_sends_no_finish_reason_is_named_by_a_setting(mark: bytes) -> None:
    message = deltafold.fold(CALL + mark, CHAT, ends_without_reason=True)
    assert [call.tool_name for call in message.runnable_tool_calls] == ["pay"]
    assert message.meta.finish_reason == FinishReason.TOOL_CALLS
    assert warning_codes(message) == ["no_finish_reason"]


def test_the_setting_hides_no_failure() -> None:
    decoder = deltafold.Decoder(CHAT, ends_without_reason=True)
    deltas = [*decoder.feed(CALL), *decoder.fail(ErrorCode.CONNECTION_LOST, "reset")]
    assert deltas[-1].error_code == ErrorCode.CONNECTION_LOST
    with pytest.raises(ModelError):
        deltafold.fold(b": comment\n\n", CHAT, ends_without_reason=True)


def recorded() -> ReplayTransport:
    return ReplayTransport([Recording(((0.0, CALL + DONE),))])


@pytest.mark.parametrize("given", [True, False])
def test_a_model_takes_the_setting(given: bool) -> None:
    settings: dict[str, Any] = {"ends_without_reason": True} if given else {}
    model = load_model("vllm/glm", client=recorded(), api_key="k", **settings)
    with model.stream_sync("?") as stream:
        list(stream)
    assert (stream.error is None) is given


def test_a_file_of_the_gateway_takes_the_setting() -> None:
    entry = {"model": "vllm/glm", "client": recorded(), "ends_without_reason": True}
    with ModelTable({"glm": entry}).find("glm").model.stream_sync("?") as stream:
        assert stream.final_message().runnable_tool_calls


def test_an_error_of_responses_is_held_until_its_terminal() -> None:
    # docs/protocols/decoding.md#g17
    failed: Wire = {"id": "r", "model": "m", "status": "failed", "error": {"message": "m"}}
    events = (
        typed("error", code="server_error", message="It failed."),
        typed("response.failed", response=failed),
    )
    decoder = deltafold.Decoder(RESPONSES)
    states = [(decoder.holds_error, decoder.finished)]
    for one in events:
        decoder.feed(one)
        states.append((decoder.holds_error, decoder.finished))
    assert states == [(False, False), (True, False), (False, True)]
