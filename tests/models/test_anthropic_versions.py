"""The version of the Messages API that a request names, over each kind of client."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import anthropic
import httpx2
import pytest

from deltafold import AnthropicModel
from deltafold.testing import ReplayServer, answer

CONFIG: Final[dict[str, Any]] = {"model_id": "claude-haiku-4-5", "max_tokens": 9}
NEWER: Final = {"anthropic-version": "2026-10-21"}


def sent(client: Callable[[str], anthropic.Anthropic], **config: object) -> Any:  # noqa: ANN401 - a request
    """Return the request of a Model over a client of the SDK at a replay server."""
    with ReplayServer([answer("anthropic-messages", "Hi")]) as server:
        with client(server.url) as opened:
            model = AnthropicModel({**CONFIG, **config}, client=opened)
            assert model.send_message_sync("?", stream=True).text == "Hi"
        return server.requests[0]


def direct(url: str, **options: object) -> anthropic.Anthropic:
    given: Any = options
    return anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, **given)


def test_a_client_of_the_sdk_names_the_version_in_which_requests_are_rendered() -> None:
    request = sent(direct, temperature=0.5)
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.json()["temperature"] == 0.5


@pytest.mark.parametrize("name", ["anthropic-version", "Anthropic-Version"])
def test_the_version_of_the_caller_stays(name: str) -> None:
    request = sent(direct, extra_headers={name: "2026-10-21"})
    assert request.headers["anthropic-version"] == "2026-10-21"
    request = sent(partial(direct, default_headers={name: "2026-10-21"}))
    assert request.headers["anthropic-version"] == "2026-10-21"


def test_a_plain_client_takes_the_version_of_the_caller() -> None:
    with ReplayServer([answer("anthropic-messages", "Hi")]) as server:
        config = {**CONFIG, "extra_headers": NEWER}
        with AnthropicModel(config, base_url=server.url, api_key="k") as model:
            model.send_message_sync("?", stream=True)
        assert server.requests[0].headers["anthropic-version"] == "2026-10-21"


@pytest.mark.parametrize(
    ("cloud", "version"), [("Bedrock", "bedrock-2023-05-31"), ("Vertex", "vertex-2023-10-16")]
)
def test_the_clients_of_clouds_have_the_version_in_the_body(cloud: str, version: str) -> None:
    bodies: list[Any] = []

    def answered(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.read()))
        return httpx2.Response(400, json={"error": {"message": "no"}})

    http = httpx2.Client(transport=httpx2.MockTransport(answered))
    sdk: Any = anthropic
    options: dict[str, Any] = {"http_client": http, "max_retries": 0}
    if cloud == "Bedrock":
        client = sdk.AnthropicBedrock(
            aws_region="us-east-1", aws_access_key="a", aws_secret_key="b", **options
        )
    else:
        client = sdk.AnthropicVertex(region="us-east5", project_id="p", access_token="t", **options)
    with client, pytest.raises(Exception, match="no"):
        AnthropicModel(CONFIG, client=client).send_message_sync("?", stream=True)
    assert bodies[0]["anthropic_version"] == version
