"""The examples of docs/models.md about settings and outputs run, over real HTTP."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import deltafold
from deltafold.dialects import DIALECTS
from deltafold.dialects.model_table import facts_of
from deltafold.testing import Recording, ReplayServer, answer
from documentation import Reader, python_of, text_of

TEXT = text_of("docs/models.md")
ANSWER = {"sky": "grey", "degrees": 7.0}


def run_examples(section: str, names: dict[str, Any]) -> None:
    with Reader(names) as reader:
        for block in python_of("docs/models.md", section=section):
            reader.run(block)


def test_the_examples_of_settings_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found: dict[str, Any] = {"deltafold": deltafold}
    monkeypatch.chdir(tmp_path)
    Path("models.toml").write_text('[ours]\nlike = "gpt-5.6-terra"\n')
    with ReplayServer({"*": answer("openai-responses", json.dumps(ANSWER))}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        run_examples("Settings that every provider has", found)
        found["model"].close()
        found["thinker"].close()
        bodies: list[dict[str, Any]] = [json.loads(asked.body) for asked in server.requests]
    efforts = [body["reasoning"]["effort"] for body in bodies]
    assert efforts == ["low", "high", "low", "max"]
    assert "temperature" not in bodies[3]
    schema = bodies[2]["text"]["format"]
    assert (schema["name"], set(schema["schema"]["properties"])) == ("Forecast", set(ANSWER))
    assert found["forecast"].model_dump() == ANSWER
    config = found["claude"].get_config()
    assert config.output_config["effort"] == "low"
    assert config.output_config["format"]["schema"] == schema["schema"]
    lost = ("truncation: a function of this API", "output_schema: anthropic-messages has no name")
    printed = capsys.readouterr().out
    assert all(f"openai-responses to anthropic-messages: {reason}" in printed for reason in lost)
    assert "temperature: gpt-5.6-terra takes it at the effort none alone" in printed
    for name in ("ours", "our-model"):
        facts = facts_of(name)
        assert facts is not None
        assert facts.thinking == "default"


def recipe() -> Recording:
    said = json.dumps({"title": "Leek soup", "steps": [{"text": "Boil."}]})
    events: list[dict[str, Any]] = [
        {
            "id": "a",
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": said[at : at + 9]}}],
        }
        for at in range(0, len(said), 9)
    ]
    end: dict[str, Any] = {
        "id": "a",
        "model": "m",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    }
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in [*events, end])
    return Recording.of_events(f"{data}data: [DONE]\n\n".encode())


def test_the_examples_of_outputs_run(capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = {"deltafold": deltafold}
    refused = Recording.of_events(recipe().body.replace(b"Leek", b'\\",3'))
    with ReplayServer([recipe(), recipe(), recipe(), refused, recipe()]) as server:
        found["model"] = deltafold.OpenAIChatModel(
            {"model_id": "m"}, base_url=server.url, api_key="key"
        )
        with found["model"]:
            run_examples("Typed output", found)
        bodies: list[Any] = [asked.json() for asked in server.requests]
    assert found["recipe"].title == "Leek soup"
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("Leek soup")
    assert {"L", "Leek soup", "Boil."} & set(printed) == {"Leek soup", "Boil."}
    assert len(bodies) == 5
    assert bodies[0]["response_format"]["json_schema"]["strict"] is True
    assert "does not follow" in str(bodies[4]["messages"]) or "not one JSON" in str(
        bodies[4]["messages"]
    )


def test_the_table_of_mechanisms_names_every_dialect() -> None:
    table = TEXT.partition("### Mechanism of each provider\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \|", table, re.MULTILINE)
    with_one = {name for name, row in DIALECTS.items() if row.mechanism is not None}
    assert {name for name, mechanism in rows if mechanism != "none"} == with_one
    assert {name for name, _ in rows} == {*DIALECTS, "local"}
