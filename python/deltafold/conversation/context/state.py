"""State: the growing history of an agent, and the context made of it.

In: entries, in the order of the events.  Out: the same entries with timestamps; the context for the
next call.

Laws: the state is a view of a log, and is restored from it. The log's clock provides each
timestamp. The live screen is written into an entry when the entry is appended, never later. One
thread uses the state at a time.
Source: docs/blueprint.md#agent-state.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Self, get_args
from uuid import UUID

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import RequestProtocol
from deltafold.conversation.context.run_state import RunClaim, RunState, log_of_run
from deltafold.conversation.context.widgets import (
    MemoryNotebookWidget,
    RestorableWidget,
    Widget,
    WidgetRenderContext,
)
from deltafold.conversation.history.context_messages import ContextMessage, SystemMessage
from deltafold.conversation.history.entries import (
    CompactionEntry,
    HistoryEntry,
    InstructionEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ResetEntry,
    ToolResultsEntry,
    WidgetEntry,
)
from deltafold.conversation.history.frozen import kept_message, thawed_value
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.conversation.history.log import Clock, ConversationLog
from deltafold.conversation.history.projection import (
    ShownInstruction,
    SystemInstructionMessage,
    live_screen_of,
    paired,
    shown,
    since_reset,
    to_messages,
    visible,
)
from deltafold.conversation.history.run_entries import SentEntry, When
from deltafold.conversation.history.sections import (
    LIVE_SCREEN,
    LevelOfDetail,
    LevelOfDetailSections,
)
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest
from deltafold.conversation.tools.tools import Conversation, Tool
from deltafold.dialects.repairs.problems import Report
from deltafold.dialects.repairs.repair import RepairPolicy, repair
from deltafold.message.messages import Message, Role

DEFAULT_INSTRUCTION: Final = "You are a helpful assistant."
LIVE_SCREEN_HEADING: Final = "# [Live Screen]"
_EMPTY_SCREEN: Final = "(empty)"


class AgentState(Conversation):
    """One conversation of one agent, which it begins or continues.

    >>> state = AgentState()
    >>> state.append_model_input(ModelInputEntry(content_sections=sections))
    >>> messages = to_messages(state.render_live_context())

    Nothing is in a request that nobody asked for: an instruction is set, and widgets are given.
    `create_default` begins a conversation with an instruction and a memory notebook. It is used by
    one thread at a time, and by one run.

    Args:
        log: the log of the conversation, such as `LogFile(path)`; None makes one in memory. Widgets
            take the last state that it has of them.
        widgets: the widgets, such as `MemoryNotebookWidget()`.

    Attributes:
        run_state: status, usage and cost of the last run on this state.
    """

    def __init__(self, log: ConversationLog | None = None, widgets: Sequence[Widget] = ()) -> None:
        log = ConversationLog() if log is None else log
        self.run_state = RunState()
        self._log = log
        self._widgets: tuple[Widget, ...] = tuple(widgets)
        self._has_screen = any(live_screen_of(entry) for entry in since_reset(log.entries))
        log.keep_for_widgets(widget.name for widget in self._widgets)
        self._restore_widgets()

    @classmethod
    def create_default(
        cls,
        system_instruction: str | None = None,
        clock: Clock | None = None,
        *,
        widgets: Sequence[Widget] = (),
        log: ConversationLog | None = None,
    ) -> Self:
        """Begin a conversation with an instruction and a memory notebook.

        `AgentState(log, [MemoryNotebookWidget()])` continues it.

        Args:
            system_instruction: the instruction; None or blank is `DEFAULT_INSTRUCTION`.
            clock: returns aware datetimes; None is the system's clock.
            widgets: widgets in addition to the memory notebook.
            log: an empty log, such as a new file; None makes one in memory with the clock.
        """
        blank = system_instruction is None or not system_instruction.strip()
        instruction = DEFAULT_INSTRUCTION if blank else system_instruction
        log = ConversationLog(clock=clock) if log is None else log
        state = cls(log, (MemoryNotebookWidget(), *widgets))
        state.set_system_instruction(instruction or DEFAULT_INSTRUCTION)
        return state

    @property
    def log(self) -> ConversationLog:
        """The log, which has everything that the state has."""
        return self._log

    def claim(self) -> RunClaim:
        """Claim the conversation for a run, so that no other one begins.

        Raises:
            IllegalTransitionError: a run is under way on this conversation.
        """
        return RunClaim(self._log, self.run_state)

    def send(self, message: str | Message, when: When = "next_turn") -> None:
        """Send a message of the user to the run that is under way, or to the next one.

        It is in the log when this returns, so that a resumed run delivers it too. Any thread may
        send, and so may a tool.

        >>> state.send("Only in Brest, please.")

        Args:
            message: the text, or a message of the user.
            when: "next_turn" delivers it with the next request, after the results of calls that are
                under way; a run that would end goes on. "idle" delivers it when the run would end,
                which then goes on.

        Raises:
            MisuseError: the message is not one of the user, or `when` is neither.
            StoreConflictError: another process has continued the conversation.
        """
        said = Message.user(message) if isinstance(message, str) else message
        if said.role is not Role.USER:
            raise MisuseError(f"message: only the user sends, not the {said.role.value}")
        if when not in get_args(When):
            raise MisuseError(f'when must be "next_turn" or "idle", not {when!r}')
        log_of_run(self._log).append(SentEntry(message=said, when=when))

    @property
    def system_instruction(self) -> str:
        """The instruction in force, "" without one."""
        entry = self._instruction()
        return "" if entry is None else entry.instruction

    @property
    def history(self) -> Sequence[HistoryEntry]:
        """Inputs, outputs, results, summaries and changes of widgets, oldest first."""
        entries = since_reset(self._log.entries)
        return tuple(entry for entry in entries if not isinstance(entry, InstructionEntry))

    @property
    def memory_notebook_widget(self) -> MemoryNotebookWidget:
        """The memory notebook.

        Raises:
            MisuseError: no widget is one.
        """
        for widget in self._widgets:
            if isinstance(widget, MemoryNotebookWidget):
                return widget
        raise MisuseError(
            "this conversation has no memory notebook: AgentState(widgets=[MemoryNotebookWidget()])"
        )

    @property
    def memory_notebook_snapshot(self) -> str:
        """The memory notebook's text, "" without a notebook."""
        notebooks = (one for one in self._widgets if isinstance(one, MemoryNotebookWidget))
        return next((one.snapshot for one in notebooks), "")

    def append_model_input(self, entry: ModelInputEntry) -> ModelInputEntry:
        """Append an input with the live screen, and return the stored entry.

        Raises:
            ValueError: the input has no live section.
        """
        if not entry.content_sections.live:
            raise ValueError("content_sections must contain at least one live section")
        screen = self._live_screen()
        if screen is not None:
            sections = entry.content_sections.with_live_section(LIVE_SCREEN, screen)
            entry = replace(entry, content_sections=sections)
        return self._log.append(entry)

    def append_model_output(self, entry: ModelOutputEntry) -> ModelOutputEntry:
        """Append an output of the model, and return the stored entry.

        The output of a finished message is accepted in any case: a message may consist of
        reasoning, of an image or of nothing.

        Raises:
            ValueError: the output has neither content nor tool calls nor a message.
            SessionError: a call has the id of an earlier call of this run.
        """
        if not entry.contents and not entry.tool_calls and kept_message(entry) is None:
            raise ValueError("contents: an output must have content or tool calls")
        return self._log.append(entry)

    def append_tool_results(self, entry: ToolResultsEntry) -> ToolResultsEntry:
        """Append the results of the last answer's calls, and return the stored entry.

        The live screen is added to the last result, if there is one. With an `execute_error`, the
        calls without a result have failed by this error.

        Raises:
            ValueError: there are neither results nor an error, or the results do not match the
                calls of the last answer in their order; the error names the first mismatch.
        """
        if not entry.results and not (entry.execute_error or "").strip():
            raise ValueError("pass either results or execute_error")
        self._check_alignment(entry)
        screen = self._live_screen()
        if entry.results and screen is not None:
            last = entry.results[-1]
            screened = replace(last, result=last.result.with_live_section(LIVE_SCREEN, screen))
            entry = replace(entry, results=(*entry.results[:-1], screened))
        return self._log.append(entry)

    def append_compaction(
        self, summary: str, covers: Iterable[UUID], metadata: Mapping[str, object] | None = None
    ) -> CompactionEntry:
        """Append a summary that models are shown instead of earlier entries.

        Args:
            summary: the text.
            covers: ids of the entries that it replaces.
            metadata: metadata of the entry.

        Raises:
            ValueError: the summary is empty, an id is not of an entry that is shown, or the entries
                have a call without its results or the reverse.
        """
        covered = tuple(covers)
        known = {entry.id for entry in self.visible_entries()}
        unknown = [str(one) for one in covered if one not in known]
        if not summary.strip() or not covered:
            raise ValueError("a compaction must have a summary, and cover at least one entry")
        if unknown:
            raise ValueError(f"covers: no entry that is shown has the id {unknown[0]}")
        self._check_pairs(set(covered))
        return self._log.append(
            CompactionEntry(summary=summary, covers=covered, metadata=metadata or {})
        )

    def set_system_instruction(self, instruction: str) -> None:
        """Change the instruction; the log records it, the history does not show it."""
        self._log.append(InstructionEntry(instruction=instruction))

    def update_memory_notebook(self, text: str | None) -> None:
        """Replace the memory notebook on the host's behalf; None empties it.

        Raises:
            MisuseError: no widget is a memory notebook.
        """
        self.memory_notebook_widget.replace_from_host(text, self._record)

    def reset(self) -> None:
        """Forget the history and the states of the widgets; the instruction stays.

        The log keeps all entries, and a mark behind them.
        """
        self._log.append(ResetEntry())
        self._has_screen = False
        self._restore_widgets()

    def render_live_context(self) -> list[ContextMessage]:
        """Return the context of the next call: the instruction if there is one, then all entries.

        The newest input or results are shown live, older ones as their summary, answers unchanged.
        """
        context: list[ContextMessage] = []
        detail = LevelOfDetail.LIVE
        for entry in reversed(self.visible_entries()):
            context.append(shown(entry, detail))
            if isinstance(entry, ModelInputEntry | ToolResultsEntry):
                detail = LevelOfDetail.SUMMARY
        context += self.instruction_messages()
        context.reverse()
        return context

    def instruction_messages(self) -> list[SystemMessage]:
        """Return the instruction in force as a context message, [] without one."""
        entry = self._instruction()
        if entry is None:
            return []
        if kept_message(entry) is not None:
            return [ShownInstruction(entry)]
        return [SystemInstructionMessage(entry.instruction, entry.timestamp)]

    def messages_for(
        self,
        dialect: RequestProtocol,
        *,
        model_id: str | None = None,
        policy: RepairPolicy | None = None,
    ) -> tuple[list[Message], Report]:
        """Return the live context as messages for a provider, and a report of the repairs.

        >>> messages, report = state.messages_for("anthropic-messages")
        """
        messages = to_messages(self.render_live_context())
        return repair(messages, dialect, policy, model_id=model_id)

    def enumerate_widget_tools(self) -> Iterator[Tool]:
        """Yield the tools of all widgets, which a `ToolExecutor` runs as any other."""

        async def execute(call: ToolCallRequest) -> HistoryToolCallResult | None:
            return self.execute_widget_tool(call)

        for widget in self._widgets:
            for tool in widget.tools:
                yield tool.run_by(execute)

    def execute_widget_tool(self, call: ToolCallRequest) -> HistoryToolCallResult | None:
        """Run a tool of a widget; return None if no widget has a tool of this name.

        A change appends a `WidgetEntry`. An exception of the widget becomes a failed result.

        Raises:
            StoreConflictError: the conversation was continued elsewhere.
            OSError: the log has a file, and the change cannot be written. So it is with any other
                exception of a store.
            MisuseError: the file of the log is closed.
        """
        refusals: list[Exception] = []

        def record(widget: str, change: str, source: str, state: object = None) -> None:
            entry = WidgetEntry(widget=widget, change=change, source=source, state=state)
            try:
                self._log.append_change(entry)
            except Exception as error:
                refusals.append(error)
                raise

        for widget in self._widgets:
            if any(tool.name == call.tool_name for tool in widget.tools):
                try:
                    return widget.execute_tool(call, record)
                except Exception as error:
                    if error in refusals:
                        raise
                    return HistoryToolCallResult(
                        call.tool_name,
                        call.tool_call_id,
                        ToolExecutionStatus.FAILED,
                        LevelOfDetailSections.of_text(f"{type(error).__name__}: {error}"),
                    )
        return None

    def visible_entries(self) -> list[HistoryEntry]:
        """Return the entries that models are shown after the instruction, oldest first."""
        in_force = self._instruction()
        return [entry for entry in visible(self._log.entries) if entry is not in_force]

    def _instruction(self) -> InstructionEntry | None:
        """Return the last instruction that was set, else the first system message."""
        first: InstructionEntry | None = None
        for entry in self._log.newest_first():
            if isinstance(entry, InstructionEntry):
                if kept_message(entry) is None:
                    return entry
                first = entry
        return first

    def _check_pairs(self, covered: set[UUID]) -> None:
        """Check that a summary replaces calls together with their results."""
        entries = self.visible_entries()
        for call, results in paired(entries).items():
            answer = entries[call]
            for result in results:
                both = {answer.id, entries[result].id}
                if len(both & covered) == 1:
                    raise ValueError(
                        f"covers: the entry {entries[result].id} has results of {answer.id}; cover "
                        "both or neither"
                    )
        newest = entries[-1] if entries else None
        if isinstance(newest, ModelOutputEntry) and newest.tool_calls and newest.id in covered:
            raise ValueError(f"covers: the calls of {newest.id} have no results yet")

    def _check_alignment(self, entry: ToolResultsEntry) -> None:
        spoken = ModelInputEntry | ModelOutputEntry | ToolResultsEntry | ResetEntry
        answer = next((one for one in self._log.newest_first() if isinstance(one, spoken)), None)
        if not isinstance(answer, ModelOutputEntry):
            raise ValueError("results must follow an answer of a model")  # noqa: TRY004 - of the order, not of a type
        asked = [call.tool_call_id for call in answer.tool_calls]
        given = [result.tool_call_id for result in entry.results]
        expected = asked
        if entry.execute_error is not None:
            # Calls whose execution failed have no result; the others keep their order.
            expected = [call_id for call_id in asked if call_id in given]
        if given == expected or (not given and entry.execute_error is not None):
            return
        pairs = enumerate(zip(given, expected, strict=False))
        wrong = next((place for place, (one, other) in pairs if one != other), None)
        if wrong is None:
            wrong = min(len(given), len(expected))
        raise ValueError(
            f"results[{wrong}]: results must have the order of the calls {asked}, not {given}"
        )

    def _record(self, widget: str, change: str, source: str, state: object = None) -> None:
        self._log.append_change(
            WidgetEntry(widget=widget, change=change, source=source, state=state)
        )

    def _restore_widgets(self) -> None:
        """Give each widget its last state, and after a reset the state of a new widget."""
        states: dict[str, object] = {}
        if any(isinstance(entry, ResetEntry) for entry in self._log.entries):
            states = {widget.name: None for widget in self._widgets}
        entries = since_reset(self._log.entries)
        states |= {entry.widget: entry.state for entry in entries if isinstance(entry, WidgetEntry)}
        for widget in self._widgets:
            if widget.name in states and isinstance(widget, RestorableWidget):
                widget.restore(thawed_value(states[widget.name]))

    def _live_screen(self) -> str | None:
        context = WidgetRenderContext(self)
        rendered = (widget.render_live_screen(context) for widget in self._widgets)
        fragments = [text.rstrip() for text in rendered if text is not None and text.strip()]
        if not fragments and not self._has_screen:
            return None
        # A screen that was shown stays in the history, so that an empty one has to be said.
        self._has_screen = True
        return "\n\n".join([LIVE_SCREEN_HEADING, *(fragments or [_EMPTY_SCREEN])])
