"""Settings of an agent, and the state of its run.

Laws: a run changes its status along `TRANSITIONS` only. Usage and cost of its streams add up.
Source: docs/blueprint.md#agent-config, docs/blueprint.md#run-state. AgentState is `RunState` here,
because `deltafold.conversation.AgentState` is the state of the conversation.
"""

import random
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from deltafold.contract.exceptions import DeltafoldError
from deltafold.contract.short_repr import ShortRepr
from deltafold.contract.usage import Usage, sum_of_usage
from deltafold.conversation.tools.tool_threads import MAX_HUNG_TOOLS
from deltafold.conversation.tools.tools import MAX_RESULT_BYTES


class LoopConfig(ShortRepr, BaseModel):
    """Limits of the agent loop.

    >>> LoopConfig(max_turns=5, max_cost_usd=0.5).max_turns
    5

    Attributes:
        max_turns: answers of the model in one run.
        timeout: seconds of one run; None sets no limit.
        max_retries: further requests after a retryable failure without content.
        retry_seconds: wait before the first retry; each further wait is twice as long, and half
            of it is random. A wait that the provider asks for takes precedence.
        max_retry_seconds: the longest wait. A longer one that the provider asks for ends the run.
        max_parallel_tools: calls that run at once.
        max_tokens: sum of the tokens of all answers of a run, input included.
        max_cost_usd: sum of their cost in US dollars.
        start_tools_early: whether a call runs as soon as it is complete, while the answer goes on.
            The provider may still refuse or filter the answer, or break off: then a call has run
            that would not run otherwise, and the logger `deltafold` has a warning.
        on_error: "raise" raises the failure of a run; "return" returns it in the result.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_turns: int = Field(default=50, ge=1)
    timeout: float | None = Field(default=None, gt=0)
    max_retries: int = Field(default=2, ge=0)
    retry_seconds: float = Field(default=1.0, ge=0)
    max_retry_seconds: float = Field(default=60.0, ge=0)
    max_parallel_tools: int = Field(default=8, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost_usd: float | None = Field(default=None, gt=0)
    start_tools_early: bool = False
    on_error: Literal["raise", "return"] = "raise"

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Return the seconds until the next request.

        Args:
            attempt: the number of the request that has failed, from 0.
            retry_after: the seconds that the provider asks for.
        """
        if retry_after is not None:
            return retry_after
        longest = min(self.retry_seconds * 2.0**attempt, self.max_retry_seconds)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads the requests of many runs


class ContextConfig(ShortRepr, BaseModel):
    """Limits of the context that a model is shown, in tokens; None sets no limit.

    >>> AgentConfig(context=ContextConfig(token_budget=8000)).context.token_budget
    8000
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_budget: int | None = Field(default=None, ge=1)


class ToolsConfig(ShortRepr, BaseModel):
    """Which tools there are, and what a call of one may need.

    >>> AgentConfig(tools={"require_approval": ["delete_file"]}).tools
    ToolsConfig(require_approval=('delete_file',))

    Attributes:
        enabled: names of the available tools; None enables all.
        require_approval: names of the tools that always need an approval.
        max_result_bytes: the longest text of a result, in bytes of UTF-8; the rest is cut off, and
            the text says so.
        max_hung: how many synchronous tools of this process may run on after their calls were
            cancelled or exceeded their time limits; then calls of synchronous tools fail at once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: tuple[str, ...] | None = None
    require_approval: tuple[str, ...] = ()
    max_result_bytes: int = Field(default=MAX_RESULT_BYTES, ge=1)
    max_hung: int = Field(default=MAX_HUNG_TOOLS, ge=0)


class AgentConfig(ShortRepr, BaseModel):
    """An agent's settings.

    >>> AgentConfig(model="openai/gpt-5.6-terra", loop={"max_turns": 5}).loop.max_turns
    5

    Attributes:
        name: the name of the agent in its telemetry.
        model: the name that `load_model` takes, or its arguments as a mapping; None if the agent is
            given a model.
        runtime: the runtime's own settings.
        tools: which tools there are.
        context: how much a model is shown.
        loop: limits and tries.
        observability: settings of logging, tracing and metrics.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = None
    model: str | dict[str, object] | None = None
    runtime: dict[str, object] = Field(default_factory=dict)
    tools: ToolsConfig = Field(default_factory=ToolsConfig)
    context: ContextConfig = Field(default_factory=ContextConfig)
    loop: LoopConfig = Field(default_factory=LoopConfig)
    observability: dict[str, object] = Field(default_factory=dict)


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
