"""Failures that users of other libraries reported, for Bedrock and Ollama.

One test a failure.  Every body is decoded whole, in one shot, asynchronously, cut in two at every
byte and in pieces of 1 to 17 bytes; `everywhere` holds all of them equal.
"""

import json
from typing import Final

import pytest

from deltafold import Decoder, ErrorCode, FinishReason, Limits, Message, TextPart
from event_stream import Wire, chunk, event, exception
from splits import calls_of, ends_once, everywhere, kinds, usage_of, warning_codes

CONVERSE: Final = "bedrock-converse"
INVOKE: Final = "bedrock-invoke"
OLLAMA: Final = "ollama"

STOP: Final = event("messageStop", {"stopReason": "end_turn"})


def start(index: object, **tool: object) -> bytes:
    """Write the start of a call."""
    return event("contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": tool}})


def delta(index: object, **union: object) -> bytes:
    """Write a delta."""
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": union})


def stop(index: object) -> bytes:
    """Write the stop of a block."""
    return event("contentBlockStop", {"contentBlockIndex": index})


def usage(**counts: object) -> bytes:
    """Write the metadata event."""
    return event("metadata", {"usage": counts, "metrics": {"latencyMs": 1}})


def line(**members: object) -> bytes:
    """Write a record of Ollama."""
    wire = {"model": "m", "created_at": "2026-01-01T00:00:00.123456789Z", **members}
    return json.dumps(wire, ensure_ascii=False).encode() + b"\n"


def said(content: str, **members: object) -> bytes:
    """Write a record that says something."""
    return line(message={"role": "assistant", "content": content, **members}, done=False)


def done(reason: str | None = "stop", **members: object) -> bytes:
    """Write the last record."""
    return line(message={"content": ""}, done=True, done_reason=reason, **members)


def called(arguments: object, **members: object) -> Wire:
    """Write a call of Ollama."""
    return {**members, "function": {"index": 0, "name": "f", "arguments": arguments}}


# Parallel calls with indexes that collide or take turns.


def test_calls_of_one_index_are_different_calls() -> None:
    body = said("", tool_calls=[called({"a": 1})]) + said("", tool_calls=[called({"a": 2})])
    _, message = everywhere(OLLAMA, body + done())
    assert calls_of(message) == [("f", {"a": 1}), ("f", {"a": 2})]
    assert len({call.tool_call_id for call in message.tool_calls}) == 2


def test_calls_that_take_turns_stay_apart() -> None:
    body = start(0, toolUseId="a", name="f") + start(1, toolUseId="b", name="g")
    body += delta(1, toolUse={"input": '{"b"'}) + delta(0, toolUse={"input": '{"a":1'})
    body += delta(1, toolUse={"input": ":2}"}) + stop(1)
    body += delta(0, toolUse={"input": "}"}) + stop(0) + STOP
    _, message = everywhere(CONVERSE, body)
    assert calls_of(message) == [("f", {"a": 1}), ("g", {"b": 2})]
    assert message.meta.finish_reason == FinishReason.TOOL_CALLS


# Usage: the input of Bedrock excludes the cache, ours includes it; nothing is summed.


def test_cached_tokens_are_counted_once() -> None:
    counts = {"inputTokens": 10, "outputTokens": 4, "totalTokens": 119}
    cache = {"cacheReadInputTokens": 100, "cacheWriteInputTokens": 5}
    doubles = {"cacheReadInputTokenCount": 100, "cacheWriteInputTokenCount": 5}
    _, message = everywhere(CONVERSE, STOP + usage(**counts, **cache, **doubles))
    found = usage_of(message)
    assert (found.input_tokens, found.output_tokens, found.total_tokens) == (115, 4, 119)
    assert (found.cache_read_tokens, found.cache_write_tokens) == (100, 5)


