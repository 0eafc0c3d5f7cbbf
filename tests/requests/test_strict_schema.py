"""The strict subset of JSON Schema: closed objects, and limits in descriptions."""

import copy
from typing import Any

import pytest
from pydantic import TypeAdapter

from deltafold.specs.strict_schema import LIMITS, strict_schema
from recipes import Price, Recipe

TEXT: dict[str, object] = {"type": "string"}


def object_of(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


def closed(**properties: object) -> dict[str, object]:
    return {
        **object_of(**properties),
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("given", "strict"),
    [
        (object_of(a=TEXT), closed(a=TEXT)),
        (object_of(a={**TEXT, "default": "b", "title": "A"}), closed(a=TEXT)),
        (object_of(a=object_of(b=TEXT)), closed(a=closed(b=TEXT))),
        (object_of(a={"oneOf": [TEXT]}), closed(a={"anyOf": [TEXT]})),
        (object_of(a={"allOf": [TEXT], "title": "A"}), closed(a=TEXT)),
        (
            object_of(a={**TEXT, "maxLength": 3, "description": "Name"}),
            closed(a={**TEXT, "description": "Name; maxLength: 3"}),
        ),
        (
            object_of(a={**TEXT, "format": "uri"}),
            closed(a={**TEXT, "description": 'format: "uri"'}),
        ),
        (object_of(a={**TEXT, "format": "date"}), closed(a={**TEXT, "format": "date"})),
    ],
)
def test_objects_are_closed(given: dict[str, object], strict: dict[str, object]) -> None:
    before = copy.deepcopy(given)
    assert strict_schema(given) == strict
    assert given == before


@pytest.mark.parametrize(
    "given",
    [
        {"type": "array", "items": TEXT},
        {"type": "object"},
        object_of(a={}),
        object_of(a=True),
        object_of(a={"type": "object", "additionalProperties": {"type": "integer"}}),
        object_of(a={"type": "array", "prefixItems": [TEXT]}),
        object_of(a={"allOf": [TEXT, TEXT]}),
        object_of(a={**TEXT, "not": {"const": "b"}}),
        object_of(a={"$ref": "#/$defs/Missing", "description": "A"}),
    ],
)
def test_other_schemas_have_no_strict_form(given: dict[str, object]) -> None:
    assert strict_schema(given) is None


def test_a_provider_keeps_its_limits() -> None:
    member = {"type": "integer", "minimum": 1}
    kept = strict_schema(object_of(a=member), keeps=LIMITS)
    assert kept == closed(a=member)
    pattern = {**TEXT, "pattern": "(?!a).*"}
    moved: Any = strict_schema(object_of(a=pattern), keeps=LIMITS)
    assert moved["properties"]["a"]["description"] == 'pattern: "(?!a).*"'


def test_a_reference_stands_alone() -> None:
    place = {**object_of(b=TEXT), "description": "Place."}
    schema = {
        **object_of(a={"$ref": "#/$defs/Place"}, c={"$ref": "#/$defs/Place", "description": "C"}),
        "$defs": {"Place": place},
    }
    strict: Any = strict_schema(schema)
    assert strict["properties"]["a"] == {"$ref": "#/$defs/Place"}
    assert strict["properties"]["c"] == {**closed(b=TEXT), "description": "C"}
    assert strict["$defs"]["Place"] == {**closed(b=TEXT), "description": "Place."}


def test_only_some_members_stay_required() -> None:
    given = {**object_of(a=TEXT, b=TEXT), "required": ["a"]}
    strict: Any = strict_schema(given, requires_all=False)
    assert strict["required"] == ["a"]


def test_a_definition_that_holds_itself() -> None:
    node = object_of(next={"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]})
    given = {**object_of(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}
    assert strict_schema(given) is not None
    assert strict_schema(given, recursive=False) is None


def test_schemas_of_pydantic() -> None:
    assert strict_schema(TypeAdapter(Recipe).json_schema()) is None  # its root is a reference
    assert strict_schema(TypeAdapter(Price).json_schema()) is not None
