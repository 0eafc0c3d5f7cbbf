"""Failures that users of other libraries reported, one test a failure, where it can happen.

Usage, errors, reasoning, cut streams, finish reasons, side channels.

Every body is decoded whole, in one shot, asynchronously, cut in two at every byte and in pieces of
1 to 17 bytes; `everywhere` holds all of them equal.
"""

from typing import cast

import pytest

from deltafold import ErrorCode, FinishReason
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    USAGE,
    Wire,
    anthropic,
    block,
    call_chunk,
    chunk,
    event,
    finish,
    message_delta,
    message_end,
    message_start,
    said,
    text_block,
    tool_block,
)
from splits import calls_of, ends_once, everywhere, kinds, usage_of, warning_codes

# Usage is cumulative, never summed.


def test_usage_of_start_and_delta_is_merged_and_not_added() -> None:
    start = message_start(usage={"input_tokens": 100, "output_tokens": 1})
    end = message_end(usage={"input_tokens": 100, "output_tokens": 9})
    _, message = everywhere(ANTHROPIC, start + text_block(0, "Hi") + end)
    usage = usage_of(message)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (100, 9, 109)


def test_usage_with_only_output_in_the_delta_keeps_the_input_of_the_start() -> None:
    start = message_start(usage={"input_tokens": 7, "cache_read_input_tokens": 3})
    body = start + text_block(0, "Hi") + message_end(usage={"output_tokens": 2})
    _, message = everywhere(ANTHROPIC, body)
    usage = usage_of(message)
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (10, 2, 3)


def test_usage_on_every_chunk_counts_once() -> None:
    records: list[Wire] = [
        {"prompt_tokens": 5, "completion_tokens": n, "total_tokens": 5 + n} for n in (1, 2, 3)
    ]
    body = b"".join(chunk({"content": "x"}, usage=record) for record in records)
    deltas, message = everywhere(CHAT, body + finish("stop") + DONE)
    usage = usage_of(message)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (5, 3, 8)
    assert kinds(deltas).count("usage") == 3


def test_the_same_usage_again_is_no_news() -> None:
    body = said("x") + chunk({}, "stop", usage=USAGE) + chunk(None, usage=USAGE) + DONE
    deltas, _ = everywhere(CHAT, body)
    assert kinds(deltas).count("usage") == 1


def test_unknown_counts_are_none_and_not_zero() -> None:
    body = said("x") + finish("stop") + chunk(None, usage={"completion_tokens": 2}) + DONE
    _, message = everywhere(CHAT, body)
    usage = usage_of(message)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (None, 2, None)
    _, without = everywhere(CHAT, said("x") + finish("stop") + DONE)
    assert without.meta.usage is None


# An error in the stream, under HTTP 200.

ERRORS: list[tuple[str, str, bytes, ErrorCode]] = [
    (
        "top-level error",
        CHAT,
        event({"error": {"message": "no", "type": "server_error"}}),
        ErrorCode.SERVER_ERROR,
    ),
    (
        "event named error",
        CHAT,
        event({"error": {"message": "no", "code": "rate_limit_exceeded"}}, "error"),
        ErrorCode.RATE_LIMITED,
    ),
    (
        "field named error",
        CHAT,
        b'error: {"code":503,"message":"no","type":"unavailable_error"}\n\n',
        ErrorCode.OVERLOADED,
    ),
    ("words alone", CHAT, b"event: error\ndata: no\n\n", ErrorCode.SERVER_ERROR),
    (
        "an error object instead of a chunk",
        CHAT,
        event({"object": "error", "message": "no", "code": 400}),
        ErrorCode.INVALID_REQUEST,
    ),
    (
        "an error beside choices",
        CHAT,
        chunk({"content": "late"}, "error", error={"code": 429, "message": "no"}) + DONE,
        ErrorCode.RATE_LIMITED,
    ),
    (
        "the event error",
        ANTHROPIC,
        anthropic("error", error={"type": "overloaded_error", "message": "no"}),
        ErrorCode.OVERLOADED,
    ),
    (
        "an error without its event name and type",
        ANTHROPIC,
        event({"error": {"type": "api_error", "message": "no"}}),
        ErrorCode.SERVER_ERROR,
    ),
]


