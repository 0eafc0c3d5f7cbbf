"""The documentation of the provider for litellm, and a user's code."""

import pytest
from documented import run_examples
from served import model, served
from user_litellm import answer_of, register, words_of

from deltafold.testing import answer


def test_the_examples_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(answer("anthropic-messages", "At ", "17:42.")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        run_examples("litellm")
    assert capsys.readouterr().out.count("At 17:42.") == 2


async def test_the_code_of_a_user_runs() -> None:
    with served(answer("openai-chat", "At ", "noon.")) as server:
        register(model("openai-chat", server))
        words = [word async for word in words_of("When?")]
    assert "".join(words) == "At noon."


def test_the_code_of_a_user_gets_a_whole_answer() -> None:
    from deltafold import encode_message, fold  # noqa: PLC0415 - only here
    from deltafold.testing import Recording  # noqa: PLC0415 - only here

    told = encode_message(fold(answer("openai-chat", "Noon.").body, "openai-chat"), "openai-chat")
    with served(Recording.of(told.body, content_type="application/json")) as server:
        register(model("openai-chat", server))
        assert answer_of("When?") == "Noon."
