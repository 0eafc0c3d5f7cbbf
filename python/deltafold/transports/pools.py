"""Pools: the connections that a client may have, and requests that wait for one of them.

In: a client of httpx, httpx2 or aiohttp.  Out: the number of its connections, and a warning in the
log when a request waits for a free one.

Laws: a client is warned of once a minute. A number that cannot be read is None.
"""

import sys
import time
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from deltafold.contract.log import LOGGER
from deltafold.transports.secrets import shown_url

WAIT_SECONDS: Final = 1.0
"""A request that waits so long for a free connection is worth a line in the log."""

_SILENT_SECONDS: Final = 60.0

_warned: WeakKeyDictionary[object, float] = WeakKeyDictionary()
"""When each client was warned of last, in seconds of `time.monotonic()`."""


def warn_of_wait(client: object, url: str) -> None:
    """Log that a request waits for a free connection of its client."""
    now = time.monotonic()
    if now - _warned.get(client, -_SILENT_SECONDS) < _SILENT_SECONDS:
        return
    _warned[client] = now
    limit = connection_limit(client)
    LOGGER.warning(
        "a request to %r waits for a free connection: all%s of its client are in use; "
        "raise max_connections, or the limit of the client that you pass; timeouts.pool limits "
        "the wait",
        shown_url(url),
        "" if limit is None else f" {limit:,}",
    )


def connection_limit(client: object) -> int | None:
    """Return the number of connections that a client may have at once; None without a limit.

    >>> connection_limit(httpx2.Client(limits=httpx2.Limits(max_connections=5)))
    5
    """
    own: Any = client
    connector = getattr(own, "connector", None)
    if connector is not None:  # of aiohttp, where 0 is no limit
        limits = (getattr(connector, name, 0) for name in ("limit", "limit_per_host"))
        return min((limit for limit in limits if isinstance(limit, int) and limit), default=None)
    # httpx shows its limits nowhere.
    pool = getattr(getattr(own, "_transport", None), "_pool", None)
    limit = cast("object", getattr(pool, "_max_connections", None))
    return limit if isinstance(limit, int) and limit < sys.maxsize else None


def waits_in_pool(request: object) -> bool:
    """Return whether a request of aiohttp waits for a free connection.

    A coroutine shows what it awaits. Only a request that is not sent after a second is looked at.

    Args:
        request: what `ClientSession.request` returned, while it is awaited.
    """
    step = cast("object", getattr(request, "_coro", request))
    while step is not None:
        name = getattr(getattr(step, "cr_code", None), "co_name", "")
        if name == "_wait_for_available_connection":  # aiohttp 3.12 to 3.14
            return True
        step = cast("object", getattr(step, "cr_await", None))
    return False
