"""Runs of an agent: turns, tools, approvals, failures, limits, interruptions."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from deltafold import ModelError, OpenAIChatModel
from deltafold.conversation import (
    Agent,
    AgentConfig,
    AgentEventKind,
    AgentState,
    LogFile,
    RunStatus,
    Session,
    ToolExecutionStatus,
)
from deltafold.testing import Recording, ReplayServer
from wires import gpt

CALL = gpt(("c1", "tide", {"place": "Brest"}), ("c2", "tide", {"place": "Atlantis"}))
DONE = gpt("High tide is at 17:42.")


def tide(place: str) -> Iterator[str]:
    """Look up the tide."""
    yield f"looking up {place}"
    if place == "Atlantis":
        raise LookupError("no such place")
    yield "17:42"


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

    def agent(self, tools: Sequence[Any] = (tide,), **options: Any) -> Agent:  # noqa: ANN401
        settings: dict[str, Any] = {"model": "openai/gpt-4.1", **options.pop("config", {})}
        return Agent(AgentConfig.model_validate(settings), tools, model=self.model, **options)


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
        agent = harness.agent(config=config, state=AgentState.restore(log))
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
    ("limit", "reason"),
    [
        ({"max_turns": 1}, "max_turns"),
        ({"max_tokens": 50}, "max_tokens"),
        ({"max_cost_usd": 1e-9}, "max_cost_usd"),
    ],
)
def test_a_run_ends_at_its_limits(server: ReplayServer, limit: Any, reason: str) -> None:  # noqa: ANN401
    result = Harness(server, [CALL]).agent(config={"loop": limit}).run_sync("When?")
    assert (result.status, result.reason) == (RunStatus.ABORTED, reason)


def test_a_call_that_had_begun_is_not_run_again(server: ReplayServer, tmp_path: Path) -> None:
    runs: list[str] = []

    async def slow(place: str) -> str:
        """Look up."""
        runs.append(place)
        if place == "Atlantis":
            await asyncio.sleep(30)
        return "17:42"

    slow.__name__ = "tide"
    harness = Harness(server, [CALL, DONE])

    async def interrupted(agent: Agent) -> None:
        async with agent, aclosing(agent.stream("When?")) as events:
            async for event in events:
                if event.kind is AgentEventKind.TOOL_END:
                    raise KeyError("the process ends")

    with LogFile(tmp_path / "log") as log:
        agent = harness.agent([slow], state=AgentState.create_default("i", log=log))
        with pytest.raises(KeyError):
            asyncio.run(interrupted(agent))
    with LogFile(tmp_path / "log") as log:
        agent = harness.agent([slow], state=AgentState.restore(log))
        assert agent.resume_sync().text == "High tide is at 17:42."
    assert sorted(runs) == ["Atlantis", "Brest"]
    body: Any = server.requests[1].json()
    answers = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    assert answers[0] == "17:42"
    assert "It may have had its effect" in answers[1]
