"""Bodies in which no event is recognised: an error names what was seen, and no lost connection.

Source: docs/protocols/decoding.md#g16.
"""

import json
from typing import Final

import pytest

import deltafold
from any_name import AnyName
from deltafold import ErrorCode, ModelError
from protocol_bodies import CHAT, DONE, Wire, event, message_start, said
from splits import everywhere

OTHERS: Final[dict[str, tuple[str, bytes, str]]] = {
    "TGI": (
        CHAT,
        event({"index": 1, "token": {"id": 1, "text": "Tide"}, "generated_text": None}),
        "TGI",
    ),
    "Triton": (CHAT, event({"model_name": "e", "text_output": "Tide"}), "Triton"),
    "SGLang": (CHAT, json.dumps({"text": "Tide", "meta_info": {"id": "1"}}).encode(), "SGLang"),
    "unknown": (CHAT, event({"news": [1]}) * 2, "no protocol that deltafold reads"),
    "unknown, whole": (CHAT, json.dumps({"news": [1]}).encode(), "no protocol"),
    "KoboldCpp": (CHAT, event({"token": "Tide", "finish_reason": None}), "KoboldCpp"),
    "llama.cpp": (CHAT, event({"content": "T", "stop": False, "tokens_predicted": 1}), "llama.cpp"),
    "DashScope": (CHAT, event({"output": {}, "usage": {}, "request_id": "q"}), "DashScope"),
    "Cloudflare": (CHAT, event({"response": "Tide", "p": "ab"}), "Cloudflare"),
    "OCI": (CHAT, event({"message": {"role": "ASSISTANT"}, "pad": "a"}), "OCI"),
    "SAP": (CHAT, event({"request_id": "r", "intermediate_results": {}}), "SAP"),
    "Reka": (CHAT, event({"id": "r", "model": "reka-core", "responses": []}), "Reka"),
    "counts alone": (CHAT, event({"news": 1, "usage": {"prompt_tokens": 9}}) * 2, "no protocol"),
    "unknown, with an end mark": (CHAT, event({"final": {}}) + DONE, "no protocol"),
    "text completions": (
        CHAT,
        event({"object": "text_completion", "choices": [{"index": 0, "text": "Tide"}]}) + DONE,
        "text completions",
    ),
    "a whole text completion": (
        CHAT,
        json.dumps({"choices": [{"text": "Tide", "finish_reason": "stop"}]}).encode(),
        "text completions",
    ),
    "Messages as Chat": (CHAT, message_start(), "anthropic-messages"),
    "Chat as Messages": ("anthropic-messages", said("Tide"), "openai-chat"),
    "Chat as Gemini": ("gemini", said("Tide") + DONE, "openai-chat"),
    "Chat as Cohere": ("cohere-chat", said("Tide"), "openai-chat"),
}


@pytest.mark.parametrize(("dialect", "body", "seen"), OTHERS.values(), ids=OTHERS)
def test_a_body_in_which_nothing_is_recognised_names_what_it_is(
    dialect: AnyName, body: bytes, seen: str
) -> None:
    deltas, _ = everywhere(dialect, body)
    error = deltas[-1]
    assert error.error_code == ErrorCode.PROTOCOL_ERROR
    with pytest.raises(ModelError, match=seen) as caught:
        deltafold.fold(body, dialect)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (CHAT, b": comment\n\n"),
        (CHAT, event({"one event": "of a gateway, before the connection was lost"})),
        (CHAT, said("Tide")[:30]),
        (CHAT, event({"id": "c", "choices": []})),
        ("anthropic-messages", message_start()),
        ("ollama", b'{"model":"m","created_at":"2026","message":{"content":""},"done":false}\n'),
        ("gemini", event({"candidates": [{"content": {"parts": [{"text": ""}]}}]})),
        ("cohere-chat", event({"type": "message-start", "id": "r"})),
        ("openai-responses", event({"type": "response.created", "response": {"id": "r"}})),
    ],
)
def test_a_body_that_was_cut_before_its_content_may_be_asked_for_again(
    dialect: str, body: bytes
) -> None:
    deltas, _ = everywhere(dialect, body)
    assert deltas[-1].error_code == ErrorCode.CONNECTION_LOST
    assert deltas[-1].payload["retryable"]


