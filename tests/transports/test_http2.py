"""HTTP/2: streams share a connection, and leaving one must not cost its neighbours anything.

Without TLS, by prior knowledge: what differs for us is how a body is read and given up.
"""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import h2.config
import h2.connection
import h2.events
import httpx
import httpx2
import pytest

from deltafold.transports.http import open_http, open_http_async
from deltafold.transports.sources import AsyncSource
from deltafold.transports.timeouts import Timeouts
from http_ways import request_to, run_async

PIECES = [b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]
BODY = b"".join(PIECES)
PACKAGES: dict[str, Any] = {"httpx": httpx, "httpx2": httpx2}

every_package = pytest.mark.parametrize("package", PACKAGES)
every_loop = pytest.mark.parametrize("loop", ["asyncio", "trio"])


class Server:
    """Answers every request with the same pieces; those to `/stall` never end."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.connections: list[socket.socket] = []
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            self.connections.append(connection)
            thread = threading.Thread(target=self.serve, args=(connection,))
            self.threads.append(thread)
            thread.start()

    def serve(self, connection: socket.socket) -> None:
        with suppress(OSError):  # a client that has gone
            self.talk(connection)

    def talk(self, connection: socket.socket) -> None:
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        protocol = h2.connection.H2Connection(config=config)
        protocol.initiate_connection()
        connection.sendall(protocol.data_to_send())
        while data := connection.recv(65536):
            for event in protocol.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.answer(protocol, event)
            connection.sendall(protocol.data_to_send())

    def answer(
        self, protocol: h2.connection.H2Connection, request: h2.events.RequestReceived
    ) -> None:
        stream_id = request.stream_id
        assert stream_id is not None
        headers: list[Any] = list(request.headers or ())
        stalls = (":path", "/stall") in headers
        protocol.send_headers(
            stream_id, [(":status", "200"), ("content-type", "text/event-stream")]
        )
        for piece in PIECES[:1] if stalls else PIECES:
            protocol.send_data(stream_id, piece)
        if not stalls:
            protocol.end_stream(stream_id)

    def close(self) -> None:
        for one in (self.listening, *self.connections):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for one in (self.listening, *self.connections):
            one.close()


@contextmanager
def running() -> Generator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


async def whole(source: AsyncSource) -> bytes:
    body = b"".join([chunk async for chunk in source.chunks])
    await source.close()
    return body


@every_package
@every_loop
def test_a_stream_that_is_left_leaves_its_neighbours_alone(package: str, loop: str) -> None:
    async def main() -> None:
        async with PACKAGES[package].AsyncClient(http1=False, http2=True) as client:
            left = await open_http_async(client, request_to(f"{server.url}/stall"))
            assert await anext(left.chunks) == PIECES[0]
            neighbour = await open_http_async(client, request_to(f"{server.url}/"))
            await left.close()
            await left.close()
            assert await whole(neighbour) == BODY
            assert await whole(await open_http_async(client, request_to(server.url))) == BODY

    with running() as server:
        run_async(loop, main)
        assert len(server.connections) == 1


@every_package
@every_loop
def test_a_stream_that_is_cancelled_leaves_its_neighbours_alone(package: str, loop: str) -> None:
    async def main() -> None:
        async with PACKAGES[package].AsyncClient(http1=False, http2=True) as client:
            neighbour = await open_http_async(client, request_to(f"{server.url}/"))
            source = await open_http_async(client, request_to(f"{server.url}/stall"))
            with anyio.move_on_after(0.1) as scope:
                try:
                    await whole(source)
                finally:
                    await source.close()
            assert scope.cancelled_caught
            assert await whole(neighbour) == BODY

    with running() as server:
        run_async(loop, main)
        assert len(server.connections) == 1


@every_package
@every_loop
@pytest.mark.parametrize(
    ("timeouts", "limit"),
    [(Timeouts(idle=0.1), "idle"), (Timeouts(first_byte=9, total=0.1), "total")],
)
def test_a_limit_holds(package: str, loop: str, timeouts: Timeouts, limit: str) -> None:
    async def main() -> None:
        async with PACKAGES[package].AsyncClient(http1=False, http2=True) as client:
            source = await open_http_async(client, request_to(f"{server.url}/stall", timeouts))
            with pytest.raises(TimeoutError, match=rf"0\.1 s \(timeouts\.{limit}\)"):
                await whole(source)
            await source.close()
            assert await whole(await open_http_async(client, request_to(server.url))) == BODY

    with running() as server:
        run_async(loop, main)


@every_package
@pytest.mark.parametrize(
    ("timeouts", "limit"),
    [(Timeouts(idle=0.1), "idle"), (Timeouts(first_byte=9, total=0.1), "total")],
)
def test_a_limit_holds_in_a_thread(package: str, timeouts: Timeouts, limit: str) -> None:
    with (
        running() as server,
        PACKAGES[package].Client(http1=False, http2=True) as client,
    ):
        source = open_http(client, request_to(f"{server.url}/stall", timeouts))
        with pytest.raises(TimeoutError, match=rf"0\.1 s \(timeouts\.{limit}\)"):
            list(source.chunks)
        source.close()
        again = open_http(client, request_to(server.url))
        assert b"".join(again.chunks) == BODY
        again.close()
