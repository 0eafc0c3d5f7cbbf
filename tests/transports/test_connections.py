"""Connections serve one call after the other, and none is lost on a call that goes wrong."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import aiohttp
import anyio
import httpx
import httpx2
import openai
import pytest
import requests

import deltafold
from client_ways import (
    CERTIFICATES,
    CHAT,
    STREAMED,
    SYNC_CLIENTS,
    dialect_for,
    every_plain_way,
    every_way,
    model_for,
    with_model,
)
from deltafold import (
    AsyncDeltaStream,
    DeltaStream,
    ErrorCode,
    MisuseError,
    Model,
    ModelError,
)
from deltafold.models.hooks import Hooks
from deltafold.testing import Recorder, Recording, ReplayServer
from deltafold.transports.drain import MAX_REST_BYTES
from deltafold.transports.response_info import ResponseInfo
from deltafold.transports.timeouts import Timeouts
from protocol_bodies import DONE
from replay_servers import wait_until_closed

CALLS: Final = 100
WHOLE: Final = {
    "openai-chat": {
        "id": "r",
        "model": "m",
        "choices": [
            {"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}
        ],
    },
    "anthropic-messages": {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "whole"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as replay:
        yield replay
        wait_until_closed(replay)


def streamed(package: str) -> Recording:
    """Send events one millisecond apart, the last one behind the terminal event."""
    return Recording.of_events(STREAMED[dialect_for(package)], delay=0.001)


# A way to read a stream to its end. The connection must be free when it returns.


def by_message(stream: DeltaStream) -> None:
    stream.final_message()


def by_deltas(stream: DeltaStream) -> None:
    assert [str(delta.kind) for delta in stream][-1] in {"done", "error"}


def by_text(stream: DeltaStream) -> None:
    assert "".join(stream.text())


def by_batches(stream: DeltaStream) -> None:
    assert list(stream.batches())


def by_closing_at_the_terminal(stream: DeltaStream) -> None:
    for delta in stream:
        if delta.kind == "done":
            break
    stream.close()


async def await_message(stream: AsyncDeltaStream) -> None:
    await stream.final_message()


async def await_deltas(stream: AsyncDeltaStream) -> None:
    assert [str(delta.kind) async for delta in stream][-1] in {"done", "error"}


async def await_text(stream: AsyncDeltaStream) -> None:
    assert "".join([text async for text in stream.text()])


async def await_batches(stream: AsyncDeltaStream) -> None:
    assert [batch async for batch in stream.batches()]


async def await_closing_at_the_terminal(stream: AsyncDeltaStream) -> None:
    async for delta in stream:
        if delta.kind == "done":
            break
    await stream.aclose()


READINGS: Final = {
    "message": (by_message, await_message),
    "deltas": (by_deltas, await_deltas),
    "text": (by_text, await_text),
    "batches": (by_batches, await_batches),
    "closing": (by_closing_at_the_terminal, await_closing_at_the_terminal),
}


@pytest.mark.one_in(3)
@every_way
def test_a_hundred_calls_share_one_connection(
    package: str, loop: str, server: ReplayServer
) -> None:
    dialect = dialect_for(package)
    headers = {"content-type": "application/json"}
    refusal = Recording.error(400, {"error": {"message": "no" * 20_000}})
    limited = Recording.error(429, {"error": {"message": "slow down"}}, {"retry-after": "1"})
    whole = replace(Recording.error(200, WHOLE[dialect]), headers=headers)
    turns = (streamed(package), whole, refusal, limited)
    for _ in range(CALLS // len(turns)):
        server.queue(*turns)
    codes: list[ErrorCode | None] = []

    def use(model: Model[Any]) -> None:
        for number in range(CALLS):
            try:
                model.send_message_sync("Hello", stream=number % len(turns) != 1)
                codes.append(None)
            except ModelError as error:
                codes.append(error.code)

    async def use_async(model: Model[Any]) -> None:
        for number in range(CALLS):
            try:
                await model.send_message("Hello", stream=number % len(turns) != 1)
                codes.append(None)
            except ModelError as error:
                codes.append(error.code)

    with_model(package, loop, server.url, use, use_async)
    kinds = [None, None, ErrorCode.INVALID_REQUEST, ErrorCode.RATE_LIMITED]
    assert codes == kinds * (CALLS // len(turns))
    assert server.connections == 1


@pytest.mark.one_in(3)
@every_way
@pytest.mark.parametrize("reading", READINGS)
def test_every_way_of_reading_gives_the_connection_back(
    package: str, loop: str, reading: str, server: ReplayServer
) -> None:
    server.recordings = {"*": streamed(package)}
    read, read_async = READINGS[reading]

    def use(model: Model[Any]) -> None:
        for _ in range(5):
            with model.stream_sync("Hello") as stream:
                read(stream)

    async def use_async(model: Model[Any]) -> None:
        for _ in range(5):
            async with model.stream("Hello") as stream:
                await read_async(stream)

    with_model(package, loop, server.url, use, use_async)
    assert server.connections == 1


# The user's own responses.


def test_a_response_of_the_users_gives_its_connection_back(server: ReplayServer) -> None:
    server.recordings = {"*": streamed("httpx")}
    with httpx.Client() as client:
        for _ in range(5):
            with client.stream("POST", server.url) as response:
                deltafold.stream(response, "openai-chat").final_message()
                # A read that obeys deadlines costs the caller's later requests time.
                assert "read" not in vars(response.extensions["network_stream"])
    with requests.Session() as session:
        for _ in range(5):
            opened = session.post(server.url, stream=True)
            deltafold.stream(opened, "openai-chat").final_message()
    with openai.OpenAI(base_url=server.url, api_key="key", max_retries=0) as sdk:
        for _ in range(5):
            events = sdk.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
            )
            deltafold.stream(events).final_message()
    assert server.connections == 3


def test_a_response_of_the_users_that_is_awaited_gives_its_connection_back(
    server: ReplayServer,
) -> None:
    server.recordings = {"*": streamed("httpx")}

    async def main() -> None:
        async with httpx2.AsyncClient() as client:
            for _ in range(5):
                async with client.stream("POST", server.url) as response:
                    await deltafold.astream(response, "openai-chat").final_message()
        async with aiohttp.ClientSession() as session:
            for _ in range(5):
                async with session.post(server.url) as answer:
                    await deltafold.astream(answer, "openai-chat").final_message()

    asyncio.run(main())
    assert server.connections == 2


# Bounds.


@pytest.mark.one_in(5)
@every_way
@pytest.mark.parametrize("rest", ["silence", "trickle", "flood"])
def test_a_server_that_goes_on_behind_the_terminal_costs_a_moment_and_its_connection(
    package: str, loop: str, rest: str, server: ReplayServer
) -> None:
    terminal = streamed(package)
    pieces = terminal.pieces
    if rest == "trickle":
        pieces = (*pieces, *[(0.02, b": wait\n\n")] * 500)
    elif rest == "flood":
        pieces = (*pieces, *[(0.0, b": " + b"x" * 8000 + b"\n\n")] * (20 * MAX_REST_BYTES // 8000))
    recording = replace(terminal, pieces=pieces, ending="stall", stop_after=None)
    server.recordings = {"*": recording}
    seconds: list[float] = []

    def use(model: Model[Any]) -> None:
        for _ in range(2):
            with model.stream_sync("Hello") as stream:
                while next(iter(stream)).kind != "done":
                    pass
                begun = time.monotonic()
                assert next(iter(stream), None) is None
                seconds.append(time.monotonic() - begun)

    async def use_async(model: Model[Any]) -> None:
        for _ in range(2):
            async with model.stream("Hello") as stream:
                while (await anext(stream)).kind != "done":
                    pass
                begun = time.monotonic()
                assert [delta async for delta in stream] == []
                seconds.append(time.monotonic() - begun)

    with_model(package, loop, server.url, use, use_async)
    assert max(seconds) < 2
    assert server.connections == 2


@pytest.mark.one_in(3)
@every_way
def test_the_terminal_is_handed_out_before_anything_behind_it_is_awaited(
    package: str, loop: str, server: ReplayServer
) -> None:
    server.recordings = {"*": streamed(package).stopping("stall")}
    seconds: list[float] = []

    def use(model: Model[Any]) -> None:
        for _ in range(3):
            with model.stream_sync("Hello") as stream:
                begun = time.monotonic()
                while next(iter(stream)).kind != "done":
                    pass
                seconds.append(time.monotonic() - begun)

    async def use_async(model: Model[Any]) -> None:
        for _ in range(3):
            async with model.stream("Hello") as stream:
                begun = time.monotonic()
                while (await anext(stream)).kind != "done":
                    pass
                seconds.append(time.monotonic() - begun)

    with_model(package, loop, server.url, use, use_async)
    assert min(seconds) < 0.2


@every_way
def test_closing_before_the_end_closes_the_connection(
    package: str, loop: str, server: ReplayServer
) -> None:
    server.recordings = {"*": streamed(package).stopping("stall")}

    def use(model: Model[Any]) -> None:
        for _ in range(3):
            with model.stream_sync("Hello") as stream:
                next(iter(stream))

    async def use_async(model: Model[Any]) -> None:
        for _ in range(3):
            async with model.stream("Hello") as stream:
                await anext(stream)

    with_model(package, loop, server.url, use, use_async)
    assert server.connections == 3


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize("package", ["httpx", "httpx2", "aiohttp"])
def test_a_cancellation_while_the_rest_is_read_closes_the_connection(
    package: str, loop: str, server: ReplayServer
) -> None:
    if (loop, package) == ("trio", "aiohttp"):
        return
    server.recordings = {"*": streamed(package).stopping("stall")}

    async def use_async(model: Model[Any]) -> None:
        stream = model.stream("Hello")
        while (await anext(stream)).kind != "done":
            pass
        with anyio.move_on_after(0.01) as scope:
            await anext(stream, None)
        assert scope.cancelled_caught
        assert stream.status == "done"
        assert (await stream.final_message()).text

    with_model(package, loop, server.url, lambda _: None, use_async)


def test_a_tee_sees_what_follows_the_terminal(server: ReplayServer) -> None:
    server.recordings = {"*": streamed("httpx")}
    seen: list[bytes] = []

    async def tee(chunk: bytes) -> None:
        seen.append(chunk)

    async def main() -> None:
        async with httpx.AsyncClient() as client:
            model = model_for("httpx", client, server.url)
            async with model.stream("Hello", tee=tee) as stream:
                await stream.final_message()

    asyncio.run(main())
    assert b"".join(seen) == CHAT
    seen.clear()
    with httpx.Client() as client:
        model_for("httpx", client, server.url).stream_sync("Hello", tee=seen.append).final_message()
    assert b"".join(seen) == CHAT
    assert CHAT.endswith(DONE)


# Faults between the response and its stream.


# Clients whose pool has room for one connection: a second call would wait for one that was lost.
NARROW_CLIENTS: Final[dict[tuple[str, bool], Callable[[], Any]]] = {
    ("httpx", False): lambda: httpx.Client(
        verify=CERTIFICATES, limits=httpx.Limits(max_connections=1)
    ),
    ("httpx2", False): lambda: httpx2.Client(
        verify=CERTIFICATES, limits=httpx2.Limits(max_connections=1)
    ),
    ("httpx", True): lambda: httpx.AsyncClient(
        verify=CERTIFICATES, limits=httpx.Limits(max_connections=1)
    ),
    ("httpx2", True): lambda: httpx2.AsyncClient(
        verify=CERTIFICATES, limits=httpx2.Limits(max_connections=1)
    ),
    ("aiohttp", True): lambda: aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)),
}


@every_plain_way
@pytest.mark.parametrize("location", ["http://[::1", "http://a:99999999/", "//[", "https://a:x/"])
def test_a_location_that_is_no_url_is_told_and_loses_no_connection(
    package: str, loop: str, location: str, server: ReplayServer
) -> None:
    server.recordings = {"*": Recording.error(307, {}, {"location": location})}
    timeouts = Timeouts(total=5)
    codes: list[ErrorCode] = []

    async def main() -> None:
        async with NARROW_CLIENTS[package, True]() as client:
            model = model_for(package, client, server.url, timeouts=timeouts)
            for _ in range(3):
                with pytest.raises(ModelError) as raised:
                    await model.send_message("Hello")
                codes.append(raised.value.code)

    if loop:
        anyio.run(main, backend=loop)
    else:
        with NARROW_CLIENTS[package, False]() as client:
            model = model_for(package, client, server.url, timeouts=timeouts)
            for _ in range(3):
                with pytest.raises(ModelError) as raised:
                    model.send_message_sync("Hello")
                codes.append(raised.value.code)
    # httpx reads the Location too, and calls one that it cannot read a violation by the server.
    assert set(codes) <= {ErrorCode.PROTOCOL_ERROR, ErrorCode.CONNECTION_LOST}
    assert len(server.requests) == 3


@every_way
def test_a_hook_that_raises_leaves_no_connection_open(
    package: str, loop: str, server: ReplayServer
) -> None:
    server.recordings = {"*": streamed(package)}

    def refuse(_: ResponseInfo) -> None:
        raise LookupError("mine")

    def use(model: Model[Any]) -> None:
        stream = model.stream_sync("Hello")
        with pytest.raises(LookupError, match="mine"):
            stream.final_message()
        wait_until_closed(server)

    async def use_async(model: Model[Any]) -> None:
        stream = model.stream("Hello")
        with pytest.raises(LookupError, match="mine"):
            await stream.final_message()
        await anyio.to_thread.run_sync(wait_until_closed, server)

    hooks = Hooks(after_headers=refuse)
    with_model(package, loop, server.url, use, use_async, hooks=hooks)


def test_a_recorder_that_may_write_no_second_file_leaves_no_connection_open(
    server: ReplayServer, tmp_path: Path
) -> None:
    server.recordings = {"*": streamed("openai")}
    with SYNC_CLIENTS["openai"](server.url) as client:
        model = model_for("openai", Recorder(client, tmp_path / "one.jsonl"), server.url)
        model.send_message_sync("Hello")
        stream = model.stream_sync("Hello")
        with pytest.raises(MisuseError, match="is a file and holds one response"):
            stream.final_message()
        stream.close()
    wait_until_closed(server)
