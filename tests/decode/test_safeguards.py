"""Verdicts of OpenRouter on the tool calls of a Chat answer: `safeguard_results`.

In: answers with verdicts, streamed and whole.  Out: warnings, and the calls that run.
Source: `ChatStreamChunk.safeguard_results` of openrouter 1.3.84 (read 2026-11).
"""

import json
from typing import Any, Final

import pytest

import deltafold
from corpus import FIXTURES
from protocol_bodies import CHAT

WIRE: Final = FIXTURES / "openai-chat" / "safeguards" / "wire.sse"
FLAGGED: Final = {
    "code": "flagged_call",
    "message": 'dangerous_tool_use flagged the tool call "toolu_1": prompt injection',
}


def whole(results: object) -> bytes:
    """Write a whole answer with one call."""
    function = {"name": "send_mail", "arguments": "{}"}
    call = {"id": "toolu_1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    head = {"id": "gen-1", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**head, "choices": [choice], "safeguard_results": results}).encode()


def verdict(**members: object) -> list[Any]:
    return [
        {
            "type": "dangerous_tool_use",
            "status": {"type": "available", "tool_uses": {"toolu_1": members}},
        }
    ]


def test_a_flagged_call_of_a_stream_has_a_warning_and_stays_runnable() -> None:
    message = deltafold.fold(WIRE.read_bytes(), CHAT)
    assert message.meta.warnings == [FLAGGED]
    assert [call.tool_call_id for call in message.runnable_tool_calls] == ["toolu_1", "toolu_2"]


def test_a_flagged_call_of_a_whole_answer_has_a_warning_and_stays_runnable() -> None:
    results = verdict(type="evaluated", outcome="flagged", explanation="prompt injection")
    message = deltafold.fold(whole(results), CHAT)
    assert message.meta.warnings == [FLAGGED]
    assert [call.tool_call_id for call in message.runnable_tool_calls] == ["toolu_1"]


def test_a_verdict_behind_the_finish_reason_counts() -> None:
    results = verdict(type="evaluated", outcome="flagged", explanation="prompt injection")
    last = json.dumps({"id": "gen-1", "choices": [], "safeguard_results": results})
    ended, done = WIRE.read_bytes().rsplit(b"data: [DONE]", 1)
    body = ended.replace(b'"safeguard_results"', b'"other"') + f"data: {last}\n\n".encode()
    message = deltafold.fold(body + b"data: [DONE]" + done, CHAT)
    assert message.meta.warnings == [FLAGGED]


def test_a_verdict_without_an_explanation_is_named() -> None:
    message = deltafold.fold(whole(verdict(outcome="flagged")), CHAT)
    assert message.meta.warnings == [
        {**FLAGGED, "message": 'dangerous_tool_use flagged the tool call "toolu_1"'}
    ]


@pytest.mark.parametrize(
    "results",
    [
        None,
        [],
        {},
        "flagged",
        [None, 1, "x", []],
        [{"type": 1, "status": "available"}],
        [{"type": "dangerous_tool_use", "status": {"type": "unsupported"}}],
        [{"type": "dangerous_tool_use", "status": {"tool_uses": ["toolu_1"]}}],
        [{"type": "dangerous_tool_use", "status": {"tool_uses": {"toolu_1": "flagged"}}}],
        verdict(type="evaluated", outcome="not_flagged"),
        verdict(type="unavailable"),
        verdict(outcome=1),
    ],
    ids=range(12),
)
def test_any_other_verdict_says_nothing(results: object) -> None:
    message = deltafold.fold(whole(results), CHAT)
    assert message.meta.warnings == []
    assert len(message.runnable_tool_calls) == 1
