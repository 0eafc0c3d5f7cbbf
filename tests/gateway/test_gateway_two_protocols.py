"""Models of a vendor with two protocols: the gateway speaks the one that takes the request."""

import asyncio
import json
from typing import Any, Final

import httpx2
import pytest

from deltafold.gateway import ModelTable, create_app
from deltafold.testing import Recording, ReplayServer, answer

CHAT: Final = "/v1/chat/completions"
RESPONSES: Final = "/v1/responses"
MESSAGES: Final = "/v1/messages"

OF_CHAT: Final[dict[str, Any]] = {"messages": [{"role": "user", "content": "?"}]}
TOOL: Final[dict[str, Any]] = {"name": "f", "parameters": {"type": "object", "properties": {}}}
TOOLS: Final[dict[str, Any]] = {"tools": [{"type": "function", "function": TOOL}]}
OF_RESPONSES: Final[dict[str, Any]] = {
    "input": "?",
    "tools": [{"type": "function", **TOOL}],
    "reasoning": {"effort": "medium"},
}


async def called(table: dict[str, Any], path: str, body: dict[str, Any]) -> tuple[str, Any]:
    """Return the path and the body of the call that a client's request becomes."""
    with ReplayServer() as server:
        server.recordings[CHAT] = answer("openai-chat", "Hi")
        server.recordings[RESPONSES] = answer("openai-responses", "Hi")
        settings = {"base_url": f"{server.url}/v1", "api_key": "k"}
        models = {
            name: {**({"model": entry} if isinstance(entry, str) else entry), **settings}
            for name, entry in table.items()
        }
        upstreams = ModelTable(models)
        transport = httpx2.ASGITransport(create_app(upstreams))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for streams in (True, False):
                found = await client.post(path, json={**body, "stream": streams})
                assert found.status_code == 200, found.text
                assert "Hi" in found.text
        await upstreams.aclose()
    paths = {request.path for request in server.requests}
    assert len(paths) == 1
    return paths.pop(), json.loads(server.requests[0].body)


@pytest.mark.parametrize(
    ("path", "body", "upstream"),
    [
        (CHAT, {"model": "gpt-5.6-terra", **OF_CHAT}, CHAT),
        (CHAT, {"model": "gpt-5.6-terra", **OF_CHAT, **TOOLS}, RESPONSES),
        (CHAT, {"model": "gpt-5.6-terra", **OF_CHAT, **TOOLS, "reasoning_effort": "none"}, CHAT),
        (CHAT, {"model": "gpt-5.4", **OF_CHAT, **TOOLS}, CHAT),
        (CHAT, {"model": "gpt-5.4", **OF_CHAT, **TOOLS, "reasoning_effort": "low"}, RESPONSES),
        (CHAT, {"model": "gpt-5-mini", **OF_CHAT, **TOOLS, "reasoning_effort": "low"}, CHAT),
        (CHAT, {"model": "gpt-6.1-sol", **OF_CHAT, **TOOLS}, RESPONSES),
        (CHAT, {"model": "gpt-5.3-codex", **OF_CHAT}, RESPONSES),
        (CHAT, {"model": "gpt-4.1", **OF_CHAT, **TOOLS}, CHAT),
        (CHAT, {"model": "unlisted", **OF_CHAT, **TOOLS}, CHAT),
        (RESPONSES, {"model": "gpt-5.6-terra", **OF_RESPONSES}, RESPONSES),
        (RESPONSES, {"model": "gpt-5.3-codex", **OF_RESPONSES}, RESPONSES),
        (RESPONSES, {"model": "unlisted", **OF_RESPONSES}, CHAT),
        (MESSAGES, {"model": "gpt-5.6-terra", "max_tokens": 9, **OF_CHAT}, RESPONSES),
        (MESSAGES, {"model": "gpt-4.1", "max_tokens": 9, **OF_CHAT}, CHAT),
    ],
)
@pytest.mark.parametrize("is_pattern", [True, False])
def test_a_request_goes_to_the_protocol_that_takes_it(
    path: str, body: dict[str, Any], upstream: str, *, is_pattern: bool
) -> None:
    name = "*" if is_pattern else body["model"]
    found, sent = asyncio.run(called({name: f"openai/{name}"}, path, body))
    assert found == upstream
    assert sent["model"] == body["model"]


@pytest.mark.parametrize(
    ("entry", "upstream"),
    [
        ({"model": "openai-chat/gpt-5.6-terra"}, CHAT),
        ({"model": "openai/gpt-5.6-terra", "specification": "openai-chat"}, CHAT),
        ({"model": "openai/gpt-5.6-terra", "seed": 7}, CHAT),
        ({"model": "openai/prod", "known_as": "gpt-5.6-terra"}, RESPONSES),
    ],
)
def test_an_entry_may_fix_the_protocol(entry: dict[str, Any], upstream: str) -> None:
    body = {"model": "m", **OF_RESPONSES}
    found, _ = asyncio.run(called({"m": entry}, RESPONSES, body))
    assert found == upstream


def test_the_effort_of_an_entry_counts() -> None:
    entry = {"model": "openai/gpt-5.4", "reasoning_effort": "low"}
    body = {"model": "m", **OF_CHAT, **TOOLS}
    assert asyncio.run(called({"m": entry}, CHAT, body))[0] == RESPONSES


def test_the_next_upstream_speaks_its_own_protocol() -> None:
    async def answered() -> list[str]:
        with ReplayServer() as server:
            at = {"base_url": f"{server.url}/v1", "api_key": "k"}
            server.queue(Recording.error(529, {"error": {"message": "busy"}}))
            server.recordings[RESPONSES] = answer("openai-responses", "Hi")
            chain = [{"model": f"openai/{name}", **at} for name in ("gpt-4.1", "gpt-5.6-terra")]
            upstreams = ModelTable({"m": chain})
            transport = httpx2.ASGITransport(create_app(upstreams))
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as one:
                found = await one.post(CHAT, json={"model": "m", **OF_CHAT, **TOOLS})
            assert found.status_code == 200
            await upstreams.aclose()
        return [request.path for request in server.requests]

    assert asyncio.run(answered()) == [CHAT, RESPONSES]
