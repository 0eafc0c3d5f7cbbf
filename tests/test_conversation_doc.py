"""The examples of docs/conversation.md run, over real HTTP."""

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import deltafold.conversation
from deltafold import OpenAIChatModel
from deltafold.conversation import ModelClient, ProviderRouter, Route, ToolDefinition, ToolExecutor
from deltafold.testing import Recording, ReplayServer
from wires import CHAT, chat

TEXT = (Path(__file__).parents[1] / "docs" / "conversation.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def get_tides(port: str, date: str, *, heights: bool = False, note: str = "") -> str:
    """Look up the tides."""
    return f"{port} {date} {heights} {note}"


async def run_all(server: ReplayServer) -> dict[str, Any]:
    """Run the examples one after another, in one namespace."""
    found: dict[str, Any] = {**vars(deltafold.conversation)}
    async with OpenAIChatModel(
        {"model_id": "m"}, base_url=f"{server.url}/v1", api_key="k"
    ) as model:
        client = ModelClient(model)
        found["model"] = model
        found["router"] = ProviderRouter({"plan": Route(client, client.invocation)})
        found["strategy"] = "plan"
        found["tools"] = ToolExecutor([ToolDefinition.from_function(get_tides)])
        found["question"] = "When is high tide?"
        for number, code in enumerate(EXAMPLES):
            if number == len(EXAMPLES) - 3:  # so long that it must be summarised
                for _ in range(3):
                    log = found["state"].log
                    log.append_message(deltafold.Message.user("Tell me a story."))
                    log.append_message(deltafold.Message.assistant("x" * 200_000))
            compiled = compile(code, "conversation.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(compiled, found)  # noqa: S307 - our own documentation
            if inspect.iscoroutine(result):
                await result
            if number == 1:  # the file of this example is closed
                found["state"] = found["AgentState"].create_default("Be brief.")
                found["log"] = found["state"].log
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
        found = asyncio.run(run_all(server))
    assert len(EXAMPLES) == 6
    printed = capsys.readouterr().out
    assert "Be brief. 1" in printed
    assert "At noon." in printed
    assert found["built"].update.fits
    kinds = [entry.kind.value for entry in found["state"].history]
    assert kinds[-4:] == ["model_input", "model_output", "tool_result", "model_output"]
    assert "compaction" in kinds
