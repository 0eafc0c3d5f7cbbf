"""Settings that a model does not take: the nearest value is sent, and a note says so."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from any_name import AnyName
from deltafold import Message, ToolSpec, migrate_config, parse_request
from deltafold.contract.kinds import json_object
from deltafold.dialects import dialect_of

TOOL: Final = ToolSpec(name="tide")
EFFORT_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "openai-chat": ("reasoning_effort",),
    "openai-responses": ("reasoning", "effort"),
    "anthropic-messages": ("output_config", "effort"),
}


def sent(dialect: str, *, stream: bool = True, **settings: Any) -> tuple[dict[str, Any], list[str]]:  # noqa: ANN401 - settings of any type
    """Return the body of a Model's own settings, and the notes."""
    row = dialect_of(dialect)
    config = row.config_class.model_validate(settings)
    rendered = row.render([Message.user("q")], [TOOL], config, stream=stream)
    return dict(rendered.body), [str(note["message"]) for note in rendered.notes]


def moved(
    body: dict[str, Any], source: AnyName, target: AnyName, model: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the body that a client's request becomes for another model, and the notes."""
    question = {"model": "x", "messages": [{"role": "user", "content": "q"}], **body}
    parsed = parse_request(question, source)
    config, notes = migrate_config(parsed, target, model_id=model)
    rendered = dialect_of(target).render(parsed.messages, parsed.tools, config)
    every = [str(note["message"]) for note in (*notes, *rendered.notes)]
    return dict(rendered.body), every


def effort_in(dialect: str, body: Mapping[str, Any]) -> object:
    found: object = body
    for name in EFFORT_OF[dialect]:
        found = (json_object(found) or {}).get(name)
    return found


@pytest.mark.parametrize(
    ("dialect", "model", "asked", "effort"),
    [
        ("openai-chat", "gpt-5-mini", "none", "minimal"),
        ("openai-chat", "gpt-5-mini", "xhigh", "high"),
        ("openai-chat", "gpt-5-mini", "max", "high"),
        ("openai-responses", "gpt-5-mini", "none", "minimal"),
        ("openai-chat", "gpt-5.2", "none", "none"),
        ("openai-chat", "gpt-5.2", "minimal", "low"),
        ("openai-chat", "gpt-5.2", "max", "xhigh"),
        ("openai-responses", "gpt-6-sol", "max", "max"),
        ("openai-responses", "gpt-5-pro", "minimal", "high"),
        ("openai-chat", "o3", "max", "high"),
        ("anthropic-messages", "claude-opus-5-5", "minimal", "low"),
        ("openai-chat", "gpt-4.1", "high", None),
    ],
)
def test_an_effort_is_the_nearest_one_of_the_model(
    dialect: str, model: str, asked: str, effort: str | None
) -> None:
    body, notes = sent(dialect, model_id=model, max_tokens=9000, reasoning_effort=asked)
    assert effort_in(dialect, body) == effort
    assert bool(notes) is (asked != effort)
    assert all(model in note for note in notes)


@pytest.mark.parametrize(
    ("model", "thinking", "effort"),
    [
        ("claude-sonnet-5", "disabled", None),
        ("claude-opus-5", "disabled", None),
        ("claude-haiku-4-5", "disabled", None),
        ("claude-sonnet-5-5", "between_tools", None),
        ("claude-opus-5-5", "adaptive", "low"),
        ("claude-fable-5", "adaptive", "low"),
    ],
)
@pytest.mark.parametrize("source", ["anthropic-messages", "openai-chat"])
def test_thinking_is_off_in_the_words_of_the_model(
    source: str, model: str, thinking: str, effort: str | None
) -> None:
    asked: dict[str, Any] = {"reasoning_effort": "none"}
    if source == "anthropic-messages":
        asked = {"thinking": {"type": "disabled"}, "max_tokens": 50}
    body, notes = moved(asked, source, "anthropic-messages", model)
    assert body["thinking"] == {"type": thinking}
    assert effort_in("anthropic-messages", body) == effort
    assert bool(notes) is (effort is not None)


def test_nothing_is_said_of_thinking_that_a_model_does_not_have() -> None:
    asked = {"thinking": {"type": "disabled"}, "max_tokens": 50}
    body, notes = moved(asked, "anthropic-messages", "openai-chat", "gpt-4.1")
    assert "reasoning_effort" not in body
    assert notes == []


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"model_id": "gpt-5-mini"}, False),
        ({"model_id": "gpt-5.2"}, True),
        ({"model_id": "gpt-5.2", "reasoning_effort": "low"}, False),
        ({"model_id": "gpt-4.1"}, True),
        ({"model_id": "o3"}, False),
        ({"model_id": "a-model"}, True),
        ({"model_id": "openai/gpt-5-mini"}, True),  # a router leaves it out by itself
        ({"model_id": "gpt-5-mini", "strict_settings": True}, True),
        ({"model_id": "our-deployment", "known_as": "gpt-5-mini"}, False),
        ({"model_id": "o9-mini"}, False),
    ],
)
def test_a_temperature_is_sent_to_the_models_that_take_it(
    settings: dict[str, Any], *, kept: bool
) -> None:
    body, notes = sent("openai-chat", temperature=0.2, **settings)
    assert body["model"] == settings["model_id"]
    assert ("temperature" in body) is kept
    assert bool(notes) is not kept


