"""The log of a conversation: accepted entries, stored entries, and the round trip through JSON."""

import dataclasses
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from corpus import FIXTURES
from deltafold import (
    FileRefPart,
    ImagePart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from deltafold.conversation import (
    LOG_VERSION,
    AgentState,
    CallEntry,
    CallStage,
    CompactionEntry,
    ContextAttachment,
    ConversationLog,
    HistoryEntry,
    HistoryToolCallResult,
    InstructionEntry,
    LevelOfDetailSections,
    MemoryNotebookWidget,
    ModelInputEntry,
    ModelInvocationDescriptor,
    ModelOutputEntry,
    PartialEntry,
    ResetEntry,
    Session,
    SessionError,
    StoredEntry,
    ToolCallRequest,
    ToolExecutionStatus,
    ToolResultsEntry,
    WidgetEntry,
    to_messages,
)

MESSAGES = sorted(FIXTURES.glob("*/*/message.json"))
CLAUDE = ModelInvocationDescriptor("anthropic", "messages", "claude")
START = datetime(2026, 1, 1, tzinfo=UTC)
PIXEL = ImagePart(mime_type="image/png", data="iVBORw0KGgo=")


def clock() -> Callable[[], datetime]:
    seconds = iter(range(10**9))
    return lambda: START + timedelta(seconds=next(seconds), microseconds=1)


def calling(*ids: str, name: str = "weather") -> Message:
    return Message.assistant(
        *(ToolCallPart(tool_call_id=one, tool_name=name, raw_args_text='{"a": [1]}') for one in ids)
    )


def result(tool_call_id: str, text: str = "fine") -> HistoryToolCallResult:
    return HistoryToolCallResult(
        "weather",
        tool_call_id,
        ToolExecutionStatus.SUCCESS,
        LevelOfDetailSections.of_text(text),
        timedelta(seconds=1.25),
        [ContextAttachment(PIXEL, "chart")],
    )


ENTRIES: dict[str, HistoryEntry] = {
    "input": ModelInputEntry(
        content_sections=LevelOfDetailSections([("a", "1")], [("", "2")], [("", "3")]),
        attachments=[ContextAttachment(FileRefPart(path="https://x/y.pdf"), "y")],
        metadata={"source": "test", "list": [1, {"deep": None}]},
    ),
    "input of a message": ModelInputEntry.of_message(Message.user("x" * 300, PIXEL)),
    "output": ModelOutputEntry(
        invocation=CLAUDE,
        contents=["a", "b"],
        tool_calls=[ToolCallRequest("f", "c1", "{", None, "broken", None)],
    ),
    "output of a message": ModelOutputEntry.of_message(
        Message.assistant(ThinkingPart(text="hm"), "yes", *calling("c2").parts), CLAUDE
    ),
    "results": ToolResultsEntry(results=[result("c1")], execute_error="no sandbox"),
    "results of a message": ToolResultsEntry.of_message(
        Message.tool_result("c2", {"a": None}, is_error=True, status="rejected"), {"c2": "f"}
    ),
    "widget": WidgetEntry(widget="w", change="c", source="host", state={"a": [None, 1.5]}),
    "instruction": InstructionEntry(instruction="Be brief."),
    "instruction of a message": InstructionEntry.of_message(Message.system("Be", " brief.")),
    "compaction": CompactionEntry(summary="long ago", covers=[Message.user("x").id]),
    "call": CallEntry(tool_call_id="c1", stage=CallStage.STARTED),
    "call that began early": CallEntry(
        tool_call_id="c1", stage=CallStage.STARTED, call=ToolCallRequest("f", "c1", "{}", {})
    ),
    "call that has ended": CallEntry(tool_call_id="c1", stage=CallStage.ENDED, result=result("c1")),
    "partial": PartialEntry(message=Message.assistant("Half an"), error="connection_lost"),
    "reset": ResetEntry(),
    "stored": StoredEntry(data={"type": "mark", "list": [{"a": None}]}),
}


def log_of_all() -> ConversationLog:
    log = ConversationLog("s", "run-1", {"team": ["blue", None]}, clock=clock())
    log.append(InstructionEntry(instruction="Be brief."))
    log.append_message(Message.user("Look at this.", PIXEL))
    log.append_message(calling("c1", "c2"), attempt=1)
    log.append(ToolResultsEntry(results=[result("c1")], execute_error="no sandbox"))
    log.run_id = "run-2"
    log.append(WidgetEntry(widget="w", change="c", source="host", state="text"))
    log.append_message(calling("c1"))
    log.append_message(Message.tool_result("c1", [PIXEL, TextPart(text="a chart")]))
    log.append(StoredEntry(data={"type": "mark"}))
    log.append(CompactionEntry(summary="long ago", covers=[log.entries[1].id]))
    return log


# Every finished message and every failure is kept.


@pytest.mark.one_in(4)
@pytest.mark.parametrize("path", MESSAGES, ids=lambda path: f"{path.parts[-3]}/{path.parts[-2]}")
def test_every_finished_message_can_be_kept(path: Path) -> None:
    wire = json.loads(path.read_text(encoding="utf-8"))
    message = Message.from_dict(wire.get("message") or wire)
    state = AgentState.create_default()
    kept = state.append_model_output(ModelOutputEntry.of_message(message, CLAUDE))
    again = ConversationLog.from_json(state.log.to_json())
    assert again.entries == state.log.entries
    assert kept.message == message
    assert to_messages(state.render_live_context())[-1] == message


@pytest.mark.parametrize(
    "parts",
    [
        [ThinkingPart(text="cut by the lim")],
        [PIXEL],
        [ProviderPart(dialect="anthropic-messages", block={"type": "container_upload"})],
        [TextPart(text="I cannot help with that.", refusal=True)],
        [],
    ],
)
def test_an_answer_without_text_and_calls_is_kept(parts: list[Any]) -> None:
    state = AgentState.create_default()
    message = Message(role=Role.ASSISTANT, parts=parts)
    state.append_model_output(ModelOutputEntry.of_message(message, CLAUDE))
    assert Session(log=state.log).messages[-1] == message


def test_some_results_and_an_error_answer_every_call() -> None:
    state = AgentState.create_default()
    state.append_model_output(ModelOutputEntry.of_message(calling("a", "b", "c")))
    state.append_tool_results(
        ToolResultsEntry(results=[result("a"), result("c")], execute_error="out of memory")
    )
    parts: list[Any] = to_messages(state.render_live_context())[-1].parts
    assert [(part.tool_call_id, part.is_error) for part in parts] == [
        ("a", False),
        ("c", False),
        ("b", True),
    ]
    assert parts[-1].content == "out of memory"
    assert state.log.open_calls == []


def test_an_error_beside_all_results_reaches_the_model() -> None:
    state = AgentState.create_default()
    state.append_model_output(ModelOutputEntry.of_message(calling("a", "b")))
    state.append_tool_results(
        ToolResultsEntry(results=[result("a"), result("b")], execute_error="the disk is full")
    )
    message = to_messages(state.render_live_context())[-1]
    last: Any = message.parts[-1]
    assert last.tool_call_id == "b"
    assert TextPart(text="the disk is full") in last.content
    assert len(message.parts) == 2


def test_an_error_after_an_answer_without_calls_reaches_the_model() -> None:
    state = AgentState.create_default()
    state.append_model_output(ModelOutputEntry.of_message(Message.assistant("Done.")))
    state.append_tool_results(ToolResultsEntry(execute_error="the checks failed"))
    last = to_messages(state.render_live_context())[-1]
    assert (last.role, last.text) == (Role.USER, "the checks failed")


@pytest.mark.parametrize(("ids", "place"), [(["b", "a"], 0), (["a", "x"], 1), (["a", "a"], 1)])
def test_some_results_keep_the_order_of_their_calls(ids: list[str], place: int) -> None:
    state = AgentState.create_default()
    state.append_model_output(ModelOutputEntry.of_message(calling("a", "b", "c")))
    before = state.log.entries
    with pytest.raises(ValueError, match=rf"results\[{place}\]"):
        state.append_tool_results(
            ToolResultsEntry(results=[result(one) for one in ids], execute_error="no")
        )
    assert state.log.entries == before


# Entries.


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_an_entry_survives_replace_and_json(entry: HistoryEntry) -> None:
    assert dataclasses.replace(entry) == entry
    changed = dataclasses.replace(entry, metadata={"changed": True})
    assert changed.metadata == {"changed": True}
    assert dataclasses.replace(changed, metadata=entry.metadata) == entry
    log = ConversationLog(clock=clock())
    if isinstance(entry, ToolResultsEntry):
        log.append_message(calling("c1", "c2"))
    if isinstance(entry, CompactionEntry):
        entry = dataclasses.replace(entry, covers=[log.append_message(Message.user("x")).id])
    stored = log.append(entry)
    again = ConversationLog.from_json(log.to_json())
    assert again.entries[-1] == stored
    assert json.loads(again.to_json()) == json.loads(log.to_json())


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_an_entry_has_the_time_of_its_creation_before_it_is_appended(entry: HistoryEntry) -> None:
    assert entry.timestamp.year >= 2026
    with pytest.raises(ValueError, match="time zone"):
        dataclasses.replace(entry, timestamp=datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake


def test_the_system_message_has_the_time_of_its_instruction() -> None:
    state = AgentState.create_default("Be brief.", clock())
    state.set_system_instruction("Be long.")
    said = state.render_live_context()[0]
    assert said.timestamp == START + timedelta(seconds=1, microseconds=1)
    assert to_messages([said])[0].timestamp.year == 2026


def test_nothing_that_is_handed_out_changes_the_log() -> None:
    log = log_of_all()
    before = log.to_json()
    for message in Session(log=log).messages:
        message.parts.clear()
        message.meta.warnings.append({"code": "x"})
        message.run_id = "other"
    for entry in log.entries:
        kept: Any = getattr(entry, "message", None)
        if kept is not None:
            kept.parts.append(TextPart(text="more"))
            for part in kept.parts:
                if isinstance(part, ToolCallPart) and part.arguments is not None:
                    part.arguments["a"] = "changed"
    with pytest.raises(TypeError):
        log.metadata["team"] = "red"  # type: ignore[index]
    assert log.to_json() == before


def test_a_message_that_changes_after_append_does_not_change_the_log() -> None:
    message = calling("a")
    session = Session()
    session.append(message)
    call: Any = message.parts[0]
    call.arguments["a"].append("changed")
    message.parts.append(TextPart(text="more"))
    assert session.messages[0].to_dict()["parts"] == calling("a").to_dict()["parts"]


# The laws of a log.


def test_an_appended_entry_gets_its_run_and_its_time() -> None:
    log = ConversationLog(run_id="r", clock=clock())
    stored = log.append(ModelOutputEntry.of_message(Message.assistant("hello")))
    assert stored.run_id == "r"
    assert stored.message is not None
    assert stored.message.run_id == "r"
    assert stored.timestamp == START + timedelta(microseconds=1)
    own = log.append_message(Message.user("hi", run_id="other"))
    assert own.run_id == "other"


def test_an_entry_that_is_appended_twice_gets_a_new_id() -> None:
    log = ConversationLog()
    first = log.append_message(Message.user("hi"))
    second = log.append(first)
    assert first.id != second.id
    assert len({entry.id for entry in log.entries}) == 2


def test_results_get_the_names_of_their_tools() -> None:
    log = ConversationLog()
    log.append_message(calling("a", name="tides"))
    stored: Any = log.append_message(Message.tool_result("a", "17:42"))
    assert stored.results[0].tool_name == "tides"


def test_a_lawful_session_survives_its_json_across_runs() -> None:
    session = Session(run_id="one")
    session.append(calling("a"))
    session.append(Message.tool_result("a", "x"))
    session.run_id = "two"
    session.append(calling("a"))
    session.append(Message.tool_result("a", "y"))
    again = Session.from_json(session.to_json())
    assert again.messages == session.messages
    assert again.run_id == "two"
    assert [message.run_id for message in again.messages] == ["one", "one", "two", "two"]
    with pytest.raises(SessionError, match="used before in this run"):
        again.append(calling("a"))


def test_a_log_of_every_kind_survives_its_json() -> None:
    log = log_of_all()
    again = ConversationLog.from_json(log.to_json())
    assert again.entries == log.entries
    assert again.to_dict() == log.to_dict()
    assert (again.session_id, again.run_id, again.metadata) == (
        log.session_id,
        log.run_id,
        log.metadata,
    )
    assert Session(log=again).messages == Session(log=log).messages


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"version": 99}, f"version must be {LOG_VERSION}, not 99"),
        ({"sessionId": 7}, "sessionId must be a string"),
        ({"entries": [{"kind": "opera"}]}, r"entries\[0\]\.kind: .*not 'opera'"),
        ({"entries": [{"kind": "widget", "change": 1}]}, r"entries\[0\]\.widget: Field required"),
        (
            {"entries": [{"kind": "reset", "colour": "red"}]},
            r"entries\[0\]\.colour: Unexpected keyword",
        ),
        (
            {"entries": [{"kind": "model_input", "message": {"role": "user", "parts": 7}}]},
            r"entries\[0\]\.parts: Input should be a valid list",
        ),
        ({"entries": [7]}, r"entries\[0\]\.kind"),
        ({"entries": [{"kind": ["reset"]}]}, r"entries\[0\]\.kind"),
        ({"entries": [{"kind": "tool_result", "toolNames": 5}]}, r"entries\[0\]\.toolNames"),
        ({"entries": None}, "entries must be a list"),
        ({"metadata": [1]}, "metadata must be an object"),
        ({"version": True}, "version must be 1, not True"),
    ],
)
def test_wrong_json_is_refused_with_the_place(change: dict[str, object], match: str) -> None:
    wire = {**ConversationLog("s").to_dict(), **change}
    with pytest.raises(ValueError, match=match):
        ConversationLog.from_dict(wire)


