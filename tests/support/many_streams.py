"""Many streams at once from one Model, a third of them cancelled; a program of its own.

In: on the command line the server's URL, the client's package, and numbers.  Out: one line of JSON
a round: the numbers of whole and cancelled streams, the failures, open files, resident memory.

A test runs this program in a separate process, so that nothing else changes the memory.
"""

import asyncio
import gc
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from deltafold import AnthropicModel

# Rounds without a report. After them the caches of the clients and of the loop are filled.
WARMING_ROUNDS = 2


def client_of(package: str) -> Any:  # noqa: ANN401 - unrelated classes
    # No connection outlives its stream, so that those which are open are those which leak.
    if package == "aiohttp":
        import aiohttp  # noqa: PLC0415 - only the client that is asked for is loaded

        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))
    import httpx2  # noqa: PLC0415 - as above

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx2.AsyncClient(limits=limits)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def round_of(model: AnthropicModel, streams: int, chance: random.Random) -> dict[str, object]:
    """Run one round; every third stream is cancelled somewhere between its call and its end."""
    wrong: list[str] = []
    texts: set[str] = set()
    whole = cancelled = 0

    async def one() -> None:
        nonlocal whole, cancelled
        stream = model.stream("Hello")
        try:
            async with stream:
                message = await stream.final_message()
        except asyncio.CancelledError:
            cancelled += 1
            error = stream.error
            if error is None or error.code != "cancelled" or error.partial_message is None:
                wrong.append(f"cancelled, and told as {error!r}")
            raise
        whole += 1
        texts.add(message.text)

    tasks = [asyncio.create_task(one()) for _ in range(streams)]
    loop = asyncio.get_running_loop()
    for task in tasks[::3]:
        loop.call_later(chance.random() * 0.5, task.cancel)
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    wrong += [repr(one) for one in outcomes if isinstance(one, Exception)]
    left = len(asyncio.all_tasks()) - 1
    del tasks, outcomes
    # A socket that was closed in this turn of the loop is gone after the next.
    for _ in range(5):
        await asyncio.sleep(0.01)
    gc.collect()
    return {
        "whole": whole,
        "cancelled": cancelled,
        "texts": sorted(texts),
        "wrong": wrong[:5],
        "tasks": left,
        "files": open_files(),
        "resident": resident_bytes(),
    }


async def main(url: str, package: str, streams: str, rounds: str) -> None:
    """Run the rounds."""
    client = client_of(package)
    model = AnthropicModel({"model_id": "m"}, client=client, base_url=url, api_key="key")
    chance = random.Random(7)  # noqa: S311 - repeatable, and no secret
    for number in range(WARMING_ROUNDS + int(rounds)):
        told = json.dumps(await round_of(model, int(streams), chance))
        if number >= WARMING_ROUNDS:
            print(told, flush=True)  # noqa: T201 - what it is for
    await (client.close() if package == "aiohttp" else client.aclose())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
