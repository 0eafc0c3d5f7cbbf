"""Entries, sections and context messages, by the words of docs/blueprint.md#history-entries."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from deltafold import Message, Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart, Usage
from deltafold.conversation import (
    LIVE_SCREEN,
    MAX_METADATA_BYTES,
    AgentState,
    CallEntry,
    CallStage,
    CompactionEntry,
    ContextAttachment,
    ContextInput,
    ContextManager,
    ContextMessage,
    ContextMessageRole,
    ContextualHistoryEntry,
    ConversationLog,
    FrozenMapping,
    HistoryEntry,
    HistoryEntryKind,
    HistoryToolCallResult,
    InstructionEntry,
    LevelOfDetailSections,
    MemoryNotebookWidget,
    ModelInputEntry,
    ModelInputMessage,
    ModelInvocationDescriptor,
    ModelOutputEntry,
    ModelOutputMessage,
    PartialEntry,
    ResetEntry,
    Section,
    SentEntry,
    StoredEntry,
    SystemInstructionMessage,
    SystemMessage,
    ToolCallCarrier,
    ToolCallRequest,
    ToolCallResult,
    ToolExecutionStatus,
    ToolResultsEntry,
    ToolResultsMessage,
    WidgetEntry,
    to_messages,
    to_plain_text,
    without_live_screen,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
CLAUDE = ModelInvocationDescriptor("anthropic", "messages", "claude")


def text(live: str, summary: str = "short", gist: str = "gist") -> LevelOfDetailSections:
    return LevelOfDetailSections([("", live)], [("", summary)], [("", gist)])


def asked(live: str, **members: Any) -> ModelInputEntry:  # noqa: ANN401
    return ModelInputEntry(content_sections=text(live), **members)


def call(tool_call_id: str = "c1", raw: str = '{"q": 1}') -> ToolCallRequest:
    return ToolCallRequest.of_part(
        ToolCallPart(tool_call_id=tool_call_id, tool_name="f", raw_args_text=raw)
    )


def result(
    status: ToolExecutionStatus = ToolExecutionStatus.SUCCESS,
    sections: LevelOfDetailSections | None = None,
    elapsed: timedelta | None = None,
) -> HistoryToolCallResult:
    return HistoryToolCallResult("f", "c1", status, sections or text("done"), elapsed)


def state_with(*results: HistoryToolCallResult) -> AgentState:
    """Return a state of a question, an answer with a call, and results."""
    state = AgentState.create_default("Be brief.")
    state.append_model_input(asked("question"))
    state.append_model_output(ModelOutputEntry(invocation=CLAUDE, tool_calls=[call()]))
    if results:
        state.append_tool_results(ToolResultsEntry(results=results))
    return state


# Entries.

QUESTION = asked("question")
ONE_OF_EACH: dict[HistoryEntryKind, HistoryEntry] = {
    HistoryEntryKind.MODEL_INPUT: QUESTION,
    HistoryEntryKind.MODEL_OUTPUT: ModelOutputEntry(contents=["answer"], tool_calls=[call()]),
    HistoryEntryKind.TOOL_RESULT: ToolResultsEntry(results=[result()]),
    HistoryEntryKind.WIDGET: WidgetEntry(widget="w", change="c", source="host"),
    HistoryEntryKind.INSTRUCTION: InstructionEntry(instruction="Be brief."),
    HistoryEntryKind.COMPACTION: CompactionEntry(summary="s", covers=[QUESTION.id]),
    HistoryEntryKind.CALL: CallEntry(tool_call_id="c1", stage=CallStage.ENDED, result=result()),
    HistoryEntryKind.PARTIAL: PartialEntry(message=Message.assistant("Half an"), error="cut"),
    HistoryEntryKind.SENT: SentEntry(message=Message.user("Stop."), when="idle"),
    HistoryEntryKind.RESET: ResetEntry(),
    HistoryEntryKind.STORED: StoredEntry(data={"a": 1}),
}


def test_the_type_of_an_entry_gives_its_kind_which_labels_the_json() -> None:
    log = ConversationLog()
    for kind in HistoryEntryKind:
        entry = log.append(ONE_OF_EACH[kind])
        assert entry.kind is kind
        with pytest.raises(TypeError, match="kind"):
            replace(entry, kind=kind)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    written: Any = log.to_dict()["entries"]
    assert [entry["kind"] for entry in written] == [str(kind) for kind in HistoryEntryKind]


def test_every_entry_has_a_time_with_a_zone() -> None:
    log = ConversationLog(clock=lambda: START)
    for entry in ONE_OF_EACH.values():
        assert log.append(entry).timestamp == START
        with pytest.raises(ValueError, match="time zone"):
            replace(entry, timestamp=datetime(2026, 1, 1))  # noqa: DTZ001 - the fault
    with pytest.raises(TypeError, match="HistoryEntry is abstract"):
        log.append(HistoryEntry())


def test_entries_keep_their_ids_through_json() -> None:
    log = ConversationLog()
    first = log.append(asked("question"))
    second = log.append(first)
    assert first.id != second.id
    read = ConversationLog.from_json(log.to_json())
    ids = [entry.id for entry in read.entries]
    assert ids == [first.id, second.id]


def with_value(value: object) -> list[Callable[[], object]]:
    """Return the ways to give a value of the caller to a log."""
    return [
        lambda: StoredEntry(data={"a": value}),
        lambda: WidgetEntry(widget="w", change="c", source="host", state={"a": value}),
        lambda: ToolCallRequest("f", "c1", "{}", {"a": value}),
        lambda: ConversationLog(metadata={"a": value}),
        lambda: asked("question", metadata={"a": value}),
    ]


@pytest.mark.parametrize(
    "value",
    [object(), {1}, b"x", START, float("nan"), float("inf"), "\ud800", {1: "a"}, [{"b": {1}}]],
)
def test_what_json_cannot_give_back_is_refused_before_it_is_appended(value: object) -> None:
    for make in with_value(value):
        with pytest.raises(ValueError, match=r"\['a'\]"):
            make()


def test_metadata_is_empty_by_default_and_a_frozen_copy_otherwise() -> None:
    assert asked("question").metadata == FrozenMapping()
    given: dict[str, Any] = {"source": {"tokens": [1]}}
    metadata = asked("question", metadata=given).metadata
    given["source"]["tokens"].append(2)
    assert metadata == FrozenMapping({"source": {"tokens": [1]}})
    with pytest.raises(TypeError):
        metadata["source"] = 1  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


def test_metadata_of_two_kilobytes_is_accepted_and_one_byte_more_is_not() -> None:
    full = {"note": "x" * (MAX_METADATA_BYTES - len('{"note": ""}'))}
    assert asked("question", metadata=full).metadata == full
    with pytest.raises(ValueError, match=f"2049 bytes.*{MAX_METADATA_BYTES}.*attachment"):
        asked("question", metadata={"note": full["note"] + "x"})


def test_contextual_entries_are_context_messages_and_the_others_are_not() -> None:
    for kind, entry in ONE_OF_EACH.items():
        is_contextual = isinstance(entry, ContextualHistoryEntry)
        assert isinstance(entry, ContextMessage) == is_contextual, kind
        assert bool(to_messages([entry])) == is_contextual, kind  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def test_an_entry_given_as_a_context_message_is_shown_whole() -> None:
    contextual: list[ContextualHistoryEntry] = [
        asked("question"),
        state_with(result()).log.append(ModelOutputEntry(tool_calls=[call("c2")])),
    ]
    question, answer = to_messages(contextual)
    assert (question.role, question.text) == (Role.USER, "question")
    assert question.id == contextual[0].id
    assert answer.tool_calls[0].tool_call_id == "c2"


def test_changed_contents_of_an_entry_are_shown_and_not_its_message() -> None:
    result = ToolResultPart(tool_call_id="c1", content="secret")
    made = [
        ModelInputEntry.of_message(Message.user("secret")),
        ModelOutputEntry.of_message(Message.assistant("secret")),
        ToolResultsEntry.of_message(Message(role=Role.TOOL, parts=[result])),
    ]
    assert str(to_messages(made)).count("'secret'") == 3
    question, answer, results = made
    assert isinstance(question, ModelInputEntry)
    assert isinstance(answer, ModelOutputEntry)
    assert isinstance(results, ToolResultsEntry)
    changed: list[ContextMessage] = [
        replace(question, content_sections=LevelOfDetailSections.of_text("hidden")),
        replace(answer, contents=["hidden"]),
        replace(results, results=[replace(results.results[0], result=text("hidden"))]),
    ]
    assert str(to_messages(changed)).count("'hidden'") == 3
    assert "secret" not in str(to_messages(changed))


def test_the_message_of_an_entry_has_the_role_of_its_kind() -> None:
    question, answer = Message.user("q"), Message.assistant("a")
    assert ModelInputEntry.of_message(question).message == question
    with pytest.raises(ValueError, match="model_output must have the role assistant, not user"):
        ModelOutputEntry.of_message(question)
    with pytest.raises(ValueError, match="model_input must have the role user, not assistant"):
        asked("question", message=answer)


def test_an_input_has_sections_and_by_default_no_attachments() -> None:
    entry = AgentState.create_default().append_model_input(
        ModelInputEntry(
            content_sections=LevelOfDetailSections([("Task", "a"), ("Rules", "b")], [], [])
        )
    )
    assert entry.content_sections.live == (("Task", "a"), ("Rules", "b"))
    assert entry.attachments == ()


def test_an_output_keeps_its_pieces_of_text_apart() -> None:
    message = Message(role=Role.ASSISTANT, parts=[TextPart(text="one"), TextPart(text="two")])
    entry = ModelOutputEntry.of_message(message, CLAUDE)
    assert entry.contents == ("one", "two")
    (sent,) = to_messages([entry])
    assert [part.text for part in sent.parts if isinstance(part, TextPart)] == ["one", "two"]


def test_the_calls_of_an_answer_are_in_its_entry_and_have_none_of_their_own() -> None:
    calls = [ToolCallPart(tool_call_id=one, tool_name="f", arguments={}) for one in ("c1", "c2")]
    state = AgentState.create_default()
    state.append_model_output(
        ModelOutputEntry.of_message(Message(role=Role.ASSISTANT, parts=list(calls)), CLAUDE)
    )
    (entry,) = state.history
    assert isinstance(entry, ModelOutputEntry)
    assert [type(one) for one in entry.tool_calls] == [ToolCallRequest, ToolCallRequest]
    assert [one.tool_call_id for one in entry.tool_calls] == ["c1", "c2"]


def test_an_answer_records_provider_specification_and_model() -> None:
    state = AgentState.create_default()
    state.append_model_output(ModelOutputEntry(invocation=CLAUDE, contents=["a"]))
    gpt = ModelInvocationDescriptor("openai", "responses", "gpt")
    state.append_model_output(ModelOutputEntry(invocation=gpt, contents=["b"]))
    restored = AgentState(ConversationLog.from_json(state.log.to_json()), [MemoryNotebookWidget()])
    assert [one.invocation for one in restored.history if isinstance(one, ModelOutputEntry)] == [
        ModelInvocationDescriptor("anthropic", "anthropic-messages", "claude"),
        ModelInvocationDescriptor("openai", "openai-responses", "gpt"),
    ]


def test_no_arguments_differ_from_arguments_that_do_not_parse() -> None:
    none, wrong = call(raw=""), call(raw="{nonsense")
    assert isinstance(none, ToolCallRequest)
    assert (none.arguments, none.parse_error) == ({}, None)
    assert wrong.arguments is None
    assert wrong.parse_error


def test_a_tool_reads_the_parsed_arguments_and_not_the_text() -> None:
    state = AgentState.create_default()
    replace_it = ToolCallRequest("memory_notebook_replace", "c1", "{broken", {"text": "parsed"})
    done = state.execute_widget_tool(replace_it)
    assert done is not None
    assert done.status is ToolExecutionStatus.SUCCESS
    assert state.memory_notebook_snapshot == "parsed"


def test_a_result_in_the_context_has_its_status_and_duration() -> None:
    state = state_with(result(ToolExecutionStatus.FAILED, elapsed=timedelta(seconds=1.5)))
    shown = state.render_live_context()[-1]
    assert isinstance(shown, ToolResultsMessage)
    sections, elapsed = [Section("", "done")], timedelta(seconds=1.5)
    expected = ToolCallResult("f", "c1", ToolExecutionStatus.FAILED, sections, elapsed)
    assert list(shown.results) == [expected]


def test_every_status_but_success_is_an_error_that_the_model_reads() -> None:
    for status in ToolExecutionStatus:
        state = state_with(result(status, LevelOfDetailSections([("", "")], [], [])))
        part = to_messages(state.render_live_context())[-1].parts[0]
        assert isinstance(part, ToolResultPart)
        assert part.is_error == (status is not ToolExecutionStatus.SUCCESS)
        assert part.content == (f"The call was {status}." if part.is_error else "")


def test_a_budget_shows_a_result_live_as_its_summary_or_as_its_gist() -> None:
    sections = text("x" * 4_000, "y" * 400, "z" * 40)
    state = state_with(HistoryToolCallResult("f", "c1", ToolExecutionStatus.SUCCESS, sections))
    state.append_model_output(ModelOutputEntry(contents=["so far"]))
    state.append_model_input(asked("next"))
    seen = {
        str(part.content)[:1]
        for budget in (None, 500, 150, 90)
        for message in ContextManager().build_context(ContextInput(state, budget)).messages
        for part in message.parts
        if isinstance(part, ToolResultPart)
    }
    assert seen == {"x", "y", "z"}


def test_a_level_that_is_missing_is_refused() -> None:
    for missing in range(3):
        levels: list[Any] = [(), (), ()]
        levels[missing] = None
        with pytest.raises(TypeError):
            LevelOfDetailSections(*levels)


# Context messages.


@dataclass
class Foreign:
    """A context message of the caller; it inherits from no class of the package."""

    role: ContextMessageRole
    timestamp: datetime = START
    metadata: dict[str, object] = field(default_factory=dict[str, object])


@dataclass
class ForeignInstruction(Foreign):
    """An instruction of the caller."""

    instruction: str = "Be brief."


@dataclass
class ForeignInput(Foreign):
    """An input of the caller."""

    content_sections: tuple[Section, ...] = (Section("Task", "a"), Section("Rules", "b"))
    attachments: tuple[ContextAttachment, ...] = ()


@dataclass
class ForeignOutput(Foreign):
    """An answer of the caller."""

    invocation: ModelInvocationDescriptor = CLAUDE
    contents: tuple[str, ...] = ("answer",)
    tool_calls: tuple[ToolCallRequest, ...] = field(default_factory=lambda: (call(),))
    message: None = None


@dataclass
class ForeignResults(Foreign):
    """Results of the caller."""

    results: tuple[ToolCallResult, ...] = ()
    execute_error: str | None = "no sandbox"


def test_a_system_message_has_an_instruction() -> None:
    said = ForeignInstruction(ContextMessageRole.SYSTEM)
    assert isinstance(said, SystemMessage)
    (message,) = to_messages([said])
    assert (message.role, message.text) == (Role.SYSTEM, "Be brief.")


def test_a_model_input_message_has_sections_in_their_order() -> None:
    said = ForeignInput(ContextMessageRole.MODEL_INPUT)
    assert isinstance(said, ModelInputMessage)
    (message,) = to_messages([said])
    assert (message.role, message.text) == (Role.USER, "# Task\na\n\n# Rules\nb")


def test_a_model_output_message_has_text_and_calls() -> None:
    said = ForeignOutput(ContextMessageRole.MODEL_OUTPUT)
    assert isinstance(said, ModelOutputMessage)
    (message,) = to_messages([said])
    assert (message.role, message.text) == (Role.ASSISTANT, "answer")
    assert message.tool_calls[0].arguments == {"q": 1}


def test_a_tool_results_message_may_have_failed_as_a_whole() -> None:
    said = ForeignResults(ContextMessageRole.TOOL_RESULT)
    assert isinstance(said, ToolResultsMessage)
    _, message = to_messages([ForeignOutput(ContextMessageRole.MODEL_OUTPUT), said])
    part = message.parts[0]
    assert isinstance(part, ToolResultPart)
    assert (part.tool_call_id, part.is_error, part.content) == ("c1", True, "no sandbox")


def test_a_context_message_has_no_content_of_its_own() -> None:
    bare = Foreign(ContextMessageRole.MODEL_INPUT)
    assert isinstance(bare, ContextMessage)
    assert to_messages([bare]) == []


def test_a_role_of_the_context_is_no_role_of_a_provider() -> None:
    context = state_with(result()).render_live_context()
    assert [message.role for message in context] == list(ContextMessageRole)
    assert not {message.role for message in context} & {"user", "assistant", "tool"}


def test_a_context_message_has_the_time_and_metadata_of_its_entry() -> None:
    ticks = iter(range(10))
    state = AgentState.create_default("i", lambda: START + timedelta(seconds=next(ticks)))
    state.append_model_input(asked("question", metadata={"experiment": "a"}))
    state.append_model_output(ModelOutputEntry(contents=["answer"], metadata={"tokens": 3}))
    context: list[ContextMessage] = state.render_live_context()
    assert all(isinstance(message, ContextMessage) for message in context)
    assert [message.timestamp for message in context[1:]] == [
        one.timestamp for one in state.history
    ]
    assert [message.timestamp.second for message in context] == [0, 1, 2]
    assert [message.metadata for message in context] == [{}, {"experiment": "a"}, {"tokens": 3}]


def test_calls_are_looked_for_in_messages_that_may_carry_them() -> None:
    context = state_with(result()).render_live_context()
    carriers = [message for message in context if isinstance(message, ToolCallCarrier)]
    assert [message.tool_calls[0].tool_call_id for message in carriers] == ["c1"]


def test_an_answer_is_rendered_as_the_entry_itself() -> None:
    state = state_with(result())
    answers = [one for one in state.render_live_context() if isinstance(one, ModelOutputEntry)]
    assert len(answers) == 1
    assert answers[0] is state.history[1]


def test_sections_are_rendered_as_they_were_stored() -> None:
    state = AgentState.create_default()
    state.update_memory_notebook("remember")
    entry = state.append_model_input(asked("question"))
    shown = state.render_live_context()[-1]
    assert isinstance(shown, ModelInputMessage)
    assert shown.content_sections is entry.content_sections.live
    assert [section.key for section in shown.content_sections] == ["", LIVE_SCREEN]


def test_a_live_screen_leaves_the_summary_and_the_gist_as_they_were() -> None:
    state = AgentState.create_default()
    state.update_memory_notebook("remember")
    stored = state.append_model_input(asked("question")).content_sections
    assert [section.key for section in stored.live] == ["", LIVE_SCREEN]
    assert (stored.summary, stored.gist) == ((("", "short"),), (("", "gist"),))


def test_a_live_screen_that_is_taken_out_stays_in_the_history() -> None:
    state = AgentState.create_default()
    state.update_memory_notebook("remember")
    entry = state.append_model_input(asked("question"))
    rest, screen = without_live_screen(entry.content_sections.live)
    assert to_plain_text(rest) == "question"
    assert screen is not None
    assert screen.endswith("remember")
    kept = state.history[-1]
    assert isinstance(kept, ModelInputEntry)
    assert without_live_screen(kept.content_sections.live)[1] == screen


def test_the_instruction_is_rendered_first_with_the_time_since_which_it_holds() -> None:
    ticks = iter(range(10))
    state = AgentState.create_default("old", lambda: START + timedelta(seconds=next(ticks)))
    state.append_model_input(asked("question"))
    state.set_system_instruction("new")
    first = state.render_live_context()[0]
    assert first == SystemInstructionMessage("new", START + timedelta(seconds=2))
    assert first == state.render_live_context()[0]


def test_an_answer_carries_the_usage_of_its_message() -> None:
    message = Message(role=Role.ASSISTANT, parts=[ThinkingPart(text="hm")])
    message.meta.usage = Usage(input_tokens=10, output_tokens=2, total_tokens=12)
    state = AgentState.create_default()
    state.append_model_output(ModelOutputEntry.of_message(message, CLAUDE))
    usage = [getattr(one, "usage", None) for one in state.render_live_context()]
    assert usage[0] is None
    assert usage[1] is not None
    assert (usage[1].prompt_tokens, usage[1].cached_prompt_tokens) == (10, None)
