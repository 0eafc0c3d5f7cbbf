"""Members that no reader knows: facts of the answer, or a warning of each name.

The fast path must not see them: a template stands for a frame only while the values are the same.
"""

import json
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest

import deltafold
from any_name import AnyName
from deltafold import Message, ModelError

Wire: TypeAlias = dict[str, Any]

FACT: Final = {"k": ["v", 1]}


def sse(*events: Wire) -> bytes:
    return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in events)


def named(*events: Wire) -> bytes:
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def chat(*chunks: Wire, finish: str | None = "stop") -> bytes:
    end: Wire = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    return sse({"id": "c", "model": "m", "choices": []}, *chunks, end) + b"data: [DONE]\n\n"


def said(text: str, **members: Any) -> Wire:  # noqa: ANN401 - members of any type
    return {"choices": [{"index": 0, "delta": {"content": text}}], **members}


def facts(message: Message) -> Wire:
    return dict(message.meta.details or {})


def unread(message: Message) -> list[str]:
    found = [str(one["message"]) for one in message.meta.warnings if one["code"] == "unread_member"]
    return [message.split('"')[1] for message in found]


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
@pytest.mark.parametrize("values", [[1, 2, 1], [1, 1, 2, 1, 1], [None, 3], [{"a": 1}, {"a": 2}]])
def test_the_last_value_counts_whatever_a_template_stands_for(
    values: list[object], size: int
) -> None:
    body = chat(*(said("w", tomorrow=value) for value in values))
    fold = deltafold.Fold("openai-chat")
    for at in range(0, len(body), size):
        fold.feed(body[at : at + size])
    fold.close()
    message = fold.assembler.build_final_message()
    assert message.text == "w" * len(values)
    assert facts(message) == {"tomorrow": values[-1]}


def test_a_template_of_another_stream_does_not_hide_a_fact() -> None:
    for value in ("a", "b", "c", "d"):
        message = deltafold.fold(chat(*[said("w", tomorrow=value)] * 4), "openai-chat")
        assert facts(message) == {"tomorrow": value}


def test_answers_have_their_own_facts() -> None:
    choices = [{"index": at, "delta": {"content": "w"}, "tomorrow": at} for at in range(2)]
    ends: list[Wire] = [{"index": at, "delta": {}, "finish_reason": "stop"} for at in range(2)]
    body = sse({"id": "c", "model": "m", "choices": choices, "of_all": 1}, {"choices": ends})
    answers = deltafold.fold_choices(body, "openai-chat")
    assert [facts(each.build_final_message()) for each in answers.values()] == [
        {"tomorrow": 0, "of_all": 1},
        {"tomorrow": 1, "of_all": 1},
    ]


def test_there_are_at_most_64_facts_and_the_others_are_named() -> None:
    message = deltafold.fold(
        chat(said("w", **{f"n{at}": at + 1 for at in range(70)})), "openai-chat"
    )
    assert len(facts(message)) == 64
    assert unread(message) == [f"n{at}" for at in range(64, 70)]


def test_a_fact_that_repeats_takes_its_room_once() -> None:
    large = ["x" * 10_000, "y" * 10_000, "z" * 10_000]
    message = deltafold.fold(chat(*(said("w", tomorrow=each) for each in large)), "openai-chat")
    assert facts(message) == {"tomorrow": large[-1]}
    assert unread(message) == []


def test_a_value_without_room_replaces_the_earlier_one_by_its_name() -> None:
    values = ["x", "y" * 20_000]
    message = deltafold.fold(chat(*(said("w", tomorrow=each) for each in values)), "openai-chat")
    assert facts(message) == {}
    assert unread(message) == ["tomorrow"]


@pytest.mark.parametrize("size", [1, 1_000_000])
def test_the_last_feedback_on_a_prompt_counts(size: int) -> None:
    rows = [{"category": "C", "probability": each} for each in ("LOW", "HIGH", "LOW")]
    candidate: Wire = {"content": {"parts": [{"text": "w"}]}}
    said_before = [
        {"candidates": [candidate], "promptFeedback": {"safetyRatings": [one]}} for one in rows
    ]
    end: Wire = {"candidates": [{**candidate, "finishReason": "STOP"}]}
    body = sse(*said_before, end)
    fold = deltafold.Fold("gemini")
    for at in range(0, len(body), size):
        fold.feed(body[at : at + size])
    fold.close()
    assert facts(fold.message) == {"promptFeedback": {"safetyRatings": [rows[-1]]}}
    assert fold.message.text == "wwww"


def test_a_member_of_a_stray_delta_is_named_once() -> None:
    begun: Wire = {"event_type": "step.start", "index": 0, "step": {"type": "thought"}}
    delta: Wire = {"type": "text", "text": "w", "tomorrow": 1, "annotations": [{"type": "a"}]}
    stray: Wire = {"event_type": "step.delta", "index": 0, "delta": delta}
    end: Wire = {"id": "i", "model": "m", "status": "completed"}
    body = sse(begun, stray, {"event_type": "interaction.completed", "interaction": end})
    warnings = deltafold.fold(body, "gemini-interactions").meta.warnings
    named = [one["message"] for one in warnings if one["code"] == "unread_member"]
    assert named == ['the member "tomorrow" was not kept']


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_what_says_nothing_is_no_fact(nothing: object) -> None:
    message = deltafold.fold(chat(said("w", tomorrow=nothing)), "openai-chat")
    assert (facts(message), unread(message)) == ({}, [])


@pytest.mark.parametrize("noise", ["obfuscation", "p"])
def test_padding_is_no_fact(noise: str) -> None:
    message = deltafold.fold(
        chat(*(said("w", **{noise: "x" * at}) for at in range(9))), "openai-chat"
    )
    assert (facts(message), unread(message)) == ({}, [])


