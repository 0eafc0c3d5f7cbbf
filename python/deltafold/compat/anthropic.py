"""anthropic's own events, from the bytes under anthropic's own stream.

In: an `anthropic.Stream` or `anthropic.AsyncStream` that was not read.  Out: the objects that its
iteration yields, and the exceptions that it raises.

Laws: those of `builders.py` and `reading.py`. The SDK keeps the request, its retries and its
authentication. An event without a line `event:` has the name of its `type`, where the SDK skips it.
Source: `anthropic/_streaming.py` of anthropic 2.12.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final, TypeVar, cast, overload

import anthropic
from anthropic.types import RawMessageStreamEvent
from anthropic.types.beta import BetaRawMessageStreamEvent

from deltafold.compat.builders import Construct, builder_of
from deltafold.compat.reading import (
    DONE,
    AsyncObjectStream,
    ObjectStream,
    Reading,
    member,
    parse_json,
)
from deltafold.compat.sdk_streams import opened, with_faster_streams
from deltafold.contract import ErrorCode
from deltafold.errors import ModelError

__all__ = ["accelerate", "events"]

ObjectT = TypeVar("ObjectT")
ClientT = TypeVar("ClientT", anthropic.Anthropic, anthropic.AsyncAnthropic)

# A private name of the SDK, and the only one that makes its objects.
_CONSTRUCT: Final = Construct(import_module("anthropic._models").construct_type)
_KINDS: Final = (anthropic.Stream, anthropic.AsyncStream)
_EVENTS: Final[tuple[object, ...]] = (RawMessageStreamEvent, BetaRawMessageStreamEvent)


@overload
def events(
    stream: anthropic.Stream[RawMessageStreamEvent],
) -> ObjectStream[RawMessageStreamEvent]: ...
@overload
def events(
    stream: anthropic.AsyncStream[RawMessageStreamEvent],
) -> AsyncObjectStream[RawMessageStreamEvent]: ...
def events(
    stream: anthropic.Stream[RawMessageStreamEvent] | anthropic.AsyncStream[RawMessageStreamEvent],
) -> ObjectStream[RawMessageStreamEvent] | AsyncObjectStream[RawMessageStreamEvent]:
    """Return the events of a stream of Messages.

    >>> stream = client.messages.create(
    ...     model="claude-opus-4-5", max_tokens=1024, messages=messages, stream=True
    ... )
    >>> for event in deltafold.compat.anthropic.events(stream):
    ...     print(event.type)

    The iteration raises the exceptions of the SDK. `anthropic.APIConnectionError` is also raised if
    the body ends before the stream does; its `__cause__` is a `ModelError` with the partial
    message.

    Args:
        stream: what `create(stream=True)` returned; nothing has read it.

    Raises:
        MisuseError: the stream was read in part, its client validates strictly, or the client
            frames events itself (`AnthropicBedrock`).
    """
    return opened(stream, _KINDS, _Reading[RawMessageStreamEvent])


def accelerate(client: ClientT) -> ClientT:
    """Make the streams of a client yield the objects of `events`; return the client.

    The helper `messages.stream()` is faster, too. All other calls are unchanged, and so are copies
    of the client (`with_options`) and raw responses.

    >>> client = deltafold.compat.anthropic.accelerate(anthropic.Anthropic())
    """
    with_faster_streams(client, _KINDS, _reading_of)
    return client


def _reading_of(stream: Any) -> "_Reading[object] | None":  # noqa: ANN401 - its members are read
    """Return the reading of a stream whose objects are known."""
    # The stream itself reports the items of an iterator that it holds.
    return _Reading(stream, reports=False) if stream._cast_to in _EVENTS else None


class _Reading(Reading[ObjectT]):
    def __init__(self, stream: Any, *, reports: bool = True) -> None:  # noqa: ANN401 - its members are read
        super().__init__("anthropic-messages")
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

    def read(self, event: bytes, data: bytes) -> Iterator[ObjectT]:
        if event == b"ping":
            return
        if event == b"error":
            raise self._error(data)
        if not event and data.startswith(DONE):
            # Of gateways; the SDK skips it, too.
            return
        value = parse_json(data)
        if not event:
            kind = member(value, "type")
            if kind == "error":
                raise self._error(data)
            if kind is None or kind == "ping":
                return
        found = cast("ObjectT", None if value is None else self._build(value))
        if self._reports:
            self._observer.item(found)
        yield found

    def cut(self, error: ModelError) -> Exception:
        request = self._response.request
        if error.code is ErrorCode.CONNECTION_LOST:
            return anthropic.APIConnectionError(message=error.message, request=request)
        return anthropic.APIError(error.message, request, body=error.body)

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
