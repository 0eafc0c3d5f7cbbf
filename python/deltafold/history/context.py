"""Context: the messages that a model is shown, independent of its provider.

In: a history at a level of detail.  Out: context messages, which protocols tell apart, and
`Message`s for the renderers.

Laws: no provider is named here. A consumer tests `isinstance(message, ModelOutputMessage)` and the
like. Sections become Markdown with headings.
Source: the conversation history blueprint, "ContextMessage interfaces" and "mix-ins".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar, runtime_checkable
from uuid import UUID, uuid5

from deltafold.history.entries import (
    UNWRITTEN,
    ContextAttachment,
    ContextMessageRole,
    FrozenMapping,
    ModelInputEntry,
    ModelInvocationDescriptor,
    TokenUsage,
    ToolCallRequest,
    ToolCallResult,
    ToolExecutionStatus,
    ToolResultsEntry,
    checked_metadata,
)
from deltafold.history.sections import LevelOfDetail, Sections, to_plain_text
from deltafold.messages import Message, MessagePart, Role, TextPart, ToolCallPart, ToolResultPart


@runtime_checkable
class ContextMessage(Protocol):
    """Members of all context messages."""

    @property
    def role(self) -> ContextMessageRole:
        """Who speaks."""
        ...

    @property
    def timestamp(self) -> datetime:
        """When it was written."""
        ...

    @property
    def metadata(self) -> Mapping[str, object]:
        """Small facts beside it, keys in snake_case."""
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
    def invocation(self) -> ModelInvocationDescriptor:
        """Who answered."""
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


@dataclass(frozen=True, slots=True)
class SystemInstructionMessage:
    """The current system instruction."""

    instruction: str
    timestamp: datetime = UNWRITTEN
    metadata: Mapping[str, object] = field(default_factory=FrozenMapping)

    def __post_init__(self) -> None:
        """Check and freeze the metadata."""
        object.__setattr__(self, "metadata", checked_metadata(self.metadata))

    @property
    def role(self) -> ContextMessageRole:
        """The system."""
        return ContextMessageRole.SYSTEM


EntryT = TypeVar("EntryT", ModelInputEntry, ToolResultsEntry)


@dataclass(frozen=True, slots=True)
class _Shown(Generic[EntryT]):
    """An entry at a level of detail."""

    entry: EntryT
    detail: LevelOfDetail

    @property
    def role(self) -> ContextMessageRole:
        """Author of the entry."""
        return self.entry.role

    @property
    def timestamp(self) -> datetime:
        """Time at which the entry was appended."""
        return self.entry.timestamp

    @property
    def metadata(self) -> Mapping[str, object]:
        """Metadata of the entry."""
        return self.entry.metadata


@dataclass(frozen=True, slots=True)
class ShownInput(_Shown[ModelInputEntry]):
    """An input entry at a level of detail."""

    @property
    def content_sections(self) -> Sections:
        """The level's sections."""
        return self.entry.content_sections.get_sections(self.detail)

    @property
    def attachments(self) -> Sequence[ContextAttachment]:
        """Images and files, at every level."""
        return self.entry.attachments


@dataclass(frozen=True, slots=True)
class ShownResults(_Shown[ToolResultsEntry]):
    """A results entry at a level of detail."""

    @property
    def results(self) -> Sequence[ToolCallResult]:
        """The level's results."""
        return tuple(
            ToolCallResult(
                result.tool_name,
                result.tool_call_id,
                result.status,
                result.result.get_sections(self.detail),
                result.elapsed,
            )
            for result in self.entry.results
        )

    @property
    def execute_error(self) -> str | None:
        """Why running them failed as a whole."""
        return self.entry.execute_error


# Ids of messages that are made of context derive from this, their time and place, so that the same
# context gives the same messages.
_NAMESPACE = UUID("6f2c3c1e-5f0e-4a53-9a57-0f6d6e1b7c11")


def to_messages(context: Iterable[ContextMessage]) -> list[Message]:
    """Convert a context to messages.

    Sections become one text with "# heading" lines. An answer that kept its message becomes that
    message, with its reasoning and provider state. A result that did not succeed states its status
    and duration. An `execute_error` answers every call without a result.

    >>> messages = to_messages(state.render_live_context())
    """
    messages: list[Message] = []
    open_calls: Sequence[ToolCallRequest] = ()
    for place, said in enumerate(context):
        made = _message(said, open_calls)
        if isinstance(said, ModelOutputMessage):
            open_calls = said.tool_calls
        if made is None:
            continue
        if made.role is not Role.ASSISTANT:
            made.id = uuid5(_NAMESPACE, f"{said.timestamp.isoformat()} {place} {said.role}")
            made.timestamp = said.timestamp
        messages.append(made)
    return messages


def _message(said: ContextMessage, open_calls: Sequence[ToolCallRequest]) -> Message | None:
    match said:
        case SystemMessage():
            return Message.system(said.instruction)
        case ModelInputMessage():
            parts: list[MessagePart] = []
            if text := to_plain_text(said.content_sections):
                parts.append(TextPart(text=text))
            parts += [attachment.part for attachment in said.attachments]
            return Message(role=Role.USER, parts=parts)
        case ModelOutputMessage():
            return said.message or Message(role=Role.ASSISTANT, parts=_said_parts(said))
        case ToolResultsMessage():
            results = [_result(result) for result in said.results]
            answered = {result.tool_call_id for result in results}
            if said.execute_error is not None:
                results += [
                    ToolResultPart(
                        tool_call_id=call.tool_call_id,
                        is_error=True,
                        status=str(ToolExecutionStatus.FAILED),
                        content=said.execute_error,
                    )
                    for call in open_calls
                    if call.tool_call_id not in answered
                ]
            return Message(role=Role.TOOL, parts=list(results)) if results else None
        case _:
            return None


def _said_parts(said: ModelOutputMessage) -> list[MessagePart]:
    parts: list[MessagePart] = [TextPart(text=text) for text in said.contents if text]
    parts += [
        ToolCallPart(
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            raw_args_text=call.raw_arguments,
        )
        for call in said.tool_calls
    ]
    return parts


def _result(result: ToolCallResult) -> ToolResultPart:
    text = to_plain_text(result.result)
    if result.status is not ToolExecutionStatus.SUCCESS and not text:
        text = f"The call was {result.status}{_after(result.elapsed)}."
    return ToolResultPart(
        tool_call_id=result.tool_call_id,
        is_error=result.status is not ToolExecutionStatus.SUCCESS,
        status=str(result.status),
        content=text,
    )


def _after(elapsed: timedelta | None) -> str:
    return "" if elapsed is None else f" after {elapsed.total_seconds():.3g} s"
