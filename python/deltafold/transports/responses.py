"""Responses of other clients as sources of byte chunks.

In: a response of an SDK (openai's and anthropic's raw, streaming and `Stream` objects, mistralai's
streams, answers of boto3 and aiobotocore), of httpx, httpx2, requests or aiohttp, or plain bytes in
any iterable.  Out: `Source` or `AsyncSource`: chunks, status, headers, close.

Laws: nothing is imported to recognise an object; its attributes decide. Bytes pass through
unchanged, in their original pieces. Nothing is read before it is requested.
"""

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import chain
from time import monotonic
from types import FunctionType, GeneratorType, MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeGuard, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.transports.deadlines import RestWithin
from deltafold.transports.encodings import decoded
from deltafold.transports.event_streams import event_stream_body, streamed_member
from deltafold.transports.headers import header_text, raw_headers
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.unready import (
    FED,
    is_line_iterator,
    is_mocked_iterator,
    refuse_begun,
    refuse_unready,
    was_given,
)

if TYPE_CHECKING:
    from deltafold.transports.timeouts import LimitsAndWatch, ReadChunk

_HTTP_STATUSES = range(100, 1000)

_OK: Final = 200

_HTTPX: Final = {"httpx": "httpx._models", "httpx2": "httpx2._models"}
"""The module that a class of responses names, and the module of its methods."""

_SHARED_CONNECTION: Final = b"HTTP/2"
"""The `http_version` of httpx for a response that shares its connection with others."""

_READ_BYTES: Final = 64 * 1024
"""Most bytes of one read of aiohttp, which by itself returns all that it holds."""

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})

_BUILT_IN: Final = frozenset(
    {
        GeneratorType,
        chain,
        list,
        map,
        tuple,
        type(iter(())),
        type(iter([])),
    }
)
"""Types that hold or yield chunks, and nothing else."""


def _nothing() -> None:
    """Do nothing: plain chunks need no closing."""


async def _nothing_async() -> None:
    """Do nothing: plain chunks need no closing."""


class _SyncBody(Protocol):
    def iter_bytes(self) -> Iterator[bytes]: ...
    def close(self) -> object: ...


class _AsyncBody(Protocol):
    def aiter_bytes(self) -> AsyncIterator[bytes]: ...
    def aclose(self) -> Awaitable[object]: ...


class _SyncHttpxBody(_SyncBody, Protocol):
    @property
    def is_stream_consumed(self) -> bool: ...
    def iter_raw(self) -> Iterator[bytes]: ...


class _AsyncHttpxBody(_AsyncBody, Protocol):
    @property
    def is_stream_consumed(self) -> bool: ...
    @property
    def stream(self) -> AsyncIterable[bytes]: ...
    def aiter_raw(self) -> AsyncIterator[bytes]: ...


class _RequestsBody(Protocol):
    def iter_content(self, chunk_size: int | None) -> Iterator[bytes]: ...
    def close(self) -> object: ...


class _AiohttpContent(Protocol):
    total_bytes: int

    def iter_any(self) -> AsyncIterator[bytes]: ...
    def read(self, n: int) -> Awaitable[bytes]: ...
    def readany(self) -> Awaitable[bytes]: ...


class AiohttpBody(Protocol):
    """A response of aiohttp; `total_bytes` and `read` are needed only where limits are given."""

    @property
    def content(self) -> _AiohttpContent:
        """The body."""
        ...

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...


def _is_sync_body(response: object) -> TypeGuard[_SyncBody]:
    return hasattr(response, "iter_bytes") and hasattr(response, "close")


def _is_async_body(response: object) -> TypeGuard[_AsyncBody]:
    return hasattr(response, "aiter_bytes") and hasattr(response, "aclose")


def _reads_raw_bytes(response: _SyncBody) -> TypeGuard[_SyncHttpxBody]:
    """Return whether `iter_bytes` is httpx's own and would return what `iter_raw` returns.

    A subclass, a proxy or a patch of the caller may count, log or redact the bytes in `iter_bytes`.
    """
    kind, members = type(response), getattr(response, "__dict__", {})
    module = _HTTPX.get(kind.__module__)
    if module is None or "iter_bytes" in members or "_content" in members:
        return False
    method: object = kind.iter_bytes
    # A wrapper of another type may pass on the attributes of the function inside.
    is_own = type(method) is FunctionType and method.__globals__.get("__name__") == module
    return is_own and not cast("_SyncHttpxBody", response).is_stream_consumed


def _is_async_httpx_body(response: object) -> TypeGuard[_AsyncHttpxBody]:
    return hasattr(response, "is_stream_consumed") and hasattr(response, "aiter_raw")


