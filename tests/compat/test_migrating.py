"""For users of an SDK: its responses and exceptions go on working, other objects are explained.

Real clients over loopback; their objects are passed on as users have them.
"""

import asyncio
import copy
import gc
import pickle
import traceback
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import aiohttp
import anthropic
import anyio
import httpx
import openai
import pytest
import requests
from openai.types.chat import ChatCompletion

import deltafold
from deltafold import (
    AnthropicModel,
    DeltaStream,
    ErrorCode,
    MisuseError,
    ModelError,
    OpenAIChatModel,
)
from deltafold.testing import Recording, ReplayServer
from wires import ANTHROPIC, CHAT, chat

USER: Final[Any] = [{"role": "user", "content": "hi"}]
ASK: Final[dict[str, Any]] = {"model": "m", "messages": USER}
PARSED: Final[dict[str, Any]] = {"id": "c", "choices": []}
SAID: Final = deltafold.fold(CHAT, "openai-chat").parts


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    recordings = {
        "/v1/chat/completions": Recording.of_events(CHAT),
        "/v1/messages": Recording.of_events(ANTHROPIC),
    }
    with ReplayServer(recordings) as replay:
        yield replay


def openai_client(server: ReplayServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)


def openai_async(server: ReplayServer) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)


def anthropic_client(server: ReplayServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)


def anthropic_async(server: ReplayServer) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0)


# The exception of the client stays reachable.

