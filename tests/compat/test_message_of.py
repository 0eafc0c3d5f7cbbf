"""The message beside the objects of an accelerated client, while they pass and after the end."""

import asyncio
import json
from typing import Any, Final

import anthropic
import pytest

from corpus import FIXTURES
from deltafold import compat
from deltafold.compat import anthropic as compat_anthropic
from deltafold.compat import openai as compat_openai
from sdk_clients import anthropic_client, async_anthropic_client, async_openai_client, openai_client

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


def typed(**event: Any) -> bytes:  # noqa: ANN401 - JSON
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode())


START: Final[dict[str, Any]] = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "c",
    "content": [],
}
TOOL: Final[dict[str, Any]] = {"type": "tool_use", "id": "t", "name": "pay", "input": {}}
WHOLE_CALL: Final = (
    typed(type="message_start", message=START)
    + typed(type="content_block_start", index=0, content_block=TOOL)
    + typed(
        type="content_block_delta",
        index=0,
        delta={"type": "input_json_delta", "partial_json": '{"n": 1}'},
    )
    + typed(type="content_block_stop", index=0)
)
"""An answer that ends behind a whole call, without a word about its end."""


def whole_call(failure: Exception | None = None) -> Any:  # noqa: ANN401 - a stream of the SDK
    client = compat_anthropic.accelerate(anthropic_client([WHOLE_CALL], failure))
    return client.messages.create(model="m", max_tokens=9, messages=[], stream=True)


def refused(stream: object) -> bool:
    """Return whether the message has the call, and forbids it."""
    message = compat.message_of(stream)
    return not message.runnable_tool_calls and list(message.not_runnable) == ["t"]


@pytest.mark.parametrize("failure", [None, ConnectionResetError("reset")], ids=["cut", "reset"])
def test_a_whole_call_of_an_answer_that_broke_off_may_not_run(failure: Exception | None) -> None:
    stream = whole_call(failure)
    with pytest.raises((ConnectionResetError, anthropic.APIConnectionError)):
        list(stream)
    assert refused(stream)


def test_a_whole_call_of_a_stream_that_was_left_may_not_run() -> None:
    with whole_call() as stream:
        for event in stream:
            if event.type == "content_block_stop":
                break
    assert refused(stream)
    unread = whole_call()
    unread.close()
    assert not compat.message_of(unread).parts


def test_a_whole_call_of_an_awaited_stream_that_was_left_may_not_run() -> None:
    async def left() -> object:
        client = compat_anthropic.accelerate(async_anthropic_client([WHOLE_CALL]))
        async with await client.messages.create(
            model="m", max_tokens=9, messages=[], stream=True
        ) as stream:
            async for event in stream:
                if event.type == "content_block_stop":
                    break
        return stream

    assert refused(asyncio.run(left()))


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
