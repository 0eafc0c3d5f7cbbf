"""Content blocks of the Messages API: the types of blocks and of their sources.

In: JSON of the API, members by name, or the objects of its SDK.  Out: frozen pydantic models, and
the JSON of the API.

Laws: a missing member or a member of a wrong type is an error that names its place. Unknown
members, blocks and sources survive.
Source: the Messages API reference, content blocks; docs/protocols/anthropic-messages.md#blocks,
docs/protocols/anthropic-messages.md#request.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationError,
    model_serializer,
    model_validator,
)

from deltafold.message.messages import MessagePart, Role

Object: TypeAlias = dict[str, object]

T = TypeVar("T", bound=BaseModel)


_OTHER: Final = "<other>"
"""Tag of an unknown type.

Tags are in angle brackets, which no member has: `_place_of` takes them out of a path.
"""


def _known(*types: str) -> Discriminator:
    """Return the discriminator of a union: the tag is the type, or `<other>`."""

    def tag(value: object) -> str:
        is_object = isinstance(value, Mapping)
        kind: object = (
            cast("Object", value).get("type") if is_object else getattr(value, "type", None)
        )
        is_other = isinstance(value, OtherBlock | OtherSource) or kind not in types
        return _OTHER if is_other else f"<{kind}>"

    return Discriminator(tag)


class _Open(BaseModel):
    """Object of the Messages API: typed members, and unknown members as they are."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _accept_objects_of_an_sdk(cls, data: object) -> object:
        if isinstance(data, BaseModel) and not isinstance(data, _Open):
            return data.model_dump(mode="json", exclude_unset=True)
        return dict(cast("Object", data)) if isinstance(data, Mapping) else data

    @model_serializer(mode="plain")
    def _to_json(self) -> Object:
        wire: Object = {}
        for name, field in type(self).model_fields.items():
            value: object = getattr(self, name)
            if name == "type" or (not field.exclude and value != field.default):
                wire[name] = value
        return wire | (self.model_extra or {})

    def to_dict(self) -> Object:
        """Return the JSON of the Messages API."""
        return self.model_dump(mode="json")

    def __eq__(self, other: object) -> bool:
        """Compare the members."""
        return (
            isinstance(other, _Open)
            and type(self) is type(other)
            and self.__dict__ == other.__dict__
            and self.model_extra == other.model_extra
        )

    __hash__ = None  # type: ignore[assignment]  # members may be objects


class Base64Source(_Open):
    """Data of an image or a document, in base64.

    >>> source = Base64Source(media_type="image/png", data="iVBORw0KGgo=")
    >>> ImageBlock(source=source).to_dict()["source"]
    {'type': 'base64', 'media_type': 'image/png', 'data': 'iVBORw0KGgo='}
    """

    type: Literal["base64"] = "base64"
    media_type: str
    data: str


class UrlSource(_Open):
    """Address of an image or a document.

    >>> ImageBlock(source=UrlSource(url="https://example.com/tide.png")).to_dict()["source"]
    {'type': 'url', 'url': 'https://example.com/tide.png'}
    """

    type: Literal["url"] = "url"
    url: str = Field(min_length=1)


class FileSource(_Open):
    """Id of an image or a document in the provider's file store.

    >>> DocumentBlock(source=FileSource(file_id="file_1")).to_dict()["source"]
    {'type': 'file', 'file_id': 'file_1'}
    """

    type: Literal["file"] = "file"
    file_id: str = Field(min_length=1)


class PlainTextSource(_Open):
    """Text of a document.

    >>> DocumentBlock(source=PlainTextSource(data="High tide: 17:42.")).to_dict()["source"]
    {'media_type': 'text/plain', 'type': 'text', 'data': 'High tide: 17:42.'}
    """

    type: Literal["text"] = "text"
    media_type: str = "text/plain"
    data: str

    @model_serializer(mode="plain")
    def _to_json(self) -> Object:
        return {"media_type": self.media_type, **super()._to_json()}


