"""The upstream of the gateway's measurements: paced streams or bursts, each event with its time.

    upstream.py EVENTS PAUSE [BURST]     serve on a free port, which is printed

In: any request; its path decides the protocol.  Out: a stream of so many events in HTTP chunks, one
write an event, with `PAUSE` milliseconds between two; without a pause, writes of 16 KiB. With
`BURST`, streams of the Messages API have so many events without a pause.

Laws: the phases of the streams are spread over the pause, so that the events of a thousand streams
do not come at once. Every text has the monotonic time at which it was written, in nanoseconds.
"""

import asyncio
import json
import re
import sys
import time
from functools import cache
from importlib import import_module
from typing import Final, cast

BURST_BYTES: Final = 16 * 1024

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
MARK: Final = b"@@@@@@@@@@@@@@@@"


def _frame(data: object, event: str | None = None) -> bytes:
    text = json.dumps(data, separators=(",", ":")).encode()
    head = b"" if event is None else b"event: %b\n" % event.encode()
    return b"%bdata: %b\n\n" % (head, text)


@cache
def frames(path: str) -> tuple[bytes, bytes, bytes]:
    """Return the beginning, an event with a mark for its time, and the end of a stream."""
    text = f"{MARK.decode()} tokens"
    if path.endswith("/messages"):
        usage = {"input_tokens": 11, "output_tokens": 1}
        message: dict[str, object] = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        begin = _frame({"type": "message_start", "message": message}, "message_start")
        block = {"type": "text", "text": ""}
        begun = {"type": "content_block_start", "index": 0, "content_block": block}
        begin += _frame(begun, "content_block_start")
        delta = {"type": "text_delta", "text": text}
        event = {"type": "content_block_delta", "index": 0, "delta": delta}
        end = _frame({"type": "content_block_stop", "index": 0}, "content_block_stop")
        ended = {"stop_reason": "end_turn", "stop_sequence": None}
        closing = {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 99}}
        end += _frame(closing, "message_delta") + _frame({"type": "message_stop"}, "message_stop")
        return begin, _frame(event, "content_block_delta"), end

    def chunk(delta: dict[str, str], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000}
        return _frame({**head, "model": "m", "choices": [choice]})

    counts = {"prompt_tokens": 11, "completion_tokens": 99, "total_tokens": 110}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000}
    usage_chunk = _frame({**head, "model": "m", "choices": [], "usage": counts})
    begin = chunk({"role": "assistant", "content": ""})
    end = chunk({}, "stop") + usage_chunk + b"data: [DONE]\n\n"
    return begin, chunk({"content": text}), end


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Upstream(asyncio.Protocol):
    """One connection."""

    streams = 0
    events = 0
    pause = 0.0
    burst_events = 0

    def __init__(self) -> None:
        self.received = b""
        self.transport: asyncio.Transport | None = None
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # The transports of uvloop do not inherit from asyncio.Transport.
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the interface
        """Stop writing."""
        self.transport = None
        if self.timer is not None:
            self.timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer a request when it is whole."""
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        if not end:
            return
        if _CHUNKED.search(head):
            if not body.endswith(b"0\r\n\r\n"):
                return
        else:
            length = _LENGTH.search(head + b"\r\n")
            if len(body) < (0 if length is None else int(length[1])):
                return
        self.received = b""
        self.begin(head.split(b" ")[1].decode())

    def begin(self, path: str) -> None:
        """Answer a request."""
        assert self.transport is not None
        begin, self.event, self.end = frames(path)
        self.left = self.events
        self.transport.write(_HEAD + _chunk(begin))
        if self.burst_events and path.endswith("/messages"):
            self.left = self.burst_events
            self.burst()
            return
        if self.pause == 0:
            self.burst()
            return
        Upstream.streams += 1
        loop = asyncio.get_running_loop()
        self.due = loop.time() + (Upstream.streams * 7919 % 997) / 997 * self.pause
        self.timer = loop.call_at(self.due, self.tick)

    def tick(self) -> None:
        """Write the next event."""
        if self.transport is None:
            return
        if self.left == 0:
            self.transport.write(_chunk(self.end) + b"0\r\n\r\n")
            return
        self.left -= 1
        stamp = b"%016d" % time.monotonic_ns()
        self.transport.write(_chunk(self.event.replace(MARK, stamp)))
        self.due += self.pause
        self.timer = asyncio.get_running_loop().call_at(self.due, self.tick)

    def burst(self) -> None:
        """Write the whole stream."""
        assert self.transport is not None
        stamp = b"%016d" % time.monotonic_ns()
        body = self.event.replace(MARK, stamp) * self.left + self.end
        for at in range(0, len(body), BURST_BYTES):
            self.transport.write(_chunk(body[at : at + BURST_BYTES]))
        self.transport.write(b"0\r\n\r\n")


async def listen() -> asyncio.Server:
    """Listen on a free port, and print it."""
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    return server


async def serve() -> None:
    """Serve until the process is ended."""
    await (await listen()).serve_forever()


if __name__ == "__main__":
    Upstream.events, Upstream.pause = int(sys.argv[1]), int(sys.argv[2]) / 1000
    Upstream.burst_events = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    import_module("uvloop").run(serve())
