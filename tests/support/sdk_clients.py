"""Clients of the SDKs whose requests are answered in this process.

In: the chunks of a body, and the failure at its end.  Out: clients of openai and anthropic.

Law: a client has the HTTP package that its SDK takes: openai before version 3 takes httpx, the
others take httpx2.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from importlib import import_module
from typing import Any, Final

import anthropic
import openai
from anthropic.lib.bedrock import AnthropicBedrock, AsyncAnthropicBedrock

BASE_URL: Final = "http://test"
HEADERS: Final = {"content-type": "text/event-stream"}


def http_package(client: type) -> Any:  # noqa: ANN401 - httpx or httpx2, as the SDK decides
    """Return the HTTP package of an SDK, whose default client derives from the package's client."""
    return import_module(client.__mro__[1].__module__.partition(".")[0])


OPENAI_HTTP: Final = http_package(openai.DefaultHttpxClient)
ANTHROPIC_HTTP: Final = http_package(anthropic.DefaultHttpxClient)


class Body:
    """A body in the given chunks, which fails at its end if a failure is given."""

    def __init__(self, chunks: Sequence[bytes], failure: Exception | None) -> None:
        self._chunks = chunks
        self._failure = failure

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        if self._failure is not None:
            raise self._failure


class AsyncBody:
    """A body that must be awaited."""

    def __init__(self, body: Body) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._body:
            yield chunk


def sync_http(package: Any, chunks: Sequence[bytes], failure: Exception | None = None) -> Any:  # noqa: ANN401 - of httpx or httpx2
    """Return a client of an HTTP package that answers every request with a body."""

    def answer(_: object) -> object:
        return package.Response(200, headers=HEADERS, content=Body(chunks, failure))

    return package.Client(transport=package.MockTransport(answer))


def async_http(package: Any, chunks: Sequence[bytes], failure: Exception | None = None) -> Any:  # noqa: ANN401 - of httpx or httpx2
    """Return an asynchronous client of an HTTP package that answers every request with a body."""

    async def answer(_: object) -> object:
        return package.Response(200, headers=HEADERS, content=AsyncBody(Body(chunks, failure)))

    return package.AsyncClient(transport=package.MockTransport(answer))


def openai_client(chunks: Sequence[bytes], failure: Exception | None = None) -> openai.OpenAI:
    """Return openai's client."""
    http = sync_http(OPENAI_HTTP, chunks, failure)
    return openai.OpenAI(base_url=BASE_URL, api_key="k", http_client=http, max_retries=0)


def async_openai_client(
    chunks: Sequence[bytes], failure: Exception | None = None
) -> openai.AsyncOpenAI:
    """Return openai's asynchronous client."""
    http = async_http(OPENAI_HTTP, chunks, failure)
    return openai.AsyncOpenAI(base_url=BASE_URL, api_key="k", http_client=http, max_retries=0)


def anthropic_client(
    chunks: Sequence[bytes], failure: Exception | None = None
) -> anthropic.Anthropic:
    """Return anthropic's client."""
    http = sync_http(ANTHROPIC_HTTP, chunks, failure)
    return anthropic.Anthropic(base_url=BASE_URL, api_key="k", http_client=http, max_retries=0)


def bedrock_client(chunks: Sequence[bytes], failure: Exception | None = None) -> AnthropicBedrock:
    """Return anthropic's client for Bedrock."""
    http = sync_http(ANTHROPIC_HTTP, chunks, failure)
    return AnthropicBedrock(
        base_url=BASE_URL, api_key="k", aws_region="us-east-1", http_client=http, max_retries=0
    )


def async_bedrock_client(
    chunks: Sequence[bytes], failure: Exception | None = None
) -> AsyncAnthropicBedrock:
    """Return anthropic's asynchronous client for Bedrock."""
    http = async_http(ANTHROPIC_HTTP, chunks, failure)
    return AsyncAnthropicBedrock(
        base_url=BASE_URL, api_key="k", aws_region="us-east-1", http_client=http, max_retries=0
    )


def async_anthropic_client(
    chunks: Sequence[bytes], failure: Exception | None = None
) -> anthropic.AsyncAnthropic:
    """Return anthropic's asynchronous client."""
    http = async_http(ANTHROPIC_HTTP, chunks, failure)
    return anthropic.AsyncAnthropic(base_url=BASE_URL, api_key="k", http_client=http, max_retries=0)
