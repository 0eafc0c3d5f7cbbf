"""Streams of other providers, read by clients of the Responses API."""

import json
from typing import Final

import pytest

from any_name import AnyName
from deltafold import Encoder, transcode
from transcoded import Event, call, calls, chat, messages, notes, of_type, sse, transcoded, types

TO: Final = "openai-responses"


def test_done_events_repeat_what_their_deltas_gave() -> None:
    events = transcoded(chat({"content": "Hel"}, {"content": "lo"}), "openai-chat", TO)
    assert types(events)[2:] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert of_type(events, "response.output_text.done")[0]["text"] == "Hello"
    done = of_type(events, "response.output_item.done")[0]["item"]
    assert done["content"][0]["text"] == "Hello"
    assert events[-1]["response"]["output"] == [done]


def test_an_item_closes_once_and_its_skeletons_are_empty() -> None:
    events = transcoded(chat({"content": "a"}, {"content": "b"}), "openai-chat", TO)
    assert len(of_type(events, "response.output_item.done")) == 1
    assert of_type(events, "response.output_item.added")[0]["item"]["content"] == []
    assert of_type(events, "response.content_part.added")[0]["part"]["text"] == ""


def test_all_calls_of_a_chunk_are_items() -> None:
    body = chat(calls(call(0, "{}", "a", "f"), call(1, None, "b", "g")), finish="tool_calls")
    output = transcoded(body, "openai-chat", TO)[-1]["response"]["output"]
    assert [(one["call_id"], one["name"], one["arguments"]) for one in output] == [
        ("a", "f", "{}"),
        ("b", "g", ""),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_freeform_tool_gets_its_raw_text(size: int) -> None:
    patch = '*** Begin "Patch"\n\u00e9\U0001f600\\ end'
    arguments = json.dumps({"input": patch})
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    body = chat(
        calls(call(0, "", "a", "apply_patch")),
        *(calls(call(0, one)) for one in pieces),
        finish="tool_calls",
    )
    tools = {"apply_patch": {"kind": "custom"}}
    events = transcoded(body, "openai-chat", TO, tools=tools)
    deltas = [one["delta"] for one in of_type(events, "response.custom_tool_call_input.delta")]
    assert "".join(deltas) == patch
    item = events[-1]["response"]["output"][0]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", patch)


def test_a_namespaced_tool_comes_back_in_its_namespace() -> None:
    body = chat(calls(call(0, "{}", "a", "mcp__read")), finish="tool_calls")
    tools = {"mcp__read": {"namespace": "mcp", "name": "read"}}
    item = transcoded(body, "openai-chat", TO, tools=tools)[-1]["response"]["output"][0]
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "mcp", "read")


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_a_cut_answer_is_incomplete(finish: str, reason: str) -> None:
    events = transcoded(chat({"content": "Hi"}, finish=finish), "openai-chat", TO)
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": reason}
    assert events[-1]["response"]["output"][0]["status"] == "incomplete"


def test_a_failure_is_an_error_and_a_failed_response() -> None:
    body = chat({"content": "Hi"}, finish=None) + sse({"error": {"message": "boom"}})
    events = transcoded(body, "openai-chat", TO)
    assert types(events)[-2:] == ["error", "response.failed"]
    assert events[-1]["response"]["error"] == {"code": "server_error", "message": "boom"}
    assert events[-2]["error"]["message"] == "boom"


def test_numbers_are_dense_and_ids_stable() -> None:
    body = chat(
        {"reasoning_content": "Hm"},
        {"content": "Hi"},
        calls(call(0, "{}", "a", "f")),
        finish="tool_calls",
    )
    events = transcoded(body, "openai-chat", TO)
    assert [one["sequence_number"] for one in events] == list(range(len(events)))
    added = of_type(events, "response.output_item.added")
    assert [one["output_index"] for one in added] == [0, 1, 2]
    ids = [one["item"]["id"] for one in added]
    assert [one["item"]["id"] for one in of_type(events, "response.output_item.done")] == ids
    for event in events:
        if "item_id" in event:
            assert event["item_id"] == ids[event["output_index"]]


