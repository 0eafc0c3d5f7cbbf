"""State of a run, and the claim of one run to its conversation.

Laws: a run changes its status along `TRANSITIONS` only. Usage and cost of its streams add up. A
conversation has at most one run of this process at a time.
Source: docs/blueprint.md#run-state. AgentState is `RunState` here, because
`deltafold.conversation.AgentState` is the state of the conversation.
"""

import threading
from collections.abc import Hashable, Mapping
from enum import StrEnum
from typing import Any, Final
from uuid import uuid4
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict, Field

from deltafold.contract.exceptions import DeltafoldError
from deltafold.contract.short_repr import ShortRepr
from deltafold.contract.usage import Usage, sum_of_usage
from deltafold.conversation.history.log import ConversationLog


class RunStatus(StrEnum):
    """Status of a run.

    >>> run = RunState()
    >>> run.move("preparing")
    >>> run.status is RunStatus.PREPARING
    True
    """

    IDLE = "idle"
    PREPARING = "preparing"
    MODEL_RUNNING = "model_running"
    TOOL_RUNNING = "tool_running"
    AWAITING_HUMAN = "awaiting_human"
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"


_STOPPED: Final = frozenset({RunStatus.FAILED, RunStatus.ABORTED})

ENDED: Final = frozenset({RunStatus.IDLE, RunStatus.AWAITING_HUMAN, RunStatus.COMPLETED, *_STOPPED})
"""Statuses in which no code of a run is under way, if no run has the conversation."""

