"""The block of a part, and the part of a block.

In: a part of a message, or a block of the Messages API.  Out: the other of the two.

Law: the parser and the renderer of anthropic-messages convert; a block keeps its part if the block
does not show all of it.
"""

from typing import Final, cast

from deltafold.blocks.content import (
    Base64Source,
    Block,
    ImageBlock,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    UrlSource,
    block_from_dict,
)
from deltafold.dialects import dialect_of
from deltafold.dialects.anthropic_messages.render import DIALECT, part_blocks
from deltafold.dialects.media import has_source
from deltafold.dialects.rendered import Identifiers, Object, Place, Rendering
from deltafold.message.messages import (
    ContentPart,
    FileRefPart,
    ImagePart,
    MessagePart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)


def block_of(part: MessagePart) -> Block:
    """Return the block of a part.

    >>> block_of(deltafold.TextPart(text="At 17:42.")).to_dict()
    {'type': 'text', 'text': 'At 17:42.'}
    """
    block = _shown(part)
    try:
        is_whole = part_of(block) == part
    except ValueError:
        is_whole = False
    return block if is_whole else block.keeping(part)


def _shown(part: MessagePart) -> Block:
    """Return the block that shows the part: as the renderer writes it, or as near as possible."""
    if isinstance(part, ToolResultPart):
        return _shown_result(part)
    if isinstance(part, ImagePart | FileRefPart) and not has_source(part):
        return _other(part)
    rendered = part_blocks((PLACE, part), Role.USER, rendering_of(part))
    is_replaced = isinstance(part, ImagePart | FileRefPart) and rendered[0]["type"] == "text"
    return _near(part) if is_replaced or not rendered else _rendered(part, rendered[0])


def _rendered(part: MessagePart, rendered: Object) -> Block:
    try:
        block = block_from_dict(rendered)
    except ValueError:  # a block of a parsed request, whose members were not checked
        return _other(part)
    if isinstance(part, ToolCallPart) and part.arguments is None:
        return block.model_copy(update={"input": None})
    return block


def _near(part: MessagePart) -> Block:
    """Return the nearest block of a part that the API does not take."""
    match part:
        case TextPart():
            return TextBlock(text=part.text)
        case ThinkingPart() if not part.redacted:
            return ThinkingBlock(thinking=part.text)
        case ImagePart(data=str() as data):
            return ImageBlock(source=Base64Source(media_type=part.mime_type, data=data))
        case ImagePart(url=str() as url):
            return ImageBlock(source=UrlSource(url=url))
        case _:
            return _other(part)


def _other(part: MessagePart) -> OtherBlock:
    return OtherBlock.model_validate({"type": "other", "kind": part.kind})


def _shown_result(part: ToolResultPart) -> Block:
    inside = [block_of(one) for one in part.content] if isinstance(part.content, list) else None
    shell = part if inside is None else part.model_copy(update={"content": ""})
    block = _rendered(part, part_blocks((PLACE, shell), Role.TOOL, rendering_of(part))[0])
    if not isinstance(block, ToolResultBlock):
        return block
    content = block.content if inside is None else inside
    return block.model_copy(update={"status": part.status, "content": content})


PLACE: Final = Place(0, 0)
"""Place of a part outside of a request."""

_API: Final = dialect_of(DIALECT)
_CONFIG: Final = _API.config_class(model_id="any")


def rendering_of(part: MessagePart) -> Rendering:
    """Return the state of rendering a part, of whichever model the part is.

    Ids and names stay as they are, even where the API has rules for them.
    """
    rendering = Rendering(DIALECT, (), (), _CONFIG, stream=False, identifiers=Identifiers())
    if part.provider_state is not None:
        rendering.model_id = str(part.provider_state.get("modelId"))
    return rendering


def part_of(block: Block, role: Role | None = None) -> MessagePart:
    """Return the part of a block.

    >>> part_of(TextBlock(text="At 17:42.")).text
    'At 17:42.'

    Args:
        block: the block.
        role: the role of its message, which determines the part of an unknown block.

    Raises:
        ValueError: the parser cannot read a member of the block.
    """
    if block.kept_part is not None:
        return block.kept_part
    if role is None:
        is_unknown = isinstance(block, OtherBlock)
        role = Role.ASSISTANT if is_unknown else block.role or Role.USER
    part = _read(block, role)
    if not isinstance(block, ToolResultBlock) or not isinstance(part, ToolResultPart):
        return part
    content = part.content
    if isinstance(content, list) and isinstance(block.content, list):
        pairs = zip(block.content, content, strict=True)
        kept = [read if inner.kept_part is None else inner.kept_part for inner, read in pairs]
        content = cast("list[ContentPart]", kept)
    return part.model_copy(update={"content": content, "status": block.status})


def _read(block: Block, role: Role) -> MessagePart:
    message = {"role": role.value, "content": [block.to_dict()]}
    return _API.parse({"messages": [message]}).messages[0].parts[0]
