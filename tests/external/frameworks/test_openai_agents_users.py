"""The documentation of the adapter of openai-agents, and a user's code."""

import agents
import pytest
from documented import run_examples
from served import model, served
from user_openai_agents import answer_of

from deltafold.testing import answer


def test_the_examples_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agents.set_trace_processors([])
    with served(answer("anthropic-messages", "At 17:42.")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        run_examples("openai_agents")
    assert "At 17:42." in capsys.readouterr().out


async def test_the_code_of_a_user_runs() -> None:
    agents.set_trace_processors([])
    call = ("call_1", "high_tide", {"place": "Brest"})
    with served(answer("openai-chat", call), answer("openai-chat", "At 17:42.")) as server:
        assert await answer_of(model("openai-chat", server), "When?") == "At 17:42."


async def test_a_model_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    agents.set_trace_processors([])
    with served(answer("openai-chat", "At 17:42.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        assert await answer_of("openai/gpt-4.1", "When?") == "At 17:42."
        assert server.requests[0].json()["model"] == "gpt-4.1"  # type: ignore[index]
