"""What tests wait for at a `ReplayServer`."""

import time
from typing import Final

from deltafold.testing import ReplayServer

_PATIENCE_SECONDS: Final = 5.0


def wait_until_closed(server: ReplayServer) -> None:
    """Wait until the server has no open connection.

    It sees a moment later than the client that a connection was closed.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while server.open_connections and time.monotonic() < deadline:
        time.sleep(0.005)
    assert server.open_connections == 0
