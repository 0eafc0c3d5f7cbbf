"""Approvals: who decides about a call, what runs, and what the model and the log see of it."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from answering_server import AnsweringServer, Words
from deltafold import Agent, ImagePart, Message, MisuseError, Tool
from deltafold.conversation import (
    AgentState,
    Approval,
    HistoryEntry,
    HistoryToolCallResult,
    LevelOfDetailSections,
    LogFile,
    RunStatus,
    ToolCallRequest,
    ToolExecutionStatus,
)
from deltafold.conversation.history.run_entries import CallEntry

CONFIG: Any = {"tools": {"require_approval": ["pay"]}}


def reply(words: Words) -> Sequence[Any]:
    """Call the tool once, and then say what was told."""
    role, content = words[-1]
    return (f"told: {content}",) if role == "tool" else (("c1", "pay", {"euros": 500}),)


def agent_of(server: AnsweringServer, paid: list[int], **options: Any) -> Agent[None]:  # noqa: ANN401
    def pay(euros: int) -> str:
        """Pay."""
        paid.append(euros)
        return f"paid {euros}"

    return Agent(CONFIG, [pay], model=server.model(), **options)


def stages(state: AgentState) -> list[tuple[str, str | None]]:
    entries: Sequence[HistoryEntry] = state.log.entries
    return [(str(one.stage), one.by) for one in entries if isinstance(one, CallEntry)]


def results(state: AgentState) -> Message:
    (message,) = (one for one in state.messages_for("openai-chat")[0] if one.role == "tool")
    return message


NOTED = '[The call ran with other arguments: {"euros": 5}. Not so much.]\npaid 5'


@pytest.mark.parametrize("is_resumed", [False, True])
@pytest.mark.parametrize(
    ("decision", "told", "paid"),
    [
        (True, "paid 500", [500]),
        (False, "The call was rejected.", []),
        (Approval(True), "paid 500", [500]),
        (Approval(False, reason="Too much."), "The call was rejected. Too much.", []),
        (Approval(True, reason="Once."), "[The call was approved: Once.]\npaid 500", [500]),
        (Approval(True, {"euros": 5}, "Not so much.", "Ann"), NOTED, [5]),
    ],
)
def test_a_decision_reaches_the_tool_the_model_and_the_log(
    decision: bool | Approval, told: str, paid: list[int], *, is_resumed: bool, tmp_path: Path
) -> None:
    seen: list[int] = []
    with AnsweringServer(reply) as server:
        if is_resumed:
            agent = agent_of(server, seen)
            with LogFile(tmp_path / "log") as log:
                assert agent.run_sync("go", state=AgentState(log)).status is (
                    RunStatus.AWAITING_HUMAN
                )
            with LogFile(tmp_path / "log") as log:
                result = agent.resume_sync(AgentState(log), {"c1": decision})
        else:

            def approve(_tool: Tool, _call: ToolCallRequest) -> bool | Approval:
                return decision

            result = agent_of(server, seen, approve=approve).run_sync("go")
    assert (result.text, seen) == (f"told: {told}", paid)
    stated = decision if isinstance(decision, Approval) else Approval(decision)
    approved = stated.approved
    by = stated.by or ("resume" if is_resumed else "approve")
    reached = stages(result.state)
    assert reached[0] == ("approved" if approved else "rejected", by)
    after = ["started", "ended"] if approved else [] if is_resumed else ["ended"]
    assert [stage for stage, _ in reached[1:]] == after
    message = results(result.state)
    (record,) = message.meta.approvals
    entry = next(one for one in result.state.log.entries if isinstance(one, CallEntry))
    arguments = {"arguments": {"euros": 5}} if paid == [5] else {}
    assert record == {
        "toolCallId": "c1",
        "approved": approved,
        "by": by,
        "at": entry.timestamp.isoformat(),
        **({} if stated.reason is None else {"reason": stated.reason}),
        **arguments,
    }
    # The history keeps what the model asked for.
    body: Any = server.requests[-1].json()
    (call,) = (one for turn in body["messages"] for one in turn.get("tool_calls", ()))
    assert json.loads(call["function"]["arguments"]) == {"euros": 500}
    restored = (
        AgentState(type(result.state.log).from_json(result.state.log.to_json()))
        if (not is_resumed)
        else result.state
    )
    assert results(restored).meta.approvals == message.meta.approvals


@pytest.mark.parametrize("arguments", [{"euros": "much"}, {"francs": 5}, {}])
def test_changed_arguments_that_do_not_fit_run_nothing(
    arguments: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    paid: list[int] = []
    decision = Approval(True, arguments, by="Ann")
    with AnsweringServer(reply) as server:
        agent = agent_of(server, paid)
        waiting = agent.run_sync("go")
        with pytest.raises(MisuseError, match="approvals: 'c1': pay: "):
            agent.resume_sync(waiting.state, {"c1": decision})
        assert stages(waiting.state) == []
        with caplog.at_level(logging.ERROR, "deltafold"):
            rejected = agent.run_sync("go", approve=lambda _tool, _call: decision)
        assert "The call was rejected. Its approval changed the arguments. pay: " in rejected.text
        assert "changed the arguments" in caplog.text
        assert stages(rejected.state)[0] == ("rejected", "Ann")
        assert agent.resume_sync(waiting.state, {"c1": True}).text == "told: paid 500"
    assert paid == [500]


def test_a_decision_that_the_log_has_is_not_asked_for_again() -> None:
    asked: list[str] = []
    paid: list[int] = []

    async def ask(_tool: Tool, call: ToolCallRequest) -> bool:
        asked.append(call.tool_call_id)
        return False

    with AnsweringServer(reply) as server:
        agent = agent_of(server, paid)
        waiting = agent.run_sync("go")
        decision = Approval(True, {"euros": 1})
        agent.resume_sync(waiting.state, {"c1": decision}, approve=ask)
    assert (asked, paid) == ([], [1])


def test_an_approval_checks_its_fields() -> None:
    wrong: Any
    for wrong in ({"approved": "false"}, {"approved": 1}, {"approved": True, "reason": 5}):
        with pytest.raises(TypeError):
            Approval(**wrong)
    wrong = ["euros"]
    with pytest.raises(TypeError, match="arguments must be a mapping"):
        Approval(True, wrong)
    with pytest.raises(ValueError, match="a call that is rejected"):
        Approval(False, {"euros": 5})


@pytest.mark.parametrize(
    "value",
    [
        ImagePart(data="aGk=", mime_type="image/png"),
        HistoryToolCallResult(
            "pay", "c1", ToolExecutionStatus.SUCCESS, LevelOfDetailSections.of_text("paid")
        ),
        None,
        {"paid": True},
    ],
)
def test_the_note_stands_before_a_result_of_any_form(value: object) -> None:
    def pay(euros: int) -> object:
        """Pay."""
        del euros
        return value

    def once(words: Words) -> Sequence[Any]:
        return reply(words) if len(words) == 1 else ("done",)

    with AnsweringServer(once) as server:
        agent = Agent(CONFIG, [pay], model=server.model())
        agent.run_sync("go", approve=lambda _tool, _call: Approval(True, reason="Once."))
    content = next(content for role, content in server.words[-1] if role == "tool")
    text = content if isinstance(content, str) else content[0]["text"]
    assert text.startswith("[The call was approved: Once.]")


def test_pending_calls_are_those_of_the_log_without_a_decision(tmp_path: Path) -> None:
    seen: list[int] = []

    def approve(_tool: Tool, _call: ToolCallRequest) -> bool:
        return True

    with AnsweringServer(reply) as server:
        agent = agent_of(server, seen)
        with LogFile(tmp_path / "log") as log:
            state = AgentState(log)
            assert agent.pending(state) == []
            result = agent.run_sync("go", state=state)
            assert agent.pending(state) == [*result.pending] != []
        with LogFile(tmp_path / "log") as log:
            state, count = AgentState(log), len(log.entries)
            (call,) = agent.pending(state)
            assert (call.tool_call_id, call.arguments) == ("c1", {"euros": 500})
            assert agent_of(server, seen, approve=approve).pending(state) == []
            assert len(log.entries) == count
            agent.resume_sync(state, {"c1": False})
            assert agent.pending(state) == []
    assert not seen


def test_pending_calls_need_no_runtime_and_end_with_the_next_message() -> None:
    def pay_as(euros: int, runtime: str) -> str:
        """Pay."""
        return f"{runtime} paid {euros}"

    with AnsweringServer(
        lambda words: (("c1", "pay_as", {"euros": 5}),) if words[-1][1] == "pay" else ("fine",)
    ) as server:
        config = {"tools": {"require_approval": ["pay_as"]}}
        agent = Agent(config, [pay_as], model=server.model())
        state = AgentState()
        agent.run_sync("pay", state=state, runtime="ann")
        assert [call.tool_call_id for call in agent.pending(state)] == ["c1"]
        agent.run_sync("no", state=state, runtime="ann")
        assert agent.pending(state) == []