def test_two_entries_of_one_id_are_refused() -> None:
    wire: Any = log_of_all().to_dict()
    wire["entries"].append(wire["entries"][-1])
    with pytest.raises(SessionError, match=r"entries\[9\]: id"):
        ConversationLog.from_dict(wire)


def test_a_reset_begins_anew_and_forgets_nothing() -> None:
    state = AgentState.create_default("Be brief.")
    state.update_memory_notebook("remember")
    state.append_model_output(ModelOutputEntry.of_message(calling("a")))
    state.reset()
    assert state.history == ()
    assert state.system_instruction == "Be brief."
    assert state.memory_notebook_snapshot == ""
    assert state.log.open_calls == []
    assert len(state.log.entries) == 4
    state.append_model_output(ModelOutputEntry.of_message(calling("a")))
    restored = AgentState(ConversationLog.from_json(state.log.to_json()), [MemoryNotebookWidget()])
    assert restored.history == state.history
    assert restored.memory_notebook_snapshot == ""


def test_a_state_is_restored_from_its_log() -> None:
    state = AgentState.create_default("Be brief.")
    state.update_memory_notebook("from the host")
    call = ToolCallRequest.of_part(
        ToolCallPart(
            tool_call_id="c", tool_name="memory_notebook_replace", raw_args_text='{"text": "own"}'
        )
    )
    state.execute_widget_tool(call)
    state.set_system_instruction("Be long.")
    restored = AgentState(ConversationLog.from_json(state.log.to_json()), [MemoryNotebookWidget()])
    assert restored.memory_notebook_snapshot == "own"
    assert restored.system_instruction == "Be long."
    assert restored.history == state.history
    assert restored.render_live_context() == state.render_live_context()


