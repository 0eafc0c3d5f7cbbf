"""langroid's model over recordings."""

import asyncio
from collections.abc import Callable

from langroid.language_models.base import LLMMessage, Role
from langroid.language_models.openai_gpt import OpenAIGPT, OpenAIGPTConfig
from served import answered, recordings, served

QUESTION = [LLMMessage(role=Role.USER, content="?")]


def model_at(url: str) -> OpenAIGPT:
    """Return the model of a server."""
    config = OpenAIGPTConfig(
        chat_model="m", api_base=f"{url}/v1", api_key="k", cache_config=None, stream=True
    )
    config.retry_params.max_retries = 0
    return OpenAIGPT(config)


@recordings("openai-chat")
def test_chat(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    with served(path, body) as url:
        answer(answered(lambda: model_at(url).chat(QUESTION).model_dump()))


@recordings("openai-chat")
def test_chat_async(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    async def ask(url: str) -> object:
        return (await model_at(url).achat(QUESTION)).model_dump()

    with served(path, body) as url:
        answer(answered(lambda: asyncio.run(ask(url))))
