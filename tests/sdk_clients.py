"""Clients of the SDKs whose requests are answered in this process.

In: the chunks of a body, and the failure at its end.  Out: clients of openai and anthropic.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

import anthropic
import httpx2
import openai
from anthropic.lib.bedrock import AnthropicBedrock, AsyncAnthropicBedrock

BASE_URL: Final = "http://test"
HEADERS: Final = {"content-type": "text/event-stream"}


class Body:
    """A body in the given chunks, which fails at its end if a failure is given."""

    def __init__(self, chunks: Sequence[bytes], failure: Exception | None) -> None:
        self._chunks = chunks
        self._failure = failure

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        if self._failure is not None:
            raise self._failure


class SyncBody(httpx2.SyncByteStream):
    """A body that cannot be awaited."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)


class AsyncBody(httpx2.AsyncByteStream):
    """A body that must be awaited."""

    def __init__(self, body: Body) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._body:
            yield chunk


def sync_http(chunks: Sequence[bytes], failure: Exception | None = None) -> httpx2.Client:
    """Return a client of httpx2 that answers every request with a body."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=HEADERS, stream=SyncBody(Body(chunks, failure)))

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def async_http(chunks: Sequence[bytes], failure: Exception | None = None) -> httpx2.AsyncClient:
    """Return an asynchronous client of httpx2 that answers every request with a body."""

    async def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=HEADERS, stream=AsyncBody(Body(chunks, failure)))

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


def openai_client(chunks: Sequence[bytes], failure: Exception | None = None) -> openai.OpenAI:
    """Return openai's client."""
    http = sync_http(chunks, failure)
    return openai.OpenAI(base_url=BASE_URL, api_key="k", http_client=http, max_retries=0)


def async_openai_client(
    chunks: Sequence[bytes], failure: Exception | None = None
) -> openai.AsyncOpenAI:
    """Return openai's asynchronous client."""
    http = async_http(chunks, failure)
    return openai.AsyncOpenAI(base_url=BASE_URL, api_key="k", http_client=http, max_retries=0)


def anthropic_client(
    chunks: Sequence[bytes], failure: Exception | None = None
) -> anthropic.Anthropic:
    """Return anthropic's client."""
    http = sync_http(chunks, failure)
    return anthropic.Anthropic(base_url=BASE_URL, api_key="k", http_client=http, max_retries=0)


def bedrock_client(chunks: Sequence[bytes], failure: Exception | None = None) -> AnthropicBedrock:
    """Return anthropic's client for Bedrock."""
    http = sync_http(chunks, failure)
    return AnthropicBedrock(
        base_url=BASE_URL, api_key="k", aws_region="us-east-1", http_client=http, max_retries=0
    )


def async_bedrock_client(
    chunks: Sequence[bytes], failure: Exception | None = None
) -> AsyncAnthropicBedrock:
    """Return anthropic's asynchronous client for Bedrock."""
    http = async_http(chunks, failure)
    return AsyncAnthropicBedrock(
        base_url=BASE_URL, api_key="k", aws_region="us-east-1", http_client=http, max_retries=0
    )


def async_anthropic_client(
    chunks: Sequence[bytes], failure: Exception | None = None
) -> anthropic.AsyncAnthropic:
    """Return anthropic's asynchronous client."""
    http = async_http(chunks, failure)
    return anthropic.AsyncAnthropic(base_url=BASE_URL, api_key="k", http_client=http, max_retries=0)
