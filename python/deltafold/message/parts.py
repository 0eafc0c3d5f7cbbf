"""Parts of a message.

In: flat Python fields, the wire form `{kind, payload, providerState?}`, or the parts of a fold.
Out: frozen pydantic models.

Laws: the wire form of a part omits default values. Provider state is sent back unchanged, and only
to the provider that made it. The raw text of a tool call's arguments is always kept; the arguments
are parsed once, when first read.
"""

import base64
import json
import mimetypes
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, cast
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from deltafold._core import LazyDict
from deltafold.contract.call_arguments import InputFormat, parse_arguments
from deltafold.contract.exceptions import ContractError
from deltafold.contract.kinds import json_object
from deltafold.contract.wire_models import WireModel, blueprint, make_lazy


def _check_unicode(text: str) -> str:
    """Refuse lone surrogates, which no JSON and no provider takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"the text has a lone surrogate at character {error.start}"
        raise ValueError(message) from error
    return text


Text = Annotated[str, AfterValidator(_check_unicode)]

_ENVELOPE: Final = frozenset({"kind", "providerState", "provider_state"})
"""Members of a part outside of its payload."""


def _flatten(data: object) -> object:
    """Convert the wire form to one flat mapping; a flat mapping is unchanged."""
    members = json_object(data)
    if members is None or "payload" not in members:
        return data
    payload = json_object(members["payload"])
    if payload is None:
        message = f"payload must be an object, not {type(members['payload']).__name__}"
        raise ValueError(message)
    envelope = {name: value for name, value in members.items() if name != "payload"}
    misplaced = sorted(payload.keys() & _ENVELOPE)
    if misplaced:
        message = f"{misplaced[0]} stands beside payload, not inside it"
        raise ValueError(message)
    stray = sorted(envelope.keys() - _ENVELOPE)
    if stray:
        message = f"{stray[0]} stands inside payload, not beside it"
        raise ValueError(message)
    return {**envelope, **payload}


class _Part(WireModel):
    """Base class of all parts: provider state, both input forms, and the wire form of output."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    provider_state: dict[str, object] | None = None
    """`{dialect, modelId, data}`: data that the provider must receive unchanged in a replay."""

    @model_validator(mode="before")
    @classmethod
    def _accept_wire_form(cls, data: object) -> object:
        return _flatten(data)

    @model_serializer(mode="plain")
    def _to_wire(self) -> dict[str, object]:
        payload: dict[str, object] = {}
        for name, field in type(self).model_fields.items():
            if name in {"kind", "provider_state"}:
                continue
            value: object = getattr(self, name)
            if field.is_required() or value != field.default:
                payload[to_camel(name)] = value
        wire: dict[str, object] = {"kind": getattr(self, "kind"), "payload": payload}  # noqa: B009
        if self.provider_state is not None:
            wire["providerState"] = self.provider_state
        return wire

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe the wire form, which users of the schema send and receive."""
        flat = handler.resolve_ref_schema(
            super().__get_pydantic_json_schema__(core_schema, handler)
        )
        properties: dict[str, Any] = dict(flat.get("properties", {}))
        kind = properties.pop("kind", {})
        state = properties.pop("providerState", {})
        required = [name for name in flat.get("required", []) if name in properties]
        payload = {"type": "object", "properties": properties, "required": required}
        flat.pop("additionalProperties", None)
        flat["properties"] = {"kind": kind, "payload": payload, "providerState": state}
        flat["required"] = ["kind", "payload"]
        return flat


class TextPart(_Part):
    """Text for the reader. A refusal is text with `refusal`; citations are its `annotations`.

    >>> Message.assistant(TextPart(text="At 17:42.")).text
    'At 17:42.'
    """

    kind: Literal["text"] = "text"
    text: Text
    annotations: list[object] | None = None
    refusal: bool = False


class ThinkingPart(_Part):
    """Reasoning.

    `redacted`: the provider keeps text back; its encrypted form is in `provider_state`.

    >>> thinking = [part for part in message.parts if part.kind == "thinking"]
    >>> "".join(part.text for part in thinking)
    """

    kind: Literal["thinking"] = "thinking"
    text: Text
    redacted: bool = False


class ToolCallPart(_Part):
    """A tool call of the model.

    `raw_args_text` is the original text, "" if the provider sent none. `arguments` is the object in
    the text. Without an object it is None, and `parse_error` has the reason, or `incomplete` marks
    a text that was cut off; such a call must not be run. The arguments of a call in a running
    stream are None until the call ends. A call that is made by hand needs only one of `arguments`
    and `raw_args_text`. Whether a whole call may run depends on the end of its answer too:
    `Message.runnable_tool_calls` has those that may.

    >>> for call in message.runnable_tool_calls:
    ...     print(call.tool_name, call.arguments)
    """

    kind: Literal["tool_call"] = "tool_call"
    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any] | None
    raw_args_text: Text
    parse_error: str | None = None
    parse_warning: str | None = None
    incomplete: bool = False
    input_format: InputFormat = "json"

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tool_call_id: str,
            tool_name: str,
            arguments: dict[str, Any] | None = ...,
            raw_args_text: str = ...,
            parse_error: str | None = ...,
            parse_warning: str | None = ...,
            incomplete: bool = ...,
            input_format: InputFormat = ...,
            provider_state: dict[str, object] | None = ...,
        ) -> None: ...
    else:
        __dict__ = LazyDict("ToolCallPart")

    def __eq__(self, other: object) -> bool:
        """Compare the content, whether the arguments are parsed yet or not."""
        return isinstance(other, ToolCallPart) and self._to_wire() == other._to_wire()

    def __hash__(self) -> int:
        """Hash by id: equal calls have equal ids."""
        return hash(self.tool_call_id)

    @property
    def defect(self) -> str | None:
        """Reason why the call itself cannot be run, None for a whole call with a name.

        >>> ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text="[1]").defect
        'the arguments are not an object'
        """
        if not self.tool_name:
            return "the call names no tool"
        if self.incomplete:
            return "the call was cut off"
        if self.arguments is None:
            return self.parse_error or "the arguments have not ended"
        return None

    @model_validator(mode="before")
    @classmethod
    def _complete_arguments(cls, data: object) -> object:
        """Derive whichever of text and arguments was not given from the other."""
        members = json_object(_flatten(data))
        if members is None:
            return data
        fields = {_SNAKE_CASE.get(name, name): value for name, value in members.items()}
        arguments, incomplete = fields.get("arguments"), fields.get("incomplete", False)
        if incomplete is True and arguments is not None:
            message = "an incomplete call has no arguments"
            raise ValueError(message)
        if "raw_args_text" not in fields and "arguments" in fields:
            fields["raw_args_text"] = _write_arguments(
                arguments, fields.get("input_format", "json")
            )
        raw = fields.setdefault("raw_args_text", "")
        if "arguments" not in fields and isinstance(raw, str):
            text_input = fields.get("input_format") == "text"
            parsed = parse_arguments(raw, "text" if text_input else "json")
            values = (None, None, None) if incomplete is True else tuple(parsed)
            fields.update(
                (name, value)
                for name, value in zip(_PARSED_FIELDS, values, strict=True)
                if name not in fields
            )
        return fields


_PARSED_FIELDS: Final = ("arguments", "parse_error", "parse_warning")
"""Fields that are made of the raw text when first read, in the order of `ParsedArguments`."""

make_lazy(ToolCallPart, _PARSED_FIELDS)

_SNAKE_CASE: Final = {to_camel(name): name for name in ToolCallPart.model_fields}


def _write_arguments(arguments: object, input_format: object) -> str:
    if arguments is None:
        return ""
    if input_format == "text":
        return str((json_object(arguments) or {}).get("input", ""))
    try:
        return json.dumps(arguments, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, RecursionError) as error:
        message = f"arguments cannot be written as JSON: {error}"
        raise ValueError(message) from error


if TYPE_CHECKING:

    class RunnableToolCall(ToolCallPart):
        """A call that may run: type checkers know that its arguments are an object."""

        # Nobody gives such a call other arguments.
        arguments: dict[str, Any]  # pyright: ignore[reportIncompatibleVariableOverride]
else:
    RunnableToolCall = ToolCallPart


class ImagePart(_Part):
    """An image: base64 `data`, or a `url`.

    >>> question = Message.user("What is it?", ImagePart.from_file("tide.png"))
    >>> question.parts[1].mime_type
    'image/png'
    """

    kind: Literal["image"] = "image"
    mime_type: str
    data: str | None = None
    url: str | None = None

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.data is None) == (self.url is None):
            message = "an image has either data or url"
            raise ValueError(message)
        return self

    @classmethod
    def from_file(cls, path: str | PathLike[str], *, mime_type: str | None = None) -> Self:
        """Read an image into a part; without a given type, the name of the file determines it.

        Raises:
            OSError: the file cannot be read.
            ValueError: no type was given, and the name does not determine one.
        """
        return cls(mime_type=_type_of_file(path, mime_type), data=_read_base64(path))


def _type_of_file(path: str | PathLike[str], mime_type: str | None) -> str:
    known = mime_type or mimetypes.guess_type(Path(path).name)[0]
    if known is None:
        message = f"the name {Path(path).name!r} tells no type: pass mime_type"
        raise ValueError(message)
    return known


def _read_base64(path: str | PathLike[str]) -> str:
    return base64.b64encode(Path(path).read_bytes()).decode("ascii")


class FileRefPart(_Part):
    """A file by its path; `size` in bytes.

    The path is an address (http or https), a `data:` URL that holds the file, or the id or address
    that a provider's file store gave. A local path must be read before it can go to a provider:
    `from_file` does.

    >>> question = Message.user("Summarise it.", FileRefPart.from_file("tides.pdf"))
    """

    kind: Literal["file_ref"] = "file_ref"
    path: str
    mime_type: str | None = None
    size: int | None = Field(default=None, ge=0)

    @classmethod
    def from_file(cls, path: str | PathLike[str], *, mime_type: str | None = None) -> Self:
        """Read a file into a part: a `data:` URL with its type, name and bytes.

        Without a given type, the name of the file determines it.

        Raises:
            OSError: the file cannot be read.
            ValueError: no type was given, and the name does not determine one.
        """
        known = _type_of_file(path, mime_type)
        name = quote(Path(path).name, safe="")
        data = _read_base64(path)
        url = f"data:{known};name={name};base64,{data}"
        return cls(path=url, mime_type=known, size=Path(path).stat().st_size)


_CLIENT_BLOCK_TYPES: Final = (
    "local_shell_call",
    "apply_patch_call",
    "computer_call",
    "mcp_approval_request",
)


class ProviderPart(_Part):
    """A content block or item that only the dialect of its provider supports, kept unchanged.

    >>> part = ProviderPart(
    ...     dialect="openai-responses", block={"type": "mcp_approval_request"}
    ... )
    >>> part.awaits_caller
    True
    """

    kind: Literal["provider"] = "provider"
    dialect: str
    block: dict[str, object]

    @property
    def image(self) -> ImagePart | None:
        """The picture that the provider generated, None for another block.

        The block itself is what goes back to the provider.
        """
        picture = self.block.get("result")
        if self.block.get("type") != "image_generation_call" or not isinstance(picture, str):
            return None
        form = self.block.get("output_format")
        kind = form if isinstance(form, str) else "png"
        return ImagePart(mime_type=f"image/{kind}", data=picture)

    @property
    def awaits_caller(self) -> bool:
        """Whether the block itself asks the caller to act: to run something, or to approve it.

        A `shell_call` runs at the caller unless it names a container. A `tool_search_call` runs at
        the caller only if it contains "client".
        """
        block_type = self.block.get("type")
        if block_type == "shell_call":
            environment = json_object(self.block.get("environment"))
            return environment is None or environment.get("type") == "local"
        if block_type == "tool_search_call":
            return self.block.get("execution") == "client"
        return block_type in _CLIENT_BLOCK_TYPES


ContentPart: TypeAlias = Annotated[
    TextPart | ImagePart | FileRefPart | ProviderPart, Field(discriminator="kind")
]
"""Parts that the result of a tool may contain."""


class ToolResultPart(_Part):
    """Result of one tool call. `content` is text, an object, or parts.

    >>> result = Message.tool_result("call_1", "17:42")
    >>> result.parts[0].content
    '17:42'
    """

    kind: Literal["tool_result"] = "tool_result"
    tool_call_id: str
    is_error: bool = False
    status: str | None = None
    content: Text | dict[str, object] | list[ContentPart]

    @model_serializer(mode="plain")
    def _to_wire(self) -> dict[str, object]:
        payload: dict[str, object] = {"toolCallId": self.tool_call_id, "isError": self.is_error}
        if self.status is not None:
            payload["status"] = self.status
        payload["content"] = self.content
        wire: dict[str, object] = {"kind": self.kind, "payload": payload}
        if self.provider_state is not None:
            wire["providerState"] = self.provider_state
        return wire


MessagePart: TypeAlias = Annotated[
    TextPart
    | ThinkingPart
    | ToolCallPart
    | ToolResultPart
    | ImagePart
    | FileRefPart
    | ProviderPart,
    Field(discriminator="kind"),
]
"""Union of all parts, discriminated by `kind`.

