"""A client without a free connection: the limit is a setting, and the wait is seen and bounded."""

import asyncio
import logging
import threading
from typing import Any

import aiohttp
import aiohttp.abc
import anyio
import httpx2
import pytest

from deltafold import ErrorCode, MisuseError, Model, ModelError, load_model
from deltafold.rollouts import collect
from deltafold.transports import pools
from deltafold.transports.packages import connections_for
from deltafold.transports.timeouts import Timeouts
from scripted_server import WHOLE, ScriptedServer

WAYS = [
    ("httpx", ""),
    ("httpx2", ""),
    ("httpx", "asyncio"),
    ("httpx2", "asyncio"),
    ("httpx2", "trio"),
    ("aiohttp", "asyncio"),
]
every_way = pytest.mark.parametrize(("transport", "loop"), WAYS)


@pytest.fixture(autouse=True)
def _log_of_warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "deltafold")


@pytest.mark.parametrize(
    ("files", "connections"),
    [
        (256, 1_000),
        (1_024, 1_000),
        (8_192, 4_096),
        (1_048_576, 10_000),
        (-1, 10_000),
        (None, 10_000),
    ],
)
def test_the_number_of_connections_follows_the_open_files(
    files: int | None, connections: int
) -> None:
    assert connections_for(files) == connections


def model_of(
    server: ScriptedServer,
    transport: str,
    **settings: Any,  # noqa: ANN401 - of Model
) -> Model[Any]:
    return load_model("vllm/m", base_url=server.url, api_key="k", transport=transport, **settings)


def at_once(model: Model[Any], loop: str, count: int) -> list[str | ModelError]:
    """Make calls at once, and return their texts and errors."""
    found: list[str | ModelError] = []

    def call() -> None:
        try:
            found.append(model.send_message_sync("When?").text)
        except ModelError as error:
            found.append(error)

    async def call_async() -> None:
        try:
            found.append((await model.send_message("When?")).text)
        except ModelError as error:
            found.append(error)

    async def main() -> None:
        async with model, anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(call_async)

    if loop:
        anyio.run(main, backend=loop)
        return found
    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    model.close()
    return found