def _is_requests_body(response: object) -> TypeGuard[_RequestsBody]:
    return hasattr(response, "iter_content") and hasattr(response, "close")


def http_response(response: object) -> object:
    """Return the HTTP response inside an SDK's object, else the object itself."""
    for holder in ("http_response", "response", "_response"):  # the last: openai's helpers
        inner = cast("object | None", getattr(response, holder, None))
        if _is_sync_body(inner) and was_given(response, holder):
            return inner
    return response


def is_sdk_response(response: object) -> bool:
    """Return whether an object of an SDK has the response with the bytes of its events."""
    return http_response(response) is not response or streamed_member(response) is not response


def source_of(response: object) -> Source:
    """Return the source that reads `response`.

    Raises:
        MisuseError: the body can only be awaited, was read in part, or is not opened yet.
        TypeError: the object holds no bytes.
    """
    if type(response).__module__ in _HTTPX and _is_sync_body(response):
        # Most responses are of httpx, and none of the other forms.
        refuse_begun(response, "stream")
        if _offers(response, "__iter__"):
            return _source_of_sync_httpx(response)
    events = event_stream_body(response)
    if events is not None:
        if events.is_awaited:
            raise MisuseError("the body of this AioEventStream is asynchronous: use astream()")
        chunks = cast("Iterator[bytes]", events.raw.stream())
        rest = rest_of_urllib3(events.raw)
        return Source(chunks, events.close, events.status, events.headers, rest)
    if is_mocked_iterator(response):
        response = iter(cast("Iterable[bytes]", response))
    response = streamed_member(response)
    body = http_response(response)
    # An SDK's object with a status has received its response.
    if body is response or not hasattr(type(response), "status_code"):
        refuse_unready(response, "stream")
    response = body
    refuse_begun(response, "stream")
    if _is_sync_body(response) and _offers(response, "__iter__"):
        return _source_of_sync_httpx(response)
    name = type(response).__qualname__
    if _is_requests_body(response):
        chunks = response.iter_content(None)
        rest = rest_of_urllib3(getattr(response, "raw", None))
        return Source(chunks, response.close, _status(response), _headers(response), rest)
    if _is_awaited(response):
        raise MisuseError(f"the body of this {name} is asynchronous: use astream()")
    plain = _plain_chunks(response)
    close = cast("Callable[[], object]", getattr(plain, "close", _nothing))
    return Source(plain, close, _status(response), _headers(response), lines=True)


def _source_of_sync_httpx(response: _SyncBody) -> Source:
    headers, extensions = _headers(response), _extensions(response)
    connection, rest = extensions.get("network_stream"), None
    if connection is not None and extensions.get("http_version") != _SHARED_CONNECTION:
        rest = partial(RestWithin, connection)
    is_plain = connection is not None and _encoding(headers) == "identity"
    if is_plain and _reads_raw_bytes(response):
        chunks = response.iter_raw()  # without the generator that decompresses
    else:
        chunks = response.iter_bytes()
    return Source(chunks, response.close, _status(response), headers, rest)


def plain_chunks(chunks: object) -> Iterator[bytes] | None:
    """Return the chunks of bytes or of a built-in iterable; None for other objects."""
    kind = type(chunks)
    if kind in _BUILT_IN and not is_line_iterator(chunks):
        return iter(cast("Iterable[bytes]", chunks))
    return iter((cast("bytes", chunks),)) if kind is bytes else None


def source_of_chunks(chunks: Iterator[bytes]) -> Source | None:
    """Return the source of built-in chunks; None if there is nothing to close."""
    close = cast("Callable[[], object] | None", getattr(chunks, "close", None))
    return None if close is None else Source(chunks, close, _OK, _NO_HEADERS, lines=True)


