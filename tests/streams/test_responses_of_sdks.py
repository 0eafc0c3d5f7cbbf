"""Responses of SDKs beside openai and anthropic, read with and without a protocol."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final

import aiobotocore.session
import boto3
import cohere
import httpx
import httpx2
import ollama
import pytest
from google import genai
from mistralai.client import Mistral

import deltafold
from any_name import AnyName
from corpus import FIXTURES
from deltafold import Message, MisuseError, ModelError
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.transports.addresses import dialect_of_address

EVENTS: Final = "application/vnd.amazon.eventstream"
ASKED: Final[dict[str, Any]] = {"messages": [{"role": "user", "content": [{"text": "?"}]}]}
QUESTION: Final[Any] = [{"role": "user", "content": "?"}]
SETTINGS: Final = {
    "region_name": "us-east-1",
    "aws_access_key_id": "id",
    "aws_secret_access_key": "secret",
}
BODIES: Final = {
    name: (FIXTURES / name / case / "wire.bin").read_bytes()
    for name, case in (("bedrock-converse", "text"), ("bedrock-invoke", "anthropic-text"))
}
MEMBERS: Final = {"bedrock-converse": "stream", "bedrock-invoke": "body"}
OPERATIONS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "bedrock-converse": ("converse_stream", {"modelId": "m", **ASKED}),
    "bedrock-invoke": ("invoke_model_with_response_stream", {"modelId": "m", "body": b"{}"}),
}


OPEN: Final[list[Any]] = []
"""Clients of the test that runs."""


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as replay:
        yield replay
        while OPEN:
            OPEN.pop().close()


def opened(client: Any) -> Any:  # noqa: ANN401 - of any SDK
    """Return a client that is closed after the test."""
    OPEN.append(client)
    return client


def bedrock(server: ReplayServer) -> Any:  # noqa: ANN401 - untyped
    sdk: Any = boto3
    return opened(sdk.client("bedrock-runtime", endpoint_url=server.url, **SETTINGS))


def recording(dialect: str, size: int | None = None) -> Recording:
    return Recording.of(BODIES[dialect], piece_bytes=size, content_type=EVENTS)


def asked(server: ReplayServer, dialect: str) -> dict[str, Any]:
    """Return the answer of boto3 to a request."""
    operation, arguments = OPERATIONS[dialect]
    found: dict[str, Any] = getattr(bedrock(server), operation)(**arguments)
    return found


def said(message: Message) -> tuple[object, ...]:
    return message.text, message.meta.finish_reason, message.meta.usage


def expected(dialect: AnyName) -> tuple[object, ...]:
    return said(deltafold.fold(BODIES[dialect], dialect))


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("whole", [True, False], ids=["answer", "member"])
@pytest.mark.parametrize("dialect", BODIES)
def test_the_answers_of_boto3_are_read(
    dialect: AnyName, server: ReplayServer, *, whole: bool, is_named: bool
) -> None:
    for size in (1, 97, None):
        server.queue(recording(dialect, size))
        found = asked(server, dialect)
        response = found if whole else found[MEMBERS[dialect]]
        tee: list[object] = []
        with deltafold.stream(response, dialect if is_named else None, tee=tee.append) as stream:
            message = stream.final_message()
        assert said(message) == expected(dialect)
        assert b"".join(tee) == BODIES[dialect]  # type: ignore[arg-type]
        assert stream.response is not None
        assert stream.response.headers.get("content-type") == (EVENTS if whole else None)
        assert dialect_of_address(asked_again(server, dialect)) == dialect


def asked_again(server: ReplayServer, dialect: str) -> object:
    server.queue(recording(dialect))
    found = asked(server, dialect)
    found[MEMBERS[dialect]].close()
    return found


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("whole", [True, False], ids=["answer", "member"])
@pytest.mark.parametrize("dialect", BODIES)
def test_the_answers_of_aiobotocore_are_awaited(
    dialect: AnyName, server: ReplayServer, *, whole: bool, is_named: bool
) -> None:
    async def main() -> Message:
        session: Any = aiobotocore.session
        making = session.get_session().create_client(
            "bedrock-runtime", endpoint_url=server.url, **SETTINGS
        )
        operation, arguments = OPERATIONS[dialect]
        async with making as client:
            found = await getattr(client, operation)(**arguments)
            response = found if whole else found[MEMBERS[dialect]]
            with pytest.raises(MisuseError, match=r"asynchronous: use astream\(\)"):
                deltafold.stream(response)
            async with deltafold.astream(response, dialect if is_named else None) as stream:
                return await stream.final_message()

    server.queue(recording(dialect, 97))
    assert said(asyncio.run(main())) == expected(dialect)


def test_an_event_stream_of_boto3_that_was_begun_is_refused(server: ReplayServer) -> None:
    server.queue(*[recording("bedrock-converse")] * 2)
    found = asked(server, "bedrock-converse")
    next(iter(found["stream"]))
    for response in (found, found["stream"]):
        with pytest.raises(MisuseError, match="a part of this EventStream was read already"):
            deltafold.stream(response)
    found["stream"].close()
    found = asked(server, "bedrock-converse")
    with pytest.raises(MisuseError, match=r"synchronous: use stream\(\)"):
        deltafold.astream(found)
    found["stream"].close()


def test_a_tracer_in_the_place_of_the_event_stream_counts_its_events(server: ReplayServer) -> None:
    server.queue(recording("bedrock-converse"))
    found = asked(server, "bedrock-converse")
    counted: list[object] = []

    def traced(events: Any) -> Iterator[object]:  # noqa: ANN401 - untyped
        for event in events:
            counted.append(event)
            yield event

    with deltafold.stream({**found, "stream": traced(found["stream"])}) as stream:
        message = stream.final_message()
    assert said(message) == expected("bedrock-converse")
    assert len(counted) > 1
    found["stream"].close()


def test_an_error_and_a_cut_of_boto3_are_failures(server: ReplayServer) -> None:
    body = BODIES["bedrock-converse"]
    server.queue(Recording.of(body[: len(body) // 2], content_type=EVENTS))
    with (
        deltafold.stream(asked(server, "bedrock-converse")) as stream,
        pytest.raises(ModelError) as caught,
    ):
        stream.final_message()
    assert caught.value.partial_message is not None
    assert caught.value.retryable


def mistral(server: ReplayServer) -> Any:  # noqa: ANN401 - typed with generated models
    http = opened(httpx2.Client())
    return Mistral(api_key="k", server_url=server.url, client=http)


def test_the_streams_of_mistralai_name_their_protocol(server: ReplayServer) -> None:
    async def awaited() -> Message:
        async with Mistral(api_key="k", server_url=server.url) as client:
            response = await client.chat.stream_async(model="m", messages=QUESTION)
            assert dialect_of_address(response) == "mistral"
            async with deltafold.astream(response) as stream:
                return await stream.final_message()

    server.queue(*[answer("openai-chat", "At ", "17:42.")] * 3)
    for call in (mistral(server).chat.stream, mistral(server).fim.stream):
        given = {"prompt": "?"} if "Fim" in type(call.__self__).__name__ else {"messages": QUESTION}
        response = call(model="m", **given)
        assert dialect_of_address(response) == "mistral"
        with deltafold.stream(response) as stream:
            assert stream.final_message().text == "At 17:42."
    assert asyncio.run(awaited()).text == "At 17:42."


def gemini(server: ReplayServer) -> Any:  # noqa: ANN401 - partly typed
    options: Any = {"base_url": server.url}
    return opened(genai.Client(api_key="k", http_options=options))


# google-genai uses aiohttp in a way of which aiohttp warns.
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize("dialect", [None, "gemini"])
def test_the_streams_of_google_genai_are_read(
    dialect: AnyName | None, server: ReplayServer
) -> None:
    async def awaited() -> Message:
        client = gemini(server)
        response = await client.aio.models.generate_content_stream(model="m", contents="?")
        async with deltafold.astream(response, dialect) as stream:
            message = await stream.final_message()
        await client.aio.aclose()
        return message

    server.queue(*[answer("gemini", "At ", "17:42.")] * 2)
    response = gemini(server).models.generate_content_stream(model="m", contents="?")
    with deltafold.stream(response, dialect) as stream:
        message = stream.final_message()
    assert message.text == "At 17:42."
    assert said(asyncio.run(awaited())) == said(message)


def cohere_client(server: ReplayServer) -> Any:  # noqa: ANN401 - as above
    http = opened(httpx.Client())
    return cohere.ClientV2("k", base_url=server.url, httpx_client=http)


def ollama_client(server: ReplayServer) -> Any:  # noqa: ANN401 - as above
    return opened(ollama.Client(server.url))


def test_the_streams_of_cohere_and_ollama_are_read(server: ReplayServer) -> None:
    body = (FIXTURES / "cohere-chat" / "text" / "wire.sse").read_bytes()
    server.queue(Recording.of(body))
    response = cohere_client(server).chat_stream(model="m", messages=QUESTION)
    with deltafold.stream(response) as stream:
        assert stream.final_message().text == deltafold.fold(body, "cohere-chat").text
    server.queue(answer("ollama", "At ", "17:42."))
    response = ollama_client(server).chat("m", messages=QUESTION, stream=True)
    with deltafold.stream(response) as stream:
        assert stream.final_message().text == "At 17:42."


def whole_answer(dialect: AnyName, server: ReplayServer) -> object:
    """Return an answer that an SDK has read as a whole."""
    if dialect == "cohere-chat":
        said_whole = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}
        body = json.dumps({"id": "1", "finish_reason": "COMPLETE", "message": said_whole}).encode()
        server.queue(Recording.of(body, content_type="application/json"))
        return cohere_client(server).chat(model="m", messages=QUESTION)
    encoded: AnyName = "openai-chat" if dialect == "mistral" else dialect
    message = deltafold.fold(answer(encoded, "At 17:42.").body, encoded)
    made = deltafold.encode_message(message, encoded)
    server.queue(Recording.of(made.body, content_type="application/json"))
    if dialect == "gemini":
        return gemini(server).models.generate_content(model="m", contents="?")
    if dialect == "mistral":
        return mistral(server).chat.complete(model="m", messages=QUESTION)
    return bedrock(server).converse(modelId="m", **ASKED)


CALLS: Final = {
    "gemini": "client.models.generate_content_stream(...)",
    "mistral": "client.chat.stream(...)",
    "bedrock-converse": "client.converse_stream(...)",
    "cohere-chat": "client.chat_stream(...)",
}
"""The calls whose answers the tests before this one read."""


@pytest.mark.parametrize("dialect", CALLS)
def test_a_whole_answer_is_told_the_call_that_streams(dialect: str, server: ReplayServer) -> None:
    found = whole_answer(dialect, server)
    for read, keyword in ((deltafold.stream, ""), (deltafold.astream, "await ")):
        with pytest.raises(MisuseError) as caught:
            read(found)
        assert f"{read.__name__}({keyword}{CALLS[dialect]})" in str(caught.value)
