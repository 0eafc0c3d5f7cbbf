"""Strict subset of JSON Schema, which providers accept where they hold a model to a schema.

In: a JSON Schema.  Out: a schema of the subset, or None if the subset cannot express it.

Laws: a value of the strict schema is a value of the schema. A keyword that the subset does not have
moves into the description, so that the model still reads it. The input is not changed.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from deltafold.specs.references import Schema, joined, names_of_references, target_of

_KEPT: Final = frozenset({"$ref", "type", "enum", "const", "description"})
"""Keywords without a schema in them that every provider has."""

_INERT: Final = frozenset(
    {"title", "default", "examples", "discriminator", "deprecated", "$schema"}
)
"""Keywords that restrict no value."""

_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

LIMITS: Final = frozenset(
    {
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    }
)
"""Limits of values that OpenAI has, and Anthropic has not."""

_HINTS: Final = LIMITS | {"format", "minLength", "maxLength", "uniqueItems"}
"""Keywords that a description can replace, because the answer is validated at its end."""

_OF_OBJECTS: Final = frozenset({"properties", "required", "additionalProperties"})

_MAX_DEPTH: Final = 100

_MAX_SCHEMAS: Final = 20_000
"""Schemas in a closed one: copies of definitions that hold each other multiply."""


def strict_schema(
    schema: Mapping[str, object],
    *,
    keeps: frozenset[str] = frozenset(),
    requires_all: bool = True,
    recursive: bool = True,
) -> Schema | None:
    """Return a schema whose objects are closed; None if the subset cannot express it.

    >>> strict_schema(
    ...     {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}
    ... )
    {'type': 'object', 'properties': {'a': {'type': 'string', 'description': 'maxLength: 3'}}, \
'required': ['a'], 'additionalProperties': False}

    Args:
        schema: the schema; its references point to its own `$defs`.
        keeps: the keywords of `LIMITS` that the provider has.
        requires_all: whether each property is required.
        recursive: whether a definition may contain itself.
    """
    closing = _Closing(schema, keeps, requires_all=requires_all)
    try:
        closed = closing.root()
    except _OutsideSubsetError:
        return None
    if not recursive and _is_recursive(cast("Schema", closed.get("$defs", {}))):
        return None
    return closed


class _OutsideSubsetError(Exception):
    """A schema that the subset cannot express."""


class _Closing:
    """One conversion."""

    def __init__(
        self, root: Mapping[str, object], keeps: frozenset[str], *, requires_all: bool
    ) -> None:
        self._root = root
        self._keeps = keeps
        self._requires_all = requires_all
        self._count = 0

    def root(self) -> Schema:
        """Return the closed root and its definitions."""
        given = cast("Mapping[str, Schema]", self._root.get("$defs", {}))
        body = {name: value for name, value in self._root.items() if name != "$defs"}
        closed = self._closed(body, 0)
        if closed.get("type") != "object":
            raise _OutsideSubsetError
        if given:
            closed["$defs"] = {name: self._closed(value, 0) for name, value in given.items()}
        return closed

    def _closed(self, schema: object, depth: int) -> Schema:
        self._count += 1
        is_too_large = depth > _MAX_DEPTH or self._count > _MAX_SCHEMAS
        if is_too_large or not isinstance(schema, Mapping):
            raise _OutsideSubsetError
        members = {
            name: value
            for name, value in cast("Mapping[str, Any]", schema).items()
            if name not in _INERT
        }
        reference = members.get("$ref")
        if reference is not None and len(members) > 1:  # the subset takes a reference alone
            return self._closed(self._resolved(members), depth + 1)
        if not members.keys() & {"$ref", "type", "enum", "const", "anyOf", "oneOf", "allOf"}:
            raise _OutsideSubsetError  # any value at all
        closed: Schema = {}
        hints: list[str] = []
        for name, value in members.items():
            kept = self._kept(name, value, depth)
            closed |= kept
            if not kept and name in _HINTS:
                hints.append(f"{name}: {json.dumps(value, ensure_ascii=False)}")
            elif not kept and name not in _OF_OBJECTS:
                raise _OutsideSubsetError
        if members.get("type") == "object":
            self._close_object(closed, members, depth)
        if hints:
            closed["description"] = "; ".join(filter(None, (closed.get("description"), *hints)))
        return closed

    def _kept(self, name: str, value: Any, depth: int) -> Schema:  # noqa: ANN401 - JSON
        """Return the members in place of one member; none for a member that the subset lacks."""
        match name:
            case "anyOf" | "oneOf":
                return {"anyOf": [self._closed(one, depth + 1) for one in value]}
            case "allOf" if len(value) == 1:
                return self._closed(self._resolved(value[0]), depth + 1)
            case "items":
                return {name: self._closed(value, depth + 1)}
            case "format":
                return {name: value} if value in _FORMATS else {}
            case _:
                is_kept = name in self._keeps and not _looks_around(name, value)
                return {name: value} if name in _KEPT or is_kept else {}

    def _close_object(self, closed: Schema, members: Schema, depth: int) -> None:
        if members.get("additionalProperties", False) is not False:
            raise _OutsideSubsetError
        if "properties" not in members:  # any object
            raise _OutsideSubsetError
        properties = cast("Mapping[str, object]", members["properties"])
        closed["properties"] = {
            name: self._closed(value, depth + 1) for name, value in properties.items()
        }
        given = cast("list[str]", members.get("required", []))
        closed["required"] = list(properties) if self._requires_all else list(given)
        closed["additionalProperties"] = False

    def _resolved(self, schema: Schema) -> Schema:
        if "$ref" not in schema:
            return schema
        target = target_of(self._root, schema["$ref"])
        if target is None:
            raise _OutsideSubsetError
        return joined(target, schema)


def _looks_around(name: str, value: object) -> bool:
    """Return whether a pattern has a group that engines of providers refuse."""
    return name == "pattern" and "(?" in str(value)


def _is_recursive(definitions: Mapping[str, object]) -> bool:
    uses = {name: set(names_of_references(schema)) for name, schema in definitions.items()}
    for start, used in uses.items():
        seen: set[str] = set()
        waiting = set(used)
        while waiting:
            name = waiting.pop()
            if name == start:
                return True
            if name not in seen:
                seen.add(name)
                waiting |= uses.get(name, set())
    return False
