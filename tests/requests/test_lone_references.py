"""References of schemas that stand alone, as Moonshot wants them."""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pydantic
import pytest

import deltafold
from deltafold.contract.kinds import json_array, json_object
from deltafold.dialects import dialect_of
from deltafold.specs.references import target_of, with_lone_references
from deltafold.specs.strict_schema import strict_schema
from deltafold.specs.union_types import with_types_in_branches

PORT = {"type": "object", "properties": {"name": {"type": "string"}}, "description": "a port"}


def references(schema: object) -> Iterator[Mapping[str, Any]]:
    """Yield each object of a schema that is a reference."""
    members = json_object(schema)
    if members is not None and isinstance(members.get("$ref"), str):
        yield members
    for value in json_array(schema) if members is None else members.values():
        yield from references(value)


def separated(given: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy(given)
    schema = with_lone_references(given)
    assert given == before
    for reference in references(schema):
        assert list(reference) == ["$ref"]
        assert reference["$ref"].startswith("#/$defs/") or reference["$ref"] == "#"
        assert target_of(schema, reference["$ref"]) is not None
    return schema


def at(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the definition that a property points to."""
    found = target_of(schema, schema["properties"][name]["$ref"])
    assert found is not None
    return dict(found)


def test_the_keywords_of_both_make_a_definition() -> None:
    schema = separated(
        {
            "properties": {
                "to": {"$ref": "#/$defs/Port", "description": "where"},
                "from": {"$ref": "#/$defs/Port"},
            },
            "$defs": {"Port": PORT},
        }
    )
    assert at(schema, "to") == {**PORT, "description": "where"}
    assert at(schema, "from") == PORT


def test_properties_and_required_names_are_joined() -> None:
    beside = {"properties": {"berth": {"type": "integer"}}, "required": ["berth"]}
    base = {**PORT, "required": ["name"]}
    schema = separated(
        {"properties": {"to": {"$ref": "#/$defs/Port", **beside}}, "$defs": {"Port": base}}
    )
    assert set(at(schema, "to")["properties"]) == {"name", "berth"}
    assert at(schema, "to")["required"] == ["name", "berth"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"properties": {"a": {"$ref": "#/definitions/P"}}, "definitions": {"P": PORT}}, "a"),
        ({"properties": {"p": PORT, "a": {"$ref": "#/properties/p"}}}, "a"),
        ({"properties": {"p": {"anyOf": [PORT]}, "a": {"$ref": "#/properties/p/anyOf/0"}}}, "a"),
        ({"properties": {"a": {"$ref": "#/$d/x~1y"}}, "$d": {"x/y": PORT}}, "a"),
    ],
    ids=["definitions", "property", "alternative", "escaped"],
)
def test_a_reference_into_another_place_points_into_the_definitions(
    given: dict[str, Any], name: str
) -> None:
    assert at(separated(given), name) == PORT


def test_a_reference_into_a_definition_keeps_it() -> None:
    given = {"properties": {"a": {"$ref": "#/$defs/Port/properties/name"}}, "$defs": {"Port": PORT}}
    assert separated(given) == given


@pytest.mark.parametrize("odd", ["#/anyOf/" + "9" * 5_000, "#/anyOf/²", "#/properties/0", "x", ""])
def test_an_odd_reference_or_odd_names_raise_nothing(odd: str) -> None:
    port: dict[str, object] = {"required": [{"a": 1}, 1, "name"], "properties": 0}
    uses: dict[str, object] = {"$ref": "#/$defs/Port", "required": [0, "to"]}
    lone: dict[str, object] = {"$ref": odd, "title": "t"}
    given: dict[str, Any] = {
        "type": "object",
        "anyOf": [{"type": "object"}],
        "properties": {"a": lone, "b": uses},
        "$defs": {"Port": port},
    }
    schema = with_lone_references(given)
    assert schema["properties"]["a"] == lone
    assert at(schema, "b")["required"] == ["name", "to"]
    assert strict_schema(given) is None


def test_a_definition_that_holds_itself_ends() -> None:
    node = {"properties": {"next": {"$ref": "#/$defs/Node", "description": "next"}}}
    schema = separated({"properties": {"head": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}})
    inner = at(at(schema, "head") | {"$defs": schema["$defs"]}, "next")
    assert inner["description"] == "next"
    assert inner["properties"]["next"] == schema["$defs"]["Node"]["properties"]["next"]


def test_two_names_of_each_other_end() -> None:
    pair = {"A": {"$ref": "#/$defs/B", "title": "a"}, "B": {"$ref": "#/$defs/A", "title": "b"}}
    separated({"properties": {"x": {"$ref": "#/$defs/A", "title": "x"}}, "$defs": pair})


def test_names_and_values_are_no_references() -> None:
    given: dict[str, Any] = {
        "properties": {
            "$ref": {"type": "string"},
            "default": {"$ref": "#/$defs/Port", "title": "t"},
            "shape": {"const": {"$ref": "#/$defs/Port", "title": "t"}},
        },
        "$defs": {"Port": PORT},
    }
    schema = with_lone_references(given)
    assert schema["properties"]["$ref"] == {"type": "string"}
    assert schema["properties"]["shape"] == given["properties"]["shape"]
    assert at(schema, "default") == {**PORT, "title": "t"}


def test_a_reference_without_a_target_stays() -> None:
    given = {"properties": {"a": {"$ref": "https://example.com/a.json", "title": "t"}}}
    assert with_lone_references(given) == given


def doubling(depth: int) -> dict[str, Any]:
    """Return definitions each of which holds the next one twice."""
    twice = [
        {name: {"$ref": f"#/$defs/d{index + 1}", "description": name} for name in ("left", "right")}
        for index in range(depth)
    ]
    levels = {f"d{index}": {"type": "object", "properties": two} for index, two in enumerate(twice)}
    levels[f"d{depth}"] = {"type": "object", "properties": {}}
    top = {"a": {"$ref": "#/$defs/d0", "description": "a"}}
    return {"type": "object", "properties": top, "$defs": levels}


def test_definitions_that_hold_each_other_twice_do_not_multiply() -> None:
    given = doubling(60)
    assert len(json.dumps(separated(given))) < 4 * len(json.dumps(given))
    assert strict_schema(given) is None


def test_copies_of_a_large_definition_have_an_end() -> None:
    large = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5_000)}}
    uses = {f"u{n}": {"$ref": "#/$defs/Large", "description": str(n)} for n in range(1_000)}
    schema = with_lone_references({"properties": uses, "$defs": {"Large": large}})
    assert len(json.dumps(schema)) < 10 * len(json.dumps(large))
    assert all(at(schema, name) for name in uses)


class Port(pydantic.BaseModel):
    """A port of call."""

    name: str


class Order(pydantic.BaseModel):
    """Order a berth."""

    port: Port = pydantic.Field(description="where")


@pytest.mark.parametrize("vendor", ["moonshot/kimi-k3", "groq/kimi-k3"])
def test_the_vendor_decides(vendor: str) -> None:
    model = deltafold.load_model(vendor, api_key="k")
    tools = [deltafold.ToolSpec.from_pydantic(Order)]
    rendered = dialect_of("openai-chat").render(
        [deltafold.Message.user("hi")], tools, model.get_config()
    )
    body: Any = rendered.body
    parameters = body["tools"][0]["function"]["parameters"]
    if vendor.startswith("groq"):
        assert parameters == tools[0].parameter_schema
    else:
        assert at(parameters, "port")["description"] == "where"
        assert set(at(parameters, "port")["properties"]) == {"name"}
        assert list(parameters["properties"]["port"]) == ["$ref"]


def test_the_schema_of_an_output_stands_alone_too() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/P", "title": "t"}}}
    given: dict[str, Any] = {"name": "n", "schema": {**schema, "$defs": {"P": PORT}}}
    chat = dialect_of("openai-chat")
    config = chat.config_class.model_validate(
        {
            "model_id": "kimi-k3",
            "lone_references": True,
            "response_format": {"type": "json_schema", "json_schema": given},
        }
    )
    body: Any = chat.render([deltafold.Message.user("hi")], [], config).body
    assert at(body["response_format"]["json_schema"]["schema"], "a") == {**PORT, "title": "t"}
    assert given["schema"]["properties"]["a"] == {"$ref": "#/$defs/P", "title": "t"}


UNION: dict[str, Any] = {
    "description": "one of both",
    "type": "object",
    "anyOf": [{"required": ["a"]}, {"type": "null"}, {"$ref": "#/$defs/Port"}, True],
}
SPLIT: dict[str, Any] = {
    "description": "one of both",
    "anyOf": [
        {"type": "object", "required": ["a"]},
        {"type": "null"},
        {"$ref": "#/$defs/Port"},
        True,
    ],
}


GIVEN_AND_SENT: list[Any] = [
    (
        {"type": "object", "properties": {"a": UNION}},
        {"type": "object", "properties": {"a": SPLIT}},
    ),
    ({"items": UNION, "$defs": {"b": UNION}}, {"items": SPLIT, "$defs": {"b": SPLIT}}),
    ({"allOf": [UNION]}, {"allOf": [SPLIT]}),
    # The root keeps its type; a union in a branch is a union.
    ({**UNION, "anyOf": [UNION]}, {**UNION, "anyOf": [SPLIT]}),
    (
        {"not": {"type": ["object", "null"], "oneOf": [{"required": ["a"]}]}},
        {"not": {"oneOf": [{"type": ["object", "null"], "required": ["a"]}]}},
    ),
    # Values, and properties of these names, are no unions.
    ({"default": UNION, "enum": [UNION]},) * 2,
    ({"properties": {"type": {"type": "string"}, "anyOf": {"type": "array"}}},) * 2,
    ({"items": {"type": "string", "anyOf": []}},) * 2,
    ({"items": {"type": "string", "anyOf": 5}},) * 2,
]


@pytest.mark.parametrize(("given", "sent"), GIVEN_AND_SENT)
def test_a_type_beside_a_union_is_in_its_branches(
    given: dict[str, Any], sent: dict[str, Any]
) -> None:
    before = copy.deepcopy(given)
    assert with_types_in_branches(given) == sent
    assert given == before
    assert with_types_in_branches(sent) == sent


def test_moonshot_gets_no_type_beside_a_union() -> None:
    properties: dict[str, Any] = {"a": UNION}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "$defs": {"Port": PORT}}
    tool = deltafold.ToolSpec(name="f", parameter_schema=schema)
    sent: dict[str, Any] = {}
    for name in ("moonshot/kimi-k3", "zai/glm-5"):
        model = deltafold.load_model(name, api_key="k")
        rendered = dialect_of("openai-chat").render(
            [deltafold.Message.user("Hi")], [tool], model.get_config()
        )
        body: Any = rendered.body
        sent[name] = body["tools"][0]["function"]["parameters"]["properties"]["a"]
    assert sent == {"moonshot/kimi-k3": SPLIT, "zai/glm-5": UNION}
