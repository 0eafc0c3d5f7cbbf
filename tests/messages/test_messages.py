"""Messages: both forms of input, the wire form, role rules, helpers, and what a fold builds."""

import copy
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, ValidationError

from deltafold.contract.kinds import FinishReason
from deltafold.contract.usage import Usage
from deltafold.message.messages import (
    KINDS_OF_ROLE,
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    Meta,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolResultPart,
    message_from_fold,
    message_of_text,
    parts_from_fold,
)
from sample_parts import PARTS, STATE

ID = UUID("0f5cba8a-1d0f-4a3c-9a94-6f6a38d3a1b2")
TIME = "2026-01-02T03:04:05.678Z"


def a_part_of(kind: str) -> MessagePart:
    return next(part for part, _ in PARTS if part.kind == kind)


ALL_KINDS = ["text", "thinking", "tool_call", "tool_result", "image", "file_ref", "provider"]


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_role_holds_only_its_kinds(role: Role, kind: str) -> None:
    part = a_part_of(kind)
    if kind in KINDS_OF_ROLE[role]:
        assert Message(role=role, parts=[part]).parts == [part]
        return
    with pytest.raises(ValidationError) as caught:
        Message(role=role, parts=[a_part_of(KINDS_OF_ROLE[role][0]), part])
    assert f"a {role} message cannot hold a {kind} part (parts[1])" in str(caught.value)


def test_a_tool_message_answers_each_call_once() -> None:
    one, two = (ToolResultPart(tool_call_id=name, content="x") for name in ("a", "b"))
    assert len(Message(role=Role.TOOL, parts=[one, two]).parts) == 2
    with pytest.raises(ValidationError, match="not two for one"):
        Message(role=Role.TOOL, parts=[one, one])
    with pytest.raises(ValidationError, match="at least one"):
        Message(role=Role.TOOL, parts=[])


WIRE_MESSAGE: dict[str, Any] = {
    "id": str(ID),
    "runId": "run-1",
    "role": "assistant",
    "parts": [wire for part, wire in PARTS if part.kind != "tool_result"],
    "timestamp": TIME,
    "meta": {
        "usage": {
            "inputTokens": 1,
            "outputTokens": None,
            "totalTokens": None,
            "cost": 0.25,
            "details": {"raw": {"x": None}},
        },
        "costUsd": 0.25,
        "costSource": "provider",
        "durationMs": 12.5,
        "responseId": "resp",
        "modelId": "model",
        "finishReason": "tool_calls",
        "rawFinishReason": "tool_use",
        "isApiErrorMessage": True,
        "parseErrors": [{"toolCallId": "c", "message": "m"}],
        "warnings": [{"code": "noise", "message": "m", "offset": 3}],
        "trace": {"span": "1"},
        "approvals": [{"by": "me"}],
        "my_own": {"deep": [1, {"x": None}]},
    },
}


def test_json_to_message_to_json_changes_nothing() -> None:
    text = json.dumps(WIRE_MESSAGE)
    message = Message.from_json(text)
    assert message.to_dict() == WIRE_MESSAGE
    assert json.loads(message.to_json()) == WIRE_MESSAGE
    assert json.loads(message.model_dump_json(by_alias=True)) == WIRE_MESSAGE
    assert Message.from_dict(message.to_dict()) == message
    assert Message.from_json(message.to_json().encode()) == message
    assert Message.model_validate(message.model_dump()) == message


