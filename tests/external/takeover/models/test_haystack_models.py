"""haystack's generators over recordings."""

import asyncio
from collections.abc import Callable
from typing import Any

from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from haystack_integrations.components.generators.anthropic import AnthropicChatGenerator
from served import answered, recordings, served

QUESTION = "?"


def reply(found: dict[str, list[ChatMessage]]) -> object:
    """Return the reply without its times."""
    replies = [message.to_dict() for message in found["replies"]]
    for one in replies:
        for name in ("completion_start_time", "received_at"):
            one["meta"].pop(name, None)
    return replies


def options(url: str) -> dict[str, Any]:
    """Return the arguments of each generator."""
    return {
        "api_key": Secret.from_token("k"),
        "model": "m",
        "streaming_callback": lambda _: None,
        "max_retries": 0,
        "timeout": 20,
        "api_base_url": f"{url}/v1",
    }


@recordings("openai-chat")
def test_chat(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    with served(path, body) as url:
        generator = OpenAIChatGenerator(**options(url))
        answer(answered(lambda: reply(generator.run([ChatMessage.from_user(QUESTION)]))))


@recordings("openai-chat")
def test_chat_async(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    async def hear(chunk: object) -> None:
        """Take a chunk."""

    async def ask(url: str) -> object:
        generator = OpenAIChatGenerator(**{**options(url), "streaming_callback": hear})
        return reply(await generator.run_async([ChatMessage.from_user(QUESTION)]))

    with served(path, body) as url:
        answer(answered(lambda: asyncio.run(ask(url))))


@recordings("openai-responses")
def test_responses(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    with served(path, body) as url:
        generator = OpenAIResponsesChatGenerator(**options(url))
        answer(answered(lambda: reply(generator.run([ChatMessage.from_user(QUESTION)]))))


@recordings("anthropic-messages")
def test_claude(path: str, body: bytes, answer: Callable[[object], None], monkeypatch: Any) -> None:
    with served(path, body) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        given = {name: one for name, one in options(url).items() if name != "api_base_url"}
        generator = AnthropicChatGenerator(**given)
        answer(answered(lambda: reply(generator.run([ChatMessage.from_user(QUESTION)]))))
