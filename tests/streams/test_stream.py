"""Streams: equal results for every way of reading, and failures that keep the received content."""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar, cast

import httpx
import pytest
import trio

import deltafold
from any_name import AnyName
from deltafold import (
    AsyncDeltaStream,
    DeltaKind,
    DeltaStream,
    ErrorCode,
    Fold,
    Message,
    MessageDelta,
    MisuseError,
    ModelError,
    UnknownDialectError,
)
from wires import ANTHROPIC, ANTHROPIC_CUT, CHAT, CHAT_ERROR, WHOLE, chat

T = TypeVar("T")


class Source:
    """Chunks that are handed out one by one; says how many were taken and whether it was closed."""

    def __init__(self, *chunks: bytes, failure: BaseException | None = None) -> None:
        self.chunks = list(chunks)
        self.failure = failure
        self.taken = 0
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self.taken < len(self.chunks):
            self.taken += 1
            return self.chunks[self.taken - 1]
        if self.failure is not None:
            raise self.failure
        raise StopIteration

    def close(self) -> None:
        self.closed += 1


class AsyncSource:
    """The same, awaited."""

    def __init__(self, *chunks: bytes, failure: BaseException | None = None) -> None:
        self.source = Source(*chunks, failure=failure)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0)
        try:
            return next(self.source)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.source.close()


def halves(body: bytes) -> tuple[bytes, bytes]:
    middle = len(body) // 2
    return body[:middle], body[middle:]


def run(awaitable: Callable[[], Awaitable[T]]) -> T:
    async def main() -> T:
        return await awaitable()

    return asyncio.run(main())


@pytest.mark.parametrize("dialect", WHOLE)
def test_fold_gives_the_message_of_a_whole_body_and_of_any_chunks(dialect: AnyName) -> None:
    body = WHOLE[dialect]
    whole = deltafold.fold(body, dialect, run_id="run")
    pieces = (body[at : at + 7] for at in range(0, len(body), 7))
    assert deltafold.fold(pieces, dialect, run_id="run").same_content(whole)
    assert [call.tool_name for call in whole.runnable_tool_calls]
    assert whole.meta.usage is not None


@pytest.mark.parametrize("dialect", WHOLE)
def test_afold_gives_the_same_message_as_fold(dialect: AnyName) -> None:
    body = WHOLE[dialect]
    expected = deltafold.fold(body, dialect, run_id="run")

    async def chunks() -> AsyncIterator[bytes]:
        for half in halves(body):
            yield half

    async def fold_each_form() -> list[Message]:
        forms = (chunks(), body, iter(halves(body)))
        return [await deltafold.afold(form, dialect, run_id="run") for form in forms]

    assert all(message.same_content(expected) for message in run(fold_each_form))


def test_fold_object_shows_message_text_usage_and_status_as_they_come() -> None:
    fold = Fold("openai-chat")
    assert (fold.status, fold.text, fold.usage) == ("idle", "", None)
    assert fold.snapshot().parts == []
    for half in halves(CHAT):
        fold.feed(half)
    fold.close()
    assert fold.status == "done"
    assert fold.text == fold.message.text == fold.assembler.text
    assert fold.usage == fold.message.meta.usage


def test_the_message_of_a_fold_that_has_not_ended_is_misuse() -> None:
    fold = Fold("openai-chat")
    with pytest.raises(MisuseError):
        _ = fold.message


@pytest.mark.parametrize("dialect", WHOLE)
def test_deltas_batches_and_text_tell_the_same_story(dialect: AnyName) -> None:
    body = WHOLE[dialect]
    deltas = list(deltafold.stream(iter(halves(body)), dialect, run_id="run"))
    batches = list(deltafold.stream(iter(halves(body)), dialect, run_id="run").batches())
    from_batches = [delta for batch in batches for delta in batch]
    assert [batch.ends_stream for batch in batches] == [False] * (len(batches) - 1) + [True]
    assert len(deltas) == len(from_batches)
    assert all(a.same_content(b) for a, b in zip(deltas, from_batches, strict=True))
    said = [delta.text or "" for delta in deltas if delta.kind == DeltaKind.TEXT]
    assert "".join(deltafold.stream(body, dialect).text()) == "".join(said)


