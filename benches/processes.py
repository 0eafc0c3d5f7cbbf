"""Measurements that need a process of their own: held streams, folded bodies, loopback HTTP.

In: a command line.  Out: one line of JSON for each result.

    processes.py held READER DIALECT STREAMS    Print the KiB of resident memory for each
                                                half-finished stream.
    processes.py fold DIALECT BODIES            Fold the bodies for each line of the input. Print
                                                the seconds.
    processes.py serve [awake]                  Print the port, then serve the requested streams.
    processes.py client PORT DIALECT WRITES STREAMS EVENTS READER...
                                                Print the CPU seconds of each reader in each round.
                                                An SDK reads a tenth of the events; its time is
                                                multiplied by ten.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import anthropic
import httpx2
import openai
import orjson

from bodies import feeds, half_a_stream
from deltafold import Fold, astream, fold_many
from deltafold.transports.http import open_http_async
from deltafold.transports.requests import HttpRequest
from peers import SDK_CREATE, SDK_HELPER
from sending import serve
from serving import say

if TYPE_CHECKING:
    from any_name import AnyName

HELD_DELTAS: Final = 250
CLIENT_ROUNDS: Final = 5


def resident_bytes() -> int:
    """Return the resident memory of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def _begin_fold(dialect: "AnyName", chunks: list[bytes]) -> object:
    folding = Fold(dialect)
    for chunk in chunks:
        folding.feed(chunk)
    return folding


def _begin_hand_written(dialect: str, chunks: list[bytes]) -> object:
    module: Any = __import__("hand_written")
    assembler_class = module.OpenAIChat if dialect == "openai-chat" else module.Anthropic
    assembler = assembler_class(orjson.loads, as_str=False)
    going = assembler.run(iter(chunks))
    for _ in range(HELD_DELTAS):
        next(going)
    return assembler, going


def _begin_sdk(dialect: str, chunks: list[bytes]) -> object:
    from transports import anthropic_client, openai_client  # noqa: PLC0415 - other readers must not load the SDKs

    question: Any = [{"role": "user", "content": "?"}]
    if dialect == "openai-chat":
        manager: Any = openai_client(chunks).chat.completions.stream(model="m", messages=question)
    else:
        messages: Any = anthropic_client(chunks).messages
        manager = messages.stream(model="m", max_tokens=10, messages=question)
    stream = manager.__enter__()
    for _ in range(HELD_DELTAS):
        next(stream)
    return manager, stream


BEGIN: Final[dict[str, Callable[[str, list[bytes]], object]]] = {
    "deltafold": _begin_fold,
    "hand-written": _begin_hand_written,
    "SDK helper": _begin_sdk,
}


def held(reader: str, dialect: str, streams: str) -> None:
    """Print the resident memory of a half-finished stream, with `streams` of them held."""
    chunks = half_a_stream(dialect, HELD_DELTAS)
    begin = BEGIN[reader]
    warm = [begin(dialect, chunks) for _ in range(20)]
    gc.collect()
    before = resident_bytes()
    kept = [begin(dialect, chunks) for _ in range(int(streams))]
    gc.collect()
    say((resident_bytes() - before) / 1024 / len(kept))
    del warm


