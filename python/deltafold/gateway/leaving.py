"""Clients that leave: work for a client ends when the client closes its connection.

In: the receive channel of a request whose body was read.  Out: the result of the work, or None.

Law: the work runs in the caller's task, so that context variables that a hook sets stay set.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

T = TypeVar("T")


async def client_left(receive: Receive) -> None:
    """Wait until the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def until_left(receive: Receive) -> AsyncGenerator[None]:
    """Cancel what is awaited inside when the client leaves.

    Raises:
        ClientDisconnect: the client has left.
    """
    scope = asyncio.timeout(None)

    async def watch() -> None:
        await client_left(receive)
        scope.reschedule(0)

    # Cancelled in the step that leaves the scope, so that it never ends one that was left.
    watching = asyncio.ensure_future(watch())
    try:
        async with scope:
            yield
    except TimeoutError as error:
        if not scope.expired():
            raise
        raise ClientDisconnect from error
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def unless_left(work: Awaitable[T], receive: Receive) -> T | None:
    """Return the result of work; None if the client left first, and the work was cancelled."""
    try:
        async with until_left(receive):
            return await work
    except ClientDisconnect:
        return None
