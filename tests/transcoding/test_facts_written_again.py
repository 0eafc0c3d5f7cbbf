"""Facts of an answer are written again where its own protocol has members for them."""

import json
from typing import Any, Final, TypeAlias

import pytest

import deltafold
from any_name import AnyName
from deltafold import Message

Wire: TypeAlias = dict[str, Any]

FACT: Final = {"k": ["v", 1]}
DONE: Final = b"data: [DONE]\n\n"
MODERATION: Final[Wire] = {"output": {"type": "moderation_results", "results": []}}
ONE_MODERATION: Final[Wire] = {"output": {"type": "moderation_result", "flagged": False}}
TOOLS: Final = [{"index": 0, "type": "search", "arguments": "{}", "output": "x"}]


def named(*events: Wire) -> bytes:
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def chat(**facts: object) -> bytes:
    delta = {"role": "assistant", "content": "Hi"}
    said = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]}
    end: Wire = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **facts}
    return f"data: {json.dumps(said)}\n\ndata: {json.dumps(end)}\n\n".encode() + DONE


def messages(**facts: object) -> bytes:
    message: Wire = {"id": "m", "role": "assistant", "model": "c", "content": []}
    return named(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "H"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **facts},
        {"type": "message_stop"},
    )


def responses(**facts: object) -> bytes:
    content: Wire = {"type": "output_text", "text": "Hi", "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [content]}
    response = {"id": "r", "status": "completed", "output": [item], **facts}
    return named({"type": "response.completed", "response": response})


def gemini(**facts: object) -> bytes:
    candidate = {"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
    ratings = {name: facts.pop(name) for name in ("safetyRatings", "avgLogprobs") if name in facts}
    return f"data: {json.dumps({'candidates': [candidate | ratings], **facts})}\n\n".encode()


def converse(**facts: object) -> bytes:
    message = {"role": "assistant", "content": [{"text": "Hi"}]}
    body = {"output": {"message": message}, "stopReason": "end_turn", "usage": {}, **facts}
    return json.dumps(body).encode()


SOURCES: Final = {
    "openai-chat": chat,
    "anthropic-messages": messages,
    "openai-responses": responses,
    "gemini": gemini,
    "bedrock-converse": converse,
}


def told(message: Message) -> Wire:
    return dict(message.meta.details or {})


@pytest.mark.parametrize(
    ("dialect", "name", "value"),
    [
        ("openai-chat", "service_tier", "flex"),
        ("openai-chat", "system_fingerprint", "fp"),
        ("openai-chat", "moderation", MODERATION),
        ("openai-chat", "x_groq", {"id": "r"}),
        ("openai-chat", "metadata", FACT),
        ("anthropic-messages", "context_management", {"applied_edits": [FACT]}),
        ("anthropic-messages", "diagnostics", FACT),
        ("anthropic-messages", "container", {"id": "c"}),
        ("openai-responses", "service_tier", "flex"),
        ("openai-responses", "moderation", ONE_MODERATION),
        ("openai-responses", "tool_usage", FACT),
        ("openai-responses", "conversation", {"id": "c"}),
        ("gemini", "safetyRatings", [{"category": "C", "probability": "LOW"}]),
        ("gemini", "avgLogprobs", -0.5),
        ("gemini", "createTime", "2026-01-01T00:00:00Z"),
        ("bedrock-converse", "serviceTier", {"type": "flex"}),
        ("bedrock-converse", "performanceConfig", {"latency": "optimized"}),
        ("bedrock-converse", "metrics", {"latencyMs": 7}),
        ("bedrock-converse", "additionalModelResponseFields", FACT),
    ],
)
def test_a_fact_is_written_again(dialect: AnyName, name: str, value: object) -> None:
    source = SOURCES[dialect](**{name: value})
    message = deltafold.fold(source, dialect)
    assert told(message)[name] == value
    streamed = deltafold.fold(deltafold.transcode(source, dialect, dialect), dialect)
    whole = deltafold.fold(deltafold.encode_message(message, dialect).body, dialect)
    assert [told(streamed).get(name), told(whole).get(name)] == [value, value]


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        ("openai-chat", "openai-responses", MODERATION),
        ("openai-responses", "openai-chat", ONE_MODERATION),
    ],
)
def test_a_fact_of_another_form_is_not_written(
    source: AnyName, target: AnyName, value: object
) -> None:
    body = deltafold.transcode(SOURCES[source](moderation=value), source, target)
    assert b"moderation" not in body


def test_what_a_server_ran_is_written_again() -> None:
    delta = {"content": "Hi", "executed_tools": TOOLS}
    said = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]}
    source = f"data: {json.dumps(said)}\n\n".encode() + chat()
    message = deltafold.fold(source, "openai-chat")
    whole = json.loads(deltafold.encode_message(message, "openai-chat").body)
    assert whole["choices"][0]["message"]["executed_tools"] == TOOLS
    streamed = deltafold.transcode(source, "openai-chat", "openai-chat")
    assert deltafold.fold(streamed, "openai-chat").parts[-1] == message.parts[-1]