def test_a_summary_takes_the_place_of_the_entries_that_it_covers() -> None:
    state = AgentState.create_default("i")
    for number in range(3):
        state.append_model_input(ModelInputEntry.of_message(Message.user(f"question {number}")))
        state.append_model_output(
            ModelOutputEntry.of_message(Message.assistant(f"answer {number}"))
        )
    first = state.append_compaction("two questions", [entry.id for entry in state.history[:4]])
    heading = "# Summary of the earlier conversation\n"
    assert [message.text for message in to_messages(state.render_live_context())] == [
        "i",
        f"{heading}two questions",
        "question 2",
        "answer 2",
    ]
    covered = [first.id, *(entry.id for entry in state.history[4:5])]
    state.append_compaction("three questions", covered)
    restored = AgentState(ConversationLog.from_json(state.log.to_json()), [MemoryNotebookWidget()])
    assert [message.text for message in to_messages(restored.render_live_context())] == [
        "i",
        f"{heading}three questions",
        "answer 2",
    ]
    # The record of the conversation is whole.
    assert len(Session(log=state.log).messages) == 7
    with pytest.raises(ValueError, match="no entry that is shown has the id"):
        state.append_compaction("again", covered)
    with pytest.raises(ValueError, match="must have a summary"):
        state.append_compaction(" ", [state.history[-2].id])