def test_a_message_is_a_field_of_a_users_model() -> None:
    class Conversation(BaseModel):
        messages: list[Message]

    conversation = Conversation.model_validate({"messages": [WIRE_MESSAGE]})
    assert conversation.messages[0].meta.model_id == "model"
    assert json.loads(conversation.model_dump_json()) == {"messages": [WIRE_MESSAGE]}
    modes: list[Literal["validation", "serialization"]] = ["validation", "serialization"]
    for mode in modes:
        schema = json.dumps(Conversation.model_json_schema(mode=mode))
        assert "toolCallId" in schema
        assert "tool_call_id" not in schema


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"role": "robot"}, "role"),
        ({"id": "no uuid"}, "id"),
        ({"timestamp": "yesterday"}, "timestamp"),
        ({"timestamp": "2026-01-02T03:04:05"}, "timezone"),
        ({"parts": "text"}, "parts"),
        ({"parts": [5]}, "parts.0"),
        ({"content": "x"}, "content\n  Extra"),
        ({"meta": []}, "meta"),
        ({"meta": {"usage": {"inputTokens": -1}}}, "meta.usage.inputTokens"),
        ({"meta": {"usage": {"inputTokens": True}}}, "meta.usage.inputTokens"),
        ({"meta": {"finishReason": "bored"}}, "meta.finishReason"),
    ],
)
def test_a_bad_message_is_refused_with_the_place_of_the_fault(
    changes: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Message.from_dict({**WIRE_MESSAGE, **changes})
    assert complaint in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"role": "user"}', b"\xff"])
def test_text_that_is_no_message_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValidationError):
        Message.from_json(text)


def test_a_timestamp_is_utc_with_milliseconds() -> None:
    east = timezone(timedelta(hours=2))
    local = datetime(2026, 1, 2, 5, 4, 5, 678_901, tzinfo=east)
    message = Message(role=Role.USER, parts=[], timestamp=local)
    assert message.to_dict()["timestamp"] == TIME
    assert Message.from_json(message.to_json()) == message
    assert Message.user("x").timestamp.tzinfo is UTC


def test_constructors_that_a_user_reaches_for() -> None:
    image = ImagePart(mime_type="image/png", url="u")
    assert Message.user("look", image).parts == [TextPart(text="look"), image]
    assert Message.system("be kind", run_id="r").run_id == "r"
    assert Message.assistant(ThinkingPart(text="hm"), "yes").text == "yes"
    result = Message.tool_result("c", [TextPart(text="ok")], is_error=True, status="partial")
    assert result.role is Role.TOOL
    assert result.parts == [
        ToolResultPart(
            tool_call_id="c", content=[TextPart(text="ok")], is_error=True, status="partial"
        )
    ]
    assert Message.tool_result("c", {"n": 1}).to_dict()["parts"] == [
        {
            "kind": "tool_result",
            "payload": {"toolCallId": "c", "isError": False, "content": {"n": 1}},
        }
    ]
    with pytest.raises(ValidationError, match="a user message cannot hold a thinking part"):
        Message.user(ThinkingPart(text="hm"))


def test_same_content_ignores_id_and_time_only() -> None:
    message = Message.from_dict(WIRE_MESSAGE)
    twin = Message.from_dict(
        {**WIRE_MESSAGE, "id": str(UUID(int=1)), "timestamp": "2027-01-02T03:04:05.000Z"}
    )
    assert message.same_content(twin)
    assert message != twin
    others: list[dict[str, object]] = [
        {"runId": "other"},
        {"parts": WIRE_MESSAGE["parts"][1:]},
        {"meta": {}},
    ]
    for changes in others:
        assert not message.same_content(Message.from_dict({**WIRE_MESSAGE, **changes}))


def test_helpers_read_the_parts() -> None:
    message = Message.from_dict(WIRE_MESSAGE)
    assert message.text == "hi"
    assert message.thinking == ""
    assert [call.raw_args_text for call in message.tool_calls] == [
        '{"a": 1.50}',
        "[1]",
        "null",
        '{"a',
        "ls",
    ]
    # The message has every member, that of a failed one too.
    assert message.runnable_tool_calls == []
    message.meta.is_api_error_message = False
    assert [call.arguments for call in message.runnable_tool_calls] == [
        {"a": 1.5},
        {},
        {"input": "ls"},
    ]


