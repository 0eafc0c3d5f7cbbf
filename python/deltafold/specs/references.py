"""References of a JSON Schema: how to find their targets, and how to separate them from keywords.

In: a schema, whose references point into itself.  Out: the target of one, or the schema with a
definition of its own for each reference that has other keywords beside it.

Laws: the input is not changed. A schema becomes no larger than its own size and `_MOST_COPIED`
values.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from deltafold.contract.kinds import json_array, json_object

Schema: TypeAlias = dict[str, Any]

_PREFIX: Final = "#/$defs/"

_ODD: Final = re.compile(r"[^\w.-]")
"""Characters that a reference would have to escape."""

_INDEX: Final = re.compile("[0-9]{1,9}")
"""Place in a list, as a reference writes it."""

VALUES: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are no schemas."""

NAMES_TO_SCHEMAS: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "definitions", "$defs"}
)
"""Keywords whose values are objects of schemas."""

_MOST_COPIED: Final = 20_000
"""Values after which no further definition is copied."""


def target_of(root: Mapping[str, object], reference: str) -> Mapping[str, object] | None:
    """Return the schema that a reference points to, None if the root has none there."""
    start, *path = reference.split("/")
    place: object = root if start == "#" else None
    for name in path:
        if isinstance(place, list):
            items = cast("list[object]", place)
            place = items[int(name)] if _INDEX.fullmatch(name) and int(name) < len(items) else None
        else:
            members = json_object(place) or {}
            place = members.get(name.replace("~1", "/").replace("~0", "~"))
    return json_object(place)


def beside(reference: Mapping[str, object]) -> Schema:
    """Return the keywords beside a reference."""
    return {name: value for name, value in reference.items() if name != "$ref"}


def joined(target: Mapping[str, object], reference: Mapping[str, object]) -> Schema:
    """Return the keywords of a definition, replaced by those beside a reference to it.

    Names of properties and of required ones are those of both.
    """
    others = beside(reference)
    members = {**target, **others}
    base, added = json_object(target.get("properties")), json_object(others.get("properties"))
    if base and added:
        members["properties"] = {**base, **added}
    if required := json_array(target.get("required")):
        names = [*required, *json_array(others.get("required"))]
        members["required"] = list(dict.fromkeys(one for one in names if isinstance(one, str)))
    return members


def with_lone_references(schema: Mapping[str, object]) -> Schema:
    """Return a schema in which each reference points into `$defs` and has nothing beside it.

    >>> with_lone_references(
    ...     {
    ...         "properties": {"to": {"$ref": "#/$defs/Port", "description": "where"}},
    ...         "$defs": {"Port": {"type": "string", "description": "a port"}},
    ...     }
    ... )
    {'properties': {'to': {'$ref': '#/$defs/Port_2'}}, '$defs': {'Port_2': {'type': 'string', \
'description': 'where'}}}

    A reference without a target stays as it is, and definitions that nothing uses are left out.

    Source: docs/protocols/openai-chat.md#request.
    """
    return _Separation(schema).root()


class _Separation:
    """One conversion."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root
        self._given = json_object(root.get("$defs")) or {}
        self._taken = set(self._given)
        self._numbers: dict[str, int] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._waiting: list[tuple[str, Mapping[str, object]]] = []
        self._values = 0

    def root(self) -> Schema:
        body = {name: value for name, value in self._root.items() if name != "$defs"}
        separate = cast("Schema", self._separate(body))
        definitions = self._each(self._given)
        self._values = 0
        while self._waiting:
            name, members = self._waiting.pop()
            definitions[name] = self._copy(members) if self._values < _MOST_COPIED else members
        used = _reached(separate, definitions)
        kept = {name: schema for name, schema in definitions.items() if name in used}
        return {**separate, "$defs": kept} if kept else separate

    def _separate(self, schema: object) -> object:
        self._values += 1
        if isinstance(schema, list):
            return [self._separate(item) for item in cast("list[object]", schema)]
        members = json_object(schema)
        if members is None:
            return schema
        name = self._name_of(members)
        if name is not None:
            return {"$ref": _PREFIX + name}
        return {keyword: self._inside(keyword, value) for keyword, value in members.items()}

    def _inside(self, keyword: str, value: object) -> object:
        if keyword in VALUES:
            return value
        members = json_object(value) if keyword in NAMES_TO_SCHEMAS else None
        return self._separate(value) if members is None else self._each(members)

    def _each(self, schemas: Mapping[str, object]) -> Schema:
        return {name: self._separate(schema) for name, schema in schemas.items()}

    def _copy(self, members: Mapping[str, object]) -> object:
        """Return the definition of a reference, joined with the keywords beside it."""
        target = target_of(self._root, str(members["$ref"])) or {}
        whole = joined(target, members)
        whole.pop("$defs", None)
        return self._separate(whole)

    def _name_of(self, members: Mapping[str, object]) -> str | None:
        """Return the name of the definition for a reference, None if it stays as it is."""
        reference = members.get("$ref")
        if not isinstance(reference, str):
            return None
        others = beside(members)
        if not others and (reference == "#" or reference.startswith(_PREFIX)):
            return None
        key = (reference, json.dumps(others, sort_keys=True, default=repr))
        if key not in self._names and target_of(self._root, reference) is not None:
            self._names[key] = self._new_name(_ODD.sub("_", reference.rpartition("/")[2]))
            self._waiting.append((self._names[key], members))
        return self._names.get(key)

    def _new_name(self, base: str) -> str:
        name, number = base, self._numbers.get(base, 1)
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._numbers[base] = number
        self._taken.add(name)
        return name


def names_of_references(schema: object) -> Iterator[str]:
    """Yield the name of the definition of each reference in a schema."""
    members = json_object(schema)
    own = None if members is None else members.get("$ref")
    if isinstance(own, str):
        name = own.removeprefix(_PREFIX).partition("/")[0]
        yield name.replace("~1", "/").replace("~0", "~")
    for value in json_array(schema) if members is None else members.values():
        yield from names_of_references(value)


def _reached(schema: object, definitions: Mapping[str, object]) -> set[str]:
    """Return the names of the definitions that a schema uses, also through others."""
    reached: set[str] = set()
    waiting = list(names_of_references(schema))
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += names_of_references(definitions.get(name))
    return reached
