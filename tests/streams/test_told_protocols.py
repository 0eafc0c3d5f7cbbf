"""Streams without a named protocol: the address of the response tells it, or its first events."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, cast

import anthropic
import httpx
import httpx2
import openai
import pytest

import deltafold
from deltafold import ErrorCode, Message, MisuseError, ModelError, UnknownDialectError
from deltafold.transports.addresses import dialect_of_address
from protocol_bodies import event
from splits import sized
from ten_protocols import TEXT, streams

ADDRESSES: Final = {
    "https://api.openai.com/v1/chat/completions": "openai-chat",
    "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=1": "openai-chat",
    "https://api.openai.com/v1/responses": "openai-responses",
    "https://api.anthropic.com/v1/messages?beta=true": "anthropic-messages",
    "https://h/v1/projects/p/locations/l/publishers/anthropic/models/c:streamRawPredict": (
        "anthropic-messages"
    ),
    "https://h/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse": "gemini",
    "https://h/v1beta/models/gemini-3-pro:generateContent": "gemini",
    "https://h/v1beta/interactions": "gemini-interactions",
    "https://h/model/us.amazon.nova%3A0/converse-stream": "bedrock-converse",
    "https://h/model/us.anthropic.claude/invoke-with-response-stream": "bedrock-invoke",
    "http://localhost:11434/api/chat": "ollama",
    "http://localhost:11434/api/generate": "ollama",
    "https://api.cohere.com/v2/chat": "cohere-chat",
    "https://api.mistral.ai/v1/chat/completions": "mistral",
    "https://h/v1/projects/p/publishers/mistralai/models/m:streamRawPredict": None,
    "https://h/answers": None,
}


@pytest.mark.parametrize(("address", "dialect"), ADDRESSES.items(), ids=ADDRESSES)
def test_an_address_tells_the_protocol_that_is_spoken_there_alone(
    address: str, dialect: str | None
) -> None:
    response = httpx.Response(200, request=httpx.Request("POST", address))
    assert dialect_of_address(response) == dialect


def responses(body: bytes, path: str) -> Iterator[httpx.Response]:
    """Return responses of both kinds of address: one that is known, and one that says nothing."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=sized(body, 9)))
    for address in (path, "https://h/answers"):
        with httpx.Client(transport=transport) as client, client.stream("POST", address) as opened:
            yield opened


PATHS: Final = {dialect: address for address, dialect in ADDRESSES.items() if dialect}


@pytest.mark.parametrize("dialect", PATHS)
def test_a_response_needs_no_name(dialect: str) -> None:
    body = streams(calls=False)[dialect]
    for response in responses(body, PATHS[dialect]):
        with deltafold.stream(response) as stream:
            assert "".join(stream.text()) == TEXT
            assert f" {dialect} " in repr(stream)


@pytest.mark.parametrize("dialect", PATHS)
def test_a_response_that_is_awaited_needs_no_name(dialect: str) -> None:
    body = streams(calls=False)[dialect]

    async def chunks() -> AsyncIterator[bytes]:
        for piece in sized(body, 9):
            yield piece

    async def read(source: object) -> Message:
        async with deltafold.astream(source) as stream:
            return await stream.final_message()

    async def main() -> None:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=chunks()))
        async with httpx.AsyncClient(transport=transport) as client:
            for address in (PATHS[dialect], "https://h/answers"):
                async with client.stream("POST", address) as response:
                    assert (await read(response)).text == TEXT
        assert (await read(chunks())).text == TEXT
        assert (await deltafold.afold(chunks())).text == TEXT
        assert (await deltafold.afold(body)).text == TEXT
        folded = await deltafold.afold_choices(chunks())
        assert [one.text for one in folded.values()] == [TEXT]
        written = [data async for data in deltafold.atranscode_chunks(chunks(), None, "gemini")]
        assert deltafold.fold(b"".join(written)).text == TEXT

    asyncio.run(main())


def served(dialect: str) -> Any:  # noqa: ANN401 - of either package
    body = streams(calls=False)[dialect]
    kind = {"content-type": "text/event-stream"}
    return httpx2.MockTransport(lambda _: httpx2.Response(200, headers=kind, content=body))


def test_the_streams_of_sdks_need_no_name() -> None:
    client = httpx2.Client(transport=served("openai-responses"))
    made = openai.OpenAI(api_key="k", http_client=client)
    answer: Any = made.responses.create(model="m", input="hi", stream=True)
    with deltafold.stream(answer) as stream:
        assert stream.final_message().text == TEXT
        assert " openai-responses " in repr(stream)
    answer = made.responses.create(model="m", input="hi", stream=True)
    assert deltafold.fold_choices(answer)[0].text == TEXT
    client = httpx2.Client(transport=served("anthropic-messages"))
    claude = anthropic.Anthropic(api_key="k", http_client=client)
    said: Any = claude.messages.create(
        model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=True
    )
    assert deltafold.fold(said).text == TEXT


def test_an_address_that_lies_is_named() -> None:
    opened = responses(streams(calls=False)["gemini"], PATHS["openai-responses"])
    with (
        deltafold.stream(next(opened)) as stream,
        pytest.raises(ModelError, match="this is gemini"),
    ):
        stream.final_message()


def test_a_response_that_does_not_tell_its_protocol_is_closed() -> None:
    body = event({"hello": 1}) * 2
    closed: list[bool] = []

    def chunks() -> Iterator[bytes]:
        try:
            yield from sized(body, 9)
        finally:
            closed.append(True)

    with deltafold.stream(chunks()) as stream:
        with pytest.raises(UnknownDialectError, match="fits no dialect"):
            stream.final_message()
        assert closed == [True]
    error = stream.error
    assert error is not None
    assert error.code is ErrorCode.CANCELLED
    with pytest.raises(UnknownDialectError, match="fits no dialect"):
        asyncio.run(deltafold.afold(sized(body, 9)))


def test_a_refusal_is_read_without_a_name() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(429, content=b"Slow down"))
    with (
        httpx.Client(transport=transport) as client,
        client.stream("POST", "https://h/answers") as response,
        deltafold.stream(response) as stream,
        pytest.raises(ModelError) as caught,
    ):
        stream.final_message()
    assert caught.value.code is ErrorCode.RATE_LIMITED


def test_a_connection_that_is_lost_before_the_protocol_is_told_is_lost() -> None:
    def chunks() -> Iterator[bytes]:
        yield b": comment\n\n"
        raise ConnectionResetError

    with pytest.raises(ModelError) as caught:
        deltafold.fold(chunks())
    of_choices = deltafold.fold_choices(chunks())[0].error
    assert of_choices is not None
    assert (caught.value.retryable, of_choices.retryable) == (True, True)


def test_a_mistake_of_the_caller_is_still_one() -> None:
    with pytest.raises(UnknownDialectError, match="unknown dialect"):
        deltafold.stream(b"", cast("Any", "openai-chats"))
    with pytest.raises(MisuseError, match="use astream"):
        deltafold.stream(httpx.Response(200, content=_none()))


async def _none() -> AsyncIterator[bytes]:
    yield b""
