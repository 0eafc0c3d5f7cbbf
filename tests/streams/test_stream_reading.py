"""Each way of reading a stream, mixed with the others, awaited and abandoned."""

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from itertools import islice
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

import deltafold
from any_name import AnyName
from corpus import FIXTURES
from deltafold import (
    AsyncDeltaStream,
    DeltaStream,
    ErrorCode,
    MessageDelta,
    MisuseError,
    ModelError,
)
from wires import CHAT, WHOLE

PIECES: Final = (1 << 20, 40, 7)
"""Bytes of a chunk: the whole body, several events, parts of an event."""


def pieces(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


async def awaited(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        await anyio.lowlevel.checkpoint()
        yield chunk


def text_of(deltas: list[MessageDelta]) -> str:
    return "".join(delta.text for delta in deltas if delta.kind == "text" and delta.text)


def chat_stream(source: object) -> DeltaStream:
    return deltafold.stream(source, "openai-chat", run_id="run")


@pytest.mark.parametrize("size", PIECES)
@pytest.mark.parametrize("dialect", WHOLE)
def test_a_change_of_the_way_of_reading_loses_no_delta(dialect: AnyName, size: int) -> None:
    chunks = pieces(WHOLE[dialect], size)
    given: dict[str, Any] = {"run_id": "run"}
    whole = list(deltafold.stream(iter(chunks), dialect, **given))
    for taken in range(len(whole) + 1):
        with deltafold.stream(iter(chunks), dialect, **given) as stream:
            first = list(islice(stream, taken))
            rest = [delta for batch in stream.batches() for delta in batch]
            assert [delta.seq for delta in first + rest] == [delta.seq for delta in whole]
        with deltafold.stream(iter(chunks), dialect, **given) as stream:
            first = list(islice(stream, taken))
            assert text_of(first) + "".join(stream.text()) == text_of(whole)
            assert stream.final_message().text == text_of(whole)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize("size", PIECES)
def test_a_change_of_the_way_of_awaiting_loses_no_delta(size: int, loop: str) -> None:
    chunks = pieces(CHAT, size)
    whole = list(chat_stream(iter(chunks)))

    async def main() -> None:
        for taken in range(0, len(whole) + 1, 3):
            async with deltafold.astream(awaited(chunks), "openai-chat") as stream:
                first = [await anext(stream) for _ in range(taken)]
                rest = [delta async for batch in stream.batches() for delta in batch]
                assert [delta.seq for delta in first + rest] == [delta.seq for delta in whole]
            async with deltafold.astream(awaited(chunks), "openai-chat") as stream:
                first = [await anext(stream) for _ in range(taken)]
                later = [text async for text in stream.text()]
                assert text_of(first) + "".join(later) == text_of(whole)
                assert (await stream.final_message()).text == text_of(whole)

    anyio.run(main, backend=loop)


def failing(after: int) -> Iterator[bytes]:
    yield from pieces(CHAT, 60)[:after]
    raise ConnectionResetError("gone")


def read_deltas(stream: DeltaStream) -> None:
    list(stream)


def read_batches(stream: DeltaStream) -> None:
    list(stream.batches())


def read_text(stream: DeltaStream) -> None:
    with pytest.raises(ModelError):
        list(stream.text())


def read_message(stream: DeltaStream) -> None:
    with pytest.raises(ModelError):
        stream.final_message()


@pytest.mark.parametrize("read", [read_deltas, read_batches, read_text, read_message])
@pytest.mark.parametrize("after", range(4))
def test_a_source_that_fails_keeps_what_came_however_it_is_read(
    after: int, read: Callable[[DeltaStream], None]
) -> None:
    stream = chat_stream(failing(after))
    read(stream)
    error = stream.error
    assert error is not None
    assert error.code is ErrorCode.CONNECTION_LOST
    assert isinstance(error.__cause__, ConnectionResetError)
    fold = deltafold.Fold("openai-chat")
    for chunk in pieces(CHAT, 60)[:after]:
        fold.feed(chunk)
    assert stream.snapshot().parts == fold.snapshot().parts
    assert list(stream) == []


def test_a_stream_has_one_decoder_and_a_response_only_once_it_is_read() -> None:
    stream = chat_stream([CHAT])
    core: Any = getattr(stream, "_core")  # noqa: B009 - private
    decoder, before = core.decoder, stream.response
    assert stream.final_message().text
    assert core.decoder is decoder
    after = stream.response
    assert before is None
    assert after is not None
    assert (after.status, after.headers) == (200, {})


def test_a_source_that_reads_its_own_stream_is_misuse() -> None:
    made: list[DeltaStream] = []

    def chunks() -> Iterator[bytes]:
        yield CHAT[:80]
        next(iter(made[0]))

    made.append(chat_stream(chunks()))
    with pytest.raises(MisuseError, match="one reader at a time"):
        list(made[0])
    made[0].close()


def test_threads_that_share_a_stream_take_each_delta_once_or_are_refused() -> None:
    chunks = pieces(CHAT, 5)
    whole = [delta.seq for delta in chat_stream(chunks)]
    for _ in range(20):
        stream, seen, refused = chat_stream(iter(chunks)), list[int](), list[MisuseError]()

        def take(
            stream: DeltaStream = stream,
            seen: list[int] = seen,
            refused: list[MisuseError] = refused,
        ) -> None:
            try:
                seen.extend(delta.seq for delta in stream)
            except MisuseError as error:
                refused.append(error)

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seen.extend(delta.seq for delta in stream)
        assert sorted(seen) == whole


def test_a_stream_in_a_cycle_with_its_source_is_collected() -> None:
    def chunks(holder: list[object]) -> Iterator[bytes]:
        yield CHAT[:80]
        yield CHAT[80:]
        holder.clear()

    holder: list[object] = []
    stream = chat_stream(chunks(holder))
    holder.append(stream)
    iterator = iter(stream)
    next(iterator)
    stream.close()
    left = weakref.ref(stream)
    del stream, iterator, holder
    gc.collect()
    assert left() is None


# One step of an asynchronous stream, as an awaitable.


def async_stream(*chunks: bytes) -> AsyncDeltaStream:
    return deltafold.astream(awaited(list(chunks or (CHAT,))), "openai-chat")


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def test_a_step_is_a_coroutine_for_tasks_and_timeouts() -> None:
    async def main() -> None:
        stream = async_stream()
        step = stream.__anext__()
        assert isinstance(step, Coroutine)
        first = await asyncio.create_task(step)
        second = await asyncio.wait_for(anext(stream), 5)
        (third,) = await asyncio.gather(anext(stream))
        assert [first.seq, second.seq, third.seq] == [1, 2, 3]
        await stream.aclose()

    run(main)


def test_a_step_is_awaited_once() -> None:
    async def main() -> None:
        stream = async_stream()
        step = anext(stream)
        await step
        with pytest.raises(RuntimeError, match="already awaited"):
            await step
        await stream.aclose()

    run(main)


def test_a_step_that_is_never_awaited_changes_nothing() -> None:
    async def main() -> None:
        stream = async_stream()
        anext(stream).close()
        assert (await anext(stream)).seq == 1
        await stream.aclose()

    run(main)


class Pause:
    """Yields to the driver of the coroutine."""

    def __await__(self) -> Generator[str, object, None]:
        yield "waiting"


def test_a_step_that_is_closed_while_it_waits_cancels_the_stream() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        await Pause()
        yield CHAT

    stream = deltafold.astream(chunks(), "openai-chat")
    step = anext(stream)
    assert step.send(None) == "waiting"
    step.close()
    assert stream.error is not None
    assert stream.error.code is ErrorCode.CANCELLED
    with pytest.raises(RuntimeError, match="already awaited"):
        step.send(None)
    asyncio.run(stream.aclose())


def test_what_a_step_is_thrown_reaches_the_source() -> None:
    caught: list[BaseException] = []

    async def chunks() -> AsyncIterator[bytes]:
        yield CHAT[: len(CHAT) // 2]
        try:
            await anyio.sleep(60)
        except BaseException as exception:
            caught.append(exception)
            raise

    async def main() -> None:
        stream = deltafold.astream(chunks(), "openai-chat")
        task = asyncio.ensure_future(stream.final_message())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [type(exception) for exception in caught] == [asyncio.CancelledError]
        assert stream.error is not None
        assert stream.error.code is ErrorCode.CANCELLED
        assert stream.snapshot().parts

    run(main)


def test_a_step_thrown_before_its_start_raises_and_leaves_the_stream() -> None:
    async def main() -> None:
        stream = async_stream()
        step = anext(stream)
        with pytest.raises(KeyError):
            step.throw(KeyError("x"))
        assert (await anext(stream)).seq == 1
        await stream.aclose()

    run(main)


def test_two_steps_at_once_are_misuse_of_the_second() -> None:
    async def main() -> None:
        stream = async_stream(CHAT[:80], CHAT[80:])

        async def step() -> MessageDelta:
            return await anext(stream)

        both = await asyncio.gather(step(), step(), return_exceptions=True)
        assert [type(outcome) for outcome in both] == [MessageDelta, MisuseError]
        assert (await stream.final_message()).text
        await stream.aclose()

    run(main)


def test_the_source_may_be_awaited_in_any_form() -> None:
    class ByGenerator:
        """Yields chunks through awaitables that are neither coroutines nor generators."""

        def __init__(self) -> None:
            self.chunks = iter(pieces(CHAT, 30))

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self

        def __anext__(self) -> Awaitable[bytes]:
            found = next(self.chunks, None)
            future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            if found is None:
                future.set_exception(StopAsyncIteration())
            else:
                asyncio.get_running_loop().call_soon(future.set_result, found)
            return future

    async def main() -> None:
        stream = deltafold.astream(ByGenerator(), "openai-chat")
        assert [delta.seq async for delta in stream] == [delta.seq for delta in chat_stream([CHAT])]

    run(main)


def test_a_stream_of_bytes_offers_events_as_a_model_does() -> None:
    body = (FIXTURES / "openai-chat/tool-call/wire.sse").read_bytes()
    with deltafold.stream([body], "openai-chat") as stream:
        events = list(stream.events())

    async def awaited() -> list[deltafold.StreamEvent]:
        async with deltafold.astream([body], "openai-chat") as opened:
            return [event async for event in opened.events()]

    for found in (events, asyncio.run(awaited())):
        calls = [event.tool_call for event in found if event.kind == "tool_use"]
        message = found[-1].message
        assert found[0].kind == "message_start"
        assert message is not None
        assert calls == message.tool_calls
        assert calls
