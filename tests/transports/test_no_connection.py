"""A connection that never comes about: no such host, nothing listens, no TLS, no trust.

Each error has the reason, the address and the advice, through every client. A server without TLS
and an untrusted certificate are not retryable.
"""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import aiohttp
import anthropic
import anyio
import boto3
import botocore.config
import httpx
import httpx2
import openai
import pytest
import requests
import trustme

from deltafold import (
    AnthropicModel,
    BedrockConverseModel,
    ErrorCode,
    ErrorMapper,
    MistralModel,
    Model,
    ModelError,
    OpenAIChatModel,
)
from deltafold.testing import ReplayServer
from mistral_class import Mistral

KEY: Final[dict[str, Any]] = {"api_key": "k"}
ONCE: Final[dict[str, Any]] = {"api_key": "k", "max_retries": 0}
CHAT: Final[dict[str, Any]] = {"config": {"model_id": "m"}, **KEY}


def boto(url: str) -> object:
    sdk: Any = boto3
    return sdk.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=botocore.config.Config(retries={"total_max_attempts": 1}),
    )


Make = Callable[[str], Model[Any]]
WAITING: Final[dict[str, Make]] = {
    "httpx": lambda url: OpenAIChatModel(**CHAT, client=httpx.Client(), base_url=url),
    "httpx2": lambda url: OpenAIChatModel(**CHAT, client=httpx2.Client(), base_url=url),
    "openai": lambda url: OpenAIChatModel(**CHAT, client=openai.OpenAI(base_url=url, **ONCE)),
    "anthropic": lambda url: AnthropicModel(
        {"model_id": "m"}, client=anthropic.Anthropic(base_url=url, **ONCE)
    ),
    "mistral": lambda url: MistralModel({"model_id": "m"}, client=Mistral(server_url=url, **KEY)),
    "boto3": lambda url: BedrockConverseModel({"model_id": "m"}, client=boto(url)),
}
# The client of an event loop, made inside of it.
AWAITED: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "httpx, asyncio": ("asyncio", lambda _: httpx.AsyncClient()),
    "httpx, trio": ("trio", lambda _: httpx.AsyncClient()),
    "httpx2, asyncio": ("asyncio", lambda _: httpx2.AsyncClient()),
    "aiohttp": ("asyncio", lambda _: aiohttp.ClientSession()),
    "openai, asyncio": ("asyncio", lambda url: openai.AsyncOpenAI(base_url=url, **ONCE)),
}
EVERY_WAY: Final = pytest.mark.parametrize("way", [*WAITING, *AWAITED])


def failure_of(way: str, url: str) -> ModelError:
    if way in WAITING:
        with pytest.raises(ModelError) as caught:
            WAITING[way](url).send_message_sync("Hello")
        return caught.value
    loop, make = AWAITED[way]

    async def ask() -> None:
        async with make(url) as client:
            model = OpenAIChatModel(**CHAT, client=client, base_url=url)
            await model.send_message("Hello")

    with pytest.raises(ModelError) as caught:
        anyio.run(ask, backend=loop)
    return caught.value


@pytest.fixture(scope="module")
def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def untrusted() -> Iterator[str]:
    """Serve TLS with a certificate of an unknown authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate: Any = trustme.CA().issue_cert("localhost", "127.0.0.1")
    certificate.configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                try:
                    context.wrap_socket(connection, server_side=True).close()
                except OSError:
                    connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


@EVERY_WAY
def test_a_host_that_has_no_address_is_to_be_checked(way: str) -> None:
    error = failure_of(way, "http://nowhere.invalid")
    assert (error.code, error.retryable) == (ErrorCode.CONNECTION_LOST, True)
    assert error.provider_code == "gaierror"
    assert "nowhere.invalid" in error.message
    assert "the host name does not resolve; check the base URL" in str(error)
    assert "send the request again" not in str(error)


@EVERY_WAY
def test_an_address_where_nothing_listens_is_to_be_checked(way: str, free_port: int) -> None:
    error = failure_of(way, f"http://localhost:{free_port}")
    assert (error.code, error.retryable) == (ErrorCode.CONNECTION_LOST, True)
    assert error.provider_code == "ConnectionRefusedError"
    assert str(free_port) in error.message
    assert "nothing listens at this address; check the base URL" in str(error)
    assert "send the request again" not in str(error)


@EVERY_WAY
def test_a_certificate_that_is_not_trusted_stays_so(way: str, untrusted: str) -> None:
    error = failure_of(way, untrusted)
    assert (error.code, error.retryable) == (ErrorCode.CONNECTION_LOST, False)
    assert error.provider_code == "SSLCertVerificationError"
    assert "CERTIFICATE_VERIFY_FAILED" in error.message
    assert "the server's certificate is not trusted" in str(error)
    assert "send the request again" not in str(error)


@EVERY_WAY
def test_a_server_without_tls_stays_so(way: str) -> None:
    with ReplayServer() as server:
        error = failure_of(way, server.url.replace("http://", "https://"))
    assert (error.code, error.retryable) == (ErrorCode.CONNECTION_LOST, False)
    assert error.provider_code == "SSLError"
    assert "speaks no TLS" in str(error)
    assert "send the request again" not in str(error)


@pytest.mark.parametrize("url", ["http://nowhere.invalid", "http://localhost:{port}"])
def test_the_mapper_knows_the_exceptions_of_requests(url: str, free_port: int) -> None:
    with pytest.raises(requests.ConnectionError) as caught:
        requests.get(url.format(port=free_port), timeout=5)
    fields = ErrorMapper().map(caught.value)
    assert fields.code is ErrorCode.CONNECTION_LOST
    assert fields.provider_code in {"gaierror", "ConnectionRefusedError"}


def test_addresses_that_all_refuse_are_one_refusal() -> None:
    refused = "[Errno 111] Connect call failed ('::1', 9, 0, 0)"
    # As asyncio joins them where their texts differ.
    fields = ErrorMapper().map(OSError(f"Multiple exceptions: {refused}, [Errno 111] Connect"))
    assert (fields.code, fields.provider_code) == (
        ErrorCode.CONNECTION_LOST,
        "ConnectionRefusedError",
    )


def test_a_connection_that_was_lost_later_may_be_tried_again() -> None:
    error = ModelError.from_fields(ErrorMapper().map(ConnectionResetError("reset by peer")))
    assert "send the request again" in str(error)


def test_a_chain_of_causes_that_runs_in_a_circle_is_followed_once() -> None:
    first, second = ConnectionError(), ConnectionError()
    first.__cause__, second.__cause__ = second, first
    fields = ErrorMapper().map(first)
    assert (fields.code, fields.message) == (ErrorCode.CONNECTION_LOST, "ConnectionError")
