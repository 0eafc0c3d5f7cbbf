"""Every way of sending a request, behind one function: client, event loop, sync or async."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, TypeVar

import anyio

from deltafold.transports.http import (
    ClientKind,
    aclose_http_client,
    close_http_client,
    make_http_client,
    open_http,
    open_http_async,
)
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.timeouts import Timeouts

T = TypeVar("T")
Way: TypeAlias = tuple[str, Literal["", "asyncio", "trio"]]

# The package, and the event loop where there is one.
WAYS: Final[dict[str, Way]] = {
    "httpx": ("httpx", ""),
    "httpx2": ("httpx2", ""),
    "httpx, asyncio": ("httpx", "asyncio"),
    "httpx, trio": ("httpx", "trio"),
    "httpx2, asyncio": ("httpx2", "asyncio"),
    "httpx2, trio": ("httpx2", "trio"),
    "aiohttp": ("aiohttp", "asyncio"),
}


@dataclass
class Answer:
    """Received body: all of it, or its part before a failure."""

    status: int = 0
    headers: dict[str, str] | None = None
    body: bytes = b""
    failure: Exception | None = None


def kind_of(way: str) -> ClientKind:
    return "asynchronous" if WAYS[way][1] else "synchronous"


def request_to(url: str, timeouts: Timeouts | None = None, **query: object) -> HttpRequest:
    request = HttpRequest("POST", url, {"content-type": "application/json"}, query, b"{}")
    return request if timeouts is None else replace(request, timeouts=timeouts)


def run_async(backend: str, work: Callable[[], Awaitable[T]]) -> T:
    return anyio.run(work, backend=backend)


def with_source(
    way: str,
    request: HttpRequest,
    use: Callable[[Source], T],
    use_async: Callable[[AsyncSource], Awaitable[T]],
) -> T:
    """Open a request with a client of its own, use its source, and close both."""
    package, backend = WAYS[way]
    if not backend:
        client = make_http_client("synchronous", package)
        try:
            source = open_http(client, request)
            try:
                return use(source)
            finally:
                source.close()
        finally:
            close_http_client(client)

    async def main() -> T:
        client = make_http_client("asynchronous", package)
        try:
            source = await open_http_async(client, request)
            try:
                return await use_async(source)
            finally:
                await source.close()
        finally:
            await aclose_http_client(client)

    return run_async(backend, main)


def fetch(way: str, request: HttpRequest) -> Answer:
    """Send a request and read its response as far as it comes."""
    answer = Answer()

    def use(source: Source) -> None:
        answer.status, answer.headers = source.status, dict(source.headers)
        for chunk in source.chunks:
            answer.body += chunk

    async def use_async(source: AsyncSource) -> None:
        answer.status, answer.headers = source.status, dict(source.headers)
        async for chunk in source.chunks:
            answer.body += chunk

    try:
        with_source(way, request, use, use_async)
    except Exception as exception:  # noqa: BLE001 - whatever a client raises is the subject
        answer.failure = exception
    return answer
