"""The upstream of the soak: streams of Chat and Messages that go as their prompt orders.

    soak_server.py      serve on a free port of the loopback, which is printed

In: requests, whose last message has an order `fault=NAME`.  Out: streams of `EVENTS` events.

Laws: every answer says `WORDS`, as far as it goes. A fault comes in the middle of the stream.
The upstream of the bad day (`bad_day_server.py`) plays its answers by the same function.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

EVENTS: Final = 20
PAUSE: Final = 0.08
WORDS: Final = [f"word{number} " for number in range(EVENTS)]
TEXT: Final = "".join(WORDS)
FAULTS: Final = ("none", "cut", "reset", "garbage", "error", "stall", "429", "500")

_ORDER: Final = re.compile(rb"fault=(\w+)")
_CHOICES: Final = re.compile(rb'"n": ?(\d+)')
LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def event(members: object, name: str = "") -> bytes:
    """Write one event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(members, separators=(',', ':'))}\n\n".encode()


CHAT_ERROR: Final = event({"error": {"message": "broken", "type": "server_error"}})


class Answered(NamedTuple):
    """An answer: its events, the last one, and the event of an error."""

    events: list[bytes]
    end: bytes
    error: bytes


def chat(choices: int, texts: Sequence[str] = WORDS) -> Answered:
    """Return an answer of Chat."""

    def chunk(delta: object, reason: str | None = None) -> bytes:
        all_of_them = [
            {"index": at, "delta": delta, "finish_reason": reason} for at in range(choices)
        ]
        return event({"id": "r", "model": "m", "choices": all_of_them})

    words = [chunk({"content": text}) for text in texts]
    return Answered(words, chunk({}, "stop") + b"data: [DONE]\n\n", CHAT_ERROR)


def messages(texts: Sequence[str] = WORDS) -> Answered:
    """Return an answer of Messages."""

    def named(kind: str, **members: object) -> bytes:
        return event({"type": kind, **members}, kind)

    usage = {"input_tokens": 1, "output_tokens": 1}
    words = [
        named("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
        for text in texts
    ]
    words[0] = (
        named("message_start", message={"id": "r", "model": "m", "usage": usage})
        + named("content_block_start", index=0, content_block={"type": "text", "text": ""})
        + words[0]
    )
    end = (
        named("content_block_stop", index=0)
        + named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": EVENTS})
        + named("message_stop")
    )
    error = named("error", error={"type": "api_error", "message": "broken"})
    return Answered(words, end, error)


ANTHROPIC: Final = messages()
CHAT: Final = {choices: chat(choices) for choices in range(1, 9)}


class Left(Exception):  # noqa: N818 - an event, not a failure
    """The client has left."""


async def answer(
    protocol: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Answer a request; return whether the connection can be used again."""
    fault = (_ORDER.findall(body) or [b"none"])[-1].decode()
    number = int((_CHOICES.findall(body) or [b"1"])[-1])
    answered = CHAT[number] if protocol == "chat" else ANTHROPIC
    return await play(answered, fault, reader, writer)


async def play(
    answered: Answered,
    fault: str,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    pause: float = PAUSE,
) -> bool:
    """Write an answer with a fault; return whether the connection can be used again.

    Args:
        answered: the answer.
        fault: one of `FAULTS`.
        reader: where the request came from.
        writer: where the answer goes.
        pause: seconds between two events.

    Raises:
        Left: the client has closed the connection.
    """
    if fault.isdigit():
        refusal = b'{"error":{"message":"not now"}}'
        head = f"HTTP/1.1 {fault} no\r\ncontent-type: application/json\r\n"
        head += f"retry-after: 0\r\ncontent-length: {len(refusal)}\r\n\r\n"
        writer.write(head.encode() + refusal)
        return True
    writer.write(_HEAD)

    async def wait(seconds: float) -> None:
        await asyncio.sleep(seconds)
        if reader.at_eof() or writer.is_closing():
            raise Left

    async def send(content: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(content), content))
        await writer.drain()

    for place, content in enumerate(answered.events):
        if place == len(answered.events) // 2 and fault != "none":
            if fault == "cut":
                return False
            if fault == "reset":
                writer.transport.abort()
                return False
            while fault == "stall":
                await wait(pause)
            await send(b'data: {"broken\x00\xff\n\n' if fault == "garbage" else answered.error)
        await send(content)
        await wait(pause)
    await send(answered.end)
    writer.write(b"0\r\n\r\n")
    return True


async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    is_usable = True
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, Left):
        while is_usable:
            head = await reader.readuntil(b"\r\n\r\n")
            found = LENGTH.search(head)
            body = await reader.readexactly(int(found[1]) if found else 0)
            protocol = "chat" if b"chat/completions" in head.partition(b"\r\n")[0] else "messages"
            is_usable = await answer(protocol, body, reader, writer)
    writer.close()


async def serve() -> None:
    """Serve until the process is ended."""
    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
