"""Draining: reads the rest of a body after its terminal event, to reuse its connection.

In: a source whose stream has ended.  Out: the same source, read to its end if the end arrives soon.

A provider sends a few bytes after the terminal event (`data: [DONE]`, the end of the chunks).  An
HTTP client closes a connection whose body was not read to the end; the next call needs a new one.

Laws: at most 64 KiB and 250 ms are read. A body that does not come over a connection is not read. A
failure of the transport does not affect the stream, which has ended. Cancellation is raised.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from deltafold.transports.sources import AsyncSource, Source

MAX_REST_BYTES: Final = 64 << 10
"""More than any provider sends behind its terminal event."""

MAX_REST_SECONDS: Final = 0.25
"""About the cost of a new connection with TLS."""

OnRest: TypeAlias = Callable[[bytes], object]
AsyncOnRest: TypeAlias = Callable[[bytes], Awaitable[object]]


def drain(source: Source, on_chunk: OnRest | None = None) -> None:
    """Read the rest of a body.

    Args:
        source: a source whose stream has ended.
        on_chunk: receives the chunks; its exceptions are raised.
    """
    if source.rest is None:
        return
    until = time.monotonic() + MAX_REST_SECONDS
    left = MAX_REST_BYTES
    while left > 0 and time.monotonic() < until:
        chunk = None
        with suppress(Exception), source.rest(until):
            chunk = next(source.chunks, None)
        if chunk is None:
            return
        left -= len(chunk)
        if on_chunk is not None:
            on_chunk(chunk)


async def adrain(source: AsyncSource, on_chunk: AsyncOnRest | None = None) -> None:
    """Await the rest of a body that has one; arguments are those of `drain`."""
    chunks = source.chunks
    if source.limits is not None:
        source.limits.end_within(MAX_REST_SECONDS)
    else:
        # The module imports asyncio, which synchronous programs do not need.
        from deltafold.transports import timeouts  # noqa: PLC0415 - as said

        limits = timeouts.Limits(timeouts.Timeouts(total=MAX_REST_SECONDS))
        chunks = timeouts.AsyncTimedChunks(chunks.__anext__, limits, timeouts.watch())
    until = time.monotonic() + MAX_REST_SECONDS
    left = MAX_REST_BYTES
    while True:
        try:
            chunk = await anext(chunks)
        except Exception:  # noqa: BLE001 - the stream has ended before
            return
        left -= len(chunk)
        if on_chunk is not None:
            await on_chunk(chunk)
        if left <= 0 or time.monotonic() >= until:
            return
