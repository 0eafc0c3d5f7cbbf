"""The examples of docs/conversation.md run, over real HTTP."""

from pathlib import Path
from typing import Any

import pytest

import deltafold.conversation
from deltafold import OpenAIChatModel
from deltafold.conversation import ModelClient, ProviderRouter, Route, ToolDefinition, ToolExecutor
from deltafold.testing import Recording, ReplayServer
from documentation import Reader, python_of
from wires import CHAT, chat

EXAMPLES = python_of("docs/conversation.md")


def get_tides(port: str, date: str, *, heights: bool = False, note: str = "") -> str:
    """Look up the tides."""
    return f"{port} {date} {heights} {note}"


def run_all(server: ReplayServer) -> dict[str, Any]:
    """Run the examples one after another, in one namespace."""
    found: dict[str, Any] = {**vars(deltafold.conversation)}
    model = OpenAIChatModel({"model_id": "m"}, base_url=f"{server.url}/v1", api_key="k")
    client = ModelClient(model)
    found["model"] = model
    found["router"] = ProviderRouter({"plan": Route(client, client.invocation)})
    found["strategy"] = "plan"
    found["tools"] = ToolExecutor([ToolDefinition.from_function(get_tides)])
    found["question"] = "When is high tide?"
    with Reader(found) as reader:
        for number, block in enumerate(EXAMPLES):
            if number == len(EXAMPLES) - 3:  # so long that it must be summarised
                for _ in range(3):
                    log = found["state"].log
                    log.append_message(deltafold.Message.user("Tell me a story."))
                    log.append_message(deltafold.Message.assistant("x" * 200_000))
            reader.run(block)
    return found


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with ReplayServer() as server:
        server.queue(
            Recording.of_events(chat("They said yes.")),
            Recording.of_events(CHAT),
            Recording.of_events(chat("At noon.")),
        )
        found = run_all(server)
    assert len(EXAMPLES) == 6
    printed = capsys.readouterr().out
    assert "Be brief. 1" in printed
    assert "At noon." in printed
    assert found["built"].update.fits
    kinds = [entry.kind.value for entry in found["state"].history]
    assert kinds[-4:] == ["model_input", "model_output", "tool_result", "model_output"]
    assert "compaction" in kinds
