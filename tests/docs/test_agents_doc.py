"""The examples of docs/agents.md run, over real HTTP."""

import json
from pathlib import Path

import pytest

from deltafold.conversation import AgentConfig, AgentEventKind
from deltafold.testing import ReplayServer, answer
from documentation import Reader, python_of, text_of

TEXT = text_of("docs/agents.md")
EXAMPLES = python_of("docs/agents.md")


def run_all() -> None:
    """Run the examples one after another, in one namespace."""
    with Reader({}) as reader:
        for block in EXAMPLES:
            reader.run(block)


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    call = answer("openai-responses", ("c1", "tide", {"place": "Brest"}))
    done = answer("openai-responses", "At 17:42.")
    with ReplayServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        typed = answer("openai-responses", '{"place": "Brest", "hour": 17}')
        server.queue(call, done, done, done)
        server.queue(done, done)  # the conversation of a user
        server.queue(call, done, done)  # the events, and their stream for a page
        server.queue(done, done, done, call, done, done, typed)
        run_all()
        bodies = [json.loads(asked.body) for asked in server.requests]
    assert len(EXAMPLES) == 10
    assert [[tool["name"] for tool in body["tools"]] for body in bodies] == [
        *[["tide"]] * 14,
        ["tide", "memory_notebook_replace"],
        ["tide"],
    ]
    assert [body["input"][0]["role"] for body in bodies[2:5]] == ["user", "system", "user"]
    assert [len(body["input"]) for body in bodies[3:6]] == [2, 1, 3]
    printed = capsys.readouterr().out
    assert printed.startswith("At 17:42. 140 ")
    assert "tide success\nAt 17:42." in printed
    assert "data: [DONE]" in printed
    assert "awaiting_human ['tide']\nAt 17:42.\n\n17\n" in printed


def test_the_tables_name_every_event_and_every_setting() -> None:
    for kind in AgentEventKind:
        assert f"`{kind}`" in TEXT
    for name, field in AgentConfig.model_fields.items():
        members = getattr(field.annotation, "model_fields", {})
        for place in [f"{name}.{member}" for member in members] or [name]:
            assert f"`{place}`" in TEXT
