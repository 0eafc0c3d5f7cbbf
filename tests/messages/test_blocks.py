"""Messages seen as the blocks of the Messages API, and back."""

import json
from typing import Any

import pytest

from deltafold import (
    FileRefPart,
    ImagePart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    ToolSpec,
)
from deltafold.blocks import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    OtherBlock,
    ProgressMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    block_of,
    normalized,
    part_of,
)
from deltafold.message.messages import MessagePart

PARTS: list[tuple[MessagePart, type]] = [
    (TextPart(text="日本語 and text"), TextBlock),
    (ToolCallPart(tool_call_id="c", tool_name="f", arguments={"a": [1]}), ToolUseBlock),
    (ImagePart(mime_type="image/png", data="aGk="), ImageBlock),
    (ImagePart(mime_type="image/webp", url="https://example.org/a"), ImageBlock),
    (ToolResultPart(tool_call_id="c", content="done", status="success"), ToolResultBlock),
    (ToolResultPart(tool_call_id="c", content={"a": 1}, is_error=True), ToolResultBlock),
    (ToolResultPart(tool_call_id="c", content=[TextPart(text="a")]), ToolResultBlock),
    (ToolResultPart(tool_call_id="c", content=[FileRefPart(path="a.pdf")]), ToolResultBlock),
    (ThinkingPart(text="hm"), ThinkingBlock),
    (ThinkingPart(text="hm", provider_state={"dialect": "gemini", "data": {}}), ThinkingBlock),
    (ThinkingPart(text="hm", redacted=True), OtherBlock),
    (ImagePart(mime_type="image/tiff", data="aGk="), ImageBlock),
    (ImagePart(mime_type="image/png", url="gs://bucket/a.png"), ImageBlock),
    (FileRefPart(path="data:application/pdf;base64,aGk="), DocumentBlock),
    (FileRefPart(path="s3://bucket/a.pdf"), OtherBlock),
    (ProviderPart(dialect="gemini", block={"executableCode": {}}), OtherBlock),
    (TextPart(text=" "), TextBlock),
    (TextPart(text="no", refusal=True), TextBlock),
    (FileRefPart(path="a.pdf", mime_type="application/pdf"), OtherBlock),
    (ProviderPart(dialect="anthropic-messages", block={"type": "x"}), OtherBlock),
    (TextPart(text="cited", annotations=[{"type": "url"}]), TextBlock),
    (ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text='{ "a": 1 }'), ToolUseBlock),
    (ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text="{nonsense"), ToolUseBlock),
    (
        ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text="{", incomplete=True),
        ToolUseBlock,
    ),
    (TextPart(text="signed", provider_state={"dialect": "gemini", "data": {}}), TextBlock),
]


@pytest.mark.parametrize(("part", "kind"), PARTS)
def test_a_part_is_a_block_and_the_block_is_that_part(part: MessagePart, kind: type) -> None:
    block = block_of(part)
    assert type(block) is kind
    assert part_of(block) == part


def test_a_user_message_may_be_a_koding_request() -> None:
    asked = UserMessage.of("make it so", is_koding_request=True, koding_context="repo")
    assert (asked.role, asked.is_koding_request, asked.koding_context) == ("user", True, "repo")
    again = UserMessage.from_dict(asked.to_dict())
    assert again == asked
    assert (again.is_koding_request, again.koding_context) == (True, "repo")
    plain = UserMessage.of("hello")
    assert (plain.is_koding_request, plain.koding_context) == (False, None)


def test_results_alone_are_a_message_of_the_tools_that_a_user_sends() -> None:
    answer = UserMessage.of(ToolResultBlock(tool_use_id="c", content="done"))
    assert (answer.message.role, answer.role) == (Role.TOOL, "user")


def test_an_assistant_message_shows_its_cost_duration_response_and_error() -> None:
    message = Message.assistant("oops")
    message.meta.cost_usd = 0.5
    message.meta.duration_ms = 12.5
    message.meta.response_id = "r"
    message.meta.is_api_error_message = True
    shown = AssistantMessage(message)
    assert shown.content == [TextBlock(text="oops")]
    assert (shown.cost_usd, shown.duration_ms, shown.response_id) == (0.5, 12.5, "r")
    assert shown.is_api_error_message
    assert AssistantMessage.from_dict(shown.to_dict()) == shown
    assert shown.id == message.id


def test_the_json_of_an_answer_has_the_names_of_the_specification() -> None:
    message = Message.assistant("Hi")
    message.meta.cost_usd = 0.0
    message.meta.duration_ms = 12.5
    message.meta.response_id = "r"
    shown = AssistantMessage(message).to_dict()
    assert shown == {
        "id": str(message.id),
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi"}],
        "timestamp": message.to_dict()["timestamp"],
        "cost_usd": 0.0,
        "duration_ms": 12.5,
        "response_id": "r",
    }
    assert AssistantMessage.from_dict(shown).message == message


def test_parts_that_the_api_does_not_take_survive_the_json_and_are_not_sent() -> None:
    parts: list[MessagePart] = [part for part, _ in PARTS if part.kind != "tool_result"]
    view = AssistantMessage(Message(role=Role.ASSISTANT, parts=parts))
    assert len(view.content) == len(parts)
    wire = json.loads(json.dumps(view.to_dict()))
    assert AssistantMessage.from_dict(wire) == view
    assert "messages" in wire
    sent: Any = view.to_api()["content"]
    assert {block["type"] for block in sent} == {"text", "tool_use", "x"}


def test_a_call_that_must_not_be_run_shows_no_input() -> None:
    call = ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text='{"a"', incomplete=True)
    block = block_of(call)
    assert isinstance(block, ToolUseBlock)
    assert block.input is None
    assert block.to_dict()["input"] == {}


def test_a_view_of_no_message_or_of_too_many_is_refused() -> None:
    with pytest.raises(ValueError, match="shows a message, not none"):
        UserMessage()
    answer = AssistantMessage(Message.assistant("x"))
    wire = {**answer.to_dict(), "messages": [answer.message.to_dict()] * 2}
    with pytest.raises(ValueError, match="AssistantMessage shows one message, not 2"):
        AssistantMessage.from_dict(wire)


def test_a_view_refuses_other_roles() -> None:
    with pytest.raises(ValueError, match="assistant"):
        UserMessage(Message.assistant("x"))
    with pytest.raises(ValueError, match="user"):
        AssistantMessage(Message.user("x"))


def test_a_progress_message_survives_its_wire_form() -> None:
    progress = ProgressMessage(
        content=Message.assistant("running"),
        tool_use_id="c1",
        sibling_tool_use_ids=["c1", "c2"],
        tools=[ToolSpec(name="f")],
        normalized_messages=[Message.user("hello")],
    )
    assert ProgressMessage.from_dict(progress.to_dict()) == progress
    with pytest.raises(ValueError, match="tool_use_id"):
        ProgressMessage.from_dict({"content": Message.user("x").to_dict()})


def test_normalized_messages_have_one_part_each_and_ids_of_their_own() -> None:
    message = Message(role=Role.USER, parts=[TextPart(text="a"), TextPart(text="b")])
    shown = normalized([message, Message.user("c")])
    assert [one.text for one in shown] == ["a", "b", "c"]
    assert shown[0].id == message.id
    assert len({one.id for one in shown}) == 3
