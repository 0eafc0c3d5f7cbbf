"""What is measured in processes of their own: holding streams, folding bodies, loopback HTTP.

In: a command line.  Out: one line of JSON for each thing that is found.

    processes.py held READER DIALECT STREAMS    KiB of resident memory a half-finished stream
    processes.py fold DIALECT BODIES            folds whenever a line comes in, says the seconds
    processes.py serve                          says its port, then streams what is asked for
    processes.py client PORT DIALECT WRITES STREAMS EVENTS READER...
                                                CPU seconds of each reader, round by round
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx2
import orjson

from bodies import feeds, half_a_stream
from deltafold import Fold, astream, fold_many

HELD_DELTAS: Final = 250
CLIENT_ROUNDS: Final = 5
SERVER_WRITE_BYTES: Final = 64 * 1024


def say(found: object) -> None:
    """Print what was found, at once."""
    print(json.dumps(found), flush=True)


def resident_bytes() -> int:
    """Return the memory of this process that is in use (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def _begin_fold(dialect: str, chunks: list[bytes]) -> object:
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
    from transports import anthropic_client, openai_client  # noqa: PLC0415 - only this one pays

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
    """Hold so many half-finished streams at once."""
    chunks = half_a_stream(dialect, HELD_DELTAS)
    begin = BEGIN[reader]
    warm = [begin(dialect, chunks) for _ in range(20)]
    gc.collect()
    before = resident_bytes()
    kept = [begin(dialect, chunks) for _ in range(int(streams))]
    gc.collect()
    say((resident_bytes() - before) / 1024 / len(kept))
    del warm


def fold_on_command(dialect: str, bodies: str) -> None:
    """Fold as many bodies in one thread whenever a line comes in."""
    body = b"".join(feeds(dialect, 2000, "16 KiB"))
    work = [bytes(bytearray(body)) for _ in range(8)] * (int(bodies) // 8)
    say("ready")
    for _ in sys.stdin:
        begun = time.perf_counter()
        fold_many(work, dialect, threads=1)
        say(time.perf_counter() - begun)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer `GET /<dialect>/<few|each>/<events>`: one HTTP chunk an event."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            _, dialect, writes, count = head.split(b" ")[1].decode().split("/")
            events = feeds(dialect, int(count), "1 event")
            framed = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                b"transfer-encoding: chunked\r\n\r\n"
            )
            if writes == "few":
                body = b"".join(framed)
                framed = [
                    body[at : at + SERVER_WRITE_BYTES]
                    for at in range(0, len(body), SERVER_WRITE_BYTES)
                ]
            for piece in framed:
                writer.write(piece)
                await writer.drain()
                # Other streams have their turn, so that writes stay apart.
                await asyncio.sleep(0)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve() -> None:
    """Serve until this process is ended."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    say(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _bytes_only(response: httpx2.Response, dialect: str) -> None:
    del dialect
    async for _ in response.aiter_bytes():
        pass


async def _final_message(response: httpx2.Response, dialect: str) -> None:
    async with astream(response, dialect) as stream:
        await stream.final_message()


CLIENTS: Final[dict[str, Callable[[httpx2.Response, str], Awaitable[None]]]] = {
    "bytes only": _bytes_only,
    "deltafold message": _final_message,
}


async def client(
    port: str, dialect: str, writes: str, streams: str, events: str, *readers: str
) -> None:
    """Read so many streams at once, by every reader in turn."""
    url = f"http://127.0.0.1:{port}/{dialect}/{writes}/{events}"
    limits = httpx2.Limits(max_connections=int(streams), max_keepalive_connections=int(streams))
    async with httpx2.AsyncClient(limits=limits, timeout=60) as http:

        async def one(read: Callable[[httpx2.Response, str], Awaitable[None]]) -> None:
            async with http.stream("GET", url) as response:
                await read(response, dialect)

        async def everyone(reader: str) -> float:
            begun = time.process_time()
            await asyncio.gather(*(one(CLIENTS[reader]) for _ in range(int(streams))))
            return time.process_time() - begun

        for reader in readers:
            await everyone(reader)
        rounds = [
            {reader: await everyone(reader) for reader in readers} for _ in range(CLIENT_ROUNDS)
        ]
    say(rounds)


def main() -> None:
    """Do what the command line says."""
    command, *arguments = sys.argv[1:]
    match command:
        case "held":
            held(*arguments)
        case "fold":
            fold_on_command(*arguments)
        case "serve":
            asyncio.run(serve())
        case "client":
            asyncio.run(client(*arguments))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