>>> from pydantic import TypeAdapter
>>> part = TypeAdapter(deltafold.MessagePart).validate_python(
...     {"kind": "text", "payload": {"text": "Hi"}}
... )
>>> part.text
'Hi'
"""


@cache
def _whole_part() -> TypeAdapter[ImagePart | FileRefPart | ProviderPart]:
    """Return the validator of whole parts, which few streams have."""
    return TypeAdapter(
        Annotated[ImagePart | FileRefPart | ProviderPart, Field(discriminator="kind")]
    )


def joined_text(parts: Iterable[MessagePart], kind: type[TextPart] | type[ThinkingPart]) -> str:
    """Return the texts of all parts of one kind, joined without a separator."""
    return "".join([part.text for part in parts if isinstance(part, kind)])


def part_from_wire(part: Mapping[str, object]) -> MessagePart:
    """Make the part of a `part` delta: an image, a file or a provider's block, in its wire form.

    Raises:
        ContractError: the part has another kind, or members are missing or of the wrong type;
            `field` is "part".
    """
    try:
        return _whole_part().validate_python(part)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(["part", *(str(step) for step in first["loc"])])
        message = f"{place}: {first['msg']}"
        raise ContractError(message, field="part") from error


TEXT_BLUEPRINT: Final = blueprint(
    TextPart, kind="text", text="", annotations=None, refusal=False, provider_state=None
)
THINKING_BLUEPRINT: Final = blueprint(
    ThinkingPart, kind="thinking", text="", redacted=False, provider_state=None
)
TOOL_CALL_BLUEPRINT: Final = blueprint(
    ToolCallPart,
    kind="tool_call",
    tool_call_id="",
    tool_name="",
    raw_args_text="",
    incomplete=False,
    input_format="json",
    provider_state=None,
)
"""Blueprint of a folded call; the parsed members are computed when first read."""
OPEN_CALL_BLUEPRINT: Final = blueprint(
    ToolCallPart, **TOOL_CALL_BLUEPRINT.fields, **dict.fromkeys(_PARSED_FIELDS)
)
"""Blueprint of a call whose arguments have not ended, or never will; they are not parsed."""


def parts_from_fold(parts: list[dict[str, object]]) -> list[MessagePart]:
    """Build the parts that a fold has assembled, without validation.

    Each is a dict of Python field names with its "kind", or `{"kind": "part", "part": wire form}`
    for a part that came whole.
    """
    return [_BUILDERS[cast("str", part["kind"])](part) for part in parts]


def _build_tool_call(part: dict[str, Any]) -> ToolCallPart:
    fields = {name: value for name, value in part.items() if name != "ended"}
    is_open = part["incomplete"] or not part["ended"]
    builder = OPEN_CALL_BLUEPRINT if is_open else TOOL_CALL_BLUEPRINT
    return cast("ToolCallPart", builder.build(fields))


def parse_errors_from_fold(parts: list[dict[str, Any]]) -> list[dict[str, object]]:
    """List the ended calls whose arguments are not an object, as `{toolCallId, message}`."""
    calls = [part for part in parts if part["kind"] == "tool_call"]
    ended = [call for call in calls if call["ended"] and not call["incomplete"]]
    found = [
        (call["tool_call_id"], parse_arguments(call["raw_args_text"], call["input_format"]).error)
        for call in ended
    ]
    return [{"toolCallId": name, "message": error} for name, error in found if error is not None]


def _build_whole(part: dict[str, Any]) -> MessagePart:
    return part_from_wire(part["part"])


_BUILDERS: Final[Mapping[str, Callable[[dict[str, Any]], MessagePart]]] = {
    "text": TEXT_BLUEPRINT.build,
    "thinking": THINKING_BLUEPRINT.build,
    "tool_call": _build_tool_call,
    "part": _build_whole,
}
