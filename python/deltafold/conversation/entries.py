"""Entries: one immutable record for each event of a conversation.

In: inputs, outputs, tool results, and changes of the state around them.  Out: entries, which a log
appends and never changes.

Laws: entries and their contents are frozen, and every entry survives JSON and
`dataclasses.replace`. Only a `ContextualHistoryEntry` can be shown to a model. A call always keeps
its raw arguments. Metadata is small.
Source: the conversation history blueprint, "HistoryEntry types" and "auxiliary types".
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Final, cast
from uuid import UUID, uuid4

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, PlainValidator
from pydantic.alias_generators import to_camel

from deltafold.conversation.frozen import (
    KEPT_MESSAGE,
    KEPT_PART,
    FrozenMapping,
    checked_metadata,
    frozen_json,
    kept_message,
    thawed_value,
)
from deltafold.conversation.kinds import (
    ContextMessageRole,
    HistoryEntryKind,
    ToolExecutionStatus,
)
from deltafold.conversation.sections import (
    LevelOfDetailSections,
    Section,
    check_sections,
    sections_of,
)
from deltafold.dialects.replay import result_items, result_text
from deltafold.foreign_text import well_formed
from deltafold.messages import (
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.models.vendors import canonical_specification
from deltafold.usage import Usage

_WIRE: Final = ConfigDict(
    alias_generator=to_camel,
    validate_by_name=True,
    validate_by_alias=True,
    extra="forbid",
    ser_json_timedelta="float",
)

_Json = Annotated[Mapping[str, object], PlainSerializer(thawed_value)]
_AnyJson = Annotated[object, PlainSerializer(thawed_value)]


def _message_of(given: object) -> object:
    return Message.from_dict(cast("dict[str, object]", given)) if isinstance(given, dict) else given


KeptMessage = Annotated[
    Message,
    BeforeValidator(_message_of),
    PlainSerializer(lambda message: message.to_dict(), return_type=dict[str, object]),
]
"""Type of the field of an entry that keeps a message."""


def _sections_of(given: object) -> object:
    if not isinstance(given, dict):
        return given
    return LevelOfDetailSections.from_dict(cast("dict[str, list[list[str]]]", given))


_Sections = Annotated[
    LevelOfDetailSections,
    PlainValidator(_sections_of),
    PlainSerializer(lambda sections: sections.to_dict(), return_type=dict[str, object]),
]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class HistoryEntry(ABC):
    """An event of the conversation.

    A log sets `run_id` and `timestamp` when it appends the entry, and keeps `id` unless another
    entry of the log has it.

    >>> entry = ResetEntry(metadata={"asked_by": "user"})
    >>> isinstance(entry, HistoryEntry), entry.kind.value, entry.metadata["asked_by"]
    (True, 'reset', 'user')

    Attributes:
        id: id of the entry, which never changes.
        run_id: run of the entry; None before the first run.
        timestamp: aware instant at which the entry was appended; before that, of its creation.
        metadata: small facts; keys in snake_case, at most 2 KB as JSON.

    Raises:
        ValueError: the metadata is wrong, the timestamp has no time zone, or the message has the
            role of another kind of entry.
        TypeError: the class is `HistoryEntry` itself, which has no kind.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _WIRE
    kind: ClassVar[HistoryEntryKind]
    message_role: ClassVar[Role | None] = None

    id: UUID = field(default_factory=uuid4)
    run_id: str | None = None
    timestamp: datetime = field(default_factory=_now)
    metadata: _Json = field(default_factory=FrozenMapping)

    def __post_init__(self) -> None:
        """Check and freeze the metadata."""
        ids = cast("tuple[object, object]", (self.id, self.run_id))
        if not isinstance(ids[0], UUID) or not isinstance(ids[1], str | None):
            raise TypeError("id must be a UUID, and run_id a string or None")
        if not hasattr(type(self), "kind"):
            raise TypeError(f"{type(self).__name__} is abstract; use the class of an event")
        message = kept_message(self)
        if message is not None and message.role is not self.message_role:
            raise ValueError(
                f"message: the message of a {self.kind} must have the role {self.message_role}, "
                f"not {message.role}"
            )
        if self.timestamp.tzinfo is None:
            raise ValueError("timestamp must have a time zone")
        object.__setattr__(self, "timestamp", self.timestamp.astimezone(UTC))
        object.__setattr__(self, "metadata", checked_metadata(self.metadata))


@dataclass(frozen=True, kw_only=True)
class ContextualHistoryEntry(HistoryEntry, ABC):
    """Something that a model may be shown.

    >>> [
    ...     isinstance(entry, ContextualHistoryEntry)
    ...     for entry in (ResetEntry(), ModelOutputEntry())
    ... ]
    [False, True]
    """

    @property
    @abstractmethod
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""


