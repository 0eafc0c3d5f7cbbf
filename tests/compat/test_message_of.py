"""The message beside the objects of an accelerated client, while they pass and after the end."""

import asyncio
from typing import Any, Final

import pytest

from corpus import FIXTURES
from deltafold import compat
from deltafold.compat import anthropic as compat_anthropic
from deltafold.compat import openai as compat_openai
from sdk_clients import anthropic_client, async_openai_client, openai_client

CALL: Final = (FIXTURES / "openai-chat/tool-call/wire.sse").read_bytes()
TEXT: Final = (FIXTURES / "anthropic-messages/text/wire.sse").read_bytes()


def opened(body: bytes) -> Any:  # noqa: ANN401 - a stream of the SDK
    create: Any = compat_openai.accelerate(openai_client([body])).chat.completions.create
    return create(model="m", messages=[], stream=True)


def test_the_message_grows_with_the_objects() -> None:
    stream = opened(CALL)
    assert not compat.message_of(stream).parts
    assert list(stream)
    message = compat.message_of(stream)
    assert message.runnable_tool_calls
    assert message.meta.finish_reason == "tool_calls"


def test_the_call_of_a_cut_answer_may_not_run() -> None:
    stream = opened(CALL[: CALL.index(b'"finish_reason":"tool_calls"') - 200])
    with pytest.raises(Exception, match="stopped"):
        list(stream)
    assert not compat.message_of(stream).runnable_tool_calls


def test_an_asynchronous_stream_has_a_message_too() -> None:
    async def read() -> object:
        client = compat_openai.accelerate(async_openai_client([CALL]))
        create: Any = client.chat.completions.create
        stream = await create(model="m", messages=[], stream=True)
        async for _ in stream:
            pass
        return compat.message_of(stream).runnable_tool_calls

    assert asyncio.run(read())


def test_the_helper_of_the_sdk_has_the_message_of_its_stream() -> None:
    client = compat_anthropic.accelerate(anthropic_client([TEXT]))
    with client.messages.stream(model="m", max_tokens=9, messages=[]) as helper:
        text = helper.get_final_text()
        assert compat.message_of(helper).text == text


def test_the_streams_of_compat_have_their_message() -> None:
    create: Any = openai_client([CALL]).chat.completions.create
    fast: Any = compat_openai.chunks
    chunks = fast(create(model="m", messages=[], stream=True))
    list(chunks)
    assert compat.message_of(chunks).runnable_tool_calls


def test_another_object_is_refused() -> None:
    with pytest.raises(TypeError, match="the list is no stream"):
        compat.message_of([])
