"""Context messages: the protocols by which a consumer tells the messages of a context apart.

Laws: no provider is named here. A consumer tests `isinstance(message, ModelOutputMessage)` and the
like.
Source: the conversation history blueprint, "ContextMessage interfaces" and "mix-ins".
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from deltafold.conversation.entries import (
    ContextAttachment,
    ModelInvocationDescriptor,
    TokenUsage,
    ToolCallRequest,
    ToolCallResult,
)
from deltafold.conversation.kinds import ContextMessageRole
from deltafold.conversation.sections import Sections
from deltafold.messages import Message


@runtime_checkable
class ContextMessage(Protocol):
    """Members of all context messages."""

    @property
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""
        ...

    @property
    def timestamp(self) -> datetime:
        """When it was written."""
        ...

    @property
    def metadata(self) -> Mapping[str, object]:
        """Small facts about the message, keys in snake_case."""
        ...


@runtime_checkable
class SystemMessage(ContextMessage, Protocol):
    """The instruction."""

    @property
    def instruction(self) -> str:
        """Its text."""
        ...


@runtime_checkable
class ModelInputMessage(ContextMessage, Protocol):
    """Input to the model."""

    @property
    def content_sections(self) -> Sections:
        """The text, at the level of detail that was chosen."""
        ...

    @property
    def attachments(self) -> Sequence[ContextAttachment]:
        """Images and files."""
        ...


@runtime_checkable
class ToolCallCarrier(Protocol):
    """A message that may contain tool calls."""

    @property
    def tool_calls(self) -> Sequence[ToolCallRequest]:
        """The calls."""
        ...


@runtime_checkable
class TokenUsageCarrier(Protocol):
    """A message that may have a usage record."""

    @property
    def usage(self) -> TokenUsage | None:
        """The counts, where they are known."""
        ...


@runtime_checkable
class ModelOutputMessage(ContextMessage, ToolCallCarrier, Protocol):
    """Output of a model."""

    @property
    def invocation(self) -> ModelInvocationDescriptor | None:
        """Provider, specification and model of the request, None if they are unknown."""
        ...

    @property
    def contents(self) -> Sequence[str]:
        """Its text."""
        ...

    @property
    def message(self) -> Message | None:
        """The whole message, if there is one."""
        ...


@runtime_checkable
class ToolResultsMessage(ContextMessage, Protocol):
    """Results of the calls of an answer."""

    @property
    def results(self) -> Sequence[ToolCallResult]:
        """One for each call, at the level of detail that was chosen."""
        ...

    @property
    def execute_error(self) -> str | None:
        """Why running them failed as a whole."""
        ...
