"""Delay of the events of open streams in a gateway, while agents send requests of 300 turns.

    open_streams.py --docs docs/requests.md     rewrites the table of the document

In: a gateway in front of a stubbed provider, in one process.  Out: how much later than they are due
the events of 200 streams leave the provider, and the CPU of the process.

Law: the client costs nothing: it calls the application by itself, and drops what it gets.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import sys
import time
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx2
from agent_sessions import MODEL, Session
from starlette.requests import Request

import deltafold
from deltafold.gateway import ClientRequest, create_app
from deltafold.gateway.hooks import OnRequest

sys.path.append(str(Path(__file__).parent.parent))
from measured_parts import rewrite
from results import machine

if TYPE_CHECKING:
    from asyncio import Task

STREAMS: Final = 200
EVENT_SECONDS: Final = 0.1
AGENTS: Final = 20
CALL_SECONDS: Final = 2.0
TURNS: Final = 300
SECONDS: Final = 20.0
PATH: Final = "/v1/chat/completions"
_START: Final[dict[str, object]] = {
    "type": "message_start",
    "message": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}
_BLOCK: Final[dict[str, object]] = {
    "type": "content_block_start",
    "index": 0,
    "content_block": {"type": "text", "text": ""},
}
_WORD: Final[dict[str, object]] = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": "word "},
}
_ENDS: Final[tuple[dict[str, object], ...]] = (
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 5},
    },
    {"type": "message_stop"},
)


class Held(NamedTuple):
    """Milliseconds that the events came late, and the CPU seconds of the process."""

    half: float
    p99: float
    p999: float
    cpu: float
    calls: int


def _written(*events: dict[str, object]) -> bytes:
    pieces = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)
    return b"".join(pieces)


class _Words(httpx2.AsyncByteStream):
    """A stream with an event at fixed times; `late` gets how late each one is."""

    def __init__(self, number: int, late: list[float]) -> None:
        self._number = number
        self._late = late

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        due = loop.time() + EVENT_SECONDS * self._number / STREAMS
        yield _written(_START, _BLOCK)
        while True:
            due += EVENT_SECONDS
            await asyncio.sleep(max(0.0, due - loop.time()))
            self._late.append(loop.time() - due)
            yield _written(_WORD)


async def _call(app: Any, body: bytes) -> None:  # noqa: ANN401 - an ASGI application
    sent = False

    async def receive() -> dict[str, object]:
        nonlocal sent
        if sent:
            await asyncio.sleep(3600)
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(_message: object) -> None:
        """Drop what a client would get."""

    scope: dict[str, object] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": PATH,
        "raw_path": PATH.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, send)


async def _measured(agents: int, hook: OnRequest | None) -> Held:
    late: list[float] = []
    opened = 0

    def provide(request: httpx2.Request) -> httpx2.Response:
        nonlocal opened
        kind = {"content-type": "text/event-stream"}
        if len(request.content) > 10_000:
            answer = _written(_START, _BLOCK, _WORD, *_ENDS)
            return httpx2.Response(200, content=answer, headers=kind)
        opened += 1
        return httpx2.Response(200, stream=_Words(opened, late), headers=kind)

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(provide))
    model = deltafold.load_model("anthropic/claude-sonnet-5-5", api_key="k", client=client)
    app = create_app({MODEL: model}, on_request=hook)
    gc.collect()
    gc.freeze()  # as `deltafold serve` does
    asked = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "Go on."}]}
    open_streams: list[Task[None]] = [
        asyncio.create_task(_call(app, json.dumps(asked).encode())) for _ in range(STREAMS)
    ]
    sessions = [Session(9_000_000 + number, TURNS).body("openai-chat") for number in range(agents)]
    await asyncio.sleep(2)
    late.clear()
    calls = 0
    cpu, end = time.process_time(), time.monotonic() + SECONDS

    async def agent(number: int, body: bytes) -> None:
        nonlocal calls
        await asyncio.sleep(CALL_SECONDS * number / AGENTS)
        while time.monotonic() < end:
            begun = time.monotonic()
            await _call(app, body)
            calls += 1
            await asyncio.sleep(max(0.0, CALL_SECONDS - (time.monotonic() - begun)))

    await asyncio.gather(
        asyncio.sleep(SECONDS), *(agent(number, body) for number, body in enumerate(sessions))
    )
    spent = time.process_time() - cpu
    for stream in open_streams:
        stream.cancel()
    await asyncio.gather(*open_streams, return_exceptions=True)
    late.sort()
    half, p99, p999 = (late[int(len(late) * share)] * 1000 for share in (0.5, 0.99, 0.999))
    return Held(half, p99, p999, spent, calls)


async def _read_whole(_request: Request, asked: ClientRequest) -> ClientRequest:
    """Read the whole history, so that the parser and the renderer take it."""
    messages = tuple(asked.messages)
    return replace(asked, parsed=replace(asked.parsed, messages=messages))


def measure(agents: int, hook: OnRequest | None) -> Held:
    """Measure in this process."""
    return asyncio.run(_measured(agents, hook))


def table() -> str:
    """Measure each row in a process of its own, and return the table."""
    rows = (
        ("no agent", 0, None),
        (f"{AGENTS} agents", AGENTS, None),
        (f"{AGENTS} agents, by the parser and the renderer alone", AGENTS, _read_whole),
    )
    lines = [
        f"| Events of {STREAMS} streams, ms late | half | 99 % | 99.9 % | CPU, s | calls |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    context = multiprocessing.get_context("spawn")
    for name, agents, hook in rows:
        with ProcessPoolExecutor(1, mp_context=context) as process:
            held = process.submit(measure, agents, hook).result()
        late = " | ".join(f"{one:.1f}" for one in held[:3])
        lines.append(f"| {name} | {late} | {held.cpu:.1f} | {held.calls} |")
    about = (
        f"{machine()}. Each stream has an event every {EVENT_SECONDS * 1000:.0f} ms, and each agent"
        f" sends a request of {TURNS} turns every {CALL_SECONDS:.0f} s, for {SECONDS:.0f} s."
    )
    return "\n".join([*lines, "", about])


def main() -> None:
    """Measure, print the table, and write it into a document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path)
    chosen = parser.parse_args()
    text = table()
    print(text)
    if chosen.docs is not None:
        rewrite(chosen.docs, "open streams", text)


if __name__ == "__main__":
    main()
