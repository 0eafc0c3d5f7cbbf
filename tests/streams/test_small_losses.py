"""Facts of a stream that a message keeps, or tells that it lacks."""

import json
from typing import Any

import deltafold
from deltafold.contract.usage import Usage

DONE = b"data: [DONE]\n\n"


def chat(delta: dict[str, object], finish: str | None = None, **choice: object) -> bytes:
    chosen = {"index": 0, "delta": delta, "finish_reason": finish, **choice}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    return b"data: " + json.dumps({**chunk, "choices": [chosen]}).encode() + b"\n\n"


def codes(message: deltafold.Message) -> list[object]:
    return [warning["code"] for warning in message.meta.warnings]


def test_the_time_of_an_answer_is_written_again() -> None:
    body = chat({"role": "assistant", "content": "Hi"}) + chat({}, "stop") + DONE
    message = deltafold.fold(body, "openai-chat")
    names: dict[Any, str] = {"openai-chat": "created", "openai-responses": "created_at"}
    for dialect, name in names.items():
        written: Any = deltafold.encode_message(message, dialect).json
        assert written[name] == 1700000000


def test_a_time_that_a_server_does_not_know_is_none() -> None:
    body = chat({"content": "Hi"}).replace(b"1700000000", b"0") + chat({}, "stop") + DONE
    message = deltafold.fold(body.replace(b"1700000000", b"0"), "openai-chat")
    assert "created" not in (message.meta.details or {})


FILTERED = {"hate": {"filtered": True, "severity": "high"}}
WARNED = {"hate": {"filtered": False, "severity": "medium"}}
SAFE = {"hate": {"filtered": False, "severity": "safe"}}


def filtered(*results: object) -> object:
    chunks = [chat({"content": "x"}, content_filter_results=one) for one in results]
    body = b"".join(chunks) + chat({}, "stop", content_filter_results={}) + DONE
    details = deltafold.fold(body, "openai-chat").meta.details or {}
    return details.get("content_filter_results")


def test_the_filter_results_that_say_most_are_kept() -> None:
    assert filtered(SAFE, SAFE, SAFE) is None
    assert filtered(SAFE, WARNED, SAFE) == WARNED
    assert filtered(SAFE, WARNED, FILTERED, SAFE) == FILTERED
    end = chat({}, "stop", content_filter_results=SAFE) + DONE
    details = deltafold.fold(chat({"content": "x"}) + end, "openai-chat").meta.details
    assert details is not None
    assert details["content_filter_results"] == SAFE


def test_the_filter_results_of_the_request_are_kept() -> None:
    results = [{"prompt_index": 0, "content_filter_results": FILTERED}]
    first = {"choices": [], "created": 0, "id": "", "model": "", "prompt_filter_results": results}
    body = b"data: " + json.dumps(first).encode() + b"\n\n" + chat({"content": "x"}, "stop") + DONE
    details = deltafold.fold(body, "openai-chat").meta.details
    assert details is not None
    assert details["prompt_filter_results"] == results


def test_an_answer_without_content_is_a_warning() -> None:
    assert codes(deltafold.fold(chat({"content": ""}, "stop") + DONE, "openai-chat")) == [
        "empty_answer"
    ]
    assert not codes(deltafold.fold(chat({"content": "a"}, "stop") + DONE, "openai-chat"))
    refused = deltafold.fold(chat({}, "content_filter") + DONE, "openai-chat")
    assert "empty_answer" not in codes(refused)


def test_log_probabilities_that_nobody_asked_for_are_a_warning_in_every_protocol() -> None:
    token = {"token": "x", "logprob": -0.1, "bytes": [120], "top_logprobs": []}
    line = {"model": "m", "message": {"content": "x"}, "logprobs": [token], "done": False}
    end = {"model": "m", "message": {"content": ""}, "done": True, "done_reason": "stop"}
    ollama = b"".join(json.dumps(one).encode() + b"\n" for one in (line, end))
    none = chat({"content": "x"}, logprobs={"content": [], "refusal": None})
    some = chat({"content": "x"}, logprobs={"content": [token]})
    ending = chat({}, "stop") + DONE
    assert codes(deltafold.fold(ollama, "ollama")) == ["unread_logprobs"]
    assert codes(deltafold.fold(some + ending, "openai-chat")) == ["unread_logprobs"]
    assert not codes(deltafold.fold(none + ending, "openai-chat"))
    assert not codes(deltafold.fold(some + ending, "openai-chat", logprobs=True))
    # Templates of an earlier stream do not hide them.
    for _ in range(9):
        assert codes(deltafold.fold(some + ending, "openai-chat")) == ["unread_logprobs"]


def test_the_record_of_the_provider_is_at_hand() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "queue_time": 0.5}
    last: dict[str, object] = {"id": "c", "choices": [], "usage": usage}
    body = chat({"content": "x"}, "stop") + b"data: " + json.dumps(last).encode() + b"\n\n" + DONE
    message = deltafold.fold(body, "openai-chat")
    assert message.meta.usage is not None
    assert message.meta.usage.raw == usage
    assert Usage().raw is None