def test_counts_of_bedrock_only_fill_gaps() -> None:
    metrics = {"inputTokenCount": 7, "outputTokenCount": 8}
    known = {"outputText": "x", "totalOutputTextTokenCount": 3, "completionReason": "FINISH"}
    body = chunk({**known, "amazon-bedrock-invocationMetrics": metrics})
    deltas, message = everywhere(INVOKE, body)
    found = usage_of(message)
    assert (found.input_tokens, found.output_tokens, found.total_tokens) == (7, 3, 10)
    assert kinds(deltas) == ["start", "text", "usage", "part_end", "usage", "done"]


def test_counts_that_are_missing_are_unknown_and_not_zero() -> None:
    _, message = everywhere(OLLAMA, said("x") + done(eval_count=5))
    found = usage_of(message)
    assert (found.input_tokens, found.output_tokens, found.total_tokens) == (None, 5, None)


# An error under HTTP 200 gives one error and keeps the received content.


@pytest.mark.parametrize(
    ("dialect", "body", "code"),
    [
        (
            CONVERSE,
            delta(0, text="Half") + exception("throttlingException", {"message": "slow down"}),
            ErrorCode.RATE_LIMITED,
        ),
        (
            INVOKE,
            chunk({"generation": "Half"}) + exception("modelTimeoutException", {"message": "m"}),
            ErrorCode.TIMEOUT,
        ),
        (INVOKE, chunk({"generation": "Half"}) + chunk({"error": "m"}), ErrorCode.SERVER_ERROR),
        (OLLAMA, said("Half") + b'{"error":"out of memory"}\n', ErrorCode.SERVER_ERROR),
        (OLLAMA, said("Half") + b'{"error":"out of memory"}', ErrorCode.SERVER_ERROR),
    ],
)
def test_an_error_in_the_stream_is_one_error(dialect: str, body: bytes, code: ErrorCode) -> None:
    deltas, message = everywhere(dialect, body)
    assert ends_once(deltas, "error").error_code == code
    assert message.text == "Half"


def test_an_exception_leaves_its_call_incomplete() -> None:
    body = start(0, toolUseId="a", name="f") + delta(0, toolUse={"input": '{"a":'})
    error = exception("internalServerException", {"message": "m"})
    _, message = everywhere(CONVERSE, body + error)
    (call,) = message.tool_calls
    assert call.incomplete
    assert call.arguments is None


# Opaque reasoning comes back byte for byte.


def test_signatures_and_redacted_reasoning_are_kept() -> None:
    body = delta(0, reasoningContent={"text": "Hm."})
    body += delta(0, reasoningContent={"signature": "a+/=\n\u00e9"}) + stop(0)
    body += delta(1, reasoningContent={"redactedContent": "YmxvYg=="}) + stop(1)
    body += delta(2, reasoningContent={"text": "unsigned"}) + stop(2) + STOP
    _, message = everywhere(CONVERSE, body)
    states = [part.provider_state for part in message.parts]
    assert [state and state["data"] for state in states] == [
        {"signature": "a+/=\n\u00e9"},
        {"redactedContent": "YmxvYg=="},
        None,
    ]
    assert [part.kind for part in message.parts] == ["thinking"] * 3
    assert message.thinking == "Hm.unsigned"


def test_state_inside_of_chunks_belongs_to_the_inner_protocol() -> None:
    block = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    body = chunk({"type": "content_block_start", "index": 0, "content_block": block})
    _, message = everywhere(INVOKE, body)
    (part,) = message.parts
    assert part.provider_state is not None
    assert part.provider_state["dialect"] == "anthropic-messages"


# Truncation is not success.


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (CONVERSE, delta(0, text="Half")),
        (CONVERSE, delta(0, text="Half") + stop(0) + STOP[:-1]),
        (INVOKE, chunk({"generation": "Half"})),
        (OLLAMA, said("Half")),
        (OLLAMA, said("Half") + done()[:-3]),
        (OLLAMA, b"[" + said("Half") + b"," + done()[:-3]),
    ],
)
def test_a_stream_that_just_stops_is_connection_lost(dialect: str, body: bytes) -> None:
    deltas, message = everywhere(dialect, body)
    error = ends_once(deltas, "error")
    assert (error.error_code, error.retryable) == (ErrorCode.CONNECTION_LOST, True)
    assert message.text == "Half"


