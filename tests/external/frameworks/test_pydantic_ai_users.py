"""The documentation of the adapter of pydantic-ai, and a user's code."""

import pytest
from documented import run_examples
from served import model, served
from user_pydantic_ai import hour_of

import deltafold
from deltafold.testing import Recording, answer


def test_the_examples_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = whole([answer("openai-chat", "At noon.")])
    with served(answer("anthropic-messages", "At 17:42.")) as server, served(*chat) as other:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{other.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        run_examples("pydantic_ai")
        bodies = [request.json() for request in server.requests]
    printed = capsys.readouterr().out
    assert (printed.count("At 17:42."), printed.count("At noon.")) == (2, 2)
    assert bodies[1]["thinking"] == {"type": "adaptive"}  # type: ignore[index]


async def test_the_code_of_a_user_runs() -> None:
    call = ("call_1", "high_tide", {"place": "Brest"})
    last = ("call_2", "final_result", {"place": "Brest", "hour": 17})
    told = [answer("openai-chat", call), answer("openai-chat", last)]
    with served(*whole(told)) as server:
        assert await hour_of(model("openai-chat", server), "When?") == 17
        assert server.requests[0].headers["x-team"] == "a"


async def test_a_model_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    last = ("call_2", "final_result", {"place": "Brest", "hour": 17})
    with served(*whole([answer("openai-chat", last)])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        assert await hour_of("openai/gpt-4.1", "When?") == 17
        assert server.requests[0].json()["model"] == "gpt-4.1"  # type: ignore[index]


def whole(told: list[Recording]) -> list[Recording]:
    """Return the answers as whole bodies."""
    messages = [deltafold.fold(one.body, "openai-chat") for one in told]
    bodies = [deltafold.encode_message(one, "openai-chat").body for one in messages]
    return [Recording.of(body, content_type="application/json") for body in bodies]
