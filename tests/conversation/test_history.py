"""The history of a conversation, rule by rule of the blueprint that it was built from."""

import dataclasses
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from deltafold import ImagePart, Message, Role, TextPart, ThinkingPart, ToolCallPart, Usage
from deltafold.conversation import (
    LIVE_SCREEN,
    AgentState,
    ContextAttachment,
    ContextMessage,
    ContextMessageRole,
    ContextualHistoryEntry,
    HistoryEntryKind,
    HistoryToolCallResult,
    LevelOfDetail,
    LevelOfDetailSections,
    MemoryNotebookWidget,
    ModelInputEntry,
    ModelInputMessage,
    ModelInvocationDescriptor,
    ModelOutputEntry,
    ModelOutputMessage,
    Section,
    SystemInstructionMessage,
    SystemMessage,
    TokenUsage,
    TokenUsageCarrier,
    ToolCallCarrier,
    ToolCallRequest,
    ToolExecutionStatus,
    ToolResultsEntry,
    ToolResultsMessage,
    WidgetEntry,
    WidgetRenderContext,
    to_messages,
    to_plain_text,
    without_live_screen,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
CLAUDE = ModelInvocationDescriptor("anthropic", "messages", "claude")


class Clock:
    """One second later each time."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def levels(live: str, summary: str = "short", gist: str = "gist") -> LevelOfDetailSections:
    return LevelOfDetailSections([("", live)], [("", summary)], [("", gist)])


def asked(text: str) -> ModelInputEntry:
    return ModelInputEntry(content_sections=levels(text, f"{text}, in short"))


def call(tool_call_id: str = "c1", name: str = "f", raw: str = "{}") -> ToolCallRequest:
    return ToolCallRequest.of_part(
        ToolCallPart(tool_call_id=tool_call_id, tool_name=name, raw_args_text=raw)
    )


def answered(*calls: ToolCallRequest, text: str = "answer") -> ModelOutputEntry:
    return ModelOutputEntry(invocation=CLAUDE, contents=[text] if text else [], tool_calls=calls)


def result(tool_call_id: str = "c1", text: str = "done") -> HistoryToolCallResult:
    sections = levels(text, f"{text}, in short")
    return HistoryToolCallResult("f", tool_call_id, ToolExecutionStatus.SUCCESS, sections)


def state(**options: Any) -> AgentState:  # noqa: ANN401
    return AgentState.create_default("Be brief.", Clock(), **options)


# Sections.


def test_a_level_that_is_not_known_counts_as_live() -> None:
    sections = levels("l", "s", "g")
    assert sections.get_sections(LevelOfDetail.SUMMARY) == (Section("", "s"),)
    assert sections.get_sections("gist") == (Section("", "g"),)
    assert sections.get_sections("microscopic") == (Section("", "l"),)


def test_a_live_section_replaces_the_first_of_its_key_or_is_appended() -> None:
    sections = LevelOfDetailSections([("a", "1"), ("b", "2"), ("a", "3")], [], [])
    assert sections.with_live_section("a", "x").live == (("a", "x"), ("b", "2"), ("a", "3"))
    assert sections.with_live_section("c", "x").live[-1] == ("c", "x")
    assert sections.with_live_section("a", "1") is sections
    assert sections.with_live_section("a", "x").summary == ()


def test_uniform_sections_are_the_same_at_every_level() -> None:
    sections = LevelOfDetailSections.create_uniform([("a", "1")])
    assert sections.live == sections.summary == sections.gist == (("a", "1"),)
    assert LevelOfDetailSections.from_dict(sections.to_dict()) == sections


@pytest.mark.parametrize(
    ("sections", "rest", "screen"),
    [
        ([], [], None),
        ([("a", "1")], [("a", "1")], None),
        ([(LIVE_SCREEN, "x"), ("a", "1"), (LIVE_SCREEN, "y")], [("a", "1")], "y"),
        ([(LIVE_SCREEN, "x")], [], "x"),
    ],
)
def test_all_live_screens_are_taken_out_and_the_last_is_returned(
    sections: list[tuple[str, str]], rest: list[tuple[str, str]], screen: str | None
) -> None:
    given = tuple(Section(*section) for section in sections)
    left, taken = without_live_screen(given)
    assert (list(left), taken) == (rest, screen)
    assert screen is not None or left is given


@pytest.mark.parametrize(
    ("sections", "text"),
    [
        ([], ""),
        ([("Heading", "alone")], "alone"),
        ([("A", "1"), ("", "2"), (LIVE_SCREEN, "3")], "# A\n1\n\n2\n\n3"),
        ([("A", "1\r\n2\r3"), ("B", "")], "# A\n1\n2\n3\n\n# B\n"),
    ],
)
def test_sections_become_text(sections: list[tuple[str, str]], text: str) -> None:
    assert to_plain_text([Section(*section) for section in sections]) == text


@pytest.mark.parametrize("wrong", [["ab"], [("a",)], [("a", 1)], [("a", "b", "c")]])
def test_what_is_no_pair_of_strings_is_an_error_that_names_its_place(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match=r"sections\[0\]"):
        LevelOfDetailSections(wrong, [], [])


# Entries.


def test_kinds_and_roles_are_constants_of_the_types() -> None:
    entries = [
        (asked("q"), HistoryEntryKind.MODEL_INPUT, ContextMessageRole.MODEL_INPUT),
        (answered(), HistoryEntryKind.MODEL_OUTPUT, ContextMessageRole.MODEL_OUTPUT),
        (
            ToolResultsEntry(results=[result()]),
            HistoryEntryKind.TOOL_RESULT,
            ContextMessageRole.TOOL_RESULT,
        ),
    ]
    for entry, kind, role in entries:
        assert isinstance(entry, ContextualHistoryEntry)
        assert (entry.kind, entry.role) == (kind, role)
    widget = WidgetEntry(widget="w", change="c", source="host")
    assert widget.kind is HistoryEntryKind.WIDGET
    assert not isinstance(widget, ContextualHistoryEntry)
    assert not isinstance(widget, ContextMessage)


@pytest.mark.parametrize(
    ("metadata", "match"),
    [
        ({"camelCase": 1}, "camelCase"),
        ({"": 1}, "snake_case"),
        ({"tokens": object()}, "tokens"),
        ({"small": 1, "large": "x" * 3000}, "large"),
        ({"sets_are_not_json": {1}}, "sets_are_not_json"),
    ],
)
def test_wrong_metadata_names_its_key(metadata: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ModelInputEntry(content_sections=levels("q"), metadata=metadata)


def test_metadata_cannot_be_changed() -> None:
    given: dict[str, Any] = {"tokens": {"input": [1, 2]}}
    entry = ModelInputEntry(content_sections=levels("q"), metadata=given)
    given["tokens"]["input"].append(3)
    metadata: Any = entry.metadata
    assert metadata["tokens"]["input"] == (1, 2)
    with pytest.raises(TypeError):
        metadata["tokens"] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.metadata = {}  # type: ignore[misc]


def test_entries_survive_pickling() -> None:
    kept = state().append_model_output(
        ModelOutputEntry(invocation=CLAUDE, contents=["a"], tool_calls=[call()], metadata={"a": 1})
    )
    assert pickle.loads(pickle.dumps(kept)) == kept  # noqa: S301 - our own bytes


def test_raw_arguments_are_kept_whether_they_parse_or_not() -> None:
    right, wrong = call(raw='{"a": 1}'), call(raw="{nonsense}")
    assert (right.raw_arguments, right.parse_error) == ('{"a": 1}', None)
    assert right.arguments == {"a": 1}
    assert (wrong.raw_arguments, wrong.arguments) == ("{nonsense}", None)
    assert wrong.parse_error
    nothing = call(raw="")
    assert (nothing.arguments, nothing.parse_error) == ({}, None)
    cut = ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text='{"a', incomplete=True)
    assert ToolCallRequest.of_part(cut).parse_error == "the call was cut off"


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("v1", "openai-chat"),
        ("responses", "openai-responses"),
        ("messages", "anthropic-messages"),
        ("json", "openai-chat+qwen-json"),
        ("xml", "openai-chat+qwen-xml"),
        ("gemini", "gemini"),
    ],
)
def test_specifications_have_the_names_of_other_systems_too(name: str, ours: str) -> None:
    assert ModelInvocationDescriptor("p", name, "m").specification == ours


def test_an_answer_keeps_its_message_and_shows_its_usage() -> None:
    message = Message.assistant("a")
    message.meta.usage = Usage(
        input_tokens=10, output_tokens=2, total_tokens=12, cache_read_tokens=4
    )
    entry = ModelOutputEntry.of_message(message, CLAUDE)
    message.parts.clear()
    assert entry.usage == TokenUsage(10, 2, 4)
    kept = entry.message
    assert kept is not None
    assert kept.text == "a"
    kept.parts.clear()
    assert entry.message is not None
    assert entry.message.text == "a"


# State.


def test_a_new_state_has_an_instruction_and_no_history() -> None:
    assert AgentState.create_default().system_instruction
    assert AgentState.create_default("  ").system_instruction.strip()
    assert state().system_instruction == "Be brief."
    assert state().history == ()


def test_entries_are_stamped_by_the_clock_in_order() -> None:
    agent = state()
    first = agent.append_model_input(asked("q"))
    second = agent.append_model_output(answered())
    assert first.timestamp > START
    assert second.timestamp == first.timestamp + timedelta(seconds=1)
    assert agent.history == (first, second)


def test_the_history_cannot_be_edited() -> None:
    agent = state()
    entry = agent.append_model_input(asked("q"))
    history: Any = agent.history
    with pytest.raises(TypeError):
        history[0] = entry
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.attachments = ()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        agent.history = ()  # type: ignore[misc]


def test_empty_entries_are_refused() -> None:
    agent = state()
    with pytest.raises(ValueError, match="live"):
        agent.append_model_input(
            ModelInputEntry(content_sections=LevelOfDetailSections([], [("", "s")], []))
        )
    with pytest.raises(ValueError, match="content or tool calls"):
        agent.append_model_output(ModelOutputEntry(invocation=CLAUDE))
    agent.append_model_output(answered(call()))
    for empty in (ToolResultsEntry(), ToolResultsEntry(execute_error="  ")):
        with pytest.raises(ValueError, match="execute_error"):
            agent.append_tool_results(empty)
    assert len(agent.history) == 1


@pytest.mark.parametrize(
    ("ids", "place"),
    [(["c2", "c1"], 0), (["c1"], 1), (["c1", "c2", "c3"], 2), (["c1", "c1"], 1)],
)
def test_results_stand_in_the_order_of_their_calls(ids: list[str], place: int) -> None:
    agent = state()
    agent.append_model_output(answered(call("c1"), call("c2")))
    with pytest.raises(ValueError, match=rf"results\[{place}\]"):
        agent.append_tool_results(ToolResultsEntry(results=[result(one) for one in ids]))
    agent.append_tool_results(ToolResultsEntry(results=[result("c1"), result("c2")]))


def test_results_follow_an_answer() -> None:
    agent = state()
    with pytest.raises(ValueError, match="must follow an answer"):
        agent.append_tool_results(ToolResultsEntry(results=[result()]))
    agent.append_model_output(answered(call()))
    agent.append_tool_results(ToolResultsEntry(results=[result()]))
    with pytest.raises(ValueError, match="must follow an answer"):
        agent.append_tool_results(ToolResultsEntry(results=[result()]))


def test_the_live_screen_is_written_when_an_entry_is_appended() -> None:
    agent = state()
    before = agent.append_model_input(asked("first"))
    agent.update_memory_notebook("remember")
    after = agent.append_model_input(asked("second"))
    assert all(section.key != LIVE_SCREEN for section in before.content_sections.live)
    screen = after.content_sections.live[-1]
    assert screen.key == LIVE_SCREEN
    assert screen.value.startswith("# [Live Screen]\n\n")
    assert "remember" in screen.value
    assert all(section.key != LIVE_SCREEN for section in after.content_sections.summary)


def test_the_live_screen_of_results_is_in_the_last_one() -> None:
    agent = state()
    agent.update_memory_notebook("remember")
    agent.append_model_output(answered(call("c1"), call("c2")))
    entry = agent.append_tool_results(ToolResultsEntry(results=[result("c1"), result("c2")]))
    keys = [[section.key for section in one.result.live] for one in entry.results]
    assert keys == [[""], ["", LIVE_SCREEN]]
    agent.append_model_output(answered(call("c3")))
    failed = agent.append_tool_results(ToolResultsEntry(execute_error="no sandbox"))
    assert failed.results == ()


def test_widget_changes_leave_an_entry_that_no_model_sees() -> None:
    agent = state()
    agent.update_memory_notebook("from the host")
    replaced = agent.execute_widget_tool(
        call("c1", "memory_notebook_replace", '{"text": "from the model"}')
    )
    assert replaced is not None
    assert replaced.status is ToolExecutionStatus.SUCCESS
    assert agent.memory_notebook_snapshot == "from the model"
    assert agent.memory_notebook_widget.snapshot == "from the model"
    entries = [entry for entry in agent.history if isinstance(entry, WidgetEntry)]
    assert [entry.source for entry in entries] == ["host", "tool call c1"]
    assert [message.role for message in agent.render_live_context()] == [ContextMessageRole.SYSTEM]


@pytest.mark.parametrize("raw", ["{}", '{"text": 1}', "{nonsense}"])
def test_a_wrong_widget_call_is_a_failed_result(raw: str) -> None:
    agent = state()
    failed = agent.execute_widget_tool(call("c1", "memory_notebook_replace", raw))
    assert failed is not None
    assert failed.status is ToolExecutionStatus.FAILED
    assert agent.history == ()
    assert agent.execute_widget_tool(call("c1", "unheard_of")) is None


def test_what_a_widget_raises_is_a_failed_result() -> None:
    class Broken(MemoryNotebookWidget):
        @property
        def tools(self) -> Any:  # noqa: ANN401
            (tool,) = super().tools
            return (dataclasses.replace(tool, name="broken"),)

        def execute_tool(self, call: Any, record: Any) -> Any:  # noqa: ANN401, ARG002
            raise KeyError("oops")

    agent = state(widgets=[Broken()])
    failed = agent.execute_widget_tool(call("c1", "broken"))
    assert failed is not None
    assert failed.status is ToolExecutionStatus.FAILED
    assert "oops" in to_plain_text(failed.result.live)
    assert [tool.name for tool in agent.enumerate_widget_tools()] == [
        "memory_notebook_replace",
        "broken",
    ]


def test_reset_forgets_history_and_notebook_and_keeps_the_instruction() -> None:
    agent = state()
    agent.set_system_instruction("Be long.")
    agent.update_memory_notebook("remember")
    agent.append_model_input(asked("q"))
    agent.reset()
    assert agent.history == ()
    assert agent.memory_notebook_snapshot == ""
    assert agent.system_instruction == "Be long."


# Context.


def conversation() -> AgentState:
    agent = state()
    agent.append_model_input(asked("first"))
    agent.append_model_output(answered(call("c1"), text=""))
    agent.append_tool_results(ToolResultsEntry(results=[result("c1")]))
    agent.append_model_output(answered(text="answer"))
    agent.append_model_input(asked("second"))
    return agent


def test_the_newest_input_is_live_and_older_ones_are_summaries() -> None:
    context = conversation().render_live_context()
    assert [message.role.value for message in context] == [
        "system",
        "model_input",
        "model_output",
        "tool_result",
        "model_output",
        "model_input",
    ]
    system, first, asking, results, answer, second = context
    assert isinstance(system, SystemMessage)
    assert system.instruction == "Be brief."
    assert isinstance(first, ModelInputMessage)
    assert first.content_sections == (("", "first, in short"),)
    assert isinstance(second, ModelInputMessage)
    assert second.content_sections == (("", "second"),)
    assert isinstance(results, ToolResultsMessage)
    assert results.results[0].result == (("", "done, in short"),)
    assert isinstance(asking, ModelOutputMessage)
    assert isinstance(asking, ToolCallCarrier)
    assert isinstance(answer, TokenUsageCarrier)
    assert not isinstance(first, ToolCallCarrier)
    assert not isinstance(results, ModelInputMessage)


def test_the_newest_results_are_live() -> None:
    agent = state()
    agent.append_model_input(asked("first"))
    agent.append_model_output(answered(call()))
    agent.append_tool_results(ToolResultsEntry(results=[result()]))
    *_, first, _, results = agent.render_live_context()
    assert isinstance(results, ToolResultsMessage)
    assert results.results[0].result == (("", "done"),)
    assert isinstance(first, ModelInputMessage)
    assert first.content_sections == (("", "first, in short"),)


def test_a_context_becomes_messages() -> None:
    agent = conversation()
    messages = to_messages(agent.render_live_context())
    assert [(message.role, message.text) for message in messages] == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "first, in short"),
        (Role.ASSISTANT, ""),
        (Role.TOOL, ""),
        (Role.ASSISTANT, "answer"),
        (Role.USER, "second"),
    ]
    assert messages[2].tool_calls[0].tool_call_id == "c1"
    assert to_messages(agent.render_live_context()) == messages


def test_an_answer_that_kept_its_message_is_that_message() -> None:
    state_of: dict[str, object] = {
        "dialect": "anthropic-messages",
        "modelId": "claude",
        "data": {"signature": "s"},
    }
    thought = ThinkingPart(text="hm", provider_state=state_of)
    message = Message(role=Role.ASSISTANT, parts=[thought, TextPart(text="answer")])
    agent = state()
    agent.append_model_output(ModelOutputEntry.of_message(message, CLAUDE))
    (_, rendered) = to_messages(agent.render_live_context())
    assert rendered.parts == message.parts


def test_an_execute_error_answers_every_call() -> None:
    agent = state()
    agent.append_model_output(answered(call("c1"), call("c2")))
    agent.append_tool_results(ToolResultsEntry(execute_error="no sandbox"))
    messages = to_messages(agent.render_live_context())
    parts: list[Any] = messages[-1].parts
    assert [(part.tool_call_id, part.is_error, part.content) for part in parts] == [
        ("c1", True, "no sandbox"),
        ("c2", True, "no sandbox"),
    ]


def test_attachments_go_with_the_input() -> None:
    image = ImagePart(mime_type="image/png", url="https://example.org/a.png")
    agent = state()
    agent.append_model_input(
        ModelInputEntry(
            content_sections=levels("look"), attachments=[ContextAttachment(image, "a")]
        )
    )
    (_, message) = to_messages(agent.render_live_context())
    assert message.parts == [TextPart(text="look"), image]


def test_a_system_message_checks_its_metadata() -> None:
    with pytest.raises(ValueError, match="wrongKey"):
        SystemInstructionMessage("i", START, {"wrongKey": 1})


def test_a_widget_sees_the_state() -> None:
    agent = state()
    seen: list[WidgetRenderContext] = []

    class Looking(MemoryNotebookWidget):
        def render_live_screen(self, context: WidgetRenderContext) -> str | None:
            seen.append(context)
            return f"entries: {len(context.state.history)}"

    agent = state(widgets=[Looking()])
    entry = agent.append_model_input(asked("q"))
    assert seen[0].state is agent
    assert entry.content_sections.live[-1].value == "# [Live Screen]\n\nentries: 0"


def test_a_state_whose_tools_never_answered_can_be_sent() -> None:
    agent = state()
    agent.append_model_input(asked("q"))
    agent.append_model_output(answered(call("c1")))
    messages, report = agent.messages_for("anthropic-messages")
    assert messages[-1].role is Role.TOOL
    assert not report.is_clean
    assert conversation().messages_for("anthropic-messages")[1].is_clean
