"""The server of a gateway: connections without a request, and the end of the process."""

import asyncio
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

import deltafold
from any_name import AnyName
from client_requests import asked
from deltafold.gateway import create_app
from deltafold.gateway.serving import Server, make_server
from deltafold.testing import Recording, ReplayServer, answer
from gateways import served, upstream

HEAD: Final = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
BODY: Final = HEAD + b"content-length: 1000\r\n\r\n{"
LONG: Final = 600.0


@contextmanager
def connected(url: str, data: bytes) -> Generator[socket.socket]:
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    with socket.create_connection(address, timeout=20) as connection:
        if data:
            connection.sendall(data)
        yield connection


def is_closed(connection: socket.socket) -> bool:
    """Return whether the server closes a connection within a second, without a byte."""
    connection.settimeout(1)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False


SLOW: Final[dict[str, tuple[bytes, dict[str, Any]]]] = {
    "silent": (b"", {"timeout_keep_alive": 0.2}),
    "half a head": (HEAD, {"head_seconds": 0.2}),
    "half a body": (BODY, {"body_seconds": 0.2}),
}


@pytest.mark.parametrize("http", ["h11", "auto"])
@pytest.mark.parametrize("slow", SLOW)
def test_a_connection_without_a_whole_request_is_closed(slow: str, http: str) -> None:
    data, limit = SLOW[slow]
    limits = {"timeout_keep_alive": LONG, "head_seconds": LONG, "body_seconds": LONG}
    with ReplayServer() as server:
        app = create_app({"m": upstream("openai-chat", server.url)})
        with served(app, http=http, **(limits | limit)) as url, connected(url, data) as connection:
            connection.settimeout(20)
            assert connection.recv(1) == b""
        with served(app, http=http, **limits) as url, connected(url, data) as connection:
            assert not is_closed(connection)


def test_a_head_that_comes_byte_by_byte_has_no_more_time() -> None:
    with ReplayServer() as server:
        app = create_app({"m": upstream("openai-chat", server.url)})
        with served(app, head_seconds=0.5) as url, connected(url, HEAD) as connection:
            connection.settimeout(0.05)
            begun = time.monotonic()
            while time.monotonic() - begun < 20:
                try:
                    connection.sendall(b"x")
                    if connection.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
            else:
                pytest.fail("the connection stayed open")


def test_a_body_that_makes_progress_and_a_long_answer_are_left_alone() -> None:
    limits = {"timeout_keep_alive": 0.3, "head_seconds": 0.3, "body_seconds": 0.3}
    body = b'{"model":"m","messages":[{"role":"user","content":"?"}]}'
    with ReplayServer() as server:
        app = create_app({"m": upstream("openai-chat", server.url)})
        pieces = tuple((0.2, piece) for _, piece in answer("openai-chat", *"hello").pieces)
        server.queue(Recording(pieces=pieces, status=200, headers=answer("openai-chat").headers))
        head = HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        with served(app, **limits) as url, connected(url, head) as connection:
            for index in range(0, len(body), 10):
                time.sleep(0.1)
                connection.sendall(body[index : index + 10])
            connection.settimeout(20)
            received = b""
            while piece := connection.recv(65536):
                received += piece
    assert received.startswith(b"HTTP/1.1 200 ")
    assert b"hello" in received


class Hanging:
    """Upstream that sends a part of an answer, or nothing, and then waits."""

    def __init__(self, first: bytes) -> None:
        self._first = first
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            connection.recv(65536)
            connection.sendall(self._first)

    def close(self) -> None:
        self._socket.close()
        for one in self.connections:
            one.close()


PIECE: Final = (
    b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'
)
BEGUN: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    + b"%x\r\n%b\r\n" % (len(PIECE), PIECE)
)


