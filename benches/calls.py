"""Calls of a Model, and of its bare client, in a process of their own.

In: a command line, and the number of rounds in each line of the input.  Out: a line of JSON for
each line of the input: the CPU seconds of each reader in each round.

    calls.py PORT TRANSPORT EVENTS CALLS    Make so many calls in a round of each reader.

Laws: calls follow each other in one run of the event loop, as in an application, and on a kept
connection. The readers begin by turns. The garbage collector runs between the rounds of two lines,
so that its time counts for neither reader; a round that is not measured follows it, because it
leaves the caches cold.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

import aiohttp
import httpx2

from deltafold import OpenAIChatConfig, OpenAIChatModel
from serving import say

BYTES: Final = "bytes"
MODEL: Final = "Model.stream, final message"
WARMING_ROUNDS: Final = 10

Read: TypeAlias = Callable[[], Coroutine[Any, Any, int]]
Close: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


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


async def _several(read: Read, calls: int) -> int:
    """Make so many calls, one after the other, and return the sum of their results."""
    return sum([await read() for _ in range(calls)])


def main() -> None:
    """Measure so many rounds for each line of the input."""
    port, transport, events, calls = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with asyncio.Runner() as runner:
        url = f"http://127.0.0.1:{port}/openai-chat/few/{events}"
        reads, close = runner.run(readers(transport, url))
        least = {BYTES: calls * events * 100, MODEL: calls * events}

        def seconds(name: str) -> float:
            begun = time.process_time()
            read = runner.run(_several(reads[name], calls))
            taken = time.process_time() - begun
            if read < least[name]:
                raise SystemExit(f"{name}: {read} is less than a whole answer")
            return taken

        def rounds(count: int) -> list[dict[str, float]]:
            gc.collect()
            gc.disable()
            first, second = reads
            orders = [(first, second), (second, first)]
            found = [
                {name: seconds(name) for name in orders[number % 2]} for number in range(count + 1)
            ]
            gc.enable()
            return found[1:]

        rounds(WARMING_ROUNDS)
        say("ready")
        for line in sys.stdin:
            say(rounds(int(line)))
        runner.run(close())


if __name__ == "__main__":
    main()
