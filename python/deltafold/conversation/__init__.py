"""Conversation: one append-only log, its projection to messages, tools and runs.

Laws: entries are frozen and only appended. The messages for a model are projected from the entries.
A provider has no access to the log.
"""

from deltafold.contract.stores import Store, StoreConflictError
from deltafold.conversation import mcp
from deltafold.conversation.agent.agent import Agent
from deltafold.conversation.agent.deadline import LimitReachedError
from deltafold.conversation.agent.executor import ToolExecutor
from deltafold.conversation.agent.run_events import AgentEvent, AgentEventKind, RunResult
from deltafold.conversation.agent.settings import (
    AgentConfig,
    ContextConfig,
    LoopConfig,
    ToolsConfig,
)
from deltafold.conversation.agent.tool_turn import INTERRUPTED
from deltafold.conversation.context.manager import (
    Compact,
    ContextBuildResult,
    ContextInput,
    ContextManager,
    ContextUpdateResult,
)
from deltafold.conversation.context.router import (
    LlmRequest,
    ModelClient,
    ModelOutputAccumulator,
    ModelOutputDelta,
    ProviderClient,
    ProviderRouter,
    Route,
)
from deltafold.conversation.context.run_state import (
    TRANSITIONS,
    IllegalTransitionError,
    RunState,
    RunStatus,
)
from deltafold.conversation.context.state import AgentState
from deltafold.conversation.context.tokens import CountTokens, TokenCounter, estimate_tokens
from deltafold.conversation.context.widgets import (
    MemoryNotebookWidget,
    RestorableWidget,
    Widget,
    WidgetRenderContext,
)
from deltafold.conversation.history.call_table import SessionError
from deltafold.conversation.history.context_messages import (
    ContextMessage,
    ModelInputMessage,
    ModelOutputMessage,
    SystemMessage,
    TokenUsageCarrier,
    ToolCallCarrier,
    ToolResultsMessage,
)
from deltafold.conversation.history.entries import (
    CompactionEntry,
    ContextualHistoryEntry,
    HistoryEntry,
    InstructionEntry,
    ModelInputEntry,
    ModelInvocationDescriptor,
    ModelOutputEntry,
    ResetEntry,
    StoredEntry,
    TokenUsage,
    ToolResultsEntry,
    WidgetEntry,
)
from deltafold.conversation.history.frozen import MAX_METADATA_BYTES, FrozenMapping
from deltafold.conversation.history.kinds import (
    CallStage,
    ContextMessageRole,
    HistoryEntryKind,
    ToolExecutionStatus,
)
from deltafold.conversation.history.log import Clock, ConversationLog
from deltafold.conversation.history.log_file import LogFile
from deltafold.conversation.history.memory_store import MemoryLogStore
from deltafold.conversation.history.projection import (
    ShownInput,
    ShownInstruction,
    ShownResults,
    ShownSummary,
    SystemInstructionMessage,
    to_messages,
)
from deltafold.conversation.history.rows import LOG_VERSION, LogParent
from deltafold.conversation.history.run_entries import CallEntry, PartialEntry, SentEntry
from deltafold.conversation.history.sections import (
    LIVE_SCREEN,
    LevelOfDetail,
    LevelOfDetailSections,
    Section,
    to_plain_text,
    without_live_screen,
)
from deltafold.conversation.history.session import Session
from deltafold.conversation.history.sqlite_store import SQLiteStore
from deltafold.conversation.history.tool_calls import (
    ContextAttachment,
    HistoryToolCallResult,
    ToolCallRequest,
    ToolCallResult,
)
from deltafold.conversation.tools.approval import Approval
from deltafold.conversation.tools.argument_parser import (
    ArgumentError,
    ToolArgumentParser,
    parse_tool_call,
)
from deltafold.conversation.tools.tools import Tool, ToolDefinition, ToolOutcome, tool_message
from deltafold.dialects.repairs.problems import HistoryError, Problem, ProblemCode, Report
from deltafold.dialects.repairs.repair import RepairPolicy, check, repair

__all__ = [
    "INTERRUPTED",
    "LIVE_SCREEN",
    "LOG_VERSION",
    "MAX_METADATA_BYTES",
    "TRANSITIONS",
    "Agent",
    "AgentConfig",
    "AgentEvent",
    "AgentEventKind",
    "AgentState",
    "Approval",
    "ArgumentError",
    "CallEntry",
    "CallStage",
    "Clock",
    "Compact",
    "CompactionEntry",
    "ContextAttachment",
    "ContextBuildResult",
    "ContextConfig",
    "ContextInput",
    "ContextManager",
    "ContextMessage",
    "ContextMessageRole",
    "ContextUpdateResult",
    "ContextualHistoryEntry",
    "ConversationLog",
    "CountTokens",
    "FrozenMapping",
    "HistoryEntry",
    "HistoryEntryKind",
    "HistoryError",
    "HistoryToolCallResult",
    "IllegalTransitionError",
    "InstructionEntry",
    "LevelOfDetail",
    "LevelOfDetailSections",
    "LimitReachedError",
    "LlmRequest",
    "LogFile",
    "LogParent",
    "LoopConfig",
    "MemoryLogStore",
    "MemoryNotebookWidget",
    "ModelClient",
    "ModelInputEntry",
    "ModelInputMessage",
    "ModelInvocationDescriptor",
    "ModelOutputAccumulator",
    "ModelOutputDelta",
    "ModelOutputEntry",
    "ModelOutputMessage",
    "PartialEntry",
    "Problem",
    "ProblemCode",
    "ProviderClient",
    "ProviderRouter",
    "RepairPolicy",
    "Report",
    "ResetEntry",
    "RestorableWidget",
    "Route",
    "RunResult",
    "RunState",
    "RunStatus",
    "SQLiteStore",
    "Section",
    "SentEntry",
    "Session",
    "SessionError",
    "ShownInput",
    "ShownInstruction",
    "ShownResults",
    "ShownSummary",
    "Store",
    "StoreConflictError",
    "StoredEntry",
    "SystemInstructionMessage",
    "SystemMessage",
    "TokenCounter",
    "TokenUsage",
    "TokenUsageCarrier",
    "Tool",
    "ToolArgumentParser",
    "ToolCallCarrier",
    "ToolCallRequest",
    "ToolCallResult",
    "ToolDefinition",
    "ToolExecutionStatus",
    "ToolExecutor",
    "ToolOutcome",
    "ToolResultsEntry",
    "ToolResultsMessage",
    "ToolsConfig",
    "Widget",
    "WidgetEntry",
    "WidgetRenderContext",
    "check",
    "estimate_tokens",
    "mcp",
    "parse_tool_call",
    "repair",
    "to_messages",
    "to_plain_text",
    "tool_message",
    "without_live_screen",
]
