"""Failures of a stream, equal for sync and async: one table of causes, one list of rules."""

import asyncio
import gc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from deltafold import ErrorCode, ModelError, OpenAIChatModel
from deltafold.testing import Recording, ReplayServer
from wires import CHAT, CHAT_ERROR

HALF = len(CHAT) // 2


@dataclass(frozen=True)
class Cause:
    """A cause, its error code, and whether text precedes it."""

    recording: Recording
    code: ErrorCode
    keeps: bool


CAUSES = {
    "refused with 401": Cause(
        Recording.error(401, {"error": {"message": "no"}}), ErrorCode.AUTHENTICATION, keeps=False
    ),
    "limited with 429": Cause(
        Recording.error(429, {"error": {"message": "slow"}}), ErrorCode.RATE_LIMITED, keeps=False
    ),
    "error in the stream": Cause(Recording.of_events(CHAT_ERROR), ErrorCode.OVERLOADED, keeps=True),
    "cut in the middle": Cause(
        Recording.of_events(CHAT).stopping("cut", HALF), ErrorCode.CONNECTION_LOST, keeps=True
    ),
    "reset in the middle": Cause(
        Recording.of_events(CHAT).stopping("reset", HALF), ErrorCode.CONNECTION_LOST, keeps=True
    ),
    "empty body": Cause(Recording(()), ErrorCode.PROTOCOL_ERROR, keeps=False),
    "no stream at all": Cause(
        Recording.of(b"<html>proxy</html>"), ErrorCode.PROTOCOL_ERROR, keeps=False
    ),
}

Read = Callable[[Any], Any]


def read_deltas(stream: Any) -> list[str]:  # noqa: ANN401 - a stream of this kind
    return [str(delta.kind) for delta in stream]


async def read_deltas_async(stream: Any) -> list[str]:  # noqa: ANN401 - as above
    return [str(delta.kind) async for delta in stream]


def read_text(stream: Any) -> str:  # noqa: ANN401 - as above
    return "".join(stream.text())


async def read_text_async(stream: Any) -> str:  # noqa: ANN401 - as above
    return "".join([text async for text in stream.text()])


def read_message(stream: Any) -> Any:  # noqa: ANN401 - as above
    return stream.final_message()


async def read_message_async(stream: Any) -> Any:  # noqa: ANN401 - as above
    return await stream.final_message()


def leave_early(stream: Any) -> None:  # noqa: ANN401 - as above
    next(stream.batches())


async def leave_early_async(stream: Any) -> None:  # noqa: ANN401 - as above
    await anext(stream.batches())


READS: dict[str, tuple[Read, Read]] = {
    "deltas": (read_deltas, read_deltas_async),
    "text": (read_text, read_text_async),
    "message": (read_message, read_message_async),
    "early": (leave_early, leave_early_async),
}


def run(server: ReplayServer, way: str, read: str) -> tuple[Any, Any]:
    """Read a stream in one way; returns what that gave or raised, and the stream, closed."""
    synchronous, asynchronous = READS[read]
    model = OpenAIChatModel({"model_id": "m"}, base_url=server.url, api_key="key")
    if way == "synchronous":
        with model, model.stream_sync("Hello") as stream:
            try:
                return synchronous(stream), stream
            except ModelError as error:
                return error, stream

    async def main() -> tuple[Any, Any]:
        async with model, model.stream("Hello") as stream:
            try:
                return await asynchronous(stream), stream
            except ModelError as error:
                return error, stream

    return asyncio.run(main())


WAYS = pytest.mark.parametrize("way", ["synchronous", "asynchronous"])
TABLE = pytest.mark.parametrize("cause", CAUSES.values(), ids=list(CAUSES))


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as replay:
        yield replay


@WAYS
@TABLE
def test_iterating_yields_the_error_and_ends(way: str, cause: Cause, server: ReplayServer) -> None:
    server.queue(cause.recording)
    kinds, stream = run(server, way, "deltas")
    assert (kinds[0], kinds[-1]) == ("start", "error")
    assert kinds.count("error") == 1
    assert stream.error.code is cause.code


@WAYS
@TABLE
@pytest.mark.parametrize("read", ["text", "message"])
def test_text_and_the_final_message_raise_and_keep_what_came(
    way: str, cause: Cause, read: str, server: ReplayServer
) -> None:
    server.queue(cause.recording)
    error, stream = run(server, way, read)
    assert isinstance(error, ModelError)
    assert error.code is cause.code
    assert error.partial_message is not None
    assert bool(error.partial_message.parts) is cause.keeps
    assert stream.snapshot().parts == error.partial_message.parts


@WAYS
def test_leaving_the_with_closes_the_connection_and_cancels(way: str, server: ReplayServer) -> None:
    server.queue(Recording.of_events(CHAT).stopping("stall", HALF))
    _, stream = run(server, way, "early")
    assert stream.error.code is ErrorCode.CANCELLED
    assert stream.status == "error"
    server.close()  # ends the handler that stalls; it would wait for a client that stayed


@WAYS
def test_closing_twice_changes_nothing(way: str, server: ReplayServer) -> None:
    server.queue(Recording.of_events(CHAT))
    message, stream = run(server, way, "message")
    if way == "synchronous":
        stream.close()
    else:
        asyncio.run(stream.aclose())
    assert stream.snapshot() == message
    assert stream.error is None


@WAYS
def test_an_abandoned_stream_warns(way: str, server: ReplayServer) -> None:
    server.queue(Recording.of_events(CHAT).stopping("stall", HALF))
    model = OpenAIChatModel({"model_id": "m"}, base_url=server.url, api_key="key")

    def abandon() -> None:
        next(model.stream_sync("Hello").batches())

    async def abandon_async() -> None:
        await anext(model.stream("Hello").batches())
        gc.collect()
        await model.aclose()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if way == "synchronous":
            with model:
                abandon()
                gc.collect()
        else:
            asyncio.run(abandon_async())
        gc.collect()
    assert any("abandoned" in str(warning.message) for warning in caught)