@pytest.mark.parametrize("reason", ["tool_use", "max_tokens", "end_turn"])
def test_half_arguments_are_incomplete_whatever_the_reason_says(reason: str) -> None:
    body = start(0, toolUseId="a", name="f") + delta(0, toolUse={"input": '{"a":"x'}) + stop(0)
    _, message = everywhere(CONVERSE, body + event("messageStop", {"stopReason": reason}))
    (call,) = message.tool_calls
    assert call.incomplete
    assert call.arguments is None


def test_a_stop_without_metadata_is_whole() -> None:
    deltas, message = everywhere(CONVERSE, delta(0, text="Hi") + stop(0) + STOP)
    assert kinds(deltas) == ["start", "text", "part_end", "done"]
    assert message.meta.finish_reason == FinishReason.STOP


# Ids: null, empty, numeric, repeated, missing.


@pytest.mark.parametrize("of", [CONVERSE, OLLAMA])
def test_irregular_ids_make_one_call_each(of: str) -> None:
    ids: list[object] = ["", None, 7, "null", "same", "same"]
    if of == OLLAMA:
        body = said("", tool_calls=[called({"n": n}, id=name) for n, name in enumerate(ids)])
        body += done()
    else:
        body = STOP
        for n, name in reversed(list(enumerate(ids))):
            arguments = delta(n, toolUse={"input": json.dumps({"n": n})})
            body = start(n, toolUseId=name, name="f") + arguments + stop(n) + body
    _, message = everywhere(of, body)
    assert calls_of(message) == [("f", {"n": n}) for n in range(6)]
    found = [call.tool_call_id for call in message.tool_calls]
    # "", null and "null" are not accepted as ids: those calls get generated ids.
    assert (found[2], found[4:]) == ("7", ["same", "same_2"])
    assert all(found[n].startswith("call_") for n in (0, 1, 3))
    assert len(set(found)) == 6


@pytest.mark.parametrize("index", [None, -1, "3", 2**70, 1.5, True, {}])
def test_an_index_that_is_none_means_the_last_block(index: object) -> None:
    body = delta(0, text="Hi") + delta(index, text=" you") + stop(0) + STOP
    _, message = everywhere(CONVERSE, body)
    assert message.text == "Hi you"


# Characters and lines.


def saying(form: str, text: str) -> tuple[str, bytes]:
    """Return a dialect and a body of it that says a text."""
    if form == "frames":
        return CONVERSE, delta(0, text=text) + STOP
    if form == "chunks":
        return INVOKE, chunk(json.dumps({"generation": text}, ensure_ascii=False))
    if form == "lines":
        return OLLAMA, said(text) + done()
    return OLLAMA, b"[" + said(text) + b"," + done() + b"]"


@pytest.mark.parametrize(
    "text", ["caf\u00e9 \u65e5\u672c \U0001f600", "\u2028\u2029\u0085\v\f", '"\\/\b\f\n\r\t\u0001']
)
@pytest.mark.parametrize("form", ["frames", "chunks", "lines", "array"])
def test_text_is_whole_wherever_the_bytes_are_cut(form: str, text: str) -> None:
    _, message = everywhere(*saying(form, text))
    assert message.text == text


def test_lines_end_at_lf_alone() -> None:
    body = (said("a") + said("b")).replace(b"\n", b"\r\n\r\n") + done().rstrip()
    _, message = everywhere(OLLAMA, body)
    assert message.text == "ab"
    assert not warning_codes(message)


