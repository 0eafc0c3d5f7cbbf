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
from functools import partial
from inspect import getattr_static, iscoroutinefunction
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
from deltafold.transports.followed import has_foreign_iterator, is_wrapped
from deltafold.transports.responses import async_source_of, http_response, source_of
from deltafold.transports.sources import AsyncSource, Source

ObjectT = TypeVar("ObjectT")

_READING: Final = "_deltafold_reading"
"""Attribute of an SDK's stream, whose iterator this module has replaced."""

_OK: Final = 200

SSE_DECODERS: Final = frozenset({"SSEDecoder"})
"""Names of the classes that frame server-sent events in both SDKs."""


def opened(
    stream: object,
    kinds: tuple[type, type],
    decoders: Container[str],
    read: Callable[[Any], Reading[ObjectT]],
    dialect: "data_types.ProtocolName",
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
        return _passed(stream, dialect)
    if not isinstance(stream, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise MisuseError(f"`stream` must be a {names} of the SDK, not {type(stream).__name__}")
    reason = _refusal(stream, decoders)
    if reason is not None:
        raise MisuseError(f"{reason}: iterate this stream itself")
    is_async = isinstance(stream, kinds[1])
    if is_wrapped(stream):
        return _passed(stream, dialect)  # an instrumentor sees the objects of the SDK
    if is_async:
        return AsyncObjectStream(read(stream), async_source_of(stream))
    return ObjectStream(read(stream), source_of(stream))


def _passed(
    stream: object, dialect: "data_types.ProtocolName"
) -> ObjectStream[Any] | AsyncObjectStream[Any]:
    """Return the stream of objects that something else has made."""
    passed = PassedObjects[Any](dialect)
    body = http_response(stream)
    if body is not stream:
        # A wrapper of an SDK's stream: its objects are wanted, not the bytes below.
        made, response = cast("Any", stream), cast("Any", body)
        if isinstance(getattr(body, "stream", None), AsyncIterable):
            close = getattr(made, "close", response.aclose)
            return AsyncObjectStream(passed, AsyncSource(aiter(made), close, _OK, {}))
        close = getattr(made, "close", response.close)
        return ObjectStream(passed, Source(iter(made), close, _OK, {}))
    if isinstance(stream, AsyncIterable):
        return AsyncObjectStream(passed, async_source_of(cast("object", stream)))
    return ObjectStream(passed, source_of(stream))


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
    given: Any = held.request
    is_own = "request" not in vars(client)

    def request(*arguments: object, **options: object) -> object:
        if not is_own:
            return given(*arguments, **options)
        # An instrumentor may have replaced the method of the class since.
        method = getattr_static(type(client), "request").__get__(client, type(client))
        return method(*arguments, **options)

    def faster(result: object) -> object:
        stream = _unwrapped(result, kinds)
        if stream is not None and _refusal(stream, decoders) is None:
            reading = reading_of(stream)
            if reading is not None:
                _make_faster(stream, kinds, reading)
        return result

    def send(*arguments: object, **options: object) -> object:
        return faster(request(*arguments, **options))

    async def asend(*arguments: object, **options: object) -> object:
        return faster(await cast("Awaitable[object]", request(*arguments, **options)))

    held.request = asend if iscoroutinefunction(given) else send


def _unwrapped(result: object, kinds: tuple[type, type]) -> object | None:
    """Return the stream of an SDK, which a proxy may hold; None for other objects."""
    while result is not None and not issubclass(type(result), kinds):
        result = getattr(result, "__wrapped__", None)
    return result


def _make_faster(stream: object, kinds: tuple[type, type], reading: Reading[object]) -> None:
    """Give a stream of an SDK our iterator, which ends when the stream is closed."""
    held: Any = stream
    close = held.close
    is_async = issubclass(type(stream), kinds[1])
    objects: Any
    if is_async:
        objects = async_objects_of(reading, partial(async_source_of, stream))
    else:
        objects = objects_of(reading, partial(source_of, stream))
    if not _installed(held, kinds[1] if is_async else kinds[0], objects):
        return
    if is_async:

        async def aclose() -> None:
            if reading.begun:
                with suppress(RuntimeError):  # another task reads
                    await held._iterator.aclose()
                    await objects.aclose()
            await close()

        held.close = aclose
    else:

        def closed() -> None:
            if reading.begun:
                with suppress(ValueError):  # another thread reads
                    held._iterator.close()
                    objects.close()
            close()

        held.close = closed
    setattr(held, _READING, reading)


def _installed(stream: Any, kind: type, objects: object) -> bool:  # noqa: ANN401 - of any SDK
    """Let a stream iterate our objects, below what a subclass does with them.

    Return False for a stream that is left as it is, because its iterator is not the SDK's, or its
    class cannot be changed.
    """
    given = cast("Any", type(stream))
    if has_foreign_iterator(stream):
        return False
    if given.__stream__ is cast("Any", kind).__stream__:
        stream._iterator = objects
        return True

    # An instrumentor reads `super().__stream__()`: a class between the two is the next one there.
    def made(_: object) -> object:
        return objects

    between = type(kind.__name__, (kind,), {"__stream__": made})
    try:
        stream.__class__ = type(given.__name__, (given, between), {"__module__": given.__module__})
    except TypeError:
        return False
    return True


def message_of(stream: object) -> "data_types.Message":
    """Return the message of everything that a stream has received so far.

    The stream is one of an accelerated client, the helper that its SDK makes of one, or what
    `chunks`, `events` and `frames` (with a dialect) return. The message has the usage, the warnings
    and the calls. Ask it for calls to run after the end alone: only the end of an answer tells
    whether it was whole. A stream that failed, or was closed before its end, has none.

    >>> client = deltafold.compat.openai.accelerate(openai.OpenAI())
    >>> stream = client.chat.completions.create(
    ...     model="gpt-5.6-terra", messages=[], stream=True
    ... )
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
