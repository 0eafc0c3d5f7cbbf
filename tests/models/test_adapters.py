"""Every adapter over real HTTP: through its SDK where that gives bytes, and plain clients."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import aiobotocore.session
import aiohttp
import anthropic
import boto3
import httpx
import openai
import pytest
from botocore.config import Config

import deltafold
from any_name import AnyName
from corpus import FIXTURES
from deltafold import Message
from deltafold.testing import Recording, ReplayServer
from mistral_class import Mistral

EVENT_STREAM = {"content-type": "application/vnd.amazon.eventstream"}
NDJSON = {"content-type": "application/x-ndjson"}
SSE = {"content-type": "text/event-stream"}


def openai_client(url: str, *, asynchronous: bool) -> Any:  # noqa: ANN401 - two unrelated classes
    make = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    return make(base_url=f"{url}/v1", api_key="key", max_retries=0)


def anthropic_client(url: str, *, asynchronous: bool) -> Any:  # noqa: ANN401 - as above
    make = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    return make(base_url=url, api_key="key", max_retries=0)


def mistral_client(url: str, *, asynchronous: bool) -> Any:  # noqa: ANN401, ARG001 - one class for both
    return Mistral(api_key="key", server_url=url)


def bedrock_client(url: str, *, asynchronous: bool) -> Any:  # noqa: ANN401 - untyped
    settings = {
        "endpoint_url": url,
        "region_name": "us-east-1",
        "aws_access_key_id": "id",
        "aws_secret_access_key": "secret",
    }
    if asynchronous:
        session: Any = aiobotocore.session
        return session.get_session().create_client("bedrock-runtime", **settings)
    config = Config(retries={"total_max_attempts": 1})
    sdk: Any = boto3
    return sdk.client("bedrock-runtime", config=config, **settings)


@dataclass(frozen=True)
class Adapter:
    """One row: which fixtures its server plays, under which path, through which SDK."""

    name: str
    fixtures: tuple[str, ...]
    path: str
    base: str = ""
    headers: Any = None
    sdk: Callable[..., Any] | None = None
    wire: str = "wire.sse"


ADAPTERS = {
    "anthropic-messages": Adapter(
        "anthropic/m", ("text", "parallel-calls"), "/v1/messages", sdk=anthropic_client
    ),
    "openai-chat": Adapter(
        "openai/m", ("text", "parallel-calls"), "/v1/chat/completions", "/v1", sdk=openai_client
    ),
    "openai-responses": Adapter(
        "openai/m", ("text", "parallel-calls"), "/v1/responses", "/v1", sdk=openai_client
    ),
    "gemini": Adapter(
        "google/m", ("text", "parallel-calls"), "/v1beta/models/m:streamGenerateContent?alt=sse"
    ),
    "bedrock-converse": Adapter(
        "bedrock/m",
        ("text", "parallel-calls"),
        "/model/m/converse-stream",
        headers=EVENT_STREAM,
        sdk=bedrock_client,
        wire="wire.bin",
    ),
    "ollama": Adapter(
        "ollama/m", ("text", "parallel-calls"), "/api/chat", headers=NDJSON, wire="wire.ndjson"
    ),
    "cohere-chat": Adapter("cohere/m", ("text", "parallel-calls"), "/v2/chat"),
    "mistral": Adapter(
        "mistral/m", ("text", "calls"), "/v1/chat/completions", "/v1", sdk=mistral_client
    ),
}
PLAIN_CLIENTS: Any = {
    "httpx": httpx.AsyncClient,
    "aiohttp": aiohttp.ClientSession,
}
CASES = [
    (dialect, fixture, client)
    for dialect, adapter in ADAPTERS.items()
    for fixture in adapter.fixtures
    for client in (*PLAIN_CLIENTS, *(("sdk",) if adapter.sdk else ()))
]


def body_of(dialect: str, fixture: str) -> bytes:
    return (FIXTURES / dialect / fixture / ADAPTERS[dialect].wire).read_bytes()


def recording_of(dialect: str, fixture: str) -> Recording:
    whole = Recording.of(body_of(dialect, fixture), piece_bytes=200)
    return Recording(whole.pieces, headers=ADAPTERS[dialect].headers or SSE)


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as replay:
        yield replay


@contextmanager
def made_client(dialect: str, client: str, url: str) -> Generator[Any]:
    if client == "httpx":
        with httpx.Client() as made:
            yield made
        return
    sdk = ADAPTERS[dialect].sdk
    assert sdk is not None
    made = sdk(url, asynchronous=False)
    yield made
    if hasattr(made, "close"):
        made.close()


@asynccontextmanager
async def made_async_client(dialect: str, client: str, url: str) -> AsyncGenerator[Any]:
    if client == "sdk":
        sdk = ADAPTERS[dialect].sdk
        assert sdk is not None
        context = sdk(url, asynchronous=True)
    else:
        context = PLAIN_CLIENTS[client]()
    async with context as made:
        yield made


def load(dialect: str, client: object, url: str) -> Any:  # noqa: ANN401 - any adapter
    adapter = ADAPTERS[dialect]
    return deltafold.load_model(
        adapter.name,
        specification=dialect,
        client=client,
        base_url=url + adapter.base,
        api_key="key",
    )


def check(dialect: AnyName, fixture: str, message: Message, server: ReplayServer) -> None:
    expected = deltafold.fold(body_of(dialect, fixture), dialect, run_id="run", model_id="m")
    assert message.same_content(expected)
    request = server.requests[0]
    assert request.path == ADAPTERS[dialect].path
    body = request.json()
    assert isinstance(body, dict)
    assert "Hello" in request.body.decode()


@pytest.mark.parametrize(
    ("dialect", "fixture", "client"), [case for case in CASES if case[2] in {"httpx", "sdk"}]
)
def test_an_adapter_streams_what_the_bytes_say(
    dialect: str, fixture: str, client: str, server: ReplayServer
) -> None:
    server.queue(recording_of(dialect, fixture))
    with (
        made_client(dialect, client, server.url) as made,
        load(dialect, made, server.url).stream_sync(
            "Hello", request_metadata={"run_id": "run"}
        ) as stream,
    ):
        message = stream.final_message()
    check(dialect, fixture, message, server)


@pytest.mark.parametrize(("dialect", "fixture", "client"), CASES)
def test_an_adapter_streams_asynchronously_what_the_bytes_say(
    dialect: str, fixture: str, client: str, server: ReplayServer
) -> None:
    server.queue(recording_of(dialect, fixture))

    async def main() -> Message:
        async with (
            made_async_client(dialect, client, server.url) as made,
            load(dialect, made, server.url).stream(
                "Hello", request_metadata={"run_id": "run"}
            ) as stream,
        ):
            message: Message = await stream.final_message()
            return message

    check(dialect, fixture, asyncio.run(main()), server)


def test_claude_on_bedrock_answers_in_frames_of_its_own(server: ReplayServer) -> None:
    body = (FIXTURES / "bedrock-invoke" / "anthropic-text" / "wire.bin").read_bytes()
    server.queue(Recording(Recording.of(body, piece_bytes=100).pieces, headers=EVENT_STREAM))
    sdk: Any = anthropic
    with sdk.AnthropicBedrock(
        base_url=server.url,
        aws_region="us-east-1",
        aws_access_key="id",
        aws_secret_key="secret",
        max_retries=0,
    ) as client:
        model = deltafold.AnthropicModel({"model_id": "m"}, client=client)
        with model.stream_sync("Hello", request_metadata={"run_id": "run"}) as stream:
            message = stream.final_message()
    assert message.same_content(deltafold.fold(body, "bedrock-invoke", run_id="run", model_id="m"))
    assert message.parts
    assert server.requests[0].path == "/model/m/invoke-with-response-stream"


def test_claude_on_vertex_answers_as_the_messages_api_does(server: ReplayServer) -> None:
    server.queue(recording_of("anthropic-messages", "text"))
    sdk: Any = anthropic
    with sdk.AnthropicVertex(
        base_url=server.url,
        region="us-east5",
        project_id="p",
        access_token="token",
        max_retries=0,
    ) as client:
        model = deltafold.AnthropicModel({"model_id": "m"}, client=client)
        with model.stream_sync("Hello", request_metadata={"run_id": "run"}) as stream:
            message = stream.final_message()
    body = body_of("anthropic-messages", "text")
    expected = deltafold.fold(body, "anthropic-messages", run_id="run", model_id="m")
    assert message.same_content(expected)
    assert server.requests[0].path.endswith("publishers/anthropic/models/m:streamRawPredict")


def test_gemini_on_vertex_has_its_project_in_the_address(server: ReplayServer) -> None:
    server.queue(recording_of("gemini", "text"))
    place = f"{server.url}/v1/projects/p/locations/l/publishers/google"
    with httpx.Client() as client:
        model = deltafold.load_model(
            "google-vertex/gemini-3", client=client, base_url=place, api_key="token"
        )
        with model.stream_sync("Hello") as stream:
            assert stream.final_message().text
    request = server.requests[0]
    assert request.path == (
        "/v1/projects/p/locations/l/publishers/google/models/gemini-3:streamGenerateContent?alt=sse"
    )
    assert request.headers["authorization"] == "Bearer token"
    assert "x-goog-api-key" not in request.headers