@pytest.mark.parametrize(
    ("dialect", "failure", "code"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS]
)
def test_an_error_under_http_200_is_one_error_and_keeps_what_came(
    dialect: str, failure: bytes, code: ErrorCode
) -> None:
    if dialect == CHAT:
        before = said("So far") + call_chunk('{"x":', name="f", index=0, id="a")
    else:
        before = (
            message_start() + text_block(0, "So far") + tool_block(1, "a", "f", '{"x":', stop=False)
        )
    deltas, message = everywhere(dialect, before + failure)
    error = ends_once(deltas, "error")
    assert (error.error_code, error.error_message) == (code, "no")
    assert message.text == "So far"
    assert calls_of(message) == [("f", None)]
    assert message.tool_calls[0].incomplete
    assert not message.runnable_tool_calls
    assert message.meta.is_api_error_message


@pytest.mark.parametrize(("dialect", "failure", "code"), [row[1:] for row in ERRORS])
def test_an_error_as_the_whole_body_is_start_and_error(
    dialect: str, failure: bytes, code: ErrorCode
) -> None:
    deltas, message = everywhere(dialect, failure)
    assert kinds(deltas) == ["start", "error"]
    assert ends_once(deltas, "error").error_code is code
    assert message.parts == []


# Opaque reasoning survives byte for byte.

SIGNATURE = "EqQBCkgIARABGAIiQL+a/b==\u00e9"


def test_a_thinking_signature_is_kept_byte_for_byte() -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Hm."},
        {"type": "signature_delta", "signature": SIGNATURE},
    )
    _, message = everywhere(ANTHROPIC, message_start() + thinking + message_end())
    [part] = message.parts
    assert part.provider_state == {
        "dialect": ANTHROPIC,
        "modelId": "m",
        "data": {"signature": SIGNATURE},
    }
    assert message.thinking == "Hm."


def test_redacted_thinking_is_kept_whole_and_in_its_place() -> None:
    data = "EmwKAhgBEgy3va3pzix/LafPsn4a" * 20
    redacted = block(1, {"type": "redacted_thinking", "data": data})
    body = message_start() + text_block(0, "a") + redacted + text_block(2, "b")
    _, message = everywhere(ANTHROPIC, body + message_end())
    assert [part.kind for part in message.parts] == ["text", "thinking", "text"]
    state = message.parts[1].provider_state
    assert state is not None
    assert state["data"] == {"type": "redacted_thinking", "data": data}


def test_thinking_without_a_signature_is_kept() -> None:
    thinking = block(
        0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "Hm."}
    )
    _, message = everywhere(ANTHROPIC, message_start() + thinking + message_end())
    assert message.thinking == "Hm."
    assert message.parts[0].provider_state is None


def details(*entries: Wire, **delta: object) -> bytes:
    return chunk({"reasoning_details": list(entries), **delta})


def test_reasoning_details_keep_signature_and_encrypted_entry() -> None:
    text: Wire = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    hidden: Wire = {"type": "reasoning.encrypted", "data": "gAAA==", "id": "rs_1", "index": 1}
    body = (
        details({**text, "text": "Hm"}, reasoning="Hm")
        + details({**text, "text": "."}, reasoning=".")
        + details({**text, "signature": SIGNATURE})
        + details(hidden)
        + call_chunk('{"x":1}', name="f", index=0, id="a")
    )
    _, message = everywhere(CHAT, body + finish("tool_calls") + DONE)
    assert message.thinking == "Hm."
    assert [part.kind for part in message.parts] == ["thinking", "tool_call"]
    state = message.parts[0].provider_state
    assert state is not None
    data = cast("dict[str, list[Wire]]", state["data"])
    assert data["reasoning_details"] == [
        {**text, "text": "Hm.", "signature": SIGNATURE},
        hidden,
    ]


def test_a_thought_signature_hangs_on_its_call() -> None:
    extra: Wire = {"google": {"thought_signature": "CiQB+/="}}
    body = call_chunk('{"x":1}', name="f", index=0, id="a", extra_content=extra) + call_chunk(
        "{}", name="g", index=1, id="b"
    )
    _, message = everywhere(CHAT, body + finish("tool_calls") + DONE)
    first, second = message.parts
    assert first.provider_state is not None
    assert first.provider_state["data"] == {"extra_content": extra}
    assert second.provider_state is None


