"""Streams of an SDK that other code watches: its objects are made while we read the bytes.

In: the stream of an SDK as an instrumentor has wrapped or patched it, and the source of its bytes.
Out: a source of the same bytes. For each of them the wrapper's own iterator is asked, which reads
them through the SDK, so that its span has the answer and ends when the stream does.

Laws: an unwatched stream pays one look at its class. The wrapper gets bytes from us alone, at the
time when we read them; what it raises changes nothing of what we read. A chunk is kept until the
reader takes it, and a wrapper that makes no object of `MAX_BEHIND` bytes, or more objects than it
has read bytes, is no longer asked. A
private name is read only to find out whether somebody watches. A wrapper that does not read the
bytes is named in a warning, once in a process.
"""

import re
import warnings
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from types import AsyncGeneratorType, FunctionType, GeneratorType
from typing import Any, Final, Protocol, cast

from deltafold.contract.kinds import ErrorCode
from deltafold.transports.responses import http_response
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.unready import FED

MAX_BEHIND: Final = 16 << 20
"""Most bytes that a wrapper may read without an object: larger than any event of a provider."""

_UNREAD: Final = 1024
"""Most objects that a wrapper makes of no bytes; no SDK makes more than one of each byte."""

_LAST: Final = re.compile(rb"[\r\n]data: ?\[DONE\]")
"""The last event of Chat; a line of JSON cannot begin like it."""

_OVERLAP: Final = len(b"\ndata: [DONE]") - 1

_MAKES: Final = "__stream__"
"""Method by which the streams of openai, anthropic and SDKs like them make their objects."""

_OWN: Final = "deltafold."
_MOCKS: Final = "unittest.mock"
_NAMED: Final[set[str]] = set()
"""Packages that a warning has named."""


def watched(response: object) -> object | None:
    """Return the object whose iteration other code watches; None if nobody does.

    A raw response holds a stream that an instrumentor has wrapped, and a helper of an SDK holds the
    stream that it reads.
    """
    if type(response).__module__ == _MOCKS:
        return None
    kept: object = getattr(response, "_parsed_by_type", None)
    inner: object = getattr(response, "_raw_stream", None)
    if isinstance(kept, dict) and kept:
        inner = next(iter(cast("dict[object, object]", kept).values()))
    if inner is not None:
        return inner if _is_watched(inner) else None
    made = getattr(response, "_stream_cls", None)
    if made is not None and hasattr(response, "parse"):
        is_changed = isinstance(made, type) and len(_making(made)) > 1
        return _Parsed(response) if is_changed or _is_observed(response) else None
    return response if _is_watched(response) else None


class _Parsed:
    """The stream that a raw response makes when it is asked for."""

    def __init__(self, response: object) -> None:
        self._parse: Callable[[], object] = cast("Any", response).parse
        self.stream: object = None

    def __iter__(self) -> Iterator[object]:
        self.stream = self._parse()
        return iter(cast("Iterable[object]", self.stream))

    async def __aiter__(self) -> AsyncIterator[object]:
        stream = self._parse()
        self.stream = await stream if isinstance(stream, Awaitable) else stream
        async for made in cast("AsyncIterable[object]", self.stream):
            yield made

    @property
    def _iterator(self) -> object:
        return getattr(self.stream, "_iterator", None)

    def close(self) -> object:
        """Close the stream, if there is one."""
        return None if self.stream is None else cast("Any", self.stream).close()


def _is_watched(stream: object) -> bool:
    return is_wrapped(stream) or (bool(_making(type(stream))) and _is_observed(stream))


def is_wrapped(stream: object) -> bool:
    """Return whether other code has wrapped or patched the stream of an SDK."""
    kind = type(stream)
    if kind.__module__ == _MOCKS:
        return False
    if not (hasattr(stream, "__iter__") or hasattr(stream, "__aiter__")):
        return False
    if kind is not stream.__class__ or hasattr(stream, "__wrapped__"):
        return True  # a proxy
    making = _making(kind)
    if len(making) != 1:
        # A class over that of an SDK, or one that passes on the members of another object.
        return bool(making) or (
            hasattr(kind, "__getattr__") and not hasattr(kind, "response") and not _holds(stream)
        )
    module = making[0].__module__
    for name in ("__iter__", "__aiter__", "__next__", "__anext__"):
        method: object = getattr(kind, name, making[0])
        if type(method) is not FunctionType or method.__module__ != module:
            return True  # a patch of the class
    return has_foreign_iterator(stream)


