"""Messages of every form, given to a Model: over real HTTP, synchronously and asynchronously.

In: messages, views, blocks, texts and the JSON of several protocols.  Out: the body that arrives,
and the answer as an `AssistantMessage`.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final, cast
from uuid import UUID

import pytest

from block_bodies import MIXED, PNG
from corpus import ROOT
from deltafold import (
    AnthropicModel,
    ImagePart,
    Message,
    MisuseError,
    Model,
    OpenAIChatModel,
    StreamEventKind,
    TextPart,
    ToolCallPart,
    ToolSpec,
)
from deltafold.blocks import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    block_from_dict,
)
from deltafold.models.call_inputs import Messages
from deltafold.testing import Recording, ReplayServer
from sdk_types import check
from wires import two_providers

WAYS = pytest.mark.parametrize("way", ["synchronous", "asynchronous"])
TEXT: Final[dict[str, object]] = {"type": "text", "text": "What is it?"}
MARKED: Final[dict[str, object]] = {**TEXT, "cache_control": {"type": "ephemeral"}}
IMAGE: Final[dict[str, object]] = {"type": "image", "source": PNG}
CALL: Final[dict[str, object]] = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
THOUGHT: Final[dict[str, object]] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
RESULT: Final[dict[str, object]] = {"type": "tool_result", "tool_use_id": "a", "content": "21 C"}


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with two_providers() as replay:
        yield replay


def claude(server: ReplayServer) -> AnthropicModel:
    return AnthropicModel({"model_id": "m"}, base_url=server.url, api_key="secret")


def ask(model: Model[Any], way: str, messages: Messages, **arguments: Any) -> Message:  # noqa: ANN401
    async def main() -> Message:
        async with model:
            message: Message = await model.send_message(messages, output=None, **arguments)
            return message

    if way == "asynchronous":
        return asyncio.run(main())
    with model:
        message: Message = model.send_message_sync(messages, output=None, **arguments)
        return message


def sent(server: ReplayServer, way: str, messages: Messages) -> list[dict[str, Any]]:
    """Send messages, and return those that arrived."""
    ask(claude(server), way, messages)
    body: Any = server.requests[-1].json()
    check("anthropic-messages", body)
    arrived: list[dict[str, Any]] = body["messages"]
    return arrived


ONE: Final[list[tuple[str, Messages, list[dict[str, object]]]]] = [
    ("a text", "What is it?", [TEXT]),
    ("a message", Message.user("What is it?"), [TEXT]),
    ("the wire form of a message", Message.user("What is it?").to_dict(), [TEXT]),
    ("a view", UserMessage.of("What is it?"), [TEXT]),
    ("the JSON of a view", UserMessage.of("What is it?").to_dict(), [TEXT]),
    ("a block", TextBlock(text="What is it?"), [TEXT]),
    ("the JSON of a block", MARKED, [MARKED]),
    ("a message of the API", {"role": "user", "content": [MARKED, IMAGE]}, [MARKED, IMAGE]),
    ("a message of both APIs", {"role": "user", "content": [TEXT]}, [TEXT]),
    ("blocks", [TextBlock(text="What is it?"), block_from_dict(IMAGE)], [TEXT, IMAGE]),
    ("a text and the JSON of a block", ["What is it?", IMAGE], [TEXT, IMAGE]),
    (
        "a message of parts",
        [Message.user(TextPart(text="What is it?"), ImagePart(mime_type="image/png", data="aGk="))],
        [TEXT, {"type": "image", "source": {**PNG, "data": "aGk="}}],
    ),
    (
        "the Chat form",
        [
            {
                "role": "user",
                "content": [
                    TEXT,
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                ],
            }
        ],
        [TEXT, {"type": "image", "source": {**PNG, "data": "aGk="}}],
    ),
]


@WAYS
@pytest.mark.parametrize(("messages", "content"), [row[1:] for row in ONE], ids=[r[0] for r in ONE])
def test_one_message_of_each_form_arrives(
    messages: Messages, content: list[object], way: str, server: ReplayServer
) -> None:
    assert sent(server, way, messages) == [{"role": "user", "content": content}]


@WAYS
def test_all_forms_may_be_mixed_in_one_list(way: str, server: ReplayServer) -> None:
    conversation: Messages = [
        {"role": "user", "content": "What is it?"},
        AssistantMessage.from_dict({"role": "assistant", "content": [THOUGHT, CALL]}),
        {"role": "user", "content": [RESULT]},
        Message.assistant("21 C"),
        "And now?",
        ImageBlock.model_validate(IMAGE),
        Message.assistant(ToolCallPart(tool_call_id="b", tool_name="f", arguments={})),
        UserMessage.of(ToolResultBlock(tool_use_id="b", content="22 C"), "Sure?"),
    ]
    assert sent(server, way, conversation) == [
        {"role": "user", "content": [TEXT]},
        {"role": "assistant", "content": [THOUGHT, CALL]},
        {"role": "user", "content": [RESULT]},
        {"role": "assistant", "content": [{"type": "text", "text": "21 C"}]},
        {"role": "user", "content": [{"type": "text", "text": "And now?"}, IMAGE]},
        {"role": "assistant", "content": [{**CALL, "id": "b", "input": {}}]},
        {
            "role": "user",
            "content": [
                {**RESULT, "tool_use_id": "b", "content": "22 C"},
                {"type": "text", "text": "Sure?"},
            ],
        },
    ]


@WAYS
def test_results_and_text_of_one_message_arrive_in_one_message(
    way: str, server: ReplayServer
) -> None:
    calls = [{**CALL, "id": call_id} for call_id in "ab"]
    conversation: Messages = ["Go.", {"role": "assistant", "content": calls}, MIXED]
    assert sent(server, way, conversation)[2] == MIXED


@WAYS
def test_another_provider_gets_the_same_conversation(way: str, server: ReplayServer) -> None:
    model = OpenAIChatModel({"model_id": "m"}, base_url=f"{server.url}/v1", api_key="secret")
    ask(
        model,
        way,
        ["Go.", {"role": "assistant", "content": [CALL]}, {**MIXED, "content": [RESULT]}],
    )
    body: Any = server.requests[-1].json()
    check("openai-chat", body)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool"]
    assert json.loads(body["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"x": 1}
    assert body["messages"][2]["content"] == "21 C"


@WAYS
def test_an_answer_shows_blocks_with_id_time_cost_and_duration(
    way: str, server: ReplayServer
) -> None:
    whole = json.dumps(
        {
            "id": "r",
            "model": "m",
            "choices": [
                {"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.5},
        }
    )
    server.queue(Recording.of(whole.encode()))
    model = OpenAIChatModel({"model_id": "m"}, base_url=f"{server.url}/v1", api_key="secret")
    answer = AssistantMessage(ask(model, way, "Hello", stream=False))
    assert isinstance(answer.id, UUID)
    assert answer.timestamp.tzinfo is not None
    assert (answer.role, answer.content) == ("assistant", [TextBlock(text="Hi")])
    assert (answer.cost_usd, answer.response_id) == (0.5, "r")
    assert answer.duration_ms is not None
    assert answer.duration_ms > 0
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1, 2)
    assert AssistantMessage.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer


@WAYS
def test_an_answer_goes_back_with_the_results_of_its_calls(way: str, server: ReplayServer) -> None:
    answer = AssistantMessage(ask(claude(server), way, "Hello"))
    calls = [block for block in answer.content if isinstance(block, ToolUseBlock)]
    assert calls
    results = [ToolResultBlock(tool_use_id=call.id, content="done") for call in calls]
    arrived = sent(server, way, ["Hello", answer, UserMessage.of(*results)])
    assert arrived[1] == answer.to_api()
    assert [block["type"] for block in arrived[1]["content"]] == [b.type for b in answer.content]
    assert [block["tool_use_id"] for block in arrived[2]["content"]] == [call.id for call in calls]


@WAYS
def test_events_of_a_message_of_blocks_come_as_of_any_other(way: str, server: ReplayServer) -> None:
    messages: Messages = [TextBlock(text="Hello")]
    model = claude(server)

    async def main() -> list[StreamEventKind]:
        async with model, model.stream_message(messages) as events:
            return [event.kind async for event in events]

    if way == "asynchronous":
        kinds = asyncio.run(main())
    else:
        with model, model.stream_message_sync(messages) as events:
            kinds = [event.kind for event in events]
    assert kinds[0] is StreamEventKind.MESSAGE_START
    assert kinds[-1] is StreamEventKind.MESSAGE_STOP
    assert server.requests[-1].json() is not None


WRONG: Final[list[tuple[Any, str]]] = [
    (["a", {"role": "user", "content": [{**IMAGE, "source": {**PNG, "data": 5}}]}],
     r"^messages\[1\]\.content\[0\]\.source\.data: Input should be a valid string \(got int\)$"),
    (["a", {"type": "image"}], r"^messages\[1\]\.source: Field required$"),
    (["a", {"role": "user", "content": [RESULT, {"text": "a"}]}],
     r"^messages\[1\]\.content\[1\]\.type: Field required$"),
    ([ThinkingBlock(thinking="hm")], r"^messages\[0\]: thinking is a block of the assistant"),
    ([Message.user("a"), 5], r"^messages\[1\] must be a message, a block, .*, not a int$"),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "told"), WRONG, ids=[told for _, told in WRONG])
def test_a_wrong_message_raises_at_the_call_and_names_its_place(messages: Any, told: str) -> None:  # noqa: ANN401
    model = AnthropicModel({"model_id": "m"}, api_key="secret")
    with pytest.raises((ValueError, MisuseError), match=told):
        model.stream_message_sync(messages)
    with pytest.raises((ValueError, MisuseError), match=told):
        model.stream_message(messages)


def test_the_example_of_the_guide_runs(server: ReplayServer) -> None:
    guide = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    section = guide.partition("### Blocks of the Messages API\n")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    tools = [ToolSpec(name="weather")]
    with claude(server) as model:
        exec(compile(code, "models.md", "exec"), {"model": model, "tools": tools})  # noqa: S102 - our own documentation
    first, second = (request.json() for request in server.requests)
    check("anthropic-messages", cast("Any", first))
    check("anthropic-messages", cast("Any", second))
    reply = cast("Any", second)["messages"][2]["content"]
    assert [block["type"] for block in reply] == ["tool_result", "text"]
