"""Giving up a call, at every stage and in every way, the same under asyncio and trio."""

from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import httpx2
import pytest

from deltafold import AnthropicModel, AsyncDeltaStream, DeltaStream, ErrorCode
from deltafold.testing import Recording, ReplayServer
from replay_servers import wait_until_closed
from stalled_answers import HALF, SILENT, UNLIMITED, every_client, model_of
from wires import ANTHROPIC


class OwnError(Exception):
    """Exception of a consumer."""


async def fail_at_the_first_text(stream: AsyncDeltaStream) -> None:
    async with stream:
        async for delta in stream:
            if delta.text:
                raise OwnError


def raise_at_the_first_text(stream: DeltaStream) -> None:
    for delta in stream:
        if delta.text:
            raise OwnError


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer({"*": HALF}) as replay:
        yield replay
        wait_until_closed(replay)


def assert_kept(stream: AsyncDeltaStream | DeltaStream) -> None:
    """Received content is readable, and the error code is that of a cancellation by the caller."""
    assert stream.status == "error"
    error = stream.error
    assert error is not None
    assert (error.code, error.retryable) == (ErrorCode.CANCELLED, False)
    assert error.partial_message is not None
    assert error.partial_message.parts
    assert stream.snapshot().parts == error.partial_message.parts
    assert not error.partial_message.runnable_tool_calls
    assert stream.usage is not None


@every_client
def test_a_cancelled_read_closes_the_connection_and_keeps_what_came(
    package: str, loop: str, server: ReplayServer
) -> None:
    async def main() -> None:
        async with model_of(package, server.url) as model:
            stream = model.stream("Hello")
            with anyio.move_on_after(0.3) as scope:
                async with stream:
                    await stream.final_message()
            assert scope.cancelled_caught
            assert_kept(stream)
            await stream.aclose()
            assert_kept(stream)

    anyio.run(main, backend=loop)


@every_client
def test_a_call_that_is_cancelled_before_its_answer_leaves_nothing(
    package: str, loop: str, server: ReplayServer
) -> None:
    server.recordings = {"*": SILENT}

    async def main() -> None:
        async with model_of(package, server.url) as model:
            stream = model.stream("Hello")
            with anyio.move_on_after(0.2) as scope:
                async with stream:
                    await stream.final_message()
            assert scope.cancelled_caught
            assert stream.error is not None
            assert stream.error.code is ErrorCode.CANCELLED

    anyio.run(main, backend=loop)
    assert len(server.requests) == 1


@every_client
def test_an_error_of_the_consumer_closes_the_connection_and_is_raised(
    package: str, loop: str, server: ReplayServer
) -> None:
    async def main() -> None:
        async with model_of(package, server.url) as model:
            stream = model.stream("Hello")
            with pytest.raises(OwnError):
                await fail_at_the_first_text(stream)
            assert_kept(stream)

    anyio.run(main, backend=loop)


@every_client
@pytest.mark.parametrize("deltas", [1, 3, 6])
def test_a_stream_that_is_left_closes_its_connection(
    package: str, loop: str, deltas: int, server: ReplayServer
) -> None:
    async def main() -> None:
        async with model_of(package, server.url) as model:
            stream = model.stream("Hello")
            async with stream:
                for _ in range(deltas):
                    await anext(stream)
            assert stream.status == "error"
            await stream.aclose()
            assert [delta async for delta in stream] == []

    anyio.run(main, backend=loop)


@pytest.mark.one_in(5)
@every_client
def test_a_cancelled_neighbour_costs_a_stream_nothing(
    package: str, loop: str, server: ReplayServer
) -> None:
    whole = Recording.of_events(ANTHROPIC, delay=0.03)
    server.queue(HALF)
    server.recordings = {"*": whole}
    texts: list[str] = []

    async def one(model: AnthropicModel) -> None:
        async with model.stream("Hello") as stream:
            texts.append((await stream.final_message()).text)

    async def main() -> None:
        async with model_of(package, server.url) as model:
            stream = model.stream("Hello")
            await anext(stream)
            async with anyio.create_task_group() as group:
                group.start_soon(one, model)
                with anyio.move_on_after(0.1):
                    await stream.final_message()
                await stream.aclose()
            assert_kept(stream)

    anyio.run(main, backend=loop)
    assert texts
    assert texts[0]


@pytest.mark.parametrize("package", ["httpx", "httpx2"])
def test_a_synchronous_stream_that_is_left_closes_its_connection(
    package: str, server: ReplayServer
) -> None:
    make: Any = {"httpx": httpx.Client, "httpx2": httpx2.Client}[package]
    with make() as client:
        model = AnthropicModel(
            {"model_id": "m"}, client=client, base_url=server.url, api_key="key", timeouts=UNLIMITED
        )
        stream = model.stream_sync("Hello")
        with pytest.raises(OwnError), stream:
            raise_at_the_first_text(stream)
        assert_kept(stream)
        stream.close()
        assert_kept(stream)
