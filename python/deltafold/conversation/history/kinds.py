"""Words of a history: the kinds of entries, the roles of speakers, and the statuses of calls.

Source: docs/blueprint.md#history-entries, docs/blueprint.md#auxiliary-types.
"""

from enum import StrEnum


class HistoryEntryKind(StrEnum):
    """Kind of an entry.

    >>> [entry.kind.value for entry in (ResetEntry(), ModelOutputEntry())]
    ['reset', 'model_output']
    """

    MODEL_INPUT = "model_input"
    MODEL_OUTPUT = "model_output"
    TOOL_RESULT = "tool_result"
    WIDGET = "widget"
    INSTRUCTION = "instruction"
    COMPACTION = "compaction"
    CALL = "call"
    PARTIAL = "partial"
    SENT = "sent"
    RESET = "reset"
    STORED = "stored"


class ContextMessageRole(StrEnum):
    """Role of a speaker, independent of the provider.

    >>> ModelOutputEntry().role is ContextMessageRole.MODEL_OUTPUT
    True
    """

    SYSTEM = "system"
    MODEL_INPUT = "model_input"
    MODEL_OUTPUT = "model_output"
    TOOL_RESULT = "tool_result"


class ToolExecutionStatus(StrEnum):
    """Final status of a tool call.

    >>> outcome = ToolOutcome.of_value(ToolCallRequest("tide", "call_1", "{}", {}), "17:42")
    >>> outcome.status is ToolExecutionStatus.SUCCESS
    True
    """

    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    REJECTED = "rejected"


class CallStage(StrEnum):
    """Stage of a tool call in a run.

    >>> CallEntry(tool_call_id="call_1", stage=CallStage.STARTED).stage.value
    'started'
    """

    APPROVED = "approved"
    REJECTED = "rejected"
    STARTED = "started"
    ENDED = "ended"