def _is_observed(response: object) -> bool:
    """Return whether anthropic's own tracing has wrapped the body."""
    body = getattr(http_response(response), "stream", None)
    return getattr(body, "stream_observer", None) is not None


def has_foreign_iterator(stream: object) -> bool:
    """Return whether other code has replaced the iterator that an SDK's stream reads."""
    module = _making(type(stream))[-1].__module__
    return _made_by(vars(stream).get("_iterator"), module) != module


def _making(kind: type) -> list[object]:
    """Return the methods that make the objects of a stream, that of the SDK last."""
    return [vars(base)[_MAKES] for base in kind.__mro__ if _MAKES in vars(base)]


def _holds(stream: object) -> bool:
    """Return whether an object has its response itself."""
    held = cast("dict[str, object]", getattr(stream, "__dict__", {}))
    return "response" in held or "http_response" in held or "_response" in held


def _made_by(iterator: object, module: str) -> str:
    """Return the module whose iterator an SDK's stream reads; its own where it is ours."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
    elif isinstance(iterator, AsyncGeneratorType):
        frame = iterator.ag_frame
    elif iterator is None:
        return module  # it is made when it is asked for
    else:
        return type(iterator).__module__
    if frame is None:
        return module  # it has ended
    name: str = frame.f_globals.get("__name__", module)
    return module if name.startswith(_OWN) else name


def _named(wrapper: object) -> None:
    """Warn, once for each package, that the span of a wrapper has not the answer."""
    seen = wrapper.stream if isinstance(wrapper, _Parsed) else wrapper
    kind = type(seen)
    iterator = getattr(seen, "_iterator", None) if len(_making(kind)) == 1 else None
    _warn(_made_by(iterator, kind.__module__), kind.__qualname__)


def _warn(module: str, name: str) -> None:
    package = module.partition(".")[0]
    if package in _NAMED:
        return
    _NAMED.add(package)
    warnings.warn(
        f"the span of {package} has no answer: its {name} does not read the "
        "response that deltafold reads; deltafold.otel.instrument() records this stream",
        RuntimeWarning,
        stacklevel=2,
    )


class _HasCode(Protocol):
    code: ErrorCode


class HasError(Protocol):
    """The used part of a stream's core."""

    def error(self) -> _HasCode | None:
        """Return the error that ended the stream."""
        ...


class _Behind(Exception):  # noqa: N818 - it ends a wrapper, and nobody else sees it
    """The wrapper has read `MAX_BEHIND` bytes without an object."""


class _Following:
    """What both directions of following share: the bytes between the wrapper and the reader.

    It observes the stream, to learn how it has ended.
    """

    def __init__(self, wrapper: object, body: object) -> None:
        self.wrapper: object | None = wrapper
        self.body = body
        self.pieces: deque[bytes] = deque()
        self.behind = 0
        self.objects_left = _UNREAD
        self.failure: BaseException | None = None
        self.was_asked = self.is_over = self.is_left = self.at_end = self.is_cut = False
        self._saw_last = False
        self._tail = b"\n"  # the body begins a line
        self.names: tuple[str, ...] = ()

    def ended(self, core: "HasError") -> None:
        """Learn that the stream has ended, whole, in an error, or given up."""
        error = core.error()
        self.is_left = error is not None and error.code is ErrorCode.CANCELLED
        self.is_over = not self.is_left

    def patched(self, **members: object) -> bool:
        """Give the response other members, until `restored`; return whether it takes them."""
        try:
            for name, value in members.items():
                setattr(self.body, name, value)
                self.names = (*self.names, name)
        except (AttributeError, TypeError):
            self.restored()
            return False
        return True

    def restored(self) -> None:
        """Give the response its own members back."""
        for name in self.names:
            with suppress(AttributeError):
                delattr(self.body, name)
        self.names = ()

    def took(self, chunk: bytes) -> bytes:
        """Keep a chunk that the wrapper has asked for."""
        self.pieces.append(chunk)
        self.behind += len(chunk)
        self.objects_left += len(chunk)
        seen = self._tail + chunk
        self._saw_last = self._saw_last or _LAST.search(seen) is not None
        self._tail = seen[-_OVERLAP:]
        return chunk

    @property
    def was_drained(self) -> bool:
        """Whether a wrapper that has ended may have read the rest of the connection."""
        return self.was_asked and (self.is_over or self._saw_last)

    def asked(self) -> None:
        """Note that the wrapper reads on.

        Raises:
            _Behind: it has read too much.
        """
        self.was_asked = True
        if self.behind > MAX_BEHIND:
            raise _Behind

    def made(self) -> None:
        """Note that the wrapper has made an object; ask it no more if it makes them of nothing."""
        self.objects_left -= 1
        if self.objects_left < 0:
            self.dropped()

    def dropped(self) -> None:
        """Ask the wrapper no more; name it if it never read the response."""
        wrapper, self.wrapper = self.wrapper, None
        self.restored()
        if not self.was_asked or self.behind > MAX_BEHIND:
            _named(wrapper)

    def next_piece(self) -> bytes | None:
        """Return the oldest chunk; None if there is none. A failure comes after the chunks."""
        if self.pieces:
            piece = self.pieces.popleft()
            if not self.pieces:
                self.behind = 0
            return piece
        failure, self.failure = self.failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # its traceback holds this frame
        return None


