"""JSON Schemas of functions and of types, for tools and outputs.

In: a function, a model class, or another type.  Out: a description, and a schema of the values.

Laws: the schema states the names, types, defaults and required parameters of the signature. Titles
that pydantic derives from names are left out.
"""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, cast, get_type_hints

from pydantic import BaseModel, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

_NAMELESS: Final = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
    inspect.Parameter.POSITIONAL_ONLY: "",
}
"""Parameters that an object of arguments cannot fill, with their mark."""

_SECTION: Final = re.compile(r"^(\w[\w ]*):\s*$")
_ARGUMENT: Final = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


def schema_of_function(function: Callable[..., object]) -> tuple[str | None, dict[str, object]]:
    """Return the summary of a function's docstring, and the schema of its parameters.

    Raises:
        ValueError: a parameter cannot be passed by name, or has no JSON Schema.
    """
    summary, _ = _read_docstring(inspect.getdoc(function) or "")
    called = getattr(function, "__name__", type(function).__name__)
    try:
        return summary, schema_of_model(model_of_function(function))
    except PydanticUserError as error:
        raise ValueError(f"{called}(): a parameter has no JSON Schema: {error}") from error


def model_of_function(function: Callable[..., object]) -> type[BaseModel]:
    """Return a model whose fields have the parameters of a function as their aliases.

    Raises:
        ValueError: a parameter cannot be passed by name.
        PydanticUserError: pydantic cannot validate the type of a parameter.
    """
    called = getattr(function, "__name__", type(function).__name__)
    _, about = _read_docstring(inspect.getdoc(function) or "")
    hints = hints_of(function)
    fields: dict[str, Any] = {}
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind in _NAMELESS:
            shown = f"{_NAMELESS[parameter.kind]}{parameter.name}"
            raise ValueError(
                f"{called}(): {shown} cannot be passed by name, and a model passes every argument "
                f"by name: give each parameter a name"
            )
        # The field's own name is made up, so that no parameter's name can clash with pydantic's.
        fields[f"p{position}"] = _field(parameter, hints, about.get(parameter.name))
    model: type[BaseModel] = create_model(called, **fields)
    return model


def hints_of(function: Callable[..., object]) -> dict[str, Any]:
    """Return the types of a function's parameters."""
    try:
        return get_type_hints(function, include_extras=True)
    except TypeError:  # a callable object: its hints are those of its call
        return get_type_hints(type(function).__call__, include_extras=True)


def schema_of_model(model: type[BaseModel]) -> dict[str, object]:
    """Return the schema of a model's fields, without titles."""
    return split_schema(model.model_json_schema())[1]


def split_schema(schema: dict[str, Any]) -> tuple[str | None, dict[str, object]]:
    """Return the description of a schema that pydantic made, and the rest without titles."""
    plain = cast("dict[str, Any]", _without_titles(schema))
    if "$ref" in plain:  # a model that holds itself; tools want the object itself
        name = str(plain.pop("$ref")).rpartition("/")[2]
        plain = {**plain["$defs"][name], **plain}
    description = plain.pop("description", None)
    if plain.get("type") == "object":
        plain.setdefault("properties", {})
    return description, plain


def described(model: type[BaseModel]) -> str | None:
    """Return the docstring of the model class itself, None without one."""
    return inspect.cleandoc(model.__doc__) if model.__doc__ else None


def _field(
    parameter: inspect.Parameter, hints: dict[str, Any], description: str | None
) -> tuple[Any, FieldInfo]:
    annotation: Any = hints.get(parameter.name, Any)
    default: object = parameter.default
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], parameter.empty
    settings: dict[str, Any] = {"alias": parameter.name}
    if description is not None and not _has_description(annotation):
        settings["description"] = description
    if default is not parameter.empty:
        settings["default"] = default
    return annotation, cast("FieldInfo", Field(**settings))


def _has_description(annotation: object) -> bool:
    metadata: tuple[object, ...] = getattr(annotation, "__metadata__", ())
    return any(isinstance(item, FieldInfo) and item.description for item in metadata)


def _read_docstring(text: str) -> tuple[str | None, dict[str, str]]:
    """Split a docstring of Google's style into the text before its sections and its `Args:`."""
    summary: list[str] = []
    about: dict[str, list[str]] = {}
    section, argument = "", ""
    for line in text.splitlines():
        header = _SECTION.match(line)
        if header:
            section = header.group(1)
        elif not section:
            summary.append(line)
        elif section in {"Args", "Arguments", "Parameters"} and line.strip():
            begun = _ARGUMENT.match(line.strip())
            if begun and len(line) - len(line.lstrip()) <= 4:  # noqa: PLR2004 - the style's indent
                argument = begun.group(1)
                about[argument] = [begun.group(2)]
            elif argument:
                about[argument].append(line.strip())
    said = "\n".join(summary).strip()
    return said or None, {name: " ".join(lines).strip() for name, lines in about.items()}


def _without_titles(schema: object) -> object:
    """Remove titles, but keep a property with the name `title`."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, object] = {}
    for name, value in cast("dict[str, object]", schema).items():
        if name == "title" and isinstance(value, str):
            continue
        if name in {"properties", "$defs"} and isinstance(value, dict):
            members = cast("dict[str, object]", value)
            kept[name] = {member: _without_titles(inner) for member, inner in members.items()}
        elif name in {"default", "const", "enum", "examples"}:
            kept[name] = value
        else:
            kept[name] = _without_titles(value)
    return kept