def call_of_chat(**members: Any) -> bytes:  # noqa: ANN401
    function = {"name": "f", "arguments": "{}"}
    call = {"index": 0, "id": "c", "type": "function", "function": function, **members}
    return chat({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}, finish="tool_calls")


def block_of_messages(**members: Any) -> bytes:  # noqa: ANN401
    block = {"type": "text", "text": "", **members}
    message: Wire = {"id": "m", "role": "assistant", "model": "c", "content": []}
    return named(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "w"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )


def call_of_gemini(**members: Any) -> bytes:  # noqa: ANN401
    part: Wire = {"functionCall": {"name": "f", "args": {}, **members}}
    return sse({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})


def content_of_responses(**members: Any) -> bytes:  # noqa: ANN401
    content = {"type": "output_text", "text": "w", **members}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [content]}
    response = {"id": "r", "status": "completed", "output": [item]}
    return named({"type": "response.completed", "response": response})


def call_of_cohere(**members: Any) -> bytes:  # noqa: ANN401
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, **members}
    message = {"tool_calls": call}
    return named(
        {"type": "message-start", "id": "r", "delta": {"message": {"role": "assistant"}}},
        {"type": "tool-call-start", "index": 0, "delta": {"message": message}},
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    )


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai-chat", call_of_chat),
        ("anthropic-messages", block_of_messages),
        ("gemini", call_of_gemini),
        ("openai-responses", content_of_responses),
        ("cohere-chat", call_of_cohere),
    ],
)
def test_a_member_of_a_known_block_is_named(dialect: AnyName, body: Callable[..., bytes]) -> None:
    assert unread(deltafold.fold(body(), dialect)) == []
    message = deltafold.fold(body(tomorrow=FACT), dialect)
    assert unread(message) == ["tomorrow"]
    assert facts(message) == {}


def test_content_in_pieces_is_named_as_the_last_piece_alone_is_kept() -> None:
    pieces = [{"choices": [{"index": 0, "delta": {"saying": each}}]} for each in ("a", "b")]
    message = deltafold.fold(chat(said("w"), *pieces), "openai-chat")
    assert facts(message) == {"saying": "b"}
    assert unread(message) == ["saying"]


def end_of_gemini(**members: Any) -> bytes:  # noqa: ANN401
    parts = [{"text": "w"}]
    rating = [{"category": "C", "probability": "LOW"}]
    return sse(
        {"candidates": [{"content": {"parts": parts}, "safetyRatings": []}], "responseId": "r"},
        {"candidates": [{"content": {"parts": parts}, "safetyRatings": rating}]},
        {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP", **members}]},
    )


def end_of_ollama(**members: Any) -> bytes:  # noqa: ANN401
    line = {"model": "m", "message": {"content": "w"}, "done": True, "done_reason": "stop"}
    return json.dumps(line | members).encode() + b"\n"


def end_of_cohere(**members: Any) -> bytes:  # noqa: ANN401
    return named(
        {"type": "message-start", "id": "r", "delta": {"message": {"role": "assistant"}}},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", **members}},
    )


def end_of_interactions(**members: Any) -> bytes:  # noqa: ANN401
    interaction = {"id": "i", "model": "m", "status": "completed", **members}
    return sse({"event_type": "interaction.completed", "interaction": interaction})


def whole_converse(**members: Any) -> bytes:  # noqa: ANN401
    message = {"role": "assistant", "content": [{"text": "w"}]}
    return json.dumps(
        {"output": {"message": message}, "stopReason": "end_turn", **members}
    ).encode()


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("gemini", end_of_gemini),
        ("ollama", end_of_ollama),
        ("cohere-chat", end_of_cohere),
        ("gemini-interactions", end_of_interactions),
        ("bedrock-converse", whole_converse),
    ],
)
def test_a_member_of_the_end_is_a_fact(dialect: AnyName, body: Callable[..., bytes]) -> None:
    before = facts(deltafold.fold(body(), dialect))
    assert facts(deltafold.fold(body(tomorrow=FACT), dialect)) == {**before, "tomorrow": FACT}


def test_the_facts_of_a_failed_answer_are_on_its_error() -> None:
    error = {"code": "server_error", "message": "no", "misalignment": {"steer": "s"}}
    response: Wire = {
        "id": "r",
        "status": "failed",
        "error": error,
        "output": [],
        "moderation": FACT,
    }
    body = named({"type": "response.failed", "response": response})
    *_, last = deltafold.Decoder("openai-responses").feed(body)
    assert last.payload["details"] == {"moderation": FACT}
    assert last.details == {"moderation": FACT}
    with pytest.raises(ModelError) as caught:
        deltafold.fold(body, "openai-responses")
    assert caught.value.partial_message is not None
    assert facts(caught.value.partial_message) == {"moderation": FACT}
    assert json.loads(caught.value.body or "") == error


@pytest.mark.parametrize(
    ("dialect", "events"),
    [
        ("openai-chat", [{"error": {"message": "no", "metadata": FACT}}]),
        ("anthropic-messages", [{"type": "error", "error": {"type": "x", "message": "n", "a": 1}}]),
        ("gemini", [{"error": {"code": 500, "message": "no", "details": [FACT]}}]),
    ],
)
def test_the_error_of_an_event_is_kept(dialect: AnyName, events: list[Wire]) -> None:
    with pytest.raises(ModelError) as caught:
        deltafold.fold(named(*events) if "type" in events[0] else sse(*events), dialect)
    assert json.loads(caught.value.body or "") == events[-1]
