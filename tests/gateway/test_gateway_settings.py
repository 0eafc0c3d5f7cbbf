"""Settings that the gateway translates: what the upstream's model refuses is named in warnings."""

import asyncio
import json
from typing import Any, Final

import httpx2
import pytest

from deltafold import Message, ModelError, OpenAIChatModel
from deltafold.dialects import migrate_config
from deltafold.dialects.migration import Migrated
from deltafold.dialects.reader import ParsedRequest
from deltafold.gateway import ClientRequest, create_app, model_call
from deltafold.models.hooks import Hooks, RequestContext
from deltafold.testing import Recording, ReplayTransport
from protocol_bodies import DONE, chunk, finish

BODY: Final[dict[str, Any]] = {
    "model": "m",
    "max_tokens": 9,
    "temperature": 0.2,
    "top_k": 5,
    "messages": [{"role": "user", "content": "?"}],
}


async def call(
    *,
    streams: bool,
    body: dict[str, Any] = BODY,
    hooks: Hooks | None = None,
    key: str = "of-a-client",
    **settings: Any,  # noqa: ANN401 - settings of the upstream
) -> tuple[dict[str, Any], list[str]]:
    """Return the body that the upstream gets, and the warnings that `on_message` gets."""
    transport = ReplayTransport(flat_out=True)
    transport.queue(Recording.of(chunk({"content": "Hi"}) + finish("stop") + DONE))
    told: list[Message] = []

    async def on_message(_: ClientRequest, message: Message, __: ModelError | None) -> None:
        told.append(message)

    at: dict[str, Any] = {"base_url": "http://up.example", "api_key": "k"}
    model = OpenAIChatModel(settings, client=transport, hooks=hooks, **at)
    application = httpx2.ASGITransport(create_app({"m": model}, on_message=on_message))
    async with httpx2.AsyncClient(transport=application, base_url="http://localhost") as client:
        answer = await client.post(
            "/v1/messages", json=body | {"stream": streams}, headers={"x-api-key": key}
        )
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


@pytest.fixture
def migrated(monkeypatch: pytest.MonkeyPatch) -> list[ParsedRequest]:
    """Requests whose settings were migrated."""
    requests: list[ParsedRequest] = []

    def migrate(parsed: ParsedRequest, *args: Any, **kwargs: Any) -> Migrated:  # noqa: ANN401 - passed on
        requests.append(parsed)
        return migrate_config(parsed, *args, **kwargs)

    monkeypatch.setattr(model_call, "migrate_config", migrate)
    return requests


def test_settings_of_a_client_are_migrated_once(migrated: list[ParsedRequest]) -> None:
    settings: dict[str, Any] = {"model_id": "a-model-of-this-test"}
    first, second = (asyncio.run(call(streams=True, **settings)) for _ in range(2))
    assert first == second
    assert len(migrated) == 1
    body = BODY | {"metadata": {"user_id": "another"}}
    sent, _ = asyncio.run(call(streams=True, body=body, **settings))
    assert len(migrated) == 2
    assert sent != first[0]


def test_settings_are_kept_for_each_client_alone(migrated: list[ParsedRequest]) -> None:
    """Else the time of a call would tell whether another client has sent the same settings."""
    settings: dict[str, Any] = {"model_id": "a-model-of-two-clients"}
    one, again, other = (
        asyncio.run(call(streams=True, key=key, **settings)) for key in ("one", "one", "other")
    )
    assert one == again == other
    assert len(migrated) == 2


def test_a_hook_of_the_model_changes_no_settings_that_are_kept() -> None:
    def change(request: RequestContext) -> None:
        form: Any = request.body["response_format"]
        form["json_schema"]["schema"]["title"] = "changed"

    schema: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    body: dict[str, Any] = BODY | {
        "output_config": {"format": {"type": "json_schema", "schema": schema}}
    }
    settings: dict[str, Any] = {"model_id": "another-model-of-this-test"}
    first, _ = asyncio.run(call(streams=True, body=body, **settings))
    changed, _ = asyncio.run(
        call(streams=True, body=body, hooks=Hooks(before_request=change), **settings)
    )
    again, _ = asyncio.run(call(streams=True, body=body, **settings))
    assert "changed" in json.dumps(changed)
    assert again == first
