"""In-process transports: whatever is asked, the same chunks are the answer.

In: the chunks of a body.  Out: clients of httpx, httpx2 and the SDKs whose requests never leave
this process, so that the bench measures the reader without a network.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

import anthropic
import httpx
import httpx2
import openai

BASE_URL: Final = "http://test"

Chunks = Sequence[bytes]


def _type_of(chunks: Chunks) -> dict[str, str]:
    whole = chunks[0].startswith(b"{")
    return {"content-type": "application/json" if whole else "text/event-stream"}


class _Body(httpx2.SyncByteStream):
    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


class _AsyncBody(httpx2.AsyncByteStream):
    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


class _OldBody(httpx.SyncByteStream):
    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


class _Transport(httpx2.BaseTransport):
    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = _type_of(self._chunks)
        return httpx2.Response(200, headers=headers, stream=_Body(self._chunks), request=request)


class _AsyncTransport(httpx2.AsyncBaseTransport):
    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = _type_of(self._chunks)
        body = _AsyncBody(self._chunks)
        return httpx2.Response(200, headers=headers, stream=body, request=request)


class _OldTransport(httpx.BaseTransport):
    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        headers = _type_of(self._chunks)
        return httpx.Response(200, headers=headers, stream=_OldBody(self._chunks), request=request)


def old_client(chunks: Chunks) -> httpx.Client:
    """Return a client of httpx, which some peers still use."""
    return httpx.Client(transport=_OldTransport(chunks))


def client(chunks: Chunks) -> httpx2.Client:
    """Return a client of httpx2."""
    return httpx2.Client(transport=_Transport(chunks))


def openai_client(chunks: Chunks) -> openai.OpenAI:
    """Return openai's client."""
    return openai.OpenAI(
        base_url=f"{BASE_URL}/v1", api_key="unused", http_client=client(chunks), max_retries=0
    )


def async_openai_client(chunks: Chunks) -> openai.AsyncOpenAI:
    """Return openai's client for asynchronous code."""
    http_client = httpx2.AsyncClient(transport=_AsyncTransport(chunks))
    return openai.AsyncOpenAI(
        base_url=f"{BASE_URL}/v1", api_key="unused", http_client=http_client, max_retries=0
    )


def anthropic_client(chunks: Chunks) -> anthropic.Anthropic:
    """Return anthropic's client."""
    return anthropic.Anthropic(
        base_url=BASE_URL, api_key="unused", http_client=client(chunks), max_retries=0
    )


def async_anthropic_client(chunks: Chunks) -> anthropic.AsyncAnthropic:
    """Return anthropic's client for asynchronous code."""
    http_client = httpx2.AsyncClient(transport=_AsyncTransport(chunks))
    return anthropic.AsyncAnthropic(
        base_url=BASE_URL, api_key="unused", http_client=http_client, max_retries=0
    )
