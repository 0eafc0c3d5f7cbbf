"""Pauses of an asynchronous iterator.

In: an asynchronous iterator, and seconds.  Out: its items, and None after each pause of that
length.

Law: an item that arrives during a pause is not lost.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypeVar

T = TypeVar("T")


async def with_pauses(items: AsyncIterator[T], seconds: float) -> AsyncGenerator[T | None]:
    """Yield the items, and None after each time of silence (asyncio only)."""
    waiting: asyncio.Task[Any] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(_next(items))
            done, _ = await asyncio.wait({waiting}, timeout=seconds)
            if not done:
                yield None
                continue
            ended, item = waiting.result()
            waiting = None
            if ended:
                return
            yield item
    finally:
        if waiting is not None:
            waiting.cancel()
            # What the iterator holds is released before the caller goes on.
            await asyncio.wait({waiting})


async def _next(items: AsyncIterator[T]) -> tuple[bool, T | None]:
    try:
        return False, await anext(items)
    except StopAsyncIteration:
        return True, None