# A cut stream does not count as success.


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (CHAT, said("So far")),
        (CHAT, said("So far") + event({"id": "c", "choices": []})),
        (ANTHROPIC, message_start() + text_block(0, "So far")),
        (ANTHROPIC, message_start() + text_block(0, "So far") + message_delta(None, {})),
    ],
)
def test_a_stream_that_just_stops_is_connection_lost(dialect: str, body: bytes) -> None:
    deltas, message = everywhere(dialect, body)
    error = ends_once(deltas, "error")
    assert (error.error_code, error.retryable) == (ErrorCode.CONNECTION_LOST, True)
    assert message.text == "So far"


CUT_ARGUMENTS = ["", "{", '{"path": "a', '{"path": "a.txt", "n": 1', '{"a": [1, 2]', '{"a": tr']


@pytest.mark.parametrize("arguments", CUT_ARGUMENTS)
def test_arguments_that_were_cut_are_incomplete_and_never_an_empty_object(arguments: str) -> None:
    for dialect, body in (
        (CHAT, call_chunk(arguments, name="f", index=0, id="a")),
        (ANTHROPIC, message_start() + tool_block(0, "a", "f", arguments, stop=False)),
    ):
        deltas, message = everywhere(dialect, body)
        assert ends_once(deltas, "error").error_code is ErrorCode.CONNECTION_LOST
        [call] = message.tool_calls
        assert (call.incomplete, call.arguments, call.raw_args_text) == (True, None, arguments)


@pytest.mark.parametrize("reason", ["tool_calls", "stop", "length"])
@pytest.mark.parametrize("arguments", CUT_ARGUMENTS[1:])
def test_half_arguments_are_incomplete_whatever_the_finish_reason_says(
    arguments: str, reason: str
) -> None:
    body = call_chunk(arguments, name="f", index=0, id="a") + finish(reason) + DONE
    deltas, message = everywhere(CHAT, body)
    ends_once(deltas, "done")
    assert message.tool_calls[0].incomplete
    assert not message.runnable_tool_calls
    word = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}[reason]
    body = message_start() + tool_block(0, "a", "f", arguments) + message_end(word)
    _, message = everywhere(ANTHROPIC, body)
    assert message.tool_calls[0].incomplete


def test_a_call_without_arguments_at_the_token_limit_is_incomplete() -> None:
    body = call_chunk("", name="f", index=0, id="a") + finish("length") + DONE
    _, message = everywhere(CHAT, body)
    assert message.tool_calls[0].incomplete
    body = call_chunk("", name="f", index=0, id="a") + finish("tool_calls") + DONE
    _, message = everywhere(CHAT, body)
    assert message.tool_calls[0].arguments == {}


def test_a_call_of_an_abandoned_message_is_incomplete_though_its_text_is_whole() -> None:
    body = (
        message_start()
        + text_block(0, "Half. ")
        + tool_block(1, "a", "f", '{"x":1}', stop=False)
        + message_start("msg_2")
        + text_block(0, "Whole.")
        + message_end()
    )
    _, message = everywhere(ANTHROPIC, body)
    assert message.text == "Half. Whole."
    assert message.tool_calls[0].incomplete
    assert not message.runnable_tool_calls
    assert message.meta.response_id == "msg_1"
    assert warning_codes(message) == ["spliced_message", "incomplete_call"]


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (CHAT, said("All") + finish("stop")),
        (ANTHROPIC, message_start() + text_block(0, "All") + message_delta("end_turn")),
    ],
)
def test_a_stream_that_said_its_finish_reason_is_whole_without_an_end_marker(
    dialect: str, body: bytes
) -> None:
    deltas, message = everywhere(dialect, body)
    assert ends_once(deltas, "done").finish_reason is FinishReason.STOP
    assert message.text == "All"


# Finish reasons.

CALL = call_chunk('{"x":1}', name="f", index=0, id="a")

FINISHES: dict[str, tuple[bytes, FinishReason, str | None]] = {
    "stop with calls": (CALL + finish("stop") + DONE, FinishReason.TOOL_CALLS, "stop"),
    "length with calls": (CALL + finish("length") + DONE, FinishReason.LENGTH, "length"),
    "twice": (said("x") + finish("length") + finish("stop") + DONE, FinishReason.LENGTH, "length"),
    "with the last text": (chunk({"content": "x"}, "stop") + DONE, FinishReason.STOP, "stop"),
    "empty before the end": (
        chunk({"content": "x"}, "") + finish("stop") + DONE,
        FinishReason.STOP,
        "stop",
    ),
    "before its call": (finish("tool_calls") + DONE, FinishReason.TOOL_CALLS, "tool_calls"),
    "legacy": (CALL + finish("function_call") + DONE, FinishReason.TOOL_CALLS, "function_call"),
    "of an old endpoint": (said("x") + finish("eos") + DONE, FinishReason.STOP, "eos"),
    "of the future": (said("x") + finish("bored") + DONE, FinishReason.OTHER, "bored"),
    "network_error": (
        said("x") + finish("network_error") + DONE,
        FinishReason.ERROR,
        "network_error",
    ),
}


