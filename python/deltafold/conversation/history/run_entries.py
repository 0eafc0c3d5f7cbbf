"""Entries of a run: the stages of its calls, answers that broke off, messages that were sent to it.

An interrupted run continues from them; no model is shown them.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from deltafold.conversation.history.entries import HistoryEntry
from deltafold.conversation.history.fields import JsonMapping, KeptMessage
from deltafold.conversation.history.frozen import KEPT_MESSAGE, frozen_json, thawed
from deltafold.conversation.history.kinds import CallStage, HistoryEntryKind
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest
from deltafold.message.messages import Role


@dataclass(frozen=True, kw_only=True)
class CallEntry(HistoryEntry):
    """A stage of a tool call.

    >>> call = ToolCallRequest("tide", "call_1", "{}", {})
    >>> CallEntry(tool_call_id="call_1", stage=CallStage.STARTED, call=call).call.tool_name
    'tide'

    Attributes:
        tool_call_id: id of the call.
        stage: the stage that begins.
        call: the call, if it began before its answer was in the log.
        result: the result of a call that has ended.
        by: who approved or rejected the call.
        reason: why, as the model reads it.
        arguments: arguments with which the call runs instead of those of the model.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.CALL

    tool_call_id: str
    stage: CallStage
    call: ToolCallRequest | None = None
    result: HistoryToolCallResult | None = None
    by: str | None = None
    reason: str | None = None
    arguments: JsonMapping | None = None

    def __post_init__(self) -> None:
        """Freeze the arguments."""
        super().__post_init__()
        if self.arguments is not None:
            object.__setattr__(self, "arguments", frozen_json(self.arguments, "arguments"))

    def approval_record(self) -> dict[str, object]:
        """Return the decision that the entry records, as JSON for `Meta.approvals`."""
        said = {
            "reason": self.reason,
            "arguments": None if self.arguments is None else thawed(self.arguments),
        }
        return {
            "toolCallId": self.tool_call_id,
            "approved": self.stage is CallStage.APPROVED,
            "by": self.by,
            "at": self.timestamp.isoformat(),
            **{name: value for name, value in said.items() if value is not None},
        }


@dataclass(frozen=True, kw_only=True)
class PartialEntry(HistoryEntry):
    """An answer that broke off.

    >>> message = deltafold.Message.assistant("High tide is at")
    >>> PartialEntry(message=message, error="connection_lost").message.text
    'High tide is at'

    Attributes:
        message: everything that was received.
        error: the failure.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.PARTIAL
    message_role: ClassVar[Role | None] = Role.ASSISTANT

    message: KeptMessage | None = KEPT_MESSAGE
    error: str


When: TypeAlias = Literal["next_turn", "idle"]
"""When a message that was sent to a conversation is delivered."""


@dataclass(frozen=True, kw_only=True)
class SentEntry(HistoryEntry):
    """A message that waits to be delivered; the input that delivers it names it in its metadata.

    >>> SentEntry(message=deltafold.Message.user("Stop."), when="idle").message.text
    'Stop.'

    Attributes:
        message: the message.
        when: "next_turn" delivers it with the next request, "idle" when the run would end.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.SENT
    message_role: ClassVar[Role | None] = Role.USER

    message: KeptMessage | None = KEPT_MESSAGE
    when: When = "next_turn"
