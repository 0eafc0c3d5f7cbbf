"""Streams of other providers, read by clients of Chat, Gemini, AG-UI and the UI message stream."""

import json

import pytest

from any_name import AnyName
from deltafold import Transcoder, transcode
from transcoded import Event, call, calls, chat, of_type, sse, transcoded, types


def gemini(*parts: Event, finish: str = "STOP") -> bytes:
    content = {"role": "model", "parts": list(parts)}
    candidate = {"content": content, "finishReason": finish, "index": 0}
    return sse({"candidates": [candidate], "modelVersion": "gemini-3", "responseId": "g1"})


def test_a_signed_text_is_not_a_thought() -> None:
    body = gemini({"text": "Hi", "thoughtSignature": "YWJj"})
    chunks = transcoded(body, "gemini", "openai-chat")
    deltas = [one["choices"][0]["delta"] for one in chunks if one["choices"]]
    assert "".join(one.get("content") or "" for one in deltas) == "Hi"
    assert not any("reasoning_content" in one for one in deltas)


@pytest.mark.parametrize(
    ("place", "member"),
    [
        ("extra_content", "extra_content"),
        ("reasoning_details", "reasoning_details"),
        ("thinking_blocks", "thinking_blocks"),
    ],
)
def test_the_place_of_a_signature_is_a_choice(place: str, member: str) -> None:
    body = gemini({"text": "Hm", "thought": True, "thoughtSignature": "YWJj"}, {"text": "Hi"})
    chunks = transcoded(body, "gemini", "openai-chat", signatures=place)
    deltas = [one["choices"][0]["delta"] for one in chunks if one["choices"]]
    assert next(json.dumps(one[member]) for one in deltas if member in one).count("YWJj") == 1
    assert "YWJj" not in transcode(body, "gemini", "openai-chat").decode()


@pytest.mark.parametrize(
    ("reason", "target", "expected"),
    [
        ("NO_IMAGE", "openai-chat", None),
        ("NO_IMAGE", "anthropic-messages", None),
        ("MALFORMED_FUNCTION_CALL", "openai-responses", None),
        ("MAX_TOKENS", "openai-chat", "length"),
        ("MAX_TOKENS", "anthropic-messages", "max_tokens"),
        ("MAX_TOKENS", "openai-responses", "max_output_tokens"),
    ],
)
def test_a_candidate_without_content_keeps_its_reason(
    reason: str, target: AnyName, expected: str | None
) -> None:
    candidate = {"finishReason": reason, "index": 0}
    body = sse({"candidates": [candidate], "modelVersion": "gemini-3", "responseId": "g1"})
    transcoder = Transcoder("gemini", target)
    written = (transcoder.feed(body) + transcoder.close()).decode()
    if expected is None:
        assert transcoder.status == 500
        assert reason in written
    else:
        assert transcoder.status == 200
        assert f'"{expected}"' in written


def test_parts_of_ag_ui_end_before_the_run() -> None:
    body = chat(
        {"content": "Hi"}, calls(call(0, "{}", "a", "f")), {"content": "more"}, finish="tool_calls"
    )
    events = transcoded(body, "openai-chat", "ag-ui")
    assert types(events)[0] == "RUN_STARTED"
    assert types(events)[-1] == "RUN_FINISHED"
    starts = [one["messageId"] for one in of_type(events, "TEXT_MESSAGE_START")]
    assert len(set(starts)) == 2
    for kind in ("TEXT_MESSAGE", "TOOL_CALL"):
        assert len(of_type(events, f"{kind}_START")) == len(of_type(events, f"{kind}_END"))
    assert events[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["a"]}


def test_an_error_of_ag_ui_is_last() -> None:
    events = transcoded(chat({"content": "Hi"}, finish=None), "openai-chat", "ag-ui")
    assert types(events)[-1] == "RUN_ERROR"


def test_parts_of_the_ui_message_stream_have_one_id_each() -> None:
    body = chat(
        {"content": "He"},
        {"content": "y"},
        calls(call(0, '{"a":1}', "a", "f")),
        finish="tool_calls",
    )
    events = transcoded(body, "openai-chat", "ai-sdk")
    assert types(events) == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
        "finish-step",
        "finish",
    ]
    assert len({one["id"] for one in events if str(one["type"]).startswith("text-")}) == 1
    assert events[-1]["finishReason"] == "tool-calls"
    assert events[8]["input"] == {"a": 1}
    assert transcode(body, "openai-chat", "ai-sdk").endswith(b"data: [DONE]\n\n")


def test_a_dropped_connection_is_an_error_part() -> None:
    body = transcode(chat({"content": "Hi"}, finish=None), "openai-chat", "ai-sdk")
    assert body.endswith(b"data: [DONE]\n\n")
    assert b'"type":"error"' in body


def test_a_chat_error_has_no_end_marker() -> None:
    body = chat({"content": "Hi"}, finish=None) + sse({"error": {"message": "boom"}})
    written = transcode(body, "openai-chat", "openai-chat")
    assert b"[DONE]" not in written
    assert b'"message":"boom"' in written.splitlines()[-2]


def test_line_breaks_of_unicode_never_cut_an_event() -> None:
    body = chat({"content": "a\u0085b\u2028c\u2029d"})
    for target in ("openai-chat", "anthropic-messages", "ollama", "ai-sdk"):
        written = transcode(body, "openai-chat", target).decode()
        assert "a\\u0085b\\u2028c\\u2029d" in written
        assert len(written.splitlines()) == written.count("\n")
