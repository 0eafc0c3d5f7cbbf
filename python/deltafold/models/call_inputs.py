"""Calls: the arguments of a Model's methods in the one form that adapters use.

In: messages, tools, system prompts and metadata in every form that `Model.stream` accepts.  Out:
`CallArguments`; of them `Message`s, `ToolSpec`s and `RequestMetadata`.

Laws: mistakes raise here, before anything is sent. Objects of the caller are not changed. The
blocks of the Messages API are imported when a caller passes some.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias, cast

from pydantic import BaseModel

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import RequestProtocol
from deltafold.dialects import Dialect, parse_request
from deltafold.dialects.repairs.problems import HistoryError, Report
from deltafold.dialects.repairs.repair import RepairPolicy
from deltafold.dialects.repairs.repair import repair as mend
from deltafold.dialects.settings import ModelConfig
from deltafold.message.messages import Message, Role, TextPart, message_of_text
from deltafold.models.info import RequestMetadata
from deltafold.specs.tool_specs import ToolChoice, ToolSpec
from deltafold.streams.core import Observer
from deltafold.transports.requests import PreparedRequest

if TYPE_CHECKING:
    from deltafold.blocks import AssistantMessage, Block, UserMessage

_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")

_PARSES: Final = "deltafold.parse_request(body, dialect) reads the messages of a provider"

_CHAT: Final = frozenset({"content", "tool_calls", "refusal", "reasoning_content"})
"""Members of the Chat form; a message has its role and at least one of these."""

_OF_BLOCKS: Final = frozenset(
    {
        "container_upload",
        "document",
        "image",
        "mcp_tool_use",
        "redacted_thinking",
        "search_result",
        "server_tool_use",
        "thinking",
        "tool_result",
        "tool_use",
    }
)
"""Types of blocks of the Messages API that the Chat form has not."""

ERROR_TEXT: Final = "errorText"
"""Member of the metadata of a failed call's message: the text of the failure, its last part."""

_MARKS: Final = frozenset({"cache_control", "citations"})
"""Members of a text block that the Chat form has not."""

_FORMS: Final[Mapping[str, RequestProtocol]] = {
    "function": "openai-chat",
    "custom": "openai-chat",
    "input_schema": "anthropic-messages",
    "toolSpec": "bedrock-converse",
    "functionDeclarations": "gemini",
    "function_declarations": "gemini",
}
"""Members by which the tools of the protocols are told apart; all others have a type."""

_OF_NO_API: Final = frozenset({"parameterSchema", "parameter_schema", "inputSchema"})
"""Schemas of a ToolSpec and of MCP, which a reader of an API's tools would take for nothing."""

MessageLike: TypeAlias = (
    "Message | UserMessage | AssistantMessage | Block | Mapping[str, object] | str"
)
Messages: TypeAlias = "MessageLike | Sequence[MessageLike]"
Placed: TypeAlias = "Sequence[tuple[int, object]]"

_FEWEST: Final = 24
"""Messages of a call below which a sample of its history would not be much shorter."""


class HasSpec(Protocol):
    """A tool with a specification, such as `deltafold.conversation.Tool`."""

    def to_spec(self) -> ToolSpec:
        """Return the specification that is sent to the model."""
        ...


ToolLike: TypeAlias = ToolSpec | HasSpec | Callable[..., object] | Mapping[str, object]
Tools: TypeAlias = Sequence[ToolLike]
SystemContent: TypeAlias = Sequence[str | TextPart | Mapping[str, object]]
ToolChoiceLike: TypeAlias = ToolChoice | Literal["auto", "required", "none"]
Repair: TypeAlias = Literal["none", "auto"]
REPAIRS: Final[frozenset[Repair]] = frozenset({"none", "auto"})
Metadata: TypeAlias = RequestMetadata | Mapping[str, object]
Notes: TypeAlias = Sequence[Mapping[str, object]]