class FollowedChunks(_Following, Iterator[bytes]):
    """The chunks of a source, which a wrapper sees before the reader does."""

    def __init__(self, wrapper: object, body: object, source: Source) -> None:
        super().__init__(wrapper, body)
        self._raw = source.chunks
        self._close = source.close
        self._objects: Iterator[object] | None = None

    def __next__(self) -> bytes:
        while self.wrapper is not None and not self.pieces and not self.is_left:
            if self.is_over:
                self._finish()
            else:
                self._ask()
        piece = self.next_piece()
        return next(self._raw) if piece is None else piece

    def close(self) -> None:
        """End the wrapper as the stream has ended, then close the response."""
        try:
            if self.is_over:
                self._finish()
            elif self.wrapper is not None:
                self._leave(self.wrapper)
        finally:
            self.restored()
            self._close()

    def _ask(self) -> None:
        """Let the wrapper make one object."""
        try:
            if self._objects is None:
                if not self.patched(iter_bytes=self._fed, close=_nothing, **{FED: True}):
                    self.dropped()
                    return
                self._objects = iter(cast("Iterable[object]", self.wrapper))
            next(self._objects)
            self.made()
        except StopIteration:
            self.dropped()
        except Exception:  # noqa: BLE001 - of the wrapper or its SDK; `failure` has the transport's
            self.dropped()
        except BaseException:
            self.dropped()
            raise

    def _finish(self) -> None:
        """Let the wrapper make the objects of the chunks that it has, and see the end."""
        while self.wrapper is not None:
            self._ask()

    def _leave(self, wrapper: object) -> None:
        objects, self._objects = self._objects, None
        if objects is None:
            with suppress(Exception):  # nothing was read
                self.patched(close=_nothing)
        # A generator of the wrapper would end when it is collected.
        for end in (
            _exit(wrapper, "__exit__") or getattr(wrapper, "close", None),
            getattr(objects, "close", None),
            getattr(getattr(wrapper, "_iterator", None), "close", None),
        ):
            if callable(end):
                with suppress(Exception):
                    end()
        self.wrapper = None

    def _fed(self, *_: object) -> Iterator[bytes]:
        while True:
            self.asked()
            if self.is_over:
                return
            try:
                chunk = next(self._raw)
            except StopIteration:
                return
            except BaseException as raised:
                self.failure = raised if isinstance(raised, Exception) else None
                raise
            yield self.took(chunk)


