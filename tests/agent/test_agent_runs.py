"""Runs of an agent: turns, tools, approvals, failures, limits, interruptions."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deltafold import Agent, AnthropicModel, MisuseError, ModelError, OpenAIChatModel, Tool, Usage
from deltafold.conversation import (
    AgentConfig,
    AgentEventKind,
    AgentState,
    HistoryEntryKind,
    IllegalTransitionError,
    LogFile,
    LoopConfig,
    MemoryNotebookWidget,
    RunState,
    RunStatus,
    Session,
    ToolCallRequest,
    ToolExecutionStatus,
    ToolsConfig,
)
from deltafold.testing import Recording, ReplayServer
from talks import Talk
from wires import claude, gpt

CALL = gpt(("c1", "tide", {"place": "Brest"}), ("c2", "tide", {"place": "Atlantis"}))
DONE = gpt("High tide is at 17:42.")


def tide(place: str) -> Iterator[str]:
    """Look up the tide."""
    yield f"looking up {place}"
    if place == "Atlantis":
        raise LookupError("no such place")
    yield "17:42"


def agree(_tool: Tool, _call: ToolCallRequest) -> bool:
    """Approve every call."""
    return True


class Harness:
    """An agent over a server that plays answers."""

    def __init__(self, server: ReplayServer, answers: Sequence[bytes | Recording]) -> None:
        server.queue(
            *(one if isinstance(one, Recording) else Recording.of_events(one) for one in answers)
        )
        self.server = server
        self.model = OpenAIChatModel(
            {"model_id": "gpt-4.1"}, base_url=f"{server.url}/v1", api_key="k"
        )

    def agent(self, tools: Sequence[Any] = (tide,), **options: Any) -> Talk[Any]:  # noqa: ANN401
        settings: dict[str, Any] = {"model": "openai/gpt-4.1", **options.pop("config", {})}
        state = options.pop("state", None) or AgentState()
        agent = Agent(AgentConfig.model_validate(settings), tools, model=self.model, **options)
        return Talk(agent, state, (self.model,))


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as replay:
        yield replay


def test_a_run_asks_and_runs_its_calls_until_there_are_none(server: ReplayServer) -> None:
    agent = Harness(server, [CALL, DONE]).agent()

    async def main() -> list[Any]:
        async with agent:
            return [event async for event in agent.stream("When is high tide?")]

    events = asyncio.run(main())
    kinds = [event.kind for event in events if event.kind is not AgentEventKind.DELTA]
    assert kinds[:2] == [AgentEventKind.TURN, AgentEventKind.ANSWER]
    assert kinds.count(AgentEventKind.PROGRESS) == 1
    assert kinds.count(AgentEventKind.TOOL_END) == 2
    assert kinds[-3:] == [AgentEventKind.TURN, AgentEventKind.ANSWER, AgentEventKind.RUN_END]
    assert events[-1].run.text == "High tide is at 17:42."
    assert agent.run_state.status is RunStatus.COMPLETED
    assert agent.run_state.token_usage.total_tokens == 180
    assert agent.run_state.cost_usage
    body: Any = server.requests[1].json()
    answers = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    assert answers[0] == "17:42"
    assert "no such place" in answers[1]


def test_a_run_is_synchronous_too(server: ReplayServer) -> None:
    result = Harness(server, [CALL, DONE]).agent().run_sync("When is high tide?")
    assert (result.status, result.reason) == (RunStatus.COMPLETED, "answered")


def test_a_run_waits_for_an_approval_in_another_process(
    server: ReplayServer, tmp_path: Path
) -> None:
    harness = Harness(server, [CALL, DONE])
    config = {"tools": {"require_approval": ["tide"]}}
    with LogFile(tmp_path / "log") as log:
        agent = harness.agent(config=config, state=AgentState.create_default("i", log=log))
        result = agent.run_sync("When is high tide?")
        assert result.status is RunStatus.AWAITING_HUMAN
        assert [call.tool_call_id for call in result.pending] == ["c1", "c2"]
    with LogFile(tmp_path / "log") as log:
        agent = harness.agent(config=config, state=AgentState(log, [MemoryNotebookWidget()]))
        result = agent.resume_sync({"c1": True, "c2": False})
        assert result.text == "High tide is at 17:42."
        statuses = [
            part.status
            for message in Session(log=log).messages
            for part in message.parts
            if part.kind == "tool_result"
        ]
        assert statuses == [ToolExecutionStatus.SUCCESS, ToolExecutionStatus.REJECTED]


def test_a_cut_stream_is_asked_again(server: ReplayServer) -> None:
    cut = Recording.of_events(DONE).stopping("cut", len(DONE) // 3)
    agent = Harness(server, [cut, DONE]).agent(config={"loop": {"retry_seconds": 0}})
    assert agent.run_sync("When?").text == "High tide is at 17:42."


def test_a_failure_is_raised_or_returned(server: ReplayServer) -> None:
    refusal = Recording.error(401, {"error": {"message": "no key", "type": "invalid_request"}})
    with pytest.raises(ModelError):
        Harness(server, [refusal]).agent().run_sync("When?")
    agent = Harness(server, [refusal]).agent(config={"loop": {"on_error": "return"}})
    result = agent.run_sync("When?")
    assert (result.status, result.reason) == (RunStatus.FAILED, "error")
    assert isinstance(result.error, ModelError)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"max_turns": 1}, "max_turns"),
        ({"max_tokens": 50}, "max_tokens"),
        ({"max_cost_usd": 1e-9}, "max_cost_usd"),
    ],
)
def test_a_run_ends_at_its_limits(server: ReplayServer, config: Any, reason: str) -> None:  # noqa: ANN401
    limits = LoopConfig(**config)
    result = Harness(server, [CALL]).agent(config={"loop": limits}).run_sync("When?")
    assert (result.status, result.reason) == (RunStatus.ABORTED, reason)


COMPACTED = {
    "input_tokens": 4000,
    "output_tokens": 200,
    "inference_geo": "us",
    "iterations": [
        {"type": "compaction", "input_tokens": 150_000, "output_tokens": 3500},
        {"type": "message", "input_tokens": 4000, "output_tokens": 200},
    ],
}


@pytest.mark.parametrize(("limit", "requests"), [(0.5, 1), (1.0, 2)])
def test_a_budget_counts_every_iteration_of_a_request(
    server: ReplayServer, limit: float, requests: int
) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "tide", "input": {"place": "Brest"}}
    said = {"type": "text", "text": "At 17:42."}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-opus-4-8"}
    for block, reason in ((call, "tool_use"), (said, "end_turn")):
        body = {**head, "content": [block], "stop_reason": reason, "usage": COMPACTED}
        server.queue(Recording.of(json.dumps(body).encode(), content_type="application/json"))
    model = AnthropicModel({"model_id": "claude-opus-4-8"}, base_url=server.url, api_key="k")
    loop = LoopConfig(max_cost_usd=limit)
    config = AgentConfig(model="anthropic/claude-opus-4-8", loop=loop)
    result = Agent(config, [tide], model=model).run_sync("When is high tide?")
    assert len(server.requests) == requests
    assert result.cost_usd == pytest.approx(0.8625 * requests)
    assert (result.cost_unpriced, result.is_lower_bound) == (("inference_geo",), True)
    assert result.state.run_state.token_usage.input_tokens == 4000 * requests


def test_a_run_without_a_price_for_its_tokens_has_a_lower_bound() -> None:
    state = RunState()
    state.begin()
    used = Usage(input_tokens=1, output_tokens=1, total_tokens=2)
    for cost in (0.5, None, 0.5):
        state.add_usage(used, cost, ("sources",))
    assert state.model_dump(include={"cost_usage", "cost_unpriced"}) == {
        "cost_usage": 1.0,
        "cost_unpriced": ("sources", "tokens"),
    }
    state.move("failed")
    state.begin()
    assert not state.cost_unpriced


def test_a_run_ends_if_its_context_does_not_fit(server: ReplayServer) -> None:
    agent = Harness(server, [CALL]).agent(config={"context": {"token_budget": 5}})
    result = agent.run_sync("When?")
    assert (result.status, result.reason) == (RunStatus.ABORTED, "does_not_fit")
    assert not server.requests


SLOW = Recording.of_events(DONE, delay=5.0)


async def waiting(place: str) -> str:
    """Wait for the tide."""
    await asyncio.sleep(60)
    return place


waiting.__name__ = "tide"


@pytest.mark.parametrize(
    ("answers", "tools"),
    [([SLOW], []), ([CALL], [waiting]), ([Recording.error(503, {}, {"retry-after": "9"})], [])],
    ids=["while it answers", "while a tool runs", "while it waits"],
)
def test_a_timeout_ends_a_run_at_any_time(
    server: ReplayServer, answers: list[Any], tools: list[Any]
) -> None:
    agent = Harness(server, answers).agent(tools, config={"loop": {"timeout": 0.2}})
    result = agent.run_sync("When?")
    assert (result.status, result.reason) == (RunStatus.ABORTED, "timeout")


def test_a_timeout_does_not_cancel_the_code_between_two_events(server: ReplayServer) -> None:
    agent = Harness(server, [DONE]).agent(config={"loop": {"timeout": 0.1}})

    async def main() -> list[Any]:
        seen: list[Any] = []
        async with agent:
            async for event in agent.stream("When?"):
                seen.append(event)
                await asyncio.sleep(0.03)
        return seen

    seen = asyncio.run(main())
    assert seen[-1].run.reason in {"timeout", "answered"}


def test_a_wait_that_is_too_long_ends_the_run(server: ReplayServer) -> None:
    busy = Recording.error(429, {"error": {"message": "busy"}}, {"retry-after": "3600"})
    with pytest.raises(ModelError, match="busy"):
        Harness(server, [busy]).agent().run_sync("When?")


def test_retries_are_counted(server: ReplayServer) -> None:
    busy = Recording.error(503, {"error": {"message": "busy"}}, {"retry-after": "0"})
    agent = Harness(server, [busy, busy, busy]).agent()
    with pytest.raises(ModelError):
        agent.run_sync("When?")
    assert len(server.requests) == 3
    assert agent.run_state.status is RunStatus.FAILED


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "length"), ("content_filter", "content_filter"), ("stop", "answered")],
)
def test_the_reason_names_an_answer_that_is_not_whole(
    server: ReplayServer, finish: str, reason: str
) -> None:
    body = DONE.replace(b'"stop"', f'"{finish}"'.encode())
    result = Harness(server, [body]).agent().run_sync("When?")
    assert (result.status, result.reason) == (RunStatus.COMPLETED, reason)


def test_a_paused_answer_goes_on(server: ReplayServer) -> None:
    pause = claude("Searching.").replace(b"end_turn", b"pause_turn")
    server.queue(Recording.of_events(pause), Recording.of_events(claude("Found it.")))
    model = AnthropicModel({"model_id": "claude-demo"}, base_url=server.url, api_key="k")
    result = Agent(model=model).run_sync("Search.")
    assert (result.text, result.turns) == ("Found it.", 2)
    body: Any = server.requests[1].json()
    assert body["messages"][-1]["role"] == "assistant"


def test_a_server_may_repeat_the_ids_of_its_calls(server: ReplayServer) -> None:
    one = gpt(("call_0", "tide", {"place": "Brest"}))
    result = Harness(server, [one, one, DONE]).agent().run_sync("When?")
    assert result.turns == 3
    body: Any = server.requests[2].json()
    ids = [one["tool_call_id"] for one in body["messages"] if one["role"] == "tool"]
    assert len(set(ids)) == 2
    assert ids[0] == "call_0"


def test_a_refused_continuation_is_asked_as_a_whole(server: ReplayServer) -> None:
    whole = claude("High tide ", "is at 17:42.")
    end = whole.rindex(b"event: ", 0, whole.index(b"is at"))
    refused = Recording.error(400, {"type": "error", "error": {"message": "no prefill"}})
    cut = Recording.of_events(whole).stopping("cut", end)
    server.queue(cut, refused, Recording.of_events(whole))
    model = AnthropicModel({"model_id": "claude-sonnet-4-5"}, base_url=server.url, api_key="k")
    agent = Talk(Agent({"loop": {"retry_seconds": 0}}, model=model))
    events = list(agent.stream_sync("When?"))
    assert [event.continues for event in events if event.kind == "retry"] == [True, False]
    result = events[-1].run
    assert result is not None
    assert result.text == "High tide is at 17:42."
    assert result.usage.input_tokens == 100
    assert [entry.kind for entry in agent.state.log.entries].count(HistoryEntryKind.PARTIAL) == 1
    assert agent.resume_sync().usage == result.usage


# Tools.


def test_tools_are_enabled_and_ask_for_approval_by_the_settings(server: ReplayServer) -> None:
    def other() -> str:
        """Do something else."""
        return ""

    settings = ToolsConfig(enabled=("tide",), require_approval=("tide",))
    config = {"tools": settings}
    result = Harness(server, [CALL]).agent([tide, other], config=config).run_sync("When?")
    assert result.status is RunStatus.AWAITING_HUMAN
    body: Any = server.requests[0].json()
    assert [tool["function"]["name"] for tool in body["tools"]] == ["tide"]
    with pytest.raises(MisuseError, match="there is no tool 'tied'; there are: "):
        Harness(server, []).agent(config={"tools": {"enabled": ["tied"]}}).run_sync("When?")


def test_the_runtime_of_the_settings_reaches_the_tools(server: ReplayServer) -> None:
    seen: list[object] = []

    def tide(place: str, runtime: object, agent: object) -> str:
        """Look up the tide."""
        seen.extend([runtime, agent])
        return place

    agent = Harness(server, [CALL, DONE]).agent([tide], config={"runtime": {"zone": "UTC"}})
    agent.run_sync("When?")
    assert seen[:2] == [{"zone": "UTC"}, agent.agent]
    with pytest.raises(MisuseError, match="runtime: the tool 'tide' requires it"):
        Harness(server, []).agent([tide]).run_sync("When?")


def test_the_observability_of_the_settings_traces_the_model(
    server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    server.queue(Recording.of_events(DONE))
    settings = AgentConfig(model="openai/gpt-4.1", observability={"tracer_provider": provider})
    Agent(settings).run_sync("When?")
    names = [span.name for span in exporter.get_finished_spans()]
    assert names == ["chat gpt-4.1", "invoke_agent"]


def test_only_so_many_calls_run_at_once(server: ReplayServer) -> None:
    running: list[int] = [0, 0]

    async def tide(place: str) -> str:
        """Look up the tide."""
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.01)
        running[0] -= 1
        return place

    calls = gpt(*((f"c{number}", "tide", {"place": "Brest"}) for number in range(6)))
    config = {"loop": {"max_parallel_tools": 2}}
    Harness(server, [calls, DONE]).agent([tide], config=config).run_sync("When?")
    assert running == [0, 2]


def test_a_tool_that_cancels_itself_fails_alone(server: ReplayServer) -> None:
    async def tide(place: str) -> str:
        """Look up the tide."""
        if place == "Atlantis":
            raise asyncio.CancelledError
        return "17:42"

    result = Harness(server, [CALL, DONE]).agent([tide]).run_sync("When?")
    assert result.status is RunStatus.COMPLETED
    body: Any = server.requests[1].json()
    answers = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    assert answers[0] == "17:42"
    assert "cancelled itself" in answers[1]


def test_wrong_arguments_need_no_approval(server: ReplayServer) -> None:
    wrong = gpt(("c1", "tide", {"place": 7}))
    config = {"tools": {"require_approval": ["tide"]}}
    result = Harness(server, [wrong, DONE]).agent(config=config).run_sync("When?")
    assert result.status is RunStatus.COMPLETED
    body: Any = server.requests[1].json()
    assert "place" in body["messages"][-1]["content"]


# Tools that start early.


CALLS = claude(("c1", "tide", {"place": "Brest"}), ("c2", "tide", {"place": "Dover"}))
DONE_TOO = claude("High tide is at 17:42.")


def slow_calls() -> Recording:
    """Return an answer with two calls and a pause after the first."""
    pieces = [piece for _, piece in Recording.of_events(CALLS).pieces]
    second = next(number for number, piece in enumerate(pieces) if b'"c2"' in piece)
    pauses = [0.2 if number == second else 0.0 for number in range(len(pieces))]
    return Recording(tuple(zip(pauses, pieces, strict=True)))


def early(server: ReplayServer, *answers: Recording, is_early: bool = True) -> Agent:
    server.queue(*answers)
    model = AnthropicModel({"model_id": "claude-demo"}, base_url=server.url, api_key="k")
    return Agent({"loop": {"start_tools_early": is_early}}, [tide], model=model)


def test_a_tool_may_start_before_the_answer_ends(server: ReplayServer) -> None:
    for is_early in (True, False):
        done = Recording.of_events(DONE_TOO)
        agent = early(server, slow_calls(), done, is_early=is_early)
        kinds = [str(event.kind) for event in agent.stream_sync("When?")]
        assert (kinds.index("tool_end") < kinds.index("answer")) is is_early
        assert kinds.count("tool_start") == kinds.count("tool_end") == 2


def test_an_answer_that_breaks_off_keeps_the_calls_that_have_begun(server: ReplayServer) -> None:
    cut = slow_calls()
    cut = cut.stopping("cut", cut.body.index(b'"c2"') + 10)
    result = early(server, cut, Recording.of_events(DONE_TOO)).run_sync("When?")
    assert result.text == "High tide is at 17:42."
    assert len(server.requests) == 2
    body: Any = server.requests[1].json()
    assert [block["id"] for block in body["messages"][1]["content"]] == ["c1"]
    assert body["messages"][2]["content"][0]["content"] == "17:42"


# Interruptions.


@pytest.mark.parametrize("is_repeatable", [False, True])
def test_a_call_that_had_begun_runs_again_only_if_it_is_repeatable(
    server: ReplayServer, tmp_path: Path, *, is_repeatable: bool
) -> None:
    runs: list[str] = []

    async def slow(place: str) -> str:
        """Look up."""
        runs.append(place)
        if place == "Atlantis" and runs.count("Atlantis") == 1:
            await asyncio.sleep(30)
        return "17:42"

    slow.__name__ = "tide"
    tool = Tool.from_function(slow, is_repeatable=is_repeatable)
    harness = Harness(server, [CALL, DONE])

    async def interrupted(agent: Talk[Any]) -> None:
        async with agent, aclosing(agent.stream("When?")) as events:
            async for event in events:
                if event.kind is AgentEventKind.TOOL_END:
                    raise KeyError("the process ends")

    with LogFile(tmp_path / "log") as log:
        agent = harness.agent([tool], state=AgentState.create_default("i", log=log))
        with pytest.raises(KeyError):
            asyncio.run(interrupted(agent))
    with LogFile(tmp_path / "log") as log:
        agent = harness.agent([tool], state=AgentState(log, [MemoryNotebookWidget()]))
        assert agent.resume_sync().text == "High tide is at 17:42."
    assert runs == ["Brest", "Atlantis", "Atlantis"][: 3 if is_repeatable else 2]
    body: Any = server.requests[1].json()
    answers = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    assert answers[0] == "17:42"
    assert ("It may have had its effect" in answers[1]) is not is_repeatable


def test_a_call_that_waited_for_a_person_has_not_begun(
    server: ReplayServer, tmp_path: Path
) -> None:
    asked = asyncio.Event()

    async def approve(_tool: Tool, _call: ToolCallRequest) -> bool:
        asked.set()
        await asyncio.sleep(60)
        return True

    harness = Harness(server, [CALL, DONE])
    config = {"tools": {"require_approval": ["tide"]}}

    async def interrupted(agent: Talk[Any]) -> None:
        async with agent:
            running = asyncio.create_task(agent.run("When?"))
            await asked.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert agent.run_state.status is RunStatus.ABORTED

    with LogFile(tmp_path / "log") as log:
        state = AgentState.create_default("i", log=log)
        asyncio.run(interrupted(harness.agent(config=config, state=state, approve=approve)))
    with LogFile(tmp_path / "log") as log:
        agent = harness.agent(
            config=config, state=AgentState(log, [MemoryNotebookWidget()]), approve=agree
        )
        assert agent.resume_sync().text == "High tide is at 17:42."
    body: Any = server.requests[1].json()
    answers = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    assert answers[0] == "17:42"


def test_a_run_that_cannot_be_written_fails(server: ReplayServer, tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log")
    agent = Harness(server, [DONE]).agent(state=AgentState.create_default("i", log=log))
    log.close()
    with pytest.raises(MisuseError, match="closed"):
        agent.run_sync("When?")
    assert agent.run_state.status is RunStatus.FAILED


def test_the_user_may_speak_instead_of_approving(server: ReplayServer) -> None:
    config = {"tools": {"require_approval": ["tide"]}}
    agent = Harness(server, [CALL, DONE]).agent(config=config)
    assert agent.run_sync("When?").status is RunStatus.AWAITING_HUMAN
    assert agent.run_sync("Never mind.").status is RunStatus.COMPLETED
    body: Any = server.requests[1].json()
    answers = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    assert len(answers) == 2
    assert all("was not run" in answer for answer in answers)


def test_an_approval_for_no_call_is_refused(server: ReplayServer) -> None:
    config = {"tools": {"require_approval": ["tide"]}}
    agent = Harness(server, [CALL, DONE]).agent(config=config)
    agent.run_sync("When?")
    with pytest.raises(MisuseError, match="no call 'c9' waits"):
        agent.resume_sync({"c1": True, "c9": True})
    result = agent.resume_sync({"c1": True})
    assert [call.tool_call_id for call in result.pending] == ["c2"]
    assert agent.resume_sync({"c2": False}).status is RunStatus.COMPLETED


def test_a_completed_run_returns_its_result_again(server: ReplayServer) -> None:
    agent = Harness(server, [DONE]).agent()
    first = agent.run_sync("When?")
    again = agent.resume_sync()
    assert (again.text, again.reason, again.turns) == (first.text, "answered", 1)
    assert again.usage == first.usage
    assert len(server.requests) == 1


def test_misuse_is_named(server: ReplayServer) -> None:
    agent = Harness(server, [DONE, DONE]).agent()

    async def within_a_loop() -> None:
        with pytest.raises(MisuseError, match="await run"):
            agent.run_sync("When?")
        with pytest.raises(MisuseError, match="await run"):
            next(agent.stream_sync("When?"))
        async with agent, aclosing(agent.stream("When?")) as events:
            await anext(events)
            with pytest.raises(IllegalTransitionError):
                await agent.run("Again?")

    asyncio.run(within_a_loop())
    with pytest.raises(MisuseError, match="the log has no input"):
        Harness(server, []).agent().resume_sync()
    with pytest.raises(MisuseError, match="pass a model"):
        Agent()
    with pytest.raises(ValueError, match="loop"):
        Agent({"model": "openai/gpt-4.1", "loop": {"max_turns": 0}})


def test_a_status_changes_along_the_table_alone() -> None:
    state = RunState()
    with pytest.raises(IllegalTransitionError, match="idle cannot become completed"):
        state.status = RunStatus.COMPLETED
    with pytest.raises(ValueError, match="'done' is not a valid RunStatus"):
        state.status = "done"  # type: ignore[assignment]  # what a caller may write
    state.status = RunStatus.PREPARING
    assert state.status is RunStatus.PREPARING


def sent(server: ReplayServer) -> list[tuple[list[str], list[tuple[str, str]]]]:
    """Return the names of the tools and the messages of each request."""
    bodies: list[dict[str, Any]] = [json.loads(asked.body) for asked in server.requests]
    return [
        (
            [tool["function"]["name"] for tool in body.get("tools", [])],
            [(one["role"], one["content"]) for one in body["messages"]],
        )
        for body in bodies
    ]


def test_a_request_has_what_was_given_alone() -> None:
    asked = ("user", "When?")
    with ReplayServer() as server:
        for tools, said in (([], None), ([tide], None), ([tide], "Be brief.")):
            harness = Harness(server, [DONE])
            Agent({}, tools, model=harness.model, instructions=said).run_sync("When?")
        assert sent(server) == [
            ([], [asked]),
            (["tide"], [asked]),
            (["tide"], [("system", "Be brief."), asked]),
        ]


def test_the_instructions_of_an_agent_hold_in_its_runs(tmp_path: Path) -> None:
    answered = ("assistant", "High tide is at 17:42.")
    with ReplayServer() as server:
        for said in ("Be brief.", "Be long.", None):
            with LogFile(tmp_path / "log.jsonl") as log:
                model, state = Harness(server, [DONE]).model, AgentState(log)
                Agent(model=model, instructions=said).run_sync("When?", state=state)
        first, second, third = (messages for _, messages in sent(server))
    asked = ("user", "When?")
    assert first == [("system", "Be brief."), asked]
    assert second == [("system", "Be long."), asked, answered, asked]
    assert third == [*second, answered, asked]


def test_a_state_without_a_notebook_says_so() -> None:
    state = AgentState()
    assert (state.memory_notebook_snapshot, state.system_instruction) == ("", "")
    with pytest.raises(MisuseError, match=r"widgets=\[MemoryNotebookWidget\(\)\]"):
        state.update_memory_notebook("lost")
