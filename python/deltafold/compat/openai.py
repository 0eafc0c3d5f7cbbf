"""openai's own chunks and events, from the bytes under openai's own stream.

In: an `openai.Stream` or `openai.AsyncStream` that was not read.  Out: the objects that its
iteration yields, and the exceptions that it raises.

Laws: those of `builders.py` and `object_streams.py`. The SDK keeps the request, its retries and its
authentication. Source: `openai/_streaming.py` of openai 3.54.
"""

from collections.abc import AsyncIterable, Iterable
from functools import partial
from importlib import import_module
from typing import Any, Final, TypeVar, cast, overload

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from deltafold.compat.builders import Construct, builder_of
from deltafold.compat.final_objects import Facts, final_body
from deltafold.compat.object_streams import (
    DONE,
    SKIPPED,
    AsyncObjectStream,
    ObjectStream,
    Reading,
    Skipped,
    member,
    parse_json,
)
from deltafold.compat.sdk_streams import SSE_DECODERS, opened, with_faster_streams
from deltafold.errors.model_error import ModelError
from deltafold.errors.sdk_exceptions import sdk_exception
from deltafold.message import data_types
from deltafold.transports.secrets import shown_url

__all__ = ["accelerate", "chunks", "completion", "events", "response"]

ObjectT = TypeVar("ObjectT")
ClientT = TypeVar("ClientT", openai.OpenAI, openai.AsyncOpenAI)

# A private name of the SDK, and the only one that makes its objects.
CONSTRUCT: Final = Construct(import_module("openai._models").construct_type)
_KINDS: Final = (openai.Stream, openai.AsyncStream)
_UNEXPLAINED: Final = "An error occurred during streaming"
_DIALECTS: Final["tuple[tuple[object, data_types.ProtocolName], ...]"] = (
    (ChatCompletionChunk, "openai-chat"),
    (ResponseStreamEvent, "openai-responses"),
)
"""The dialect of the streams whose objects are of a type."""

_OF_CHAT: Final = Facts(
    ("service_tier", "system_fingerprint", "prompt_filter_results"),
    ("content_filter_results",),
    frozenset({"prompt_tokens"}),
)
_OF_RESPONSES: Final = Facts(("service_tier",), (), frozenset({"input_tokens", "total_tokens"}))


@overload
def chunks(
    stream: Iterable[ChatCompletionChunk], *, ends_without_reason: bool = ...
) -> ObjectStream[ChatCompletionChunk]: ...
@overload
def chunks(
    stream: AsyncIterable[ChatCompletionChunk], *, ends_without_reason: bool = ...
) -> AsyncObjectStream[ChatCompletionChunk]: ...
def chunks(
    stream: Iterable[ChatCompletionChunk] | AsyncIterable[ChatCompletionChunk],
    *,
    ends_without_reason: bool = False,
) -> ObjectStream[ChatCompletionChunk] | AsyncObjectStream[ChatCompletionChunk]:
    """Return the chunks of a stream of Chat Completions.

    >>> stream = client.chat.completions.create(
    ...     model="gpt-5.6-terra", messages=[], stream=True
    ... )
    >>> for chunk in deltafold.compat.openai.chunks(stream):
    ...     for choice in chunk.choices:
    ...         print(choice.delta.content)

    The iteration raises the exceptions of the SDK. `openai.APIConnectionError` is also raised if
    the body ends before the stream does; its `__cause__` is a `ModelError` with the partial
    message.

    An iterable of objects that something else has made, such as the list of a test or the generator
    of a tracer, passes unchanged; a cut of it raises nothing.

    Args:
        stream: what `create(stream=True)` returned; nothing has read it.
        ends_without_reason: whether the service sends no finish reason, as for `Decoder`.

    Raises:
        MisuseError: the stream was read in part, or its client validates strictly.
    """
    read = partial(
        _Reading[ChatCompletionChunk],
        dialect="openai-chat",
        ends_without_reason=ends_without_reason,
    )
    return opened(stream, _KINDS, SSE_DECODERS, read, "openai-chat")