@pytest.mark.parametrize(
    ("block", "awaits"),
    [
        ({"type": "local_shell_call", "call_id": "1"}, True),
        ({"type": "apply_patch_call"}, True),
        ({"type": "computer_call"}, True),
        ({"type": "mcp_approval_request", "id": "1"}, True),
        ({"type": "shell_call", "environment": {"type": "local"}}, True),
        ({"type": "shell_call"}, True),
        ({"type": "shell_call", "environment": None}, True),
        ({"type": "shell_call", "environment": {"type": "container_reference"}}, False),
        ({"type": "tool_search_call", "execution": "client"}, True),
        ({"type": "tool_search_call", "execution": "server"}, False),
        ({"type": "tool_search_call"}, False),
        ({"type": "web_search_call"}, False),
        ({"type": ["computer_call"]}, False),
        ({}, False),
    ],
)
def test_client_actions_are_the_blocks_that_wait_for_the_caller(
    block: dict[str, object], *, awaits: bool
) -> None:
    part = ProviderPart(dialect="openai-responses", block=block)
    assert Message.assistant(part).client_actions == ([part] if awaits else [])


def test_a_shell_call_that_its_provider_ran_waits_for_nobody() -> None:
    call = ProviderPart(dialect="d", block={"type": "shell_call", "call_id": "1"})
    output = ProviderPart(dialect="d", block={"type": "shell_call_output", "call_id": "1"})
    other = ProviderPart(dialect="d", block={"type": "shell_call", "call_id": ["2"]})
    assert Message.assistant(call, output, other).client_actions == [other]


def folded(raw: str = '{"a": 1}', **changes: object) -> Message:
    call: dict[str, object] = {
        "kind": "tool_call",
        "tool_call_id": "c",
        "tool_name": "f",
        "raw_args_text": raw,
        "incomplete": False,
        "input_format": "json",
        "ended": True,
        "provider_state": None,
    }
    text: dict[str, object] = {
        "kind": "text",
        "text": "hi",
        "annotations": None,
        "refusal": False,
        "provider_state": STATE,
    }
    thinking: dict[str, object] = {
        "kind": "thinking",
        "text": "hm",
        "redacted": False,
        "provider_state": None,
    }
    whole: dict[str, object] = {"kind": "part", "part": PARTS[-1][1]}
    return message_from_fold(
        message_id=ID,
        run_id="r",
        timestamp=datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC),
        parts=[thinking, text, {**call, **changes}, whole],
        meta={
            "usage": Usage(input_tokens=1),
            "finish_reason": "stop",
            "response_id": "resp",
            "model_id": "",
        },
    )


def test_a_folded_message_equals_the_validated_one() -> None:
    message = folded()
    validated = Message.from_json(message.to_json())
    assert validated == message
    assert repr(validated.parts[2].model_dump()) == repr(message.parts[2].model_dump())
    assert message.meta.finish_reason is FinishReason.STOP
    assert message.meta.model_id is None
    assert message.meta.parse_errors == []
    assert message.role is Role.ASSISTANT
    assert Message.model_validate(message) is message


def pickled(message: Message) -> Message:
    twin = pickle.loads(pickle.dumps(message))  # noqa: S301
    assert isinstance(twin, Message)
    return twin


CLONES: list[Callable[[Message], Message]] = [
    copy.copy,
    copy.deepcopy,
    pickled,
    Message.model_copy,
]


@pytest.mark.parametrize("read_first", [False, True])
@pytest.mark.parametrize("clone", CLONES)
def test_a_folded_message_survives_copies_before_and_after_its_first_reading(
    clone: Callable[[Message], Message], *, read_first: bool
) -> None:
    message = folded("[1, 2]")
    if read_first:
        assert message.meta.parse_errors
    twin = clone(message)
    assert twin == message
    assert twin.to_json() == message.to_json()
    assert twin.meta.parse_errors == message.meta.parse_errors
    assert repr(twin) == repr(message)


def test_arguments_of_a_folded_call_are_parsed_once_when_first_read() -> None:
    call = folded().tool_calls[0]
    own = BaseModel.__dict__["__dict__"].__get__  # `vars` makes all fields
    assert "arguments" not in own(call)
    assert call.arguments is call.arguments
    assert call.arguments == {"a": 1}
    assert own(call)["arguments"] is vars(call)["arguments"] is call.arguments
    with pytest.raises(AttributeError):
        getattr(call, "no_such_member")  # noqa: B009 - the point is that it is not declared


