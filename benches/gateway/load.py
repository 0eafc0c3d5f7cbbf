"""The clients of the gateway's measurements: many streams at once, read as bytes.

    load.py PORT PATH MODEL STREAMS SECONDS_TO_BEGIN

In: a server, a path and a model.  Out: a line of JSON when all streams run, a line when the
first one ends, and a line of totals: events, latencies in microseconds, streams that ended as they
should.

Law: the time that the upstream wrote into a text is compared with the time at which it arrives.
"""

import asyncio
import json
import re
import sys
import time
from importlib import import_module
from typing import Final, cast

_STAMP: Final = re.compile(rb"(\d{16}) tokens")
_CHUNK: Final = re.compile(rb"\r\n[0-9a-f]+\r\n")
ENDS: Final = (b"[DONE]", b"message_stop", b"response.completed")


class Counts:
    """Totals of all streams."""

    def __init__(self, streams: int) -> None:
        self.streams = streams
        self.begun = 0
        self.ended = 0
        self.complete = 0
        self.events = 0
        self.bytes = 0
        self.latencies: list[int] = []
        self.over = asyncio.Event()
        self.marks: dict[str, int] = {}


def say(**found: object) -> None:
    """Print a line."""
    print(json.dumps(found), flush=True)


class Client(asyncio.Protocol):
    """One stream."""

    def __init__(self, request: bytes, counts: Counts) -> None:
        self.request, self.counts = request, counts
        self.tail = b""
        self.seen = False
        self.complete = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        # The transports of uvloop do not inherit from asyncio.Transport.
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Count the events of a piece."""
        now = time.monotonic_ns()
        counts = self.counts
        counts.bytes += len(data)
        # The head of an HTTP chunk may stand inside of an event.
        text = _CHUNK.sub(b"", self.tail + data)
        stamps = _STAMP.findall(text)
        if stamps:
            counts.events += len(stamps)
            counts.latencies.append(now - int(stamps[-1]))
            end = text.rfind(b" tokens") + 7
            text = text[end:]
            if not self.seen:
                self.seen = True
                counts.begun += 1
                if counts.begun == counts.streams:
                    say(all="running", events=counts.events)
        if any(end in text for end in ENDS):
            self.complete = True
        self.tail = text[-300:]
        if data.endswith(b"\r\n0\r\n\r\n") or data == b"0\r\n\r\n":
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the interface
        """Count a stream that ended."""
        counts = self.counts
        if counts.ended == 0:
            say(first="ended", events=counts.events)
        counts.ended += 1
        counts.complete += self.complete
        if counts.ended == counts.streams:
            counts.over.set()


def request_of(path: str, model: str) -> bytes:
    """Return the request for a stream."""
    body = json.dumps(
        {
            "model": model,
            "stream": True,
            "max_tokens": 1000,
            **({} if path.endswith("messages") else {"stream_options": {"include_usage": True}}),
            "messages": [{"role": "user", "content": "Count the tokens."}],
        }
    ).encode()
    return (
        b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d"
        b"\r\n\r\n%b" % (path.encode(), len(body), body)
    )


async def main(port: int, path: str, model: str, streams: int, seconds: float) -> None:
    """Run the streams."""
    counts = Counts(streams)
    request = request_of(path, model)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for number in range(streams):
        due = begun + number * seconds / streams
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        await loop.create_connection(lambda: Client(request, counts), "127.0.0.1", port)
    await counts.over.wait()
    ordered = sorted(counts.latencies)
    say(
        events=counts.events,
        bytes=counts.bytes,
        complete=counts.complete,
        median=ordered[len(ordered) // 2] / 1000,
        p99=ordered[len(ordered) * 99 // 100] / 1000,
    )


if __name__ == "__main__":
    port, path, model, streams, seconds = sys.argv[1:6]
    coroutine = main(int(port), path, model, int(streams), float(seconds))
    import_module("uvloop").run(coroutine)