class OtherSource(_Open):
    """A source of another type, as it is.

    >>> block = block_from_dict({"type": "image", "source": {"type": "pool", "key": "k"}})
    >>> isinstance(block.source, OtherSource), block.source.to_dict()
    (True, {'type': 'pool', 'key': 'k'})
    """

    type: str


ImageSource: TypeAlias = Annotated[
    Annotated[Base64Source, Tag("<base64>")]
    | Annotated[UrlSource, Tag("<url>")]
    | Annotated[FileSource, Tag("<file>")]
    | Annotated[OtherSource, Tag(_OTHER)],
    _known("base64", "url", "file"),
]
"""Union of the sources of images."""

DocumentSource: TypeAlias = Annotated[
    Annotated[Base64Source, Tag("<base64>")]
    | Annotated[UrlSource, Tag("<url>")]
    | Annotated[FileSource, Tag("<file>")]
    | Annotated[PlainTextSource, Tag("<text>")]
    | Annotated[OtherSource, Tag(_OTHER)],
    _known("base64", "url", "file", "text"),
]
"""Union of the sources of documents."""


class ContentBlock(_Open):
    """Base class of all blocks.

    >>> block = TextBlock(text="A long text.", cache_control={"type": "ephemeral"})
    >>> isinstance(block, ContentBlock), block.cache_control
    (True, {'type': 'ephemeral'})

    Attributes:
        cache_control: the cache mark, such as `{"type": "ephemeral"}`.
    """

    role: ClassVar[Role | None] = None
    """The only role whose messages hold the block; None if any message holds it."""

    cache_control: dict[str, object] | None = None
    _part: MessagePart | None = PrivateAttr(default=None)

    @property
    def kept_part(self) -> MessagePart | None:
        """The part, if the block does not show all of it (raw arguments, foreign state)."""
        return self._part

    def keeping(self, part: MessagePart) -> Self:
        """Return a copy of the block that keeps its part."""
        block = self.model_copy()
        block._part = part  # noqa: SLF001 - the same class
        return block


class TextBlock(ContentBlock):
    """Text, in any language, with its citations.

    >>> TextBlock(text="When is high tide?").to_dict()
    {'type': 'text', 'text': 'When is high tide?'}
    """

    type: Literal["text"] = "text"
    text: str
    citations: list[object] | None = None


class ImageBlock(ContentBlock):
    """An image: base64 data, an address, or an id of the file store.

    >>> block = block_of(
    ...     deltafold.ImagePart(mime_type="image/png", url="https://example.com/tide.png")
    ... )
    >>> block.type, block.source.url
    ('image', 'https://example.com/tide.png')
    """

    type: Literal["image"] = "image"
    source: ImageSource


class DocumentBlock(ContentBlock):
    """A document: a PDF or a text, with its title; `citations` allows the model to cite it.

    >>> DocumentBlock(
    ...     source=UrlSource(url="https://example.com/tides.pdf"), title="Tides"
    ... ).to_dict()
    {'type': 'document', 'source': {'type': 'url', 'url': 'https://example.com/tides.pdf'},
    'title': 'Tides'}
    """

    type: Literal["document"] = "document"
    source: DocumentSource
    title: str | None = None
    context: str | None = None
    citations: dict[str, object] | None = None


class ToolUseBlock(ContentBlock):
    """A tool call of the assistant.

    `input` is None if the arguments are not an object: the call must not be run.

    >>> block = ToolUseBlock(id="call_1", name="tide", input={"port": "Brest"})
    >>> part_of(block).arguments
    {'port': 'Brest'}
    """

    role: ClassVar[Role | None] = Role.ASSISTANT
    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: dict[str, object] | None

    @model_serializer(mode="plain")
    def _to_json(self) -> Object:
        return {**super()._to_json(), "input": self.input or {}}


class ThinkingBlock(ContentBlock):
    """Reasoning. The API takes it back with its signature only.

    >>> part_of(ThinkingBlock(thinking="It is spring tide.", signature="c2ln")).kind
    'thinking'
    """

    role: ClassVar[Role | None] = Role.ASSISTANT
    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str | None = None


