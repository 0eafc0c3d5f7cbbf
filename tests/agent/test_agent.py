"""The domain of an agent: runs, sessions, tools, contexts."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from deltafold import Message, MisuseError, Role, ToolCallPart, ToolResultPart, Usage
from deltafold.conversation import (
    TRANSITIONS,
    AgentConfig,
    AgentState,
    ContextInput,
    ContextManager,
    HistoryToolCallResult,
    IllegalTransitionError,
    LevelOfDetail,
    LevelOfDetailSections,
    ModelInputEntry,
    ModelInvocationDescriptor,
    ModelOutputEntry,
    RunState,
    RunStatus,
    Session,
    SessionError,
    ToolCallRequest,
    ToolDefinition,
    ToolExecutionStatus,
    ToolExecutor,
    ToolOutcome,
    ToolResultsEntry,
    estimate_tokens,
    tool_message,
)
from deltafold.conversation.context.plan import CUT_SHARE
from lines import lines_of

# Settings and runs.


def test_settings_have_defaults_and_refuse_what_they_do_not_know() -> None:
    config = AgentConfig(model="anthropic/claude")
    assert (config.loop.max_retries, config.context.token_budget) == (2, None)
    assert AgentConfig.model_validate_json(config.model_dump_json()) == config
    with pytest.raises(ValidationError, match="loops"):
        AgentConfig.model_validate({"model": "m", "loops": {}})


def test_a_run_moves_along_the_table_and_no_other_way() -> None:
    for status, possible in TRANSITIONS.items():
        for target in RunStatus:
            state = RunState(status=status)
            if target in possible:
                state.move(target)
                assert state.status is target
            else:
                with pytest.raises(IllegalTransitionError, match=f"is {status} cannot"):
                    state.move(target)
                assert state.status is status


def test_every_status_can_be_reached_and_left() -> None:
    assert set(TRANSITIONS) == set(RunStatus)
    assert set().union(*TRANSITIONS.values()) == set(RunStatus)
    assert all(TRANSITIONS.values())


def test_usage_and_cost_add_up_over_streams_and_start_anew_with_a_run() -> None:
    state = RunState()
    run = state.begin()
    assert state.current_run_id == run
    state.add_usage(Usage(input_tokens=10, output_tokens=1, total_tokens=11), 0.5)
    state.add_usage(Usage(input_tokens=5, output_tokens=2, total_tokens=7, cost=0.25))
    state.add_usage(None)
    assert (state.token_usage.input_tokens, state.token_usage.total_tokens) == (15, 18)
    assert state.token_usage.reasoning_tokens is None
    assert state.cost_usage == 0.75
    assert RunState.model_validate_json(state.model_dump_json()) == state
    state.move("failed", error="oops")
    assert state.last_error == "oops"
    state.begin("second")
    assert RunState(status=RunStatus.PREPARING, current_run_id="second") == state
    assert state.token_usage == Usage()


# Sessions.


def calling(*ids: str, run_id: str | None = None) -> Message:
    calls = [ToolCallPart(tool_call_id=one, tool_name="f", arguments={}) for one in ids]
    return Message(role=Role.ASSISTANT, parts=list(calls), run_id=run_id)


def answering(*ids: str, run_id: str | None = None) -> Message:
    results = [ToolResultPart(tool_call_id=one, content="done") for one in ids]
    return Message(role=Role.TOOL, parts=list(results), run_id=run_id)


def test_a_session_grows_and_knows_its_open_calls() -> None:
    session = Session()
    session.extend([Message.user("hello"), calling("a", "b"), answering("a")])
    assert session.open_calls == ["b"]
    session.append(answering("b"))
    assert session.open_calls == []
    assert [message.role for message in session.messages] == ["user", "assistant", "tool", "tool"]


@pytest.mark.parametrize(
    ("before", "message", "match"),
    [
        ([], answering("a"), "never made"),
        ([calling("a"), answering("a")], answering("a"), "its result already"),
        ([calling("a")], calling("a"), "used before"),
        ([], calling("a", "a"), "used before"),
        (
            [calling("a", run_id="1"), calling("a", run_id="2"), calling("b", run_id="3")],
            answering("a"),
            "several runs",
        ),
    ],
)
def test_what_does_not_fit_changes_nothing(
    before: list[Message], message: Message, match: str
) -> None:
    session = Session(messages=before)
    calls = session.open_calls
    with pytest.raises(SessionError, match=match) as raised:
        session.append(message)
    assert raised.value.tool_call_id == "a"
    assert len(session.messages) == len(before)
    assert session.open_calls == calls


def test_ids_may_return_in_another_run() -> None:
    session = Session()
    for run in ("1", "2"):
        session.append(calling("a", run_id=run))
        session.append(answering("a", run_id=run))
    assert session.open_calls == []


def test_messages_of_a_session_are_its_own() -> None:
    message = Message.user("hello")
    session = Session(messages=[message])
    message.parts.clear()
    assert session.messages[0].text == "hello"
    with pytest.raises(AttributeError):
        session.messages = ()  # type: ignore[misc]


def test_a_session_survives_its_wire_form_and_checks_it() -> None:
    session = Session(run_id="r", metadata={"a": 1})
    session.extend([calling("a"), answering("a")])
    session.append_entry({"type": "summary", "text": "long ago"})
    again = Session.from_json(session.to_json())
    assert again.to_dict() == session.to_dict()
    broken: Any = session.to_dict()
    assert again.messages == session.messages
    broken["entries"] = broken["entries"][1:]
    with pytest.raises(SessionError, match=r"entries\[0\].*never made"):
        Session.from_dict(broken)


def test_a_session_is_sent_with_a_result_for_each_call() -> None:
    session = Session(messages=[Message.user("hello"), calling("a", "b"), answering("a")])
    messages, report = session.messages_for("openai-chat")
    results = [
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResultPart)
    ]
    assert results == ["a", "b"]
    assert [str(code) for code in report.codes] == ["orphan_call"]
    assert session.open_calls == ["b"]


@pytest.mark.slow
def test_messages_are_appended_in_linear_work() -> None:
    def fill(session: Session, pairs: int) -> None:
        for number in range(pairs):
            session.append(calling(f"c{number}"))
            session.append(answering(f"c{number}"))

    short = lines_of(lambda: fill(Session(), 200))
    assert lines_of(lambda: fill(Session(), 2_000)) <= 10.5 * short


# Tools.


def call(name: str, tool_call_id: str = "c", **arguments: object) -> ToolCallPart:
    return ToolCallPart(tool_call_id=tool_call_id, tool_name=name, arguments=arguments)


def weather(city: str, days: int = 1) -> dict[str, object]:
    """Tell the weather of a city."""
    return {"city": city, "days": days}


def run(executor: ToolExecutor, *calls: ToolCallPart) -> list[ToolOutcome]:
    return asyncio.run(executor.execute_all(calls))


def test_a_function_is_a_tool() -> None:
    tool = ToolDefinition.from_function(weather, timeout_ms=1000)
    spec = tool.to_spec()
    assert (spec.name, spec.description) == ("weather", "Tell the weather of a city.")
    assert spec.parameter_schema["required"] == ["city"]
    (outcome,) = run(ToolExecutor([tool]), call("weather", city="Brest"))
    assert outcome.status is ToolExecutionStatus.SUCCESS
    assert outcome.content == '{"city": "Brest", "days": 1}'
    assert outcome.value == {"city": "Brest", "days": 1}


def test_runtime_and_agent_are_given_and_not_asked_of_the_model() -> None:
    async def inspect_it(what: str, runtime: object, agent: object) -> str:
        """Look at something."""
        return f"{what} {runtime} {agent}"

    tool = ToolDefinition.from_function(inspect_it)
    properties: Any = tool.to_spec().parameter_schema["properties"]
    assert list(properties) == ["what"]
    (outcome,) = run(ToolExecutor([tool], runtime="R", agent="A"), call("inspect_it", what="w"))
    assert outcome.content == "w R A"
    with pytest.raises(MisuseError, match="runtime"):
        ToolExecutor([tool], agent="A")


def test_what_goes_wrong_is_a_result_that_says_so() -> None:
    def broken() -> None:
        """Break."""
        raise KeyError("oops")

    def times_out() -> None:
        """Raise what a limit raises."""
        raise TimeoutError("of its own")

    async def slow() -> None:
        """Take long."""
        await asyncio.sleep(30)

    tools = [
        ToolDefinition.from_function(broken),
        ToolDefinition.from_function(times_out),
        ToolDefinition.from_function(slow, timeout_ms=20),
        ToolDefinition.from_function(weather),
    ]
    cut = ToolCallPart(tool_call_id="c", tool_name="broken", raw_args_text="{", incomplete=True)
    wrong = ToolCallPart(tool_call_id="c", tool_name="broken", raw_args_text="[1]")
    outcomes = run(
        ToolExecutor(tools),
        call("broken"),
        call("times_out"),
        call("slow"),
        call("unheard_of"),
        call("weather", town="Brest"),
        cut,
        wrong,
    )
    assert {outcome.status for outcome in outcomes} == {ToolExecutionStatus.FAILED}
    for outcome, words in zip(
        outcomes,
        [
            "oops",
            "of its own",
            "20 ms",
            "there are: broken",
            "'city': field required",
            "cut off",
            "not a JSON",
        ],
        strict=True,
    ):
        assert words in outcome.content
        assert outcome.part().is_error


def test_an_approval_is_waited_for_and_shown_in_the_run() -> None:
    seen: list[tuple[str, RunStatus]] = []
    state = AgentState()
    run_state = state.run_state
    run_state.begin()
    run_state.move(RunStatus.TOOL_RUNNING)

    async def approve(tool: ToolDefinition, asked: ToolCallRequest) -> bool:
        seen.append((tool.name, run_state.status))
        await asyncio.sleep(0)
        return asked.tool_call_id == "yes"

    tool = ToolDefinition.from_function(weather, requires_approval=True)
    executor = ToolExecutor([tool], approve=approve, state=state)
    outcomes = run(executor, call("weather", "yes", city="a"), call("weather", "no", city="b"))
    assert [outcome.status for outcome in outcomes] == [
        ToolExecutionStatus.SUCCESS,
        ToolExecutionStatus.REJECTED,
    ]
    assert seen == [("weather", RunStatus.AWAITING_HUMAN)] * 2
    assert run_state.status is RunStatus.TOOL_RUNNING
    with pytest.raises(MisuseError, match="approve"):
        ToolExecutor([tool])


def test_who_cannot_be_asked_has_not_agreed() -> None:
    def approve(_tool: ToolDefinition, _asked: ToolCallRequest) -> bool:
        raise ConnectionError

    tool = ToolDefinition.from_function(weather, requires_approval=True)
    (outcome,) = run(ToolExecutor([tool], approve=approve), call("weather", city="a"))
    assert outcome.status is ToolExecutionStatus.REJECTED


def test_calls_run_at_once_and_results_keep_their_order() -> None:
    running: list[int] = [0, 0]

    async def busy(number: int) -> int:
        """Count who runs."""
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.01 * (3 - number))
        running[0] -= 1
        return number

    calls = [call("busy", f"c{number}", number=number) for number in range(4)]
    executor = ToolExecutor([ToolDefinition.from_function(busy)], max_parallel=2)
    outcomes = run(executor, *calls)
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, 3]
    assert running == [0, 2]
    message = tool_message(outcomes, "run")
    assert [part.tool_call_id for part in message.parts if isinstance(part, ToolResultPart)] == [
        "c0",
        "c1",
        "c2",
        "c3",
    ]


def test_a_blocking_tool_does_not_block_the_loop() -> None:
    async def main() -> list[str]:
        order: list[str] = []

        def block() -> str:
            """Block a thread."""
            time.sleep(0.05)
            order.append("tool")
            return "done"

        executor = ToolExecutor([ToolDefinition.from_function(block)])
        task = asyncio.create_task(executor.execute(call("block")))
        await asyncio.sleep(0)
        order.append("loop")
        await task
        return order

    assert asyncio.run(main()) == ["loop", "tool"]


def test_a_long_result_is_shortened_to_its_gist_alone() -> None:
    outcome = ToolOutcome(
        ToolCallRequest.of_part(call("f")), ToolExecutionStatus.SUCCESS, "x" * 5_000
    )
    sections = outcome.history_result().result
    assert len(sections.live[0].value) == 5_000
    assert sections.summary == sections.live
    assert sections.gist[0].value.startswith("x" * 200 + "… (4,800")


def test_two_tools_of_one_name_are_misuse() -> None:
    with pytest.raises(MisuseError, match="weather"):
        ToolExecutor([ToolDefinition.from_function(weather)] * 2)


# Contexts.

INVOCATION = ModelInvocationDescriptor("anthropic", "messages", "claude")


def levels(live: str, summary: str, gist: str) -> LevelOfDetailSections:
    return LevelOfDetailSections([("", live)], [("", summary)], [("", gist)])


def conversation(exchanges: int) -> AgentState:
    """Exchanges of an input, a call, its result and an answer; 40 tokens live, 20, then 10."""
    clock = iter(range(10**9))
    state = AgentState.create_default(
        "i", lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(clock))
    )
    for number in range(exchanges):
        sections = levels("x" * 160, "x" * 80, "x" * 40)
        state.append_model_input(ModelInputEntry(content_sections=sections))
        asked = ToolCallRequest("f", f"c{number}", "{}", {})
        state.append_model_output(ModelOutputEntry(invocation=INVOCATION, tool_calls=[asked]))
        result = HistoryToolCallResult("f", f"c{number}", ToolExecutionStatus.SUCCESS, sections)
        state.append_tool_results(ToolResultsEntry(results=[result]))
        state.append_model_output(ModelOutputEntry(invocation=INVOCATION, contents=["done"]))
    return state


def build(state: AgentState, budget: int | None) -> Any:  # noqa: ANN401 - a result of this module
    return ContextManager().build_context(ContextInput(state, budget))


def test_without_a_budget_nothing_is_reduced() -> None:
    update = build(conversation(2), None).update
    assert update.fits
    assert update.levels == (LevelOfDetail.LIVE,) * 8
    assert update.reduced == update.left_out == ()


def test_levels_give_way_oldest_first_until_there_is_room() -> None:
    state = conversation(3)
    whole = build(state, None).update.tokens
    assert build(state, whole).update.levels == (LevelOfDetail.LIVE,) * 12
    cut = build(state, whole - 1).update
    assert cut.tokens <= (whole - 1) * CUT_SHARE
    assert cut.reduced[0] == state.history[0].id
    order = [LevelOfDetail.GIST, LevelOfDetail.SUMMARY, LevelOfDetail.LIVE]
    read = [order.index(cut.levels[place]) for place in (0, 2, 4, 6)]
    assert read == sorted(read)
    assert cut.levels[8:] == (LevelOfDetail.LIVE,) * 4


def test_whole_exchanges_are_left_out_and_the_newest_never() -> None:
    state = conversation(3)
    whole = build(state, None).update.tokens
    update = build(state, whole // 2).update
    assert update.fits
    assert update.levels[:4] == (None,) * 4
    pairs = zip(state.history, update.levels, strict=True)
    gone = [entry.id for entry, level in pairs if level is None]
    assert update.left_out == tuple(gone)
    assert None not in update.levels[8:]
    tight = build(state, 1).update
    assert not tight.fits
    assert "the budget is 1" in (tight.reason or "")
    assert tight.levels == (*(None,) * 8, *(LevelOfDetail.LIVE,) * 4)


@pytest.mark.parametrize("budget", [250, 400, 700, 1_500])
def test_a_request_repeats_the_one_before_it_between_two_cuts(budget: int) -> None:
    contexts = [build(conversation(number), budget) for number in range(1, 40)]
    cuts = 0
    for before, after in pairwise(contexts):
        levels_before = before.update.levels
        if after.update.levels[: len(levels_before)] != levels_before:
            cuts += 1
            continue
        shown = [message.text for message in before.messages]
        assert [message.text for message in after.messages][: len(shown)] == shown
    # A cut makes room for a quarter of the budget; an exchange has about a hundred tokens.
    assert 0 < cuts <= 39 * 120 / (budget * (1 - CUT_SHARE))


@pytest.mark.parametrize("budget", range(1, 400, 7))
def test_a_call_is_never_shown_without_its_result(budget: int) -> None:
    messages = build(conversation(4), budget).messages
    made = [one.tool_call_id for message in messages for one in message.tool_calls]
    answered = [
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResultPart)
    ]
    assert made == answered
    assert messages[0].role is Role.SYSTEM


def test_the_tokens_that_are_told_are_those_of_the_context() -> None:
    built = build(conversation(3), 150)
    shown = sum(estimate_tokens(message.text) for message in built.messages)
    assert shown <= built.update.tokens <= 150


def test_an_empty_conversation_has_its_instruction() -> None:
    built = build(AgentState.create_default("i"), 10)
    assert [message.text for message in built.messages] == ["i"]
    assert built.update.fits


@pytest.mark.slow
@pytest.mark.parametrize("budget", [None, 5_000])
def test_a_context_is_made_in_work_linear_in_the_history(budget: int | None) -> None:
    short = lines_of(lambda: build(conversation(250), budget).messages)
    long = lines_of(lambda: build(conversation(2_500), budget).messages)
    assert long <= 10.5 * short
