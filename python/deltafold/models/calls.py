"""Calls: the arguments of a Model's methods in the one form that adapters use.

In: messages, tools, system prompts and metadata in every form that `Model.stream` accepts.  Out:
`Message`s, `ToolSpec`s, `PreparedRequest`.

Laws: mistakes raise here, before anything is sent. Objects of the caller are not changed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypeGuard, cast

from deltafold.dialects import Dialect, parse_request
from deltafold.exceptions import MisuseError
from deltafold.messages import Message, TextPart
from deltafold.models.info import RequestMetadata
from deltafold.repairs.problems import HistoryError, Report
from deltafold.repairs.repairing import repair as mend
from deltafold.stream_core import Observer
from deltafold.tool_specs import ToolChoice, ToolSpec
from deltafold.transports.requests import PreparedRequest

_CHAT: Final = frozenset({"content", "tool_calls", "refusal", "reasoning_content"})
"""Members of the Chat form; a message has its role and at least one of these."""

Messages: TypeAlias = str | Sequence[Message | Mapping[str, object]]
Tools: TypeAlias = Sequence[ToolSpec | Mapping[str, object]]
SystemContent: TypeAlias = Sequence[str | TextPart | Mapping[str, object]]
ToolChoiceLike: TypeAlias = ToolChoice | Literal["auto", "required", "none"]
Repair: TypeAlias = Literal["none", "auto"]
Metadata: TypeAlias = RequestMetadata | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Facts about a call that telemetry receives when the call begins.

    Attributes:
        vendor: the name of the vendor in `vendors.py`.
        row: the row of the dialect in the registry.
        specification: the dialect, and the markup if there is one.
        model_id: the requested model.
        request: the request.
        server: the base address, "" if only the SDK has it; it may contain a user and a query.
        messages: the conversation.
        tools: the offered tools.
        metadata: the session, run and trace of the call.
    """

    vendor: str
    row: Dialect
    specification: str
    model_id: str
    request: PreparedRequest
    server: str = field(repr=False)
    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    metadata: RequestMetadata


Telemetry: TypeAlias = Callable[[CallFacts], Observer | None]
"""Receives the facts of a call at its beginning, and returns the observer of its end."""


def conversation_of(
    messages: Messages, system_prompt: str | None, system_content: SystemContent | None
) -> list[Message]:
    """Return one list of messages, the system prompt first.

    Raises:
        ValueError: an item is not a message; the error names its place.
    """
    if isinstance(messages, str):
        conversation = [Message.user(messages)]
    elif isinstance(messages, Message | Mapping):
        raise MisuseError("messages must be a list of messages or one string, not one message")
    else:
        conversation = _messages(messages)
    if system_content is not None:
        if isinstance(system_content, str):
            raise MisuseError(
                "system_prompt_content must be a list of parts; pass a string as system_prompt"
            )
        parts = [
            part if isinstance(part, str | TextPart) else TextPart.model_validate(part)
            for part in system_content
        ]
        return [Message.system(*parts), *conversation]
    if system_prompt is not None:
        return [Message.system(system_prompt), *conversation]
    return conversation


def _messages(given: Sequence[Message | Mapping[str, object]]) -> list[Message]:
    conversation: list[Message] = []
    chat: list[Mapping[str, object]] = []
    for place, message in enumerate(given):
        if _is_chat(message):
            chat.append(message)
            continue
        if chat:
            conversation += _of_chat(chat, place)
            chat = []
        conversation.append(_message(message, place))
    return conversation + _of_chat(chat, len(given)) if chat else conversation


def _message(message: Message | Mapping[str, object], place: int) -> Message:
    if isinstance(message, Message):
        return message
    if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller without a checker
        raise MisuseError(
            f"messages[{place}] must be a Message or its wire form, not a "
            f"{type(message).__qualname__}"
        )
    return Message.from_dict(dict(message))


def _is_chat(message: object) -> TypeGuard[Mapping[str, object]]:
    """Return whether this is a Chat message; the wire form of a `Message` has parts."""
    # The test of the class costs a fiftieth of the test whether it is a mapping.
    if isinstance(message, Message) or not isinstance(message, Mapping):
        return False
    given = cast("Mapping[str, object]", message)
    return "role" in given and "parts" not in given and not given.keys().isdisjoint(_CHAT)


def _of_chat(messages: Sequence[Mapping[str, object]], end: int) -> list[Message]:
    """Read neighbours in the Chat form together: results belong to the calls before them."""
    places = f"messages[{end - len(messages)}:{end}]"
    advice = "read the messages of a provider with deltafold.parse_request(body, dialect)"
    try:
        # The parser of the dialect names each message by its place among these.
        parsed = parse_request({"messages": [*map(dict, messages)]}, "openai-chat")
    except ValueError as error:
        raise ValueError(f"{places} cannot be read as Chat messages: {error}; {advice}") from error
    if parsed.notes:
        raise ValueError(
            f"{places} cannot be read as Chat messages: {parsed.notes[0]['message']}; {advice}"
        )
    return list(parsed.messages)


def examined(
    messages: list[Message], dialect: str, model_id: str, *, repair: Repair, strict: bool
) -> tuple[list[Message], Report]:
    """Report the problems of a conversation, and repair them on request.

    Raises:
        HistoryError: there is a problem, and `strict` is set.
        MisuseError: `repair` is neither "none" nor "auto".
    """
    if repair not in {"none", "auto"}:
        raise MisuseError(f'repair must be "none" or "auto", not {repair!r}')
    mended, report = mend(messages, dialect, model_id=model_id)
    if strict and not report.is_clean:
        raise HistoryError(report)
    return (mended if repair == "auto" else messages), report


def tools_of(tools: Tools | None) -> list[ToolSpec]:
    """Return the tools as tool specifications.

    Raises:
        ValueError: a member is wrong.
        MisuseError: two tools have the same name, which all providers refuse.
    """
    specs = [
        tool if isinstance(tool, ToolSpec) else ToolSpec.model_validate(tool)
        for tool in tools or ()
    ]
    names: set[str] = set()
    for spec in specs:
        if spec.name in names:
            raise MisuseError(f"tool_specs: two tools have the name {spec.name!r}")
        names.add(spec.name)
    return specs


def schemas_of(tools: Sequence[ToolSpec]) -> dict[str, object]:
    """Return the schemas of the tools, by the path under which the caller gave them."""
    return {
        f"tool_specs[{place}].parameter_schema": tool.parameter_schema
        for place, tool in enumerate(tools)
    }


_NO_METADATA: Final = RequestMetadata()


def metadata_of(metadata: Metadata | None) -> RequestMetadata:
    """Return the request metadata as an object."""
    if metadata is None:
        return _NO_METADATA
    if isinstance(metadata, RequestMetadata):
        return metadata
    return RequestMetadata.model_validate(metadata)
