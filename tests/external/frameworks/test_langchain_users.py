"""The documentation of the adapter of langchain, and a user's code."""

import pytest
from answering import AnsweringServer
from documented import run_examples
from served import model
from user_langchain import Tide, by_name, called, tide_of, words_of


def test_the_examples_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with AnsweringServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        found = run_examples("langchain")
    assert "Hello!" in capsys.readouterr().out
    assert found["answer"].tool_calls[0]["name"] == "high_tide"


async def test_the_code_of_a_user_runs() -> None:
    with AnsweringServer() as server:
        client = model("openai-chat", server)
        words = [word async for word in words_of(client, "When?")]
        assert "".join(words).startswith("Hello!")
        assert by_name("key").max_tokens == 500
        assert called(client, "When?") == ["high_tide"]
        assert isinstance(tide_of(client, "When?"), Tide)
