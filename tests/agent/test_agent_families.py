"""An agent with tools and a typed output, on every family of models and on newer names."""

import json
from typing import Any, Final, cast

import pytest
from pydantic import BaseModel

from any_name import AnyName
from deltafold import Agent, load_model
from deltafold.conversation import RunStatus
from deltafold.testing import Recording, ReplayTransport, Request, answer
from family_rules import FAMILIES, Rules, refusals

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
ARGUMENTS: Final = {"place": "Brest", "hour": 17}
NEWER: Final = (
    ("openai/gpt-6.9-sol", "openai/gpt-6.1-sol"),
    ("openai/gpt-7-terra", "openai/gpt-5.6-terra"),
    ("openai/gpt-7-mini", "openai/gpt-5.4"),
    ("anthropic/claude-opus-6", "anthropic/claude-opus-5-5"),
    ("anthropic/claude-sonnet-6-1", "anthropic/claude-sonnet-5-5"),
    ("anthropic/claude-saga-6", "anthropic/claude-opus-5-5"),
    ("google/gemini-3.9-flash", "google/gemini-3.1-pro-preview"),
    ("xai/grok-5", "xai/grok-4.7"),
    ("deepseek/deepseek-v5-pro", "deepseek/deepseek-v4-pro"),
    ("moonshot/kimi-k4", "moonshot/kimi-k3"),
)
"""Names of no model, and the older model whose rules they may be judged by."""


class Tide(BaseModel):
    """A high tide."""

    place: str
    hour: int


def look(place: str) -> str:
    """Look up the tide."""
    return f"high tide at {place}: 17 o'clock"


def weigh(grams: int) -> int:
    """Weigh something."""
    return grams


class Judge(ReplayTransport):
    """A provider that refuses what its documents refuse, and calls a tool before it answers.

    Attributes:
        said: the refusals.
    """

    def __init__(self, rules: Rules, dialect: AnyName, value: dict[str, Any]) -> None:
        super().__init__(flat_out=True)
        self.said: list[str] = []
        self._rules = rules
        self._dialect = dialect
        self._value = value

    def answer_to(self, request: Request) -> Recording:
        body = cast("dict[str, Any]", request.json())
        refused = refusals(self._rules, self._dialect, body)
        self.said += refused
        if refused:
            return Recording.error(400, {"error": {"message": f"{refused} is not supported"}})
        # Mistral's answers have the form of Chat.
        written: AnyName = "openai-chat" if self._dialect == "mistral" else self._dialect
        text = json.dumps(body)
        if "17 o'clock" not in text:
            return answer(written, ("c1", "look", {"place": "Brest"}))
        names = [name for name in ("Tide", "output") if f'"name": "{name}"' in text]
        is_tool = names and f'"{names[0]}"' in json.dumps(body.get("tools"))
        if is_tool:
            return answer(written, ("c2", names[0], self._value))
        return answer(written, json.dumps(self._value))


def run(rules: Rules, name: str, output: Any, value: dict[str, Any], **settings: Any) -> Judge:  # noqa: ANN401 - a type, and settings
    """Run an agent on a judge; the run completes with the value."""
    dialect = load_model(name, specification=rules.specification, api_key="k").dialect
    judge = Judge(rules, dialect, value)
    model = load_model(
        name, specification=rules.specification, api_key="k", client=judge, **settings
    )
    with model:
        agent = Agent({}, [look, weigh], model=model, output=output)
        result = agent.run_sync("High tide in Brest?")
    assert judge.said == []
    assert result.status is RunStatus.COMPLETED
    found = result.output
    assert (found.model_dump() if isinstance(found, BaseModel) else found) == value
    return judge


@pytest.mark.parametrize("rules", FAMILIES, ids=lambda one: f"{one.name}+{one.specification}")
def test_an_agent_completes_on_every_family(rules: Rules) -> None:
    run(rules, rules.name, Tide, ARGUMENTS)
    run(rules, rules.name, dict[str, int], {"hour": 17})
    for effort in EFFORTS:
        run(rules, rules.name, Tide, ARGUMENTS, reasoning_effort=effort)
        run(rules, rules.name, dict[str, int], {"hour": 17}, reasoning_effort=effort)


@pytest.mark.parametrize(("name", "older"), NEWER)
def test_an_agent_completes_on_a_newer_model(name: str, older: str) -> None:
    rules = next(one for one in FAMILIES if one.name == older)
    for effort in EFFORTS:
        run(rules, name, Tide, ARGUMENTS, reasoning_effort=effort)
        run(rules, name, dict[str, int], {"hour": 17}, reasoning_effort=effort)
