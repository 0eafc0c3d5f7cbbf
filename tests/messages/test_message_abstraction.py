"""Messages and models, scenario by scenario of docs/blueprint.md#abstraction.

In: calls over real HTTP.  Out: the behaviour that the quoted words of the specification ask for.

Law: each test has a row in docs/blueprint.md with the same words, which test_blueprint.py checks.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import pytest
from pydantic import TypeAdapter

import deltafold
from deltafold import (
    AnthropicModel,
    ErrorCode,
    Message,
    ModelError,
    OpenAIChatModel,
    OpenAIResponsesModel,
    StreamEvent,
    ToolResultPart,
    ToolSpec,
    Usage,
)
from deltafold.blocks import (
    AssistantMessage,
    Block,
    DocumentBlock,
    ImageBlock,
    OtherBlock,
    ProgressMessage,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    block_from_dict,
    normalized,
)
from deltafold.testing import Recording, ReplayServer
from sdk_types import check
from wires import ANTHROPIC, chat, two_providers

T = TypeVar("T")
PNG: Final = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
WHOLE: Final = json.dumps(
    {
        "id": "resp-7",
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "cost": 0.25},
    }
).encode()


def words(*quotes: str) -> Callable[[T], T]:
    """Quote the words of the specification that a test checks."""
    assert all(quotes)
    return lambda test: test


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with two_providers() as replay:
        yield replay


def claude(server: ReplayServer) -> AnthropicModel:
    return AnthropicModel({"model_id": "m"}, base_url=server.url, api_key="k")


def gpt(server: ReplayServer) -> OpenAIChatModel:
    return OpenAIChatModel({"model_id": "m"}, base_url=f"{server.url}/v1", api_key="k")


def answered(server: ReplayServer) -> AssistantMessage:
    server.queue(Recording.of(WHOLE))
    with gpt(server) as model:
        return AssistantMessage(model.send_message_sync("Hello", stream=False))


def streamed(server: ReplayServer) -> list[StreamEvent]:
    with claude(server) as model, model.stream_message_sync("Weather?") as events:
        return list(events)


# Message Data Structure


@words("includes all required fields (id, role, content)")
def test_a_message_has_its_required_fields(server: ReplayServer) -> None:
    for message in (UserMessage.of("Hello"), answered(server)):
        wire = message.to_dict()
        assert {"id", "role", "content"} <= wire.keys()
        assert UUID(str(wire["id"])) == message.id
    assert UserMessage.of("Hello").to_dict()["role"] == "user"
    assert answered(server).to_dict()["content"] == [{"type": "text", "text": "Hi"}]
    for name in ("role", "content"):
        wire = {key: value for key, value in UserMessage.of("x").to_dict().items() if key != name}
        with pytest.raises(ValueError, match=f"^{name}: Field required"):
            UserMessage.from_dict(wire)


@words("includes optional metadata (timestamp, cost_usd, duration_ms, response_id)")
def test_a_message_has_optional_metadata(server: ReplayServer) -> None:
    answer = answered(server)
    wire = answer.to_dict()
    assert (wire["cost_usd"], wire["response_id"]) == (0.25, "resp-7")
    assert wire["duration_ms"] == answer.duration_ms
    assert str(wire["timestamp"]).endswith("Z")
    bare = AssistantMessage.from_dict({"role": "assistant", "content": "Hi"})
    assert (bare.cost_usd, bare.duration_ms, bare.response_id) == (None, None, None)
    assert bare.to_dict().keys() == {"id", "role", "content", "timestamp"}


# Content Block Types


@words("use TextBlock to store the content")
def test_plain_text_is_a_text_block() -> None:
    for content in ("Hello", [{"type": "text", "text": "Hello"}]):
        view = UserMessage.from_dict({"role": "user", "content": content})
        assert view.content == [TextBlock(text="Hello")]
        assert view.message.text == "Hello"


@words("support multi-language text")
@pytest.mark.parametrize(
    "text", ["日本語", "مرحبا", "हिन्दी", "👩🏽‍🚀", "e\u0301", "a\x00b", "a\r\nb"]
)
def test_text_is_of_any_language(text: str, server: ReplayServer) -> None:
    server.queue(Recording.of_events(chat(*text)))
    with gpt(server) as model:
        answer = AssistantMessage(model.send_message_sync(TextBlock(text=text)))
    sent: Any = server.requests[0].json()
    assert sent["messages"][0]["content"] == text
    assert answer.content == [TextBlock(text=text)]
    assert AssistantMessage.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer


@words("use ToolUseBlock to represent it", "include tool name and parameters")
def test_a_requested_call_is_a_tool_use_block(server: ReplayServer) -> None:
    with claude(server) as model:
        answer = AssistantMessage(model.send_message_sync("Weather?"))
    calls = [block for block in answer.content if isinstance(block, ToolUseBlock)]
    made = answer.message.tool_calls
    assert calls
    assert [(call.id, call.name) for call in calls] == [(c.tool_call_id, c.tool_name) for c in made]
    assert [call.input for call in calls] == [call.arguments for call in made]
    assert all(call.input for call in calls)


@words("use ImageBlock to store it")
def test_an_image_is_an_image_block(server: ReplayServer) -> None:
    view = UserMessage.from_dict({"role": "user", "content": [{"type": "image", "source": PNG}]})
    assert isinstance(view.content[0], ImageBlock)
    with claude(server) as model:
        model.send_message_sync([view])
    sent: Any = server.requests[0].json()
    assert sent["messages"][0]["content"] == [{"type": "image", "source": PNG}]


@words("support multiple image formats")
@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_images_have_several_formats(kind: str, server: ReplayServer) -> None:
    sources: list[dict[str, object]] = [
        {"type": "base64", "media_type": f"image/{kind}", "data": "aGk="},
        {"type": "url", "url": f"https://example.org/a.{kind}"},
        {"type": "file", "file_id": "file_1"},
    ]
    blocks = [block_from_dict({"type": "image", "source": source}) for source in sources]
    assert all(isinstance(block, ImageBlock) for block in blocks)
    with claude(server) as model:
        model.send_message_sync(blocks)
    sent: Any = server.requests[0].json()
    check("anthropic-messages", sent)
    assert [block["source"] for block in sent["messages"][0]["content"]] == sources


@words("use ToolResultBlock to represent the result")
def test_a_finished_execution_is_a_tool_result_block(server: ReplayServer) -> None:
    call: dict[str, object] = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    result = ToolResultBlock(tool_use_id="c", content=[TextBlock(text="21 C")])
    with claude(server) as model:
        model.send_message_sync(["Weather?", {"role": "assistant", "content": [call]}, result])
    sent: Any = server.requests[0].json()
    assert sent["messages"][2] == {"role": "user", "content": [result.to_dict()]}
    assert UserMessage.of(result).message.role == "tool"


@words("include the tool execution result and status")
def test_a_result_has_its_content_and_its_status() -> None:
    failed = ToolResultPart(tool_call_id="c", content="no", is_error=True, status="rejected")
    (block,) = UserMessage(Message(role=deltafold.Role.TOOL, parts=[failed])).content
    assert isinstance(block, ToolResultBlock)
    assert (block.content, block.is_error, block.status) == ("no", True, "rejected")
    assert block.to_dict()["is_error"] is True
    again = UserMessage.of(ToolResultBlock(tool_use_id="c", content="ok", status="success"))
    assert again.message.parts == [ToolResultPart(tool_call_id="c", content="ok", status="success")]
    assert UserMessage.from_dict(again.to_dict()) == again


# Model Adapter Interface


@words("provide a unified interface for interacting with different AI model providers")
def test_one_interface_serves_several_providers(server: ReplayServer) -> None:
    conversation = [UserMessage.of("Weather?", {"type": "image", "source": PNG})]
    with claude(server) as model:
        by_claude = AssistantMessage(model.send_message_sync(conversation))
    with gpt(server) as model:
        by_gpt = AssistantMessage(model.send_message_sync(conversation))
    for request, dialect in zip(
        server.requests, ("anthropic-messages", "openai-chat"), strict=True
    ):
        body: Any = request.json()
        check(dialect, body)
    assert isinstance(by_claude.content[-1], ToolUseBlock)
    assert isinstance(by_gpt.content[-1], ToolUseBlock)
    assert by_gpt.content[-1].name == "get_tides"


@words("send messages to the AI model API")
def test_send_message_sends_to_the_api(server: ReplayServer) -> None:
    answer = AssistantMessage.from_dict({"role": "assistant", "content": "Hi"})
    with claude(server) as model:
        model.send_message_sync(["Hello", answer, UserMessage.of("Bye")], system_prompt="Be brief.")
    sent: Any = server.requests[0].json()
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    assert [message["content"][0]["text"] for message in sent["messages"]] == ["Hello", "Hi", "Bye"]
    assert sent["system"] == [{"type": "text", "text": "Be brief."}]


@words("return the model response")
def test_send_message_returns_the_response(server: ReplayServer) -> None:
    with claude(server) as model:
        message = model.send_message_sync("Weather?")
    folded = deltafold.fold(ANTHROPIC, "anthropic-messages")
    assert (message.text, message.thinking) == (folded.text, folded.thinking)
    calls = [(call.tool_call_id, call.arguments) for call in message.tool_calls]
    assert calls == [(call.tool_call_id, call.arguments) for call in folded.tool_calls] != []
    assert message.role == "assistant"


@words("support both synchronous and asynchronous calls")
def test_calls_are_synchronous_and_asynchronous(server: ReplayServer) -> None:

    async def main() -> tuple[Message, list[StreamEvent]]:
        async with claude(server) as model:
            message = await model.send_message("Weather?")
            async with model.stream_message("Weather?") as events:
                return message, [event async for event in events]

    awaited, awaited_events = asyncio.run(main())
    with claude(server) as model:
        waited = model.send_message_sync("Weather?")
    assert awaited.parts == waited.parts
    assert [e.kind for e in awaited_events] == [e.kind for e in streamed(server)]


@words("支持流式和非流式两种响应模式")
@pytest.mark.parametrize("stream", [True, False])
def test_both_response_modes(stream: bool, server: ReplayServer) -> None:
    server.queue(Recording.of_events(chat("H", "i")) if stream else Recording.of(WHOLE))
    with gpt(server) as model:
        answer = AssistantMessage(model.send_message_sync("Hello", stream=stream))
    sent: Any = server.requests[0].json()
    assert bool(sent.get("stream")) is stream
    assert answer.content == [TextBlock(text="Hi")]


@words("establish a streaming connection")
def test_a_stream_has_a_connection_of_its_own(server: ReplayServer) -> None:
    with claude(server) as model, model.stream_message_sync("Weather?") as events:
        assert server.requests == []
        next(iter(events))
        sent: Any = server.requests[0].json()
        assert sent["stream"] is True
        assert server.connections == 1


@words("return content chunks progressively")
def test_content_comes_in_pieces(server: ReplayServer) -> None:
    events = streamed(server)
    message = events[-1].message
    assert message is not None
    for index, part in enumerate(message.parts):
        texts = [e.text or "" for e in events if e.kind == "part_delta" and e.part_index == index]
        whole = part.raw_args_text if isinstance(part, deltafold.ToolCallPart) else ""
        assert "".join(texts) == (whole or getattr(part, "text", ""))
        assert len(texts) > 1


@words("support real-time display")
@pytest.mark.parametrize("way", ["synchronous", "asynchronous"])
def test_a_piece_is_shown_before_the_next_is_sent(way: str, server: ReplayServer) -> None:
    body = chat("Hel", "lo")
    server.queue(Recording.of_events(body).stopping("stall", body.index(b"\n\n") + 2))

    async def main() -> str | None:
        async with gpt(server) as model, model.stream_message("Hello") as events:
            async for event in events:
                if event.kind == "part_delta":
                    return event.text
        return None

    if way == "asynchronous":
        assert asyncio.run(main()) == "Hel"
        return
    with gpt(server) as model, model.stream_message_sync("Hello") as events:
        shown = next(event.text for event in events if event.kind == "part_delta")
    assert shown == "Hel"


@words("support multiple stream chunk event types")
def test_a_stream_has_several_types_of_events(server: ReplayServer) -> None:
    assert {event.kind.value for event in streamed(server)} == {
        "message_start",
        "part_start",
        "part_delta",
        "part_stop",
        "tool_use",
        "usage",
        "message_stop",
    }


@words("include content block start, delta, stop")
def test_blocks_start_grow_and_stop(server: ReplayServer) -> None:
    events = streamed(server)
    message = events[-1].message
    assert message is not None
    for index in range(len(message.parts)):
        kinds = [event.kind.value for event in events if event.part_index == index]
        assert (kinds[0], kinds.count("part_start"), kinds.count("part_stop")) == (
            "part_start",
            1,
            1,
        )
        assert set(kinds[1 : kinds.index("part_stop")]) == {"part_delta"}
        assert kinds[kinds.index("part_stop") + 1 :] in ([], ["tool_use"])


@words("include tool use requests")
def test_requests_for_tools_are_events(server: ReplayServer) -> None:
    events = streamed(server)
    message = events[-1].message
    assert message is not None
    asked = [event.tool_call for event in events if event.kind == "tool_use"]
    assert asked == message.runnable_tool_calls != []


@words("include message stop and usage statistics")
def test_the_end_and_the_usage_are_events(server: ReplayServer) -> None:
    events = streamed(server)
    assert events[-1].kind == "message_stop"
    assert events[-1].finish_reason == "tool_calls"
    usages = [event.usage for event in events if event.kind == "usage"]
    assert events[-1].message is not None
    assert usages[-1] == events[-1].message.meta.usage
    assert usages[-1] is not None
    assert usages[-1].output_tokens


# Token Usage


@words("return the number of input tokens", "return the number of output tokens")
def test_an_answer_counts_its_tokens(server: ReplayServer) -> None:
    usage = answered(server).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (3, 2)


@words("optionally return total token count")
def test_the_total_of_tokens_is_optional(server: ReplayServer) -> None:
    usage = answered(server).usage
    assert usage is not None
    assert usage.total_tokens == 5
    assert Usage(input_tokens=3).total_tokens is None


# Message Metadata


@words("generate unique UUID as message identifier")
def test_every_message_has_a_uuid_of_its_own(server: ReplayServer) -> None:
    made = [UserMessage.of("Hello").id for _ in range(100)]
    made += [answered(server).id for _ in range(3)]
    assert len(set(made)) == len(made)
    assert {found.version for found in made} == {4}


@words("record creation timestamp")
def test_every_message_records_its_time(server: ReplayServer) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    for message in (UserMessage.of("Hello"), answered(server)):
        assert before <= message.timestamp <= datetime.now(UTC)
        assert message.timestamp.tzinfo is not None


@words("track token cost (cost_usd)")
def test_an_answer_tracks_its_cost(server: ReplayServer) -> None:
    assert answered(server).cost_usd == 0.25
    with claude(server) as model, model.stream_message_sync("Weather?") as events:
        unknown = AssistantMessage(events.final_message())
    assert unknown.cost_usd is None  # the price of model "m" is not known


@words("track execution time (duration_ms)")
def test_an_answer_tracks_its_duration(server: ReplayServer) -> None:
    server.queue(Recording.of_events(chat("a", "b"), delay=0.02))
    with gpt(server) as model:
        slow = AssistantMessage(model.send_message_sync("Hello"))
    assert slow.duration_ms is not None
    assert 50 <= slow.duration_ms < 30_000


@words("record response_id for correlation")
def test_an_answer_records_the_id_of_its_response(server: ReplayServer) -> None:
    answer = answered(server)
    assert answer.response_id == "resp-7"
    again = AssistantMessage.from_dict(json.loads(json.dumps(answer.to_dict())))
    server.queue(
        Recording.of(b'{"id":"resp-8","object":"response","status":"completed","output":[]}')
    )
    settings = {"model_id": "m", "previous_response_id": again.response_id}
    with OpenAIResponsesModel(settings, base_url=f"{server.url}/v1", api_key="k") as model:
        model.send_message_sync("And now?", stream=False)
    sent: Any = server.requests[-1].json()
    assert sent["previous_response_id"] == "resp-7"


# ProgressMessage


def progress() -> ProgressMessage:
    call: dict[str, object] = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    answer = AssistantMessage.of("Running", call, {**call, "id": "c2"})
    return ProgressMessage(
        content=answer.message,
        tool_use_id="c1",
        sibling_tool_use_ids=[call.tool_call_id for call in answer.message.tool_calls],
        tools=[ToolSpec(name="f", description="Run it.")],
        normalized_messages=normalized([Message.user("Go."), answer.message]),
    )


@words("use ProgressMessage to represent")
def test_progress_of_a_tool_is_a_progress_message() -> None:
    shown = progress()
    assert isinstance(shown.id, UUID)
    assert ProgressMessage.from_dict(json.loads(json.dumps(shown.to_dict()))) == shown


@words("includes original message content")
def test_progress_holds_the_original_message() -> None:
    shown = AssistantMessage(progress().content)
    assert shown.content[0] == TextBlock(text="Running")
    assert [block.type for block in shown.content] == ["text", "tool_use", "tool_use"]


@words("includes tool_use_id and sibling_tool_use_ids")
def test_progress_names_the_call_and_its_siblings() -> None:
    shown = progress()
    assert (shown.tool_use_id, shown.sibling_tool_use_ids) == ("c1", ["c1", "c2"])
    wire = shown.to_dict()
    assert (wire["tool_use_id"], wire["sibling_tool_use_ids"]) == ("c1", ["c1", "c2"])
    with pytest.raises(ValueError, match="tool_use_id"):
        ProgressMessage.from_dict({"content": Message.user("x").to_dict()})


@words("includes available tools list and normalized messages list")
def test_progress_lists_the_tools_and_the_messages_one_part_each() -> None:
    shown = ProgressMessage.from_dict(progress().to_dict())
    assert [tool.name for tool in shown.tools] == ["f"]
    assert [len(message.parts) for message in shown.normalized_messages] == [1, 1, 1, 1]
    assert len({message.id for message in shown.normalized_messages}) == 4


# User Message Options


@words("mark message as koding request")
def test_an_input_is_marked_as_a_koding_request(server: ReplayServer) -> None:
    asked = UserMessage.of("make it so", is_koding_request=True)
    assert asked.is_koding_request
    assert not UserMessage.of("make it so").is_koding_request
    assert UserMessage.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked
    assert asked.to_dict()["is_koding_request"] is True
    with claude(server) as model:
        model.send_message_sync([asked])
    check("anthropic-messages", _body(server))  # the mark is not sent


@words("optionally provide koding context information")
def test_a_koding_request_may_have_a_context() -> None:
    asked = UserMessage.of("make it so", is_koding_request=True, koding_context="in repo")
    again = UserMessage.from_dict(json.loads(json.dumps(asked.to_dict())))
    assert (again.is_koding_request, again.koding_context) == (True, "in repo")
    assert UserMessage.of("x", is_koding_request=True).koding_context is None


def _body(server: ReplayServer) -> Any:  # noqa: ANN401 - JSON
    return server.requests[-1].json()


# Error Marking


@words("mark message as API error (is_api_error_message)")
def test_a_failed_call_is_marked_as_an_error_of_the_api(server: ReplayServer) -> None:
    refusal = Recording.error(529, {"type": "error", "error": {"type": "overloaded_error"}})
    server.queue(refusal, refusal)
    with claude(server) as model:
        with pytest.raises(ModelError) as raised:
            model.send_message_sync("Hello")
        failed = AssistantMessage(model.send_message_sync("Hello", on_error="message"))
        fine = AssistantMessage(model.send_message_sync("Hello"))
    assert raised.value.code is ErrorCode.OVERLOADED
    assert (failed.is_api_error_message, fine.is_api_error_message) == (True, False)
    assert failed.to_dict()["is_api_error_message"] is True
    assert AssistantMessage.from_dict(json.loads(json.dumps(failed.to_dict()))) == failed


# Implementation Notes


@words("遵循 Anthropic Messages API 的消息格式")
def test_messages_have_the_form_of_the_messages_api(server: ReplayServer) -> None:
    with claude(server) as model:
        answer = AssistantMessage(model.send_message_sync("Weather?"))
        results = [
            ToolResultBlock(tool_use_id=block.id, content="21 C")
            for block in answer.content
            if isinstance(block, ToolUseBlock)
        ]
        turn: list[dict[str, object]] = [
            {"role": "user", "content": "Weather?"},
            answer.to_api(),
        ]
        model.send_message_sync([*turn, UserMessage.of(*results).to_api()])
    body = _body(server)
    check("anthropic-messages", body)
    assert body["messages"][1] == answer.to_api()


@words("使用 `tool_use` 和 `tool_result` 内容块")
def test_calls_and_results_are_content_blocks() -> None:
    call = deltafold.ToolCallPart(tool_call_id="c", tool_name="f", arguments={"a": 1})
    assert AssistantMessage(Message.assistant(call)).to_api() == {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}],
    }
    assert UserMessage(Message.tool_result("c", "done", is_error=True)).to_api() == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": "done", "is_error": True}
        ],
    }


BLOCKS: Final[list[Block]] = [
    TextBlock(text="a"),
    ImageBlock.model_validate({"source": PNG}),
    DocumentBlock.model_validate({"source": {**PNG, "media_type": "application/pdf"}}),
    ToolUseBlock(id="c", name="f", input={"a": [None]}),
    ToolResultBlock(tool_use_id="c", content=[TextBlock(text="a")], is_error=True),
    ThinkingBlock(thinking="hm", signature="c2ln"),
    RedactedThinkingBlock(data="ZGF0YQ=="),
    OtherBlock(type="hologram"),
]


@words("所有类型必须支持 serde 序列化/反序列化")
def test_all_types_are_written_as_json_and_read_again(server: ReplayServer) -> None:
    adapter: TypeAdapter[Block] = TypeAdapter(Block)
    for block in BLOCKS:
        assert adapter.validate_json(adapter.dump_json(block)) == block
        assert block_from_dict(json.loads(json.dumps(block.to_dict()))) == block
    answer = answered(server)
    assert AssistantMessage.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer
    asked = UserMessage.of("a", BLOCKS[1], koding_context="repo")
    assert UserMessage.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked
    assert Message.from_json(answer.message.to_json()) == answer.message
    assert ProgressMessage.from_dict(json.loads(json.dumps(progress().to_dict()))).tools
    usage = answer.usage
    assert usage is not None
    assert Usage.model_validate_json(usage.model_dump_json()) == usage