@pytest.mark.parametrize(
    ("dialect", "model"),
    [
        ("openai-chat", "kimi-k2.5"),
        ("openai-chat", "zai-glm-4.7"),
        ("openai-chat", "gemma-3-27b-it"),
        ("ollama", "gpt-oss:20b"),
        ("anthropic-messages", "anthropic/claude-opus-5-5"),
        ("openai-responses", "openai/gpt-5-mini"),
    ],
)
def test_settings_of_a_host_of_open_weights_and_of_a_router_are_sent(
    dialect: str, model: str
) -> None:
    asked: dict[str, Any] = {"temperature": 0.2, "max_tokens": 500_000}
    body, notes = sent(dialect, model_id=model, **asked)
    unfitted, _ = sent(dialect, model_id=model, strict_settings=True, **asked)
    assert (body, notes) == (unfitted, [])


def test_a_type_of_thinking_that_switches_it_off_is_read_as_such() -> None:
    asked: dict[str, Any] = {"thinking": {"type": "between_tools"}, "max_tokens": 50}
    body, _ = moved(asked, "anthropic-messages", "openai-chat", "gpt-5.2")
    assert body["reasoning_effort"] == "none"
    own, notes = sent("anthropic-messages", model_id="claude-sonnet-5-5", **asked)
    assert (own["thinking"], notes) == ({"type": "between_tools"}, [])


def test_a_note_has_the_name_of_the_setting_that_was_written() -> None:
    asked: dict[str, Any] = {"thinking": {"type": "disabled"}, "max_tokens": 50}
    _, notes = sent("anthropic-messages", model_id="claude-opus-5-5", **asked)
    assert [note.partition(":")[0] for note in notes] == ["thinking"]


@pytest.mark.parametrize(
    ("facts", "kept"), [({}, True), ({"known_as": "o3"}, False), ({"strict_settings": True}, True)]
)
def test_a_translation_knows_the_model_by_another_name(
    facts: dict[str, Any], *, kept: bool
) -> None:
    body: dict[str, Any] = {"model": "x", "messages": [], "max_tokens": 9, "temperature": 0.2}
    parsed = parse_request(body, "anthropic-messages")
    config, notes = migrate_config(parsed, "openai-chat", model_id="our-deployment", **facts)
    assert (config.temperature is not None) is kept
    assert bool(notes) is not kept


def test_the_value_that_every_model_has_is_no_loss() -> None:
    body, notes = sent("openai-chat", model_id="gpt-5-mini", temperature=1, top_p=1)
    assert (body["temperature"], body["top_p"], notes) == (1, 1, [])


def test_stop_sequences_are_left_out_with_a_note() -> None:
    body, notes = sent("openai-chat", model_id="gpt-5-mini", stop_sequences=["</b>"])
    assert "stop" not in body
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("dialect", "model", "is_forced"),
    [
        ("anthropic-messages", "claude-fable-5-1", False),
        ("anthropic-messages", "claude-opus-5-5", False),
        ("bedrock-converse", "global.anthropic.claude-fable-5-1", False),
        ("anthropic-messages", "claude-opus-4-8", True),
        ("openai-chat", "gpt-5-mini", True),
    ],
)
def test_a_tool_is_forced_where_the_model_takes_it(
    dialect: str, model: str, *, is_forced: bool
) -> None:
    body, notes = sent(dialect, model_id=model, tool_choice={"mode": "required"})
    choice = body.get("tool_choice") or body["toolConfig"]["toolChoice"]
    assert ("auto" not in str(choice)) is is_forced
    assert bool(notes) is not is_forced


@pytest.mark.parametrize(
    ("model", "streamed", "whole"),
    [
        ("claude-opus-5", 128_000, 21_333),
        ("claude-fable-5-1", 128_000, 21_333),
        ("claude-haiku-4-5", 64_000, 21_333),
        ("claude-3-5-haiku-latest", 4096, 4096),
        ("a-model", 4096, 4096),
    ],
)
def test_the_limit_is_that_of_the_model(model: str, streamed: int, whole: int) -> None:
    limits = [
        sent("anthropic-messages", stream=stream, model_id=model)[0]["max_tokens"]
        for stream in (True, False)
    ]
    assert limits == [streamed, whole]


def test_a_limit_above_that_of_the_model_is_lowered() -> None:
    body, notes = sent("openai-chat", model_id="gpt-4.1", max_tokens=100_000)
    assert body["max_completion_tokens"] == 32_768
    assert len(notes) == 1


def test_a_name_that_is_newer_than_the_table_names_the_row_that_was_used() -> None:
    body, notes = sent("openai-chat", model_id="gpt-6.4-sol", reasoning_effort="max")
    assert body["reasoning_effort"] == "xhigh"
    assert notes == [
        "reasoning_effort: gpt-6.4-sol (taken as gpt-6.1-sol) has no effort max: xhigh is sent"
    ]
