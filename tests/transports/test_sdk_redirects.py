"""Clients of SDKs that a Model makes: no redirect takes a conversation to another origin."""

import asyncio
from typing import Any

import pytest

from deltafold import (
    AnthropicModel,
    ErrorCode,
    MistralModel,
    Model,
    ModelError,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from deltafold.testing import Recording, ReplayServer
from protocol_bodies import DONE, chunk, said
from wires import ANTHROPIC

CHAT = said("hi") + chunk({}, "stop") + DONE
MODELS: dict[str, tuple[type[Model[Any]], str, bytes]] = {
    "openai": (OpenAIChatModel, "/v1", CHAT),
    "responses": (OpenAIResponsesModel, "/v1", CHAT),
    "anthropic": (AnthropicModel, "", ANTHROPIC),
    "mistral": (MistralModel, "/v1", CHAT),
}
every_kind = pytest.mark.parametrize("kind", ["synchronous", "asynchronous"])


def text_of(name: str, kind: str, url: str) -> str:
    adapter, path, _ = MODELS[name]
    model = adapter(
        {"model_id": "m", "max_tokens": 9},
        base_url=url + path,
        api_key="secret-key",
        transport="sdk",
    )

    async def run() -> str:
        async with model:
            return (await model.stream("PRIVATE").final_message()).text

    if kind == "asynchronous":
        return asyncio.run(run())
    with model:
        return model.stream_sync("PRIVATE").final_message().text


@every_kind
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", MODELS)
def test_a_redirect_to_another_origin_is_not_followed(name: str, status: int, kind: str) -> None:
    body = MODELS[name][2]
    with ReplayServer({"*": Recording.of_events(body)}) as other:
        moved = Recording.error(status, {}, {"location": f"{other.url}/v1/elsewhere"})
        with ReplayServer({"*": moved}) as server:
            with pytest.raises(ModelError) as raised:
                text_of(name, kind, server.url)
            assert len(server.requests) == 1
        assert not other.requests
    assert (raised.value.code, raised.value.retryable) == (ErrorCode.PROTOCOL_ERROR, False)


@every_kind
@pytest.mark.parametrize("name", ["openai", "anthropic", "mistral"])
def test_a_redirect_to_the_same_origin_is_followed(name: str, kind: str) -> None:
    body = MODELS[name][2]
    with ReplayServer() as server:
        moved = Recording.error(307, {}, {"location": "/v2/elsewhere"})
        server.queue(moved, Recording.of_events(body))
        assert text_of(name, kind, server.url)
        paths = [request.path for request in server.requests]
    assert paths[1] == "/v2/elsewhere"
    assert all(b"PRIVATE" in request.body for request in server.requests)
