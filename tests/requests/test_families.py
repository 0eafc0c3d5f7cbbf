"""Every portable setting, with each family of models: taken, or changed with a note."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from any_name import AnyName
from deltafold import Message, Model, ToolSpec, load_model, migrate_config, parse_request
from deltafold.models.vendors import VENDORS
from family_rules import FAMILIES, Rules, refusals, thinks_about

TOOL: Final = ToolSpec(name="tide", parameter_schema={"type": "object", "properties": {}})
SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

SETTINGS: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"max_tokens": 2000},
    {"max_tokens": 1_000_000},
    {"temperature": 0},
    {"temperature": 0.3},
    {"temperature": 1},
    {"top_p": 0.5},
    {"top_p": 0.95},
    {"temperature": 0.3, "top_p": 0.5},
    {"top_k": 5},
    {"stop_sequences": ["x"]},
    {"frequency_penalty": 0.5},
    {"presence_penalty": 0.5},
    {"logprobs": True, "top_logprobs": 2},
    {"tool_choice": "auto"},
    {"tool_choice": "required"},
    {"tool_choice": {"mode": "tool", "name": "tide"}},
    {"parallel_tool_calls": False},
    {"output_schema": SCHEMA},
    *({"reasoning_effort": effort} for effort in EFFORTS),
    *({"reasoning_effort": effort, "temperature": 0.3} for effort in ("none", "low")),
    *({"reasoning_effort": effort, "tool_choice": "required"} for effort in ("none", "high")),
)

OF_CHAT: Final[tuple[Mapping[str, Any], ...]] = (
    {"max_completion_tokens": 1_000_000},
    {"temperature": 0},
    {"top_p": 0.5},
    {"stop": ["x"]},
    {"frequency_penalty": 0.5},
    {"presence_penalty": 0.5},
    {"logprobs": True, "top_logprobs": 2},
    {"tool_choice": "required"},
    {"tool_choice": {"type": "function", "function": {"name": "tide"}}},
    *({"reasoning_effort": effort} for effort in EFFORTS),
    {"thinking": {"type": "disabled"}},
)
OF_MESSAGES: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"temperature": 0.3},
    {"top_k": 5},
    {"stop_sequences": ["x"]},
    {"thinking": {"type": "disabled"}},
    {"thinking": {"type": "between_tools"}},
    {"thinking": {"type": "adaptive"}},
    {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    {"tool_choice": {"type": "any"}},
    *({"output_config": {"effort": effort}} for effort in EFFORTS[2:]),
)
CLIENTS: Final[tuple[tuple[AnyName, Mapping[str, Any]], ...]] = (
    *(("openai-chat", body) for body in OF_CHAT),
    *(("anthropic-messages", {"max_tokens": 3000, **body}) for body in OF_MESSAGES),
)


def model_of(rules: Rules, settings: Mapping[str, Any]) -> Model[Any]:
    return load_model(rules.name, specification=rules.specification, api_key="k", **settings)


def body_of(model: Model[Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the body of a call with a tool, and its notes."""
    rendered = model.row.render(
        [Message.user("q")],
        [TOOL],
        model.get_config(),
        vendors=VENDORS[model.provider_id].names,
    )
    return dict(rendered.body), [str(note["message"]) for note in rendered.notes]


@pytest.mark.parametrize("rules", FAMILIES, ids=lambda one: f"{one.name}+{one.specification}")
def test_own_settings_are_taken_or_changed_with_a_note(rules: Rules) -> None:
    fields = model_of(rules, {}).row.config_class.model_fields
    for one in SETTINGS:
        settings: dict[str, Any] = {"max_tokens": 9000, **one}
        if not {*settings} <= {*fields}:
            continue
        plain, said = body_of(model_of(rules, {**settings, "strict_settings": True}))
        body, notes = body_of(model_of(rules, settings))
        check(rules, model_of(rules, {}).dialect, (plain, said), (body, notes), settings)


@pytest.mark.parametrize("rules", FAMILIES, ids=lambda one: f"{one.name}+{one.specification}")
def test_settings_of_clients_are_taken_or_changed_with_a_note(rules: Rules) -> None:
    for protocol, asked in CLIENTS:
        question: dict[str, Any] = {"model": "x", "messages": [{"role": "user", "content": "q"}]}
        question |= {"max_tokens": 9000} if "max_completion_tokens" not in asked else {}
        parsed = parse_request({**question, **asked}, protocol)
        model = model_of(rules, {})
        found: list[tuple[dict[str, Any], list[str]]] = []
        for strict in (True, False):
            config, notes = migrate_config(
                parsed,
                model.dialect,
                model_id=model.model_id,
                strict_settings=strict,
                vendors=VENDORS[model.provider_id].names,
            )
            own = model_of(rules, {**config.fields_set(), "strict_settings": strict})
            body, more = body_of(own)
            found.append((body, [*(str(note["message"]) for note in notes), *more]))
        check(rules, model.dialect, found[0], found[1], asked)


def check(
    rules: Rules,
    dialect: str,
    plain: tuple[dict[str, Any], list[str]],
    fitted: tuple[dict[str, Any], list[str]],
    settings: Mapping[str, Any],
) -> None:
    """Check that a vendor takes a request, and that its changes are noted and needed."""
    (written, said), (body, notes) = plain, fitted
    assert refusals(rules, dialect, body) == [], (settings, body)
    if body != written:
        is_off = settings.get("reasoning_effort") == "none" or "thinking" in settings
        is_said = bool(notes) or notes != said or settings.get("parallel_tool_calls") is False
        # Without thinking, the member that switches it off has many names, or none is needed.
        assert is_said or (is_off and not thinks_about(rules, dialect, body)), (
            settings,
            written,
            body,
        )
        # What the settings ask for, without the facts about the model.
        is_asked = not said and not (is_off and thinks_about(rules, dialect, written))
        assert not is_asked or refusals(rules, dialect, written), (settings, written, body, notes)
