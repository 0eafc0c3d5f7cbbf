"""Streams of other providers, read by clients of the Messages API."""

from typing import Final, get_args

import pytest
from anthropic.types.beta import BetaStopReason

import deltafold
from any_name import AnyName
from deltafold import Encoder, MessageDelta, Transcoder, transcode
from transcoded import (
    Event,
    call,
    calls,
    chat,
    ended,
    messages,
    notes,
    of_type,
    sse,
    transcoded,
    types,
)

TO: Final = "anthropic-messages"


def blocks(events: list[Event]) -> list[tuple[str, str]]:
    """The blocks in order: type and joined deltas; checks the grammar of the blocks on the way."""
    found: list[list[str]] = []
    open_index = None
    for event in events:
        if event["type"] == "content_block_start":
            assert open_index is None
            assert event["index"] == len(found)
            open_index = event["index"]
            found.append([event["content_block"]["type"], ""])
        elif event["type"] == "content_block_delta":
            assert event["index"] == open_index
            delta = event["delta"]
            text = delta.get("text") or delta.get("thinking") or delta.get("partial_json") or ""
            found[-1][1] += text
        elif event["type"] == "content_block_stop":
            assert event["index"] == open_index
            open_index = None
    return [(kind, text) for kind, text in found]


def test_a_call_starts_once_and_stops_once() -> None:
    body = chat(
        calls(call(0, "", "a", "f")),
        calls(call(0, '{"x":')),
        calls(call(0, "1}")),
        finish="tool_calls",
    )
    events = transcoded(body, "openai-chat", TO)
    assert len(of_type(events, "content_block_start")) == 1
    assert len(of_type(events, "content_block_stop")) == 1
    assert blocks(events) == [("tool_use", '{"x":1}')]


def test_interleaved_calls_follow_one_after_another() -> None:
    body = chat(
        calls(call(0, "", "a", "f"), call(1, "", "b", "g")),
        calls(call(0, '{"x"')),
        calls(call(1, '{"y"')),
        calls(call(0, ":1}")),
        calls(call(1, ":2}")),
        finish="tool_calls",
    )
    events = transcoded(body, "openai-chat", TO)
    assert blocks(events) == [("tool_use", '{"x":1}'), ("tool_use", '{"y":2}')]
    starts = of_type(events, "content_block_start")
    assert [one["content_block"]["id"] for one in starts] == ["a", "b"]
    first = next(at for at, one in enumerate(events) if one["type"] == "content_block_stop")
    assert '{"x"' in str(events[:first])  # the first call is streamed while the second waits


def test_reasoning_is_a_thinking_block_and_the_head_comes_once() -> None:
    body = chat({"reasoning_content": "Hm"}, {"reasoning_content": "."}, {"content": "Yes"})
    events = transcoded(body, "openai-chat", TO)
    assert len(of_type(events, "message_start")) == 1
    assert blocks(events) == [("thinking", "Hm."), ("text", "Yes")]


@pytest.mark.parametrize("second", [{"content": "Text"}, calls(call(0, '{"a":1}', "a", "f"))])
def test_the_delta_that_opens_a_block_keeps_its_content(second: Event) -> None:
    body = chat({"reasoning_content": "Hm"}, second)
    assert blocks(transcoded(body, "openai-chat", TO))[1][1] in ("Text", '{"a":1}')


def test_reasoning_beside_content_comes_first() -> None:
    body = chat(
        {"reasoning_content": "A"}, {"reasoning_content": "B", "content": "C"}, {"content": "D"}
    )
    assert blocks(transcoded(body, "openai-chat", TO)) == [("thinking", "AB"), ("text", "CD")]


def test_a_second_segment_of_reasoning_is_a_block_of_its_own() -> None:
    body = chat(
        {"reasoning_content": "one"},
        calls(call(0, "{}", "a", "f")),
        {"reasoning_content": "two"},
        {"content": "end"},
    )
    kinds = [kind for kind, _ in blocks(transcoded(body, "openai-chat", TO))]
    assert sorted(kinds) == ["text", "thinking", "thinking", "tool_use"]


@pytest.mark.parametrize("between", [{"content": ""}, {"reasoning_content": "hm"}])
def test_nothing_splits_the_arguments_of_a_call(between: Event) -> None:
    body = chat(
        calls(call(0, '{"a"', "a", "f")), between, calls(call(0, ":1}")), finish="tool_calls"
    )
    found = blocks(transcoded(body, "openai-chat", TO))
    assert [text for kind, text in found if kind == "tool_use"] == ['{"a":1}']


def test_a_call_that_was_cut_before_its_arguments_is_no_call() -> None:
    body = chat({"content": "I"}, calls(call(0, None, "a", "f")), finish="length")
    events = transcoded(body, "openai-chat", TO)
    assert blocks(events) == [("text", "I")]
    assert of_type(events, "message_delta")[0]["delta"]["stop_reason"] == "max_tokens"
    assert "call" in notes(body, "openai-chat", TO)


def test_half_a_call_never_ends_the_turn_as_a_call() -> None:
    body = chat(calls(call(0, "{", "a", "f")), finish="tool_calls", usage=False)
    delta = of_type(transcoded(body, "openai-chat", TO), "message_delta")[0]
    assert delta["delta"]["stop_reason"] == "end_turn"


def test_usage_behind_the_finish_is_in_the_last_record() -> None:
    events = transcoded(chat({"content": "Hi"}), "openai-chat", TO)
    delta = of_type(events, "message_delta")[0]
    assert delta["usage"] == {"input_tokens": 12, "output_tokens": 7}
    assert types(events)[-2:] == ["message_delta", "message_stop"]