TRANSITIONS: Final[Mapping[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.IDLE: frozenset({RunStatus.PREPARING}),
    RunStatus.PREPARING: frozenset(
        {
            RunStatus.MODEL_RUNNING,
            RunStatus.TOOL_RUNNING,  # a run that continues with open calls
            RunStatus.COMPLETED,  # a run that continues with its last answer
            *_STOPPED,
        }
    ),
    RunStatus.MODEL_RUNNING: frozenset(
        {
            RunStatus.PREPARING,  # another try
            RunStatus.TOOL_RUNNING,
            RunStatus.AWAITING_HUMAN,
            RunStatus.COMPLETED,
            *_STOPPED,
        }
    ),
    RunStatus.TOOL_RUNNING: frozenset(
        {RunStatus.PREPARING, RunStatus.AWAITING_HUMAN, RunStatus.COMPLETED, *_STOPPED}
    ),
    RunStatus.AWAITING_HUMAN: frozenset(
        {
            RunStatus.PREPARING,
            RunStatus.MODEL_RUNNING,
            RunStatus.TOOL_RUNNING,
            RunStatus.COMPLETED,
            *_STOPPED,
        }
    ),
    RunStatus.COMPLETED: frozenset({RunStatus.IDLE, RunStatus.PREPARING}),
    RunStatus.FAILED: frozenset({RunStatus.IDLE, RunStatus.PREPARING}),
    RunStatus.ABORTED: frozenset({RunStatus.IDLE, RunStatus.PREPARING}),
}
"""Allowed next statuses of each status. A new run begins from `idle` or from an ended run.

>>> sorted(status.value for status in TRANSITIONS[RunStatus.COMPLETED])
['idle', 'preparing']
"""


class IllegalTransitionError(DeltafoldError, ValueError):
    """The requested change of status is not allowed.

    >>> try:
    ...     RunState().move("completed")
    ... except IllegalTransitionError as error:
    ...     print(error)
    a run that is idle cannot become completed; it can become preparing
    """


class RunState(ShortRepr, BaseModel):
    """State of one agent's run.

    >>> run = RunState()
    >>> run_id = run.begin()
    >>> run.add_usage(message.meta.usage)
    >>> run.status.value, run.token_usage.total_tokens
    ('preparing', 349)

    Attributes:
        status: the current status; it changes along `TRANSITIONS`, by `move` or an assignment.
        current_run_id: id of the run, None before the first run.
        pending_tool_calls: ids of the calls that have no result yet.
        last_error: text of the most recent failure.
        token_usage: sum of the usage of all streams of the run.
        cost_usage: sum of their cost in US dollars; None if no cost is known.
        cost_unpriced: names of what was billed and is not in that sum; "tokens" if the tokens of a
            stream have no known price.
    """

    model_config = ConfigDict(extra="forbid")

    status: RunStatus = RunStatus.IDLE
    current_run_id: str | None = None
    pending_tool_calls: list[str] = Field(default_factory=list)
    last_error: str | None = None
    token_usage: Usage = Field(default_factory=Usage)
    cost_usage: float | None = None
    cost_unpriced: tuple[str, ...] = ()

    def begin(self, run_id: str | None = None) -> str:
        """Begin a run: its counts start anew; returns its id.

        Raises:
            IllegalTransitionError: a run is under way.
        """
        self.move(RunStatus.PREPARING)
        self.current_run_id = run_id or str(uuid4())
        self.pending_tool_calls = []
        self.last_error = None
        self.forget_usage()
        return self.current_run_id

    def move(self, status: RunStatus | str, *, error: str | None = None) -> None:
        """Change the status.

        Raises:
            IllegalTransitionError: the change is not allowed; the error lists the allowed statuses.
        """
        self.status = RunStatus(status)
        if error is not None:
            self.last_error = error

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401 - of the field
        """Set a field; the status changes along the table."""
        if name == "status":
            value = RunStatus(value)
            if value not in TRANSITIONS[self.status]:
                possible = ", ".join(sorted(TRANSITIONS[self.status]))
                raise IllegalTransitionError(
                    f"a run that is {self.status} cannot become {value}; it can become {possible}"
                )
        super().__setattr__(name, value)

    def forget_usage(self) -> None:
        """Count usage and cost from zero."""
        self.token_usage = Usage()
        self.cost_usage = None
        self.cost_unpriced = ()

    def add_usage(
        self, usage: Usage | None, cost_usd: float | None = None, unpriced: tuple[str, ...] = ()
    ) -> None:
        """Add the usage and the cost of one stream; unknown values add nothing.

        Args:
            usage: the tokens.
            cost_usd: the cost in US dollars; the one that the usage states if it is None.
            unpriced: names of what the cost leaves out.
        """
        if usage is not None:
            self.token_usage = sum_of_usage((self.token_usage, usage))
            cost_usd = usage.cost if cost_usd is None else cost_usd
            if cost_usd is None and usage.total_tokens:
                unpriced = (*unpriced, "tokens")
        self.cost_unpriced = tuple(dict.fromkeys((*self.cost_unpriced, *unpriced)))
        if cost_usd is not None:
            self.cost_usage = (self.cost_usage or 0.0) + cost_usd


class RunClaim:
    """The claim of a run to its conversation, until it is released or nothing has it any more.

    The generator of a run has it, so that a run that was dropped leaves no claim behind.

    Args:
        log: the log of the conversation that the run writes to.
        run_state: the state of the conversation's last run.

    Attributes:
        log: the log that the run writes to; another log of the conversation sends to it.

    Raises:
        IllegalTransitionError: another run has the conversation.
    """

    def __init__(self, log: ConversationLog, run_state: RunState) -> None:
        self.log = log
        self._conversation = conversation = log.identity
        with _LOCK:
            if conversation in _CLAIMS:
                raise IllegalTransitionError(
                    "a run is under way on this conversation, and another one cannot begin: wait "
                    "for its end, or pass another state"
                )
            _CLAIMS[conversation] = self
        if run_state.status not in ENDED:  # its generator was dropped by an event loop that ended
            run_state.move(RunStatus.ABORTED, error="cancelled")

    def release(self) -> None:
        """Let another run begin."""
        with _LOCK:
            if _CLAIMS.get(self._conversation) is self:
                del _CLAIMS[self._conversation]


def log_of_run(log: ConversationLog) -> ConversationLog:
    """Return the log that a run on the same conversation writes to, else this one."""
    claim = _CLAIMS.get(log.identity)
    return log if claim is None else claim.log


_LOCK: Final = threading.RLock()  # the end of a dropped run may come within it
_CLAIMS: Final[WeakValueDictionary[Hashable, RunClaim]] = WeakValueDictionary()
