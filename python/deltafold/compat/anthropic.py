"""anthropic's own events, from the bytes under anthropic's own stream.

In: an `anthropic.Stream` or `anthropic.AsyncStream` that was not read.  Out: the objects that its
iteration yields, and the exceptions that it raises.

Laws: those of `builders.py` and `object_streams.py`. The SDK keeps the request, its retries and its
authentication. An event without a line `event:` has the name of its `type`, where the SDK skips it.
Source: `anthropic/_streaming.py` and `anthropic/lib/bedrock/_stream_decoder.py` of anthropic 2.12.
"""

import json
from base64 import b64decode
from collections.abc import AsyncIterable, Iterable
from importlib import import_module
from typing import Any, Final, TypeVar, cast, overload

import anthropic
from anthropic.lib.bedrock import AnthropicBedrock, AsyncAnthropicBedrock
from anthropic.lib.vertex import AnthropicVertex, AsyncAnthropicVertex
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.beta import BetaRawMessageStreamEvent

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

__all__ = ["accelerate", "events", "message"]

ObjectT = TypeVar("ObjectT")
ClientT = TypeVar(
    "ClientT",
    anthropic.Anthropic,
    anthropic.AsyncAnthropic,
    AnthropicBedrock,
    AsyncAnthropicBedrock,
    AnthropicVertex,
    AsyncAnthropicVertex,
)

# A private name of the SDK, and the only one that makes its objects.
_CONSTRUCT: Final = Construct(import_module("anthropic._models").construct_type)
_KINDS: Final = (anthropic.Stream, anthropic.AsyncStream)
_AWS: Final = "AWSEventStreamDecoder"
_DECODERS: Final = frozenset({*SSE_DECODERS, _AWS})
"""Names of the SDK's framings that are read here."""

_FACTS: Final = Facts(
    ("container", "stop_details"), (), frozenset({"input_tokens"}), frozenset({"total_tokens"})
)

_EVENTS: Final[tuple[object, ...]] = (RawMessageStreamEvent, BetaRawMessageStreamEvent)


@overload
def events(
    stream: Iterable[RawMessageStreamEvent],
) -> ObjectStream[RawMessageStreamEvent]: ...
@overload
def events(
    stream: AsyncIterable[RawMessageStreamEvent],
) -> AsyncObjectStream[RawMessageStreamEvent]: ...
def events(
    stream: Iterable[RawMessageStreamEvent] | AsyncIterable[RawMessageStreamEvent],
) -> ObjectStream[RawMessageStreamEvent] | AsyncObjectStream[RawMessageStreamEvent]:
    """Return the events of a stream of Messages.

    >>> stream = client.messages.create(
    ...     model="claude-opus-5-5", max_tokens=1024, messages=messages, stream=True
    ... )
    >>> for event in deltafold.compat.anthropic.events(stream):
    ...     print(event.type)

    The iteration raises the exceptions of the SDK. `anthropic.APIConnectionError` is also raised if
    the body ends before the stream does; its `__cause__` is a `ModelError` with the partial
    message. An iterable of events that something else has made passes unchanged; a cut of it raises
    nothing.

    Args:
        stream: what `create(stream=True)` returned; nothing has read it.

    Raises:
        MisuseError: the stream was read in part, its client validates strictly, or the client
            frames events in a way of its own.
    """
    return opened(stream, _KINDS, _DECODERS, _reading, "anthropic-messages")


def accelerate(client: ClientT) -> ClientT:
    """Make the streams of a client yield the objects of `events`; return the client.

    The helper `messages.stream()` is faster, too. All other calls are unchanged, and so are copies
    of the client (`with_options`) and raw responses.

    >>> client = deltafold.compat.anthropic.accelerate(anthropic.Anthropic())
    """
    with_faster_streams(client, _KINDS, _DECODERS, _reading_of)
    return client


def message(message: "data_types.Message") -> Message:
    """Return a folded message as the `Message` that the SDK's own helper would have built.

    It has the provider's own counts.

    >>> deltafold.compat.anthropic.message(message).content

    Raises:
        MisuseError: the message is not an answer, or the protocol has an error in its place.
    """
    body = final_body(message, "anthropic-messages", _FACTS)
    return cast("Message", builder_of(Message, _CONSTRUCT)(body))