def test_the_change_of_a_widget_of_a_state_cannot_be_appended_past_it() -> None:
    state = AgentState(widgets=[MemoryNotebookWidget()])
    state.update_memory_notebook("real")
    outside = WidgetEntry(widget="memory_notebook", change="x", source="outside", state="other")
    with pytest.raises(SessionError, match="does not change the widget: call its tool"):
        state.log.append(outside)
    restored = AgentState(ConversationLog.from_json(state.log.to_json()), [MemoryNotebookWidget()])
    assert state.memory_notebook_snapshot == restored.memory_notebook_snapshot == "real"
    # Nothing differs from an entry of a widget that no state has.
    assert ConversationLog().append(outside).state == "other"


def test_appends_are_debug_lines_without_content(caplog: pytest.LogCaptureFixture) -> None:
    state = AgentState()
    with caplog.at_level(logging.DEBUG, "deltafold"):
        entry = state.log.append_message(Message.user("a secret"))
        state.set_system_instruction("a secret")
        state.reset()
        ConversationLog.from_json(state.log.to_json())
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split()[3] for line in lines] == ["model_input", "instruction", "reset"]
    assert lines[0].endswith(str(entry.id))
    assert "secret" not in caplog.text
    assert {record.levelname for record in caplog.records} == {"DEBUG"}
