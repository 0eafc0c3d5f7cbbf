"""Tools made of functions and models, and settings that are checked before anything is sent."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

import deltafold
from deltafold import ToolSpec
from deltafold.dialects import DIALECTS, dialect_of
from deltafold.models import LocalConfig
from deltafold.models.call_inputs import tools_of


def plain(city: str, days: int = 1) -> str:
    """Tell the weather in a city.

    It is often wrong.

    Args:
        city: the name of the city,
            in French
        days (int): how many days ahead

    Returns:
        A sentence.
    """
    return f"{city} {days}"


async def described(
    city: Annotated[str, Field(description="where")], title: str = Field(max_length=3)
) -> str:
    """Args:
    city: not this
    """  # noqa: D205, D415 - a docstring that begins with its section
    return city + title


def bare() -> None: ...


class Callee:
    """Not a tool by itself."""

    def method(self, units: list[str] | None = None) -> None: ...

    def __call__(self, model_config: int, _hidden: bool = False) -> None: ...  # noqa: FBT002 - odd on purpose


class Place(BaseModel):
    """A city and the places near it."""

    city: str
    near: list["Place"] = []


def test_a_function_tells_its_name_description_and_parameters() -> None:
    spec = ToolSpec.from_function(plain)
    assert (spec.name, spec.description) == (
        "plain",
        "Tell the weather in a city.\n\nIt is often wrong.",
    )
    assert spec.parameter_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "the name of the city, in French"},
            "days": {"type": "integer", "default": 1, "description": "how many days ahead"},
        },
        "required": ["city"],
    }


def test_a_field_beats_the_docstring_and_a_property_called_title_stays() -> None:
    spec = ToolSpec.from_function(described, name="other", strict=True)
    assert (spec.name, spec.description, spec.strict) == ("other", None, True)
    assert spec.parameter_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "where"},
            "title": {"type": "string", "maxLength": 3},
        },
        "required": ["city", "title"],
    }


@pytest.mark.parametrize(
    ("function", "names", "required"),
    [
        (bare, [], None),
        (Callee().method, ["units"], None),
        (Callee(), ["model_config", "_hidden"], ["model_config"]),
    ],
    ids=["bare", "method", "callable"],
)
def test_anything_callable_by_name_is_a_tool(
    function: Callable[..., object], names: list[str], required: list[str] | None
) -> None:
    schema = ToolSpec.from_function(function, name="f").parameter_schema
    properties: Any = schema["properties"]
    assert (list(properties), schema.get("required")) == (names, required)


def positional(city: str, /) -> None: ...
def variadic(*cities: str) -> None: ...
def keywords(**options: str) -> None: ...
def opaque(thing: Callee) -> None: ...


@pytest.mark.parametrize(
    ("function", "named"),
    [(positional, "city"), (variadic, r"\*cities"), (keywords, r"\*\*options"), (opaque, "Callee")],
)
def test_a_parameter_that_no_model_can_fill_is_an_error_that_names_it(
    function: Callable[..., object], named: str
) -> None:
    with pytest.raises(ValueError, match=rf"^{function.__name__}\(\): .*{named}"):
        ToolSpec.from_function(function)


def test_a_pydantic_model_is_a_tool() -> None:
    spec = ToolSpec.from_pydantic(Place)
    assert (spec.name, spec.description) == ("Place", "A city and the places near it.")
    near: Any = {"type": "array", "items": {"$ref": "#/$defs/Place"}, "default": []}
    properties: Any = {"city": {"type": "string"}, "near": near}
    assert spec.parameter_schema.pop("$defs")
    assert spec.parameter_schema == {
        "type": "object",
        "properties": properties,
        "required": ["city"],
    }
    named = ToolSpec.from_pydantic(Place, "find", "Find it")
    assert (named.name, named.description) == ("find", "Find it")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_unknown_setting_suggests_the_nearest_known_one(dialect: str) -> None:
    with pytest.raises(ValidationError, match="did you mean 'temperature'"):
        dialect_of(dialect).config_class.model_validate({"model_id": "m", "temperatur": 1})


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", "hot"),
        ("temperature", -0.1),
        ("temperature", "0.5"),
        ("max_tokens", True),
        ("max_tokens", 1.5),
        ("max_tokens", -1),
        ("top_p", 1.01),
        ("stop_sequences", "END"),
        ("tool_choice", "maybe"),
        ("model_id", ""),
        ("provider_tools", {"type": "web_search"}),
        ("extra_body", []),
    ],
)
def test_a_setting_of_the_wrong_type_or_size_is_refused(
    dialect: str, field: str, value: object
) -> None:
    with pytest.raises(ValidationError) as caught:
        dialect_of(dialect).config_class.model_validate({"model_id": "m", field: value})
    assert caught.value.errors()[0]["loc"][0] == field


@pytest.mark.parametrize(
    ("dialect", "field", "value"),
    [
        ("openai-chat", "frequency_penalty", 2.1),
        ("openai-chat", "top_logprobs", 21),
        ("openai-responses", "truncation", "sometimes"),
        ("ollama", "think", "hard"),
        ("cohere-chat", "top_k", 501),
        ("mistral", "safe_prompt", "yes"),
        ("gemini", "safety_settings", [1]),
        ("bedrock-converse", "request_metadata", {"a": 1}),
        ("anthropic-messages", "thinking", "yes"),
    ],
)
def test_a_setting_of_a_provider_has_its_range(dialect: str, field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        dialect_of(dialect).config_class.model_validate({"model_id": "m", field: value})


def test_the_settings_of_a_local_model_are_checked_too() -> None:
    assert LocalConfig(model_id="m", do_sample=True, seed=1).seed == 1
    with pytest.raises(ValidationError, match="did you mean 'repetition_penalty'"):
        LocalConfig.model_validate({"model_id": "m", "repetition_penalti": 1.1})
    with pytest.raises(ValidationError, match="repetition_penalty"):
        LocalConfig(model_id="m", repetition_penalty=0.0)


def test_a_specification_takes_the_names_of_json() -> None:
    schema: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}}
    spec = ToolSpec.model_validate({"name": "weather", "parameterSchema": schema})
    assert spec == ToolSpec(name="weather", parameter_schema=schema)
    assert ToolSpec.model_validate(spec.model_dump()) == spec
    assert ToolSpec.model_validate(spec.model_dump(by_alias=True)) == spec
    with pytest.raises(ValidationError, match="parameterschema"):
        ToolSpec.model_validate({"name": "weather", "parameterschema": schema})


CITY: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION = {"name": "weather", "description": "Tell.", "parameters": CITY}


class Weather(BaseModel):
    """Tell."""

    city: str


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": FUNCTION},
        {"type": "function", **FUNCTION},
        FUNCTION,
        {"name": "weather", "description": "Tell.", "input_schema": CITY},
        {"type": "custom", "name": "weather", "description": "Tell.", "input_schema": CITY},
        {"toolSpec": {"name": "weather", "description": "Tell.", "inputSchema": {"json": CITY}}},
        {"functionDeclarations": [{**FUNCTION, "parametersJsonSchema": CITY}]},
        {"name": "weather", "description": "Tell.", "parameter_schema": CITY},
        {"name": "weather", "description": "Tell.", "parameterSchema": CITY},
    ],
)
def test_the_tools_of_every_api_are_tools(tool: dict[str, object]) -> None:
    (spec,) = tools_of([tool])
    assert (spec.name, spec.description, spec.parameter_schema) == ("weather", "Tell.", CITY)


def test_a_declaration_in_the_words_of_gemini_is_one_of_gemini() -> None:
    schema = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}
    (spec,) = tools_of([{**FUNCTION, "parameters": schema}])
    assert (spec.dialect, spec.parameter_schema) == ("gemini", CITY)


@pytest.mark.parametrize("member", ["parameterSchema", "parameter_schema", "inputSchema"])
def test_no_schema_becomes_a_member_that_nobody_reads(member: str) -> None:
    with pytest.raises(ValidationError, match="type"):
        tools_of([{"type": "function", "name": "weather", member: CITY}])


def test_one_tool_is_no_list_of_tools() -> None:
    alone: list[Any] = [plain, Weather, FUNCTION, "weather", ToolSpec(name="weather")]
    for tool in alone:
        with pytest.raises(deltafold.MisuseError, match=r"tool_specs must be a list .*\[tool\]"):
            tools_of(tool)


def test_functions_and_classes_are_tools() -> None:
    assert [spec.name for spec in tools_of([plain, Weather])] == ["plain", "Weather"]
    assert tools_of([plain])[0] == ToolSpec.from_function(plain)
    assert tools_of([Weather])[0] == ToolSpec.from_pydantic(Weather)


def test_the_members_of_an_api_stay_with_its_tool() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    (spec,) = tools_of([{"name": "weather", "input_schema": CITY, **mark}])
    assert (spec.extra, spec.dialect) == (mark, "anthropic-messages")


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"type": "web_search_20250305", "name": "web_search"}, "provider_tools"),
        ({"googleSearch": {}}, r"tool_specs\[0\] has no name, but googleSearch"),
        ({}, "has no name, but nothing"),
        ({"type": "function", "function": {}}, r"tool_specs\[0\], as a tool of openai-chat"),
        (3, "must be a function.* not a int"),
        (None, "not a NoneType"),
        (print, "cannot be passed by name"),
    ],
)
def test_what_is_no_tool_is_named(tool: Any, said: str) -> None:  # noqa: ANN401 - no tool
    with pytest.raises((deltafold.MisuseError, ValueError), match=said):
        tools_of([tool])
