"""`deltafold.compat.openai`: the chunks and events of openai's own stream, equal to the SDK's."""

import asyncio
import pickle
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final, cast

import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from corpus import FIXTURES, needs_corpus
from deltafold import ErrorCode, MisuseError, ModelError, compat
from deltafold.compat import openai as fast
from deltafold.compat.object_streams import AsyncObjectStream, ObjectStream
from samples import sampled
from sdk_clients import OPENAI_HTTP, async_openai_client, openai_client
from sdk_objects import (
    CUT,
    ERROR_FIELD,
    LAST_EVENT,
    LISTED_RECORDINGS,
    NO_STREAM,
    aread,
    difference,
    differences,
    dumps,
    fixtures,
    read,
    recordings,
)

Opened = Callable[[Sequence[bytes]], Any]

LISTED: Final[dict[str, dict[str, str]]] = {
    "openai-chat": {
        "bom": "a byte order mark is skipped, as the standard of server-sent events says",
        "cut-mid-args": CUT,
        "cut-mid-text": CUT,
        "cut-with-whole-args": CUT,
        "error-array-body": NO_STREAM,
        "invalid-utf8": "the exception names the data without the name of its field",
        "json-error-body": NO_STREAM,
        "keep-alives": "an event without data is skipped; the SDK fails to parse it",
        "llama-cpp-error-field": ERROR_FIELD,
        "no-final-blank-line": LAST_EVENT,
        "no-finish-reason-call": CUT,
    },
    "openai-responses": {
        "args-ciphertext-cut": CUT,
        "cut-before-completed": CUT,
        "cut-mid-args": CUT,
        "cut-mid-code": CUT,
        "json-error-body": NO_STREAM,
        "whole-body-failed": NO_STREAM,
        "xai-error": NO_STREAM,
    },
}


def chat(chunks: Sequence[bytes], failure: Exception | None = None) -> Any:  # noqa: ANN401 - of either type
    client = openai_client(chunks, failure)
    return client.chat.completions.create(model="m", messages=[], stream=True)


def responses(chunks: Sequence[bytes], failure: Exception | None = None) -> Any:  # noqa: ANN401 - of either type
    return openai_client(chunks, failure).responses.create(model="m", input="?", stream=True)


async def achat(chunks: Sequence[bytes]) -> Any:  # noqa: ANN401 - of either type
    client = async_openai_client(chunks)
    return await client.chat.completions.create(model="m", messages=[], stream=True)


async def aresponses(chunks: Sequence[bytes]) -> Any:  # noqa: ANN401 - of either type
    return await async_openai_client(chunks).responses.create(model="m", input="?", stream=True)


def fast_chat(stream: object) -> ObjectStream[ChatCompletionChunk]:
    return fast.chunks(cast("openai.Stream[ChatCompletionChunk]", stream))


def fast_achat(stream: object) -> AsyncObjectStream[ChatCompletionChunk]:
    return fast.chunks(cast("openai.AsyncStream[ChatCompletionChunk]", stream))


OPENED: Final[dict[str, tuple[Opened, Opened, Callable[[Any], Any]]]] = {
    "openai-chat": (chat, achat, fast.chunks),
    "openai-responses": (responses, aresponses, fast.events),
}
DIALECTS: Final = sorted(OPENED)


def ours(dialect: str) -> Callable[[Sequence[bytes]], Iterable[object]]:
    opened, _, objects = OPENED[dialect]
    return lambda chunks: objects(opened(chunks))


def wire(dialect: str, name: str) -> bytes:
    return (FIXTURES / dialect / name / "wire.sse").read_bytes()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_fixture_yields_the_objects_and_exceptions_of_the_sdk(dialect: str) -> None:
    listed = LISTED[dialect]
    assert differences(fixtures(dialect), OPENED[dialect][0], ours(dialect), listed) == {}


@sampled(10)
@needs_corpus
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_recording_yields_the_objects_and_exceptions_of_the_sdk(
    dialect: str, every: int
) -> None:
    listed = LISTED_RECORDINGS[dialect]
    bodies = islice(recordings(dialect), 0, None, every)
    assert differences(bodies, OPENED[dialect][0], ours(dialect), listed) == {}


