"""Clients that hardly read: many streams of which each takes 1 KiB a second.

    slow.py PORT PATH MODEL STREAMS

In: a server, a path and a model.  Out: a line of JSON when all streams have begun.

It runs until it is ended.
"""

import asyncio
import json
import socket
import sys
from typing import Final

from load import request_of

_PIECE: Final = 1024


async def read(port: int, request: bytes) -> None:
    """Ask for a stream, and read a piece of it each second."""
    loop = asyncio.get_running_loop()
    client = socket.socket()
    # What the kernel keeps for a reader is not the server's memory.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * _PIECE)
    client.setblocking(False)  # noqa: FBT003 - the interface
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, request)
    while True:
        if not await loop.sock_recv(client, _PIECE):
            return
        await asyncio.sleep(1)


async def main(port: int, path: str, model: str, streams: int) -> None:
    """Run the streams."""
    reading = [asyncio.create_task(read(port, request_of(path, model))) for _ in range(streams)]
    await asyncio.sleep(3)
    print(json.dumps({"streams": len(reading)}), flush=True)
    await asyncio.gather(*reading)


if __name__ == "__main__":
    port, path, model, streams = sys.argv[1:5]
    asyncio.run(main(int(port), path, model, int(streams)))
