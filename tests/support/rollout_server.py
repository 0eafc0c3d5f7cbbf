"""A server of rollouts on the loopback: streams of Chat with n answers, log probabilities and ids.

In: a function of the request's body.  Out: a server in a thread of its own, which counts requests.

The tokens of an answer are a function of the prompt, the answer's number and the place, so that a
reader can compute what it must have received.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

Body: TypeAlias = dict[str, Any]


@dataclass
class Refusal:
    """An answer with an error status."""

    status: int
    body: bytes = b'{"error":{"message":"later"}}'
    headers: dict[str, str] = field(default_factory=dict[str, str])


Answer: TypeAlias = AsyncIterator[bytes]
Answering: TypeAlias = Callable[[Body], Answer | Refusal]


class Cut(Exception):  # noqa: N818 - an order, not a failure
    """Raised by an answer to break the connection."""


def token(prompt: int, choice: int, place: int) -> tuple[str, float, int]:
    """Return the text, the log probability and the id of a token."""
    number = (prompt * 31 + choice * 7 + place) % 50_000
    return f" t{number}", -((number % 997) / 256), number


def chunk(choices: list[Body], **members: object) -> bytes:
    """Write one event."""
    event = {"id": "r", "object": "chat.completion.chunk", "model": "m", "choices": choices}
    return b"data: " + json.dumps({**event, **members}, separators=(",", ":")).encode() + b"\n\n"


def said(prompt: int, choice: int, place: int) -> bytes:
    """Write the event of a token."""
    text, logprob, number = token(prompt, choice, place)
    entry: Body = {"token": text, "logprob": logprob, "top_logprobs": []}
    return chunk(
        [
            {
                "index": choice,
                "delta": {"content": text},
                "logprobs": {"content": [entry]},
                "token_ids": [number],
            }
        ]
    )


def ended(choice: int) -> bytes:
    """Write the end of an answer."""
    return chunk(
        [{"index": choice, "delta": {}, "finish_reason": "stop", "routed_experts": [[choice]]}]
    )


async def tokens(prompt: int, n: int, count: int) -> Answer:
    """Write an answer of so many tokens for each number, all of them by turns."""
    yield chunk(
        [{"index": choice, "delta": {"role": "assistant"}} for choice in range(n)],
        prompt_token_ids=[prompt, prompt + 1],
    )
    for place in range(count):
        yield b"".join(said(prompt, choice, place) for choice in range(n))
    yield b"".join(ended(choice) for choice in range(n)) + b"data: [DONE]\n\n"


class RolloutServer:
    """A server whose answers a function writes.

    Args:
        answering: returns the answer to a request.
        together: holds every answer back until so many requests are there.
    """

    def __init__(self, answering: Answering, *, together: int = 0) -> None:
        self.requests: list[Body] = []
        self.left = 0
        self._answering = answering
        self._together = together
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._started = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._all_there = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=2048)
        self._port: int = server.sockets[0].getsockname()[1]
        self._started.set()
        async with server:
            await self._stop.wait()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            sizes = [line for line in head.lower().split(b"\r\n") if b"content-length" in line]
            body = json.loads(await reader.readexactly(int(sizes[0].partition(b":")[2])))
            self.requests.append(body)
            if len(self.requests) >= self._together:
                self._all_there.set()
            await self._all_there.wait()
            await self._answer(self._answering(body), writer)
        except Cut:
            writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left += 1
        finally:
            writer.close()

    async def _answer(self, answer: Answer | Refusal, writer: asyncio.StreamWriter) -> None:
        if isinstance(answer, Refusal):
            head = f"HTTP/1.1 {answer.status} no\r\ncontent-type: application/json\r\n"
            head += "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
            head += f"content-length: {len(answer.body)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + answer.body)
            await writer.drain()
            return
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        writer.write(f"{head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode())
        async for piece in answer:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