@pytest.mark.parametrize(("body", "reason", "raw"), FINISHES.values(), ids=FINISHES)
def test_the_finish_reason_is_mapped_and_the_raw_one_kept(
    body: bytes, reason: FinishReason, raw: str | None
) -> None:
    deltas, message = everywhere(CHAT, body)
    done = ends_once(deltas, "done")
    assert (done.finish_reason, done.raw_finish_reason) == (reason, raw)
    assert (message.meta.finish_reason, message.meta.raw_finish_reason) == (reason, raw)


@pytest.mark.parametrize(
    ("stop_reason", "reason"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("tool_use", FinishReason.TOOL_CALLS),
        ("refusal", FinishReason.REFUSAL),
        ("pause_turn", FinishReason.PAUSE),
        ("compaction", FinishReason.PAUSE),
        ("bored", FinishReason.OTHER),
    ],
)
def test_every_stop_reason_is_mapped(stop_reason: str, reason: FinishReason) -> None:
    body = message_start() + text_block(0, "x") + message_end(stop_reason)
    deltas, _ = everywhere(ANTHROPIC, body)
    done = ends_once(deltas, "done")
    assert (done.finish_reason, done.raw_finish_reason) == (reason, stop_reason)


def test_end_turn_with_a_call_is_tool_calls() -> None:
    body = message_start() + tool_block(0, "a", "f", "{}") + message_end("end_turn")
    deltas, _ = everywhere(ANTHROPIC, body)
    assert ends_once(deltas, "done").finish_reason is FinishReason.TOOL_CALLS


# Chunks without choices, usage after the finish reason.

EMPTY: Wire = {"id": "", "model": "", "choices": []}
FILTER = event({**EMPTY, "prompt_filter_results": [{"prompt_index": 0}]})


@pytest.mark.parametrize("first", [FILTER, event({"choices": None}), event({}), FILTER + FILTER])
def test_a_first_chunk_without_choices_names_nothing_and_breaks_nothing(first: bytes) -> None:
    _, message = everywhere(CHAT, first + said("Hi") + finish("stop") + DONE)
    assert message.text == "Hi"
    assert (message.meta.model_id, message.meta.response_id) == ("m", "chatcmpl-1")


@pytest.mark.parametrize("end", [DONE, b""])
def test_usage_after_the_finish_reason_is_not_lost(end: bytes) -> None:
    body = said("Hi") + finish("stop") + chunk(None, usage=USAGE) + end
    deltas, message = everywhere(CHAT, body)
    assert kinds(deltas)[-3:] == ["usage", "part_end", "done"]
    usage = usage_of(message)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (10, 4, 14)


def test_null_usage_after_usage_erases_nothing() -> None:
    body = said("Hi") + chunk({}, "stop", usage=USAGE) + chunk(None, usage=None) + DONE
    _, message = everywhere(CHAT, body)
    assert usage_of(message).total_tokens == 14


# Side channels.


def test_annotations_of_all_chunks_are_kept() -> None:
    notes: list[Wire] = [
        {"type": "url_citation", "url_citation": {"url": str(n)}} for n in range(3)
    ]
    body = chunk({"content": "a", "annotations": notes[:1]}) + said("b")
    body += chunk({"annotations": notes[1:]}) + finish("stop") + DONE
    _, message = everywhere(CHAT, body)
    [part] = message.parts
    assert part.kind == "text"
    assert (part.text, part.annotations) == ("ab", notes)


def test_citations_stay_with_their_block() -> None:
    notes: list[Wire] = [{"type": "page_location", "cited_text": str(n)} for n in range(2)]
    deltas: list[Wire] = [{"type": "citations_delta", "citation": note} for note in notes]
    blocks = [
        block(
            n,
            {"type": "text", "text": "", "citations": []},
            {"type": "text_delta", "text": str(n)},
            one,
        )
        for n, one in enumerate(deltas)
    ]
    _, message = everywhere(ANTHROPIC, message_start() + b"".join(blocks) + message_end())
    assert [part.model_dump(mode="json") for part in message.parts] == [
        {"kind": "text", "payload": {"text": str(n), "annotations": [note]}}
        for n, note in enumerate(notes)
    ]


