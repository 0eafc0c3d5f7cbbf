"""State: the growing history of an agent, and the context made of it.

In: entries, in the order of the events.  Out: the same entries with timestamps; the context for the
next call.

Laws: the history is append-only and its entries are frozen. The clock provides each timestamp. The
live screen is written into an entry when the entry is appended, never later. One thread uses the
state at a time.
Source: the conversation history blueprint, "AgentState API".
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Self, TypeVar

from deltafold.history.context import (
    ContextMessage,
    ShownInput,
    ShownResults,
    SystemInstructionMessage,
    to_messages,
)
from deltafold.history.entries import (
    HistoryEntry,
    HistoryToolCallResult,
    ModelInputEntry,
    ModelOutputEntry,
    ToolCallRequest,
    ToolExecutionStatus,
    ToolResultsEntry,
    WidgetEntry,
)
from deltafold.history.sections import LIVE_SCREEN, LevelOfDetail, LevelOfDetailSections
from deltafold.history.widgets import MemoryNotebookWidget, Tool, Widget, WidgetRenderContext
from deltafold.messages import Message
from deltafold.repairs.problems import Report
from deltafold.repairs.repairing import RepairPolicy, repair

DEFAULT_INSTRUCTION: Final = "You are a helpful assistant."
LIVE_SCREEN_HEADING: Final = "# [Live Screen]"

EntryT = TypeVar("EntryT", bound=HistoryEntry)
Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


class AgentState:
    """One conversation of one agent; `create_default` makes it.

    >>> state = AgentState.create_default("Be brief.")
    >>> state.append_model_input(ModelInputEntry(content_sections=sections))
    >>> messages = to_messages(state.render_live_context())

    It is used by one thread at a time; whoever shares it locks it.
    """

    def __init__(self, system_instruction: str, clock: Clock, widgets: Sequence[Widget]) -> None:
        self._system_instruction = system_instruction
        self._clock = clock
        self._history: list[HistoryEntry] = []
        self._memory_notebook = MemoryNotebookWidget()
        self._widgets: tuple[Widget, ...] = (self._memory_notebook, *widgets)

    @classmethod
    def create_default(
        cls,
        system_instruction: str | None = None,
        clock: Clock | None = None,
        *,
        widgets: Sequence[Widget] = (),
    ) -> Self:
        """Make an empty conversation.

        Args:
            system_instruction: the instruction; None or blank is `DEFAULT_INSTRUCTION`.
            clock: returns aware datetimes; None is the system's clock.
            widgets: widgets in addition to the memory notebook, which always exists.
        """
        blank = system_instruction is None or not system_instruction.strip()
        instruction = DEFAULT_INSTRUCTION if blank else system_instruction
        return cls(instruction or DEFAULT_INSTRUCTION, clock or _now, widgets)

    @property
    def system_instruction(self) -> str:
        """The instruction in force."""
        return self._system_instruction

    @property
    def history(self) -> Sequence[HistoryEntry]:
        """All entries, oldest first; it cannot be changed."""
        return tuple(self._history)

    @property
    def memory_notebook_widget(self) -> MemoryNotebookWidget:
        """The widget of the memory notebook."""
        return self._memory_notebook

    @property
    def memory_notebook_snapshot(self) -> str:
        """The memory notebook's text."""
        return self._memory_notebook.snapshot

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
        return self._append(entry)

    def append_model_output(self, entry: ModelOutputEntry) -> ModelOutputEntry:
        """Append an output of the model, and return the stored entry.

        Raises:
            ValueError: the output has neither content nor tool calls.
        """
        if not entry.contents and not entry.tool_calls:
            raise ValueError("contents: an output must have content or tool calls")
        return self._append(entry)

    def append_tool_results(self, entry: ToolResultsEntry) -> ToolResultsEntry:
        """Append the results of the last answer's calls, and return the stored entry.

        The live screen is added to the last result, if there is one.

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
            shown = replace(last, result=last.result.with_live_section(LIVE_SCREEN, screen))
            entry = replace(entry, results=(*entry.results[:-1], shown))
        return self._append(entry)

    def set_system_instruction(self, instruction: str) -> None:
        """Change the instruction; the history does not record it."""
        self._system_instruction = instruction

    def update_memory_notebook(self, text: str | None) -> None:
        """Replace the memory notebook on the host's behalf; None empties it."""
        self._memory_notebook.replace_from_host(text, self._record)

    def reset(self) -> None:
        """Forget the history and the notebook; the instruction stays."""
        self._history.clear()
        self._memory_notebook.reset()

    def render_live_context(self) -> list[ContextMessage]:
        """Return the context of the next call: the instruction, then all contextual entries.

        The newest input or results are shown live, older ones as their summary, answers unchanged.
        """
        shown: list[ContextMessage] = []
        detail = LevelOfDetail.LIVE
        for entry in reversed(self._history):
            match entry:
                case ModelInputEntry():
                    shown.append(ShownInput(entry, detail))
                    detail = LevelOfDetail.SUMMARY
                case ToolResultsEntry():
                    shown.append(ShownResults(entry, detail))
                    detail = LevelOfDetail.SUMMARY
                case ModelOutputEntry():
                    shown.append(entry)
                case _:
                    continue
        shown.append(SystemInstructionMessage(self._system_instruction, self._clock()))
        shown.reverse()
        return shown

    def messages_for(
        self, dialect: str, *, model_id: str | None = None, policy: RepairPolicy | None = None
    ) -> tuple[list[Message], Report]:
        """Return the live context as messages for a provider, and a report of the repairs.

        >>> messages, report = state.messages_for("anthropic-messages")
        """
        messages = to_messages(self.render_live_context())
        return repair(messages, dialect, policy, model_id=model_id)

    def enumerate_widget_tools(self) -> Iterator[Tool]:
        """Yield the tools of all widgets."""
        for widget in self._widgets:
            yield from widget.tools

    def execute_widget_tool(self, call: ToolCallRequest) -> HistoryToolCallResult | None:
        """Run a tool of a widget; return None if no widget has a tool of this name.

        A change appends a `WidgetEntry`. An exception of the widget becomes a failed result.
        """
        for widget in self._widgets:
            if any(tool.name == call.tool_name for tool in widget.tools):
                try:
                    return widget.execute_tool(call, self._record)
                except Exception as error:  # noqa: BLE001 - a widget is the caller's code
                    return HistoryToolCallResult(
                        call.tool_name,
                        call.tool_call_id,
                        ToolExecutionStatus.FAILED,
                        LevelOfDetailSections.of_text(f"{type(error).__name__}: {error}"),
                    )
        return None

    def _check_alignment(self, entry: ToolResultsEntry) -> None:
        contextual = (
            one
            for one in reversed(self._history)
            if isinstance(one, ModelInputEntry | ModelOutputEntry | ToolResultsEntry)
        )
        answer = next(contextual, None)
        if not isinstance(answer, ModelOutputEntry):
            raise ValueError("results must follow an answer of a model")  # noqa: TRY004 - of the order, not of a type
        asked = [call.tool_call_id for call in answer.tool_calls]
        given = [result.tool_call_id for result in entry.results]
        if given and given != asked:
            wrong = next(
                (
                    place
                    for place, pair in enumerate(zip(given, asked, strict=False))
                    if pair[0] != pair[1]
                ),
                min(len(given), len(asked)),
            )
            raise ValueError(
                f"results[{wrong}]: results must have the order of the calls {asked}, not {given}"
            )

    def _append(self, entry: EntryT) -> EntryT:
        stamped = entry.appended_at(self._clock())
        self._history.append(stamped)
        return stamped

    def _record(self, widget: str, change: str, source: str) -> None:
        self._append(WidgetEntry(widget=widget, change=change, source=source))

    def _live_screen(self) -> str | None:
        context = WidgetRenderContext(self)
        rendered = (widget.render_live_screen(context) for widget in self._widgets)
        fragments = [text.rstrip() for text in rendered if text is not None and text.strip()]
        return "\n\n".join([LIVE_SCREEN_HEADING, *fragments]) if fragments else None