def test_a_service_without_finish_reasons_is_read_by_a_setting() -> None:
    body = wire("openai-chat", "no-finish-reason-call")
    with pytest.raises(openai.APIConnectionError, match="ends_without_reason"):
        list(fast_chat(chat([body])))
    stream = cast("openai.Stream[ChatCompletionChunk]", chat([body]))
    objects = list(fast.chunks(stream, ends_without_reason=True))
    assert objects == list(cast("openai.Stream[ChatCompletionChunk]", chat([body])))
    client = fast.accelerate(openai_client([body]), ends_without_reason=True)
    asked = client.chat.completions.create(model="m", messages=[], stream=True)
    assert list(asked) == objects


@pytest.mark.parametrize("dialect", DIALECTS)
def test_asynchronous_streams_yield_what_synchronous_ones_do(dialect: str) -> None:
    opened, aopened, objects = OPENED[dialect]

    async def differing() -> list[str]:
        found: list[str] = []
        for name, body in fixtures(dialect):
            there = await aread(objects(await aopened([body])))
            if difference(read(objects(opened([body]))), there) is not None:
                found.append(name)
        return found

    assert asyncio.run(differing()) == []


@sampled(13)
@pytest.mark.parametrize("name", ["text", "crlf", "multi-line-data", "in-band-error"])
def test_a_chunk_may_end_anywhere(name: str, every: int) -> None:
    body = wire("openai-chat", name)
    whole = read(ours("openai-chat")([body]))
    for cut in range(1, len(body), every):
        parts = read(ours("openai-chat")([body[:cut], body[cut:]]))
        assert difference(whole, parts) is None, cut
    assert difference(whole, read(ours("openai-chat")([bytes([b]) for b in body]))) is None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_object_is_yielded_before_the_next_chunk_is_read(dialect: str) -> None:
    body = wire(dialect, "text")
    first, _, _ = body.partition(b"\n\n")
    stream = OPENED[dialect][2](OPENED[dialect][0]([first + b"\n\n"]))
    assert next(stream) is not None
    with pytest.raises(openai.APIConnectionError):
        next(stream)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cut_stream_raises_with_what_was_received(dialect: str) -> None:
    body = wire(dialect, "cut-mid-args")
    found = read(ours(dialect)([body]))
    assert type(found.raised) is openai.APIConnectionError
    cause = found.raised.__cause__
    assert isinstance(cause, ModelError)
    assert cause.code is ErrorCode.CONNECTION_LOST
    assert cause.partial_message is not None
    assert cause.partial_message.tool_calls
    assert found.raised.request.url.host == "test"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_empty_body_raises(dialect: str) -> None:
    assert isinstance(read(ours(dialect)([])).raised, openai.APIError)


@pytest.mark.parametrize(
    "failure",
    [
        OPENAI_HTTP.ReadError("reset"),
        OPENAI_HTTP.ReadTimeout("slow"),
        OPENAI_HTTP.RemoteProtocolError("cut"),
    ],
)
def test_a_failure_of_the_connection_raises_what_the_sdk_raises(failure: Exception) -> None:
    body = wire("openai-chat", "cut-mid-text")
    theirs = read(chat([body], failure))
    here = read(fast_chat(chat([body], failure)))
    assert isinstance(here.raised, openai.APIConnectionError)
    if OPENAI_HTTP.__name__ == "httpx":
        # openai before version 3 raises what its HTTP package raises.
        assert theirs.raised is failure
        theirs = theirs._replace(raised=here.raised)
    assert difference(theirs, here) is None


def test_the_last_event_needs_no_blank_line() -> None:
    body = wire("openai-chat", "text").partition(b"data: [DONE]")[0]
    whole = read(ours("openai-chat")([body]))
    assert difference(whole, read(ours("openai-chat")([body.rstrip(b"\n")]))) is None


def test_the_message_counts_the_usage_once() -> None:
    body = wire("openai-chat", "usage-null-later")
    stream = fast_chat(chat([body]))
    assert [one for one in stream if one.usage is not None]
    message = stream.message
    assert message.text
    assert message.meta.usage is not None


def test_objects_survive_pickling() -> None:
    body = wire("openai-chat", "openrouter")
    found = read(ours("openai-chat")([body])).objects
    again: list[object] = pickle.loads(pickle.dumps(found))  # noqa: S301 - made here
    assert again == found
    assert dumps(again) == dumps(read(chat([body])).objects)


