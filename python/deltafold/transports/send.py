"""Sending: hands a request to a client, within the limits of the call.

In: `HttpRequest`, and a client of httpx, httpx2 or aiohttp.  Out: `Source` or `AsyncSource` of the
response, whose chunks obey the limits.

Laws: the limit of the headers begins when the request is sent, not while it waits for a connection.
A redirect is not followed. An exception of the client that means an exceeded limit is a
`TimeoutError` that names it. What follows a failure is decided in `transports/waits.py`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.transports.packages import import_package
from deltafold.transports.requests import HttpRequest
from deltafold.transports.responses import source_of, source_of_aiohttp, source_of_httpx
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.timeouts import Limits, LimitsAndWatch, ScopeWatch, TimedChunks
from deltafold.transports.waits import AiohttpWaits, AwaitedHttpxWaits, AwaitedWaits, BlockingWaits

if TYPE_CHECKING:
    import aiohttp
    import httpx

Package: TypeAlias = Literal["httpx", "aiohttp"]
"""The interface of a client: httpx2 has that of httpx."""


def open_httpx(client: "httpx.Client", request: HttpRequest, limits: Limits) -> Source:
    """Send a request and return its response, unread.

    Raises:
        TimeoutError: a limit was exceeded.
        Exception: any other exception of the client.
    """
    waits = BlockingWaits(client, request, limits)
    while True:
        sent = _httpx_request(client, request, waits.extensions())
        try:
            response = client.send(sent, stream=True, follow_redirects=False)
        except Exception as exception:
            if waits.goes_on(exception):
                continue
            missed = waits.missed(exception)
            if missed is None:
                raise
            raise missed from exception
        source = source_of(response)
        source.chunks = TimedChunks(source.chunks, limits, waits.allow)
        return source


def _sending_httpx(
    client: "httpx.AsyncClient", request: HttpRequest, waits: AwaitedHttpxWaits
) -> "Awaitable[httpx.Response]":
    sent = _httpx_request(client, request, waits.extensions())
    kind: type = type(sent.stream)
    sent.stream = _announced_stream(kind)(sent.stream, waits.begin_answer)
    return client.send(sent, stream=True, follow_redirects=False)


def _httpx_request(
    client: "httpx.Client | httpx.AsyncClient",
    request: HttpRequest,
    extensions: Mapping[str, object],
) -> "httpx.Request":
    kind: type = type(client.base_url)
    return client.build_request(
        request.method,
        _httpx_url(kind, request.full_url),
        headers=request.headers,
        content=request.content,
        extensions=extensions,
    )


@cache
def _announced_stream(kind: type) -> Any:  # noqa: ANN401 - a subclass of a class of httpx
    """Make a class of bodies that report their sending.

    A `trace` extension would cost two coroutines for each of its stages, and only httpcore has it.
    """
    base: Any = next((one for one in kind.__mro__ if one.__name__ == "AsyncByteStream"), kind)
    # An asynchronous generator that is left after a failure has to be closed under trio; this one
    # has bytes that wait for nothing.
    is_bytes = kind.__name__ == "ByteStream"

    class AnnouncedStream(base):  # type: ignore[misc]  # of an untyped variable
        """Wraps the body of the request, which a subclass of the client may have changed."""

        def __init__(self, stream: _AnyStream, begins: Callable[[], None]) -> None:
            self.stream = stream
            self.begins = begins

        def __iter__(self) -> Iterator[bytes]:
            return iter(self.stream)

        def __aiter__(self) -> AsyncIterator[bytes]:
            self.begins()
            return _Bytes(iter(self.stream)) if is_bytes else aiter(self.stream)

        async def aclose(self) -> None:
            await self.stream.aclose()

    return AnnouncedStream


class _Bytes:
    """Bytes that are there, as an asynchronous iterator."""

    __slots__ = ("_pieces",)

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration


class _AnyStream(Protocol):
    """Body of a request of httpx."""

    def __iter__(self) -> Iterator[bytes]: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


@lru_cache(maxsize=128)
def _httpx_url(kind: type, url: str) -> "httpx.URL":
    """Parse a URL. httpx takes as long for that as the decoder for a hundred events."""
    return cast("httpx.URL", kind(url))


def _sending_aiohttp(
    session: "aiohttp.ClientSession", request: HttpRequest, waits: AiohttpWaits
) -> "Awaitable[aiohttp.ClientResponse]":
    if isinstance(waits.watch, ScopeWatch):
        raise MisuseError("client: aiohttp runs under asyncio only; httpx runs here")
    body: Any = b""
    if request.content:
        body = _announced_body()(request.content)
        body.begins = waits.begin_body
    # Without a body nothing reports the sending, so that aiohttp applies the limit.
    read = None if request.content else waits.limits.of("first_byte")[1]
    sending = session.request(
        request.method,
        _aiohttp_url(request.full_url),
        headers=request.headers,
        data=body,
        allow_redirects=False,
        raise_for_status=False,
        timeout=_aiohttp_timeout(request.timeouts.connect, read),
    )
    if request.content:
        waits.look_after(sending)
    return sending


@lru_cache(maxsize=32)
def _aiohttp_timeout(connect: float | None, read: float | None) -> "aiohttp.ClientTimeout":
    make: type[aiohttp.ClientTimeout] = import_package("aiohttp").ClientTimeout
    return make(sock_connect=connect, sock_read=read)


@lru_cache(maxsize=128)
def _aiohttp_url(url: str) -> Any:  # noqa: ANN401 - a class of a module that aiohttp brings
    # The URL is encoded: aiohttp would rewrite escapes, and a signature would not match.
    return import_module("yarl").URL(url, encoded=True)


@cache
def _announced_body() -> Any:  # noqa: ANN401 - a subclass of a class that is not imported here
    """Make a class of bodies that report their sending, because aiohttp has no other hook."""
    payload: Any = import_module("aiohttp.payload")

    class AnnouncedBody(payload.BytesPayload):  # type: ignore[misc]  # of an untyped module
        begins: Callable[[object], None]

        def write_with_length(self, writer: object, length: int | None) -> Awaitable[None]:
            self.begins(writer)
            return super().write_with_length(writer, length)  # type: ignore[no-any-return]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - as above

    return AnnouncedBody


class ClientFunctions(NamedTuple):
    """Functions for the asynchronous clients of a package.

    Attributes:
        waits: the class of the tries of a request.
        send: sends a request.
        source: makes the unread source of its response.
    """

    waits: type[AwaitedWaits]
    send: Callable[[Any, HttpRequest, Any], Awaitable[Any]]
    source: Callable[[Any, LimitsAndWatch, HttpRequest], AsyncSource]


def _source_of_httpx(
    response: "httpx.Response", timed: LimitsAndWatch, _: HttpRequest
) -> AsyncSource:
    return source_of_httpx(response, timed)


def _unlimit_reads(response: "aiohttp.ClientResponse") -> None:
    """Remove the limit of the headers, which would go on counting between the reads of the body."""
    connection = response.connection
    if connection is not None and connection.protocol is not None:
        connection.protocol.read_timeout = None


def _source_of_aiohttp(
    response: "aiohttp.ClientResponse", timed: LimitsAndWatch, request: HttpRequest
) -> AsyncSource:
    if not request.content:
        _unlimit_reads(response)
    return source_of_aiohttp(response, timed)


CLIENT_FUNCTIONS: Final[Mapping[Package, ClientFunctions]] = {
    "httpx": ClientFunctions(AwaitedHttpxWaits, _sending_httpx, _source_of_httpx),
    "aiohttp": ClientFunctions(AiohttpWaits, _sending_aiohttp, _source_of_aiohttp),
}
