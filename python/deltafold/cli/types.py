"""Types of partial outputs: a module of `TypedDict`s, for type checkers.

In: a type that pydantic validates.  Out: the text of a module with the type `<Name>Partial`.

Laws: every member is optional, because an output begins empty. The types are those of JSON, because
a partial output is not validated. A string is a `str` also where it will be one of several words,
because the string grows. The same type gives the same text.
"""

import json
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any, Final, cast

from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR, EXIT_USAGE, complain
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import json_object
from deltafold.streams.outputs import WRAPPED, Output

_SCALARS: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
_NO_NAME: Final = re.compile(r"\W+")


def print_types(place: str, file: str | None) -> int:
    """Print the types, or compare them with a file; returns the exit code."""
    if str(Path.cwd()) not in sys.path:  # the installed script does not look there
        sys.path.insert(0, str(Path.cwd()))
    try:
        text = module_of_type(place)
        if file is None:
            print(text, end="")
            return EXIT_DONE
        is_same = Path(file).read_text("utf-8") == text
    except (MisuseError, OSError) as problem:
        complain(problem)
        return EXIT_USAGE
    if not is_same:
        complain(f"{file} is not what `deltafold types {place}` writes")
        return EXIT_ERROR
    return EXIT_DONE


def module_of_type(place: str) -> str:
    """Return the module with the partial type of `package.module:Name`.

    Raises:
        MisuseError: the name does not exist, or pydantic has no schema for the type.
    """
    module, _, name = place.partition(":")
    if not module or not name:
        raise MisuseError(f"types: {place!r} must be package.module:Name, such as shop:Order")
    try:
        found: Any = import_module(module)
        for attribute in name.split("."):
            found = getattr(found, attribute)
        output = Output.of(found)
    except ModuleNotFoundError as error:
        raise MisuseError(
            f"types: {place}: {error}; it is looked for in this folder and among what is installed"
        ) from error
    except Exception as error:
        # The module of a user may fail in any way while it is imported.
        raise MisuseError(f"types: {place}: {type(error).__name__}: {error}") from error
    return _Module(place, name.rpartition(".")[2], output).text()


class _Module:
    """Text of a module while it is written."""

    def __init__(self, place: str, name: str, output: Output[Any, Any]) -> None:
        self._place = place
        self._schema = output.json_schema
        self._is_wrapped = output.is_wrapped
        self._root = f"{name}Partial"
        self._classes: dict[str, str] = {}
        definitions = json_object(self._schema.get("$defs")) or {}
        self._definitions = cast("Mapping[str, Mapping[str, object]]", definitions)
        self._names: dict[str, str] = {}
        for definition, schema in self._definitions.items():
            is_root = schema.get("properties", ()) == self._schema.get("properties")
            self._names[definition] = self._root if is_root else self._free_name(definition)

    def text(self) -> str:
        """Return the module."""
        if self._is_wrapped:
            members = cast("Mapping[str, object]", self._schema["properties"])
            alias = self._type(members[WRAPPED], self._root)
            end = f"{self._root}: TypeAlias = {_quoted(alias)}\n"
        else:
            self._add_class(self._root, self._schema)
            end = ""
        # The class of a definition may name further ones.
        for definition, name in list(self._names.items()):
            if self._is_object(self._definitions[definition]):
                self._add_class(name, self._definitions[definition])
        names = ["TypeAlias"] if end else []
        names += ["TypedDict"] if self._classes else []
        head = f'"""Partial outputs of {self._place}, written by `deltafold types`."""\n\n'
        imports = f"from typing import {', '.join(names)}\n\n"
        parts = [*self._classes.values(), end] if end else [*self._classes.values()]
        gap = "\n" if self._classes else ""
        return head + imports + gap + "\n\n".join(parts)

    def _free_name(self, name: str) -> str:
        plain = _NO_NAME.sub("_", name).strip("_") or "Value"
        free = f"{plain}Partial"
        while free in {self._root, *self._names.values()}:
            plain += "_"
            free = f"{plain}Partial"
        return free

    def _is_object(self, schema: Mapping[str, object]) -> bool:
        return "properties" in schema and bool(schema["properties"])

    def _add_class(self, name: str, schema: Mapping[str, object]) -> None:
        if name in self._classes:
            return
        self._classes[name] = ""  # keeps the place before the classes of its members
        properties = cast("Mapping[str, object]", schema.get("properties") or {})
        types = {
            key: self._type(value, f"{name.removesuffix('Partial')}_{key}")
            for key, value in properties.items()
        }
        if all(key.isidentifier() and not iskeyword(key) for key in types):
            lines = [f"    {key}: {_quoted(kind)}" for key, kind in types.items()]
            body = "\n".join(lines)
            about = f'    """Partial value of `{name.removesuffix("Partial")}`."""\n\n'
            self._classes[name] = f"class {name}(TypedDict, total=False):\n{about}{body}\n"
            return
        lines = [
            f"        {json.dumps(key, ensure_ascii=False)}: {_quoted(kind)},"
            for key, kind in types.items()
        ]
        body = "\n".join(lines)
        self._classes[name] = (
            f'{name} = TypedDict(\n    "{name}",\n    {{\n{body}\n    }},\n    total=False,\n)\n'
        )

    def _type(self, schema: object, inner: str) -> str:  # noqa: PLR0911 - one for each form
        """Return the type of the values of a schema; `inner` names an object without a name."""
        members = json_object(schema)
        if not members:
            return "object"
        reference = members.get("$ref")
        if isinstance(reference, str):
            definition = reference.rpartition("/")[2]
            if not self._is_object(self._definitions[definition]):
                return self._type(self._definitions[definition], inner)
            return self._names[definition]
        for name in ("anyOf", "oneOf", "allOf"):
            if name in members:
                return self._union(cast("list[object]", members[name]), inner)
        if "const" in members or "enum" in members:
            given = cast("list[object]", members.get("enum", [members.get("const")]))
            return " | ".join(dict.fromkeys(_type_of_value(value) for value in given))
        kind = members.get("type")
        if isinstance(kind, list):
            kinds = cast("list[str]", kind)
            return self._union([{**members, "type": one} for one in kinds], inner)
        if kind == "array":
            items = members.get("prefixItems") or [members.get("items")]
            return f"list[{self._union(cast('list[object]', items), inner)}]"
        if kind == "object":
            return self._type_of_object(members, inner)
        return _SCALARS.get(str(kind), "object")

    def _type_of_object(self, members: Mapping[str, object], inner: str) -> str:
        if self._is_object(members):
            name = self._free_name(inner)
            self._names[f"#{inner}"] = name
            self._definitions = {**self._definitions, f"#{inner}": members}
            self._add_class(name, members)
            return name
        more = members.get("additionalProperties")
        return f"dict[str, {self._type(more, inner)}]"

    def _union(self, schemas: list[object], inner: str) -> str:
        return " | ".join(dict.fromkeys(self._type(one, inner) for one in schemas))


def _type_of_value(value: object) -> str:
    return "None" if value is None else type(value).__name__


def _quoted(kind: str) -> str:
    """Return a type as a forward reference where it names a class of the module."""
    return f'"{kind}"' if "Partial" in kind else kind