def waits(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    return [line for line in lines if "waits for a free connection" in line]


@every_way
def test_the_number_of_connections_is_a_setting(
    transport: str, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer(lambda _: [0.02, WHOLE]) as server:
        model = model_of(server, transport, max_connections=2)
        assert at_once(model, loop, 6) == ["hi"] * 6
    assert server.most_at_once == 2
    assert not waits(caplog)


@every_way
def test_the_wait_for_a_free_connection_has_a_limit(transport: str, loop: str) -> None:
    with ScriptedServer(lambda _: [1.0, WHOLE]) as server:
        model = model_of(server, transport, max_connections=1, timeouts=Timeouts(pool=0.2))
        found = at_once(model, loop, 2)
    (error,) = (one for one in found if isinstance(one, ModelError))
    assert "hi" in found
    assert (error.code, error.retryable) == (ErrorCode.TIMEOUT, True)
    assert error.message == "no free connection within 0.2 s (timeouts.pool)"
    assert server.requests == 1


@every_way
def test_a_wait_of_a_second_is_in_the_log_and_goes_on(
    transport: str, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer(lambda _: [1.3, WHOLE]) as server:
        model = model_of(server, transport, max_connections=2)
        assert at_once(model, loop, 4) == ["hi"] * 4
    (line,) = waits(caplog)
    assert f"'{server.url}/chat/completions'" in line
    assert "all 2 of its client are in use" in line
    assert "max_connections" in line
    assert "timeouts.pool" in line
    assert server.requests == 4


@every_way
def test_a_limit_of_more_than_a_second_is_kept(
    transport: str, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer(lambda _: [2.0, WHOLE]) as server:
        model = model_of(server, transport, max_connections=1, timeouts=Timeouts(pool=1.25))
        found = at_once(model, loop, 2)
    (error,) = (one for one in found if isinstance(one, ModelError))
    assert error.message == "no free connection within 1.25 s (timeouts.pool)"
    assert len(waits(caplog)) == 1


@every_way
def test_the_limit_of_the_call_ends_a_wait_too(transport: str, loop: str) -> None:
    with ScriptedServer(lambda number: [WHOLE] if number > 1 else [1.6, WHOLE]) as server:
        model = model_of(server, transport, max_connections=1, timeouts=Timeouts(total=1.2))
        found = at_once(model, loop, 2)
    messages = [one.message for one in found if isinstance(one, ModelError)]
    assert messages == ["the call was not over within 1.2 s (timeouts.total)"] * 2


class SlowResolver(aiohttp.abc.AbstractResolver):
    """A resolver of one address, which takes longer than a request may wait for a connection."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[Any]:  # noqa: ANN401, ARG002 - of aiohttp
        await asyncio.sleep(1.2)
        place = {"hostname": host, "host": "127.0.0.1", "port": port, "family": 2}
        return [{**place, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        pass


def test_the_making_of_a_connection_is_no_wait_for_a_free_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> str:
        port = int(server.url.split(":")[2].partition("/")[0])
        connector = aiohttp.TCPConnector(limit=5, resolver=SlowResolver(port))
        async with aiohttp.ClientSession(connector=connector) as session:
            url = f"http://slow.test:{port}/v1"
            limits = Timeouts(pool=0.1)
            model = load_model("vllm/m", base_url=url, api_key="k", client=session, timeouts=limits)
            return (await model.send_message("When?")).text

    with ScriptedServer(lambda _: [WHOLE]) as server:
        assert asyncio.run(run()) == "hi"
    assert not waits(caplog)


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_rollouts_have_as_many_connections_as_requests(transport: str) -> None:
    async def run() -> list[str]:
        async with model_of(server, transport, max_connections=1) as model:
            prompts = [str(number) for number in range(5)]
            return [one.message.text async for one in collect(model, prompts, concurrency=5)]

    # No answer comes before all requests are there.
    with ScriptedServer(lambda _: ["gather", WHOLE], together=5) as server:
        assert asyncio.run(run()) == ["hi"] * 5
    assert server.most_at_once == 5


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_client_with_fewer_connections_is_replaced_and_its_calls_go_on(transport: str) -> None:
    async def run() -> None:
        async with model_of(server, transport, max_connections=1) as model:
            first = asyncio.ensure_future(model.send_message("When?"))
            await asyncio.to_thread(server.first_came.wait)
            model.allow_connections(2)
            others = await asyncio.gather(*(model.send_message("When?") for _ in range(2)))
            assert [one.text for one in (await first, *others)] == ["hi"] * 3

    with ScriptedServer(lambda _: ["gather", WHOLE], together=3) as server:
        asyncio.run(run())  # aiohttp would report a session that is not closed
    assert server.connections == 3


def test_a_client_of_the_caller_with_fewer_connections_is_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run(client: object) -> None:
        model = load_model("vllm/m", base_url=server.url, api_key="k", client=client)
        assert len([one async for one in collect(model, ["0"], concurrency=7)]) == 1

    async def run_both() -> None:
        async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=5)) as client:
            await run(client)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=6)) as client:
            await run(client)
        async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=7)) as client:
            await run(client)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            await run(client)

    with ScriptedServer(lambda _: [WHOLE]) as server:
        asyncio.run(run_both())
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert "7 requests at once" in lines[0]
    assert "5 connections" in lines[0]
    assert "6 connections" in lines[1]


def test_a_client_has_one_connection_at_least() -> None:
    with pytest.raises(MisuseError, match=r"max_connections must be at least 1 \(got 0\)"):
        load_model("vllm/m", max_connections=0)


def test_what_cannot_be_read_is_no_limit() -> None:
    assert pools.connection_limit(object()) is None
    assert pools.connection_limit(httpx2.Client(limits=httpx2.Limits())) is None
    assert not pools.waits_in_pool(object())
