"""Spans of runs and tools: their names, their parents, and how they end."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deltafold import Agent, ModelError, OpenAIChatModel, Tool, otel
from deltafold.conversation import ToolCallRequest, ToolExecutor
from deltafold.testing import Recording, ReplayServer
from talks import Talk
from wires import CHAT_ERROR, gpt

CALLS = gpt(("c1", "blocking", {"place": "Brest"}), ("c2", "awaited", {"place": "Brest"}))
DONE = gpt("High tide is at 17:42.")


class Traced:
    """A provider of spans, and an agent over a server that plays answers."""

    def __init__(self, server: ReplayServer) -> None:
        self.server = server
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.tracers.get_tracer("test")

    def agent(self, answers: Sequence[bytes], tools: Sequence[Any], **loop: Any) -> Talk[None]:  # noqa: ANN401
        self.server.queue(*map(Recording.of_events, answers))
        model = OpenAIChatModel({"model_id": "m"}, base_url=f"{self.server.url}/v1", api_key="k")
        return Talk(Agent({"name": "tides", "loop": loop}, tools, model=model), models=(model,))

    @property
    def spans(self) -> dict[str, Any]:
        """The finished spans by name; each name is that of one span."""
        spans = self.exporter.get_finished_spans()
        named: dict[str, Any] = {}
        for span in spans:
            name = f"{span.name} {sum(span.name == one.name for one in named.values())}"
            named[span.name if span.name not in named else name] = span
        return named

    def parents(self) -> dict[str, str | None]:
        """Return the name of each span's parent."""
        spans = self.spans
        names = {span.context.span_id: name for name, span in spans.items()}
        return {
            name: None if span.parent is None else names.get(span.parent.span_id)
            for name, span in spans.items()
        }


@pytest.fixture
def traced() -> Iterator[Traced]:
    with ReplayServer() as server:
        made = Traced(server)
        otel.instrument(tracer_provider=made.tracers)
        yield made
        otel.uninstrument()


def tools_of(traced: Traced) -> list[Any]:
    def blocking(place: str) -> str:
        """Look up the tide."""
        with traced.tracer.start_as_current_span("inside blocking"):
            return place

    async def awaited(place: str) -> AsyncIterator[str]:
        """Look up the tide."""
        with traced.tracer.start_as_current_span("inside awaited"):
            await asyncio.sleep(0)
        yield place

    return [blocking, awaited]


TREE = {
    "chat m": "invoke_agent tides",
    "inside blocking": "execute_tool blocking",
    "execute_tool blocking": "invoke_agent tides",
    "inside awaited": "execute_tool awaited",
    "execute_tool awaited": "invoke_agent tides",
    "chat m 1": "invoke_agent tides",
    "invoke_agent tides": None,
}


async def _read(agent: Agent) -> None:
    async with agent:
        async for _ in agent.stream("When?"):
            # The code of the caller is not a part of the run.
            assert not trace.get_current_span().get_span_context().is_valid


async def _asked(agent: Agent) -> None:
    async with agent:
        await agent.run("When?")


def _run_sync(agent: Agent) -> None:
    agent.run_sync("When?")


def _stream_sync(agent: Agent) -> None:
    for _ in agent.stream_sync("When?"):
        assert not trace.get_current_span().get_span_context().is_valid


def _run(agent: Agent) -> None:
    asyncio.run(_asked(agent))


def _stream(agent: Agent) -> None:
    asyncio.run(_read(agent))


@pytest.mark.parametrize("way", [_run, _stream, _run_sync, _stream_sync])
@pytest.mark.parametrize("early", [False, True])
def test_calls_and_tools_belong_to_their_run(traced: Traced, way: Any, *, early: bool) -> None:  # noqa: ANN401
    agent = traced.agent([CALLS, DONE], tools_of(traced), start_tools_early=early)
    way(agent)
    assert traced.parents() == TREE
    run = traced.spans["invoke_agent tides"]
    usage = agent.run_state.token_usage
    assert run.kind.name == "INTERNAL"
    assert {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "tides",
        "gen_ai.conversation.id": agent.state.log.session_id,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }.items() <= dict(run.attributes).items()
    assert dict(traced.spans["execute_tool blocking"].attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "blocking",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.description": "Look up the tide.",
    }


def test_a_run_belongs_to_the_span_of_its_caller(traced: Traced) -> None:
    agent = traced.agent([DONE], [])
    with traced.tracer.start_as_current_span("request"):
        agent.run_sync("When?")
    assert traced.parents() == {
        "chat m": "invoke_agent tides",
        "invoke_agent tides": "request",
        "request": None,
    }