def test_an_items_id_is_not_the_calls_id() -> None:
    item: Event = {
        "type": "function_call",
        "id": "fc_9",
        "call_id": "call_9",
        "name": "f",
        "arguments": "",
    }
    named = {"type": "response.output_item.added", "output_index": 0, "item": item}
    args = {
        "type": "response.function_call_arguments.delta",
        "item_id": "fc_9",
        "output_index": 0,
        "delta": '{"a":1}',
    }
    done = {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {**item, "arguments": '{"a":1}'},
    }
    end: Event = {
        "type": "response.completed",
        "response": {"id": "r1", "model": "gpt", "status": "completed", "output": []},
    }
    created = {"type": "response.created", "response": {"id": "r1", "model": "gpt"}}
    chunks = transcoded(sse(created, named, args, done, end), TO, "openai-chat")
    deltas = [one["choices"][0]["delta"] for one in chunks if one["choices"]]
    found = [one["tool_calls"][0] for one in deltas if "tool_calls" in one]
    assert found[0]["id"] == "call_9"
    assert "".join(one["function"]["arguments"] for one in found) == '{"a":1}'
    assert {one["index"] for one in found} == {0}


def test_codex_gets_refusals_as_text_and_a_code_that_ends_the_turn() -> None:
    refusal = chat({"refusal": "No."})
    output = transcoded(refusal, "openai-chat", TO, codex=True)[-1]["response"]["output"]
    assert output[0]["content"][0]["type"] == "output_text"
    plain = transcoded(refusal, "openai-chat", TO)[-1]["response"]["output"]
    assert plain[0]["content"][0] == {"type": "refusal", "refusal": "No."}
    broken = chat({"content": "Hi"}, finish=None) + sse(
        {"error": {"message": "bad", "code": "invalid_api_key"}}
    )
    error = transcoded(broken, "openai-chat", TO, codex=True)[-1]["response"]["error"]
    assert error["code"] == "invalid_prompt"


@pytest.mark.parametrize("late_id", [False, True])
def test_encrypted_reasoning_keeps_its_id_if_the_item_begins_with_it_or_is_held(
    *, late_id: bool
) -> None:
    item: Event = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
    part = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    text = {"type": "summary_text", "text": "Hm"}
    body = sse(
        {"type": "response.created", "response": {"id": "r1", "model": "gpt"}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "encrypted_content": "", **({"id": "rs_0"} if late_id else {})},
        },
        {"type": "response.reasoning_summary_text.delta", **part, "delta": "Hm"},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {**item, "summary": [text]},
        },
        {
            "type": "response.completed",
            "response": {"id": "r1", "model": "gpt", "status": "completed"},
        },
    )
    held = transcoded(body, TO, TO, hold=True)[-1]["response"]["output"][0]
    assert (held["id"], held["encrypted_content"]) == ("rs_1", "gAAAA")
    plain = transcoded(body, TO, TO)[-1]["response"]["output"][0]
    assert ("encrypted_content" in plain) is not late_id
    assert ("provider_state" in notes(body, TO, TO)) is late_id


def test_foreign_state_travels_in_an_envelope_only_if_asked() -> None:
    body = messages(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "redacted_thinking", "data": "abc"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "text", "text": "Hi"},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    )
    assert b"encrypted_content" not in transcode(body, "anthropic-messages", TO)
    output = transcoded(body, "anthropic-messages", TO, envelope=True)[-1]["response"]["output"]
    assert output[0]["type"] == "reasoning"
    assert output[0]["encrypted_content"].startswith("eyJkZWx0YWZvbGQiOjEs")


def test_the_response_object_repeats_what_was_asked() -> None:
    body = chat({"content": "Hi"}, finish="stop")
    asked = {"temperature": 0.5, "metadata": {"trace": "a\u2028b"}, "previous_response_id": None}
    events = transcoded(body, "openai-chat", TO, response_fields=asked)
    for event in (events[0], events[-1]):
        response = event["response"]
        assert {name: response[name] for name in asked} == asked
        assert response["tool_choice"] == "auto"
    assert list(events[0]["response"]).count("temperature") == 1


@pytest.mark.parametrize("name", ["id", "status", "output", "usage", "error"])
def test_what_was_answered_cannot_be_replaced_by_what_was_asked(name: AnyName) -> None:
    with pytest.raises(ValueError, match=f'response_fields: "{name}" is what the answer says'):
        Encoder(TO, response_fields={name: None})
    with pytest.raises(TypeError, match="response_fields must be a mapping"):
        Encoder(TO, response_fields=["x"])  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]
