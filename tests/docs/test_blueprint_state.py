"""The state of an agent and its widgets, by the words of docs/blueprint.md#agent-state."""

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deltafold import Message, Role, ThinkingPart, ToolCallPart
from deltafold.conversation import (
    LIVE_SCREEN,
    AgentState,
    ConversationLog,
    FrozenMapping,
    HistoryEntry,
    HistoryToolCallResult,
    InstructionEntry,
    LevelOfDetailSections,
    LogFile,
    MemoryNotebookWidget,
    ModelInputEntry,
    ModelOutputEntry,
    ResetEntry,
    Tool,
    ToolCallRequest,
    ToolExecutionStatus,
    ToolResultsEntry,
    Widget,
    WidgetEntry,
    WidgetRenderContext,
    to_messages,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def asked(text: str) -> ModelInputEntry:
    return ModelInputEntry(content_sections=LevelOfDetailSections.of_text(text))


def call(tool_call_id: str, name: str, **arguments: object) -> ToolCallRequest:
    return ToolCallRequest.of_part(
        ToolCallPart(tool_call_id=tool_call_id, tool_name=name, arguments=arguments)
    )


def done(tool_call_id: str) -> HistoryToolCallResult:
    sections = LevelOfDetailSections.of_text("done")
    return HistoryToolCallResult("f", tool_call_id, ToolExecutionStatus.SUCCESS, sections)


def conversation(log: ConversationLog | None = None) -> AgentState:
    """Return a state that has every change of the API in its log, but a reset."""
    state = AgentState.create_default("Be brief.", log=log)
    state.append_model_input(asked("first"))
    state.append_model_output(ModelOutputEntry(contents=["hm"], tool_calls=[call("c1", "f")]))
    state.update_memory_notebook("from the host")
    state.append_tool_results(ToolResultsEntry(results=[done("c1")]))
    state.set_system_instruction("Be long.")
    state.execute_widget_tool(call("c2", "memory_notebook_replace", text="from the model"))
    state.append_model_input(asked("second"))
    return state


def seen(state: AgentState) -> tuple[object, ...]:
    """Return everything that a state shows."""
    messages = [message.to_dict() for message in to_messages(state.render_live_context())]
    return (state.system_instruction, state.history, state.memory_notebook_snapshot, messages)


# The log behind the state.


def test_a_state_is_restored_from_its_log_alone() -> None:
    state = conversation()
    restored = AgentState(ConversationLog.from_json(state.log.to_json()), [MemoryNotebookWidget()])
    assert seen(restored) == seen(state)


def test_the_log_restores_the_state_of_any_moment() -> None:
    state = AgentState.create_default("Be brief.")
    moments: list[tuple[int, object]] = []
    for step in ("one", "two", "three"):
        state.append_model_input(asked(step))
        state.update_memory_notebook(f"note {step}")
        state.set_system_instruction(f"instruction {step}")
        moments.append((len(state.log.entries), seen(state)))
    whole: Any = state.log.to_dict()
    for count, shown in moments:
        head = ConversationLog.from_dict({**whole, "entries": whole["entries"][:count]})
        assert seen(AgentState(head, [MemoryNotebookWidget()])) == shown


def test_a_file_keeps_the_conversation(tmp_path: Path) -> None:
    with LogFile(tmp_path / "log.jsonl") as log:
        before = seen(conversation(log))
    with LogFile(tmp_path / "log.jsonl") as log:
        assert seen(AgentState(log, [MemoryNotebookWidget()])) == before


def test_appending_never_changes_earlier_entries() -> None:
    state = AgentState.create_default()
    history: Sequence[HistoryEntry] = ()
    appends: list[Callable[[], object]] = [
        lambda: state.append_model_input(asked("question")),
        lambda: state.append_model_output(ModelOutputEntry(tool_calls=[call("c1", "f")])),
        lambda: state.append_tool_results(ToolResultsEntry(results=[done("c1")])),
        lambda: state.update_memory_notebook("note"),
    ]
    for append in appends:
        append()
        longer = state.history
        assert [id(entry) for entry in longer[:-1]] == [id(entry) for entry in history]
        history = longer


def test_the_log_records_the_instruction_and_the_history_does_not_show_it() -> None:
    state = AgentState.create_default("old")
    state.set_system_instruction("new")
    recorded = [one.instruction for one in state.log.entries if isinstance(one, InstructionEntry)]
    assert recorded == ["old", "new"]
    assert state.history == ()


def test_a_new_instruction_is_in_force_at_once() -> None:
    state = AgentState.create_default("old")
    state.append_model_input(asked("question"))
    assert to_messages(state.render_live_context())[0].text == "old"
    state.set_system_instruction("new")
    assert state.system_instruction == "new"
    assert to_messages(state.render_live_context())[0].text == "new"


def test_rendering_changes_nothing() -> None:
    state = conversation()
    log, before = state.log.to_json(), seen(state)
    context: Any = state.render_live_context()
    context.clear()
    assert state.log.to_json() == log
    assert seen(state) == before


def test_a_reset_empties_the_history_and_the_log_keeps_it() -> None:
    state = conversation()
    entries = state.log.entries
    state.reset()
    assert (state.history, state.memory_notebook_snapshot) == ((), "")
    assert state.system_instruction == "Be long."
    assert [message.role for message in to_messages(state.render_live_context())] == [Role.SYSTEM]
    assert state.log.entries[:-1] == entries
    assert isinstance(state.log.entries[-1], ResetEntry)


def test_the_clock_gives_an_entry_its_time_whatever_time_it_had() -> None:
    state = AgentState.create_default("i", lambda: START)
    given = dataclasses.replace(asked("question"), timestamp=START - timedelta(days=1))
    assert state.append_model_input(given).timestamp == START
    assert state.append_model_output(ModelOutputEntry(contents=["a"])).timestamp == START


def test_without_a_clock_it_is_the_time_in_utc() -> None:
    before = datetime.now(UTC)
    entry = AgentState.create_default().append_model_input(asked("question"))
    assert before <= entry.timestamp <= datetime.now(UTC)


def test_an_answer_of_reasoning_alone_is_kept() -> None:
    state = AgentState.create_default()
    message = Message(role=Role.ASSISTANT, parts=[ThinkingPart(text="cut by the limit")])
    entry = state.append_model_output(ModelOutputEntry.of_message(message))
    assert (entry.contents, entry.tool_calls) == ((), ())
    assert to_messages(state.render_live_context())[-1].parts == message.parts


def test_threads_that_take_a_lock_share_a_state() -> None:
    state = AgentState.create_default()
    lock = threading.Lock()

    def ask() -> None:
        for number in range(50):
            with lock:
                state.append_model_input(asked(str(number)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = [entry.timestamp for entry in state.history]
    assert len(times) == 200
    assert times == sorted(times)


# Widgets.


class Tide(Widget):
    """A widget of the caller: the tide, which the model may set."""

    def __init__(self, height: int = 0) -> None:
        self.height = height

    @property
    def name(self) -> str:
        return "tide"

    @property
    def tools(self) -> Sequence[Tool]:
        return (Tool("set_tide", "Set the tide.", {"type": "object", "properties": {}}),)

    def render_live_screen(self, context: WidgetRenderContext) -> str | None:
        return f"## Tide\n\n{self.height} m of {len(context.state.history)}  \n\n"

    def execute_tool(self, call: ToolCallRequest, record: Any) -> HistoryToolCallResult:  # noqa: ANN401
        assert call.arguments is not None
        self.height = int(str(call.arguments["height"]))
        record(self.name, "set", f"tool call {call.tool_call_id}", self.height)
        return done(call.tool_call_id)

    def restore(self, state: object) -> None:
        self.height = state if isinstance(state, int) else 0


class Blank(Tide):
    """A widget that has nothing to show."""

    def render_live_screen(self, context: WidgetRenderContext) -> str | None:  # noqa: ARG002
        return " \n"


def screens(entry: ModelInputEntry) -> list[str]:
    return [one.value for one in entry.content_sections.live if one.key == LIVE_SCREEN]


def test_widgets_render_text_into_one_live_screen() -> None:
    state = AgentState.create_default(widgets=[Tide(), Blank()])
    state.update_memory_notebook("remember")
    assert screens(state.append_model_input(asked("question"))) == [
        "# [Live Screen]\n\n## Memory Notebook\n\nremember\n\n## Tide\n\n0 m of 1"
    ]
    blank = AgentState.create_default(widgets=[Blank()])
    assert screens(blank.append_model_input(asked("question"))) == []


def test_a_change_of_a_widget_is_an_entry_that_restores_it() -> None:
    state = AgentState.create_default(widgets=[Tide()])
    for height in (3, 4):
        state.execute_widget_tool(call(f"c{height}", "set_tide", height=height))
    changes = [entry for entry in state.history if isinstance(entry, WidgetEntry)]
    assert [(one.widget, one.source, one.state) for one in changes] == [
        ("tide", "tool call c3", 3),
        ("tide", "tool call c4", 4),
    ]
    restored = Tide()
    AgentState(ConversationLog.from_json(state.log.to_json()), [restored])
    assert restored.height == 4


def test_replacing_the_notebook_is_an_entry_with_its_text() -> None:
    state = AgentState.create_default()
    state.execute_widget_tool(call("c1", "memory_notebook_replace", text="one"))
    state.execute_widget_tool(call("c2", "memory_notebook_replace", text="two"))
    name = MemoryNotebookWidget().name
    changes = [one for one in state.history if isinstance(one, WidgetEntry) and one.widget == name]
    assert [change.state for change in changes] == ["one", "two"]
    assert state.memory_notebook_snapshot == "two"


def test_the_host_replaces_and_empties_the_notebook() -> None:
    state = AgentState.create_default()
    state.update_memory_notebook("text")
    assert state.memory_notebook_snapshot == "text"
    state.update_memory_notebook(None)
    assert state.memory_notebook_snapshot == ""
    assert [one.source for one in state.history if isinstance(one, WidgetEntry)] == ["host", "host"]


def test_the_notebook_changes_through_its_widget_alone() -> None:
    state: Any = AgentState.create_default()
    with pytest.raises(AttributeError):
        state.memory_notebook_snapshot = "around the widget"
    with pytest.raises(AttributeError):
        state.memory_notebook_widget.snapshot = "around the log"
    assert state.memory_notebook_snapshot == ""


class FullDisk(ConversationLog):
    """A log that cannot write."""

    def _write_entry(self, entry: HistoryEntry) -> None:
        raise OSError(f"no space for {entry.kind}")


def test_a_change_that_the_log_refuses_leaves_the_notebook_as_it_was() -> None:
    state = AgentState(FullDisk(), [MemoryNotebookWidget()])
    with pytest.raises(OSError, match="widget"):
        state.update_memory_notebook("lost")
    with pytest.raises(OSError, match="no space for widget"):
        state.execute_widget_tool(call("c1", "memory_notebook_replace", text="lost"))
    assert (state.memory_notebook_snapshot, state.history) == ("", ())


def test_a_widget_reads_the_state_and_an_environment_that_cannot_be_changed() -> None:
    given = {"a": [1]}
    state = AgentState.create_default()
    environment: Mapping[str, Any] = WidgetRenderContext(state, given).environment
    given["a"].append(2)
    assert environment == FrozenMapping({"a": [1]})
    with pytest.raises(TypeError):
        environment["b"] = 1  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    assert WidgetRenderContext(state).environment == {}
