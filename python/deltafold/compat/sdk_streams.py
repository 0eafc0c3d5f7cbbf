"""Streams and clients of the SDKs that come from the generator of openai's and anthropic's.

In: a `Stream` or `AsyncStream` of such an SDK, or its client.  Out: our streams over the same
response, or the same client with faster streams.

Laws: no SDK is imported here: the members that both SDKs have are read. A stream that only its SDK
can read is refused, or left as it is.
"""

from collections.abc import (
    AsyncIterable,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Mapping,
)
from contextlib import suppress
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar, cast

from deltafold.compat.object_streams import (
    AsyncObjectStream,
    ObjectStream,
    PassedObjects,
    Reading,
    async_objects_of,
    objects_of,
)
from deltafold.contract.exceptions import MisuseError
from deltafold.message import data_types
from deltafold.transports.responses import async_source_of, source_of

ObjectT = TypeVar("ObjectT")

_READING: Final = "_deltafold_reading"
"""Attribute of an SDK's stream, whose iterator this module has replaced."""

SSE_DECODERS: Final = frozenset({"SSEDecoder"})
"""Names of the classes that frame server-sent events in both SDKs."""


def opened(
    stream: object,
    kinds: tuple[type, type],
    decoders: Container[str],
    read: Callable[[Any], Reading[ObjectT]],
    dialect: str,
) -> ObjectStream[ObjectT] | AsyncObjectStream[ObjectT]:
    """Return the stream of objects over an SDK's stream.

    Args:
        stream: the stream, which nothing has read; or other objects, which pass unchanged.
        kinds: the two classes of streams of the SDK.
        decoders: names of the SDK's framings that `read` knows.
        read: makes the reading of the stream.
        dialect: the wire protocol of the objects.

    Raises:
        MisuseError: only the SDK can read the stream, or it was read in part.
    """
    if not isinstance(stream, kinds) and _holds_objects(stream):
        passed = PassedObjects[ObjectT](dialect)
        if isinstance(stream, AsyncIterable):
            return AsyncObjectStream(passed, async_source_of(cast("object", stream)))
        return ObjectStream(passed, source_of(stream))
    if not isinstance(stream, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise MisuseError(f"`stream` must be a {names} of the SDK, not {type(stream).__name__}")
    reason = _refusal(stream, decoders)
    if reason is not None:
        raise MisuseError(f"{reason}: iterate this stream itself")
    if isinstance(stream, AsyncIterable):
        return AsyncObjectStream(read(stream), async_source_of(cast("object", stream)))
    return ObjectStream(read(stream), source_of(stream))


def with_faster_streams(
    client: object,
    kinds: tuple[type, type],
    decoders: Container[str],
    reading_of: Callable[[Any], Reading[object] | None],
) -> None:
    """Give the streams that a client opens a faster iterator.

    Args:
        client: the client, whose method `request` is replaced.
        kinds: the two classes of streams of the SDK.
        decoders: names of the SDK's framings that `read` knows.
        reading_of: makes the reading of a stream; None for a stream to leave as it is.
    """
    held: Any = client
    request: Any = held.request

    def faster(result: object) -> object:
        if isinstance(result, kinds) and _refusal(result, decoders) is None:
            reading = reading_of(result)
            if reading is not None:
                _make_faster(result, reading)
        return result

    def send(*arguments: object, **options: object) -> object:
        return faster(request(*arguments, **options))

    async def asend(*arguments: object, **options: object) -> object:
        return faster(await cast("Awaitable[object]", request(*arguments, **options)))

    held.request = asend if iscoroutinefunction(request) else send


def _make_faster(stream: object, reading: Reading[object]) -> None:
    """Give a stream of an SDK our iterator, which ends when the stream is closed."""
    held: Any = stream
    close = held.close
    if isinstance(stream, AsyncIterable):
        awaited = async_objects_of(reading, async_source_of(cast("object", stream)))

        async def aclose() -> None:
            if reading.begun:
                with suppress(RuntimeError):  # another task reads
                    await awaited.aclose()
            await close()

        held._iterator, held.close = awaited, aclose
    else:
        objects = objects_of(reading, source_of(stream))

        def closed() -> None:
            if reading.begun:
                with suppress(ValueError):  # another thread reads
                    objects.close()
            close()

        held._iterator, held.close = objects, closed
    setattr(held, _READING, reading)


def message_of(stream: object) -> "data_types.Message":
    """Return the message of everything that a stream has received so far.

    The stream is one of an accelerated client, the helper that its SDK makes of one, or what
    `chunks`, `events` and `frames` (with a dialect) return. The message has the usage, the warnings
    and the calls. Ask it for calls to run after the end alone: only the end of an answer tells
    whether it was whole. A stream that failed, or was closed before its end, has none.

    >>> client = deltafold.compat.openai.accelerate(openai.OpenAI())
    >>> stream = client.chat.completions.create(model="gpt-5.6-terra", messages=[], stream=True)
    >>> for chunk in stream:
    ...     ...
    >>> deltafold.compat.message_of(stream).runnable_tool_calls

    Raises:
        TypeError: the stream is none of these.
    """
    for holder in (stream, getattr(stream, "_raw_stream", None)):
        if isinstance(holder, ObjectStream | AsyncObjectStream):
            return holder.message
        reading = getattr(holder, _READING, None)
        if isinstance(reading, Reading) and reading.fold is not None:
            return reading.fold.snapshot()
    name = type(stream).__qualname__
    raise TypeError(f"the {name} is no stream of a client that compat has accelerated")


def _holds_objects(stream: object) -> bool:
    """Return whether an object is an iterable of objects, as opposed to a body or one object."""
    is_other = isinstance(stream, str | bytes | bytearray | memoryview | Mapping)
    is_response = any(
        hasattr(stream, name) for name in ("iter_bytes", "aiter_bytes", "iter_content")
    )
    is_model = hasattr(type(stream), "model_fields")
    return isinstance(stream, Iterable | AsyncIterable) and not (
        is_other or is_response or is_model
    )


def _refusal(stream: object, decoders: Container[str]) -> str | None:
    """Return the reason why only the SDK can read a stream."""
    held: Any = stream
    if held._client._strict_response_validation:
        return "the client validates strictly"
    if type(held._decoder).__name__ not in decoders:
        return "the client frames its events itself"
    return None
