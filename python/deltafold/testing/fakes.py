"""Streams of the official SDKs over recorded bytes, for tests of code that takes such streams.

In: a recording, or the bytes of a body.  Out: an SDK's own `Stream` or `AsyncStream`, unread.

Laws: the SDK parses the bytes itself, so that its objects, its exceptions and `deltafold.compat`
are those of a real response. A fault of the recording is the exception that the SDK's HTTP client
raises for it.  Nothing is sent.
"""

from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from deltafold.contract.exceptions import MisuseError
from deltafold.testing.recording import Recording
from deltafold.testing.transport import ReplayTransport
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sdks import import_sdk

if TYPE_CHECKING:
    import anthropic
    import openai
    from anthropic.types import RawMessageStreamEvent
    from openai.types.chat import ChatCompletionChunk
    from openai.types.responses import ResponseStreamEvent

_URL: Final = "http://recording"
_FAULTS: Final = (
    (ConnectionResetError, "ReadError"),
    (TimeoutError, "ReadTimeout"),
    (ConnectionError, "RemoteProtocolError"),
)


@overload
def fake_openai_stream(
    recording: Recording | bytes, api: Literal["chat"] = "chat", *, flat_out: bool = True
) -> "openai.Stream[ChatCompletionChunk]": ...
@overload
def fake_openai_stream(
    recording: Recording | bytes, api: Literal["responses"], *, flat_out: bool = True
) -> "openai.Stream[ResponseStreamEvent]": ...
def fake_openai_stream(
    recording: Recording | bytes,
    api: Literal["chat", "responses"] = "chat",
    *,
    flat_out: bool = True,
) -> "openai.Stream[Any]":
    """Return what `create(stream=True)` of openai returns for a recorded response.

    >>> stream = fake_openai_stream(Recording.load("recordings/weather.jsonl"))
    >>> [choice.delta.content for chunk in stream for choice in chunk.choices]

    Args:
        recording: a recording, or the bytes of a body.
        api: `"chat"` for Chat Completions, `"responses"` for Responses.
        flat_out: leaves the recorded pauses out.

    Raises:
        openai.APIStatusError: the recording has an HTTP error.
        MisuseError: the package openai is not installed, or there is no such `api`.
    """
    client = _client(import_sdk("openai", "openai"), "OpenAI", "Client", recording, flat_out)
    stream: openai.Stream[Any] = _openai_call(client, api)
    return stream


@overload
async def fake_async_openai_stream(
    recording: Recording | bytes, api: Literal["chat"] = "chat", *, flat_out: bool = True
) -> "openai.AsyncStream[ChatCompletionChunk]": ...
@overload
async def fake_async_openai_stream(
    recording: Recording | bytes, api: Literal["responses"], *, flat_out: bool = True
) -> "openai.AsyncStream[ResponseStreamEvent]": ...
async def fake_async_openai_stream(
    recording: Recording | bytes,
    api: Literal["chat", "responses"] = "chat",
    *,
    flat_out: bool = True,
) -> "openai.AsyncStream[Any]":
    """Return what the asynchronous client of openai returns; otherwise as `fake_openai_stream`.

    >>> stream = await fake_async_openai_stream(body)
    >>> [chunk async for chunk in stream]
    """
    sdk = import_sdk("openai", "openai")
    client = _client(sdk, "AsyncOpenAI", "AsyncClient", recording, flat_out)
    stream: openai.AsyncStream[Any] = await _openai_call(client, api)
    return stream


def fake_anthropic_stream(
    recording: Recording | bytes, *, flat_out: bool = True
) -> "anthropic.Stream[RawMessageStreamEvent]":
    """Return what `messages.create(stream=True)` of anthropic returns for a recorded response.

    >>> stream = fake_anthropic_stream(Recording.load("recordings/weather.jsonl"))
    >>> [event.type for event in stream]

    Args:
        recording: a recording, or the bytes of a body.
        flat_out: leaves the recorded pauses out.

    Raises:
        anthropic.APIStatusError: the recording has an HTTP error.
        MisuseError: the package anthropic is not installed.
    """
    sdk = import_sdk("anthropic", "anthropic")
    client = _client(sdk, "Anthropic", "Client", recording, flat_out)
    stream: anthropic.Stream[RawMessageStreamEvent] = _anthropic_call(client)
    return stream