BREAKS: Final = Recording.of_events(CHAT).stopping("reset", len(CHAT) // 2)
REFUSES: Final = Recording.error(429, {"error": {"message": "no"}})


def test_the_exception_of_an_sdk_is_the_cause(server: ReplayServer) -> None:
    server.queue(REFUSES)
    with openai_client(server) as client:
        model = OpenAIChatModel({"model_id": "m"}, client=client)
        with pytest.raises(ModelError) as caught:
            model.send_message_sync("hi")
        server.queue(REFUSES)
        with model.stream_sync("hi") as stream:
            assert [delta.kind for delta in stream] == ["start", "error"]
            assert stream.error is not None
            assert isinstance(stream.error.__cause__, openai.RateLimitError)
            assert stream.error.__cause__.response.status_code == 429
        with pytest.raises(ModelError) as again:
            stream.final_message()
    assert again.value.__cause__ is stream.error.__cause__
    cause = caught.value.__cause__
    assert isinstance(cause, openai.RateLimitError)
    shown = "".join(traceback.format_exception(caught.value))
    assert "openai.RateLimitError" in shown
    assert "The above exception was the direct cause" in shown


CLIENTS: Final[dict[str, tuple[Callable[[], Any], str]]] = {
    "httpx": (httpx.Client, "httpx"),
    "httpx, asyncio": (httpx.AsyncClient, "httpx"),
    "aiohttp": (aiohttp.ClientSession, "aiohttp"),
}


def failed(way: str, url: str) -> list[ModelError]:
    """Fail in every way of reading."""
    make, errors = CLIENTS[way][0], list[ModelError]()
    settings: dict[str, Any] = {"base_url": f"{url}/v1", "api_key": "k"}
    if way == "httpx":
        with make() as client:
            model = OpenAIChatModel({"model_id": "m"}, client=client, **settings)
            ways: list[Callable[[DeltaStream], object]] = [
                lambda one: list(one.text()),
                DeltaStream.final_message,
            ]
            for read in ways:
                with model.stream_sync("hi") as stream:
                    with pytest.raises(ModelError) as caught:
                        read(stream)
                    errors += [caught.value, stream.error or caught.value]
        return errors

    async def main() -> None:
        async with make() as client:
            model = OpenAIChatModel({"model_id": "m"}, client=client, **settings)
            async with model.stream("hi") as stream:
                with pytest.raises(ModelError) as caught:
                    [text async for text in stream.text()]
                errors.extend([caught.value, stream.error or caught.value])
            with pytest.raises(ModelError) as caught:
                await model.send_message("hi")
            errors.append(caught.value)

    asyncio.run(main())
    return errors


@pytest.mark.parametrize("way", CLIENTS)
def test_the_exception_of_an_http_client_is_the_cause(way: str, server: ReplayServer) -> None:
    server.recordings = {"*": BREAKS}
    for error in failed(way, server.url):
        assert error.code is ErrorCode.CONNECTION_LOST
        assert error.__cause__ is not None
        assert type(error.__cause__).__module__.partition(".")[0] == CLIENTS[way][1]
        assert error.__suppress_context__


@pytest.mark.parametrize("way", CLIENTS)
def test_a_refusal_that_came_as_a_response_has_no_cause(way: str, server: ReplayServer) -> None:
    server.recordings = {"*": REFUSES}
    for error in failed(way, server.url):
        assert error.code is ErrorCode.RATE_LIMITED
        assert error.__cause__ is None
        assert error.__suppress_context__


def test_a_cause_is_not_pickled_and_keeps_no_stream() -> None:
    class LostError(ConnectionError):
        def __reduce__(self) -> str:
            raise AssertionError("a cause may not be picklable")

    def chunks() -> Iterator[bytes]:
        yield CHAT[:100]
        raise LostError("gone")

    gc.collect()
    gc.disable()
    try:
        stream = deltafold.stream(chunks(), "openai-chat")
        list(stream)
        error, left = stream.error, weakref.ref(stream)
        del stream
        assert left() is None  # no cycle through the traceback
    finally:
        gc.enable()
    assert error is not None
    assert isinstance(error.__cause__, LostError)
    assert traceback.extract_tb(error.__cause__.__traceback__)[-1].name == "chunks"
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own
        assert (str(other), other.__cause__) == (str(error), None)


# Objects that iterate both ways.


class Both:
    """Chunks for either way of waiting."""

    def __iter__(self) -> Iterator[bytes]:
        return iter([CHAT[:50], CHAT[50:]])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk


def test_what_iterates_both_ways_is_read_both_ways() -> None:
    assert deltafold.stream(Both(), "openai-chat").final_message().parts == SAID

    async def main() -> list[Any]:
        async with deltafold.astream(Both(), "openai-chat") as stream:
            return (await stream.final_message()).parts

    assert asyncio.run(main()) == SAID


# Lines without their ends.


def test_the_lines_of_requests_are_explained(server: ReplayServer) -> None:
    with requests.post(f"{server.url}/v1/chat/completions", json={}, stream=True, timeout=5) as got:
        with pytest.raises(MisuseError, match=r"lines without their ends.* the response itself"):
            deltafold.stream(got.iter_lines(), "openai-chat")
        lines = [*got.iter_lines()]
    for given in (lines, (line for line in lines if line)):
        with (
            deltafold.stream(given, "openai-chat") as stream,
            pytest.raises(MisuseError, match="lines without their ends"),
        ):
            stream.final_message()

    async def awaited() -> AsyncIterator[bytes]:
        for line in lines:
            yield line

    async def main() -> None:
        with pytest.raises(MisuseError, match=r"lines without their ends.* the response itself"):
            await deltafold.afold(awaited(), "openai-chat")

    asyncio.run(main())


@pytest.mark.parametrize(
    "lines",
    [
        [b"event: message_start", b'data: {"type":"message_start"}'],
        [b'data: {"a":1}', b"", b'data: {"a":2}'],
        [b'{"message":{"content":"a"}}', b'{"message":{"content":"b"}}'],
    ],
    ids=["named events", "events", "JSON"],
)
def test_lines_of_every_framing_are_explained(lines: list[bytes]) -> None:
    dialect: Any = "ollama" if lines[0].startswith(b"{") else "anthropic-messages"
    with pytest.raises(MisuseError, match="lines without their ends"):
        deltafold.fold(lines, dialect)


def test_a_body_may_be_cut_anywhere_for_all_that() -> None:
    body = b'data: {"choices":[{"delta":{"content":"data: {}"}}]}\n\n' + chat("b")
    whole = deltafold.fold(body, "openai-chat").text
    for first in range(len(body)):
        for second in (first, min(first + 1, len(body)), len(body)):
            pieces = [body[:first], body[first:second], body[second:]]
            assert deltafold.fold(pieces, "openai-chat").text == whole
    lines = body.splitlines(keepends=True)
    assert deltafold.fold(lines, "openai-chat").text == whole
    ends = [piece for line in body.split(b"\n") for piece in (line, b"\n")]
    assert deltafold.fold(ends, "openai-chat").text == whole


# Managers that were not entered, and coroutines that were not awaited.


def managers(server: ReplayServer) -> dict[str, tuple[Callable[[], Any], str]]:
    chat_call = r"stream\(client.chat.completions.create\(..., stream=True\)\)"
    messages_call = r"stream\(client.messages.create\(..., stream=True\)\)"
    chats, messages = openai_client(server).chat.completions, anthropic_client(server).messages
    return {
        "openai": (lambda: chats.stream(**ASK), chat_call),
        "openai responses": (
            lambda: openai_client(server).responses.stream(model="m", input="hi"),
            r"stream\(client.responses.create\(..., stream=True\)\)",
        ),
        "anthropic": (lambda: messages.stream(**ASK, max_tokens=9), messages_call),
        "anthropic beta": (
            lambda: anthropic_client(server).beta.messages.stream(**ASK, max_tokens=9),
            messages_call,
        ),
        "raw": (
            lambda: chats.with_streaming_response.create(**ASK, stream=True),
            r"was not entered: with … as response: stream\(response\)",
        ),
        "httpx": (
            lambda: httpx.stream("POST", server.url),
            r"was not entered: with … as response: stream\(response\)",
        ),
        "parsed": (
            lambda: ChatCompletion.model_construct(**PARSED),
            "is parsed already: ask for the stream",
        ),
    }


@pytest.mark.parametrize(
    "case", ["openai", "openai responses", "anthropic", "anthropic beta", "raw", "httpx", "parsed"]
)
def test_what_is_no_response_yet_is_told_the_call(case: str, server: ReplayServer) -> None:
    make, told = managers(server)[case]
    with pytest.raises(MisuseError, match=told):
        deltafold.stream(make(), "openai-chat")
    assert not server.requests


@pytest.mark.parametrize("case", ["openai", "anthropic", "httpx", "aiohttp"])
def test_a_coroutine_that_was_not_awaited_is_told_so_and_closed(
    case: str, server: ReplayServer
) -> None:
    async def main() -> None:
        http, session = httpx.AsyncClient(), aiohttp.ClientSession()
        made: dict[str, Callable[[], Any]] = {
            "openai": lambda: openai_async(server).chat.completions.create(**ASK, stream=True),
            "anthropic": lambda: anthropic_async(server).messages.create(
                **ASK, max_tokens=9, stream=True
            ),
            "httpx": lambda: http.post(server.url),
            "aiohttp": lambda: session.post(server.url),
        }
        for read in (deltafold.astream, deltafold.stream):
            with pytest.raises(MisuseError, match=r"was not awaited: a?stream\(await client"):
                read(made[case](), "openai-chat")
        await http.aclose()
        await session.close()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()
    assert not server.requests


def test_an_async_manager_is_told_to_await(server: ReplayServer) -> None:
    async def main() -> None:
        async with openai_async(server) as client:
            manager = client.chat.completions.stream(**ASK)
            with pytest.raises(MisuseError, match=r"astream\(await client.chat.completions.create"):
                deltafold.astream(manager)
            async with manager as helper, deltafold.astream(helper) as stream:
                assert (await stream.final_message()).parts == SAID

    asyncio.run(main())


def test_the_helpers_of_the_sdks_are_read_once_they_are_entered(server: ReplayServer) -> None:
    with openai_client(server) as client, client.chat.completions.stream(**ASK) as helper:
        assert deltafold.stream(helper).final_message().parts == SAID
    with anthropic_client(server) as other, other.messages.stream(**ASK, max_tokens=9) as manager:
        assert deltafold.stream(manager).final_message().text


# Responses of which a part was read.


def test_a_stream_of_an_sdk_that_was_read_in_part_is_refused(server: ReplayServer) -> None:
    told = "a part of this Response was read already"
    with (
        openai_client(server) as client,
        client.chat.completions.create(**ASK, stream=True) as chats,
    ):
        next(chats)
        with pytest.raises(MisuseError, match=told):
            deltafold.stream(chats)
    with (
        anthropic_client(server) as other,
        other.messages.create(**ASK, max_tokens=9, stream=True) as messages,
    ):
        next(iter(messages))
        with pytest.raises(MisuseError, match=told):
            deltafold.stream(messages)


def test_a_response_of_requests_that_was_read_in_part_is_refused(server: ReplayServer) -> None:
    url = f"{server.url}/v1/chat/completions"
    with requests.post(url, json={}, stream=True, timeout=5) as response:
        next(response.iter_content(10))
        with pytest.raises(MisuseError, match="a part of this Response was read already"):
            deltafold.stream(response, "openai-chat")
    with requests.post(url, json={}, stream=True, timeout=5) as response:
        assert b"".join(response.iter_content(None)) == CHAT
        with pytest.raises(MisuseError, match="a part of this Response was read already"):
            deltafold.stream(response, "openai-chat")
    whole = requests.post(url, json={}, timeout=5)
    assert deltafold.stream(whole, "openai-chat").final_message().parts == SAID


def test_a_response_that_is_awaited_and_was_read_in_part_is_refused(server: ReplayServer) -> None:
    url = f"{server.url}/v1/chat/completions"
    told = "a part of this .* was read already"

    async def main() -> None:
        async with openai_async(server) as client:
            made = await client.chat.completions.create(**ASK, stream=True)
            await anext(aiter(made))
            with pytest.raises(MisuseError, match=told):
                deltafold.astream(made)
            await made.close()
        async with httpx.AsyncClient() as http, http.stream("POST", url) as begun:
            await anext(begun.aiter_bytes())
            with pytest.raises(MisuseError, match=told):
                deltafold.astream(begun, "openai-chat")
        async with aiohttp.ClientSession() as session, session.post(url) as response:
            await response.content.read(10)
            with pytest.raises(MisuseError, match=told):
                deltafold.astream(response, "openai-chat")
        async with httpx.AsyncClient() as http:
            whole = await http.post(url)
            read = deltafold.astream(whole, "openai-chat")
            assert (await read.final_message()).parts == SAID

    anyio.run(main)


def test_a_model_of_an_sdk_answers_as_the_sdk_does(server: ReplayServer) -> None:
    with anthropic_client(server) as client:
        model = AnthropicModel({"model_id": "m", "max_tokens": 9}, client=client)
        answer = model.send_message_sync(USER).text
    assert answer == deltafold.fold(ANTHROPIC, "anthropic-messages").text
