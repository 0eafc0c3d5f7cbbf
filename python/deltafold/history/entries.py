"""Entries: one immutable record for each event of a conversation.

In: input, output and tool results.  Out: entries, which `AgentState` appends and never changes.

Laws: entries and their contents are frozen. Only a `ContextualHistoryEntry` can be shown to a
model. A call always keeps its raw arguments. Metadata is small.
Source: the conversation history blueprint, "HistoryEntry types" and "auxiliary types".
"""

import copy
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Final, Self, cast

from deltafold.history.sections import LevelOfDetailSections, Section, sections_of
from deltafold.messages import FileRefPart, ImagePart, Message, TextPart, ToolCallPart
from deltafold.models.vendors import canonical_specification
from deltafold.usage import Usage

MAX_METADATA_BYTES: Final = 2048
"""Limit of the metadata of an entry, as JSON; larger data belongs into an attachment."""

_SNAKE_CASE: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class FrozenMapping(Mapping[str, object]):
    """Immutable mapping with immutable contents."""

    __slots__ = ("_members",)

    def __init__(self, members: Mapping[str, object] | None = None) -> None:
        self._members = {name: _frozen(value) for name, value in (members or {}).items()}

    def __getitem__(self, name: str) -> object:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return repr(self._members)


def _frozen(value: object) -> object:
    if isinstance(value, Mapping):
        return FrozenMapping(cast("Mapping[str, object]", value))
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in cast("Sequence[object]", value))
    return value


def thawed(mapping: Mapping[str, object]) -> dict[str, object]:
    """Return a copy that may be changed, of JSON's own types."""
    return cast("dict[str, object]", _thawed(mapping))


def _thawed(value: object) -> object:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        return {name: _thawed(member) for name, member in members.items()}
    if isinstance(value, list | tuple):
        return [_thawed(item) for item in cast("Sequence[object]", value)]
    return value


UNWRITTEN: Final = datetime.min.replace(tzinfo=UTC)
"""The timestamp of an entry that has not been appended."""


class HistoryEntryKind(StrEnum):
    """Kind of an entry."""

    MODEL_INPUT = "model_input"
    MODEL_OUTPUT = "model_output"
    TOOL_RESULT = "tool_result"
    WIDGET = "widget"


class ContextMessageRole(StrEnum):
    """Role of a speaker, independent of the provider."""

    SYSTEM = "system"
    MODEL_INPUT = "model_input"
    MODEL_OUTPUT = "model_output"
    TOOL_RESULT = "tool_result"


class ToolExecutionStatus(StrEnum):
    """Final status of a tool call."""

    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    REJECTED = "rejected"