def test_a_stream_without_usage_has_the_required_count_and_a_note() -> None:
    body = chat({"content": "Hi"}, usage=False)
    events = transcoded(body, "openai-chat", TO)
    assert of_type(events, "message_delta")[0]["usage"] == {"output_tokens": 0}
    assert "usage" in notes(body, "openai-chat", TO)


def test_the_head_has_the_callers_estimate_and_the_end_the_truth() -> None:
    events = transcoded(chat({"content": "Hi"}), "openai-chat", TO, input_tokens=10)
    assert events[0]["message"]["usage"]["input_tokens"] == 10
    assert of_type(events, "message_delta")[0]["usage"]["input_tokens"] == 12


def test_a_signature_is_one_delta_before_the_stop() -> None:
    body = messages(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "Hm"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "c2ln"},
        },
        {"type": "content_block_stop", "index": 0},
        *ended(),
    )
    events = transcoded(body, TO, TO)
    deltas = [one["delta"] for one in of_type(events, "content_block_delta")]
    assert deltas[-1] == {"type": "signature_delta", "signature": "c2ln"}
    assert len(deltas) == 2


def test_no_signature_is_invented() -> None:
    text = transcode(chat({"reasoning_content": "Hm"}), "openai-chat", TO)
    assert b"signature_delta" not in text


def test_a_failure_behind_the_head_is_the_error_event_and_last() -> None:
    body = chat({"content": "Hi"}, finish=None) + sse({"error": {"message": "boom", "code": 500}})
    events = transcoded(body, "openai-chat", TO)
    assert types(events)[-1] == "error"
    assert "message_stop" not in types(events)
    assert "message_delta" not in types(events)


def test_a_cut_stream_is_the_error_event() -> None:
    events = transcoded(chat({"content": "Hi"}, finish=None), "openai-chat", TO)
    assert types(events)[-1] == "error"


def test_a_failure_before_the_content_is_an_http_error() -> None:
    transcoder = Transcoder("openai-chat", TO)
    body = transcoder.feed(sse({"error": {"message": "no", "code": "rate_limit_exceeded"}}))
    body += transcoder.close()
    assert transcoder.status == 429
    assert transcoder.headers is not None
    assert transcoder.headers["content-type"] == "application/json"
    assert b'"rate_limit_error"' in body


def test_a_ping_stands_between_events_and_is_no_content() -> None:
    encoder = Encoder(TO)
    ping = encoder.keep_alive()
    assert encoder.status == 200
    assert b"event: ping" in ping
    start = {"modelId": "m", "requestId": "r"}
    encoder.feed(MessageDelta("run", 1, "start", start))
    encoder.feed(MessageDelta("run", 2, "text", {"textDelta": "Hi", "partIndex": 0}))
    inside = encoder.keep_alive()
    assert b"event: ping" in inside
    assert b'"text_delta","text":""' in inside  # an open block gets an empty delta too


@pytest.mark.parametrize("target", deltafold.target_names())
def test_only_the_targets_own_end_marker_is_written(target: AnyName) -> None:
    body = transcode(chat({"content": "Hi"}), "openai-chat", target)
    assert (b"[DONE]" in body) == (target in ("openai-chat", "ai-sdk"))


def test_an_unknown_end_keeps_its_reason_in_a_note() -> None:
    body = chat({"content": "Hi"}, finish="strange")
    assert "finish_reason" in notes(body, "openai-chat", TO)


def test_a_pause_stays_a_pause_and_server_tools_stay_blocks() -> None:
    use: Event = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    body = messages(
        {"type": "content_block_start", "index": 0, "content_block": use},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"q":1}'},
        },
        {"type": "content_block_stop", "index": 0},
        *ended("pause_turn"),
    )
    events = transcoded(body, TO, TO)
    assert of_type(events, "content_block_start")[0]["content_block"]["type"] == "server_tool_use"
    assert of_type(events, "message_delta")[0]["delta"]["stop_reason"] == "pause_turn"
    assert "part" in notes(body, TO, "openai-chat")


@pytest.mark.parametrize("reason", get_args(BetaStopReason))
def test_a_stop_reason_of_the_client_stays_in_its_own_protocol(reason: str) -> None:
    call: Event = {"type": "tool_use", "id": "t1", "name": "find", "input": {}}
    block: Event = call if reason == "tool_use" else {"type": "text", "text": ""}
    body = messages(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        *ended(reason),
    )
    events = transcoded(body, TO, TO)
    assert of_type(events, "message_delta")[0]["delta"]["stop_reason"] == reason


def test_cached_tokens_follow_each_convention() -> None:
    details = {"cached_tokens": 8}
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "total_tokens": 12,
        "prompt_tokens_details": details,
    }
    body = chat({"content": "Hi"}, usage=False)[: -len(b"data: [DONE]\n\n")]
    body += sse({"id": "c1", "choices": [], "usage": usage}, "[DONE]")
    messages_usage = of_type(transcoded(body, "openai-chat", TO), "message_delta")[0]["usage"]
    assert messages_usage == {"input_tokens": 2, "cache_read_input_tokens": 8, "output_tokens": 2}
    last = transcoded(body, "openai-chat", "openai-chat")[-1]["usage"]
    assert (last["prompt_tokens"], last["total_tokens"]) == (10, 12)
    assert last["prompt_tokens_details"]["cached_tokens"] == 8
