"""gptme's streams over recordings."""

from collections.abc import Callable, Generator
from typing import Any

from gptme.llm import llm_anthropic, llm_openai
from gptme.message import Message
from served import answered, recordings, served

QUESTION = [Message("system", "Answer."), Message("user", "?")]


def pieces(stream: Generator[str, None, Any]) -> object:
    """Return the pieces of a stream and its metadata."""
    found = list[str]()
    while True:
        try:
            found.append(next(stream))
        except StopIteration as end:
            return [found, repr(end.value)]


@recordings("openai-chat")
def test_chat(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    with served(path, body) as url:
        llm_openai._init_openai_client("local", api_key="k", base_url=f"{url}/v1")
        answer(answered(lambda: pieces(llm_openai.stream(QUESTION, "local/m", None))))


@recordings("openai-responses")
def test_responses(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    with served(path, body) as url:
        llm_openai._init_openai_client("openai", api_key="k", base_url=f"{url}/v1")
        answer(answered(lambda: pieces(llm_openai.stream(QUESTION, "openai/gpt-5", None))))


@recordings("anthropic-messages")
def test_claude(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    with served(path, body) as url:
        llm_anthropic.reinit("k", proxy_url=url)
        answer(answered(lambda: pieces(llm_anthropic.stream(QUESTION, "claude-sonnet-4-5", None))))
