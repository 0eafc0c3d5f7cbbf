"""The logs of a gateway's server: no key of a query, and no line that a client has made."""

import logging
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

import pytest

from deltafold.gateway.serving import make_server
from deltafold.transports.secrets import shown_target
from gateways import server_process

KEY: Final = "CLIENT-KEY-4711"
PATH: Final = "/v1beta/models/m:generateContent"
PROGRAM: Final = """
import sys
from deltafold.gateway import create_app
from deltafold.gateway.serving import make_server
app = create_app({"m": "ollama/llava"})
make_server(app, host="127.0.0.1", port=0, http=sys.argv[1], log_level=sys.argv[2]).run()
"""
QUERIES: Final = [
    f"key={KEY}&alt=sse",
    f"alt=sse&key={KEY}",
    f"%6bey={KEY}&alt=sse",
    f"KEY={KEY}&alt=sse",
    f"access_token={KEY}&alt=sse",
    f"key=a%26{KEY}&alt=sse",
    f"alt=sse&{KEY}",
    f"alt=sse&x={KEY}&key=",
    f"alt=sse?key={KEY}&alt=sse",
    f"alt=sse;key={KEY}&alt=sse",
    f"alt=x%26key%3D{KEY}&alt=sse",
]


def ask(url: str, request_line: str, headers: str = "connection: close\r\n") -> bytes:
    """Send a request as it is, and return what the server answers."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        head = f"{request_line}\r\nhost: x\r\ncontent-length: 0\r\n{headers}\r\n"
        connection.sendall(head.encode("latin-1"))
        got = b""
        while data := connection.recv(65_536):
            got += data
    return got


def command(http: str, level: str) -> Sequence[str]:
    if http == "httptools":
        pytest.importorskip("httptools")
    return [sys.executable, "-c", PROGRAM, http, level]


SERVE: Final = (
    *(sys.executable, "-m", "deltafold", "serve"),
    *("--port", "0", "--model", "m=ollama/llava"),
)


@pytest.mark.parametrize("how", ["serve", "h11", "httptools", "h11 trace", "httptools trace"])
def test_no_key_of_a_query_is_printed(how: str) -> None:
    http, _, level = how.partition(" ")
    program = SERVE if how == "serve" else command(http, level or "info")
    printed: list[str] = []
    with server_process(program, printed) as (url, _):
        for query in QUERIES:
            assert ask(url, f"POST {PATH}?{query} HTTP/1.1").startswith(b"HTTP/1.1 400")
            assert ask(url, f"GET /nothing?{query} HTTP/1.1").startswith(b"HTTP/1.1 404")
    said = "".join(printed)
    assert KEY not in said
    lines = [line for line in printed if '"POST' in line]
    assert len(lines) == len(QUERIES)
    assert all("alt=sse" in line and " 400" in line for line in lines)
    for shown in ("key=***&alt=sse", "alt=sse&key=***", "%6bey=***&alt=sse"):
        assert f'"POST {quote(PATH)}?{shown} HTTP/1.1" 400' in said


@pytest.mark.parametrize("http", ["h11", "httptools"])
def test_no_key_of_a_websocket_is_printed(http: str) -> None:
    pytest.importorskip("websockets")
    printed: list[str] = []
    upgrade = (
        "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    with server_process(command(http, "info"), printed) as (url, _):
        ask(url, f"GET {PATH}?{QUERIES[0]} HTTP/1.1", upgrade)
    said = "".join(printed)
    assert "key=***&alt=sse" in said
    assert KEY not in said


@pytest.fixture
def records() -> Iterator[list[str]]:
    found: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    make_server(None, log_config=None)
    logger, handler = logging.getLogger("uvicorn.error"), Kept()
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def test_an_argument_of_a_record_makes_no_line_of_its_own(records: list[str]) -> None:
    logging.getLogger("uvicorn.error").error("%s %d", "a\nERROR: forged\x1b[31m", 7)
    assert records == [r"a\nERROR: forged\u001b[31m 7"]


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("/v1/models", "/v1/models"),
        ("/v1/models?", "/v1/models?"),
        ("/v1/models?limit=20&after_id=abc", "/v1/models?limit=20&after_id=***"),
        ("/v1beta/models?pageSize=50&key=k", "/v1beta/models?pageSize=50&key=***"),
        ("/m?api-version=2024-10-21&sig=a/b==", "/m?api-version=2024-10-21&sig=***"),
        ("/m?%61lt=sse&=x&&beta", "/m?%61lt=sse&=***&&beta"),
    ],
)
def test_a_target_is_shown_with_the_names_of_its_query(target: str, shown: str) -> None:
    assert shown_target(target) == shown
