"""Slow connections: those of clients that open one and do not send a request.

In: a protocol class of uvicorn.  Out: the same, which closes such connections.

Laws: a connection without a byte, the head of a request and a body without progress have a limit. A
request that has arrived has none: its answer may take hours. uvicorn has no such limits, and an
ASGI application sees no head that is incomplete.
"""

import asyncio
from functools import lru_cache
from typing import Any, Final

HEAD_SECONDS: Final = 15.0
BODY_SECONDS: Final = 30.0
"""Limits of a head, and of the wait for more of a body, by default."""


class Watch:
    """Closes one connection that does not send a whole request; one timer looks at it.

    Args:
        connection: a connection of uvicorn. Its `cycle` is the request that is answered.
        limits: seconds of a new connection without a byte, of a head, and of a body without a byte.
    """

    def __init__(self, connection: Any, limits: tuple[float, float, float]) -> None:  # noqa: ANN401 - of uvicorn
        self._connection = connection
        self._silent, self._head, self._body = limits
        self._time = connection.loop.time
        self._came = self._time()
        self._head_since: float | None = None
        self._known: object = None
        self._rings: float | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._wait()

    def came(self) -> None:
        """Note that bytes have come, which the connection has read."""
        self._came = self._time()
        cycle = self._connection.cycle
        if cycle is not self._known:
            self._known, self._head_since = cycle, None
        elif self._head_since is None and _is_between(cycle):
            self._head_since = self._came
        self._wait()

    def stop(self) -> None:
        """Look no more."""
        if self._handle is not None:
            self._handle.cancel()

    def _due(self) -> float | None:
        """Return when the connection is closed unless more comes, None if it may wait."""
        cycle = self._connection.cycle
        if _is_between(cycle):
            if self._head_since is not None:
                return self._head_since + self._head
            return self._came + self._silent if cycle is None else None
        if not cycle.more_body:
            return None
        # The application does not read, or the client waits to be told to go on.
        waits = self._connection.flow.read_paused or cycle.waiting_for_100_continue
        since: float = self._time() if waits else self._came
        return since + self._body

    def _wait(self) -> None:
        due = self._due()
        if due is None or (self._rings is not None and self._rings <= due):
            return
        self.stop()
        self._rings = due
        self._handle = self._connection.loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._rings = self._handle = None
        due = self._due()
        if due is not None and due <= self._time():
            connection = self._connection
            connection.logger.info("%s - closed: it sent no whole request", connection.client)
            connection.transport.close()
        else:
            self._wait()


def _is_between(cycle: Any) -> bool:  # noqa: ANN401 - of uvicorn
    """Return whether a connection waits for the head of a request."""
    return cycle is None or cycle.response_complete


@lru_cache(maxsize=16)
def bounded_protocol(protocol: Any, limits: tuple[float, float, float]) -> Any:  # noqa: ANN401 - classes of uvicorn
    """Return a class of connections that have limits.

    Args:
        protocol: a class of `uvicorn.protocols.http`.
        limits: those of `Watch`.
    """

    class BoundedProtocol(protocol):  # type: ignore[misc]  # of an untyped variable
        """Connection of uvicorn that is watched."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)  # pyright: ignore[reportUnknownMemberType] - as above
            self.watch = Watch(self, limits)

        def connection_lost(self, exc: Exception | None) -> None:
            self.watch.stop()
            super().connection_lost(exc)  # pyright: ignore[reportUnknownMemberType] - as above

        def data_received(self, data: bytes) -> None:
            super().data_received(data)  # pyright: ignore[reportUnknownMemberType] - as above
            self.watch.came()

    return BoundedProtocol
