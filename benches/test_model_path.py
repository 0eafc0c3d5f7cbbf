"""`Model.stream` over each transport, against the bytes of the same client on a kept connection.

In: a loopback server that writes whole bodies.  Out: the time of a call with 20 and with 2,000
events; the difference between both readers is what a Model adds for a call and for an event.

Laws: the server never sleeps. A bare client sends its next request before the server would fall
asleep, a Model after that. The kernel would charge waking the server to the Model's process alone,
which does not happen over a network. Calls follow each other in one run of the event loop, as in an
application.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeAlias

import aiohttp
import httpx2
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from deltafold import OpenAIChatConfig, OpenAIChatModel
from measuring import together
from serving import serving

BYTES = "bytes"
MODEL = "Model.stream, final message"
TRANSPORTS = ("aiohttp", "httpx2")
CALLS = {20: 20, 2000: 2}
"""Calls in one run of the event loop, by the events of a call."""

Read: TypeAlias = Callable[[], Coroutine[Any, Any, int]]
Close: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(sleeps=False) as port:
        yield port


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("events", [2000, 20])
def test_model_path(benchmark: BenchmarkFixture, transport: str, events: int, port: int) -> None:
    url = f"http://127.0.0.1:{port}/openai-chat/few/{events}"
    with asyncio.Runner() as runner:
        reads, close = runner.run(readers(transport, url))

        calls = CALLS[events]

        def read(name: str) -> Callable[[], int]:
            return lambda: runner.run(several(reads[name], calls))

        names = {name: read(name) for name in reads}
        about = {"transport": transport, "events": events, "calls": calls}
        read_to_the_end = together(benchmark, names, group="model path", **about)
        runner.run(close())
    assert read_to_the_end[MODEL] > calls * events
    assert read_to_the_end[BYTES] > calls * 100 * events


async def several(read: Read, calls: int) -> int:
    """Make so many calls, one after the other, and return the sum of their results."""
    return sum([await read() for _ in range(calls)])


async def readers(transport: str, url: str) -> tuple[dict[str, Read], Close]:
    """Return both readers of a transport, over one client, and the function that closes it."""
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": True}
    config = OpenAIChatConfig(model_id="m")
    if transport == "aiohttp":
        session = aiohttp.ClientSession()
        model = OpenAIChatModel(config, client=session, base_url=url, api_key="unused")

        async def read_bytes() -> int:
            count = 0
            async with session.post(f"{url}/chat/completions", json=body) as response:
                async for chunk in response.content.iter_any():
                    count += len(chunk)
            return count

        close = session.close
    else:
        client = httpx2.AsyncClient()
        model = OpenAIChatModel(config, client=client, base_url=url, api_key="unused")

        async def read_bytes() -> int:
            count = 0
            async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
                async for chunk in response.aiter_bytes():
                    count += len(chunk)
            return count

        close = client.aclose

    async def read_message() -> int:
        async with model.stream("?") as stream:
            return len((await stream.final_message()).text)

    return {BYTES: read_bytes, MODEL: read_message}, close
