"""A client that hardly reads, in front of an upstream that writes as fast as it can.

The upstream must be held back, the memory of the stream stays bounded, other clients are answered,
and nothing is lost when the client reads on.
"""

import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from gateways import serve_process, served

PATHS: Final = {"passed": "/v1/chat/completions", "transcoded": "/v1/messages"}
FIRST: Final = 16
MEASURED: Final = 64
"""Number of streams that are measured: so many that what the process itself takes adds little."""
MOST_BYTES: Final = 1 << 20
"""Memory of one stream."""
READ_BYTES: Final = 1 << 15
END: Final = (
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


class Flood:
    """An upstream whose streams never end; each event has its number in its text."""

    def __init__(self) -> None:
        self.sent = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        for one in (self._listening, *self._open):
            one.close()

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self._listening.accept()
                self._open.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        except OSError:
            return

    def _answer(self, connection: socket.socket) -> None:
        try:
            asked = b""
            while not asked.endswith(b"}"):  # the end of a body, and not of a head
                asked += connection.recv(65536)
            head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: "
            if b'"short"' in asked:
                body = b"".join(map(event, range(3))) + END
                connection.sendall(head + b"text/event-stream\r\n\r\n" + body)
                connection.close()
                return
            connection.sendall(head + b"text/event-stream\r\n\r\n")
            number = 0
            while True:
                data = b"".join(event(number + more) for more in range(100))
                number += 100
                connection.sendall(data)
                self.sent += len(data)
        except OSError:
            connection.close()


def event(number: int) -> bytes:
    choice = {"index": 0, "delta": {"content": f"<{number}>" + "." * 100}, "finish_reason": None}
    return b"data: %b\n\n" % json.dumps({"id": "c", "choices": [choice]}).encode()


@contextmanager
def flooded(transport: str, folder: Path) -> Generator[tuple[Flood, str, int]]:
    """Run a gateway in front of the flood, and yield its address and its process id."""
    flood = Flood()
    table = folder / "gateway.toml"
    table.write_text(
        f"""[models.m]
model = "openai/m"
base_url = "{flood.url}"
api_key = "k"
transport = "{transport}"
"""
    )
    try:
        with serve_process(str(table)) as (url, process):
            yield flood, url, process
    finally:
        flood.close()


class SlowClient:
    """A client whose kernel takes hardly anything."""

    def __init__(self, url: str, path: str) -> None:
        usage = {"stream_options": {"include_usage": True}} if "chat" in path else {}
        messages = [{"role": "user", "content": "flood"}]
        asked = {"model": "m", "max_tokens": 9, "stream": True, "messages": messages, **usage}
        body = json.dumps(asked).encode()
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(20)
        self._socket.connect(("127.0.0.1", int(url.rpartition(":")[2])))
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        self._seen = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def read_on(self) -> None:
        """Read a little more."""
        until = len(self._seen) + READ_BYTES
        while len(self._seen) < until:
            self._seen += self._socket.recv(65536)

    def numbers(self) -> list[int]:
        """Return the numbers of the events that were read."""
        # HTTP may begin a chunk in the middle of a text.
        text = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", self._seen)
        return list(map(int, re.findall(rb"<(\d+)>", text)))


def read_on(clients: list[SlowClient], flood: Flood) -> None:
    """Let each client read a little, until the upstream cannot write any more."""
    for client in clients:
        client.read_on()
    held_back(flood)


def resident_bytes(process: int) -> int:
    """Return the memory of a process, that of the extension included."""
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def held_back(flood: Flood) -> None:
    """Wait until the upstream cannot write any more."""
    before, since = -1, time.monotonic()
    until = since + 20
    while time.monotonic() < until:
        if flood.sent != before or flood.sent == 0:
            before, since = flood.sent, time.monotonic()
        elif time.monotonic() - since > 0.3:
            return
        time.sleep(0.02)
    pytest.fail(f"the upstream went on writing: {flood.sent:,} bytes")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process in /proc")
@pytest.mark.parametrize("way", PATHS)
@pytest.mark.parametrize("transport", ["aiohttp", "httpx2"])
def test_a_client_that_hardly_reads_holds_its_upstream_back(
    way: str, transport: str, tmp_path: Path
) -> None:
    if transport == "httpx2" and find_spec("uvloop") is not None:
        pytest.skip("under uvloop, anyio takes everything that the kernel holds")
    path = PATHS[way]
    with flooded(transport, tmp_path) as (flood, url, process), ExitStack() as open_clients:

        def slow_clients(count: int) -> list[SlowClient]:
            clients = [SlowClient(url, path) for _ in range(count)]
            for client in clients:
                open_clients.enter_context(client)
            return clients

        # With the first clients, the process loads code and reserves memory that later ones share.
        first = slow_clients(FIRST)
        read_on(first, flood)
        before = resident_bytes(process)
        clients = slow_clients(MEASURED)
        for _ in range(3):
            read_on(clients, flood)
            assert (resident_bytes(process) - before) / MEASURED < MOST_BYTES
        asked = {"model": "m", "messages": [{"role": "user", "content": "short"}], "stream": True}
        assert "[DONE]" in httpx2.post(f"{url}/v1/chat/completions", json=asked).text
        for client in (*first, *clients):
            numbers = client.numbers()
            assert len(numbers) > 100
            assert numbers == list(range(len(numbers)))


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="the kernel has no such bound")
def test_the_kernel_takes_little_of_an_answer_that_is_not_read() -> None:
    sent = 0
    is_asked = threading.Event()

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        nonlocal sent
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        is_asked.set()
        for _ in range(1000):
            await send({"type": "http.response.body", "body": b"." * 16384, "more_body": True})
            sent += 16384

    with served(app) as url, SlowClient(url, PATHS["passed"]):
        assert is_asked.wait(20)
        before = -1
        while before != sent:
            before = sent
            time.sleep(0.3)
        assert 0 < sent < 1 << 20
