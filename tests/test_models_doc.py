"""The examples of docs/models.md about settings run, over real HTTP."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import deltafold
from deltafold.testing import Recording, ReplayServer

TEXT = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
ANSWER = {"sky": "grey", "degrees": 7.0}


def examples_of(section: str) -> list[str]:
    text = TEXT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def answer() -> Recording:
    delta = {"role": "assistant", "content": json.dumps(ANSWER)}
    choices = [{"index": 0, "delta": delta, "finish_reason": "stop"}]
    event = json.dumps({"id": "a", "model": "m", "choices": choices})
    return Recording.of_events(f"data: {event}\n\ndata: [DONE]\n\n".encode())


def test_the_examples_of_settings_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found: dict[str, Any] = {"deltafold": deltafold}
    with ReplayServer({"*": answer()}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        for code in examples_of("Settings that every provider has"):
            exec(compile(code, "models.md", "exec"), found)  # noqa: S102 - our own documentation
        found["model"].close()
        bodies: list[dict[str, Any]] = [json.loads(asked.body) for asked in server.requests]
    assert [body["reasoning_effort"] for body in bodies] == ["low", "high", "low"]
    schema = bodies[2]["response_format"]["json_schema"]
    assert (schema["name"], set(schema["schema"]["properties"])) == ("Forecast", set(ANSWER))
    assert found["forecast"].model_dump() == ANSWER
    config = found["claude"].get_config()
    assert config.output_config["effort"] == "low"
    assert config.output_config["format"]["schema"] == schema["schema"]
    lost = ("seed: anthropic-messages has no seed", "output_schema: anthropic-messages has no name")
    printed = capsys.readouterr().out
    assert all(f"openai-chat to anthropic-messages: {reason}" in printed for reason in lost)
