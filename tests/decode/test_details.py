"""Facts under the provider's names: `details` of the terminal and of the message."""

from typing import Final

import pytest

import deltafold
import event_stream as aws
from any_name import AnyName
from deltafold import Decoder, Message, MessageDelta
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    Wire,
    anthropic,
    chunk,
    event,
    finish,
    message_start,
)
from speakers import RESPONSES, typed

STOPPED: Final[Wire] = {"stop_reason": "stop_sequence", "stop_sequence": "\n\n"}
BODIES: Final[dict[str, tuple[AnyName, bytes, dict[str, object]]]] = {
    "anthropic, streamed": (
        ANTHROPIC,
        message_start(stop_sequence=None)
        + anthropic("message_delta", delta=STOPPED)
        + anthropic("message_stop"),
        {"stop_sequence": "\n\n"},
    ),
    "anthropic, whole": (
        ANTHROPIC,
        event({"type": "message", "id": "m", "model": "m", "content": None, **STOPPED})[6:],
        {"stop_sequence": "\n\n"},
    ),
    "anthropic, refused": (
        ANTHROPIC,
        message_start(container={"id": "c1"})
        + anthropic(
            "message_delta", delta={"stop_reason": "refusal", "stop_details": {"category": "x"}}
        )
        + anthropic("message_stop"),
        {"container": {"id": "c1"}, "stop_details": {"category": "x"}},
    ),
    "chat, streamed": (
        CHAT,
        chunk({"content": "a"}, system_fingerprint=None)
        + chunk({"content": "b"}, system_fingerprint="fp_1", service_tier="flex")
        + chunk({"content": "c"}, system_fingerprint="fp_2", service_tier="flex") * 20
        + finish("stop")
        + DONE,
        {"system_fingerprint": "fp_1", "service_tier": "flex"},
    ),
    "chat, whole": (
        CHAT,
        event(
            {
                "object": "chat.completion",
                "system_fingerprint": 'fp "1"',
                "choices": [{"message": {"content": "a"}, "finish_reason": "stop"}],
            }
        )[6:],
        {"system_fingerprint": 'fp "1"'},
    ),
    "responses": (
        RESPONSES,
        typed("response.created", response={"id": "r", "model": "m", "service_tier": "auto"})
        + typed("response.completed", response={"id": "r", "service_tier": "priority"}),
        {"service_tier": "priority"},
    ),
    "converse": (
        "bedrock-converse",
        aws.event(
            "messageStop",
            {"stopReason": "end_turn", "additionalModelResponseFields": {"stop_sequence": "x"}},
        )
        + aws.event("metadata", {"usage": {"inputTokens": 1}, "trace": {"guardrail": {}}}),
        {"additionalModelResponseFields": {"stop_sequence": "x"}, "trace": {"guardrail": {}}},
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_details_are_on_the_terminal_and_on_the_message(name: str) -> None:
    dialect, body, details = BODIES[name]
    decoder = Decoder(dialect)
    last = [*decoder.feed(body), *decoder.close()][-1]
    assert last.details == details
    assert last.payload["details"] == details
    assert MessageDelta.from_json(last.to_json()) == last
    message = deltafold.fold(body, dialect)
    assert message.meta.details == details
    assert Message.from_json(message.to_json()).meta.details == details


def test_a_message_without_details_has_none() -> None:
    message = deltafold.fold(chunk({"content": "a"}) + finish("stop") + DONE, CHAT)
    assert message.meta.details is None
    assert "details" not in message.meta.model_dump()
