"""Representations of the objects: `repr` is short, `print` and rich show everything."""

import io

import pytest
from pydantic import BaseModel
from rich.console import Console

import deltafold
from any_name import AnyName
from deltafold import Message, Meta, TextPart, ThinkingPart, ToolCallPart, ToolSpec, Usage
from deltafold.contract.short_repr import short
from wires import ANTHROPIC, CHAT

LONG = "every word counts " * 1_000


def folded(body: bytes = ANTHROPIC, dialect: AnyName = "anthropic-messages") -> Message:
    return deltafold.fold(body, dialect)


@pytest.mark.parametrize(
    "shown",
    [
        Message.user(LONG),
        Message.assistant(*[TextPart(text=LONG)] * 100),
        TextPart(text=LONG),
        ThinkingPart(text=LONG, provider_state={"data": {"signature": LONG}}),
        ToolCallPart(tool_call_id="1", tool_name="f", raw_args_text=f'{{"a": "{LONG}"}}'),
        Usage(input_tokens=1, details={"raw": {str(number): LONG for number in range(100)}}),
        Meta(warnings=[{"code": "a", "message": LONG}] * 100),
        ToolSpec(name="f", description=LONG, parameter_schema={"type": "object", "title": LONG}),
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_repr_is_bounded_however_long_the_content_is(shown: BaseModel) -> None:
    assert len(repr(shown)) < 2_500
    assert repr(shown).startswith(f"{type(shown).__name__}(")


def test_repr_of_a_message_has_what_a_person_looks_for_and_no_ids() -> None:
    text = repr(folded())
    for expected in ("role='assistant'", "tool_name='get_forecast'", "finish_reason='tool_calls'"):
        assert expected in text
    assert "run_id" not in text
    assert "annotations" not in text  # it has its default value
    assert repr(Message.user("Hi")) == "Message(role='user', parts=[TextPart(text='Hi')])"


def test_a_folded_and_a_validated_message_have_the_same_repr() -> None:
    message = folded()
    assert repr(Message.from_json(message.to_json())) == repr(message)
    assert str(Message.from_json(message.to_json())) == str(message)


def test_print_shows_all_content() -> None:
    assert LONG in str(Message.user(LONG))
    message = folded(CHAT, "openai-chat")
    lines = str(message).splitlines()
    assert [line.partition(" ")[0].rstrip(":") for line in lines] == [
        "thinking",
        "text",
        "tool",
        "tool",
        "finish",
        "usage",
    ]


def test_rich_shows_every_member_that_is_set() -> None:
    message = folded()
    console = Console(file=io.StringIO(), width=10_000)
    console.print(message)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert str(message.id) in shown
    assert message.thinking in shown
    assert "raw_finish_reason='tool_use'" in shown


def test_repr_of_a_model_names_it_and_shows_no_key() -> None:
    model = deltafold.load_model("openai-chat/gpt-5", api_key="sk-very-secret", temperature=0.5)
    assert repr(model) == "<OpenAIChatModel gpt-5 of openai, openai-chat>"
    assert repr(model.get_config()) == "OpenAIChatConfig(model_id='gpt-5', temperature=0.5)"


def test_long_values_are_shortened_with_their_length() -> None:
    assert short("a" * 61) == f"'{'a' * 60}'... (61 characters)"
    assert short(["a"] * 9) == "['a', 'a', 'a', 'a', 'a', 'a', ...]"
    assert short("short") == "'short'"


def test_repr_of_a_part_begins_with_its_content() -> None:
    part = ThinkingPart(text="why", provider_state={"dialect": "gemini", "data": {}})
    assert repr(part).startswith("ThinkingPart(text='why', provider_state={")
