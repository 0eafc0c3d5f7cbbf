"""Clients of the gateway of which every third leaves before its stream ends.

    leaving.py PORT PATH MODEL STREAMS AT_ONCE EVENTS

In: a server, a path and a model; how many streams in all and at once, and the events of each.  Out:
a line of totals: streams that ended as they should, streams that were left, and others.

Law: a client that leaves does so after its request, or after one of the first pieces; the others
must see every event and the end.
"""

import asyncio
import sys
from functools import partial
from importlib import import_module
from typing import Final, cast

from load import ENDS, request_of, say

_LEAVES_EVERY: Final = 3
_PIECES: Final = 7


class Client(asyncio.Protocol):
    """One stream."""

    def __init__(self, request: bytes, leaves_after: int | None) -> None:
        self.over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._request, self._leaves_after = request, leaves_after
        self._pieces: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        # The transports of uvloop do not inherit from asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)
        self._leave_if_due()

    def data_received(self, data: bytes) -> None:
        """Keep a piece, and leave or end."""
        self._pieces.append(data)
        self._leave_if_due()
        if data.endswith(b"0\r\n\r\n"):
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the interface
        """Tell whether the stream is whole."""
        body = b"".join(self._pieces)
        if not self.over.done():
            self.over.set_result(any(end in body for end in ENDS))

    @property
    def events(self) -> int:
        """Number of texts that came."""
        return b"".join(self._pieces).count(b" tokens")

    def _leave_if_due(self) -> None:
        if self._leaves_after is not None and len(self._pieces) >= self._leaves_after:
            self._transport.abort()


async def main(port: int, request: bytes, *, streams: int, at_once: int, events: int) -> None:
    """Run the streams."""
    loop = asyncio.get_running_loop()
    totals = {"complete": 0, "left": 0, "lost": 0}
    numbers = iter(range(streams))

    async def run() -> None:
        for number in numbers:
            leaves = number % _PIECES if number % _LEAVES_EVERY == 0 else None
            made = partial(Client, request, leaves)
            _, client = await loop.create_connection(made, "127.0.0.1", port)
            is_whole = await client.over
            if leaves is not None:
                totals["left"] += 1
            elif is_whole and client.events == events:
                totals["complete"] += 1
            else:
                totals["lost"] += 1

    await asyncio.gather(*(run() for _ in range(at_once)))
    say(**totals)


if __name__ == "__main__":
    port, path, model, streams, at_once, events = sys.argv[1:7]
    coroutine = main(
        int(port),
        request_of(path, model),
        streams=int(streams),
        at_once=int(at_once),
        events=int(events),
    )
    import_module("uvloop").run(coroutine)
