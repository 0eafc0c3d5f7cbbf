"""Blocks: messages in the content form of the Messages API.

In: messages, or JSON of the Messages API.  Out: `UserMessage` and `AssistantMessage` with their
`content` of blocks; the API's JSON `{role, content}`.  `ProgressMessage` describes a running tool.

Laws: the parser and the renderer of anthropic-messages convert between blocks and parts. A view
holds messages and no data of its own. A message that is built from the blocks of a view has the
parts of the original: a block keeps its part if the block does not show all of it.
Source: docs/blueprint.md#abstraction: message structure, content blocks, progress message, koding
mode, API error message.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import ClassVar, Final, Literal, Self, cast
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Field

from deltafold.blocks.content import (
    Block,
    Content,
    ContentBlock,
    TextBlock,
    block_from_dict,
    checked,
)
from deltafold.blocks.parts import PLACE, block_of, part_of, rendering_of
from deltafold.contract.kinds import json_object
from deltafold.contract.usage import Usage
from deltafold.dialects.anthropic_messages.render import DIALECT, part_blocks
from deltafold.dialects.reader import Reader
from deltafold.dialects.rendered import Object
from deltafold.dialects.replay import message_members
from deltafold.message.messages import (
    Message,
    MessagePart,
    Meta,
    Role,
    Timestamp,
    ToolResultPart,
)
from deltafold.specs.tool_specs import ToolSpec


class _View:
    """Messages, seen as one message of the Messages API."""

    _roles: ClassVar[tuple[Role, ...]]
    _role: ClassVar[Role]

    def __init__(self, *messages: Message) -> None:
        for message in messages:
            if message.role not in self._roles:
                raise ValueError(
                    f"role: {type(self).__name__} shows {' and '.join(self._roles)} messages, "
                    f"not {message.role}"
                )
        if not messages:
            raise ValueError(f"messages: {type(self).__name__} shows a message, not none")
        self.messages: tuple[Message, ...] = messages

    @classmethod
    def of(cls, *content: str | Block | Mapping[str, object]) -> Self:
        """Make a message of text, blocks, and the JSON of blocks.

        Raises:
            ValueError: a block is malformed, or it belongs to the other role.
        """
        places = [f"content[{number}]" for number in range(len(content))]
        return cls(*messages_of_content(cls._role, content, places))

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Read the JSON of `to_dict` or of the Messages API, or the wire form of a `Message`.

        Raises:
            ValueError: a member is missing or has the wrong type; the error names its place, such
                as `content[2].source.data`.
        """
        messages = messages_from_dict(data)
        if len(messages) > 1 and Role.TOOL not in cls._roles:
            raise ValueError(f"messages: {cls.__name__} shows one message, not {len(messages)}")
        return cls(*messages)

    @property
    def message(self) -> Message:
        """First message, which has the id, the timestamp and the metadata."""
        return self.messages[0]

    @property
    def id(self) -> UUID:
        """UUID of the message."""
        return self.message.id

    @property
    def timestamp(self) -> datetime:
        """Time of creation."""
        return self.message.timestamp

    @property
    def role(self) -> str:
        """Role of the message in the Messages API."""
        return self._role.value

    @property
    def content(self) -> list[Block]:
        """The parts of the messages as blocks, one block for each part."""
        return [block_of(part) for message in self.messages for part in message.parts]

    def to_api(self) -> dict[str, object]:
        """Return the message as the Messages API takes it: `{role, content}`.

        Parts without a form in the API are left out or replaced by a text, as in a request. Ids and
        names are not changed; a request replaces those that the API refuses.

        Raises:
            MisuseError: a part names a local file, which must be read first.
        """
        content: list[Object] = []
        members: Object = {}
        for message in self.messages:
            for part in message.parts:
                rendering = rendering_of(part)
                content += part_blocks((PLACE, part), message.role, rendering)
                members |= message_members([(PLACE, part)], rendering)
        return {"role": self.role, "content": content, **members}

    def to_dict(self) -> dict[str, object]:
        """Return the message as JSON: id, role, content, timestamp and the known metadata.

        The JSON has also `messages`, the wire form of the messages below, if the other members do
        not show all of them.
        """
        shown = {
            "id": str(self.id),
            "role": self.role,
            "content": [block.to_dict() for block in self.content],
            "timestamp": self.message.to_dict()["timestamp"],
            **self._metadata(),
        }
        try:
            is_whole = type(self).from_dict(shown) == self
        except ValueError:
            is_whole = False
        if not is_whole:
            shown["messages"] = [message.to_dict() for message in self.messages]
        return shown

    def _metadata(self) -> Object:
        meta = self.message.meta
        found: Object = {name: getattr(meta, name) for name in _METADATA}
        shown = (found | _options(meta)).items()
        return {name: value for name, value in shown if value is not None and value is not False}

    def __eq__(self, other: object) -> bool:
        """Compare the messages."""
        return isinstance(other, type(self)) and self.messages == other.messages

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.messages))})"


