"""Facts that a provider says of an answer: each is a detail, the last value of a repeated one."""

import json
from typing import Any, Final

import pytest

import deltafold
from any_name import AnyName
from deltafold import Message, ProviderPart

Wire = dict[str, Any]

FACT: Final = {"k": ["v", 1, True]}


def details(message: Message) -> Wire:
    return dict(message.meta.details or {})


def fold(dialect: AnyName, *events: Wire, named: bool = True) -> Message:
    lines = [f"event: {one['type']}\n" if named else "" for one in events]
    body = "".join(
        f"{name}data: {json.dumps(one)}\n\n" for name, one in zip(lines, events, strict=True)
    )
    return deltafold.fold((body if named else f"{body}data: [DONE]\n\n").encode(), dialect)


def responses(**members: Any) -> list[Wire]:  # noqa: ANN401 - members of any type
    item = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi"}],
    }
    response = {"id": "r", "object": "response", "status": "completed", "output": [item]}
    return [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress", **members}},
        {"type": "response.completed", "response": {**response, **members}},
    ]


@pytest.mark.parametrize(
    "name",
    [
        "tool_usage",
        "moderation",
        "prompt_cache_diagnostics",
        "billing",
        "conversation",
    ],
)
def test_members_of_a_response_are_details(name: str) -> None:
    assert details(fold("openai-responses", *responses(**{name: FACT}))) == {name: FACT}
    whole = responses(**{name: FACT})[1]["response"]
    message = deltafold.fold(json.dumps(whole).encode(), "openai-responses")
    assert details(message) == {name: FACT}


def test_what_repeats_the_request_is_no_detail() -> None:
    repeated = {
        "tools": [FACT],
        "metadata": FACT,
        "instructions": "x",
        "temperature": 1,
        "text": FACT,
    }
    assert details(fold("openai-responses", *responses(**repeated, a_new_member=None))) == {}


def test_a_member_of_tomorrow_is_kept_up_to_a_bound() -> None:
    message = fold("openai-responses", *responses(tomorrow=FACT))
    assert details(message) == {"tomorrow": FACT}
    large = fold("openai-responses", *responses(tomorrow="x" * 20_000, small=1))
    assert details(large) == {"small": 1}
    (warning,) = large.meta.warnings
    assert warning["code"] == "unread_member"
    assert "tomorrow" in str(warning["message"])


def chat(*chunks: Wire) -> Message:
    said: Wire = {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}
    end: Wire = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return fold("openai-chat", *(said | chunk for chunk in chunks), end, named=False)


@pytest.mark.parametrize(
    "name",
    [
        "alignment",
        "graph_data",
        "metadata",
        "moderation",
        "safeguard_results",
        "time_info",
        "x_groq",
    ],
)
def test_the_last_value_of_a_chunk_counts(name: str) -> None:
    value: Any = [FACT] if name == "safeguard_results" else FACT
    message = chat({name: {"early": 1} if name != "safeguard_results" else []}, {name: value}, {})
    assert details(message) == {name: value}


def test_the_tools_of_a_server_are_one_part_with_their_last_state() -> None:
    tools = [{"index": 0, "type": "search", "arguments": "{}", "output": "x"}]
    begun = {"choices": [{"index": 0, "delta": {"executed_tools": [tools[0] | {"output": None}]}}]}
    done = {"choices": [{"index": 0, "delta": {"executed_tools": tools}}]}
    part = chat(begun, done).parts[-1]
    assert isinstance(part, ProviderPart)
    assert part.block == {"type": "executed_tools", "executed_tools": tools}


@pytest.mark.parametrize("name", ["context_management", "diagnostics", "container"])
@pytest.mark.parametrize("place", ["start", "delta", "beside the delta"])
def test_members_of_a_message_are_details(name: str, place: str) -> None:
    fact = {name: FACT}
    message: Wire = {"id": "m", "role": "assistant", "model": "c", "content": []}
    said = {"type": "text", "text": "Hi"}
    events: list[Wire] = [
        {"type": "message_start", "message": {**message, **(fact if place == "start" else {})}},
        {"type": "content_block_start", "index": 0, "content_block": said},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", **(fact if place == "delta" else {})},
            **(fact if place == "beside the delta" else {}),
        },
        {"type": "message_stop"},
    ]
    assert details(fold("anthropic-messages", *events)) == fact


def test_contents_of_tomorrow_are_parts() -> None:
    content = {"type": "future_part", "foo": "KEEP"}
    said = {"type": "output_text", "text": "Hi"}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [said, content]}
    body = {"id": "r", "object": "response", "status": "completed", "output": [item]}
    message = deltafold.fold(json.dumps(body).encode(), "openai-responses")
    text, part = message.parts
    assert message.text == "Hi"
    assert text.kind == "text"
    assert isinstance(part, ProviderPart)
    assert part.block == {"type": "message", "role": "assistant", "content": [content]}


@pytest.mark.parametrize("streamed", [True, False])
def test_blocks_of_tomorrow_of_cohere_are_parts(*, streamed: bool) -> None:
    block = {"type": "future", "foo": "KEEP"}
    end = {"finish_reason": "COMPLETE"}
    if streamed:
        events: list[Wire] = [
            {"type": "message-start", "id": "x", "delta": {"message": {"role": "assistant"}}},
            {"type": "content-start", "index": 0, "delta": {"message": {"content": block}}},
            {"type": "content-end", "index": 0},
            {"type": "message-end", "delta": end},
        ]
        message = fold("cohere-chat", *events)
    else:
        body = {"id": "x", **end, "message": {"role": "assistant", "content": [block]}}
        message = deltafold.fold(json.dumps(body).encode(), "cohere-chat")
    (part,) = message.parts
    assert isinstance(part, ProviderPart)
    assert part.block == block
