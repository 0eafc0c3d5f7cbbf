"""The limit of the calls of a run: no call beyond it begins."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pydantic import BaseModel

from binding_server import BindingServer, Block
from deltafold import Agent, AnthropicModel, Tool
from deltafold.conversation import (
    AgentState,
    Approval,
    CallEntry,
    CallStage,
    ConversationLog,
    RunResult,
    RunStatus,
    ToolCallRequest,
    ToolExecutionStatus,
    ToolResultsEntry,
)
from deltafold.testing import Recording, ReplayServer
from small_windows import CHAT
from wires import gpt


def calls(*numbers: int, name: str = "tide") -> bytes:
    """Write an answer with calls."""
    return gpt("See.", *((f"c{one}", name, {"place": str(one)}) for one in numbers))


DONE: Final = gpt("Done.")


def agree(_tool: Tool, _call: ToolCallRequest) -> bool:
    """Approve every call."""
    return True


class Tides:
    """A tool that notes its calls."""

    def __init__(self) -> None:
        self.places: list[str] = []

    async def tide(self, place: str) -> str:
        """Look up the tide."""
        self.places.append(place)
        await asyncio.sleep(0)
        return "17:42"

    async def careful(self, place: str) -> str:
        """Look up the tide after an approval."""
        return await self.tide(place)


@pytest.fixture
def tides() -> Tides:
    return Tides()


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as replay:
        yield replay


def agent_of(server: ReplayServer, tides: Tides, limit: int | None, **options: Any) -> Agent[Any]:  # noqa: ANN401 - of the agent
    loop = {"max_tool_calls": limit, **options.pop("loop", {})}
    config = {"loop": loop, **options.pop("config", {})}
    careful = Tool.from_function(tides.careful, requires_approval=True)
    tools: list[Any] = [tides.tide, careful]
    options.setdefault("approve", agree)
    return Agent(config, tools, model=CHAT.model(server), **options)


def play(server: ReplayServer, *answers: bytes) -> None:
    server.queue(*(Recording.of_events(one) for one in answers))


def statuses(state: AgentState) -> list[list[ToolExecutionStatus]]:
    entries = [one for one in state.log.entries if isinstance(one, ToolResultsEntry)]
    return [[result.status for result in entry.results] for entry in entries]


def ended(result: RunResult[Any]) -> tuple[RunStatus, str, int]:
    return result.status, result.reason, result.turns


@pytest.mark.parametrize(
    ("limit", "made", "end"),
    [
        (1, ["0"], (RunStatus.ABORTED, "max_tool_calls", 2)),
        (2, ["0"], (RunStatus.ABORTED, "max_tool_calls", 2)),
        (3, ["0", "1", "2"], (RunStatus.ABORTED, "max_tool_calls", 3)),
        (4, ["0", "1", "2", "3"], (RunStatus.COMPLETED, "answered", 4)),
        (None, ["0", "1", "2", "3"], (RunStatus.COMPLETED, "answered", 4)),
    ],
)
def test_an_answer_with_too_many_calls_ends_the_run(
    server: ReplayServer,
    tides: Tides,
    limit: int | None,
    made: list[str],
    end: Any,  # noqa: ANN401 - status, reason, turns
) -> None:
    play(server, calls(0), calls(1, 2), calls(3), DONE)
    result = agent_of(server, tides, limit).run_sync("When?")
    assert ended(result) == end
    assert sorted(tides.places) == made
    assert len(server.requests) == end[2]


@pytest.mark.parametrize("is_sync", [False, True])
def test_parallel_calls_begin_together_or_not_at_all(
    server: ReplayServer, tides: Tides, is_sync: bool
) -> None:
    play(server, calls(0, 1, 2))
    model = CHAT.model(server)
    agent = Agent({"loop": {"max_tool_calls": 2}}, [tides.tide], model=model)

    async def main() -> RunResult[Any]:
        async with model:
            return await agent.run("When?")

    result = agent.run_sync("When?") if is_sync else asyncio.run(main())
    assert ended(result) == (RunStatus.ABORTED, "max_tool_calls", 1)
    assert result.state.run_state.pending_tool_calls == []
    assert tides.places == []
    assert not [one for one in result.state.log.entries if isinstance(one, CallEntry)]


def test_the_next_run_skips_the_calls_and_counts_anew(server: ReplayServer, tides: Tides) -> None:
    play(server, calls(0), calls(1), calls(2), DONE)
    agent = agent_of(server, tides, 1)
    first = agent.run_sync("When?")
    assert first.reason == "max_tool_calls"
    second = agent.run_sync("And then?", state=first.state)
    assert second.reason == "answered"
    assert tides.places == ["0", "2"]
    skipped, done = ToolExecutionStatus.SKIPPED, ToolExecutionStatus.SUCCESS
    assert statuses(first.state) == [[done], [skipped], [done]]


def test_a_resumed_run_counts_the_calls_of_its_log(server: ReplayServer, tides: Tides) -> None:
    play(server, calls(0), calls(1, 2), DONE)
    result = agent_of(server, tides, 2).run_sync("When?")
    text = result.state.log.to_json()
    again = agent_of(server, tides, 2).resume_sync(AgentState(ConversationLog.from_json(text)))
    assert ended(again) == (RunStatus.ABORTED, "max_tool_calls", 2)
    assert tides.places == ["0"]
    more = agent_of(server, tides, 3).resume_sync(AgentState(ConversationLog.from_json(text)))
    assert ended(more) == (RunStatus.COMPLETED, "answered", 3)
    assert tides.places == ["0", "1", "2"]


@pytest.mark.parametrize(("limit", "made"), [(1, []), (2, ["0", "1"])])
def test_calls_that_wait_for_an_approval_count(
    server: ReplayServer, tides: Tides, limit: int, made: list[str]
) -> None:
    both = gpt(("c0", "tide", {"place": "0"}), ("c1", "careful", {"place": "1"}))
    play(server, both, DONE)
    agent = agent_of(server, tides, limit, approve=None)
    result = agent.run_sync("When?")
    if limit == 1:
        assert ended(result) == (RunStatus.ABORTED, "max_tool_calls", 1)
    else:
        assert result.status is RunStatus.AWAITING_HUMAN
        log = ConversationLog.from_json(result.state.log.to_json())
        assert agent.resume_sync(AgentState(log), {"c1": True}).reason == "answered"
    assert tides.places == made


def test_calls_that_did_not_begin_are_not_counted(server: ReplayServer, tides: Tides) -> None:
    wrong = gpt(("c8", "tide", {}), ("c9", "nothing", {}))
    play(server, wrong, calls(0, name="careful"), calls(1, 2), DONE)
    answers = iter([Approval(False), Approval(True)])

    def decide(_tool: Tool, _call: ToolCallRequest) -> Approval:
        """Approve all but the first call."""
        return next(answers)

    agent = agent_of(server, tides, 2, approve=decide)
    result = agent.run_sync("When?")
    assert result.reason == "answered"
    assert tides.places == ["1", "2"]


class Forecast(BaseModel):
    """A forecast."""

    hour: int


def test_the_call_of_the_output_is_not_counted(server: ReplayServer, tides: Tides) -> None:
    given = gpt(("c1", "Forecast", {"hour": 17}))
    play(server, calls(0), given)
    agent = agent_of(server, tides, 1, output=Forecast)
    result = agent.run_sync("When?")
    assert result.status is RunStatus.COMPLETED
    assert tides.places == ["0"]


# Calls that begin early.


@pytest.mark.parametrize(
    ("limit", "made", "status"),
    [
        (1, ["0"], RunStatus.ABORTED),
        (2, ["0", "1"], RunStatus.ABORTED),
        (3, ["0", "1", "2"], RunStatus.COMPLETED),
    ],
)
def test_no_early_call_is_beyond_the_limit(
    server: ReplayServer, tides: Tides, limit: int, made: list[str], status: RunStatus
) -> None:
    play(server, calls(0, 1, 2), DONE)
    result = agent_of(server, tides, limit, loop={"start_tools_early": True}).run_sync("When?")
    assert result.status is status
    assert sorted(tides.places) == made
    # Each call that has begun has ended with its own result.
    stages = [one for one in result.state.log.entries if isinstance(one, CallEntry)]
    begun = [one.tool_call_id for one in stages if one.stage is CallStage.STARTED]
    done = [one for one in stages if one.stage is CallStage.ENDED]
    assert sorted(begun) == sorted(one.tool_call_id for one in done) == [f"c{one}" for one in made]
    assert all(one.result and one.result.status == "success" for one in done)


def test_the_next_run_keeps_the_results_of_early_calls(server: ReplayServer, tides: Tides) -> None:
    play(server, calls(0, 1, 2), DONE)
    agent = agent_of(server, tides, 2, loop={"start_tools_early": True})
    first = agent.run_sync("When?")
    assert agent.run_sync("And then?", state=first.state).reason == "answered"
    done, skipped = ToolExecutionStatus.SUCCESS, ToolExecutionStatus.SKIPPED
    assert statuses(first.state) == [[done, done, skipped]]


@pytest.mark.parametrize("limit", [0, -1, 1.5])
def test_a_limit_is_a_positive_number(server: ReplayServer, tides: Tides, limit: Any) -> None:  # noqa: ANN401 - a wrong value
    with pytest.raises(ValueError, match="max_tool_calls"):
        agent_of(server, tides, limit)


def test_calls_that_the_provider_runs_are_not_counted(tides: Tides) -> None:
    searches: list[Block] = [
        {
            "type": "server_tool_use",
            "id": f"srvtoolu_{number}",
            "name": "web_search",
            "input": {"query": "tides"},
        }
        for number in range(3)
    ]
    found: list[Block] = [
        {"type": "web_search_tool_result", "tool_use_id": one["id"], "content": []}
        for one in searches
    ]
    asked: Block = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "tide",
        "input": {"place": "Brest"},
    }
    script: list[list[Block]] = [
        [*searches, *found, asked],
        [{"type": "text", "text": "At 17:42."}],
    ]
    with BindingServer(script) as server:
        model = AnthropicModel({"model_id": "m"}, base_url=server.url, api_key="k")
        agent = Agent({"loop": {"max_tool_calls": 1}}, [tides.tide], model=model)
        assert agent.run_sync("When?").text == "At 17:42."
    assert server.refusals == []
    assert tides.places == ["Brest"]
