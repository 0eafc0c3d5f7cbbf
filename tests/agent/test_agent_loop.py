"""The agent of the example: two providers, a failure, an approval, a retry."""

import asyncio
from typing import Any

from agent_loop import converse
from deltafold.conversation import (
    LIVE_SCREEN,
    AgentState,
    ContextualHistoryEntry,
    ModelInputEntry,
    ModelOutputEntry,
    RunStatus,
    ToolExecutionStatus,
    ToolResultsEntry,
    WidgetEntry,
)
from deltafold.testing import ReplayServer


def held() -> tuple[AgentState, list[Any], list[str]]:
    said: list[str] = []
    with ReplayServer() as server:
        state = asyncio.run(converse(server, said.append))
        return state, [request.json() for request in server.requests], said


def test_the_loop_holds_one_conversation_with_two_providers() -> None:
    state, bodies, said = held()
    assert state.run_state.status is RunStatus.COMPLETED
    spoken = ContextualHistoryEntry | WidgetEntry
    kinds = [type(entry) for entry in state.history if isinstance(entry, spoken)]
    assert kinds == [
        WidgetEntry,
        ModelInputEntry,
        ModelOutputEntry,
        WidgetEntry,
        ToolResultsEntry,
        ModelOutputEntry,
        ToolResultsEntry,
        ModelOutputEntry,
    ]
    outputs = [one for one in state.history if isinstance(one, ModelOutputEntry)]
    assert [one.invocation and one.invocation.provider_id for one in outputs] == [
        "anthropic",
        "openai",
        "openai",
    ]
    assert said[-2].endswith("Atlantis is on no chart.")
    assert said[-1].startswith("=  completed")
    assert [body["model"] for body in bodies] == ["claude-demo", "gpt-demo", "gpt-demo", "gpt-demo"]


def test_a_failing_tool_and_an_approved_one_are_results() -> None:
    state, _, _ = held()
    entries = [one for one in state.history if isinstance(one, ToolResultsEntry)]
    statuses = [[result.status for result in entry.results] for entry in entries]
    assert statuses == [
        [ToolExecutionStatus.SUCCESS, ToolExecutionStatus.FAILED, ToolExecutionStatus.SUCCESS],
        [ToolExecutionStatus.SUCCESS],
    ]
    assert state.memory_notebook_snapshot == "The trip goes to Brest."


def test_a_stream_that_was_cut_is_asked_for_again_and_shown_to_no_model() -> None:
    state, bodies, _ = held()
    assert bodies[1] == bodies[2]
    outputs = [one for one in state.history if isinstance(one, ModelOutputEntry)]
    assert [one.metadata["attempt"] for one in outputs] == [1, 2, 1]


def test_a_live_screen_stays_where_it_was_sent() -> None:
    state, bodies, _ = held()
    shown = [str(body).count("[Live Screen]") for body in bodies]
    assert shown == [1, 2, 2, 2]
    assert "The reader gets seasick." in str(bodies[0])
    assert "The trip goes to Brest." in str(bodies[1])
    inputs = [one for one in state.history if isinstance(one, ModelInputEntry)]
    assert inputs[0].content_sections.live[-1].key == LIVE_SCREEN


def test_every_call_in_a_request_has_its_result() -> None:
    _, bodies, _ = held()
    for body in bodies[1:]:
        made = [call["id"] for turn in body["messages"] for call in turn.get("tool_calls", [])]
        answered = [turn["tool_call_id"] for turn in body["messages"] if turn["role"] == "tool"]
        assert made == answered
        assert made
