"""Types of unions in a JSON Schema, in the form that Moonshot takes.

In: a schema.  Out: the schema with the type of each union inside of its branches.

Laws: the input is not changed. A branch keeps a type of its own. The root keeps its type, which
the parameters of a tool must have.
Source: docs/protocols/openai-chat.md#request.
"""

from collections.abc import Mapping
from typing import Final, cast

from deltafold.contract.kinds import json_array, json_object
from deltafold.specs.references import NAMES_TO_SCHEMAS, VALUES, Schema

_UNIONS: Final = ("anyOf", "oneOf")


def with_types_in_branches(schema: Mapping[str, object]) -> Schema:
    """Return a schema in which a `type` beside `anyOf` or `oneOf` is in their branches instead.

    >>> with_types_in_branches(
    ...     {"items": {"type": "object", "anyOf": [{"required": ["a"]}]}}
    ... )
    {'items': {'anyOf': [{'type': 'object', 'required': ['a']}]}}

    A branch with a type of its own, or one that is a reference, stays as it is.
    """
    return {keyword: _inside(keyword, value) for keyword, value in schema.items()}


def _inside(keyword: str, value: object) -> object:
    if keyword in VALUES:
        return value
    members = json_object(value) if keyword in NAMES_TO_SCHEMAS else None
    if members is not None:
        return {name: _moved(inner) for name, inner in members.items()}
    return _moved(value)


def _moved(schema: object) -> object:
    """Return a schema that is not the root."""
    if isinstance(schema, list):
        return [_moved(item) for item in cast("list[object]", schema)]
    members = json_object(schema)
    if members is None:
        return schema
    unions = {name: json_array(members[name]) for name in _UNIONS if json_array(members.get(name))}
    if "type" in members and unions:
        typed = {name: [_typed(one, members["type"]) for one in unions[name]] for name in unions}
        members = {name: value for name, value in {**members, **typed}.items() if name != "type"}
    return {keyword: _inside(keyword, value) for keyword, value in members.items()}


def _typed(branch: object, kind: object) -> object:
    members = json_object(branch)
    if members is None or "type" in members or "$ref" in members:
        return branch
    return {"type": kind, **members}
