"""Setup of a run: the parts of an agent that its answers and its calls share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deltafold.conversation.agent.executor import Approve
from deltafold.conversation.agent.run import AgentConfig, RunState
from deltafold.conversation.context.manager import ContextManager
from deltafold.conversation.context.router import ProviderRouter
from deltafold.conversation.context.state import AgentState
from deltafold.conversation.tools.tools import Tool
from deltafold.models.observer import StepTelemetry
from deltafold.streams.outputs import Output


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Parts of an agent.

    Attributes:
        config: the settings.
        state: the conversation.
        run_state: the state of the run.
        router: chooses the client of an answer.
        manager: makes the context of an answer.
        tools: the tools that are enabled.
        approve: asked before a call that requires an approval; None leaves such calls pending.
        agent: given to tools that require it.
        runtime: given to tools that require it.
        output: the type of the result; None leaves the last answer as it is.
        telemetry: is told of runs and tools; None is what `deltafold.otel.instrument()` has set.
    """

    config: AgentConfig
    state: AgentState
    run_state: RunState
    router: ProviderRouter
    manager: ContextManager
    tools: Sequence[Tool]
    approve: Approve | None
    agent: object
    runtime: object
    output: Output[Any, Any] | None = None
    telemetry: StepTelemetry | None = None

    def is_output_call(self, tool_name: str) -> bool:
        """Return whether a call gives the output as its arguments."""
        return self.output is not None and tool_name == self.output.name
