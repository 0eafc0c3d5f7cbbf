"""The parts of a message.

In: flat Python fields, the wire form `{kind, payload, providerState?}`, or what a fold has
assembled.  Out: frozen pydantic models.

Laws: a part's wire form omits what has its default; provider state is what one provider must get
back byte for byte, and only that provider; the raw text of a tool call's arguments is kept always,
the arguments are parsed once, when first read.
"""

import base64
import json
import mimetypes
from collections.abc import Callable, Iterable, Mapping
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

from deltafold.arguments import InputFormat, parse_arguments
from deltafold.contract import WireModel, blueprint, json_object
from deltafold.exceptions import ContractError


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
"""Members of a part that stand beside its payload."""


def _flatten(data: object) -> object:
    """Bring the wire form to one flat mapping; what is flat already passes."""
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
    """What all parts share: provider state, both forms of input, and the wire form of output."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    provider_state: dict[str, object] | None = None
    """`{dialect, modelId, data}`: what that provider must get back unchanged in a replay."""

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
        """Describe the wire form, which is what a reader of the schema sends and receives."""
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
    """Text for the reader. A refusal is text with `refusal`; citations are its `annotations`."""

    kind: Literal["text"] = "text"
    text: Text
    annotations: list[object] | None = None
    refusal: bool = False


class ThinkingPart(_Part):
    """Reasoning.

    `redacted`: the provider keeps text back; its encrypted form is in `provider_state`.
    """

    kind: Literal["thinking"] = "thinking"
    text: Text
    redacted: bool = False


class ToolCallPart(_Part):
    """The model asks for a tool to be run.

    `raw_args_text` is what the provider sent, "" when nothing was; `arguments` is the object it
    holds, or None with `parse_error` (or `incomplete`: the text was cut off, and nobody runs half a
    call). While a call of a running stream has not ended, its arguments are None without either.
    Made by hand, one of `arguments` and `raw_args_text` is enough.
    """

    kind: Literal["tool_call"] = "tool_call"
    tool_call_id: str
    tool_name: str
    arguments: dict[str, object] | None
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
            arguments: dict[str, object] | None = ...,
            raw_args_text: str = ...,
            parse_error: str | None = ...,
            parse_warning: str | None = ...,
            incomplete: bool = ...,
            input_format: InputFormat = ...,
            provider_state: dict[str, object] | None = ...,
        ) -> None: ...
    else:  # a checker would take the method as leave for any attribute

        def __getattr__(self, name: str) -> object:
            """Parse the arguments when they, or what came of it, are first read."""
            if name not in _PARSED_FIELDS:
                return super().__getattr__(name)
            parsed = parse_arguments(self.raw_args_text, self.input_format)
            self.__dict__.update(zip(_PARSED_FIELDS, parsed, strict=True))
            return self.__dict__[name]

    def __eq__(self, other: object) -> bool:
        """Compare what is said, parsed already or not."""
        return isinstance(other, ToolCallPart) and self._to_wire() == other._to_wire()

    def __hash__(self) -> int:
        """Hash by id: equal calls have equal ids."""
        return hash(self.tool_call_id)

    def __repr_args__(self) -> Any:  # noqa: ANN401 - pydantic's own hook
        """Show the arguments too, parsed already or not."""
        _ = self.arguments
        return super().__repr_args__()

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
"""In the order of `ParsedArguments`."""

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


class ImagePart(_Part):
    """An image: base64 `data`, or a `url`."""

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
        """Read an image into a part; its type is guessed from the name unless it is given.

        Raises:
            OSError: the file cannot be read.
            ValueError: no type was given, and the name tells none.
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
    """

    kind: Literal["file_ref"] = "file_ref"
    path: str
    mime_type: str | None = None
    size: int | None = Field(default=None, ge=0)

    @classmethod
    def from_file(cls, path: str | PathLike[str], *, mime_type: str | None = None) -> Self:
        """Read a file into a part: a `data:` URL with the type, the name and the bytes of it.

        The type is guessed from the name unless it is given.

        Raises:
            OSError: the file cannot be read.
            ValueError: no type was given, and the name tells none.
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
    """A content block or item that only its provider's dialect understands, kept as it came."""

    kind: Literal["provider"] = "provider"
    dialect: str
    block: dict[str, object]

    @property
    def awaits_caller(self) -> bool:
        """Whether the block, by itself, asks the caller to act: to run something, or to approve it.

        A `shell_call` runs at the caller unless it names a container; a `tool_search_call` only
        where it says "client".
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
"""What the result of a tool may consist of."""


class ToolResultPart(_Part):
    """What running one tool call gave. `content` is text, an object, or parts."""

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
"""Any part, told apart by `kind`."""

_WHOLE_PART: Final[TypeAdapter[ImagePart | FileRefPart | ProviderPart]] = TypeAdapter(
    Annotated[ImagePart | FileRefPart | ProviderPart, Field(discriminator="kind")]
)


def joined_text(parts: Iterable[MessagePart], kind: type[TextPart] | type[ThinkingPart]) -> str:
    """Return the texts of all parts of one kind, joined without a separator."""
    return "".join(part.text for part in parts if isinstance(part, kind))


def part_from_wire(part: Mapping[str, object]) -> MessagePart:
    """Make the part of a `part` delta: an image, a file or a provider's block, in its wire form.

    Raises:
        ContractError: it is none of these, or members are missing or of the wrong type; `field` is
        "part".
    """
    try:
        return _WHOLE_PART.validate_python(part)
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
"""A call that was folded; what is parsed of its arguments is computed when first read."""


def parts_from_fold(parts: list[dict[str, object]]) -> list[MessagePart]:
    """Build the parts that a fold has assembled, without validation.

    Each is a dict of Python field names with its "kind", or `{"kind": "part", "part": wire form}`
    for a part that came whole.
    """
    return [_BUILDERS[cast("str", part["kind"])](part) for part in parts]


def _build_tool_call(part: dict[str, Any]) -> ToolCallPart:
    fields = {name: value for name, value in part.items() if name != "ended"}
    if part["incomplete"] or not part["ended"]:
        fields.update(dict.fromkeys(_PARSED_FIELDS))
    return cast("ToolCallPart", TOOL_CALL_BLUEPRINT.build(fields))


def _build_whole(part: dict[str, Any]) -> MessagePart:
    return part_from_wire(part["part"])


_BUILDERS: Final[Mapping[str, Callable[[dict[str, Any]], MessagePart]]] = {
    "text": TEXT_BLUEPRINT.build,
    "thinking": THINKING_BLUEPRINT.build,
    "tool_call": _build_tool_call,
    "part": _build_whole,
}