# Finish reasons.


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("tool_use", FinishReason.TOOL_CALLS),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("guardrail_intervened", FinishReason.CONTENT_FILTER),
        ("content_filtered", FinishReason.CONTENT_FILTER),
        ("malformed_model_output", FinishReason.ERROR),
        ("malformed_tool_use", FinishReason.ERROR),
        ("something_new", FinishReason.OTHER),
    ],
)
def test_the_stop_reason_is_mapped_and_kept(raw: str, reason: FinishReason) -> None:
    _, message = everywhere(CONVERSE, event("messageStop", {"stopReason": raw}) + usage())
    assert message.meta.finish_reason == reason
    assert message.meta.raw_finish_reason == raw


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("stop", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("load", FinishReason.OTHER),
        ("unload", FinishReason.OTHER),
        ("something_new", FinishReason.OTHER),
    ],
)
def test_the_done_reason_is_mapped_and_kept(raw: str | None, reason: FinishReason) -> None:
    _, message = everywhere(OLLAMA, said("x") + done(raw))
    assert message.meta.finish_reason == reason
    assert message.meta.raw_finish_reason == (raw or None)


def test_a_plain_end_after_calls_is_tool_calls() -> None:
    _, message = everywhere(OLLAMA, said("", tool_calls=[called({})]) + done("stop"))
    assert message.meta.finish_reason == FinishReason.TOOL_CALLS


# Arguments of any shape.


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        ({}, {}),
        (None, {}),
        ('{"a":1}', {"a": 1}),
        ("", {}),
        ([1], None),
        (7, None),
    ],
)
def test_whole_arguments_are_parsed_once(arguments: object, parsed: dict[str, object]) -> None:
    _, message = everywhere(OLLAMA, said("", tool_calls=[called(arguments)]) + done())
    assert calls_of(message) == [("f", parsed)]


# Side channels.


def kinds_of_parts(message: Message) -> list[str]:
    """Return the kinds of the parts."""
    return [part.kind for part in message.parts]


def test_citations_images_and_the_provider_s_tools_survive() -> None:
    hosted = {"toolUseId": "t", "name": "search", "type": "server_tool_use"}
    body = start(0, **hosted) + delta(0, toolUse={"input": '{"q":1}'}) + stop(0)
    body += delta(1, toolResult=[{"text": "found"}]) + stop(1)
    body += delta(2, text="See.") + delta(2, citation={"title": "one"})
    body += delta(2, citation={"title": "two"}) + stop(2)
    body += delta(3, image={"source": {"bytes": "AAAA"}}) + stop(3) + STOP
    _, message = everywhere(CONVERSE, body)
    assert kinds_of_parts(message) == ["provider", "provider", "text", "image"]
    cited = message.parts[2]
    assert isinstance(cited, TextPart)
    assert cited.annotations == [{"title": "one"}, {"title": "two"}]
    assert not message.tool_calls


def test_logprobs_of_all_lines_are_kept_when_they_are_asked_for() -> None:
    def entry(token: str, value: float) -> Wire:
        return {"token": token, "logprob": value, "top_logprobs": [{"token": "z", "logprob": -9}]}

    records = [("Hi", entry("Hi", -0.5)), (" you", entry(" you", -0.25))]
    body = b"".join(
        line(message={"content": text}, logprobs=[known], done=False) for text, known in records
    )
    _, message = everywhere(OLLAMA, body + done(), logprobs=True)
    found = message.meta.logprobs
    assert found is not None
    assert list(found.tokens) == ["Hi", " you"]
    _, silent = everywhere(OLLAMA, body + done())
    assert silent.meta.logprobs is None


# Linear time: a large stream is decoded at once, its deltas are its events.


def test_a_hundred_thousand_fragments_are_as_many_deltas() -> None:
    body = start(0, toolUseId="a", name="f") + delta(0, toolUse={"input": '{"a":"'})
    body += delta(0, toolUse={"input": "x"}) * 100_000 + delta(0, toolUse={"input": '"}'})
    decoder = Decoder(CONVERSE, run_id="run", limits=Limits())
    batch = decoder.feed(body + stop(0) + STOP)
    assert len(batch) == 100_000 + 5