def test_refusal_text_is_text_and_its_reason_a_refusal() -> None:
    body = chunk({"refusal": "I can"}) + chunk({"refusal": "not."}) + finish("stop") + DONE
    deltas, message = everywhere(CHAT, body)
    [part] = message.parts
    assert part.kind == "text"
    assert (part.text, part.refusal) == ("I cannot.", True)
    assert ends_once(deltas, "done").finish_reason is FinishReason.REFUSAL


def test_generated_images_are_parts_in_their_place() -> None:
    image: Wire = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    linked: Wire = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    body = said("a") + chunk({"images": [image, linked]}) + said("b") + finish("stop") + DONE
    _, message = everywhere(CHAT, body)
    assert [part.kind for part in message.parts] == ["text", "image", "image", "text"]
    assert [part.model_dump(mode="json") for part in message.parts[1:3]] == [
        {"kind": "image", "payload": {"mimeType": "image/png", "data": "aGk="}},
        {
            "kind": "image",
            "payload": {"mimeType": "image/png", "url": "https://example.com/a.png"},
        },
    ]


def test_blocks_that_only_the_provider_understands_are_kept_whole_and_in_order() -> None:
    result: Wire = {
        "type": "code_execution_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": {"type": "code_execution_result", "stdout": "4\n", "big": 2**63},
    }
    use: Wire = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution"}
    code: Wire = {"type": "input_json_delta", "partial_json": '{"code": "2+2"}'}
    body = message_start() + text_block(0, "a") + block(1, {**use, "input": {}}, code)
    body += block(2, result) + text_block(3, "b") + message_end()
    _, message = everywhere(ANTHROPIC, body)
    assert not message.tool_calls
    blocks = [part.block for part in message.parts if part.kind == "provider"]
    assert blocks == [{**use, "input": {"code": "2+2"}}, result]
    assert [part.kind for part in message.parts] == ["text", "provider", "provider", "text"]


def spoken(text: str, *tokens: tuple[str, float], top: list[Wire] | None = None) -> bytes:
    """Write a chunk of Chat that says a text and the log probabilities of its tokens."""
    entries = [
        {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": top or []}
        for token, logprob in tokens
    ]
    choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": entries}}
    return event({"id": "chatcmpl-1", "model": "m", "choices": [choice]})


def test_logprobs_of_all_chunks_are_kept_when_they_are_asked_for() -> None:
    body = spoken("Hel", ("Hel", -0.5)) + spoken("lo!", ("lo", -1.5), ("!", -2.5))
    body += finish("stop") + DONE
    deltas, message = everywhere(CHAT, body, logprobs=True)
    [part] = message.parts
    assert part.kind == "text"
    assert part.text == "Hello!"
    assert message.meta.logprobs is not None
    assert message.meta.logprobs.to_dict() == {
        "tokens": ["Hel", "lo", "!"],
        "logprobs": [-0.5, -1.5, -2.5],
    }
    assert [str(delta.kind) for delta in deltas if delta.logprobs] == ["text", "text"]


def test_alternatives_of_tokens_stay_beside_their_tokens() -> None:
    top: list[Wire] = [{"token": "Hi", "logprob": -0.5}, {"token": "Yo", "logprob": -3.0}]
    body = spoken("Hi", ("Hi", -0.5), top=top) + finish("stop") + DONE
    _, message = everywhere(CHAT, body, logprobs=True)
    assert message.meta.logprobs is not None
    assert message.meta.logprobs.to_dict() == {"tokens": ["Hi"], "logprobs": [-0.5], "top": [top]}


def test_logprobs_that_nobody_asked_for_are_a_warning_alone() -> None:
    body = spoken("Hi", ("Hi", -0.5)) + finish("stop") + DONE
    deltas, message = everywhere(CHAT, body)
    plain, _ = everywhere(CHAT, said("Hi") + finish("stop") + DONE)
    assert deltas[:-1] == plain[:-1]
    assert message.meta.logprobs is None
    (warning,) = message.meta.warnings
    assert warning["code"] == "unread_logprobs"
    assert "logprobs=True" in str(warning["message"])
