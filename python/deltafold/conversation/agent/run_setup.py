"""Setup of a run: the parts of an agent, and the conversation, that its answers and calls share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deltafold.conversation.agent.executor import Approve
from deltafold.conversation.agent.settings import AgentConfig
from deltafold.conversation.context.manager import ContextManager
from deltafold.conversation.context.router import ProviderRouter
from deltafold.conversation.context.run_state import RunState
from deltafold.conversation.context.state import AgentState
from deltafold.conversation.tools.tools import Tool
from deltafold.models.observer import StepTelemetry
from deltafold.streams.outputs import Output


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Parts of a run.

    Attributes:
        config: the settings.
        state: the conversation.
        router: chooses the client of an answer.
        strategy: returns the strategy of an answer for the router, by its number from 1.
        manager: makes the context of an answer.
        instructions: the system message of this agent; None keeps that of the conversation.
        tools: the tools that are enabled.
        approve: asked before a call that requires an approval; None leaves such calls pending.
        agent: given to tools that require it.
        runtime: given to tools that require it.
        output: the type of the result; None leaves the last answer as it is.
        telemetry: is told of runs and tools; None is what `deltafold.otel.instrument()` has set.
    """

    config: AgentConfig
    state: AgentState
    router: ProviderRouter
    strategy: Callable[[int], str | None]
    manager: ContextManager
    instructions: str | None
    tools: Sequence[Tool]
    approve: Approve | None
    agent: object
    runtime: object
    output: Output[Any, Any] | None = None
    telemetry: StepTelemetry | None = None

    @property
    def run_state(self) -> RunState:
        """The state of the run."""
        return self.state.run_state

    def is_output_call(self, tool_name: str) -> bool:
        """Return whether a call gives the output as its arguments."""
        return self.output is not None and tool_name == self.output.name
