"""Finish words of one protocol in the body of another, as gateways copy them.

Source: docs/protocols/decoding.md#g11.
"""

import json
from typing import Final

import pytest

from deltafold import ErrorCode, FinishReason
from protocol_bodies import DONE, event, finish, message_end, message_start, said, text_block
from splits import everywhere, warning_codes

PROTOCOLS: Final = ("openai-chat", "anthropic-messages", "gemini", "ollama")
WORDS_OF_OTHERS: Final = [
    ("MAX_TOKENS", FinishReason.LENGTH),
    ("max_tokens", FinishReason.LENGTH),
    ("end_turn", FinishReason.STOP),
    ("eos_token", FinishReason.STOP),
    ("COMPLETE", FinishReason.STOP),
    ("tool_use", FinishReason.TOOL_CALLS),
    ("SAFETY", FinishReason.CONTENT_FILTER),
    ("pause_turn", FinishReason.PAUSE),
]


def ended_by(protocol: str, word: str) -> bytes:
    if protocol == "anthropic-messages":
        return message_start() + text_block(0, "Tide") + message_end(word)
    if protocol == "gemini":
        candidate = {"content": {"parts": [{"text": "Tide"}]}, "finishReason": word}
        return event({"candidates": [candidate]})
    if protocol == "ollama":
        line = {"message": {"content": "Tide"}, "done": True, "done_reason": word}
        return json.dumps(line).encode()
    return said("Tide") + finish(word) + DONE


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("word", "reason"), WORDS_OF_OTHERS)
def test_a_finish_word_of_another_protocol_is_read(
    protocol: str, word: str, reason: FinishReason
) -> None:
    _, message = everywhere(protocol, ended_by(protocol, word))
    assert message.meta.finish_reason == reason
    assert message.meta.raw_finish_reason == word
    assert not warning_codes(message)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("overloaded_error", ErrorCode.OVERLOADED),
        ("abort", ErrorCode.SERVER_ERROR),
        ("rate_limit_exceeded", ErrorCode.RATE_LIMITED),
    ],
)
def test_a_finish_word_that_names_an_error_is_that_error(
    protocol: str, word: str, code: ErrorCode
) -> None:
    deltas, message = everywhere(protocol, ended_by(protocol, word))
    error = deltas[-1]
    assert error.error_code == code
    assert error.payload["retryable"]
    assert error.payload["providerCode"] == word
    assert message.text == "Tide"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_unknown_finish_word_is_a_warning(protocol: str) -> None:
    _, message = everywhere(protocol, ended_by(protocol, "bored"))
    assert message.meta.finish_reason == FinishReason.OTHER
    assert warning_codes(message) == ["unknown_finish_reason"]