def _reading(stream: Any) -> "_Reading[RawMessageStreamEvent]":  # noqa: ANN401 - as below
    """Return the reading of a stream."""
    return _class_of(stream)(stream, reports=True)


def _class_of(stream: Any) -> "type[_Reading[Any]]":  # noqa: ANN401 - as below
    """Return the class that reads the framing of a stream."""
    return _BedrockReading if type(stream._decoder).__name__ == _AWS else _Reading


def _reading_of(stream: Any) -> "_Reading[object] | None":  # noqa: ANN401 - its members are read
    """Return the reading of a stream whose objects are known."""
    # The stream itself reports the items of an iterator that it holds.
    return _class_of(stream)(stream, reports=False) if stream._cast_to in _EVENTS else None


class _Reading(Reading[ObjectT]):
    dialect: "data_types.ProtocolName" = "anthropic-messages"

    def __init__(self, stream: Any, *, reports: bool) -> None:  # noqa: ANN401 - its members are read
        super().__init__(self.dialect)
        self._response = stream.response
        self._client = stream._client
        self._build = builder_of(stream._cast_to, _CONSTRUCT)
        # The SDK's tracing, if the application uses it.
        self._observer: Any = getattr(
            getattr(self._response, "stream", None), "stream_observer", None
        )
        self._reports = reports and self._observer is not None

    def begin(self) -> None:
        if self._observer is not None:
            self._observer.begin()

    def end(self, failure: Exception | None) -> None:
        if self._observer is None:
            return
        if failure is None:
            self._observer.end("read")
        else:
            self._observer.end("failed", failure)

    def read(self, event: bytes, data: bytes) -> ObjectT | Skipped:
        if event == b"ping":
            return SKIPPED
        if event == b"error":
            raise self._error(data)
        if not event and data.startswith(DONE):
            # Of gateways; the SDK skips it, too.
            return SKIPPED
        value = parse_json(data)
        if not event:
            kind = member(value, "type")
            if kind == "error":
                raise self._error(data)
            if kind is None or kind == "ping":
                return SKIPPED
        return self._object(value)

    def _object(self, value: object) -> ObjectT:
        found = cast("ObjectT", None if value is None else self._build(value))
        if self._reports:
            self._observer.item(found)
        return found

    def cut(self, error: ModelError) -> Exception:
        return sdk_exception(error, "anthropic", shown_url(str(self._response.request.url)))

    def _error(self, data: bytes) -> Exception:
        body: object = data.decode()
        try:
            body = parse_json(data)
        except ValueError:
            message = str(body)
        else:
            message = f"{body}"
        error: Exception = self._client._make_status_error(
            message, body=body, response=self._response
        )
        return error


class _BedrockReading(_Reading[ObjectT]):
    """Reading of `AnthropicBedrock`: each frame has a chunk, whose bytes are an event in base64."""

    dialect = "bedrock-invoke"
    framing = "aws-event-stream"

    def read(self, event: bytes, data: bytes) -> ObjectT | Skipped:
        if event.startswith(b":"):
            raise self._error(_refused(event[1:], data))
        content = member(parse_json(data), "bytes") if event == b"chunk" else None
        if not isinstance(content, str):
            return SKIPPED
        inner = b64decode(content)
        value = parse_json(inner)
        kind = member(value, "type")
        if kind == "error":
            raise self._error(inner)
        # A chunk without a type is one of the old Text Completions, or no event.
        known = kind != "ping" if isinstance(kind, str) else member(value, "completion") is not None
        return self._object(value) if known or not isinstance(value, dict) else SKIPPED


def _refused(code: bytes, data: bytes) -> bytes:
    """Return the event `error` for an exception of Bedrock."""
    body = parse_json(data) if data else None
    message = member(body, "Message") or member(body, "message") or ""
    error = {"type": code.decode(errors="replace"), "message": message}
    return json.dumps({"type": "error", "error": error}).encode()
