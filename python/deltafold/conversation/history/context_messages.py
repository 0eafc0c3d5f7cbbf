"""Context messages: the protocols by which a consumer tells the messages of a context apart.

Laws: no provider is named here. A consumer tests `isinstance(message, ModelOutputMessage)` and the
like.
Source: docs/blueprint.md#context-messages.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from deltafold.conversation.history.entries import ModelInvocationDescriptor, TokenUsage
from deltafold.conversation.history.kinds import ContextMessageRole
from deltafold.conversation.history.sections import Sections
from deltafold.conversation.history.tool_calls import (
    ContextAttachment,
    ToolCallRequest,
    ToolCallResult,
)
from deltafold.message.messages import Message


@runtime_checkable
class ContextMessage(Protocol):
    """Members of all context messages.

    >>> [message.role.value for message in state.render_live_context()]
    ['system']
    """

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
    """The instruction.

    >>> [
    ...     message.instruction
    ...     for message in state.render_live_context()
    ...     if isinstance(message, SystemMessage)
    ... ]
    ['Be brief.']
    """

    @property
    def instruction(self) -> str:
        """Its text."""
        ...


@runtime_checkable
class ModelInputMessage(ContextMessage, Protocol):
    """Input to the model.

    >>> entry = state.append_model_input(ModelInputEntry(content_sections=sections))
    >>> isinstance(state.render_live_context()[-1], ModelInputMessage)
    True
    """

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
    """A message that may contain tool calls.

    >>> entry = ModelOutputEntry.of_message(message)
    >>> [call.tool_name for call in entry.tool_calls] if isinstance(
    ...     entry, ToolCallCarrier
    ... ) else []
    ['get_tides', 'get_tides']
    """

    @property
    def tool_calls(self) -> Sequence[ToolCallRequest]:
        """The calls."""
        ...


@runtime_checkable
class TokenUsageCarrier(Protocol):
    """A message that may have a usage record.

    >>> entry = ModelOutputEntry.of_message(message)
    >>> entry.usage.prompt_tokens if isinstance(entry, TokenUsageCarrier) else None
    231
    """

    @property
    def usage(self) -> TokenUsage | None:
        """The counts, where they are known."""
        ...


@runtime_checkable
class ModelOutputMessage(ContextMessage, ToolCallCarrier, Protocol):
    """Output of a model.

    >>> isinstance(ModelOutputEntry.of_message(message), ModelOutputMessage)
    True
    """

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
    """Results of the calls of an answer.

    >>> entry = ToolResultsEntry.of_message(Message.tool_result("call_1", "17:42"))
    >>> shown = ShownResults(entry, LevelOfDetail.LIVE)
    >>> isinstance(shown, ToolResultsMessage), shown.results[0].result
    (True, (Section(key='', value='17:42'),))
    """

    @property
    def results(self) -> Sequence[ToolCallResult]:
        """One for each call, at the level of detail that was chosen."""
        ...

    @property
    def execute_error(self) -> str | None:
        """Why running them failed as a whole."""
        ...