@overload
def events(stream: Iterable[ResponseStreamEvent]) -> ObjectStream[ResponseStreamEvent]: ...
@overload
def events(
    stream: AsyncIterable[ResponseStreamEvent],
) -> AsyncObjectStream[ResponseStreamEvent]: ...
def events(
    stream: Iterable[ResponseStreamEvent] | AsyncIterable[ResponseStreamEvent],
) -> ObjectStream[ResponseStreamEvent] | AsyncObjectStream[ResponseStreamEvent]:
    """Return the events of a stream of Responses; as `chunks` in all other respects.

    >>> stream = client.responses.create(model="gpt-5.6-terra", input="Hi", stream=True)
    >>> for event in deltafold.compat.openai.events(stream):
    ...     print(event.type)
    """
    read = partial(_Reading[ResponseStreamEvent], dialect="openai-responses")
    return opened(stream, _KINDS, SSE_DECODERS, read, "openai-responses")


def accelerate(client: ClientT, *, ends_without_reason: bool = False) -> ClientT:
    """Make the streams of a client yield the objects of `chunks` and `events`; return the client.

    The helper `stream()` of Chat Completions and Responses is faster, too. All other calls are
    unchanged, and so are copies of the client (`with_options`) and raw responses.

    >>> client = deltafold.compat.openai.accelerate(openai.OpenAI())

    Args:
        client: the client.
        ends_without_reason: whether the service sends no finish reason, as for `Decoder`.
    """
    reading_of = partial(_reading_of, ends_without_reason=ends_without_reason)
    with_faster_streams(client, _KINDS, SSE_DECODERS, reading_of)
    return client


def completion(message: "data_types.Message") -> ChatCompletion:
    """Return a folded message as the object that the SDK's own helper would have built.

    It has the provider's own counts, time, service tier and fingerprint. Members that the SDK
    joins from pieces without a meaning, such as the role of each piece, are as in an answer that
    was not streamed.

    >>> deltafold.compat.openai.completion(message).choices[0].message.content

    Raises:
        MisuseError: the message is not an answer, or the protocol has an error in its place.
    """
    body = final_body(message, "openai-chat", _OF_CHAT)
    return cast("ChatCompletion", builder_of(ChatCompletion, CONSTRUCT)(body))


def response(message: "data_types.Message") -> Response:
    """Return a folded message as a `Response`; as `completion` in all other respects.

    A message does not hold the settings of the request, which the API repeats in its answer.

    >>> deltafold.compat.openai.response(message).output_text
    """
    body = final_body(message, "openai-responses", _OF_RESPONSES)
    return cast("Response", builder_of(Response, CONSTRUCT)(body))


def _reading_of(
    stream: Any,  # noqa: ANN401 - its members are read
    *,
    ends_without_reason: bool,
) -> "_Reading[object] | None":
    """Return the reading of a stream whose objects are known."""
    for kind, dialect in _DIALECTS:
        if kind == stream._cast_to:
            return _Reading(stream, dialect, ends_without_reason=ends_without_reason)
    return None


class _Reading(Reading[ObjectT]):
    def __init__(
        self,
        stream: Any,  # noqa: ANN401 - its members are read
        dialect: "data_types.ProtocolName",
        *,
        ends_without_reason: bool = False,
    ) -> None:
        super().__init__(dialect, ends_without_reason=ends_without_reason)
        self._request = stream.response.request
        self._build = builder_of(stream._cast_to, CONSTRUCT)
        # An event `error` of Responses is one of its objects.
        self._is_chat = dialect == "openai-chat"
        options = getattr(stream, "_options", None)
        self._raises = getattr(options, "stream_mode", "legacy") == "legacy"

    def read(self, event: bytes, data: bytes) -> ObjectT | Skipped:
        if data.startswith(DONE):
            self.ended = True
            return SKIPPED
        value = parse_json(data)
        error = member(value, "error") if self._raises else None
        if event == b"error" and self._is_chat:
            # Of llama.cpp, whose field `error` has the error itself. The SDK skips this field.
            error = error or value
        if error:
            raise self._error(error)
        return cast("ObjectT", None if value is None else self._build(value))

    def failure(self, failure: Exception) -> Exception:
        names = {base.__name__ for base in type(failure).__mro__}
        if "TimeoutException" in names:
            return openai.APITimeoutError(request=self._request)
        if "RequestError" in names:
            return openai.APIConnectionError(request=self._request)
        return failure

    def cut(self, error: ModelError) -> Exception:
        return sdk_exception(error, "openai", shown_url(str(self._request.url)))

    def _error(self, error: object) -> openai.APIError:
        text = member(error, "message")
        message = text if isinstance(text, str) and text else _UNEXPLAINED
        return openai.APIError(message=message, request=self._request, body=error)
