"""Both ends of the gateway's measurements in one process: the upstream and the clients.

    ends.py EVENTS PAUSE     serve as an upstream on a free port, which is printed

In: a line of JSON for each run of clients, with the port of the measured application, the path, the
model, the number of streams and the seconds in which they begin.  Out: the lines of `load.py`.

Law: the process never sleeps. On a network, a server does not pay for waking its clients; here the
kernel would charge the application for it, and the more, the slower the application is.
"""

import asyncio
import json
import sys
from importlib import import_module

from load import main
from upstream import Upstream, listen


async def serve() -> None:
    """Print the port of the upstream, and run the clients that are asked for."""
    await listen()
    loop = asyncio.get_running_loop()

    def stay_awake() -> None:
        loop.call_soon(stay_awake)

    stay_awake()
    while asked := await loop.run_in_executor(None, sys.stdin.readline):
        await main(*json.loads(asked))


if __name__ == "__main__":
    Upstream.events, Upstream.pause = int(sys.argv[1]), int(sys.argv[2]) / 1000
    import_module("uvloop").run(serve())