def test_content_is_recorded_only_where_it_is_asked_for(traced: Traced) -> None:
    for captured in (False, True):
        traced.exporter.clear()
        otel.instrument(tracer_provider=traced.tracers, capture_content=captured)
        traced.agent([CALLS, DONE], tools_of(traced)).run_sync("When?")
        run, tool = traced.spans["invoke_agent tides"], traced.spans["execute_tool blocking"]
        known = {**run.attributes, **tool.attributes}
        if not captured:
            assert "Brest" not in json.dumps(known, default=str)
            continue
        (said,) = json.loads(known["gen_ai.input.messages"])
        (answer,) = json.loads(known["gen_ai.output.messages"])
        assert said["parts"] == [{"type": "text", "content": "When?"}]
        assert answer["parts"] == [{"type": "text", "content": "High tide is at 17:42."}]
        assert json.loads(known["gen_ai.tool.call.arguments"]) == {"place": "Brest"}
        assert known["gen_ai.tool.call.result"] == "Brest"


def failing(place: str) -> str:
    """Look up the tide."""
    raise LookupError(place)


async def slow(place: str) -> str:
    """Look up the tide."""
    await asyncio.sleep(60)
    return place


@pytest.mark.parametrize(
    ("tool", "error"),
    [
        (Tool.from_function(failing), "LookupError"),
        (Tool.from_function(slow, timeout_ms=1), "timeout"),
    ],
)
def test_a_tool_that_fails_says_so(traced: Traced, tool: Tool, error: str) -> None:
    agent = traced.agent([gpt(("c1", tool.name, {"place": "x"})), DONE], [tool])
    agent.run_sync("When?")
    span = traced.spans[f"execute_tool {tool.name}"]
    assert span.attributes["error.type"] == error
    assert span.status.status_code.name == "ERROR"
    run = traced.spans["invoke_agent tides"]
    assert "error.type" not in run.attributes
    assert run.status.status_code.name == "UNSET"


def test_a_run_that_fails_says_so(traced: Traced) -> None:
    agent = traced.agent([CHAT_ERROR], [], max_retries=0)
    with pytest.raises(ModelError) as raised:
        agent.run_sync("When?")
    run = traced.spans["invoke_agent tides"]
    assert run.attributes["error.type"] == str(raised.value.code)
    assert run.status.status_code.name == "ERROR"


def test_a_limit_ends_the_span_with_its_name(traced: Traced) -> None:
    agent = traced.agent([CALLS], tools_of(traced), max_turns=1)
    agent.run_sync("When?")
    assert traced.spans["invoke_agent tides"].attributes["error.type"] == "max_turns"


@pytest.mark.parametrize("is_left", [False, True], ids=["cancelled", "left"])
def test_a_run_that_is_given_up_ends_its_spans(traced: Traced, *, is_left: bool) -> None:
    agent = traced.agent([gpt(("c1", "slow", {"place": "x"}))], [slow])
    begun = asyncio.Event()

    async def read() -> None:
        async with agent, aclosing(agent.stream("When?")) as events:
            async for event in events:
                if event.kind == "tool_start":
                    begun.set()
                    await asyncio.sleep(0)  # the tool begins
                    if is_left:
                        return

    async def main() -> None:
        task = asyncio.create_task(read())
        await begun.wait()
        if is_left:
            await task
        else:
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert traced.parents() == {
        "chat m": "invoke_agent tides",
        "execute_tool slow": "invoke_agent tides",
        "invoke_agent tides": None,
    }
    for name in ("execute_tool slow", "invoke_agent tides"):
        assert traced.spans[name].attributes["error.type"] == "cancelled"


def test_a_run_that_waits_for_a_person_is_no_failure(traced: Traced) -> None:
    tool = Tool.from_function(failing, requires_approval=True)
    agent = traced.agent([gpt(("c1", "failing", {"place": "x"})), DONE], [tool])
    waiting = agent.run_sync("When?")
    assert [span.name for span in traced.exporter.get_finished_spans()] == [
        "chat m",
        "invoke_agent tides",
    ]
    assert "error.type" not in traced.spans["invoke_agent tides"].attributes
    agent.resume_sync({call.tool_call_id: True for call in waiting.pending})
    assert len([name for name in traced.spans if name.startswith("invoke_agent")]) == 2


def test_an_executor_alone_has_spans_too(traced: Traced) -> None:
    call = ToolCallRequest("blocking", "c1", '{"place": "Brest"}', {"place": "Brest"})

    async def main() -> None:
        with traced.tracer.start_as_current_span("request"):
            await ToolExecutor(map(Tool.from_function, tools_of(traced))).execute_all([call])

    asyncio.run(main())
    assert traced.parents() == {
        "inside blocking": "execute_tool blocking",
        "execute_tool blocking": "request",
        "request": None,
    }