@dataclass(frozen=True)
class ContextAttachment:
    """An image or a file of an input or a result.

    >>> attachment = ContextAttachment(
    ...     ImagePart(mime_type="image/png", url="https://example.com/tide.png"), "tide.png"
    ... )
    >>> attachment.name, attachment.part.url
    ('tide.png', 'https://example.com/tide.png')

    Attributes:
        part: the part for a message.
        name: name that the caller gave.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _WIRE

    part: Annotated[ImagePart | FileRefPart, Field(discriminator="kind")] = KEPT_PART
    name: str = ""


def _attachments(parts: Sequence[MessagePart]) -> tuple[ContextAttachment, ...]:
    media = (part for part in parts if isinstance(part, ImagePart | FileRefPart))
    return tuple(ContextAttachment(part) for part in media)


@dataclass(frozen=True, kw_only=True)
class ModelInputEntry(ContextualHistoryEntry):
    """Input to the model.

    >>> entry = ModelInputEntry.of_message(Message.user("When is high tide?"))
    >>> entry.content_sections.get_sections("live")
    (Section(key='', value='When is high tide?'),)

    Attributes:
        content_sections: the text, in three levels of detail.
        attachments: images and files.
        message: the message of which the entry was made, None if it was made of sections. Models
            are shown the sections if they differ from it.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.MODEL_INPUT
    message_role: ClassVar[Role | None] = Role.USER

    content_sections: _Sections
    attachments: Sequence[ContextAttachment] = ()
    message: KeptMessage | None = KEPT_MESSAGE

    @classmethod
    def of_message(
        cls, message: Message, metadata: Mapping[str, object] | None = None
    ) -> "ModelInputEntry":
        """Make the entry of a message of the user."""
        return cls(**cls.fields_of(message), message=message, metadata=metadata or {})

    @classmethod
    def fields_of(cls, message: Message) -> dict[str, Any]:
        """Return the fields that a message determines."""
        return {
            "content_sections": LevelOfDetailSections.with_gist(message.text),
            "attachments": _attachments(message.parts),
        }

    @property
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""
        return ContextMessageRole.MODEL_INPUT

    def __post_init__(self) -> None:
        """Freeze the contents."""
        super().__post_init__()
        check_sections(self.content_sections, "content_sections")
        object.__setattr__(self, "attachments", tuple(self.attachments))


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A tool call that a model requested.

    >>> call = ToolCallRequest.of_part(message.tool_calls[0])
    >>> call.tool_name, call.arguments["port"]
    ('get_tides', 'Brest')

    Attributes:
        raw_arguments: the original text of the arguments, always kept.
        arguments: the parsed arguments, None if parsing failed.
        parse_error: reason of the failure.
        parse_warning: deviations that parsing accepted.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _WIRE

    tool_name: str
    tool_call_id: str
    raw_arguments: str
    arguments: _Json | None = None
    parse_error: str | None = None
    parse_warning: str | None = None

    def __post_init__(self) -> None:
        """Freeze the arguments."""
        if self.arguments is not None:
            object.__setattr__(self, "arguments", frozen_json(self.arguments, "arguments"))

    @classmethod
    def of_part(cls, call: ToolCallPart) -> "ToolCallRequest":
        """Make the request from a part of a message; an incomplete call has a parse error."""
        error = "the call was cut off" if call.incomplete else call.parse_error
        return cls(
            call.tool_name,
            call.tool_call_id,
            call.raw_args_text,
            call.arguments,
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

    __pydantic_config__: ClassVar[ConfigDict] = _WIRE

    provider_id: str
    specification: str
    model: str

    def __post_init__(self) -> None:
        """Bring the specification to our name."""
        object.__setattr__(self, "specification", canonical_specification(self.specification))


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The three counts of the blueprint, as a view of a `Usage`; None is not known.

    >>> TokenUsage.of_usage(message.meta.usage)
    TokenUsage(prompt_tokens=231, completion_tokens=118, cached_prompt_tokens=128)
    """

    prompt_tokens: int | None
    completion_tokens: int | None
    cached_prompt_tokens: int | None = None

    @classmethod
    def of_usage(cls, usage: Usage) -> "TokenUsage":
        """Look at a usage record."""
        return cls(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)


@dataclass(frozen=True, kw_only=True)
class ModelOutputEntry(ContextualHistoryEntry):
    """Output of a model.

    >>> entry = ModelOutputEntry.of_message(message)
    >>> [call.tool_call_id for call in entry.tool_calls], entry.usage.completion_tokens
    (['call_brest', 'call_stmalo'], 118)

    Attributes:
        invocation: provider, specification and model of the request, None if they are unknown.
        contents: the text, in its original pieces.
        tool_calls: the requested calls.
        message: the whole message, with reasoning and the state that its provider needs; None if
            the entry was made of texts and calls. Models are shown these if they differ from it.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.MODEL_OUTPUT
    message_role: ClassVar[Role | None] = Role.ASSISTANT

    invocation: ModelInvocationDescriptor | None = None
    contents: Sequence[str] = ()
    tool_calls: Sequence[ToolCallRequest] = ()
    message: KeptMessage | None = KEPT_MESSAGE

    @property
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""
        return ContextMessageRole.MODEL_OUTPUT

    def __post_init__(self) -> None:
        """Freeze the contents."""
        super().__post_init__()
        contents = cast("Sequence[object]", self.contents)
        if isinstance(contents, str) or not all(isinstance(one, str) for one in contents):
            raise TypeError("contents must be a list of strings")
        object.__setattr__(self, "contents", tuple(map(well_formed, self.contents)))
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))

    @classmethod
    def of_message(
        cls,
        message: Message,
        invocation: ModelInvocationDescriptor | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> "ModelOutputEntry":
        """Make the entry of a folded message."""
        fields = cls.fields_of(message)
        return cls(**fields, invocation=invocation, message=message, metadata=metadata or {})

    @classmethod
    def fields_of(cls, message: Message) -> dict[str, Any]:
        """Return the fields that a message determines."""
        return {
            "contents": tuple(part.text for part in message.parts if isinstance(part, TextPart)),
            "tool_calls": tuple(ToolCallRequest.of_part(call) for call in message.tool_calls),
        }

    @property
    def usage(self) -> TokenUsage | None:
        """Usage of the answer, if it is known."""
        message = kept_message(self)
        used = None if message is None else message.meta.usage
        return None if used is None else TokenUsage.of_usage(used)


@dataclass(frozen=True, slots=True)
class HistoryToolCallResult:
    """Result of a call, in three levels of detail.

    >>> result = HistoryToolCallResult(
    ...     "tide",
    ...     "call_1",
    ...     ToolExecutionStatus.SUCCESS,
    ...     LevelOfDetailSections.of_text("17:42"),
    ... )
    >>> result.result.get_sections("gist")[0].value
    '17:42'

    Attributes:
        result: the text of the result.
        elapsed: duration of the call.
        attachments: images and files of the result.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _WIRE

    tool_name: str
    tool_call_id: str
    status: ToolExecutionStatus
    result: _Sections
    elapsed: timedelta | None = None
    attachments: Sequence[ContextAttachment] = ()

    def __post_init__(self) -> None:
        """Freeze the contents."""
        check_sections(self.result, "result")
        object.__setattr__(self, "attachments", tuple(self.attachments))


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """Result of a call at one level of detail.

    >>> result = ToolCallResult("tide", "call_1", ToolExecutionStatus.SUCCESS, [("", "17:42")])
    >>> result.result[0].value
    '17:42'

    Attributes:
        result: pairs of a heading and a text.
        elapsed: duration of the call.
        attachments: images and files of the result.
    """

    tool_name: str
    tool_call_id: str
    status: ToolExecutionStatus
    result: Sequence[Section]
    elapsed: timedelta | None = None
    attachments: Sequence[ContextAttachment] = ()

    def __post_init__(self) -> None:
        """Freeze the contents."""
        object.__setattr__(self, "result", sections_of(self.result))
        object.__setattr__(self, "attachments", tuple(self.attachments))


@dataclass(frozen=True, kw_only=True)
class ToolResultsEntry(ContextualHistoryEntry):
    """Results of the calls of one answer, in the order of the calls.

    >>> message = Message.tool_result("call_1", "17:42")
    >>> entry = ToolResultsEntry.of_message(message, {"call_1": "tide"})
    >>> entry.results[0].tool_name, entry.results[0].status.value
    ('tide', 'success')

    Attributes:
        results: one result per call; with an `execute_error`, some calls may have none.
        execute_error: reason why the execution failed as a whole.
        message: the message of which the entry was made, None if it was made of results.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.TOOL_RESULT
    message_role: ClassVar[Role | None] = Role.TOOL

    results: Sequence[HistoryToolCallResult] = ()
    execute_error: str | None = None
    message: KeptMessage | None = KEPT_MESSAGE

    @property
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""
        return ContextMessageRole.TOOL_RESULT

    def __post_init__(self) -> None:
        """Freeze the contents."""
        super().__post_init__()
        object.__setattr__(self, "results", tuple(self.results))
        if self.execute_error is not None:
            object.__setattr__(self, "execute_error", well_formed(self.execute_error))

    @classmethod
    def of_message(
        cls,
        message: Message,
        tool_names: Mapping[str, str] | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> "ToolResultsEntry":
        """Make the entry of a tool message.

        Args:
            message: the message.
            tool_names: names of the tools by the ids of the calls.
            metadata: metadata of the entry.
        """
        fields = cls.fields_of(message, tool_names or {})
        return cls(**fields, message=message, metadata=metadata or {})

    @classmethod
    def fields_of(cls, message: Message, tool_names: Mapping[str, str]) -> dict[str, Any]:
        """Return the fields that a message and the names of its tools determine."""
        results = [part for part in message.parts if isinstance(part, ToolResultPart)]
        return {
            "results": tuple(
                _result_of(part, tool_names.get(part.tool_call_id, "")) for part in results
            )
        }


def status_of(part: ToolResultPart) -> ToolExecutionStatus:
    """Return the final status that a part of a message states."""
    if part.status is not None and part.status in set(ToolExecutionStatus):
        return ToolExecutionStatus(part.status)
    return ToolExecutionStatus.FAILED if part.is_error else ToolExecutionStatus.SUCCESS


def _result_of(part: ToolResultPart, tool_name: str) -> HistoryToolCallResult:
    return HistoryToolCallResult(
        tool_name,
        part.tool_call_id,
        status_of(part),
        LevelOfDetailSections.with_gist(result_text(part)),
        attachments=_attachments(result_items(part)),
    )


@dataclass(frozen=True, kw_only=True)
class WidgetEntry(HistoryEntry):
    """A change of a widget, which no model is shown.

    >>> entry = WidgetEntry(
    ...     widget="map", change="zoom: 3 to 4", source="host", state={"zoom": 4}
    ... )
    >>> entry.state["zoom"]
    4

    Attributes:
        widget: name of the widget.
        change: description of the change, in one line.
        source: origin of the change: a tool call, or the host.
        state: state of the widget after the change, a value of JSON; None if the widget cannot be
            restored.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.WIDGET

    widget: str
    change: str
    source: str
    state: _AnyJson = None

    def __post_init__(self) -> None:
        """Freeze the state."""
        super().__post_init__()
        object.__setattr__(self, "state", frozen_json(self.state, "state"))


@dataclass(frozen=True, kw_only=True)
class InstructionEntry(HistoryEntry):
    """A change of the system instruction, or a system message within the conversation.

    >>> InstructionEntry.of_message(Message.system("Be brief.")).instruction
    'Be brief.'

    Attributes:
        instruction: the text.
        message: the message of which the entry was made, None if it was made of a text.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.INSTRUCTION
    message_role: ClassVar[Role | None] = Role.SYSTEM

    instruction: str
    message: KeptMessage | None = KEPT_MESSAGE

    def __post_init__(self) -> None:
        """Replace what Unicode does not allow in the text."""
        super().__post_init__()
        object.__setattr__(self, "instruction", well_formed(self.instruction))

    @classmethod
    def of_message(
        cls, message: Message, metadata: Mapping[str, object] | None = None
    ) -> "InstructionEntry":
        """Make the entry of a system message."""
        return cls(**cls.fields_of(message), message=message, metadata=metadata or {})

    @classmethod
    def fields_of(cls, message: Message) -> dict[str, Any]:
        """Return the fields that a message determines."""
        return {"instruction": message.text}


@dataclass(frozen=True, kw_only=True)
class CompactionEntry(ContextualHistoryEntry):
    """A summary that models are shown instead of earlier entries.

    >>> entries = [ModelInputEntry.of_message(Message.user("Hello")) for _ in range(2)]
    >>> summary = CompactionEntry(summary="Greetings.", covers=[entry.id for entry in entries])
    >>> len(summary.covers)
    2

    Attributes:
        summary: the text.
        covers: ids of the entries that the summary replaces.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.COMPACTION

    summary: str
    covers: Sequence[UUID]

    @property
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""
        return ContextMessageRole.MODEL_INPUT

    def __post_init__(self) -> None:
        """Freeze the ids."""
        super().__post_init__()
        object.__setattr__(self, "summary", well_formed(self.summary))
        object.__setattr__(self, "covers", tuple(self.covers))


@dataclass(frozen=True, kw_only=True)
class ResetEntry(HistoryEntry):
    """The end of a conversation: models are not shown the entries before it.

    >>> log = ConversationLog()
    >>> log.append(ResetEntry()).kind.value
    'reset'
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.RESET


@dataclass(frozen=True, kw_only=True)
class StoredEntry(HistoryEntry):
    """A record of the caller, such as a mark of a storage layer, which no model is shown.

    >>> log = ConversationLog()
    >>> log.append(StoredEntry(data={"saved_as": "chat-7"})).data["saved_as"]
    'chat-7'

    Attributes:
        data: the record.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.STORED

    data: _Json

    def __post_init__(self) -> None:
        """Freeze the record."""
        super().__post_init__()
        object.__setattr__(self, "data", frozen_json(self.data, "data"))