def async_source_of(response: object) -> AsyncSource:
    """Return the source that awaits `response`; plain iterables of bytes are accepted too.

    Raises:
        MisuseError: the body can only be read by blocking, was read in part, or is not opened yet.
        TypeError: the object does not yield bytes.
    """
    if type(response).__module__ in _HTTPX and _is_async_body(response):
        refuse_begun(response, "astream")
        if _offers(response, "__aiter__"):
            return source_of_httpx(response)
    events = event_stream_body(response)
    if events is not None:
        if not events.is_awaited:
            raise MisuseError("the body of this EventStream is synchronous: use stream()")
        source = async_source_of(events.raw)
        source.status, source.headers = events.status, events.headers
        return source
    response = streamed_member(response)
    if is_mocked_iterator(response):
        mocked = aiter(cast("AsyncIterable[bytes]", response))
        return AsyncSource(mocked, _nothing_async, _OK, _NO_HEADERS, lines=True)
    refuse_unready(response, "astream")
    response = http_response(response)
    refuse_begun(response, "astream")
    name = type(response).__qualname__
    if _is_async_body(response) and _offers(response, "__aiter__"):
        return source_of_httpx(response)
    if _is_blocking(response):
        raise MisuseError(f"the body of this {name} is synchronous: use stream()")
    content = cast("object | None", getattr(response, "content", None))
    if hasattr(content, "iter_any"):  # aiohttp
        return source_of_aiohttp(cast("AiohttpBody", response))
    status, headers = _status(response), _headers(response)
    if isinstance(response, AsyncIterable):
        chunks = aiter(cast("AsyncIterable[bytes]", response))
    else:
        chunks = _awaited(_plain_chunks(response))
    closing = _closing(chunks, _nothing_async)
    return AsyncSource(chunks, closing, status, headers, lines=True)


def source_of_httpx(response: object, timed: "LimitsAndWatch | None" = None) -> AsyncSource:
    """Return the source that awaits a response of httpx or httpx2, or of a client like them.

    Args:
        response: the response.
        timed: the limits that the chunks obey, None for no limits. If they are given, the response
            must have no other reader. The caller sets `AsyncSource.limits`.
    """
    # httpx reads this body from a connection.
    is_read = "network_stream" in _extensions(response) and not hasattr(response, FED)
    if is_read and _is_async_httpx_body(response):
        source = _source_of_connection(response, is_own=timed is not None)
    else:
        body = cast("_AsyncBody", response)
        chunks = body.aiter_bytes()
        close, over_connection = _closing(chunks, body.aclose), _connection(response) is not None
        status, headers = _status(response), _headers(response)
        source = AsyncSource(chunks, close, status, headers, over_connection)
    if timed is not None:
        source.chunks = _limited(source.chunks.__anext__, timed)
    return source


def source_of_aiohttp(response: AiohttpBody, timed: "LimitsAndWatch | None" = None) -> AsyncSource:
    """Return the source that awaits a response of aiohttp.

    Args:
        response: the response.
        timed: the limits that the chunks obey, None for no limits. The caller sets
            `AsyncSource.limits`.
    """
    content = response.content
    if timed is None:
        chunks = content.iter_any()
    else:
        # aiohttp returns all bytes that came with the headers faster than a limited number of them.
        has_come = 0 < content.total_bytes <= _READ_BYTES
        first = content.readany if has_come else None
        chunks = _limited(partial(content.read, _READ_BYTES), timed, first, ends_empty=True)

    async def close() -> None:
        # At the end of its body it has given its connection back, and is closed.
        if not getattr(response, "closed", False):
            cast("Callable[[], object]", getattr(response, "close", _nothing))()

    raw = getattr(response, "raw_headers", None)
    return AsyncSource(
        chunks,
        close,
        response.status,
        raw_headers(raw) or _headers(response),
        over_connection=True,
        is_over=getattr(content, "at_eof", None),
    )


def _limited(
    read: "ReadChunk",
    timed: "LimitsAndWatch",
    first: "ReadChunk | None" = None,
    *,
    ends_empty: bool = False,
) -> AsyncIterator[bytes]:
    """Return chunks within limits."""
    # The module imports asyncio, which synchronous programs do not need.
    from deltafold.transports.timeouts import AsyncTimedChunks  # noqa: PLC0415 - as said

    return AsyncTimedChunks(read, *timed, first, ends_empty=ends_empty)


def _offers(response: object, method: str) -> bool:
    """Return whether an httpx response's byte stream can be read this way."""
    stream = cast("object | None", getattr(response, "stream", None))
    return stream is None or callable(stream) or hasattr(stream, method)


def _is_async_iterable(response: object) -> bool:
    return isinstance(response, AsyncIterable)


def _is_blocking(response: object) -> bool:
    """Return whether a body can only be read by blocking."""
    blocking = _is_sync_body(response) or _is_requests_body(response)
    return blocking and not _is_async_iterable(response)


def _is_awaited(response: object) -> bool:
    """Return whether a body can only be awaited; a body with both iterators can also be read."""
    if isinstance(response, Iterable):
        return False
    return _is_async_body(response) or _is_async_iterable(response) or hasattr(response, "content")


