"""Arguments of tool calls: right ones typed, wrong ones in words that a model can act on."""

from typing import Any

import pytest

from deltafold import ToolSpec
from deltafold.conversation import (
    ArgumentError,
    ToolArgumentParser,
    ToolCallRequest,
    parse_tool_call,
)
from deltafold.dialects import DIALECTS


def arguments(raw: str) -> ToolArgumentParser:
    return ToolArgumentParser(parse_tool_call("openai-chat", "search", "c1", raw))


def test_arguments_are_read_by_name_and_kind() -> None:
    given = arguments('{"s": "a", "i": 1, "f": 2, "b": true, "l": [1, "x"], "o": {"k": [1]}}')
    assert given.get_required("s", str) == "a"
    assert given.get_required("i", int) == 1
    assert given.get_required("f", float) == 2.0
    assert given.get_required("b", bool) is True
    assert given.get_required("l", list) == [1, "x"]
    assert given.get_required("o", dict) == {"k": [1]}
    assert given.get_optional("missing", str, "default") == "default"
    assert given.get_optional("i", int, 5) == 1
    assert given.parse_list("s", str) == ["a"]
    assert given.get_choice("s", ["a", "b"]) == "a"


def test_json_inside_a_string_is_read() -> None:
    given = arguments('{"filter": "{\\"a\\": [1]}", "plain": {"b": 2}}')
    assert given.parse_json_safely("filter") == {"a": [1]}
    assert given.parse_json_safely("plain") == {"b": 2}


@pytest.mark.parametrize(
    ("raw", "read", "match"),
    [
        ("{}", ("get_required", "q", str), "search needs 'q', a string; given: none"),
        ('{"a": 1, "b": 2}', ("get_required", "q", int), "given: a, b"),
        ('{"q": 1}', ("get_required", "q", str), "'q' needs a string, not an integer"),
        ('{"q": true}', ("get_required", "q", int), "an integer, not true or false"),
        ('{"q": "1"}', ("get_optional", "q", int, 1), "an integer, not a string"),
        ('{"q": null}', ("get_required", "q", dict), "an object, not null"),
        ('{"q": ["a", 1]}', ("parse_list", "q", str), r"'q\[1\]' needs a string"),
        ("{}", ("parse_list", "q", str), "needs 'q'"),
        ('{"q": "c"}', ("get_choice", "q", ["a", "b"]), "one of a, b, not 'c'"),
        ('{"q": "{"}', ("parse_json_safely", "q"), "'q' is not valid JSON"),
        ("{}", ("parse_json_safely", "q"), "needs 'q'"),
    ],
)
def test_a_wrong_argument_tells_the_model_what_to_do(
    raw: str,
    read: tuple[Any, ...],
    match: str,
) -> None:
    with pytest.raises(ArgumentError, match=match) as raised:
        getattr(arguments(raw), read[0])(*read[1:])
    assert raised.value.argument.startswith("q")


@pytest.mark.parametrize("raw", ["{nonsense}", "[1]", "1", '"text"'])
def test_arguments_that_are_no_object_say_so(raw: str) -> None:
    with pytest.raises(ArgumentError, match=r"not a JSON object.*Call it again"):
        arguments(raw)


def test_reading_changes_nothing() -> None:
    call = parse_tool_call("openai-chat", "f", "c", '{"l": [1]}')
    ToolArgumentParser(call).get_required("l", list).append(2)
    assert call.arguments == {"l": (1,)}


def test_every_specification_says_how_it_writes_arguments() -> None:
    for specification in (*DIALECTS, "v1", "responses", "json", "xml"):
        assert parse_tool_call(specification, "f", "c", '{"a": 1}').arguments == {"a": 1}
    with pytest.raises(ValueError, match="klingon"):
        parse_tool_call("klingon", "f", "c", "{}")


@pytest.mark.parametrize(
    ("specification", "raw"),
    [
        ("xml", "<parameter=city>\nBrest\n</parameter>\n<parameter=days>\n3\n</parameter>"),
        ("openai-chat+qwen-xml", "<parameter=city>Brest</parameter><parameter=days>3</parameter>"),
        (
            "openai-chat+glm",
            (
                "<arg_key>city</arg_key>\n<arg_value>Brest</arg_value>\n"
                "<arg_key>days</arg_key>\n<arg_value>3</arg_value>"
            ),
        ),
        (
            "ollama+minimax",
            '<parameter name="city">Brest</parameter>\n<parameter name="days">3</parameter>',
        ),
        (
            "openai-chat+claude",
            '<parameter name="city">Brest</parameter>\n<parameter name="days">3</parameter>',
        ),
        ("openai-chat+lfm2", "city='Brest', days=3"),
        ("openai-chat+olmo", 'city="Brest", days=3'),
    ],
)
def test_arguments_in_the_markup_of_a_model_are_parsed(specification: str, raw: str) -> None:
    properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    schema: dict[str, object] = {"type": "object", "properties": properties}
    tool = ToolSpec(name="weather", description="d", parameter_schema=schema)
    call = parse_tool_call(specification, "weather", "c", raw, [tool])
    assert (call.arguments, call.parse_error) == ({"city": "Brest", "days": 3}, None)
    assert call.raw_arguments == raw
    assert ToolArgumentParser(call).get_required("days", int) == 3


@pytest.mark.parametrize(
    "raw",
    [
        "nonsense",
        "</tool_call>",
        "[1]",
        "<parameter=a>1</parameter></function></tool_call><tool_call><function=remove>",
    ],
)
def test_a_text_that_is_no_markup_is_kept_with_the_reason(raw: str) -> None:
    call = parse_tool_call("xml", "weather", "c", raw)
    assert (call.raw_arguments, call.arguments) == (raw, None)
    assert call.parse_error == "not JSON, and not arguments of qwen-xml"


def test_a_failed_parse_keeps_the_text_and_says_why() -> None:
    call = parse_tool_call("messages", "f", "c", '{"a": ')
    assert (call.raw_arguments, call.arguments) == ('{"a": ', None)
    assert call.parse_error
    assert isinstance(call, ToolCallRequest)
    doubled = parse_tool_call("v1", "f", "c", '"{\\"a\\": 1}"')
    assert doubled.arguments == {"a": 1}
    assert doubled.parse_warning