@pytest.mark.parametrize("dialect", WHOLE)
def test_the_asynchronous_stream_gives_the_deltas_of_the_synchronous_one(dialect: AnyName) -> None:
    body = WHOLE[dialect]
    expected = list(deltafold.stream(body, dialect, run_id="run"))

    async def read() -> tuple[list[MessageDelta], list[MessageDelta], str]:
        source = AsyncSource(*halves(body))
        deltas = [delta async for delta in deltafold.astream(source, dialect, run_id="run")]
        batches = deltafold.astream(body, dialect, run_id="run").batches()
        batched = [delta async for batch in batches for delta in batch]
        texts = [text async for text in deltafold.astream(body, dialect).text()]
        return deltas, batched, "".join(texts)

    deltas, batched, text = run(read)
    assert all(a.same_content(b) for a, b in zip(deltas, expected, strict=True))
    assert all(a.same_content(b) for a, b in zip(batched, expected, strict=True))
    assert text == "".join(deltafold.stream(body, dialect).text())


def test_a_stream_reads_at_most_one_chunk_ahead() -> None:
    source = Source(chat("a", done=False), chat("b", done=False), chat("c"))
    with deltafold.stream(source, "openai-chat") as stream:
        for delta in stream:
            if delta.kind == DeltaKind.TEXT:
                break
        assert source.taken == 1
    assert source.closed == 1


def test_ways_of_reading_share_one_position() -> None:
    body = chat("a", "b", "c")
    stream = deltafold.stream(iter([body]), "openai-chat")
    first = [delta for _, delta in zip(range(2), stream, strict=False)]
    assert [delta.kind for delta in first] == [DeltaKind.START, DeltaKind.TEXT]
    assert "".join(stream.text()) == "bc"
    assert stream.final_message().text == "abc"


@pytest.mark.parametrize("failure", [ConnectionResetError("reset by peer"), OSError("gone")])
def test_a_transport_failure_is_an_error_delta_and_keeps_what_came(failure: Exception) -> None:
    stream = deltafold.stream(
        Source(chat("kept", finish_reason=None, done=False), failure=failure), "openai-chat"
    )
    deltas = list(stream)
    assert [delta.kind for delta in deltas] == ["start", "text", "part_end", "error"]
    assert list(stream) == []
    with pytest.raises(ModelError) as raised:
        stream.final_message()
    assert raised.value.partial_message is not None
    assert raised.value.partial_message.text == "kept"


def test_a_lost_connection_has_its_code_and_is_retryable() -> None:
    stream = deltafold.stream(Source(failure=ConnectionResetError("reset")), "openai-chat")
    with pytest.raises(ModelError) as raised:
        stream.final_message()
    assert raised.value.code is ErrorCode.CONNECTION_LOST
    assert raised.value.retryable


@pytest.mark.parametrize(
    ("dialect", "body", "code", "text"),
    [
        ("openai-chat", CHAT_ERROR, ErrorCode.OVERLOADED, "The answer begins"),
        ("anthropic-messages", ANTHROPIC_CUT, ErrorCode.CONNECTION_LOST, "I will write"),
    ],
)
def test_text_yields_all_that_came_before_it_raises(
    dialect: AnyName, body: bytes, code: ErrorCode, text: str
) -> None:
    said: list[str] = []
    with pytest.raises(ModelError) as raised:
        said.extend(deltafold.stream(body, dialect).text())
    assert raised.value.code is code

    async def read() -> None:
        pieces = deltafold.astream(AsyncSource(body), dialect).text()
        while True:
            heard.append(await anext(pieces))

    heard: list[str] = []
    with pytest.raises(ModelError):
        run(read)
    assert heard
    assert "".join(heard).startswith(text)
    partial = raised.value.partial_message
    assert partial is not None
    assert partial.text == "".join(heard)
    assert not partial.runnable_tool_calls


