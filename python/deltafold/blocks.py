"""Blocks: messages under the names of the Messages API.

In: a `Message`.  Out: views of the message: `UserMessage`, `AssistantMessage`, and their `content`
of blocks. `ProgressMessage` describes a running tool.

Laws: a view holds the message and no data of its own. A message that is built from a view equals
the original.
Source: the message and model abstraction specification: content block types, message metadata,
ProgressMessage, user message options, error marking.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self, TypeAlias
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Field

from deltafold.contract import json_object
from deltafold.messages import (
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.tool_specs import ToolSpec


class _Block(BaseModel):
    """Base class of all blocks.

    Attributes:
        part: the wire form of the part, if it holds more than the block (citations, raw arguments,
            provider state); it prevents losses when the block becomes a part again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    part: dict[str, object] | None = None


class TextBlock(_Block):
    """Text, in any language."""

    type: Literal["text"] = "text"
    text: str


class ToolUseBlock(_Block):
    """A tool call of the assistant; `input` is None if the arguments are not an object."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: dict[str, object] | None


class ImageBlock(_Block):
    """An image: base64 `data`, or a `url`; `media_type` such as image/png."""

    type: Literal["image"] = "image"
    media_type: str
    data: str | None = None
    url: str | None = None


class ToolResultBlock(_Block):
    """Result of a tool, and whether it is an error."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: str | dict[str, object] | list["Block"]
    is_error: bool = False
    status: str | None = None


class OtherBlock(_Block):
    """A part without a block type: thinking, a file, or a block of a provider."""

    type: Literal["other"] = "other"


Block: TypeAlias = Annotated[
    TextBlock | ToolUseBlock | ImageBlock | ToolResultBlock | OtherBlock,
    Field(discriminator="type"),
]
"""Union of all blocks, discriminated by `type`."""

ToolResultBlock.model_rebuild()


def block_of(part: MessagePart) -> Block:
    """Return the block of a part."""
    block = _shown(part)
    if isinstance(block, OtherBlock) or part_of(block) != part:
        return block.model_copy(update={"part": part.model_dump(mode="json")})
    return block


def _shown(part: MessagePart) -> Block:
    match part:
        case TextPart():
            return TextBlock(text=part.text)
        case ToolCallPart():
            return ToolUseBlock(id=part.tool_call_id, name=part.tool_name, input=part.arguments)
        case ImagePart():
            return ImageBlock(media_type=part.mime_type, data=part.data, url=part.url)
        case ToolResultPart():
            content = part.content
            return ToolResultBlock(
                tool_use_id=part.tool_call_id,
                content=[block_of(one) for one in content]
                if isinstance(content, list)
                else content,
                is_error=part.is_error,
                status=part.status,
            )
        case _:
            return OtherBlock()


def part_of(block: Block) -> MessagePart:
    """Return the part of a block.

    Raises:
        ValueError: the block requires `part` and has none.
    """
    if block.part is not None:
        return _PARTS[str(block.part["kind"])].model_validate(block.part)
    match block:
        case TextBlock():
            return TextPart(text=block.text)
        case ToolUseBlock():
            return ToolCallPart(
                tool_call_id=block.id, tool_name=block.name, arguments=block.input or {}
            )
        case ImageBlock():
            return ImagePart(mime_type=block.media_type, data=block.data, url=block.url)
        case ToolResultBlock():
            content = block.content
            if isinstance(content, list):
                inner = [part_of(one) for one in content]
                kept = [
                    one
                    for one in inner
                    if isinstance(one, TextPart | ImagePart | FileRefPart | ProviderPart)
                ]
                return ToolResultPart(
                    tool_call_id=block.tool_use_id,
                    content=kept,
                    is_error=block.is_error,
                    status=block.status,
                )
            return ToolResultPart(
                tool_call_id=block.tool_use_id,
                content=content,
                is_error=block.is_error,
                status=block.status,
            )
        case OtherBlock():
            raise ValueError("part: a block without content of its own requires its part")


_PARTS: Mapping[
    str,
    type[
        TextPart
        | ThinkingPart
        | ToolCallPart
        | ToolResultPart
        | ImagePart
        | FileRefPart
        | ProviderPart
    ],
] = {
    "text": TextPart,
    "thinking": ThinkingPart,
    "tool_call": ToolCallPart,
    "tool_result": ToolResultPart,
    "image": ImagePart,
    "file_ref": FileRefPart,
    "provider": ProviderPart,
}


class _View:
    """A message, seen as blocks."""

    roles: tuple[Role, ...]

    def __init__(self, message: Message) -> None:
        if message.role not in self.roles:
            raise ValueError(
                f"role: {type(self).__name__} shows {' and '.join(self.roles)} messages, "
                f"not {message.role}"
            )
        self.message = message

    @property
    def id(self) -> UUID:
        """The message's id."""
        return self.message.id

    @property
    def role(self) -> str:
        """Role of the message in the Messages API."""
        return "assistant" if self.message.role is Role.ASSISTANT else "user"

    @property
    def content(self) -> list[Block]:
        """The message's parts as blocks."""
        return [block_of(part) for part in self.message.parts]

    def to_dict(self) -> dict[str, object]:
        """Return the wire form of the message."""
        return self.message.to_dict()

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Self:
        """Make the view of a message's wire form."""
        return cls(Message.from_dict(data))

    def __eq__(self, other: object) -> bool:
        """Compare the messages."""
        return isinstance(other, type(self)) and self.message == other.message

    __hash__ = None  # type: ignore[assignment]  # mutable


class UserMessage(_View):
    """A message of the user, or of the tools, as blocks."""

    roles = (Role.USER, Role.TOOL)

    @classmethod
    def of(
        cls,
        *content: str | Block,
        is_koding_request: bool = False,
        koding_context: str | None = None,
    ) -> Self:
        """Make a message of text and blocks.

        Args:
            content: text and blocks.
            is_koding_request: whether the message was sent in koding mode.
            koding_context: facts about the koding mode.
        """
        parts = [part_of(TextBlock(text=one) if isinstance(one, str) else one) for one in content]
        results = bool(parts) and all(isinstance(part, ToolResultPart) for part in parts)
        message = Message(role=Role.TOOL if results else Role.USER, parts=parts)
        if is_koding_request or koding_context is not None:
            options: dict[str, object] = {"is_koding_request": is_koding_request}
            if koding_context is not None:
                options["koding_context"] = koding_context
            message.meta = type(message.meta).model_validate({"options": options})
        return cls(message)

    @property
    def is_koding_request(self) -> bool:
        """Whether the message was sent in koding mode."""
        return self._options.get("is_koding_request") is True

    @property
    def koding_context(self) -> str | None:
        """Facts about the koding mode."""
        context = self._options.get("koding_context")
        return context if isinstance(context, str) else None

    @property
    def _options(self) -> Mapping[str, object]:
        return json_object((self.message.meta.model_extra or {}).get("options")) or {}


class AssistantMessage(_View):
    """A message of the assistant as blocks, with its cost and duration."""

    roles = (Role.ASSISTANT,)

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
        """The provider's id of the response."""
        return self.message.meta.response_id

    @property
    def is_api_error_message(self) -> bool:
        """Whether the message represents a failure of the provider."""
        return self.message.meta.is_api_error_message


class ProgressMessage(BaseModel):
    """Progress of a running tool.

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
    """Return one message for each part, as interfaces show them; ids derive from the message's."""
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