class UserMessage(_View):
    """A user message of the Messages API, which may hold tool results and other content.

    A `Message` holds either. The view therefore shows several messages in the order of the
    content: neighbouring results are one message of the tools, and the blocks between them are one
    message of the user. A request writes the results first, as the API requires.

    >>> answer = UserMessage.of(
    ...     ToolResultBlock(tool_use_id="c", content="21 C"), "And tomorrow?"
    ... )
    >>> [message.role.value for message in answer.messages]
    ['tool', 'user']
    """

    _roles = (Role.USER, Role.TOOL)
    _role = Role.USER

    @classmethod
    def of(
        cls,
        *content: str | Block | Mapping[str, object],
        is_koding_request: bool = False,
        koding_context: str | None = None,
    ) -> Self:
        """Make a message of text, blocks, and the JSON of blocks.

        Args:
            content: the content, in order.
            is_koding_request: whether the message was sent in koding mode.
            koding_context: facts about the koding mode.

        Raises:
            ValueError: a block is malformed, or only the assistant sends such a block.
        """
        made = super().of(*content)
        _set_options(made.message, is_koding_request, koding_context)
        return made

    @property
    def is_koding_request(self) -> bool:
        """Mark of a message that was sent in koding mode."""
        return _options(self.message.meta).get("is_koding_request") is True

    @property
    def koding_context(self) -> str | None:
        """Facts about the koding mode."""
        context = _options(self.message.meta).get("koding_context")
        return context if isinstance(context, str) else None


class AssistantMessage(_View):
    """A message of the assistant as blocks, with its tokens, cost and duration.

    >>> answer = AssistantMessage(Message.assistant("Hello"))
    >>> answer.content[0].text
    'Hello'
    """

    _roles = (Role.ASSISTANT,)
    _role = Role.ASSISTANT

    def __init__(self, message: Message) -> None:
        super().__init__(message)

    @property
    def usage(self) -> Usage | None:
        """Tokens of the call: input, output, and total."""
        return self.message.meta.usage

    @property
    def cost_usd(self) -> float | None:
        """Cost of the message in US dollars."""
        return self.message.meta.cost_usd

    @property
    def duration_ms(self) -> float | None:
        """Duration of the call in milliseconds."""
        return self.message.meta.duration_ms

    @property
    def response_id(self) -> str | None:
        """Id of the response, which the provider gave."""
        return self.message.meta.response_id

    @property
    def is_api_error_message(self) -> bool:
        """Mark of a message that represents a failure of the provider."""
        return self.message.meta.is_api_error_message


_METADATA: Final = ("cost_usd", "duration_ms", "response_id", "is_api_error_message")


def _options(meta: Meta) -> Object:
    """Return the options of a user message, which are a further member of its metadata."""
    return dict(json_object((meta.model_extra or {}).get("options")) or {})


def _set_options(message: Message, is_koding_request: bool, koding_context: str | None) -> None:
    options: Object = {}
    if is_koding_request or koding_context is not None:
        options["is_koding_request"] = is_koding_request
    if koding_context is not None:
        options["koding_context"] = koding_context
    if options:
        message.meta = Meta.model_validate({**message.meta.model_dump(), "options": options})


class _Api(BaseModel):
    """JSON of a message: the members of the Messages API, and those of `to_dict`."""

    model_config = ConfigDict(extra="allow")

    role: Literal["user", "assistant", "system"]
    content: Content
    id: UUID | None = None
    timestamp: Timestamp | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    response_id: str | None = None
    is_api_error_message: bool = False
    is_koding_request: bool = False
    koding_context: str | None = None


class _Below(BaseModel):
    """JSON of the messages below a view."""

    messages: list[Message]