def test_leaving_early_cancels_closes_and_keeps_what_came() -> None:
    source = Source(chat("kept", finish_reason=None, done=False), chat("never"))
    with deltafold.stream(source, "openai-chat") as stream:
        next(stream.batches())
    assert (source.taken, source.closed) == (1, 1)
    assert stream.snapshot().text == "kept"
    stream.close()
    assert source.closed == 1
    assert list(stream) == []
    with pytest.raises(ModelError) as raised:
        stream.final_message()
    assert raised.value.code is ErrorCode.CANCELLED


def test_a_stream_closes_its_source_by_itself_at_the_end() -> None:
    source = Source(CHAT)
    deltafold.stream(source, "openai-chat").final_message()
    assert source.closed == 1


def test_an_abandoned_stream_warns_and_closes_its_source() -> None:
    source = Source(chat("a", done=False), chat("b"))
    stream = deltafold.stream(source, "openai-chat")
    next(stream.batches())
    streams = [stream]
    del stream
    with pytest.warns(ResourceWarning, match="abandoned <DeltaStream openai-chat started>"):
        streams.clear()
    assert source.closed == 1


def test_an_abandoned_stream_in_a_cycle_warns_and_closes_its_source() -> None:
    source = Source(chat("a", done=False), chat("b"))
    stream = deltafold.stream(source, "openai-chat")
    next(stream.batches())
    ring: list[object] = [stream]
    ring.append(ring)
    del stream, ring
    with pytest.warns(ResourceWarning, match="abandoned <DeltaStream openai-chat started>"):
        gc.collect()
    assert source.closed == 1


def test_a_stream_that_was_never_read_is_not_abandoned() -> None:
    source = Source(CHAT)
    with warnings.catch_warnings(action="error"):
        deltafold.stream(source, "openai-chat")
    assert source.closed == 0


def test_a_stream_is_left_any_number_of_times() -> None:
    async def main() -> None:
        stream = deltafold.astream([CHAT], "openai-chat")
        async with stream:
            message = await stream.final_message()
        async with stream:
            assert await stream.final_message() == message
        await stream.__aexit__(None, None, None)
        await stream.aclose()

    run(main)


def test_an_abandoned_asynchronous_stream_warns() -> None:
    async def read_one() -> None:
        stream = deltafold.astream(AsyncSource(*halves(CHAT)), "openai-chat")
        await anext(stream)

    with pytest.warns(ResourceWarning, match="abandoned <AsyncDeltaStream"):
        run(read_one)


def test_an_interrupt_is_folded_in_and_raised_again() -> None:
    source = Source(chat("a", finish_reason=None, done=False), failure=KeyboardInterrupt())
    with deltafold.stream(source, "openai-chat") as stream, pytest.raises(KeyboardInterrupt):
        list(stream)
    assert stream.status == "error"
    assert stream.snapshot().text == "a"
    assert source.closed == 1


class Stalling(AsyncSource):
    """Hands its chunks out and then waits for ever."""

    def __init__(self, sleep: Callable[[float], Awaitable[object]], *chunks: bytes) -> None:
        super().__init__(*chunks)
        self.sleep = sleep

    async def __anext__(self) -> bytes:
        try:
            return next(self.source)
        except StopIteration:
            await self.sleep(3600)
            raise StopAsyncIteration from None


async def read_all(stream: AsyncDeltaStream) -> None:
    async with stream:
        await stream.final_message()


def stalling_stream(sleep: Callable[[float], Awaitable[object]]) -> tuple[AsyncDeltaStream, Source]:
    body = chat("kept", finish_reason=None, done=False)
    source = Stalling(sleep, body)
    return deltafold.astream(source, "openai-chat"), source.source


def assert_cancelled(stream: AsyncDeltaStream, source: Source) -> None:
    assert stream.status == "error"
    assert stream.snapshot().text == "kept"
    assert source.closed == 1


def test_cancelling_an_asyncio_task_is_folded_in_and_raised_again() -> None:
    async def main() -> tuple[AsyncDeltaStream, Source]:
        stream, source = stalling_stream(asyncio.sleep)
        task = asyncio.create_task(read_all(stream))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return stream, source

    assert_cancelled(*run(main))


