"""Streams of the SDKs over recorded bytes: the SDK's own objects, exceptions and faults."""

import asyncio
from typing import Any

import anthropic
import openai
import pytest

import deltafold
from any_name import AnyName
from corpus import FIXTURES
from deltafold.compat import anthropic as fast_anthropic
from deltafold.compat import openai as fast_openai
from deltafold.testing import (
    Recording,
    answer,
    fake_anthropic_stream,
    fake_async_anthropic_stream,
    fake_async_openai_stream,
    fake_openai_stream,
)

TEXT = "The tide is high."


def recording(target: AnyName) -> Recording:
    return answer(target, "The tide ", "is high.")


def test_chunks_of_chat() -> None:
    stream = fake_openai_stream(recording("openai-chat"))
    assert isinstance(stream, openai.Stream)
    text = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert "".join(text) == TEXT


def test_events_of_responses() -> None:
    stream = fake_openai_stream(recording("openai-responses"), "responses")
    text = [event.delta for event in stream if event.type == "response.output_text.delta"]
    assert "".join(text) == TEXT


def test_events_of_messages() -> None:
    stream = fake_anthropic_stream(recording("anthropic-messages"))
    assert isinstance(stream, anthropic.Stream)
    deltas = [event.delta for event in stream if event.type == "content_block_delta"]
    assert "".join(delta.text for delta in deltas if delta.type == "text_delta") == TEXT


def test_asynchronous_streams() -> None:
    async def read() -> None:
        chat = await fake_async_openai_stream(recording("openai-chat"))
        chunks = [chunk async for chunk in chat]
        assert chunks == list(fake_openai_stream(recording("openai-chat")))
        responses = await fake_async_openai_stream(recording("openai-responses"), "responses")
        events = [event async for event in responses]
        assert events[-1].type == "response.completed"
        messages = await fake_async_anthropic_stream(recording("anthropic-messages"))
        kinds = [event.type async for event in messages]
        assert kinds[-1] == "message_stop"

    asyncio.run(read())


def test_bytes_of_a_body_are_a_recording() -> None:
    body = FIXTURES / "openai-chat/tool-call/wire.sse"
    found = list(fake_openai_stream(body.read_bytes()))
    assert found


def test_deltafold_reads_a_fake_as_a_real_stream() -> None:
    with deltafold.stream(fake_openai_stream(recording("openai-chat"))) as deltas:
        assert deltas.final_message().text == TEXT
    chunks = fast_openai.chunks(fake_openai_stream(recording("openai-chat")))
    assert list(chunks) == list(fake_openai_stream(recording("openai-chat")))
    events = fast_anthropic.events(fake_anthropic_stream(recording("anthropic-messages")))
    assert list(events) == list(fake_anthropic_stream(recording("anthropic-messages")))


def test_an_http_error_is_the_exception_of_the_sdk() -> None:
    refused = Recording.error(429, {"error": {"message": "slow down"}}, {"retry-after": "3"})
    with pytest.raises(openai.RateLimitError, match="slow down"):
        fake_openai_stream(refused)
    with pytest.raises(anthropic.RateLimitError, match="slow down"):
        fake_anthropic_stream(refused)


@pytest.mark.parametrize(
    ("ending", "name"), [("reset", "ReadError"), ("cut", "RemoteProtocolError")]
)
def test_a_fault_is_that_of_the_http_client(ending: Any, name: str) -> None:  # noqa: ANN401
    broken = recording("anthropic-messages").stopping(ending, 300)
    with pytest.raises(Exception, match="connection was") as raised:
        list(fake_anthropic_stream(broken))
    assert type(raised.value).__name__ == name

    async def read() -> None:
        async for _ in await fake_async_anthropic_stream(broken):
            pass

    with pytest.raises(Exception, match="connection was") as raised:
        asyncio.run(read())
    assert type(raised.value).__name__ == name


def test_misuse_is_named() -> None:
    with pytest.raises(deltafold.MisuseError, match="'chat' or 'responses', not 'completions'"):
        fake_openai_stream(b"", "completions")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
