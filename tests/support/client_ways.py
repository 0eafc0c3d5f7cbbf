"""Models of two dialects over every client, in every event loop that the client knows."""

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import aiohttp
import anthropic
import anyio
import httpx
import httpx2
import openai
import pytest

from deltafold import (
    AnthropicModel,
    Model,
    OpenAIChatModel,
)
from protocol_bodies import DONE, chunk, said
from wires import ANTHROPIC

CHAT: Final = said("a", "b", "c") + chunk({}, "stop") + DONE
STREAMED: Final = {"openai-chat": CHAT, "anthropic-messages": ANTHROPIC}

MODELS: Final[dict[str, type[Model[Any]]]] = {
    "openai-chat": OpenAIChatModel,
    "anthropic-messages": AnthropicModel,
}
# To load the certificates takes longer than all the rest of a test.
CERTIFICATES: Final = ssl.create_default_context()


def sdk_client(sdk: Any, name: str, http_name: str, url: str) -> Any:  # noqa: ANN401 - of either SDK
    http = getattr(sdk, http_name)(verify=CERTIFICATES)
    return getattr(sdk, name)(base_url=url, api_key="key", max_retries=0, http_client=http)


SYNC_CLIENTS: Final[dict[str, Callable[[str], Any]]] = {
    "httpx": lambda _: httpx.Client(verify=CERTIFICATES),
    "httpx2": lambda _: httpx2.Client(verify=CERTIFICATES),
    "openai": partial(sdk_client, openai, "OpenAI", "DefaultHttpxClient"),
    "anthropic": partial(sdk_client, anthropic, "Anthropic", "DefaultHttpxClient"),
}
ASYNC_CLIENTS: Final[dict[str, Callable[[str], Any]]] = {
    "httpx": lambda _: httpx.AsyncClient(verify=CERTIFICATES),
    "httpx2": lambda _: httpx2.AsyncClient(verify=CERTIFICATES),
    "aiohttp": lambda _: aiohttp.ClientSession(),
    "openai": partial(sdk_client, openai, "AsyncOpenAI", "DefaultAsyncHttpxClient"),
    "anthropic": partial(sdk_client, anthropic, "AsyncAnthropic", "DefaultAsyncHttpxClient"),
}
WAYS: Final = (
    *((client, "") for client in SYNC_CLIENTS),
    *((client, "asyncio") for client in ASYNC_CLIENTS),
    ("httpx", "trio"),
    ("httpx2", "trio"),
    ("anthropic", "trio"),
)

every_way = pytest.mark.parametrize(("package", "loop"), WAYS)
every_plain_way = pytest.mark.parametrize(
    ("package", "loop"), [way for way in WAYS if way[0] not in {"openai", "anthropic"}]
)


def dialect_for(package: str) -> str:
    return "anthropic-messages" if package == "anthropic" else "openai-chat"


def settings_for(url: str) -> dict[str, Any]:
    return {"base_url": url, "api_key": "key"}


def model_for(package: str, client: object, url: str, **settings: Any) -> Model[Any]:  # noqa: ANN401 - of Model
    return MODELS[dialect_for(package)](
        {"model_id": "m", "max_tokens": 9}, client=client, **settings_for(url), **settings
    )


def with_model(
    package: str,
    loop: str,
    url: str,
    use: Callable[[Model[Any]], None],
    use_async: Callable[[Model[Any]], Any],
    **settings: Any,  # noqa: ANN401 - of Model
) -> None:
    """Use one client for all that a test does."""
    if not loop:
        with SYNC_CLIENTS[package](url) as client:
            use(model_for(package, client, url, **settings))
        return

    async def main() -> None:
        async with ASYNC_CLIENTS[package](url) as client:
            await use_async(model_for(package, client, url, **settings))

    anyio.run(main, backend=loop)
