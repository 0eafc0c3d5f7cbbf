"""One conversation over two providers, over real HTTP, synchronous and asynchronous.

Parallel calls, an image as a result, a cut stream, a failed tool, a failed execution, a compaction.
The log that a file keeps replays to the same messages, and the clients' types accept each request.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import sdk_types
from deltafold import (
    AnthropicModel,
    ErrorCode,
    ImagePart,
    Message,
    Model,
    ModelError,
    OpenAIChatModel,
    ToolCallPart,
    ToolSpec,
)
from deltafold.conversation import (
    AgentState,
    ContextAttachment,
    ContextBuildResult,
    ContextInput,
    ContextManager,
    HistoryToolCallResult,
    LevelOfDetailSections,
    LogFile,
    MemoryNotebookWidget,
    ModelInputEntry,
    ModelInvocationDescriptor,
    ModelOutputEntry,
    Session,
    ToolExecutionStatus,
    ToolResultsEntry,
    to_messages,
)
from deltafold.testing import Recording, ReplayServer
from wires import claude, event, gpt

CHART = ImagePart(
    mime_type="image/png",
    data="iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=",
)
TOOLS = [
    ToolSpec(
        name=name,
        description="A tool.",
        parameter_schema={"type": "object", "properties": {"place": {"type": "string"}}},
    )
    for name in ("chart", "tide", "book")
]
BUDGET = 900


def thinking_claude() -> bytes:
    """Write an answer with signed reasoning before two calls."""
    plain = claude(
        "First the tides.",
        ("t1", "chart", {"place": "Brest"}),
        ("t2", "tide", {"place": "Atlantis"}),
    )
    start, rest = plain.split(b"event: content_block_start", 1)
    deltas: list[dict[str, object]] = [
        {"type": "thinking_delta", "thinking": "Two lookups."},
        {"type": "signature_delta", "signature": "c2lnbmF0dXJl"},
    ]
    block = {"type": "thinking", "thinking": "", "signature": ""}
    thought = event({"type": "content_block_start", "index": 9, "content_block": block})
    for delta in deltas:
        thought += event({"type": "content_block_delta", "index": 9, "delta": delta})
    thought += event({"type": "content_block_stop", "index": 9})
    return start + thought + b"event: content_block_start" + rest


BOOK = gpt("", ("c1", "book", {"place": "Brest"}))
SCRIPT = [
    Recording.of_events(thinking_claude()),
    Recording.of_events(BOOK).stopping("cut", len(BOOK) // 3),
    Recording.of_events(BOOK),
    Recording.of_events(gpt("The booking failed. " + "Long story. " * 300)),
    Recording.of_events(claude("They looked up tides and tried to book a boat.")),
    Recording.of_events(claude("In short: no boat.")),
]

Ask = Callable[[Model[Any], Sequence[Message]], Message]


class Conversation:
    """The steps of the conversation that both ways of calling share."""

    def __init__(self, log: LogFile, planner: Model[Any], worker: Model[Any]) -> None:
        self.state = AgentState.create_default("You plan trips by the tides.", log=log)
        self.planner = planner
        self.worker = worker

    def keep(self, model: Model[Any], message: Message) -> ModelOutputEntry:
        info = model.model_info()
        invocation = ModelInvocationDescriptor(info.provider_id, info.specification, info.model_id)
        return self.state.append_model_output(ModelOutputEntry.of_message(message, invocation))

    def ask(self, text: str) -> None:
        self.state.append_model_input(ModelInputEntry.of_message(Message.user(text)))

    def context(self) -> list[Message]:
        return to_messages(self.state.render_live_context())

    def look_up(self) -> None:
        """Answer the parallel calls: an image, and a failure."""
        chart = HistoryToolCallResult(
            "chart",
            "t1",
            ToolExecutionStatus.SUCCESS,
            LevelOfDetailSections.of_text("The chart of Brest."),
            attachments=[ContextAttachment(CHART)],
        )
        tide = HistoryToolCallResult(
            "tide", "t2", ToolExecutionStatus.FAILED, LevelOfDetailSections.of_text("no such place")
        )
        self.state.append_tool_results(ToolResultsEntry(results=[chart, tide]))

    def fail_to_book(self) -> None:
        self.state.append_tool_results(ToolResultsEntry(execute_error="the harbour is closed"))

    def given(self) -> ContextInput:
        return ContextInput(self.state, BUDGET, tools=TOOLS)


def summarised(messages: Sequence[Message]) -> str:
    said = [message.text for message in messages if message.text]
    return "Summarise this conversation:\n" + "\n".join(said)


def hold(conversation: Conversation) -> ContextBuildResult:
    """Hold the conversation with the synchronous methods."""
    planner, worker = conversation.planner, conversation.worker

    def answer(model: Model[Any], messages: Sequence[Message]) -> Message:
        return model.send_message_sync(messages, TOOLS, repair="auto")

    conversation.ask("When can we sail?")
    conversation.keep(planner, answer(planner, conversation.context()))
    conversation.look_up()
    with pytest.raises(ModelError) as raised:
        answer(worker, conversation.context())
    assert raised.value.code == ErrorCode.CONNECTION_LOST
    conversation.keep(worker, answer(worker, conversation.context()))
    conversation.fail_to_book()
    conversation.keep(worker, answer(worker, conversation.context()))
    conversation.ask("And in short?")
    manager = ContextManager(lambda left: planner.send_message_sync(summarised(left)).text)
    built = manager.build_context(conversation.given())
    conversation.keep(planner, answer(planner, built.messages))
    return built


async def ahold(conversation: Conversation) -> ContextBuildResult:
    """Hold the conversation with the asynchronous methods."""
    planner, worker = conversation.planner, conversation.worker

    async def answer(model: Model[Any], messages: Sequence[Message]) -> Message:
        return await model.send_message(messages, TOOLS, repair="auto")

    async def summarise(left: list[Message]) -> str:
        return (await planner.send_message(summarised(left))).text

    conversation.ask("When can we sail?")
    conversation.keep(planner, await answer(planner, conversation.context()))
    conversation.look_up()
    with pytest.raises(ModelError) as raised:
        await answer(worker, conversation.context())
    assert raised.value.code == ErrorCode.CONNECTION_LOST
    conversation.keep(worker, await answer(worker, conversation.context()))
    conversation.fail_to_book()
    conversation.keep(worker, await answer(worker, conversation.context()))
    conversation.ask("And in short?")
    built = await ContextManager(summarise).abuild_context(conversation.given())
    conversation.keep(planner, await answer(planner, built.messages))
    return built


def held(path: Path, way: str) -> tuple[Conversation, ContextBuildResult, list[Any], str]:
    with ReplayServer() as server:
        server.queue(*SCRIPT)
        planner = AnthropicModel(
            {"model_id": "claude-sonnet-4-5"}, base_url=server.url, api_key="k"
        )
        worker = OpenAIChatModel({"model_id": "gpt-4.1"}, base_url=f"{server.url}/v1", api_key="k")
        with LogFile(path, "s", "r") as log:
            conversation = Conversation(log, planner, worker)
            if way == "synchronous":
                with planner, worker:
                    built = hold(conversation)
            else:

                async def main() -> ContextBuildResult:
                    async with planner, worker:
                        return await ahold(conversation)

                built = asyncio.run(main())
            return conversation, built, list(server.requests), log.to_json()


@pytest.mark.parametrize("way", ["synchronous", "asynchronous"])
def test_one_conversation_over_two_providers(tmp_path: Path, way: str) -> None:
    path = tmp_path / "log.jsonl"
    conversation, built, requests, wire = held(path, way)

    # The log replays to the same messages.
    with LogFile(path) as log:
        assert json.loads(log.to_json()) == json.loads(wire)
        restored = AgentState(log, [MemoryNotebookWidget()])
        assert to_messages(restored.render_live_context()) == conversation.context()
        messages = Session(log=log).messages
    assert [message.role.value for message in messages] == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "assistant"),
        *("user", "assistant"),
    ]

    # The types of each client accept its requests, and the requests have the results.
    assert len(requests) == len(SCRIPT)
    bodies: list[Any] = [request.json() for request in requests]
    for request, body in zip(requests, bodies, strict=True):
        sdk_types.check(
            "anthropic-messages" if "messages" in request.path.split("/")[-1] else "openai-chat",
            body,
        )
    assert bodies[1] == bodies[2], "the cut stream left nothing behind"
    shown = json.dumps(bodies[1])
    assert str(CHART.data) in shown
    assert "no such place" in shown
    assert "Two lookups." not in shown
    assert "the harbour is closed" in json.dumps(bodies[3])
    last = json.dumps(bodies[5])
    assert "They looked up tides and tried to book a boat." in last
    assert "Long story." not in last
    assert built.compaction is not None
    assert built.update.fits

    # Every answer has its run, cost, duration and notes.
    answers = [message for message in messages if message.role.value == "assistant"]
    for message in answers:
        assert message.run_id == "r"
        assert message.meta.cost_source == "genai-prices"
        assert message.meta.cost_usd
        assert message.meta.duration_ms
        assert message.meta.timing
    codes = {warning["code"] for warning in answers[1].meta.warnings}
    assert codes, "the reasoning of another provider is left out with a note"
    assert isinstance(answers[0].parts[-1], ToolCallPart)