def test_cancelling_a_trio_scope_is_folded_in_and_raised_again() -> None:
    async def main() -> tuple[AsyncDeltaStream, Source]:
        stream, source = stalling_stream(trio.sleep)
        with trio.move_on_after(0.01) as scope:
            await read_all(stream)
        assert scope.cancelled_caught
        return stream, source

    assert_cancelled(*trio.run(main))


def test_two_readers_at_once_are_misuse() -> None:
    async def main() -> None:
        stream, _ = stalling_stream(asyncio.sleep)
        first = asyncio.create_task(stream.final_message())
        await asyncio.sleep(0.01)
        with pytest.raises(MisuseError, match="one reader"):
            await stream.final_message()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await stream.aclose()

    run(main)


def test_a_dialect_that_is_not_known_raises_at_the_call() -> None:
    with pytest.raises(UnknownDialectError):
        deltafold.stream(b"", cast("Any", "openai-chatt"))


def test_text_in_place_of_bytes_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="str"):
        deltafold.stream("data: {}", "openai-chat")
    with pytest.raises(TypeError):
        deltafold.astream(7, "openai-chat")


def test_bodies_of_the_wrong_kind_are_misuse_that_names_the_other_function() -> None:
    with pytest.raises(MisuseError, match="astream"):
        deltafold.stream(AsyncSource(), "openai-chat")
    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        response = client.send(client.build_request("GET", "http://test/"), stream=True)
        with pytest.raises(MisuseError, match="stream"):
            deltafold.astream(SynchronousOnly(), "openai-chat")
        response.close()


class SynchronousOnly:
    """A response of a client that knows no other way of reading."""

    def iter_bytes(self) -> Iterator[bytes]:
        return iter(())

    def close(self) -> None:
        """Nothing is open."""


def answer(request: httpx.Request) -> httpx.Response:
    if request.url.path == "/limit":
        body = {"error": {"message": "slow down", "type": "rate_limit_error"}}
        return httpx.Response(429, json=body, headers={"retry-after": "7", "x-request-id": "r1"})
    return httpx.Response(200, content=CHAT, headers={"content-type": "text/event-stream"})


def test_an_httpx_response_is_read_as_it_is() -> None:
    with (
        httpx.Client(transport=httpx.MockTransport(answer)) as client,
        client.stream("GET", "http://test/") as response,
        deltafold.stream(response, "openai-chat") as stream,
    ):
        assert len(stream.final_message().tool_calls) == 2


def test_the_status_and_headers_of_a_response_reach_the_error() -> None:
    with (
        httpx.Client(transport=httpx.MockTransport(answer)) as client,
        client.stream("GET", "http://test/limit") as response,
        deltafold.stream(response, "openai-chat") as stream,
        pytest.raises(ModelError) as raised,
    ):
        stream.final_message()
    error = raised.value
    assert (error.code, error.status, error.retry_after) == (ErrorCode.RATE_LIMITED, 429, 7.0)
    assert error.http_request_id == "r1"


class RequestsLike:
    """Attributes that deltafold reads from a response of requests."""

    status_code = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - a stand-in for an attribute of the instance

    def iter_content(self, chunk_size: int | None) -> Iterator[bytes]:
        assert chunk_size is None
        yield from halves(ANTHROPIC)

    def close(self) -> None:
        """Nothing is open."""


def test_a_response_of_requests_is_read_in_the_pieces_that_come() -> None:
    message = deltafold.stream(RequestsLike(), "anthropic-messages").final_message()
    assert message.thinking
    assert isinstance(deltafold.stream(RequestsLike(), "openai-chat"), DeltaStream)


def test_a_response_that_was_consumed_already_is_misuse() -> None:
    response = httpx.Response(200, content=iter([CHAT]))
    assert b"".join(response.iter_raw()) == CHAT
    with pytest.raises(MisuseError, match="was read already"):
        deltafold.stream(response, "openai-chat")