def test_a_context_manager_closes_the_response() -> None:
    stream = chat([wire("openai-chat", "text")])
    with fast_chat(stream) as objects:
        next(objects)
    assert stream.response.is_closed


def test_closing_within_the_loop_ends_it() -> None:
    objects = fast_chat(chat([wire("openai-chat", "text")]))
    seen = 0
    for _ in objects:
        seen += 1
        objects.close()
    assert seen == 1


def test_an_asynchronous_context_manager_closes_the_response() -> None:
    async def closed() -> tuple[int, bool]:
        stream = await achat([wire("openai-chat", "text")])
        seen = 0
        async with fast_achat(stream) as objects:
            async for _ in objects:
                seen += 1
                await objects.close()
        return seen, stream.response.is_closed

    assert asyncio.run(closed()) == (1, True)


def test_a_loop_that_is_left_closes_the_response() -> None:
    stream = chat([wire("openai-chat", "text")])
    for _ in fast_chat(stream):
        break
    assert stream.response.is_closed


def test_a_stream_that_was_read_in_part_is_refused() -> None:
    stream = chat([wire("openai-chat", "text")])
    next(stream)
    with pytest.raises(MisuseError, match="read already"):
        fast_chat(stream)


def test_another_object_is_refused() -> None:
    with pytest.raises(MisuseError, match="must be a Stream or AsyncStream"):
        fast_chat(OPENAI_HTTP.Response(200))


def test_a_client_that_validates_strictly_is_refused() -> None:
    stream = chat([wire("openai-chat", "text")])
    stream._client._strict_response_validation = True
    with pytest.raises(MisuseError, match="validates strictly"):
        fast_chat(stream)


@pytest.mark.parametrize("name", ["text", "openrouter", "tool-call", "in-band-error"])
def test_an_accelerated_client_yields_the_same_objects(name: str) -> None:
    body = wire("openai-chat", name)
    client = fast.accelerate(openai_client([body]))
    stream = client.chat.completions.create(model="m", messages=[], stream=True)
    assert isinstance(stream, openai.Stream)
    assert difference(read(chat([body])), read(stream)) is None


def test_an_accelerated_client_reports_a_cut_stream() -> None:
    client = fast.accelerate(openai_client([wire("openai-responses", "cut-mid-args")]))
    stream = client.responses.create(model="m", input="?", stream=True)
    assert isinstance(read(stream).raised, openai.APIConnectionError)


def test_the_helper_of_an_accelerated_client_folds_the_same_completion() -> None:
    def completed(client: openai.OpenAI) -> object:
        with client.chat.completions.stream(model="m", messages=[]) as stream:
            return stream.get_final_completion()

    body = wire("openai-chat", "tool-call")
    assert completed(fast.accelerate(openai_client([body]))) == completed(openai_client([body]))


def test_an_accelerated_asynchronous_client_yields_the_same_objects() -> None:
    body = wire("openai-chat", "text")

    async def objects() -> Iterable[object]:
        client = fast.accelerate(async_openai_client([body]))
        stream = await client.chat.completions.create(model="m", messages=[], stream=True)
        return (await aread(cast("AsyncIterable[object]", stream))).objects

    assert asyncio.run(objects()) == read(chat([body])).objects


def test_frames_keep_every_member() -> None:
    body = wire("openai-chat", "openrouter")
    found = read(compat.frames(chat([body])))
    assert found.raised is None
    assert [frame["provider"] for frame in cast("list[dict[str, object]]", found.objects)]
    assert len(found.objects) == len(read(chat([body])).objects)


def test_frames_of_a_known_dialect_raise_for_a_cut_body() -> None:
    body = wire("openai-chat", "cut-mid-text")
    assert read(compat.frames(chat([body]))).raised is None
    raised = read(compat.frames(chat([body]), "openai-chat")).raised
    assert isinstance(raised, ModelError)
    assert raised.code is ErrorCode.CONNECTION_LOST


def test_frames_of_an_asynchronous_response_are_awaited() -> None:
    async def found() -> Iterable[object]:
        return (await aread(compat.aframes(await achat([wire("openai-chat", "text")])))).objects

    assert len(list(asyncio.run(found()))) == len(read(chat([wire("openai-chat", "text")])).objects)


def test_frames_of_an_unknown_dialect_have_no_message() -> None:
    with pytest.raises(AttributeError, match="name the dialect"):
        _ = compat.frames(chat([wire("openai-chat", "text")])).message
