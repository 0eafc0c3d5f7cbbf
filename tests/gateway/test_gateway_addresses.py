"""Errors of the gateway's clients: they name no host and no port of an upstream."""

import json
import logging
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

import deltafold
from deltafold import ErrorCode, ErrorMapper, ModelError, OpenAIChatModel
from deltafold.gateway import create_app
from deltafold.testing import Recording, ReplayServer
from gateways import served

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
}
MESSAGES = [{"role": "user", "content": "When?"}]
every_client = pytest.mark.parametrize("protocol", PATHS)
every_transport = pytest.mark.parametrize("transport", ["httpx", "httpx2", "aiohttp"])
every_form = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture
def dead() -> Iterator[str]:
    """Yield the address of a host where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def answer(url: str, protocol: str, *, stream: bool) -> str:
    """Ask the gateway, and return the body of its answer."""
    asked: dict[str, Any] = {"model": "m", "stream": stream, "max_tokens": 9}
    asked |= {"input": "When?"} if protocol == "openai-responses" else {"messages": MESSAGES}
    headers = {"content-type": "application/json"}
    body = json.dumps(asked).encode()
    request = urllib.request.Request(url + PATHS[protocol], body, headers)  # noqa: S310 - of a test
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - of a test
            said: bytes = response.read()
    except urllib.error.HTTPError as refused:
        said = refused.read()
    return said.decode()


@every_client
@every_transport
@every_form
@pytest.mark.parametrize(
    "options", [{}, {"passthrough": True}, {"continue_answers": True}], ids=str
)
def test_an_upstream_that_is_down_is_not_named(
    protocol: str,
    transport: str,
    dead: str,
    options: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    *,
    stream: bool,
) -> None:
    caplog.set_level(logging.DEBUG, "deltafold")
    seen: list[ModelError | None] = []

    async def note(_: object, __: object, error: ModelError | None) -> None:
        seen.append(error)

    model = OpenAIChatModel(
        {"model_id": "m"}, base_url=f"http://{dead}/v1", api_key="k", transport=transport
    )
    with served(create_app({"m": model}, on_message=note, **options)) as url:
        said = answer(url, protocol, stream=stream)
    host, _, port = dead.partition(":")
    assert host not in said
    assert port not in said
    assert "the model's server refuses connections" in said
    # Who runs the gateway reads all of it.
    assert seen[0] is not None
    assert port in seen[0].message
    assert port in caplog.text


@every_client
@every_form
def test_a_redirect_of_an_upstream_is_not_named(protocol: str, *, stream: bool) -> None:
    moved = Recording.error(302, {}, {"location": "http://internal.example/login"})
    with ReplayServer({"*": moved}) as server:
        model = OpenAIChatModel({"model_id": "m"}, base_url=f"{server.url}/v1", api_key="k")
        with served(create_app({"m": model})) as url:
            said = answer(url, protocol, stream=stream)
    assert "internal.example" not in said
    assert "127.0.0.1" not in said
    assert "the answer of the model's server cannot be read" in said


@every_form
def test_the_words_of_a_provider_are_kept(*, stream: bool) -> None:
    refused = Recording.error(429, {"error": {"message": "slow down, m:8080"}})
    with ReplayServer({"*": refused}) as server:
        model = OpenAIChatModel({"model_id": "m"}, base_url=f"{server.url}/v1", api_key="k")
        with served(create_app({"m": model})) as url:
            assert "slow down, m:8080" in answer(url, "openai-chat", stream=stream)


def failing() -> Iterator[bytes]:
    yield b""
    raise ConnectionResetError("Cannot connect to host 10.1.2.3:8080")


def test_a_transcoded_stream_names_no_address() -> None:
    written = b"".join(deltafold.transcode_chunks(failing(), "openai-chat", "anthropic-messages"))
    assert b"10.1.2.3" not in written
    assert b"the connection to the model's server was lost" in written


def test_an_encoded_error_names_no_address_and_a_limit_stays() -> None:
    def written(failure: Exception) -> bytes:
        error = ModelError.from_fields(ErrorMapper().map(failure))
        error.__cause__ = failure
        return deltafold.encode_error(error, "openai-chat").body

    assert b"10.1.2.3" not in written(ConnectionResetError("of 10.1.2.3:8080"))
    assert b"10.1.2.3" not in written(TimeoutError(110, "Connect call failed ('10.1.2.3', 8080)"))
    assert b"(timeouts.idle)" in written(TimeoutError("no more bytes within 1 s (timeouts.idle)"))
    hook = ModelError(code=ErrorCode.SERVER_ERROR, message="closed on Sunday", retryable=False)
    hook.__cause__ = ValueError("Sunday")
    assert b"closed on Sunday" in deltafold.encode_error(hook, "openai-chat").body
