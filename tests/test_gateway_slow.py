"""A client that hardly reads, in front of an upstream that writes as fast as it can.

The upstream must be held back, the memory of the stream stays bounded, other clients are answered,
and nothing is lost when the client reads on.
"""

import json
import re
import socket
import threading
import time
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import httpx2
import pytest

from deltafold import OpenAIChatModel
from deltafold.gateway import create_app
from gateways import served

PATHS: Final = {"passed": "/v1/chat/completions", "transcoded": "/v1/messages"}
# Memory of one stream.  asyncio reads 256 KiB from a socket at once, and aiohttp holds three such
# pieces: one in its parser, one in its buffer, one that its reader has returned.
MOST_BYTES: Final = {"aiohttp": 3 << 19, "httpx2": 1 << 20}
READ_BYTES: Final = 1 << 17


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
                body = b"".join(map(event, range(3))) + b"data: [DONE]\n\n"
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
def flooded(transport: str) -> Generator[tuple[Flood, str]]:
    """Serve a gateway in front of the flood."""
    flood = Flood()
    model = OpenAIChatModel({"model_id": "m"}, base_url=flood.url, api_key="k", transport=transport)
    with served(create_app({"m": model})) as url:
        try:
            yield flood, url
        finally:
            flood.close()


def ask(url: str, path: str, content: str) -> socket.socket:
    """Send a request, and return its connection, whose kernel takes hardly anything."""
    body = json.dumps(
        {
            "model": "m",
            "max_tokens": 9,
            "stream": True,
            "messages": [{"role": "user", "content": content}],
            **({"stream_options": {"include_usage": True}} if "chat" in path else {}),
        }
    ).encode()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect(("127.0.0.1", int(url.rpartition(":")[2])))
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    client.sendall(head.encode() + body)
    return client


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


@pytest.mark.parametrize("way", PATHS)
@pytest.mark.parametrize("transport", ["aiohttp", "httpx2"])
def test_a_client_that_hardly_reads_holds_its_upstream_back(way: str, transport: str) -> None:
    with flooded(transport) as (flood, url):
        asked = {"model": "m", "messages": [{"role": "user", "content": "short"}], "stream": True}
        answer = f"{url}/v1/chat/completions"
        httpx2.post(answer, json=asked)  # imports every module before memory is measured
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            with ask(url, PATHS[way], "flood") as client:
                seen = b""
                for rounds in range(1, 4):
                    while len(seen) < rounds * READ_BYTES:
                        seen += client.recv(65536)
                    held_back(flood)
                    held = tracemalloc.get_traced_memory()[0] - before - len(seen)
                    assert held < MOST_BYTES[transport]
                assert "[DONE]" in httpx2.post(answer, json=asked).text
        finally:
            tracemalloc.stop()
    # HTTP may begin a chunk in the middle of a text.
    numbers = re.findall(rb"<(\d+)>", re.sub(rb"\r\n[0-9a-f]+\r\n", b"", seen))
    assert len(numbers) > 1000
    assert list(map(int, numbers)) == list(range(len(numbers)))