@contextmanager
def process(
    url: str, drain: str, hook: str = "None"
) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Run the gateway as a process that calls one upstream, and yield it and its address."""
    program = (
        "import asyncio, sys\n"
        "from deltafold import OpenAIChatModel\n"
        "from deltafold.gateway import create_app\n"
        "from deltafold.gateway.serving import make_server\n"
        f"model = OpenAIChatModel({{'model_id': 'm'}}, base_url='{url}/v1', api_key='k')\n"
        f"app = create_app({{'m': model}}, on_message={hook}, accounting_seconds=3)\n"
        f"make_server(app, port=0, timeout_graceful_shutdown={drain}).run()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        said = ""
        while "http://" not in said:
            line = running.stderr.readline()
            assert line, said
            said += line
        try:
            yield running, "http" + said.rpartition("http")[2].split()[0]
        finally:
            running.kill()


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("first", [b"", BEGUN], ids=["before the head", "after a byte"])
@pytest.mark.parametrize("protocol", ["openai-chat", "anthropic-messages"])
def test_a_stream_that_the_server_ends_tells_its_client(
    protocol: str, first: bytes, kind: signal.Signals
) -> None:
    hanging = Hanging(first)
    path = "/v1/messages" if protocol == "anthropic-messages" else "/v1/chat/completions"
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    got: list[httpx2.Response] = []
    with process(hanging.url, "1") as (running, url):

        def ask() -> None:
            got.append(httpx2.post(url + path, json=body, timeout=60))

        asking = threading.Thread(target=ask)
        asking.start()
        while not hanging.connections:
            time.sleep(0.01)
        time.sleep(0.3)
        running.send_signal(kind)
        running.wait(20)
        asking.join(20)
    hanging.close()
    (response,) = got
    assert "error" in response.text
    assert response.status_code == (200 if first else 502) or response.status_code >= 500
    if first:
        assert "hello" in response.text
    assert "[DONE]" not in response.text


@pytest.mark.parametrize("protocol", ["openai-chat", "anthropic-messages"])
def test_an_answer_that_waits_for_its_hook_is_whole_when_the_server_ends(protocol: AnyName) -> None:
    path, body = asked(protocol, streams=True)
    got: list[httpx2.Response] = []
    hook = "lambda *_: print('told', file=sys.stderr, flush=True) or asyncio.sleep(600)"
    with ReplayServer() as server:
        server.queue(answer("openai-chat", "hello"))
        with process(server.url, "1", hook) as (running, url):

            def ask() -> None:
                given = {**body, "model": "m", "stream_options": {"include_usage": True}}
                got.append(httpx2.post(url + path, json=given, timeout=60))

            asking = threading.Thread(target=ask)
            asking.start()
            assert running.stderr is not None
            while "told" not in running.stderr.readline():
                assert running.poll() is None
            running.send_signal(signal.SIGTERM)
            running.wait(20)
            asking.join(20)
    (response,) = got
    message = deltafold.fold(response.content, protocol)
    assert message.text == "hello"
    assert message.meta.finish_reason == "stop"
    assert response.text.count("[DONE]") == (protocol == "openai-chat")


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_of_either_kind_ends_the_process_at_once(kind: signal.Signals) -> None:
    hanging = Hanging(BEGUN)
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": True}
    with process(hanging.url, "600") as (running, url):

        def ask() -> None:
            with suppress(httpx2.TransportError):
                httpx2.post(url + "/v1/chat/completions", json=body, timeout=60)

        asking = threading.Thread(target=ask)
        asking.start()
        while not hanging.connections:
            time.sleep(0.01)
        time.sleep(0.3)
        running.send_signal(kind)
        time.sleep(0.5)
        assert running.poll() is None
        running.send_signal(kind)
        running.wait(20)
        asking.join(20)
    hanging.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the limit and the queue are read as in Linux")
def test_a_connection_without_a_descriptor_is_tried_once_and_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    resource: Any = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    app = create_app({"m": "openai/gpt-5"})
    with served(app, loop="asyncio") as url, socket.socket() as connection:
        resource.setrlimit(resource.RLIMIT_NOFILE, (4, hard))
        try:
            connection.connect(("127.0.0.1", int(url.rpartition(":")[2])))
            while not caplog.records:
                time.sleep(0.01)
            time.sleep(0.2)  # the second try is a second after the first one
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert "out of system resource" in caplog.text
        assert len(caplog.records) < 10
        connection.settimeout(20)
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"


@pytest.mark.skipif(sys.platform != "linux", reason="the queue is read as in Linux")
def test_the_queue_of_the_kernel_keeps_its_length() -> None:
    longest = int(Path("/proc/sys/net/core/somaxconn").read_text())
    app = create_app({"m": "openai/gpt-5"})
    for length in (100, 2048):
        server = make_server(app, host="127.0.0.1", port=0, log_level="warning", backlog=length)

        async def read_length(server: Server = server) -> int:
            server.lifespan = server.config.lifespan_class(server.config)
            await server.startup()
            listening = server.servers[0].sockets[0]
            info = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            await server.shutdown()
            return int.from_bytes(info[28:32], sys.byteorder)  # `tcpi_sacked`

        assert asyncio.run(read_length()) == min(length, longest)
        assert server.config.backlog == length
