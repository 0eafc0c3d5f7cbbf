"""Settings that the gateway translates: what the upstream's model refuses is named in warnings."""

import asyncio
import json
from typing import Any, Final

import httpx2
import pytest

from deltafold import Message, ModelError, OpenAIChatModel
from deltafold.gateway import ClientRequest, create_app
from deltafold.testing import Recording, ReplayTransport
from protocol_bodies import DONE, chunk, finish

BODY: Final[dict[str, Any]] = {
    "model": "m",
    "max_tokens": 9,
    "temperature": 0.2,
    "top_k": 5,
    "messages": [{"role": "user", "content": "?"}],
}


async def call(*, streams: bool, **settings: Any) -> tuple[dict[str, Any], list[str]]:  # noqa: ANN401 - settings of the upstream
    """Return the body that the upstream gets, and the warnings that `on_message` gets."""
    transport = ReplayTransport(flat_out=True)
    transport.queue(Recording.of(chunk({"content": "Hi"}) + finish("stop") + DONE))
    told: list[Message] = []

    async def on_message(_: ClientRequest, message: Message, __: ModelError | None) -> None:
        told.append(message)

    model = OpenAIChatModel(settings, client=transport, base_url="http://up.example", api_key="k")
    application = httpx2.ASGITransport(create_app({"m": model}, on_message=on_message))
    async with httpx2.AsyncClient(transport=application, base_url="http://localhost") as client:
        answer = await client.post("/v1/messages", json=BODY | {"stream": streams})
    assert answer.status_code == 200
    sent: dict[str, Any] = json.loads(transport.requests[0].body)
    return sent, [str(warning["message"]) for warning in told[0].meta.warnings]


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"model_id": "gpt-5-mini"}, False),
        ({"model_id": "our-deployment", "known_as": "gpt-5-mini"}, False),
        ({"model_id": "gpt-5-mini", "strict_settings": True}, True),
        ({"model_id": "gpt-4.1"}, True),
    ],
)
def test_a_warning_names_each_setting_that_does_not_arrive(
    settings: dict[str, Any], *, kept: bool, streams: bool
) -> None:
    sent, warnings = asyncio.run(call(streams=streams, **settings))
    assert ("temperature" in sent) is kept
    named = [warning.split(": ")[1] for warning in warnings]
    assert sorted(named) == ["top_k"] if kept else ["temperature", "top_k"]