def messages_from_dict(data: Mapping[str, object], place: str = "") -> list[Message]:
    """Read the JSON of a message with blocks; arguments and errors are those of `from_dict`.

    >>> messages = messages_from_dict({"role": "user", "content": "When is high tide?"})
    >>> messages[0].text
    'When is high tide?'

    Args:
        data: the JSON.
        place: the place of the message, which errors name.
    """
    if "parts" in data:
        return [Message.from_dict(dict(data))]
    if "messages" in data:
        return checked(_Below, dict(data), place).messages
    api = checked(_Api, dict(data), place)
    content = [TextBlock(text=api.content)] if isinstance(api.content, str) else api.content
    places = [f"{place}.content[{n}]".removeprefix(".") for n in range(len(content))]
    messages = _messages_of(Role(api.role), content, places, api.model_extra)
    first = messages[0]
    if api.id is not None:
        first.id = api.id
    if api.timestamp is not None:
        first.timestamp = api.timestamp
    for name in _METADATA:
        setattr(first.meta, name, getattr(api, name))
    _set_options(first, api.is_koding_request, api.koding_context)
    return messages


def messages_of_content(
    role: Role, content: Sequence[object], places: Sequence[str]
) -> list[Message]:
    """Return the messages of the content of one message of the API.

    >>> content = [
    ...     {"type": "tool_result", "tool_use_id": "a", "content": "17:42"},
    ...     "Tomorrow?",
    ... ]
    >>> messages = messages_of_content(deltafold.Role.USER, content, ["[0]", "[1]"])
    >>> [message.role.value for message in messages]
    ['tool', 'user']

    Args:
        role: the role in the API.
        content: text, blocks, and the JSON of blocks.
        places: the place of each item, which errors name.

    Raises:
        ValueError: a block is malformed, or it belongs to another role.
    """
    blocks: list[Block] = []
    for one, place in zip(content, places, strict=True):
        if isinstance(one, str):
            blocks.append(TextBlock(text=one))
        elif isinstance(one, ContentBlock):
            blocks.append(cast("Block", one))
        else:
            blocks.append(block_from_dict(one, place))
    return _messages_of(role, blocks, places)


def _messages_of(
    role: Role, content: Sequence[Block], places: Sequence[str], extras: Object | None = None
) -> list[Message]:
    """Return the messages of the blocks of one message of the API.

    Raises:
        ValueError: a block belongs to another role.
    """
    parts: list[MessagePart] = []
    for block, where in zip(content, places, strict=True):
        if block.role not in {None, role}:
            raise ValueError(
                f"{where}: {block.type} is a block of the {block.role}, not the {role}"
            )
        try:
            parts.append(part_of(block, role))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
    reader = Reader(DIALECT, {}, None)
    if role is Role.SYSTEM:
        # A system message between the others keeps its role in a request.
        reader.say(role, parts, {**(extras or {}), "role": role.value})
        return reader.messages
    for is_result, group in groupby(parts, lambda part: isinstance(part, ToolResultPart)):
        run = list(group)
        if is_result:
            reader.answer([part for part in run if isinstance(part, ToolResultPart)], extras)
        else:
            reader.say(role, run, extras)
        extras = None
    if not parts:
        reader.say(role, [], extras)
    return reader.messages


class ProgressMessage(BaseModel):
    """Progress of a running tool.

    >>> page = deltafold.Message.assistant("Page 2 of 5")
    >>> progress = ProgressMessage(content=page, tool_use_id="call_1")
    >>> ProgressMessage.from_dict(progress.to_dict()).content.text
    'Page 2 of 5'

    Attributes:
        content: the message to show while the tool runs.
        tool_use_id: id of the running call.
        sibling_tool_use_ids: ids of the calls of the same turn.
        tools: the available tools.
        normalized_messages: the conversation as it is shown.
    """

    model_config = ConfigDict(extra="forbid")

    id: UUID = Field(default_factory=uuid4)
    content: Message
    tool_use_id: str
    sibling_tool_use_ids: list[str] = Field(default_factory=list[str])
    tools: list[ToolSpec] = Field(default_factory=list[ToolSpec])
    normalized_messages: list[Message] = Field(default_factory=list[Message])

    def to_dict(self) -> dict[str, object]:
        """Return JSON's own types."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Make the message of `to_dict`'s form."""
        return cls.model_validate(data)


def normalized(messages: Sequence[Message]) -> list[Message]:
    """Return one message for each part, as interfaces show them; ids derive from the message's.

    >>> [len(one.parts) for one in normalized([message])]
    [1, 1, 1, 1]
    """
    shown: list[Message] = []
    for message in messages:
        if len(message.parts) <= 1:
            shown.append(message)
            continue
        shown += [
            message.model_copy(
                update={"id": UUID(int=(message.id.int + place) % 2**128), "parts": [part]}
            )
            for place, part in enumerate(message.parts)
        ]
    return shown
