"""The domain of an agent: settings, run, session, tools, context."""

from deltafold.agent.context import (
    ContextBuildResult,
    ContextInput,
    ContextManager,
    ContextUpdateResult,
    estimate_tokens,
)
from deltafold.agent.run import (
    TRANSITIONS,
    AgentConfig,
    ContextConfig,
    IllegalTransitionError,
    LoopConfig,
    RunState,
    RunStatus,
    ToolsConfig,
)
from deltafold.agent.session import Session, SessionError
from deltafold.agent.tools import ToolDefinition, ToolExecutor, ToolOutcome, tool_message

__all__ = [
    "TRANSITIONS",
    "AgentConfig",
    "ContextBuildResult",
    "ContextConfig",
    "ContextInput",
    "ContextManager",
    "ContextUpdateResult",
    "IllegalTransitionError",
    "LoopConfig",
    "RunState",
    "RunStatus",
    "Session",
    "SessionError",
    "ToolDefinition",
    "ToolExecutor",
    "ToolOutcome",
    "ToolsConfig",
    "estimate_tokens",
    "tool_message",
]
