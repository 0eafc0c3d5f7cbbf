"""A running gateway in front of a replay server, for tests with real clients.

In: the recordings of the upstream.  Out: the address of the gateway.
"""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from deltafold import OpenAIChatModel
from deltafold.dialects import dialect_of
from deltafold.gateway import create_app
from deltafold.gateway.serving import make_server
from deltafold.models.adapters import adapter_of
from deltafold.models.base import Model
from deltafold.testing import ReplayServer, ReplayTransport


@contextmanager
def served(app: Any, **settings: Any) -> Generator[str]:  # noqa: ANN401 - an ASGI application
    """Serve an application on a free port of this machine, and yield its address."""
    server = make_server(app, host="127.0.0.1", port=0, log_level="warning", ws="none", **settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server ended before it began"
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def serve_process(*options: str) -> Generator[tuple[str, int]]:
    """Run `deltafold serve` on a free port, and yield its address and its process id."""
    command = [sys.executable, "-m", "deltafold", "serve", "--port", "0", *options]
    with server_process(command, []) as found:
        yield found


@contextmanager
def server_process(command: Sequence[str], printed: list[str]) -> Generator[tuple[str, int]]:
    """Run a server that prints its address, and yield the address and the id of the process.

    Args:
        command: the program and its arguments.
        printed: gets the lines that the process prints, all of them when the context ends.
    """
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            while (found := re.search(r"http://[\w.:]+", "".join(printed))) is None:
                line = process.stdout.readline()
                assert line, f"the server ended before it began: {printed}"
                printed.append(line)
            reading = threading.Thread(target=printed.extend, args=(process.stdout,))
            reading.start()
            yield found[0], process.pid
        finally:
            process.terminate()
        reading.join()


def upstream(dialect: str, url: str) -> Model[Any]:
    """Return a Model of a dialect at a replay server."""
    adapter = adapter_of(dialect) or OpenAIChatModel
    base = f"{url}/v1" if dialect_of(dialect).path.startswith("/chat") else url
    config = {"model_id": "upstream-model"}
    return adapter(config, base_url=base, api_key="upstream-key")


def model_at(dialect: str, transport: ReplayTransport) -> Model[Any]:
    """Return a Model of a dialect whose upstream is a replay in this process."""
    made = upstream(dialect, "http://upstream.example")
    return type(made)(
        {"model_id": "upstream-model"},
        client=transport,
        base_url="http://upstream.example",
        api_key="k",
    )


@contextmanager
def gateway(dialect: str, **options: Any) -> Generator[tuple[str, ReplayServer]]:  # noqa: ANN401 - those of `create_app`
    """Serve a gateway whose only model, `m`, is at a replay server."""
    with ReplayServer() as server:
        app = create_app({"m": upstream(dialect, server.url)}, **options)
        with served(app) as url:
            yield url, server
