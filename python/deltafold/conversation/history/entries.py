"""Entries: one immutable record for each event of a conversation.

In: inputs, outputs, tool results, and changes of the state around them.  Out: entries, which a log
appends and never changes.

Laws: entries and their contents are frozen, and every entry survives JSON (`wire.py` reads it) and
`dataclasses.replace`. Members that the message of an entry determines are not written a second
time. Only a `ContextualHistoryEntry` can be shown to a model. Metadata is small.
Source: docs/blueprint.md#history-entries.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, cast
from uuid import UUID, uuid4

from pydantic import ConfigDict

from deltafold.contract.foreign_text import well_formed
from deltafold.contract.usage import Usage
from deltafold.conversation.history.fields import (
    WIRE,
    JsonMapping,
    JsonValue,
    KeptMessage,
    KeptSections,
    adapter_of,
)
from deltafold.conversation.history.frozen import (
    KEPT_MESSAGE,
    FrozenMapping,
    checked_metadata,
    frozen_json,
    kept_message,
)
from deltafold.conversation.history.kinds import ContextMessageRole, HistoryEntryKind
from deltafold.conversation.history.sections import LevelOfDetailSections, check_sections
from deltafold.conversation.history.tool_calls import (
    ContextAttachment,
    HistoryToolCallResult,
    ToolCallRequest,
    attachments_of,
    result_of,
)
from deltafold.message.fallbacks import served_calls
from deltafold.message.messages import Message, Role, TextPart, ToolResultPart
from deltafold.models.vendors import canonical_specification


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

    __pydantic_config__: ClassVar[ConfigDict] = WIRE
    kind: ClassVar[HistoryEntryKind]
    message_role: ClassVar[Role | None] = None

    id: UUID = field(default_factory=uuid4)
    run_id: str | None = None
    timestamp: datetime = field(default_factory=_now)
    metadata: JsonMapping = field(default_factory=FrozenMapping)

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

    def to_dict(self) -> dict[str, object]:
        """Return the wire form, an object of JSON with camelCase names.

        It is an item of the `entries` of `ConversationLog.to_dict`.

        >>> ResetEntry().to_dict()["kind"]
        'reset'
        """
        given = self._fields_of_message()
        wire: dict[str, object] = adapter_of(type(self)).dump_python(
            self,
            mode="json",
            by_alias=True,
            exclude_none=True,
            exclude={name for name, value in given.items() if getattr(self, name) == value},
        )
        for name in ("metadata", "approvals"):
            if not wire.get(name, True):
                del wire[name]
        return {"kind": self.kind.value, **wire}

    def _fields_of_message(self) -> Mapping[str, object]:
        """Return the fields that the message of the entry determines."""
        return {}


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

    content_sections: KeptSections
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
            "attachments": attachments_of(message.parts),
        }

    def _fields_of_message(self) -> Mapping[str, object]:
        message = kept_message(self)
        return {} if message is None else self.fields_of(message)

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
class ModelInvocationDescriptor:
    """Provider, specification and model of a request.

    >>> ModelInvocationDescriptor("openai", "v1", "gpt-5.2").specification
    'openai-chat'

    Attributes:
        provider_id: a name of `vendors.py`.
        specification: a dialect, optionally with a plus and a markup; "v1", "responses",
            "messages", "json" and "xml" are accepted as other names.
        model: the provider's name of the model.
    """

    __pydantic_config__: ClassVar[ConfigDict] = WIRE

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
        reasons = message.not_runnable
        return {
            "contents": tuple(part.text for part in message.parts if isinstance(part, TextPart)),
            "tool_calls": tuple(
                ToolCallRequest.of_part(call, reasons.get(call.tool_call_id))
                for call in served_calls(message)
            ),
        }

    def _fields_of_message(self) -> Mapping[str, object]:
        message = kept_message(self)
        return {} if message is None else self.fields_of(message)

    @property
    def usage(self) -> TokenUsage | None:
        """Usage of the answer, if it is known."""
        message = kept_message(self)
        used = None if message is None else message.meta.usage
        return None if used is None else TokenUsage.of_usage(used)


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
        approvals: the decisions about the calls that needed one, which become `Meta.approvals` of
            the message: the call, whether it was approved, by whom and when.
        message: the message of which the entry was made, None if it was made of results.
    """

    kind: ClassVar[HistoryEntryKind] = HistoryEntryKind.TOOL_RESULT
    message_role: ClassVar[Role | None] = Role.TOOL

    results: Sequence[HistoryToolCallResult] = ()
    execute_error: str | None = None
    approvals: Sequence[JsonMapping] = ()
    message: KeptMessage | None = KEPT_MESSAGE

    @property
    def role(self) -> ContextMessageRole:
        """Role of the speaker."""
        return ContextMessageRole.TOOL_RESULT

    def __post_init__(self) -> None:
        """Freeze the contents."""
        super().__post_init__()
        object.__setattr__(self, "results", tuple(self.results))
        approvals = tuple(frozen_json(one, "approvals") for one in self.approvals)
        object.__setattr__(self, "approvals", approvals)
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
                result_of(part, tool_names.get(part.tool_call_id, "")) for part in results
            )
        }

    def to_dict(self) -> dict[str, object]:
        """Return the wire form; the names of the tools replace results of the message."""
        wire = super().to_dict()
        names = {} if "results" in wire else self._tool_names()
        return {**wire, **({"toolNames": names} if names else {})}

    def _fields_of_message(self) -> Mapping[str, object]:
        message = kept_message(self)
        return {} if message is None else self.fields_of(message, self._tool_names())

    def _tool_names(self) -> dict[str, str]:
        return {one.tool_call_id: one.tool_name for one in self.results if one.tool_name}


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
    state: JsonValue = None

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

    def _fields_of_message(self) -> Mapping[str, object]:
        message = kept_message(self)
        return {} if message is None else self.fields_of(message)


@dataclass(frozen=True, kw_only=True)
class CompactionEntry(ContextualHistoryEntry):
    """A summary that models are shown instead of earlier entries.

    >>> entries = [ModelInputEntry.of_message(Message.user("Hello")) for _ in range(2)]
    >>> summary = CompactionEntry(
    ...     summary="Greetings.", covers=[entry.id for entry in entries]
    ... )
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

    data: JsonMapping

    def __post_init__(self) -> None:
        """Freeze the record."""
        super().__post_init__()
        object.__setattr__(self, "data", frozen_json(self.data, "data"))