def checked_metadata(metadata: Mapping[str, object]) -> FrozenMapping:
    """Return an immutable copy of metadata.

    Raises:
        ValueError: a key is not in snake case, a value is not JSON, or the metadata is too large;
            the error names the key.
    """
    metadata = thawed(metadata)
    sizes: dict[str, int] = {}
    for key, value in metadata.items():
        if _SNAKE_CASE.fullmatch(str(key)) is None:
            raise ValueError(f"metadata[{key!r}]: the key must be in snake_case")
        try:
            sizes[key] = len(json.dumps({key: value}, ensure_ascii=False).encode())
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"metadata[{key!r}] cannot be written as JSON: {error}") from error
    if sum(sizes.values()) > MAX_METADATA_BYTES:
        largest = max(sizes, key=lambda key: sizes[key])
        raise ValueError(
            f"metadata has {sum(sizes.values())} bytes, most of them in {largest!r}; the maximum "
            f"is {MAX_METADATA_BYTES}; put it into an attachment"
        )
    return FrozenMapping(metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry(ABC):
    """An event of the conversation.

    Attributes:
        timestamp: time of appending; `AgentState` sets it.
        metadata: small facts; keys in snake_case, at most 2 KB as JSON.
    """

    kind: ClassVar[HistoryEntryKind]

    timestamp: datetime = UNWRITTEN
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        """Check and freeze the metadata."""
        object.__setattr__(self, "metadata", checked_metadata(self.metadata))

    def appended_at(self, timestamp: datetime) -> Self:
        """Return the same with the instant at which it was appended."""
        stamped = copy.copy(self)
        object.__setattr__(stamped, "timestamp", timestamp)
        return stamped


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualHistoryEntry(HistoryEntry, ABC):
    """Something that a model may be shown."""

    @property
    @abstractmethod
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""


@dataclass(frozen=True, slots=True)
class ContextAttachment:
    """An image or a file of an input.

    Attributes:
        part: the part for a message.
        name: name that the caller gave.
    """

    part: ImagePart | FileRefPart
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInputEntry(ContextualHistoryEntry):
    """Input to the model.

    Attributes:
        content_sections: the text, in three levels of detail.
        attachments: images and files.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.MODEL_INPUT

    content_sections: LevelOfDetailSections
    attachments: Sequence[ContextAttachment] = ()

    @property
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""
        return ContextMessageRole.MODEL_INPUT

    def __post_init__(self) -> None:
        """Freeze the contents."""
        HistoryEntry.__post_init__(self)
        object.__setattr__(self, "attachments", tuple(self.attachments))


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A tool call that a model requested.

    Attributes:
        raw_arguments: the original text of the arguments, always kept.
        arguments: the parsed arguments, None if parsing failed.
        parse_error: reason of the failure.
        parse_warning: deviations that parsing accepted.
    """

    tool_name: str
    tool_call_id: str
    raw_arguments: str
    arguments: Mapping[str, object] | None = None
    parse_error: str | None = None
    parse_warning: str | None = None

    @classmethod
    def of_part(cls, call: ToolCallPart) -> "ToolCallRequest":
        """Make the request from a part of a message; an incomplete call has a parse error."""
        error = "the call was cut off" if call.incomplete else call.parse_error
        return cls(
            call.tool_name,
            call.tool_call_id,
            call.raw_args_text,
            None if call.arguments is None else FrozenMapping(call.arguments),
            error,
            call.parse_warning,
        )


@dataclass(frozen=True, slots=True)
class ModelInvocationDescriptor:
    """Provider, specification and model of a request.

    >>> ModelInvocationDescriptor("openai", "v1", "gpt-4.1").specification
    'openai-chat'

    Attributes:
        provider_id: a name of `vendors.py`.
        specification: a dialect, optionally with a plus and a markup; "v1", "responses",
            "messages", "json" and "xml" are accepted as other names.
        model: the provider's name of the model.
    """

    provider_id: str
    specification: str
    model: str

    def __post_init__(self) -> None:
        """Bring the specification to our name."""
        object.__setattr__(self, "specification", canonical_specification(self.specification))


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The three counts of the blueprint, as a view of a `Usage`; None is not known."""

    prompt_tokens: int | None
    completion_tokens: int | None
    cached_prompt_tokens: int | None = None

    @classmethod
    def of_usage(cls, usage: Usage) -> "TokenUsage":
        """Look at a usage record."""
        return cls(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ModelOutputEntry(ContextualHistoryEntry):
    """Output of a model.

    Attributes:
        contents: the text, in its original pieces.
        tool_calls: the requested calls.
        invocation: provider, specification and model of the request.
        usage: usage of the answer, if it is known.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.MODEL_OUTPUT

    contents: Sequence[str]
    tool_calls: Sequence[ToolCallRequest]
    invocation: ModelInvocationDescriptor
    _message: Message | None

    @property
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""
        return ContextMessageRole.MODEL_OUTPUT

    def __init__(
        self,
        *,
        invocation: ModelInvocationDescriptor,
        contents: Sequence[str] = (),
        tool_calls: Sequence[ToolCallRequest] = (),
        message: Message | None = None,
        timestamp: datetime = UNWRITTEN,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        fields = {
            "invocation": invocation,
            "contents": tuple(contents),
            "tool_calls": tuple(tool_calls),
            "_message": None if message is None else _copied(message),
            "timestamp": timestamp,
            "metadata": checked_metadata(metadata or {}),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_message(
        cls,
        message: Message,
        invocation: ModelInvocationDescriptor,
        metadata: Mapping[str, object] | None = None,
    ) -> "ModelOutputEntry":
        """Make the entry of a folded message."""
        return cls(
            invocation=invocation,
            contents=[part.text for part in message.parts if isinstance(part, TextPart)],
            tool_calls=[ToolCallRequest.of_part(call) for call in message.tool_calls],
            message=message,
            metadata=metadata,
        )

    @property
    def message(self) -> Message | None:
        """A copy of the whole message, with reasoning and the state that its provider needs."""
        return None if self._message is None else _copied(self._message)

    @property
    def usage(self) -> TokenUsage | None:
        """Usage of the answer, if it is known."""
        used = None if self._message is None else self._message.meta.usage
        return None if used is None else TokenUsage.of_usage(used)


def _copied(message: Message) -> Message:
    """Copy the mutable members of a message; its parts are immutable."""
    update = {"parts": list(message.parts), "meta": message.meta.model_copy(deep=True)}
    return message.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class HistoryToolCallResult:
    """Result of a call, in three levels of detail.

    Attributes:
        elapsed: duration of the call.
    """

    tool_name: str
    tool_call_id: str
    status: ToolExecutionStatus
    result: LevelOfDetailSections
    elapsed: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """Result of a call at one level of detail.

    Attributes:
        result: pairs of a heading and a text.
        elapsed: duration of the call.
    """

    tool_name: str
    tool_call_id: str
    status: ToolExecutionStatus
    result: Sequence[Section]
    elapsed: timedelta | None = None

    def __post_init__(self) -> None:
        """Freeze the contents."""
        object.__setattr__(self, "result", sections_of(self.result))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultsEntry(ContextualHistoryEntry):
    """Results of the calls of one answer, in the order of the calls.

    Attributes:
        results: one result per call.
        execute_error: reason why the execution failed as a whole.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.TOOL_RESULT

    results: Sequence[HistoryToolCallResult] = ()
    execute_error: str | None = None

    @property
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""
        return ContextMessageRole.TOOL_RESULT

    def __post_init__(self) -> None:
        """Freeze the contents."""
        HistoryEntry.__post_init__(self)
        object.__setattr__(self, "results", tuple(self.results))


@dataclass(frozen=True, slots=True, kw_only=True)
class WidgetEntry(HistoryEntry):
    """A change of a widget, which no model is shown.

    Attributes:
        widget: name of the widget.
        change: description of the change, in one line.
        source: origin of the change: a tool call, or the host.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.WIDGET

    widget: str
    change: str
    source: str
