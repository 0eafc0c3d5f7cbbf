"""The documentation of the adapter of strands, and a user's code."""

import pytest
from documented import run_examples
from served import model, served
from user_strands import Tide, answer_of, tide_of, words_of

from deltafold.testing import answer


def test_the_examples_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ("call_1", "high_tide", {"place": "Brest"})
    told = [answer("anthropic-messages", one) for one in ("At 17:42.", call, "At 17:43.")]
    with served(*told) as server, served(answer("openai-chat", "At noon.")) as other:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{other.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        run_examples("strands")
    shown = capsys.readouterr().out
    assert "At 17:42." in shown
    assert "At 17:43." in shown
    assert shown.count("At noon.") == 2


async def test_the_code_of_a_user_runs() -> None:
    call = ("call_1", "high_tide", {"place": "Brest"})
    with served(answer("openai-chat", call), answer("openai-chat", "At 17:42.")) as server:
        assert (await answer_of(model("openai-chat", server), "When?")).strip() == "At 17:42."
    with served(answer("openai-chat", "At ", "noon.")) as server:
        words = [word async for word in words_of(model("openai-chat", server), "When?")]
    assert words == ["At ", "noon."]
    with served(answer("openai-chat", '{"place": "Brest", "hour": 17}')) as server:
        assert await tide_of(model("openai-chat", server), "When?") == Tide(place="Brest", hour=17)


async def test_a_model_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(answer("openai-chat", "At 17:42.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        assert (await answer_of("openai/gpt-4.1", "When?")).strip() == "At 17:42."
        assert server.requests[0].json()["model"] == "gpt-4.1"  # type: ignore[index]