class RedactedThinkingBlock(ContentBlock):
    """Reasoning in encrypted form.

    >>> part_of(RedactedThinkingBlock(data="ZW5jcnlwdGVk")).redacted
    True
    """

    role: ClassVar[Role | None] = Role.ASSISTANT
    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str


class ToolResultBlock(ContentBlock):
    """Result of a tool: text or blocks, and whether it is an error.

    >>> ToolResultBlock(tool_use_id="call_1", content="17:42").to_dict()
    {'type': 'tool_result', 'tool_use_id': 'call_1', 'content': '17:42'}

    Attributes:
        status: the status of the execution, such as "success"; the API has no member for it.
    """

    role: ClassVar[Role | None] = Role.USER
    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: "Content" = ""
    is_error: bool = False
    status: str | None = Field(default=None, exclude=True)


class OtherBlock(ContentBlock):
    """A block of another type, as it is: a server tool, a search result, a new block of the API.

    A part without a form in the API is such a block, too: its type is "other".

    >>> block = block_from_dict(
    ...     {"type": "server_tool_use", "id": "s1", "name": "web_search"}
    ... )
    >>> type(block).__name__, block.to_dict()["name"]
    ('OtherBlock', 'web_search')
    """

    type: str


Block: TypeAlias = Annotated[
    Annotated[TextBlock, Tag("<text>")]
    | Annotated[ImageBlock, Tag("<image>")]
    | Annotated[DocumentBlock, Tag("<document>")]
    | Annotated[ToolUseBlock, Tag("<tool_use>")]
    | Annotated[ThinkingBlock, Tag("<thinking>")]
    | Annotated[RedactedThinkingBlock, Tag("<redacted_thinking>")]
    | Annotated[ToolResultBlock, Tag("<tool_result>")]
    | Annotated[OtherBlock, Tag(_OTHER)],
    _known("text", "image", "document", "tool_use", "thinking", "redacted_thinking", "tool_result"),
]
"""Union of all blocks; the type of a block determines its class.

>>> from pydantic import TypeAdapter
>>> TypeAdapter(Block).validate_python({"type": "text", "text": "At 17:42."}).text
'At 17:42.'
"""

Content: TypeAlias = Annotated[
    Annotated[str, Tag("<str>")] | Annotated[list[Block], Tag("<list>")],
    Discriminator(lambda value: "<str>" if isinstance(value, str) else "<list>"),
]
"""Content of a message or of a tool result: text, or blocks."""

ToolResultBlock.model_rebuild()


class _OneBlock(BaseModel):
    block: Block


def block_from_dict(data: object, place: str = "block") -> Block:
    """Read a block of the Messages API: its JSON, or an object of the API's SDK.

    >>> block_from_dict({"type": "text", "text": "At 17:42."}).text
    'At 17:42.'

    Raises:
        ValueError: a member is missing or has the wrong type; the error names its place, such as
            `content[2].source.data`.
    """
    return checked(_OneBlock, {"block": data}, place, 1).block


def checked(model: type[T], data: object, place: str, skip: int = 0) -> T:
    """Validate JSON; `skip` members of the path are replaced by `place`.

    Raises:
        ValueError: a member is missing or has the wrong type; the error names its place.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = _place_of(place, first["loc"][skip:])
        wanted = "Input should be an object" if first["type"] in _NO_OBJECT else first["msg"]
        got = "" if first["type"] == "missing" else f" (got {type(first['input']).__name__})"
        raise ValueError(f"{where}: {wanted}{got}") from error


_NO_OBJECT: Final = frozenset({"dict_type", "model_type", "model_attributes_type"})
"""Types of pydantic's errors for a value that is not an object."""


def _place_of(place: str, steps: Sequence[int | str]) -> str:
    for step in steps:
        if isinstance(step, int):
            place += f"[{step}]"
        elif not step.startswith("<"):
            place += f".{step}"
    return place.removeprefix(".")
