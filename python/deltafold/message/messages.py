"""Messages: role, parts and metadata.

In: flat Python fields, or the wire form; parts that a fold has assembled.  Out: pydantic models.

Laws: a part is `{kind, payload, providerState?}` with camelCase names in JSON, and has flat fields
in Python. Both forms are accepted everywhere, and JSON -> Message -> JSON changes nothing. The
order of parts is the order of the message. A role holds only its own kinds of part. Messages of a
fold skip validation, because they are valid by construction; costly members are computed when first
read.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self, cast
from uuid import UUID, uuid4

from pydantic import (
    AfterValidator,
    AwareDatetime,
    ConfigDict,
    Field,
    SerializationInfo,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

from deltafold._core import (
    LazyDict,
    Logprobs,
    folded_json,
    folded_text,
    folded_tool_calls,
    forbids_calls,
    message_of_text,
    set_lazy_field,
)
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import FinishReason
from deltafold.contract.log import LOGGER
from deltafold.contract.names import RequestProtocol
from deltafold.contract.usage import Usage
from deltafold.contract.wire_models import WireModel, blueprint, make_lazy
from deltafold.message.card import Card
from deltafold.message.cards import message_card
from deltafold.message.fallbacks import calls_before_fallback, served_calls
from deltafold.message.lines import lines_of
from deltafold.message.parts import (
    ContentPart,
    FileRefPart,
    ImagePart,
    MessagePart,
    ProviderPart,
    RunnableToolCall,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    joined_text,
    parse_errors_from_fold,
    part_from_wire,
    parts_from_fold,
)
from deltafold.message.shown import Shown

__all__ = [
    "ContentPart",
    "FileRefPart",
    "ImagePart",
    "Message",
    "MessagePart",
    "Meta",
    "ProviderPart",
    "Role",
    "TextPart",
    "ThinkingPart",
    "ToolCallPart",
    "ToolResultPart",
    "message_from_fold",
    "message_of_text",
    "part_from_wire",
    "parts_from_fold",
]


class Role(StrEnum):
    """Role of the speaker.

    >>> message.role == "assistant"
    True
    """

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


KINDS_OF_ROLE: Final = {
    Role.SYSTEM: ("text", "thinking"),
    Role.USER: ("text", "image", "file_ref"),
    Role.ASSISTANT: ("text", "thinking", "tool_call", "image", "file_ref", "provider"),
    Role.TOOL: ("tool_result",),
}
"""Kinds of part that a message of each role may hold."""


_OF_SDKS: Final = frozenset({"an SDK of OpenAI or Anthropic sends this"})
"""What the SDKs of OpenAI and Anthropic leave out of a model that they send, by its own word."""


class Meta(WireModel):
    """Metadata of a message. The model is open: other members are kept.

    `cost_usd` is in US dollars, and `cost_source` is its source. `cost_unpriced` names what was
    billed and is not in it, such as `web_search_call`; the cost is a lower bound then.
    `duration_ms` is in milliseconds.
    `timing` has seconds since the request was sent (`timeToFirstByte`, `timeToFirstDelta`,
    `timeToFirstText`) and `tokensPerSecond`. A message that was read from the call of a `Model` has
    these members; they are computed when one of them is first read.
    `response_id` and `model_id` are the provider's. `parse_errors` lists the tool calls whose
    arguments are not an object, as `{toolCallId, message}`. `warnings` lists decisions and repairs
    of the decoder, as `{code, message, offset?}`. `details` holds facts without a member, under the
    provider's names (`stop_sequence`, `stop_details` and `container` of Anthropic,
    `system_fingerprint` and `service_tier` of Chat, `additionalModelResponseFields` and `trace` of
    Bedrock Converse). `logprobs` are those of all tokens, reasoning included, if the decoder was
    asked for them.

    >>> message.meta.finish_reason, message.meta.cost_usd
    """

    model_config = ConfigDict(
        extra="allow",
        protected_namespaces=(),  # `model_id` is a name of the contract
    )

    usage: Usage | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    cost_unpriced: tuple[str, ...] = ()
    duration_ms: float | None = None
    timing: dict[str, float] | None = None
    response_id: str | None = None
    model_id: str | None = None
    finish_reason: FinishReason | None = None
    raw_finish_reason: str | None = None
    details: dict[str, object] | None = None
    is_api_error_message: bool = False
    parse_errors: list[dict[str, object]] = Field(default_factory=list)
    warnings: list[dict[str, object]] = Field(default_factory=list)
    logprobs: Logprobs | None = None
    trace: dict[str, object] | None = None
    approvals: list[dict[str, object]] = Field(default_factory=list)

    if not TYPE_CHECKING:  # a checker would take the methods as leave for any attribute
        __dict__ = LazyDict("Meta")

        def __setattr__(self, name: str, value: object) -> None:
            """Set a field, without making the others of lazy metadata."""
            if not set_lazy_field(self, name, value):
                super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            """Delete a field, after all fields of lazy metadata are made."""
            _ = self.__dict__
            super().__delattr__(name)

    @property
    def custom_id(self) -> str | None:
        """Id that the caller gave the request of a batch; it is among the `details`."""
        found = (self.details or {}).get("custom_id")
        return found if isinstance(found, str) else None

    @property
    def is_lower_bound(self) -> bool:
        """Whether something was billed that `cost_usd` leaves out."""
        return bool(self.cost_unpriced)

    def __eq__(self, other: object) -> bool:
        """Compare the values, whether they are computed yet or not."""
        return isinstance(other, Meta) and self._members() == other._members()

    __hash__ = None  # type: ignore[assignment]  # mutable

    @model_serializer(mode="plain")
    def _to_wire(self, info: SerializationInfo) -> dict[str, object]:
        wire = self._members()
        if self.logprobs is not None and info.mode == "json":
            wire["logprobs"] = self.logprobs.to_dict()
        return wire

    def _members(self) -> dict[str, object]:
        wire: dict[str, object] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value is not None and value is not False and value not in ([], ()):
                wire[to_camel(name)] = value
        wire.update(self.__pydantic_extra__ or {})
        return wire


def _to_milliseconds(instant: datetime) -> datetime:
    """Bring an instant to UTC and the wire's precision: writing and reading it changes nothing."""
    utc = instant.astimezone(UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


Timestamp = Annotated[AwareDatetime, AfterValidator(_to_milliseconds)]


def _now() -> datetime:
    return _to_milliseconds(datetime.now(UTC))


class Message(Shown, WireModel):
    """One message of a conversation.

    Raises pydantic's `ValidationError` (a ValueError) for a part that is not allowed in its role;
    the error names both.

    >>> question = Message.user("When is high tide?")
    >>> Message.from_json(question.to_json()).text
    'When is high tide?'
    """

    model_config = ConfigDict(extra="forbid")

    if not TYPE_CHECKING:  # a checker would take the method as leave for any attribute
        __dict__ = LazyDict("Message")

        def __delattr__(self, name: str) -> None:
            """Delete a field, after all fields of a lazy message are made."""
            _ = self.__dict__
            super().__delattr__(name)

        def model_dump(self, **options: object) -> dict[str, object]:
            """Return the wire form.

            Raises:
                TypeError: an SDK dumps the message to send it.
            """
            if options.get("exclude") is _OF_SDKS:
                raise TypeError(
                    "an SDK sends no deltafold.Message: add message.to_api(protocol), such as "
                    "messages += message.to_api('openai-chat') or "
                    "message.to_api('anthropic-messages')"
                )
            return super().model_dump(**options)

    # Whatever looks through the members of an object reads it as well, so that it raises nothing.
    __api_exclude__: ClassVar[frozenset[str]] = _OF_SDKS

    id: UUID = Field(default_factory=uuid4)
    run_id: str | None = None
    role: Role
    parts: list[MessagePart]
    timestamp: Timestamp = Field(default_factory=_now)
    meta: Meta = Field(default_factory=Meta)

    @model_validator(mode="after")
    def _check_role(self) -> Self:
        allowed = KINDS_OF_ROLE[self.role]
        for index, part in enumerate(self.parts):
            if part.kind not in allowed:
                message = (
                    f"a {self.role} message cannot hold a {part.kind} part (parts[{index}]); "
                    f"it holds: {', '.join(allowed)}"
                )
                raise ValueError(message)
        if self.role is Role.TOOL:
            self._check_results()
        return self

    def _check_results(self) -> None:
        answered = [part.tool_call_id for part in self.parts if isinstance(part, ToolResultPart)]
        if not answered:
            message = "a tool message holds at least one tool_result part"
            raise ValueError(message)
        if len(set(answered)) != len(answered):
            message = "a tool message holds one tool_result part for each call, not two for one"
            raise ValueError(message)

    @model_serializer(mode="plain")
    def _to_wire(self, info: SerializationInfo) -> dict[str, object]:
        as_json = info.mode == "json"
        wire: dict[str, object] = {"id": self.id}
        if self.run_id is not None:
            wire["runId"] = self.run_id
        wire["role"] = self.role.value
        wire["parts"] = self.parts
        wire["timestamp"] = _format_timestamp(self.timestamp) if as_json else self.timestamp
        meta = self.meta.model_dump(mode="json" if as_json else "python")
        if meta:
            wire["meta"] = meta
        return wire

    @classmethod
    def system(cls, *content: str | MessagePart, run_id: str | None = None) -> Self:
        """Make a system message of texts and parts."""
        return cls(role=Role.SYSTEM, parts=_as_parts(content), run_id=run_id)

    @classmethod
    def user(cls, *content: str | MessagePart, run_id: str | None = None) -> Self:
        """Make a user message of texts and parts: `Message.user("What is it?", ImagePart(...))`."""
        return cls(role=Role.USER, parts=_as_parts(content), run_id=run_id)

    @classmethod
    def assistant(cls, *content: str | MessagePart, run_id: str | None = None) -> Self:
        """Make an assistant message of texts and parts."""
        return cls(role=Role.ASSISTANT, parts=_as_parts(content), run_id=run_id)

    @classmethod
    def tool_result(
        cls,
        tool_call_id: str,
        content: str | dict[str, object] | Sequence[ContentPart],
        *,
        is_error: bool = False,
        status: str | None = None,
        run_id: str | None = None,
    ) -> Self:
        """Make the tool message that answers one call with text, an object or parts."""
        part = ToolResultPart(
            tool_call_id=tool_call_id,
            content=content if isinstance(content, (str, dict)) else list(content),
            is_error=is_error,
            status=status,
        )
        return cls(role=Role.TOOL, parts=[part], run_id=run_id)

    @property
    def text(self) -> str:
        """All text parts, joined without a separator; refusals are text."""
        folded = folded_text(self, False)  # noqa: FBT003 - not thinking
        return joined_text(self.parts, TextPart) if folded is None else folded

    @property
    def thinking(self) -> str:
        """All thinking parts, joined without a separator."""
        folded = folded_text(self, True)  # noqa: FBT003 - thinking
        return joined_text(self.parts, ThinkingPart) if folded is None else folded

    @property
    def images(self) -> list[ImagePart]:
        """All images in order, those that a provider's own tool generated too.

        >>> Message.user("What is it?", ImagePart.from_file("tide.png")).images[0].mime_type
        'image/png'
        """
        shown = [part.image if isinstance(part, ProviderPart) else part for part in self.parts]
        return [part for part in shown if isinstance(part, ImagePart)]

    @property
    def tool_calls(self) -> list[ToolCallPart]:
        """All tool calls in order, whatever their state."""
        folded = folded_tool_calls(self)
        if folded is not None:
            return cast("list[ToolCallPart]", folded)
        return [part for part in self.parts if isinstance(part, ToolCallPart)]

    @property
    def runnable_tool_calls(self) -> list[RunnableToolCall]:
        """The tool calls that may run.

        Such a call has ended, has a name, and its arguments are an object. An answer that was
        refused or filtered, that ended with an error or broke off has none, and neither has the
        part of an answer before another model took it over: see `not_runnable`.
        Before the end of a stream, the list has the calls that have ended so far, although the
        answer may still be refused.
        """
        if self.forbids_calls:
            return []
        calls = [call for call in served_calls(self) if call.defect is None]
        return cast("list[RunnableToolCall]", calls)

    @property
    def not_runnable(self) -> dict[str, str]:
        """The reason why a tool call may not run, by the id of each such call.

        >>> refused = Message.assistant(ToolCallPart(tool_call_id="c", tool_name="pay"))
        >>> refused.meta.finish_reason = FinishReason.REFUSAL
        >>> refused.runnable_tool_calls, refused.not_runnable
        ([], {'c': 'the answer was refused'})
        """
        forbidden = self.forbids_calls
        reasons = {call.tool_call_id: call.defect or forbidden for call in self.tool_calls}
        for name in calls_before_fallback(self.parts) if reasons else ():
            reasons[name] = "another model served the answer"
        return {name: reason for name, reason in reasons.items() if reason is not None}

    @property
    def forbids_calls(self) -> str | None:
        """The reason why the end of the answer forbids all of its tool calls, None without one.

        An answer that was refused or filtered, that ended with an error or broke off forbids them.
        Sources: the documents of the providers that docs/concepts/cuts.md lists.

        >>> message.forbids_calls is None
        True
        """
        meta = self.meta
        if meta.is_api_error_message:
            return "the answer failed or broke off"
        return None if meta.finish_reason is None else forbids_calls(meta.finish_reason)

    @property
    def client_actions(self) -> list[ProviderPart]:
        """The provider parts that wait for the caller: commands, patches, approvals.

        As for `runnable_tool_calls`, there are none in an answer that was refused or filtered, that
        ended with an error or broke off.
        """
        if self.forbids_calls:
            return []
        parts = [part for part in self.parts if isinstance(part, ProviderPart)]
        # A shell call that its provider ran is followed by the output, in any environment.
        outputs = [part.block for part in parts if part.block.get("type") == "shell_call_output"]
        answered = [block["call_id"] for block in outputs if "call_id" in block]
        return [
            part
            for part in parts
            if part.awaits_caller
            and ("call_id" not in part.block or part.block["call_id"] not in answered)
        ]

    def __str__(self) -> str:
        """Return all content as lines to read; `repr` is short, and shows no ids."""
        meta = self.meta
        lines = lines_of(
            self.parts, self.not_runnable, meta.finish_reason, meta.usage, meta.warnings
        )
        return "\n".join(lines)

    def _card(self) -> Card:
        return message_card(self)

    def _shown(self) -> Iterator[tuple[str, object]]:
        yield "role", self.role.value
        yield "parts", self.parts
        meta = self.meta
        if meta.finish_reason is not None:
            yield "finish_reason", meta.finish_reason.value
        if meta.usage is not None:
            yield "usage", meta.usage
        if meta.warnings:
            yield "warnings", meta.warnings

    def same_content(self, other: "Message") -> bool:
        """Return whether all members but id, timestamp, cost, duration and timing are equal."""
        return self._content() == other._content()  # noqa: SLF001 - the same class

    def _content(self) -> dict[str, object]:
        content = self.to_dict()
        del content["id"], content["timestamp"]
        meta = cast("dict[str, object]", content.pop("meta", {}))
        of_call = {"costUsd", "costSource", "costUnpriced", "durationMs", "timing"}
        return {**content, "meta": {key: meta[key] for key in meta.keys() - of_call}}

    def to_api(
        self,
        protocol: RequestProtocol,
        *,
        model_id: str | None = None,
        vendor: str | None = None,
    ) -> list[Any]:
        """Return the message as a protocol's API takes it: a list of dicts for an SDK's next call.

        >>> message.to_api("openai-chat")
        [{'role': 'assistant', 'content': 'Hello'}]

        `messages += message.to_api("openai-chat")` continues a list of messages. It is a list
        because protocols write one message as several items (calls of openai-responses, results of
        openai-chat), or as none. State such as signatures goes to the model that wrote it alone.
        Content that the protocol cannot express is left out or replaced by a text, with a warning
        of the logger `deltafold`; `deltafold.render_messages` returns these notes.

        Args:
            protocol: the protocol of the request.
            model_id: the model of the request; None is the model that wrote the message.
            vendor: as in `deltafold.render_messages`.

        Raises:
            MisuseError: no request is rendered in this protocol; a system message is no message of
                it; a result of gemini needs its call beside it; a part names a local file, which
                must be read first.
        """
        # The root of the package is above all rooms, and loads the renderer when it is needed.
        from deltafold import render_messages  # noqa: PLC0415 - see the line before

        members = render_messages(self, protocol, model_id=model_id, vendor=vendor, excerpt=True)
        messages, *apart = members
        if apart:
            raise MisuseError(
                f"a {self.role} message is the member {apart[0]!r} of a request of {protocol}: "
                "deltafold.render_messages(history, protocol) gives all members"
            )
        for note in members.notes:
            LOGGER.warning("to_api(%r): %s", protocol, note["message"])
        rendered: list[Any] = members[messages]
        return rendered

    def to_dict(self) -> dict[str, object]:
        """Return the wire form: JSON's own types, camelCase names."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Self:
        """Make the message of its wire form, or of Python field names."""
        return cls.model_validate(data)

    def to_json(self) -> str:
        """Return the wire form as compact JSON text."""
        folded = folded_json(self)
        return self.model_dump_json() if folded is None else folded

    @classmethod
    def from_json(cls, data: str | bytes) -> Self:
        """Make the message of JSON text."""
        return cls.model_validate_json(data)


def validated_message_of_text(role: Role, text: str) -> Message:
    """Make a message of one text that `message_of_text` cannot make."""
    return Message(role=role, parts=[TextPart(text=text)])


def _as_parts(content: Sequence[str | MessagePart]) -> list[MessagePart]:
    return [TextPart(text=item) if isinstance(item, str) else item for item in content]


def _format_timestamp(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


META_BLUEPRINT: Final = blueprint(
    Meta, **{name: field.default for name, field in Meta.model_fields.items()}
)
"""Metadata of a folded message; the lists of each message are separate."""

MESSAGE_BLUEPRINT: Final = blueprint(
    Message, **{**dict.fromkeys(Message.model_fields), "role": Role.ASSISTANT}
)
"""A message that was folded."""

make_lazy(Meta, Meta.model_fields)
make_lazy(Message, Message.model_fields)


def message_from_fold(
    *,
    message_id: UUID,
    run_id: str | None,
    timestamp: datetime,
    parts: list[dict[str, object]],
    meta: dict[str, object],
) -> Message:
    """Build the assistant message that a fold has assembled, without validation.

    `parts` are as `parts_from_fold` takes them; `meta` holds the known ones of usage,
    finish_reason, raw_finish_reason, response_id, model_id, warnings, logprobs and
    is_api_error_message. Ids
    that are empty are taken as not known.
    """
    built = parts_from_fold(parts)
    finish_reason = meta.get("finish_reason")
    if type(finish_reason) is str:
        finish_reason = FinishReason(finish_reason)
    known: dict[str, object] = {
        **meta,
        "response_id": meta.get("response_id") or None,
        "model_id": meta.get("model_id") or None,
        "finish_reason": finish_reason,
        "warnings": meta.get("warnings") or [],
        "parse_errors": parse_errors_from_fold(parts),
        "approvals": [],
    }
    fields = {
        "id": message_id,
        "run_id": run_id,
        "parts": built,
        "timestamp": timestamp,
        "meta": META_BLUEPRINT.build(known),
    }
    return cast("Message", MESSAGE_BLUEPRINT.build(fields))
