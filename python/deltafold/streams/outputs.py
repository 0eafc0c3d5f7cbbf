"""Outputs: the type of an answer, its JSON Schema, and the validation of a message.

In: a type or a JSON Schema, and the message of a model.  Out: the value, or `OutputError`.

Laws: the request and the validation have the same schema. A type whose values are not objects is
wrapped in an object with the member `value`, because providers ask for objects. An answer is
validated once, at its end.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import UnionType
from typing import Any, Final, Generic, Literal, TypeAlias, cast, overload

from pydantic import PydanticUserError, TypeAdapter, ValidationError, create_model
from typing_extensions import TypeVar

from deltafold.contract.kinds import FinishReason
from deltafold.errors.model_error import OutputDefect, OutputError
from deltafold.message.fallbacks import served_calls
from deltafold.message.messages import Message, TextPart, ToolCallPart
from deltafold.specs.tool_schema import split_schema

PartialView: TypeAlias = Mapping[str, object]
"""Type of a partial output for type checkers, if no other type is given."""

T = TypeVar("T")
P = TypeVar("P", default=PartialView)
K = TypeVar("K")

OutputMode: TypeAlias = Literal["auto", "schema", "tool"]

WRAPPED: Final = "value"
"""Member of the object that holds a value which is not an object."""

_NAME: Final = re.compile("[^a-zA-Z0-9_-]+")
_MAX_NAME: Final = 64
_UNNAMED: Final = "output"
_FENCE: Final = re.compile(r"```[^\n`]*\n(.*?)\n?\s*```", re.DOTALL)
_MAX_DEFECTS: Final = 10
"""Number of defects that a reason lists."""

_MAX_SHOWN: Final = 80
"""Number of characters of a wrong value that a reason shows."""

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


class Output(Generic[T, P]):
    """Type of a model's answer, for `output=` of `Model.stream` and `send_message`.

    >>> answer = model.send_message_sync(
    ...     "A soup, please.", output=Output(Recipe, strict=False)
    ... )

    Args:
        kind: a pydantic model, a dataclass, a TypedDict, another type that pydantic validates, or
            a JSON Schema. With a JSON Schema the output is plain data.
        partial: the type of partial outputs for type checkers; `deltafold types` writes it.
        name: the name of the schema or tool; None takes the name of the type.
        description: the purpose of the answer, for the model; None takes the docstring.
        strict: whether the provider must hold the model to the schema. None asks for it if the
            strict subset of the provider can express the type. False sends the schema unchanged.
        mode: "schema" uses the provider's own mechanism and "tool" a tool that the model must call;
            "auto" uses the provider's own mechanism if there is one.

    Raises:
        ValueError: pydantic has no schema for the type, or `strict` cannot be kept.
    """

    @overload
    def __init__(
        self: "Output[K, PartialView]",
        kind: type[K],
        *,
        name: str | None = None,
        description: str | None = None,
        strict: bool | None = None,
        mode: OutputMode = "auto",
    ) -> None: ...
    @overload
    def __init__(
        self,
        kind: type[T],
        *,
        partial: type[P],
        name: str | None = None,
        description: str | None = None,
        strict: bool | None = None,
        mode: OutputMode = "auto",
    ) -> None: ...
    @overload
    def __init__(
        self: "Output[object, PartialView]",
        kind: Mapping[str, object],
        *,
        name: str | None = None,
        description: str | None = None,
        strict: bool | None = None,
        mode: OutputMode = "auto",
    ) -> None: ...
    @overload
    def __init__(
        self,
        kind: UnionType,
        *,
        partial: type[P] | None = None,
        name: str | None = None,
        description: str | None = None,
        strict: bool | None = None,
        mode: OutputMode = "auto",
    ) -> None: ...
    def __init__(
        self,
        kind: object,
        *,
        partial: object = None,
        name: str | None = None,
        description: str | None = None,
        strict: bool | None = None,
        mode: OutputMode = "auto",
    ) -> None:
        if mode not in {"auto", "schema", "tool"}:
            raise ValueError(f'mode must be "auto", "schema" or "tool", not {mode!r}')
        if isinstance(kind, Mapping):
            form = _form_of_schema(cast("Mapping[str, object]", kind))
        else:
            form = _cached_form(kind)
        self.kind: object = kind
        self.partial: object = partial
        given = name or form.name
        self.name: str = _NAME.sub("_", given).strip("_")[:_MAX_NAME] or _UNNAMED
        self.description: str | None = description or form.description
        self.strict: bool | None = strict
        self.mode: OutputMode = mode
        self._form = form

    @staticmethod
    def of(given: Any) -> "Output[Any, Any]":  # noqa: ANN401 - any type
        """Return an `Output` as it is, and make one of anything else.

        Raises:
            ValueError: pydantic has no schema for the type.
        """
        if isinstance(given, Output):
            return given  # pyright: ignore[reportUnknownVariableType]
        return Output(given)

    @property
    def json_schema(self) -> dict[str, object]:
        """JSON Schema of the answer, an object schema; read only."""
        return self._form.schema

    @property
    def is_wrapped(self) -> bool:
        """True if the answer is an object whose member `value` is the output."""
        return self._form.is_wrapped

    @property
    def is_schema(self) -> bool:
        """True if the output was described by a JSON Schema instead of a type."""
        return self._form.adapter is None

    @property
    def root_type(self) -> object:
        """Type of the output in JSON Schema, None if it has several."""
        return self._form.root_type

    def of_message(self, message: Message) -> T:
        """Return the output that a message holds.

        The output is in the arguments of a call of the tool `name`, otherwise in the text.

        Raises:
            OutputError: the message does not hold the output.
        """
        calls = [call for call in served_calls(message) if call.tool_name == self.name]
        text = calls[0].raw_args_text if calls else message.text
        self._check_end(message, text, calls)
        if calls:
            text = _text_of_call(calls[0])
        else:
            text = text.strip()
            fenced = _FENCE.fullmatch(text)
            text = fenced[1] if fenced else text
        try:
            value = self._validated(text)
        except ValidationError as error:
            defects = error.errors(include_url=False, include_context=False)
            no_json = defects[0]["type"] == "json_invalid"
            is_cut = message.meta.finish_reason is FinishReason.LENGTH
            defect: OutputDefect = "invalid" if not no_json else "cut" if is_cut else "no_json"
            reason = _reason(defect, defects, text, wrapped=self.is_wrapped)
        except _InvalidError as error:
            defect, reason = "invalid", str(error)
        else:
            return value
        # Raised outside the handlers: pydantic's error has the same content in another form.
        raise OutputError(defect=defect, reason=reason, text=text, message=message)

    def _check_end(self, message: Message, text: str, calls: list[ToolCallPart]) -> None:
        """Raise for an answer without an output, whatever its text is."""
        defect = _defect(message, text, calls)
        if defect is None:
            return
        kind, reason = defect
        raise OutputError(defect=kind, reason=reason, text=text, message=message)

    def _validated(self, text: str) -> T:
        form = self._form
        if form.adapter is not None:
            value = form.adapter.validate_json(text)
            return cast("T", getattr(value, WRAPPED) if form.is_wrapped else value)
        value = _ANY.validate_json(text)
        _check_shape(value, form.schema)
        return cast("T", value[WRAPPED] if form.is_wrapped else value)

    def __repr__(self) -> str:
        return f"Output({self.name})"


@dataclass(frozen=True)  # with slots, Python 3.11 cannot call the class with type arguments
class Answer(Generic[T]):
    """A whole answer and its output.

    >>> answer = model.send_message_sync("A soup, please.", output=Recipe)
    >>> answer.output.title, answer.message.meta.usage

    Attributes:
        output: the validated output.
        message: the message with the output, the usage and the cost.
    """

    output: T
    message: Message


@dataclass(frozen=True, slots=True)
class _Form:
    """Schema and validator of a type.

    Attributes:
        adapter: the validator; None for a JSON Schema.
    """

    schema: dict[str, object]
    name: str
    description: str | None
    adapter: TypeAdapter[Any] | None
    is_wrapped: bool
    root_type: object


_ANY: Final = TypeAdapter[Any](Any)


def _cached_form(kind: object) -> _Form:
    try:
        hash(kind)
    except TypeError:  # a type with metadata of pydantic
        return _form_of_type.__wrapped__(kind, repr(kind))
    return _form_of_type(kind, repr(kind))


@lru_cache(256)
def _form_of_type(kind: Any, shown: str) -> _Form:  # noqa: ANN401 - any type
    """Return the form of a type. Equal types of other texts, such as unions, are different."""
    name = getattr(kind, "__name__", None) or shown
    if getattr(kind, "__args__", None):
        name = _UNNAMED
    try:
        adapter = TypeAdapter[Any](kind)
        description, schema = split_schema(adapter.json_schema())
        root_type = schema.get("type")
        if root_type == "object":
            return _Form(schema, name, description, adapter, is_wrapped=False, root_type="object")
        members: dict[str, Any] = {WRAPPED: (kind, ...)}
        wrapper: Any = create_model(_UNNAMED, **members)
        wrapped = TypeAdapter[Any](wrapper)
        _, schema = split_schema(wrapped.json_schema())
    except PydanticUserError as error:
        raise ValueError(f"output: pydantic has no schema for {shown}: {error}") from error
    return _Form(schema, name, None, wrapped, is_wrapped=True, root_type=root_type)


def _form_of_schema(given: Mapping[str, object]) -> _Form:
    schema = dict(given)
    name = str(schema.get("title") or _UNNAMED)
    description = schema.get("description")
    described = description if isinstance(description, str) else None
    root_type = schema.get("type")
    if root_type == "object":
        return _Form(schema, name, described, None, is_wrapped=False, root_type="object")
    wrapped: dict[str, object] = {
        "type": "object",
        "properties": {WRAPPED: schema},
        "required": [WRAPPED],
    }
    # References point to the definitions of the root.
    wrapped |= {place: schema.pop(place) for place in ("$defs", "definitions") if place in schema}
    return _Form(wrapped, name, described, None, is_wrapped=True, root_type=root_type)


def _defect(
    message: Message, text: str, calls: list[ToolCallPart]
) -> tuple[OutputDefect, str] | None:
    """Return the defect of an answer that ended without an output, and its reason."""
    ended = message.meta.finish_reason
    refusals = [part.text for part in message.parts if isinstance(part, TextPart) and part.refusal]
    if refusals or ended is FinishReason.REFUSAL:
        return "refused", f"The model refused: {''.join(refusals) or text or 'no text'}"
    if ended is FinishReason.CONTENT_FILTER:
        return "refused", "A filter of the provider stopped the answer."
    others = [call.tool_name for call in served_calls(message) if call not in calls]
    if others:
        return "tools_called", f"The model called tools first: {', '.join(others)}."
    if calls and calls[0].incomplete:
        return "cut", f"The answer was cut after {len(text)} characters of JSON."
    if not text.strip() and not calls:
        return "empty", "The answer is empty."
    return None


def _text_of_call(call: ToolCallPart) -> str:
    """Return the arguments of a call as JSON: the original text, unless the fold read it anew."""
    text = call.raw_args_text
    if call.arguments is not None and not text.lstrip().startswith("{"):
        return json.dumps(call.arguments)
    return text


class _InvalidError(Exception):
    """JSON that does not have the shape of a schema."""


def _check_shape(value: object, schema: Mapping[str, object]) -> None:
    """Check the type of the answer, its required members, and the types of its members."""
    if not isinstance(value, dict):
        raise _InvalidError(f"The answer must be an object (got {_shown(value)}).")
    members = cast("dict[str, object]", value)
    required = cast("list[str]", schema.get("required") or [])
    missing = [name for name in required if name not in members]
    if missing:
        raise _InvalidError(f"The answer lacks {', '.join(missing)}.")
    properties = cast("Mapping[str, object]", schema.get("properties") or {})
    for name, member in members.items():
        about = properties.get(name)
        kind = cast("Mapping[str, object]", about).get("type") if isinstance(about, Mapping) else 0
        if isinstance(kind, str) and kind in _TYPES and not _is_of_type(member, kind):
            raise _InvalidError(f"{name}: must be of type {kind} (got {_shown(member)}).")


def _is_of_type(value: object, kind: str) -> bool:
    if isinstance(value, bool):  # in Python a number
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _reason(defect: OutputDefect, defects: "list[Any]", text: str, *, wrapped: bool) -> str:
    """Return the defects and their places, in words for a model."""
    if defect != "invalid":
        what = str(defects[0]["msg"])
        if defect == "cut":
            return f"The answer was cut after {len(text)} characters: {what}."
        return f"The answer is not one JSON value: {what}. It begins with {_shown(text)}."
    lines: list[str] = []
    for one in defects[:_MAX_DEFECTS]:
        path = one["loc"][1:] if wrapped and one["loc"][:1] == (WRAPPED,) else one["loc"]
        place = ".".join(map(str, path)) or "the whole answer"
        shown = "" if one["type"] == "missing" else f" (got {_shown(one['input'])})"
        lines.append(f"{place}: {one['msg']}{shown}")
    if len(defects) > _MAX_DEFECTS:
        lines.append(f"and {len(defects) - _MAX_DEFECTS} more")
    return "The answer does not follow the schema. " + "; ".join(lines) + "."


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