class AwaitedFollowedChunks(_Following, AsyncIterator[bytes]):
    """The chunks of an asynchronous source, which a wrapper sees before the reader does."""

    def __init__(self, wrapper: object, body: object, source: AsyncSource) -> None:
        super().__init__(wrapper, body)
        self._raw = source.chunks
        self._close = source.close
        self._objects: AsyncIterator[object] | None = None

    async def __anext__(self) -> bytes:
        while self.wrapper is not None and not self.pieces and not self.is_left:
            if self.is_over:
                await self._finish()
            else:
                await self._ask()
        piece = self.next_piece()
        if piece is not None:
            return piece
        if self.at_end:
            raise StopAsyncIteration
        return await anext(self._raw)

    async def aclose(self) -> None:
        """End the wrapper as the stream has ended, then close the response."""
        try:
            if self.is_over:
                await self._finish()
            elif self.wrapper is not None:
                await self._leave(self.wrapper)
        finally:
            self.restored()
            await self._close()

    async def _ask(self) -> None:
        """Let the wrapper make one object."""
        try:
            if self._objects is None:
                if not self.patched(aiter_bytes=self._fed, aclose=_nothing_async, **{FED: True}):
                    self.dropped()
                    return
                self._objects = aiter(cast("AsyncIterable[object]", self.wrapper))
            await anext(self._objects)
            self.made()
        except StopAsyncIteration:
            # The SDK of openai reads the rest of the connection behind the last event by itself. A
            # wrapper that wants no more objects leaves that to the reader.
            self.at_end = self.was_drained
            self.dropped()
        except Exception as raised:  # noqa: BLE001 - of the wrapper or its SDK; `failure` has the transport's
            if self.is_cut and self.failure is None:
                self.failure = raised
            self.dropped()
        except BaseException:
            self.dropped()
            raise

    async def _finish(self) -> None:
        """Let the wrapper make the objects of the chunks that it has, and see the end."""
        while self.wrapper is not None:
            await self._ask()

    async def _leave(self, wrapper: object) -> None:
        objects, self._objects = self._objects, None
        if objects is None:
            with suppress(Exception):  # nothing was read
                self.patched(aclose=_nothing_async)
        # A generator of the wrapper would end when it is collected.
        for end in (
            _exit(wrapper, "__aexit__") or getattr(wrapper, "close", None),
            getattr(objects, "aclose", None),
            getattr(getattr(wrapper, "_iterator", None), "aclose", None),
        ):
            if callable(end):
                with suppress(Exception):
                    waiting: object = end()
                    if isinstance(waiting, Awaitable):
                        await waiting
        self.wrapper = None

    def _fed(self, *_: object) -> "_AwaitedFeed":
        return _AwaitedFeed(self.fed)

    async def fed(self) -> bytes:
        """Return the next chunk to the wrapper.

        Raises:
            StopAsyncIteration: the body or the stream has ended.
        """
        self.asked()
        if self.is_over:
            raise StopAsyncIteration
        try:
            chunk = await anext(self._raw)
        except StopAsyncIteration:
            raise
        except BaseException as raised:
            self.failure = raised if isinstance(raised, Exception) else None
            self.is_cut = self.failure is None  # a limit of the wrapper ends the source as well
            raise
        return self.took(chunk)


class _AwaitedFeed(AsyncIterator[bytes]):
    """What an SDK iterates; unlike a generator it holds nothing that has to be closed."""

    def __init__(self, read: Callable[[], Awaitable[bytes]]) -> None:
        self._read = read

    async def __anext__(self) -> bytes:
        return await self._read()

    async def aclose(self) -> None:
        """Close nothing."""


def _exit(wrapper: object, method: str) -> Callable[[], object] | None:
    """Return what the end of a `with` block calls; None for an object that has no such method."""
    leave: Any = getattr(type(wrapper), method, None)
    return None if leave is None else partial(leave, wrapper, None, None, None)


def _nothing() -> None:
    """Close nothing: the reader closes the response."""


async def _nothing_async() -> None:
    """Close nothing: the reader closes the response."""


def followed(response: object, source: Source) -> FollowedChunks | None:
    """Let whoever watches a stream see its bytes as `source` yields them.

    Args:
        response: what the SDK or its instrumentor returned.
        source: the source of its bytes, which becomes the one that is followed.

    Returns:
        The observer that has to learn of the end of the stream; None if nobody watches.
    """
    body = http_response(response)
    wrapper = None if body is response else watched(response)
    if wrapper is None:
        return None
    chunks = FollowedChunks(wrapper, body, source)
    source.chunks, source.close = chunks, chunks.close
    return chunks


def followed_async(response: object, source: AsyncSource) -> AwaitedFollowedChunks | None:
    """Let whoever watches a stream see its bytes; the asynchronous form of `followed`."""
    body = http_response(response)
    wrapper = None if body is response else watched(response)
    if wrapper is None:
        return None
    chunks = AwaitedFollowedChunks(wrapper, body, source)
    source.chunks, source.close = chunks, chunks.aclose
    return chunks
