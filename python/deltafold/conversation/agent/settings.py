"""Settings of an agent.

Source: docs/blueprint.md#agent-config.
"""

import random
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from deltafold.contract.short_repr import ShortRepr
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
        max_tool_calls: calls of tools that begin in one run. An answer with more calls than are
            left ends the run before they begin. The call that gives the typed output, and calls
            that the provider runs, are not counted.
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
    max_tool_calls: int | None = Field(default=None, ge=1)
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
    """Limits of the context that a model is shown.

    >>> AgentConfig(context=ContextConfig(token_budget=8000)).context.token_budget
    8000

    Attributes:
        token_budget: tokens of a context, by our estimate; None sets no limit.
        on_overflow: what follows when the provider refuses a context as too long, and no further
            Model of `Model.with_fallback` takes it. "raise" ends the run with the error. "compact"
            makes a smaller context and asks again, once for each answer: to `token_budget`, else to
            half of the model's window (`ModelInfo.context_window_tokens`). Where this is unknown,
            or not smaller than what was sent, half of what was sent is the budget. It stays in
            force for the later requests of the conversation to this model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_budget: int | None = Field(default=None, ge=1)
    on_overflow: Literal["raise", "compact"] = "raise"


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