def fold_on_command(dialect: "AnyName", bodies: str) -> None:
    """Fold `bodies` bodies in one thread for each line of the input, and print the seconds."""
    body = b"".join(feeds(dialect, 2000, "16 KiB"))
    work = [bytes(bytearray(body)) for _ in range(8)] * (int(bodies) // 8)
    say("ready")
    for _ in sys.stdin:
        begun = time.perf_counter()
        fold_many(work, dialect, threads=1)
        say(time.perf_counter() - begun)


@dataclass
class Clients:
    """Clients of one process, and the address and the dialect of the streams that they read."""

    url: str
    dialect: "AnyName"
    httpx: httpx2.AsyncClient
    aiohttp: aiohttp.ClientSession

    @property
    def sdk(self) -> Any:  # noqa: ANN401 - two unrelated classes
        """Client of the dialect's SDK, over the connections of the bare httpx2 client."""
        make = openai.AsyncOpenAI if self.dialect == "openai-chat" else anthropic.AsyncAnthropic
        return make(base_url=self.url, api_key="unused", http_client=self.httpx, max_retries=0)

    @property
    def question(self) -> dict[str, Any]:
        """Arguments of a request through the dialect's SDK."""
        asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        return asked if self.dialect == "openai-chat" else {**asked, "max_tokens": 10}


async def _bytes_only(clients: Clients) -> None:
    async with clients.httpx.stream("POST", clients.url) as response:
        async for _ in response.aiter_bytes():
            pass


async def _final_message(clients: Clients) -> None:
    async with (
        clients.httpx.stream("POST", clients.url) as response,
        astream(response, clients.dialect) as stream,
    ):
        await stream.final_message()


async def _aiohttp_bytes_only(clients: Clients) -> None:
    async with clients.aiohttp.post(clients.url) as response:
        async for _ in response.content.iter_any():
            pass


async def _aiohttp_final_message(clients: Clients) -> None:
    request = HttpRequest("POST", clients.url, {}, {}, b"")
    source = await open_http_async(clients.aiohttp, request)
    try:
        async with astream(source.chunks, clients.dialect) as stream:
            await stream.final_message()
    finally:
        await source.close()


async def _sdk_create(clients: Clients) -> None:
    sdk = clients.sdk
    resource = sdk.chat.completions if clients.dialect == "openai-chat" else sdk.messages
    async for _ in await resource.create(**clients.question, stream=True):
        pass


async def _sdk_helper(clients: Clients) -> None:
    sdk = clients.sdk
    resource = sdk.chat.completions if clients.dialect == "openai-chat" else sdk.messages
    async with resource.stream(**clients.question) as stream:
        async for _ in stream:
            pass


CLIENTS: Final[dict[str, Callable[[Clients], Awaitable[None]]]] = {
    "bytes only": _bytes_only,
    "deltafold message": _final_message,
    "bytes only, aiohttp": _aiohttp_bytes_only,
    "deltafold message, aiohttp": _aiohttp_final_message,
    SDK_CREATE: _sdk_create,
    SDK_HELPER: _sdk_helper,
}
# The SDKs are so slow that a tenth of the events is enough to measure them.
SDK_SHARE: Final[Mapping[str, int]] = {SDK_CREATE: 10, SDK_HELPER: 10}


async def client(
    port: str, dialect: str, writes: str, streams: str, events: str, *readers: str
) -> None:
    """Read `streams` streams at once with each reader in turn, and print the CPU seconds."""
    limits = httpx2.Limits(max_connections=int(streams), max_keepalive_connections=int(streams))
    async with (
        httpx2.AsyncClient(limits=limits, timeout=60) as http,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=int(streams))) as session,
    ):

        async def everyone(reader: str) -> float:
            share = SDK_SHARE.get(reader, 1)
            url = f"http://127.0.0.1:{port}/{dialect}/{writes}/{int(events) // share}"
            clients = Clients(url, dialect, http, session)
            begun = time.process_time()
            await asyncio.gather(*(CLIENTS[reader](clients) for _ in range(int(streams))))
            return (time.process_time() - begun) * share

        for reader in readers:
            await everyone(reader)
        rounds = [
            {reader: await everyone(reader) for reader in readers} for _ in range(CLIENT_ROUNDS)
        ]
    say(rounds)


def main() -> None:
    """Run the command of the command line."""
    command, *arguments = sys.argv[1:]
    match command:
        case "held":
            held(*arguments)
        case "fold":
            fold_on_command(*arguments)
        case "serve":
            serve(say, sleeps="awake" not in arguments)
        case "client":
            asyncio.run(client(*arguments))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
