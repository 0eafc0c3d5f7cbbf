"""Widgets: state of an agent that the model sees and changes.

In: tool calls of the model, changes by the host.  Out: the current text of a widget, its tools, and
an entry in the history for each change.

Laws: only its tools and its host change a widget, and each change appends an entry with the state
after it.
Source: docs/blueprint.md#widgets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from deltafold.conversation.history.entries import HistoryEntry
from deltafold.conversation.history.frozen import FrozenMapping
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.conversation.history.sections import LevelOfDetailSections
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest
from deltafold.conversation.tools.argument_parser import ArgumentError, ToolArgumentParser
from deltafold.conversation.tools.tools import Tool


class RenderedState(Protocol):
    """State that a widget reads while it is rendered; an `AgentState` implements it."""

    @property
    def system_instruction(self) -> str:
        """The instruction in force."""
        ...

    @property
    def history(self) -> Sequence[HistoryEntry]:
        """All entries, oldest first."""
        ...

    @property
    def memory_notebook_snapshot(self) -> str:
        """The memory notebook's text."""
        ...


@dataclass(frozen=True, slots=True)
class WidgetRenderContext:
    """Data that a widget may read while it is rendered.

    >>> context = WidgetRenderContext(state, {"timezone": "UTC"})
    >>> context.state.system_instruction, context.environment["timezone"]
    ('Be brief.', 'UTC')
    """

    state: RenderedState
    environment: Mapping[str, object] = field(default_factory=FrozenMapping)

    def __post_init__(self) -> None:
        """Freeze the environment."""
        object.__setattr__(self, "environment", FrozenMapping(self.environment))


class Record(Protocol):
    """Function that appends the entry of a change."""

    def __call__(self, widget: str, change: str, source: str, state: object = None) -> None:
        """Append the entry.

        Args:
            widget: name of the widget.
            change: description of the change, in one line.
            source: origin of the change: a tool call, or the host.
            state: state of the widget after the change, a value of JSON, from which `restore` of
                the widget takes it.
        """
        ...


class Widget(Protocol):
    """A part of the state that a model sees.

    >>> notebook: Widget = MemoryNotebookWidget()
    >>> notebook.name, [tool.name for tool in notebook.tools]
    ('memory_notebook', ['memory_notebook_replace'])
    """

    @property
    def name(self) -> str:
        """Name of the widget in the history."""
        ...

    @property
    def tools(self) -> Sequence[Tool]:
        """Tools of the widget."""
        ...

    def render_live_screen(self, context: WidgetRenderContext) -> str | None:
        """Return the widget as Markdown; None or blank text shows nothing."""
        ...

    def execute_tool(self, call: ToolCallRequest, record: Record) -> HistoryToolCallResult:
        """Run one of its tools; `record` leaves the entry of a change."""
        ...


@runtime_checkable
class RestorableWidget(Protocol):
    """A widget whose state a log keeps.

    >>> notebook = MemoryNotebookWidget()
    >>> notebook.restore("Prefers metric units.")
    >>> isinstance(notebook, RestorableWidget), notebook.snapshot
    (True, 'Prefers metric units.')
    """

    def restore(self, state: object) -> None:
        """Take the state of an earlier change; None is the state of a new widget."""
        ...


_REPLACE: Final = "memory_notebook_replace"


class MemoryNotebookWidget:
    """A notebook that the model keeps for itself and sees on the live screen.

    >>> notebook = MemoryNotebookWidget()
    >>> notebook.restore("Prefers metric units.")
    >>> print(notebook.render_live_screen(WidgetRenderContext(state)))
    ## Memory Notebook
    <BLANKLINE>
    Prefers metric units.
    """

    def __init__(self) -> None:
        self._text = ""

    @property
    def name(self) -> str:
        """Name of the widget in the history."""
        return "memory_notebook"

    @property
    def snapshot(self) -> str:
        """The notebook's text."""
        return self._text

    @property
    def tools(self) -> Sequence[Tool]:
        """One: replace the text."""
        schema: dict[str, object] = {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "The notebook's whole new text."}
            },
            "required": ["text"],
            "additionalProperties": False,
        }
        return (Tool(_REPLACE, "Replace the text of your memory notebook.", schema),)

    def render_live_screen(self, context: WidgetRenderContext) -> str | None:  # noqa: ARG002 - it shows itself alone
        """Return the notebook under a heading, None while it is empty."""
        return f"## Memory Notebook\n\n{self._text}" if self._text.strip() else None

    def execute_tool(self, call: ToolCallRequest, record: Record) -> HistoryToolCallResult:
        """Replace the text, as the model asks."""
        if call.tool_name != _REPLACE:
            return _answer(call, ToolExecutionStatus.FAILED, f"There is no tool {call.tool_name}.")
        try:
            text = ToolArgumentParser(call).get_required("text", str)
        except ArgumentError as error:
            return _answer(call, ToolExecutionStatus.FAILED, str(error))
        self._replace(text, f"tool call {call.tool_call_id}", record)
        return _answer(call, ToolExecutionStatus.SUCCESS, f"Replaced: {len(text)} characters.")

    def replace_from_host(self, text: str | None, record: Record) -> None:
        """Replace the text on the host's behalf; None empties it."""
        self._replace(text or "", "host", record)

    def restore(self, state: object) -> None:
        """Take the text of an earlier change; None empties the notebook."""
        self._text = state if isinstance(state, str) else ""

    def _replace(self, text: str, source: str, record: Record) -> None:
        # The entry comes first: if the log refuses it, the notebook is unchanged too.
        record(self.name, f"replaced: {len(self._text)} to {len(text)} characters", source, text)
        self._text = text


def _answer(call: ToolCallRequest, status: ToolExecutionStatus, text: str) -> HistoryToolCallResult:
    result = LevelOfDetailSections.of_text(text)
    return HistoryToolCallResult(call.tool_name, call.tool_call_id, status, result)