@pytest.mark.parametrize(
    ("magic", "encoding"), [(b"\x1f\x8b\x08\x00", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd")]
)
@pytest.mark.parametrize("dialect", [CHAT, "ollama", "gemini"])
def test_a_compressed_body_names_its_encoding(dialect: str, magic: bytes, encoding: str) -> None:
    deltas, _ = everywhere(dialect, magic + b"rest")
    assert deltas[-1].error_code == ErrorCode.PROTOCOL_ERROR
    assert f"compressed ({encoding})" in str(deltas[-1].payload["message"])


def test_the_default_name_of_an_event_means_nothing() -> None:
    named = b"event: message\n" + said("Tide")
    assert deltafold.detect(named).dialect == CHAT
    assert deltafold.detect(b'event: message\ndata: {"token": "Tide"}\n\n').dialect is None
    with pytest.raises(ModelError, match="openai-chat"):
        deltafold.fold(named, "anthropic-messages")


ERRORS: Final[dict[str, tuple[Wire, ErrorCode, str]]] = {
    "MiniMax": (
        {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
        ErrorCode.QUOTA_EXCEEDED,
        "insufficient balance",
    ),
    "MiniMax, alone": (
        {"base_resp": {"status_code": 1004, "status_msg": "login fail"}},
        ErrorCode.AUTHENTICATION,
        "login fail",
    ),
    "Baidu": (
        {"error_code": 110, "error_msg": "Access token invalid", "id": "as-1"},
        ErrorCode.SERVER_ERROR,
        "Access token invalid",
    ),
    "Tencent": (
        {"Response": {"Error": {"Code": "AuthFailure.SecretIdNotFound", "Message": "no key"}}},
        ErrorCode.AUTHENTICATION,
        "no key",
    ),
    "iFlytek": (
        {"code": 11200, "message": "AppIdNoAuthError", "sid": "1"},
        ErrorCode.AUTHENTICATION,
        "AppIdNoAuthError",
    ),
    "Z.ai": (
        {"code": 401, "msg": "token expired or incorrect", "success": False},
        ErrorCode.AUTHENTICATION,
        "token expired",
    ),
}


@pytest.mark.parametrize(("body", "code", "message"), ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("streams", [True, False])
def test_an_error_with_status_200_is_read(
    body: Wire, code: ErrorCode, message: str, *, streams: bool
) -> None:
    wire = event(body) if streams else json.dumps(body).encode()
    deltas, _ = everywhere(CHAT, wire)
    assert deltas[-1].error_code == code
    assert message in str(deltas[-1].payload["message"])


@pytest.mark.parametrize(
    "more",
    [
        {"errors": []},
        {"error_msg": None},
        {"code": 0, "message": "ok"},
        {"base_resp": {"status_code": 0, "status_msg": ""}},
    ],
)
def test_a_member_that_says_that_there_was_no_error_is_none(more: Wire) -> None:
    choice = {"message": {"content": "Tide"}, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice], **more}).encode()
    assert deltafold.fold(body, CHAT).text == "Tide"


def test_an_error_event_of_messages_is_read_whatever_its_words() -> None:
    error = {"code": 500, "message": "The model failed", "type": "server_error"}
    body = message_start() + b"event: error\n" + event(error)
    deltas, _ = everywhere("anthropic-messages", body)
    assert deltas[-1].error_code == ErrorCode.SERVER_ERROR
    assert deltas[-1].payload["message"] == "The model failed"


@pytest.mark.parametrize("dialect", [CHAT, "anthropic-messages", "openai-responses", "gemini"])
def test_an_error_whose_text_breaks_its_line_keeps_its_message(dialect: str) -> None:
    body = b'data: {"error": "the parser failed.\nContent: \'x\nError: line 2"}\n\n'
    deltas, _ = everywhere(dialect, body)
    assert deltas[-1].error_code == ErrorCode.SERVER_ERROR
    assert deltas[-1].payload["message"] == "the parser failed."
    lines = b'data: {"error": {"message": "a text\ndata: of two lines"}}\n\n'
    deltas, _ = everywhere(dialect, lines)
    assert deltas[-1].payload["message"] == "a text\nof two lines"
