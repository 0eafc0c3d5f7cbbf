"""The message of a call is the same, whichever way it is read: with cost, duration and notes."""

import asyncio
import copy
import json
import pickle
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from deltafold import (
    Message,
    MessageDelta,
    MisuseError,
    ModelError,
    OpenAIChatModel,
    StreamEventKind,
    ToolCallPart,
)
from deltafold.conversation import (
    AgentState,
    LlmRequest,
    ModelClient,
    ModelInputEntry,
    ModelInvocationDescriptor,
    ModelOutputAccumulator,
    ProviderRouter,
    Route,
)
from deltafold.testing import Recording, ReplayServer
from wires import CHAT, chat

OPEN_CALL = Message.assistant(ToolCallPart(tool_call_id="a", tool_name="f", raw_args_text="{}"))
HISTORY = [Message.user("Hello"), OPEN_CALL, Message.user("And now?")]
RUN = {"run_id": "run"}


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer({"/v1/chat/completions": Recording.of_events(CHAT)}) as replay:
        yield replay


def model_of(server: ReplayServer) -> OpenAIChatModel:
    return OpenAIChatModel({"model_id": "gpt-4.1"}, base_url=f"{server.url}/v1", api_key="k")


def facts(message: Message | None) -> dict[str, Any]:
    """Check the facts of a call, and return the message without those that depend on time."""
    assert message is not None
    meta = message.meta
    assert meta.cost_source == "genai-prices"
    assert meta.cost_usd == pytest.approx(0.001214)
    assert meta.duration_ms is not None
    assert meta.duration_ms > 0
    assert meta.timing is not None
    assert 0 < meta.timing["timeToFirstByte"] * 1000 <= meta.duration_ms
    assert [warning["code"] for warning in meta.warnings] == [
        "orphan_call",
        "error_flag_dropped",
    ]
    wire = message.to_dict()
    shown: Any = wire["meta"]
    # The texts of the notes name the places of the messages, of which one way has one more.
    for name in ("durationMs", "timing", "warnings"):
        del shown[name]
    return {name: wire[name] for name in wire.keys() - {"id", "timestamp"}}


def synchronous(server: ReplayServer) -> list[Message | None]:
    """Read the message in every synchronous way."""
    found: list[Message | None] = []
    with model_of(server) as model:
        options: Any = {"repair": "auto", "request_metadata": RUN}
        found.append(model.send_message_sync(HISTORY, output=None, **options))
        with model.stream_sync(HISTORY, output=None, **options) as stream:
            found.append(stream.final_message())
            found.append(stream.message)
        with model.stream_sync(HISTORY, output=None, **options) as stream:
            list(stream)
            found.append(stream.message)
        with model.stream_message_sync(HISTORY, **options) as events:
            found += [one.message for one in events if one.kind == StreamEventKind.MESSAGE_STOP]
            found.append(events.final_message())
    return found


async def asynchronous(server: ReplayServer) -> list[Message | None]:
    """Read the message in every asynchronous way, the accumulator of a router among them."""
    found: list[Message | None] = []
    async with model_of(server) as model:
        options: Any = {"repair": "auto", "request_metadata": RUN}
        found.append(await model.send_message(HISTORY, output=None, **options))
        async with model.stream(HISTORY, output=None, **options) as stream:
            found.append(await stream.final_message())
        async with model.stream_message(HISTORY, **options) as events:
            kind = StreamEventKind.MESSAGE_STOP
            found += [event.message async for event in events if event.kind == kind]
            found.append(await events.final_message())
        client = ModelClient(model)
        router = ProviderRouter({"default": Route(client, client.invocation)})
        state = AgentState.create_default(".")
        state.append_model_input(ModelInputEntry.of_message(HISTORY[0]))
        state.log.append_message(OPEN_CALL)
        state.append_model_input(ModelInputEntry.of_message(HISTORY[2]))
        request = router.request(state.render_live_context(), request_metadata=RUN)
        accumulator = ModelOutputAccumulator(request.invocation)
        kinds = [delta.kind async for delta in accumulator.follow(router.call_model(request))]
        assert kinds[-1] == "done"
        found.append(accumulator.snapshot())
        found.append(state.append_model_output(accumulator.build_entry()).message)
    return found


def test_every_way_gives_the_same_message(server: ReplayServer) -> None:
    messages = [*synchronous(server), *asyncio.run(asynchronous(server))]
    first, *others = [facts(message) for message in messages]
    assert len(others) == 11
    for other in others:
        assert other == first


def test_facts_that_are_read_late_are_those_of_the_call(server: ReplayServer) -> None:
    with model_of(server) as model:
        one, two, three, four = (model.send_message_sync("Hello") for _ in range(4))
    assert "costUsd" in json.loads(one.to_json())["meta"]
    assert copy.deepcopy(two).meta.cost_usd == pytest.approx(0.001214)
    assert pickle.loads(pickle.dumps(three)).meta.duration_ms is not None  # noqa: S301 - our own bytes
    four.meta.cost_usd = 7.0
    assert (four.meta.cost_usd, four.meta.cost_source) == (7.0, "genai-prices")
    assert Message.from_json(four.to_json()) == four
    assert not [name for name in vars(four.meta) if name.startswith("_")]


def test_a_failed_call_has_its_facts_too(server: ReplayServer) -> None:
    cut = Recording.of_events(chat("one ", "two", finish_reason=None)).stopping("reset", 200)
    server.queue(cut, cut)
    with model_of(server) as model:
        with pytest.raises(ModelError) as raised:
            model.send_message_sync("Hello")
        partial = raised.value.partial_message
        assert partial is not None
        assert partial.meta.duration_ms is not None
        shown = model.send_message_sync("Hello", on_error="message")
    assert shown.meta.is_api_error_message
    assert shown.meta.duration_ms is not None


def test_the_deltas_of_another_client_have_a_cost(server: ReplayServer) -> None:
    invocation = ModelInvocationDescriptor("openai", "v1", "gpt-4.1")

    async def answer(way: str) -> ModelOutputAccumulator:
        accumulator = ModelOutputAccumulator(invocation)
        async with model_of(server) as model, model.stream("Hello") as stream:

            async def deltas() -> AsyncIterator[MessageDelta]:
                async for delta in stream:
                    yield delta

            if way == "follow":
                async for _ in accumulator.follow(deltas()):
                    pass
            else:
                async for delta in deltas():
                    accumulator.consume(delta)
        return accumulator

    for way in ("follow", "consume"):
        message = asyncio.run(answer(way)).build_entry().message
        assert message is not None
        assert message.meta.cost_usd == pytest.approx(0.001214)


def test_an_accumulator_collects_one_answer(server: ReplayServer) -> None:
    async def main() -> None:
        async with model_of(server) as model:
            client = ModelClient(model)
            request = LlmRequest([], [], client.invocation)
            accumulator = ModelOutputAccumulator(client.invocation)
            async for _ in accumulator.follow(client.call_model(request)):
                pass
            async for _ in accumulator.follow(client.call_model(request)):
                pass

    with pytest.raises(MisuseError, match="an accumulator collects one answer"):
        asyncio.run(main())