async def fake_async_anthropic_stream(
    recording: Recording | bytes, *, flat_out: bool = True
) -> "anthropic.AsyncStream[RawMessageStreamEvent]":
    """Return what the asynchronous client of anthropic returns; as `fake_anthropic_stream`.

    >>> stream = await fake_async_anthropic_stream(body)
    >>> [event async for event in stream]
    """
    sdk = import_sdk("anthropic", "anthropic")
    client = _client(sdk, "AsyncAnthropic", "AsyncClient", recording, flat_out)
    stream: anthropic.AsyncStream[RawMessageStreamEvent] = await _anthropic_call(client)
    return stream


def _openai_call(client: Any, api: str) -> Any:  # noqa: ANN401 - of an optional package
    if api == "chat":
        question = [{"role": "user", "content": "?"}]
        return client.chat.completions.create(model="recorded", messages=question, stream=True)
    if api == "responses":
        return client.responses.create(model="recorded", input="?", stream=True)
    raise MisuseError(f"api must be 'chat' or 'responses', not {api!r}")


def _anthropic_call(client: Any) -> Any:  # noqa: ANN401 - of an optional package
    question = [{"role": "user", "content": "?"}]
    return client.messages.create(model="recorded", max_tokens=1, messages=question, stream=True)


def _client(
    sdk: Any,  # noqa: ANN401 - an optional package
    name: str,
    http_name: str,
    recording: Recording | bytes,
    flat_out: bool,
) -> Any:  # noqa: ANN401 - of an optional package
    """Return a client whose requests are answered by the recording, once."""
    if not isinstance(recording, Recording):
        recording = Recording.of_events(bytes(recording))
    # The module of the HTTP client that this version of the SDK is made for: httpx or httpx2.
    http = import_module(sdk.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
    replay = ReplayTransport([recording], flat_out=flat_out)
    respond = _response if http_name == "Client" else _async_response

    def answer(_: object) -> Any:  # noqa: ANN401 - a response, or one to await
        return respond(http, replay)

    transport = http.MockTransport(answer)
    return getattr(sdk, name)(
        api_key="recorded",
        base_url=_URL,
        max_retries=0,
        http_client=getattr(http, http_name)(transport=transport),
    )


def _response(http: Any, replay: ReplayTransport) -> Any:  # noqa: ANN401 - of httpx or httpx2
    try:
        source = replay.open(HttpRequest("POST", _URL, {}, {}, b""))
    except OSError as failure:
        raise _fault(http, failure) from failure

    class Body(http.SyncByteStream):  # type: ignore[misc]  # a class of an untyped module
        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from source.chunks
            except OSError as failure:
                raise _fault(http, failure) from failure

        def close(self) -> None:
            source.close()

    return http.Response(source.status, headers=dict(source.headers), stream=Body())


async def _async_response(http: Any, replay: ReplayTransport) -> Any:  # noqa: ANN401 - as above
    try:
        source = await replay.open_async(HttpRequest("POST", _URL, {}, {}, b""))
    except OSError as failure:
        raise _fault(http, failure) from failure

    class Body(http.AsyncByteStream):  # type: ignore[misc]  # a class of an untyped module
        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in source.chunks:
                    yield chunk
            except OSError as failure:
                raise _fault(http, failure) from failure

        async def aclose(self) -> None:
            await source.close()

    return http.Response(source.status, headers=dict(source.headers), stream=Body())


def _fault(http: Any, failure: OSError) -> Exception:  # noqa: ANN401 - as above
    name = next(name for kind, name in _FAULTS if isinstance(failure, kind))
    made: Exception = getattr(http, name)(str(failure))
    return made
