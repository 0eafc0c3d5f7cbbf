"""Events of a run, and its result.

Law: an event has the members of its kind; the others are None.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from deltafold.contract.short_repr import short
from deltafold.contract.usage import Usage
from deltafold.conversation.agent.event_facts import (
    ACCEPTED,
    call_facts,
    failure_facts,
    input_facts,
    result_facts,
    usage_facts,
    value_facts,
)
from deltafold.conversation.context.manager import ContextBuildResult
from deltafold.conversation.context.run_state import RunStatus
from deltafold.conversation.context.state import AgentState
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest
from deltafold.errors.model_error import ModelError, OutputError
from deltafold.message.card import Block, Card
from deltafold.message.cards import (
    cost_text,
    failure_card,
    message_card,
    nested,
    tokens_of,
)
from deltafold.message.messages import Message
from deltafold.message.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafold._core import MessageDelta
    from deltafold.blocks import ProgressMessage


T = TypeVar("T", default=None)


class AgentEventKind(StrEnum):
    """Kind of an event of a run.

    >>> agent = deltafold.Agent(model=model)
    >>> kinds = {event.kind for event in agent.stream_sync("When is high tide?")}
    >>> AgentEventKind.RUN_END in kinds
    True
    """

    TURN = "turn"
    DELTA = "delta"
    RETRY = "retry"
    COMPACTED = "compacted"
    ANSWER = "answer"
    APPROVAL = "approval"
    TOOL_START = "tool_start"
    PROGRESS = "progress"
    TOOL_END = "tool_end"
    INPUT = "input"
    OUTPUT_DEFECT = "output_defect"
    RUN_END = "run_end"


# One is made for each delta, and a frozen class takes three times as long to make.
@dataclass(slots=True, kw_only=True)
class AgentEvent:
    """One event of a run.

    >>> for event in deltafold.Agent(model=model).stream_sync("When is high tide?"):
    ...     if event.kind == "answer":
    ...         print(event.message.text)
    At 17:42.

    Attributes:
        kind: the kind.
        turn: number of the answer in the run, from 1.
        delta: a delta of the answer (delta).
        seconds: seconds until the next request (retry).
        error: the failure (retry); the refusal of a context that is too long (compacted).
        continues: whether the next request asks for the rest of the answer alone (retry).
        context: the smaller context, with the levels of its entries, its tokens and the summary
            that was made (compacted).
        message: the whole answer (answer); everything that was received (retry); a message that was
            sent to the conversation, and is delivered now (input).
        call: the call (approval, tool_start, progress, tool_end).
        progress: the value that the tool has yielded (progress).
        make_message: makes the `ProgressMessage` of the value (progress).
        result: the result of the call (tool_end).
        defect: the defect of an output, which the model is asked to mend (output_defect).
        run: the result of the run (run_end).
    """

    kind: AgentEventKind
    turn: int
    delta: "MessageDelta | None" = None
    seconds: float | None = None
    error: ModelError | None = None
    continues: bool | None = None
    context: ContextBuildResult | None = None
    message: Message | None = None
    call: ToolCallRequest | None = None
    progress: object = None
    make_message: "Callable[[], ProgressMessage] | None" = None
    result: HistoryToolCallResult | None = None
    defect: OutputError | None = None
    run: "RunResult[Any] | None" = None

    @property
    def progress_message(self) -> "ProgressMessage | None":
        """Progress with the answer that made the call, its siblings, the tools and the history."""
        return None if self.make_message is None else self.make_message()

    @property
    def facts(self) -> dict[str, object]:
        """What the event says, as JSON values for a client; see docs/agents.md#events-as-json.

        >>> events = deltafold.Agent(model=model).stream_sync("When is high tide?")
        >>> [event.facts["reason"] for event in events if event.kind == "run_end"]
        ['answered']
        """
        facts: dict[str, object] = {"kind": str(self.kind), "turn": self.turn}
        if self.delta is not None:
            facts["delta"] = {"kind": str(self.delta.kind), **self.delta.payload}
        if self.call is not None:
            facts |= call_facts(self.call)
        if self.result is not None:
            facts |= result_facts(self.result)
        if self.error is not None:
            facts["error"] = failure_facts(self.error)
        if self.run is not None:
            facts |= self.run.facts
        return facts | self._own_facts()

    def _own_facts(self) -> dict[str, object]:
        """Return what one kind of event alone says."""
        own: dict[str, object] = {}
        match self:
            case AgentEvent(kind=AgentEventKind.ANSWER, message=Message() as message):
                own = {"toolCallIds": [call.tool_call_id for call in message.tool_calls]}
            case AgentEvent(kind=AgentEventKind.INPUT, message=Message() as message):
                own = input_facts(message)
            case AgentEvent(kind=AgentEventKind.PROGRESS):
                own = {"progress": value_facts(self.progress)}
            case AgentEvent(kind=AgentEventKind.RETRY):
                own = {"continues": bool(self.continues), "seconds": self.seconds}
            case AgentEvent(context=ContextBuildResult() as context):
                own = {"tokens": context.update.tokens}
            case AgentEvent(defect=OutputError() as defect):
                own = {"defect": defect.defect, "reason": defect.reason}
            case _:
                pass
        return own


@dataclass(frozen=True)  # with slots, Python 3.11 cannot call the class with type arguments
class RunResult(Shown, Generic[T]):
    """Result of a run.

    >>> result = deltafold.Agent(model=model).run_sync("When is high tide?")
    >>> result.text
    'At 17:42.'

    Attributes:
        status: the final status: completed, failed, aborted, or awaiting_human.
        message: the last answer, None if there is none.
        state: the conversation, with which the next run continues it.
        reason: reason of the end. A run that completed has "answered", or the finish reason of an
            answer that is not whole, such as "length". Others have "approval", "max_turns",
            "timeout", "max_tokens", "max_cost_usd", "max_tool_calls", "does_not_fit" or "error".
        output: the typed output, None if the run has not completed or has no type.
        turns: number of answers.
        usage: tokens of all requests.
        cost_usd: cost of all requests in US dollars, None if no cost is known.
        cost_unpriced: names of what was billed and is not in that cost, such as
            `web_search_call`; "tokens" if the tokens of a request have no known price.
        pending: calls that wait for an approval.
        error: the failure, None if the run has not failed.
    """

    status: RunStatus
    message: Message | None
    reason: str
    state: AgentState = field(repr=False, compare=False)
    output: T | None = None
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    cost_unpriced: tuple[str, ...] = ()
    pending: tuple[ToolCallRequest, ...] = ()
    error: Exception | None = None

    def _card(self) -> Card:
        """Return how it ended, what waits for an approval, its output and its last answer."""
        facts = [self.reason, f"{self.turns} answer{'' if self.turns == 1 else 's'}"]
        facts.append(tokens_of(self.usage))
        if self.cost_usd is not None:
            facts.append(cost_text(self.cost_usd, self.cost_unpriced))
        blocks: list[Block | Card] = [
            Block(
                kind="call",
                label=call.tool_name,
                note=f"{call.tool_call_id} waits for an approval",
                text=call.raw_arguments,
                is_code=True,
            )
            for call in self.pending
        ]
        if self.error is not None:
            blocks.append(failure_card(self.error))
        if self.output is not None:
            output = Block(kind="text", label="output", text=short(self.output), is_code=True)
            blocks.append(output)
        if self.message is not None:
            blocks.append(nested("last answer", message_card(self.message)))
        return Card(title=f"{type(self).__name__} {self.status}", facts=facts, blocks=blocks)

    @property
    def is_lower_bound(self) -> bool:
        """Whether something was billed that `cost_usd` leaves out."""
        return self.cost_usd is not None and bool(self.cost_unpriced)

    @property
    def facts(self) -> dict[str, object]:
        """What the result says to a client, as JSON values; see `AgentEvent.facts`.

        >>> deltafold.Agent(model=model).run_sync("When is high tide?").facts["status"]
        'completed'
        """
        facts: dict[str, object] = {
            "status": str(self.status),
            "reason": self.reason,
            "turns": self.turns,
            "usage": usage_facts(self.usage),
            "costUsd": self.cost_usd,
            "pending": [call_facts(call) for call in self.pending],
            "accepted": ACCEPTED,
        }
        return facts if self.error is None else facts | {"error": failure_facts(self.error)}

    @property
    def text(self) -> str:
        """Text of the last answer."""
        return "" if self.message is None else self.message.text