@dataclass(slots=True)
class CallArguments:
    """Arguments of a call as the caller gave them; `Model.stream` documents them.

    Attributes:
        streamed: whether the provider streams its answer.
        params: settings for this call alone.
    """

    messages: Messages
    tool_specs: Tools | None = None
    system_prompt: str | None = None
    tool_choice: ToolChoiceLike | None = None
    system_prompt_content: SystemContent | None = None
    invocation_state: Mapping[str, object] | None = field(default=None, repr=False)
    request_metadata: Metadata | None = None
    repair: Repair = "none"
    strict: bool = False
    continue_from: Message | None = None
    notes: Notes = ()
    output: object = None
    streamed: bool = True
    params: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def of(
        cls,
        messages: Messages,
        tool_specs: Tools | None,
        system_prompt: str | None,
        options: Mapping[str, Any],
        *,
        streamed: bool = True,
    ) -> Self:
        """Make the arguments of a method whose options are those of `Model.stream`."""
        named = {name: options[name] for name in _OPTIONS & options.keys()}
        params = {name: value for name, value in options.items() if name not in _OPTIONS}
        return cls(messages, tool_specs, system_prompt, streamed=streamed, params=params, **named)


_OPTIONS: Final = frozenset(
    {
        "tool_choice",
        "system_prompt_content",
        "invocation_state",
        "request_metadata",
        "repair",
        "strict",
        "continue_from",
        "notes",
        "output",
    }
)
"""Keywords of `Model.stream` that are no settings of the configuration."""


