"""Clients that leave: work for a client ends when the client closes its connection.

In: the receive channel of a request whose body was read.  Out: the result of the work, or None.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


async def client_left(receive: Receive) -> None:
    """Wait until the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_left(work: Coroutine[Any, Any, T], receive: Receive) -> T | None:
    """Return the result of work; None if the client left first, and the work was cancelled."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(client_left(receive))
    tasks: tuple[asyncio.Future[Any], ...] = (working, leaving)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in tasks:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
