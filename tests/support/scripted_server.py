"""A server on the loopback whose answers are scripts: bytes, pauses, and the end of a connection.

In: a function of the number of a request on its connection.  Out: a server in a thread of its own,
which counts requests and connections.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Self, TypeAlias

from protocol_bodies import DONE, chunk, said

Step: TypeAlias = bytes | float | Literal["close", "reset", "gather"]
"""Bytes to send, seconds to wait, or an end of the connection; "gather" waits for `together`."""
Script: TypeAlias = Callable[[int], Iterable[Step]]

_BODY: Final = said("hi") + chunk({}, "stop") + DONE
HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n" % len(
    _BODY
)
WHOLE: Final = HEAD + b"connection: keep-alive\r\n\r\n" + _BODY
"""A whole answer, which announces that its connection is kept."""


class ScriptedServer:
    """A server that follows a script.

    Args:
        script: the steps of an answer, by the number of its request on the connection, from 1.
        together: how many requests there must be before a "gather" ends.
    """

    def __init__(self, script: Script, *, together: int = 0) -> None:
        self.requests = 0
        self.connections = 0
        self.most_at_once = 0
        self.script = script
        self._together = together
        self._open = 0
        self._answering: set[asyncio.Task[Any]] = set()
        self.first_came = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._started = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._gathered = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=2048)
        self._port: int = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        # asyncio leaves a connection open that it accepts while its server is closed.
        await asyncio.sleep(0.01)
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in self._answering & others:
                task.cancel()
            await asyncio.wait(others)
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        self.connections += 1
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            number = 0
            goes_on = True
            while goes_on:
                await _read_request(reader)
                number += 1
                self.requests += 1
                self.first_came.set()
                if self.requests >= self._together:
                    self._gathered.set()
                goes_on = await self._answer(self.script(number), writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, steps: Iterable[Step], writer: asyncio.StreamWriter) -> bool:
        """Follow the steps of an answer; return whether its connection is kept."""
        for step in steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif step == "gather":
                await self._gathered.wait()
            else:
                if step == "reset":
                    linger = struct.pack("ii", 1, 0)
                    own: Any = writer.get_extra_info("socket")
                    own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return False
        return True


async def _read_request(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    sizes = [line for line in head.lower().split(b"\r\n") if b"content-length:" in line]
    if sizes:
        await reader.readexactly(int(sizes[0].partition(b":")[2]))
