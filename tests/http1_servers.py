"""Servers of one event loop that send whatever a test wants, and what a client makes of it."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from deltafold import ErrorCode, ErrorMapper
from deltafold.transports.http import open_http_async
from deltafold.transports.requests import HttpRequest
from http_ways import Answer

OK: Final = b"HTTP/1.1 200 OK\r\n"
HELLO: Final = OK + b"content-length: 5\r\n\r\nhello"
CHUNKED: Final = OK + b"transfer-encoding: chunked\r\n\r\n"

LOST, PROTOCOL = ErrorCode.CONNECTION_LOST, ErrorCode.PROTOCOL_ERROR

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass
class Server:
    """A server of one event loop, and what it saw."""

    port: int = 0
    scheme: str = "http"
    connections: int = 0
    heads: list[bytes] = field(default_factory=list[bytes])

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}/v1"


async def request_of(reader: asyncio.StreamReader) -> bytes:
    """Read one request; the body is `{}` or nothing."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b"content-length: 2\r\n" in head:
        await reader.readexactly(2)
    return head


@asynccontextmanager
async def serving(
    talk: Talk, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncGenerator[Server]:
    """Serve with a function; a client that leaves ends it."""
    server = Server(scheme="http" if tls is None else "https")

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            await talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(one, host, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        # What its own connections are still doing is over when their clients are.
        for _ in range(5):
            await asyncio.sleep(0.001)


@asynccontextmanager
async def answering(
    *answers: bytes,
    then: str = "wait",
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
) -> AsyncGenerator[Server]:
    """Serve each request of a connection with the next of these bytes, then wait or close."""
    heads: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            heads.append(await request_of(reader))
            writer.write(answer)
            await writer.drain()
        if then == "wait":
            await reader.read()

    async with serving(talk, tls, host) as server:
        server.heads = heads
        yield server


async def ask(client: object, request: HttpRequest) -> Answer:
    """Send a request and read its response as far as it comes."""
    answer = Answer()
    try:
        source = await open_http_async(client, request)
        answer.status, answer.headers = source.status, dict(source.headers)
        try:
            async for chunk in source.chunks:
                answer.body += chunk
        finally:
            await source.close()
    except Exception as exception:  # noqa: BLE001 - whatever it raises is the subject
        answer.failure = exception
    return answer


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


def code_of(answer: Answer) -> ErrorCode | None:
    return None if answer.failure is None else ErrorMapper().map(answer.failure).code