def _plain_chunks(body: object) -> Iterator[bytes]:
    name = type(body).__qualname__
    if isinstance(body, bytes | bytearray | memoryview):
        return iter((bytes(cast("bytes", body)),))
    if isinstance(body, Iterable) and not isinstance(body, str | Mapping):
        chunks = iter(cast("Iterable[bytes]", body))
        # An iterator without `__iter__` is wrong, but `next` reads it.
        return chunks if hasattr(chunks, "__iter__") else iter(chunks.__next__, None)
    raise TypeError(f"the source must be bytes or an iterable of bytes, not {name}")


async def _awaited(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def _closing(
    chunks: AsyncIterator[bytes], close: Callable[[], Awaitable[object]]
) -> Callable[[], Awaitable[None]]:
    """Close the iterator, which the collector would do too late, then the body."""

    async def close_both() -> None:
        try:
            finish = cast("Callable[[], Awaitable[object]] | None", getattr(chunks, "aclose", None))
            if finish is not None:
                await finish()
        finally:
            await close()

    return close_both


def _extensions(response: object) -> Mapping[str, object]:
    extensions = cast("object", getattr(response, "extensions", None))
    return cast("Mapping[str, object]", extensions) if isinstance(extensions, Mapping) else {}


def _connection(response: object) -> object | None:
    """Return the stream of the connection, if it serves this response alone.

    A response of HTTP/2 shares its connection, which stays open when the response is closed early.
    """
    extensions = _extensions(response)
    if extensions.get("http_version") == _SHARED_CONNECTION:
        return None
    return extensions.get("network_stream")


def rest_of_urllib3(response: object) -> Callable[[float], AbstractContextManager[None]] | None:
    """Return the bound on reads of a urllib3 response's rest, as `Source.rest`."""
    connection = getattr(getattr(response, "connection", None), "sock", None)
    set_limit = cast("Callable[[float], object] | None", getattr(connection, "settimeout", None))
    if set_limit is None:
        return None

    @contextmanager
    def rest(until: float) -> Generator[None]:
        # urllib3 sets the limit anew for each request.
        set_limit(max(until - monotonic(), 0.001))
        yield

    return rest


def _source_of_connection(response: _AsyncHttpxBody, *, is_own: bool) -> AsyncSource:
    """Return the source that closes the body and then ends all that was reading it.

    httpx reads through generators inside of generators.  To close the outermost leaves the others
    to the collector, which warns under trio and starts a task under asyncio.  An exception from
    within ends all of them: to read on in a scope that is cancelled raises one, after a few chunks
    at most that had come already.
    """
    headers = _headers(response)
    encoding = _encoding(headers)
    # httpx's decoder is one of its generators. An invalid gzip body would leave the inner ones
    # open.
    raw = not response.is_stream_consumed and encoding in {"gzip", "x-gzip", "identity"}
    if not raw:
        chunks = response.aiter_bytes()
    elif is_own:
        # Without the generator that marks the response as read.
        chunks = aiter(response.stream)
    else:
        chunks = response.aiter_raw()

    async def close() -> None:
        try:
            await response.aclose()
        finally:
            # A generator without a frame has ended, and so has all that it was reading.
            if not raw or getattr(chunks, "ag_frame", chunks) is not None:
                await _ended(chunks)

    body = decoded(chunks, encoding) if raw else chunks
    over_connection = _connection(response) is not None
    return AsyncSource(body, close, _status(response), headers, over_connection)


async def _ended(chunks: AsyncIterator[bytes]) -> None:
    """End generators by a cancellation from within."""
    with cast("_AnyIO", import_module("anyio")).CancelScope() as scope, suppress(Exception):
        scope.cancel()
        async for _ in chunks:
            pass


class _CancelScope(Protocol):
    def cancel(self) -> None: ...


class _AnyIO(Protocol):
    """Used part of anyio, which httpx installs."""

    def CancelScope(self) -> AbstractContextManager[_CancelScope]: ...  # noqa: N802 - anyio's name


def _status(response: object) -> int:
    status = cast("object | None", getattr(response, "status_code", None))
    if status is None:
        status = cast("object | None", getattr(response, "status", None))
    return status if isinstance(status, int) and status in _HTTP_STATUSES else _OK


def _headers(response: object) -> Mapping[str, str]:
    headers = cast("object | None", getattr(response, "headers", None))
    known = raw_headers(getattr(headers, "raw", None))  # of httpx
    if known is not None:
        return known
    if not isinstance(headers, Mapping):
        return {}
    named = cast("Mapping[object, object]", headers)
    return {header_text(name).lower(): header_text(value) for name, value in named.items()}


def _encoding(headers: Mapping[str, str]) -> str:
    return headers.get("content-encoding", "identity").strip().lower()