@dataclass(slots=True)
class CallFacts:
    """Facts about a call that telemetry receives when the call begins; nothing changes them.

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


def may_repeat(messages: Messages) -> bool:
    """Return whether a history may be rendered with a stencil (`outlined.py`).

    It is long, or it is a sequence of our own, whose outline is known.
    """
    if isinstance(messages, list | tuple):
        return len(messages) >= _FEWEST
    return isinstance(messages, Sequence) and not isinstance(messages, str)


def conversation_of(
    messages: Messages, system_prompt: str | None, system_content: SystemContent | None
) -> list[Message]:
    """Return one list of messages, the system prompt first.

    The text of a failure in the message of a failed call is left out: no model has said it. What
    the provider sent before it failed stays.

    Raises:
        ValueError: an item is not a message; the error names its place.
    """
    if isinstance(messages, str):
        conversation = [message_of_text(Role.USER, messages)]
    elif isinstance(messages, BaseModel | Mapping) or not isinstance(messages, Iterable):
        conversation = _messages([messages])
    else:
        conversation = _messages(messages)
    if any(_is_failure(message) for message in conversation):
        said = (_without_failure(one) if _is_failure(one) else one for one in conversation)
        conversation = [message for message in said if message is not None]
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
        return [message_of_text(Role.SYSTEM, system_prompt), *conversation]
    return conversation


def _is_failure(message: Message) -> bool:
    return message.role is Role.ASSISTANT and message.meta.is_api_error_message


def _without_failure(message: Message) -> Message | None:
    """Return what the provider sent of an answer that failed, None if it sent nothing."""
    meta = message.meta
    text = (meta.model_extra or {}).get(ERROR_TEXT)
    if text is None:
        # A folded answer has an id, and no text of the failure; others were written as failures.
        return message if meta.response_id is not None else None
    last = message.parts[-1] if message.parts else None
    if not isinstance(last, TextPart) or last.text != text:
        return message
    kept = message.parts[:-1]
    return message.model_copy(update={"parts": kept}) if kept else None


def _messages(given: Iterable[object]) -> list[Message]:
    messages = list(given)
    if all(isinstance(one, Message) for one in messages):  # the usual case
        return cast("list[Message]", messages)
    conversation: list[Message] = []
    for place, message in enumerate(messages):
        if isinstance(message, Mapping):
            _check_role(cast("Mapping[str, object]", message), place)
    for read, run in groupby(enumerate(messages), lambda placed: _reader_of(placed[1])):
        conversation += read(list(run))
    return conversation


def _check_role(message: Mapping[str, object], place: int) -> None:
    """Check the role of a message; a block has a type instead.

    Raises:
        MisuseError: it is missing, or not one of those that the APIs know.
    """
    role = message.get("role")
    if role in _ROLES or (role is None and "type" in message):
        return
    said = "has no role" if role is None else f"has the role {role!r}"
    raise MisuseError(f"messages[{place}] {said}; the roles are {', '.join(_ROLES)}, and {_PARSES}")


def _reader_of(message: object) -> Callable[[Placed], list[Message]]:
    """Return the reader of the form of a message; it reads neighbours of one form together."""
    # The test of the class costs a fiftieth of the test whether it is a mapping.
    if isinstance(message, Message):
        return _as_they_are
    if isinstance(message, Mapping):
        return _reader_of_json(cast("Mapping[str, object]", message))
    return _of_content if isinstance(message, str | BaseModel) else _of_views


def _reader_of_json(message: Mapping[str, object]) -> Callable[[Placed], list[Message]]:
    if "role" not in message and "type" in message:
        return _of_content
    if "role" not in message or "parts" in message:
        return _of_wire_forms
    if _has_blocks(message):
        return _of_api
    return _of_wire_forms if message.keys().isdisjoint(_CHAT) else _of_chat


def _has_blocks(message: Mapping[str, object]) -> bool:
    """Return whether this is a message of the Messages API, or the JSON of a view of blocks."""
    content = message.get("content")
    if not isinstance(content, list) or "tool_calls" in message:
        return False
    return "timestamp" in message or any(
        isinstance(block, BaseModel)
        or (isinstance(block, Mapping) and _is_block(cast("Mapping[str, object]", block)))
        for block in cast("list[object]", content)
    )


def _is_block(block: Mapping[str, object]) -> bool:
    kind = block.get("type")
    is_of_api = isinstance(kind, str) and (kind in _OF_BLOCKS or kind.endswith("_tool_result"))
    return is_of_api or (kind == "text" and not block.keys().isdisjoint(_MARKS))


def _as_they_are(placed: Placed) -> list[Message]:
    return [cast("Message", message) for _, message in placed]


def _of_wire_forms(placed: Placed) -> list[Message]:
    return [Message.from_dict(dict(cast("Mapping[str, object]", given))) for _, given in placed]


def _of_views(placed: Placed) -> list[Message]:
    from deltafold.blocks import AssistantMessage, UserMessage  # noqa: PLC0415 - see the head

    conversation: list[Message] = []
    for place, view in placed:
        if not isinstance(view, AssistantMessage | UserMessage):
            raise _no_message(view, place)
        conversation += view.messages
    return conversation


def _no_message(found: object, place: int) -> MisuseError:
    return MisuseError(
        f"messages[{place}] must be a message, a block, a text or the JSON of a message, "
        f"not a {type(found).__qualname__}"
    )


def _of_api(placed: Placed) -> list[Message]:
    from deltafold.blocks import messages_from_dict  # noqa: PLC0415 - see the head

    given = [(place, cast("Mapping[str, object]", message)) for place, message in placed]
    return [one for place, api in given for one in messages_from_dict(api, f"messages[{place}]")]


def _of_content(placed: Placed) -> list[Message]:
    """Make one message of the user of neighbouring texts and blocks."""
    from deltafold.blocks import ContentBlock, messages_of_content  # noqa: PLC0415 - see the head

    for place, given in placed:
        if isinstance(given, BaseModel) and not isinstance(given, ContentBlock):
            raise _no_message(given, place)
    content = [given for _, given in placed]
    return messages_of_content(Role.USER, content, [f"messages[{place}]" for place, _ in placed])


def _of_chat(placed: Placed) -> list[Message]:
    """Read neighbours in the Chat form together: results belong to the calls before them."""
    places = f"messages[{placed[0][0]}:{placed[-1][0] + 1}]"
    messages = [dict(cast("Mapping[str, object]", message)) for _, message in placed]
    try:
        # The parser of the dialect names each message by its place among these.
        parsed = parse_request({"messages": messages}, "openai-chat")
    except ValueError as error:
        raise ValueError(f"{places} cannot be read as Chat messages: {error}; {_PARSES}") from error
    if parsed.notes:
        raise ValueError(
            f"{places} cannot be read as Chat messages: {parsed.notes[0]['message']}; {_PARSES}"
        )
    return list(parsed.messages)


def examined(
    messages: list[Message],
    dialect: RequestProtocol,
    config: ModelConfig,
    *,
    repair: Repair,
    strict: bool,
) -> tuple[list[Message], Report]:
    """Report the problems of a conversation, and repair them on request.

    Raises:
        HistoryError: there is a problem, and `strict` is set.
        MisuseError: `repair` is neither "none" nor "auto".
    """
    if repair not in REPAIRS:
        raise MisuseError(f'repair must be "none" or "auto", not {repair!r}')
    # A vendor that takes a placeholder for reasoning takes any reasoning.
    takes_any = getattr(config, "reasoning_placeholder", None) is not None
    policy = RepairPolicy(thinking="keep") if takes_any else None
    mended, report = mend(messages, dialect, policy, model_id=config.model_id)
    if strict and report.problems:
        raise HistoryError(report)
    return (mended if repair == "auto" else messages), report


def tools_of(tools: Tools | None) -> list[ToolSpec]:
    """Return the tools as tool specifications.

    Raises:
        ValueError: a member is wrong; the error names the place of the tool.
        MisuseError: the argument is one tool; two tools have the same name, which all providers
            refuse; a provider runs a tool itself.
    """
    _refuse_one_tool(tools)
    specs = [spec for place, tool in enumerate(tools or ()) for spec in _specs_of(tool, place)]
    names: set[str] = set()
    for spec in specs:
        if spec.name in names:
            raise MisuseError(f"tool_specs: two tools have the name {spec.name!r}")
        names.add(spec.name)
    return specs


def _refuse_one_tool(tools: object) -> None:
    name = type(tools).__qualname__
    is_one = isinstance(tools, str | Mapping | ToolSpec) or not isinstance(tools, Iterable)
    if tools is not None and is_one:
        raise MisuseError(f"tool_specs must be a list of tools, not a {name}: pass [tool]")


def _specs_of(tool: ToolLike, place: int) -> Sequence[ToolSpec]:
    if isinstance(tool, ToolSpec):
        return (tool,)
    other: Any = tool
    if isinstance(other, Mapping):
        return _specs_of_json(cast("Mapping[str, object]", other), place)
    to_spec = getattr(other, "to_spec", None)
    if to_spec is not None:
        return (ToolSpec.model_validate(to_spec()),)
    if inspect.isclass(other) and issubclass(other, BaseModel):
        return (ToolSpec.from_pydantic(other),)
    if callable(tool):
        return (ToolSpec.from_function(tool),)
    raise MisuseError(
        f"tool_specs[{place}] must be a function, a ToolSpec, a Tool or the JSON of a tool, "
        f"not a {type(other).__qualname__}"
    )


def _specs_of_json(tool: Mapping[str, object], place: int) -> Sequence[ToolSpec]:
    """Read a tool in our own form, or in that of a request of a provider."""
    if "parameters" in tool and "type" not in tool:
        schema = tool["parameters"]
        kind = (
            cast("Mapping[str, object]", schema).get("type")
            if isinstance(schema, Mapping)
            else None
        )
        if isinstance(kind, str) and kind.isupper():  # as Gemini alone writes the types
            tool = {"functionDeclarations": [tool]}
        else:
            tool = {"type": "function", "function": tool}
    form = _form_of(tool)
    if form is None and "name" in tool:
        return (ToolSpec.model_validate(tool),)
    if form is None:
        raise MisuseError(
            f"tool_specs[{place}] has no name, but {', '.join(tool) or 'nothing'}: a tool that the "
            "provider runs by itself is the setting provider_tools=[...]"
        )
    body = {"toolConfig": {"tools": [tool]}} if form == "bedrock-converse" else {"tools": [tool]}
    try:
        specs = parse_request(body, form).tools
    except ValueError as error:
        raise ValueError(f"tool_specs[{place}], as a tool of {form}: {error}") from None
    if not specs:
        kind = tool.get("type", ", ".join(tool))
        raise MisuseError(
            f"tool_specs[{place}]: the provider runs {kind!r} by itself: pass it as the setting "
            "provider_tools=[...]"
        )
    return specs


def _form_of(tool: Mapping[str, object]) -> RequestProtocol | None:
    """Return the protocol in whose form a tool is written, None for the form of a ToolSpec."""
    if not _OF_NO_API.isdisjoint(tool):
        return None
    fits: Iterator[RequestProtocol] = (form for member, form in _FORMS.items() if member in tool)
    found = next(fits, None)
    if found is not None or "type" not in tool:
        return found
    return "openai-responses"


def schemas_of(tools: Sequence[ToolSpec]) -> dict[str, object]:
    """Return the schemas of the tools, by the path under which the caller gave them."""
    return {
        f"tool_specs[{place}].parameter_schema": tool.parameter_schema
        for place, tool in enumerate(tools)
    }


NO_METADATA: Final = RequestMetadata()


def metadata_of(metadata: Metadata) -> RequestMetadata:
    """Return the request metadata as an object."""
    if isinstance(metadata, RequestMetadata):
        return metadata
    return RequestMetadata.model_validate(metadata)