def test_parse_errors_of_a_folded_message_are_listed_in_its_meta() -> None:
    message = folded("{nonsense}")
    [call] = message.tool_calls
    assert call.arguments is None
    assert call.parse_error is not None
    assert message.meta.parse_errors == [{"toolCallId": "c", "message": call.parse_error}]
    assert message.runnable_tool_calls == []
    assert Message.from_json(message.to_json()) == message


@pytest.mark.parametrize("changes", [{"incomplete": True}, {"ended": False}])
def test_a_call_that_is_cut_off_or_still_open_has_no_arguments_and_no_fault(
    changes: dict[str, object],
) -> None:
    message = folded('{"a": 1}', **changes)
    [call] = message.tool_calls
    assert (call.arguments, call.parse_error, call.parse_warning) == (None, None, None)
    assert call.incomplete is ("incomplete" in changes)
    assert message.runnable_tool_calls == []
    assert message.meta.parse_errors == []
    assert Message.from_json(message.to_json()) == message


def test_free_text_of_a_folded_call_is_its_input() -> None:
    [call] = folded("ls", input_format="text").tool_calls
    assert call.arguments == {"input": "ls"}


def test_parts_from_fold_builds_parts_alone() -> None:
    [part] = parts_from_fold(
        [{"kind": "part", "part": {"kind": "file_ref", "payload": {"path": "p"}}}]
    )
    assert part == FileRefPart(path="p")


def test_meta_is_open_and_mutable() -> None:
    meta = Meta(cost_usd=0.5)
    meta.cost_source = "price_table"
    mine = Meta.model_validate({"mine": 1, "costUsd": 0.5})
    assert mine.model_dump() == {"costUsd": 0.5, "mine": 1}
    assert meta != mine
    assert meta == Meta(cost_usd=0.5, cost_source="price_table")
    assert Meta().model_dump() == {}


def test_usage_speaks_both_forms() -> None:
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3, cache_read_tokens=0)
    wire = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3, "cacheReadTokens": 0}
    assert usage.model_dump() == wire
    assert Usage.model_validate(wire) == usage
    assert Usage.model_validate_json(json.dumps(wire)) == usage
    assert Usage().model_dump() == {
        "inputTokens": None,
        "outputTokens": None,
        "totalTokens": None,
    }
    with pytest.raises(ValidationError, match="frozen"):
        setattr(usage, "cost", 1.0)  # noqa: B010 - a checker refuses the assignment, rightly


@pytest.mark.parametrize("role", [Role.USER, Role.SYSTEM])
@pytest.mark.parametrize("text", ["", "Hello", "héllo\n😀"])
def test_a_message_of_one_text_equals_a_validated_one(role: Role, text: str) -> None:
    made = message_of_text(role, text)
    validated = Message(
        id=made.id, role=role, parts=[TextPart(text=text)], timestamp=made.timestamp
    )
    assert made == validated
    assert vars(made) == vars(validated)
    assert list(vars(made)) == list(vars(validated))
    assert vars(made.meta) == vars(validated.meta)
    assert made.model_dump() == validated.model_dump()
    assert made.to_json() == validated.to_json()
    assert Message.from_json(made.to_json()) == made
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made  # noqa: S301 - our own
    assert made.id.version == 4
    assert made.timestamp.microsecond % 1000 == 0
    assert made.timestamp.tzinfo is UTC


def test_messages_of_one_text_share_nothing() -> None:
    first, second = message_of_text(Role.USER, "a"), message_of_text(Role.USER, "a")
    assert first.id != second.id
    first.meta.warnings.append({"code": "x"})
    first.parts.append(TextPart(text="b"))
    assert not second.meta.warnings
    assert second.text == "a"


def test_a_text_that_no_message_can_hold_is_refused_with_its_place() -> None:
    with pytest.raises(ValidationError, match="lone surrogate at character 1"):
        message_of_text(Role.USER, "a\ud800")
