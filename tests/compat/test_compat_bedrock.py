"""`deltafold.compat.anthropic` over `AnthropicBedrock`: the events of frames of AWS."""

import asyncio
from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from typing import Any, Final, cast

import anthropic
import pytest
from anthropic.types import RawMessageStreamEvent

from corpus import FIXTURES, needs_corpus
from deltafold import ErrorCode, ModelError
from deltafold.compat import anthropic as fast
from deltafold.compat.object_streams import ObjectStream
from event_stream import chunk, event, exception, frame, header
from samples import sampled
from sdk_clients import async_bedrock_client, bedrock_client
from sdk_objects import (
    CUT,
    aread,
    difference,
    differences,
    fixtures,
    read,
    recordings,
)

REQUEST: Final[Any] = {"model": "m", "max_tokens": 1, "messages": [], "stream": True}
START: Final[dict[str, object]] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}
BODY: Final = (
    FIXTURES / "bedrock-invoke" / "anthropic-thinking-and-call" / "wire.bin"
).read_bytes()


def messages(chunks: Sequence[bytes]) -> Any:  # noqa: ANN401 - as the SDK's `create`
    client: Any = bedrock_client(chunks)
    return client.messages.create(**REQUEST)


def fast_events(stream: object) -> ObjectStream[RawMessageStreamEvent]:
    return fast.events(cast("anthropic.Stream[RawMessageStreamEvent]", stream))


def ours(chunks: Sequence[bytes]) -> Iterable[object]:
    return fast_events(messages(chunks))


def of_claude(streams: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield the streams whose chunks have events of Messages."""
    for name, body in streams:
        if not body.startswith(b"{") and ("anthropic" in name or "claude" in name):
            yield name, body


def test_every_fixture_yields_the_objects_and_exceptions_of_the_sdk() -> None:
    found = dict(of_claude(fixtures("bedrock-invoke")))
    assert len(found) >= 4
    assert differences(found.items(), messages, ours, {"anthropic-cut": CUT}) == {}


@needs_corpus
def test_every_recording_yields_the_objects_and_exceptions_of_the_sdk() -> None:
    found = dict(of_claude(recordings("bedrock-invoke")))
    assert len(found) >= 10
    assert differences(found.items(), messages, ours, {}) == {}


def test_the_beta_yields_the_objects_of_the_beta() -> None:
    def beta() -> Any:  # noqa: ANN401 - untyped, as the request
        client: Any = bedrock_client([BODY])
        return client.beta.messages.create(**REQUEST)

    assert difference(read(beta()), read(fast_events(beta()))) is None


@sampled(13)
def test_a_chunk_may_end_anywhere(every: int) -> None:
    whole = read(ours([BODY]))
    assert whole.raised is None
    assert len(whole.objects) > 5
    for cut in range(1, len(BODY), every):
        assert difference(whole, read(ours([BODY[:cut], BODY[cut:]]))) is None, cut
    assert difference(whole, read(ours([bytes([byte]) for byte in BODY]))) is None


def test_asynchronous_streams_yield_what_synchronous_ones_do() -> None:
    async def objects() -> object:
        client: Any = async_bedrock_client([BODY])
        stream: anthropic.AsyncStream[RawMessageStreamEvent] = await client.messages.create(
            **REQUEST
        )
        return await aread(fast.events(stream))

    assert asyncio.run(objects()) == read(ours([BODY]))


def test_an_accelerated_client_yields_the_same_objects() -> None:
    client: Any = fast.accelerate(bedrock_client([BODY]))
    stream: object = client.messages.create(**REQUEST)
    assert isinstance(stream, anthropic.Stream)
    objects = cast("Iterable[object]", stream)
    assert difference(read(messages([BODY])), read(objects)) is None


def test_an_accelerated_asynchronous_client_yields_the_same_objects() -> None:
    async def objects() -> object:
        client: Any = fast.accelerate(async_bedrock_client([BODY]))
        stream = await client.messages.create(**REQUEST)
        return (await aread(cast("AsyncIterable[object]", stream))).objects

    assert asyncio.run(objects()) == read(messages([BODY])).objects


@pytest.mark.parametrize(
    "failed",
    [
        exception("throttlingException", {"message": "Slow down"}),
        exception("modelStreamErrorException", {"message": "No", "originalStatusCode": 424}),
        frame(
            header(":message-type", "error")
            + header(":error-code", "InternalError")
            + header(":error-message", 'It "failed"'),
            b"",
        ),
        chunk({"type": "error", "error": {"type": "overloaded_error", "message": "Full"}}),
    ],
)
def test_a_failure_in_the_stream_raises_what_the_sdk_raises(failed: bytes) -> None:
    body = chunk(START) + failed
    here = read(ours([body]))
    assert isinstance(here.raised, anthropic.APIStatusError)
    assert difference(read(messages([body])), here) is None


@pytest.mark.parametrize(
    "beside",
    [
        event("metadata", {"a": 1}),
        chunk({"type": "ping"}),
        chunk({"kind": "unknown"}),
        chunk({"type": "new_event", "a": 1}),
    ],
)
def test_other_events_yield_what_the_sdk_yields(beside: bytes) -> None:
    body = beside + BODY
    assert difference(read(messages([body])), read(ours([body]))) is None


def test_chunks_of_text_completions_yield_what_the_sdk_yields() -> None:
    words: list[dict[str, object]] = [
        {"completion": "Hi", "stop_reason": None},
        {"completion": "", "stop_reason": "stop_sequence", "stop": "x"},
    ]
    body = b"".join(map(chunk, words))
    assert len(read(ours([body])).objects) == 2
    assert difference(read(messages([body])), read(ours([body]))) is None


def test_a_cut_stream_raises_with_what_was_received() -> None:
    here = read(ours([BODY[: BODY.index(b'p":', len(BODY) // 2)]]))
    assert type(here.raised) is anthropic.APIConnectionError
    cause = here.raised.__cause__
    assert isinstance(cause, ModelError)
    assert cause.code is ErrorCode.CONNECTION_LOST
    assert cause.partial_message is not None
    assert cause.partial_message.parts


def test_damaged_frames_raise_after_the_objects_before_them() -> None:
    damaged = bytearray(chunk({"type": "message_stop"}))
    damaged[-1] ^= 1
    here = read(ours([chunk(START) + bytes(damaged) + BODY]))
    assert len(here.objects) == 1
    assert isinstance(here.raised, anthropic.APIError)
    assert "checksum" in str(here.raised)


def test_a_body_without_frames_raises_the_error_that_it_has() -> None:
    here = read(ours([b'{"message": "The security token is invalid"}']))
    assert isinstance(here.raised, anthropic.APIError)


def test_the_message_is_folded_from_the_same_bytes() -> None:
    stream = fast_events(messages([BODY]))
    assert len(list(stream)) > 0
    assert stream.message.tool_calls
    assert stream.message.meta.usage is not None
