"""Resuming: the rest of a background response of the Responses API, which its provider keeps.

In: the source of a stream that may break off, and a function that opens the rest of it.  Out: a
source of the same events, each once.

Laws: an event that is incomplete when the connection breaks is held back, because the rest repeats
it. Where the rest cannot be opened, the source ends as the first connection did.
Source: the Responses API, "Background mode": a stream is resumed by `starting_after`.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Final, cast

from deltafold.contract.kinds import json_object
from deltafold.transports.requests import PreparedRequest
from deltafold.transports.sources import AsyncSource, Source

RESUMED: Final = "resumed"
"""Code of the warning of a message whose stream was resumed."""

_MAX_TRIES: Final = 3
"""Requests in a row that bring no event, after which the stream is given up."""

_WAIT: Final = 0.5
"""Seconds before the second request in a row; each further wait is twice as long."""

_MAX_HELD: Final = 32 * 1024 * 1024
"""Bytes of an incomplete event that are held back; the decoder refuses a longer event."""

_OK: Final = 200
_END_OF_EVENT: Final = re.compile(rb"\r?\n\r?\n")
_DATA: Final = re.compile(rb"^data: ?(.*)$", re.MULTILINE)
_ENDS: Final = frozenset(
    {"response.completed", "response.failed", "response.incomplete", "response.cancelled", "error"}
)

Note = Callable[[str, str], None]
"""Receives the code and the text of a warning."""


def is_resumable(request: PreparedRequest) -> bool:
    """Return whether the provider keeps the stream of a request of the Responses API."""
    return request.stream and request.body.get("background") is True


def resuming(
    source: Source, open_rest: "Callable[[PreparedRequest], Source]", note: Note
) -> Source:
    """Return a source that is resumed when it breaks off."""
    return _Resumed(source, open_rest, note).source()


def resuming_async(
    source: AsyncSource,
    open_rest: "Callable[[PreparedRequest], Awaitable[AsyncSource]]",
    note: Note,
) -> AsyncSource:
    """Return a source that is resumed when it breaks off."""
    return _AsyncResumed(source, open_rest, note).source()


class _Events:
    """The events that a source has brought: those that are whole, and the beginning of the next."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._id: str | None = None
        self._last = b""

    def whole(self, chunk: bytes) -> bytes:
        """Return the whole events of a chunk; what follows them is held back."""
        searched = max(len(self._held) - 3, 0)
        self._held += chunk
        ends = [match.end() for match in _END_OF_EVENT.finditer(self._held, searched)]
        if not ends:
            return self.taken() if len(self._held) > _MAX_HELD else b""
        events = bytes(self._held[: ends[-1]])
        del self._held[: ends[-1]]
        self._last = events
        if self._id is None:
            self._id = _response_id(events)
        return events

    def taken(self) -> bytes:
        """Return the bytes that are held back, and hold none."""
        taken = bytes(self._held)
        self._held.clear()
        return taken

    def request_of_rest(self) -> PreparedRequest | None:
        """Return the request for the events to come, None if there are none to ask for."""
        last = _members(self._last, last=True)
        number = last.get("sequence_number")
        if self._id is None or not isinstance(number, int) or last.get("type") in _ENDS:
            return None
        path = f"/responses/{self._id}?stream=true&starting_after={number}"
        return PreparedRequest(path, {}, method="GET")


def _members(events: bytes, *, last: bool) -> Mapping[str, object]:
    found = _DATA.findall(events)
    for data in reversed(found) if last else found:
        try:
            members = json_object(json.loads(data))
        except ValueError:
            continue
        if members is not None:
            return members
    return {}


def _response_id(events: bytes) -> str | None:
    response = _members(events, last=False).get("response")
    found = cast("Mapping[str, object]", response).get("id") if isinstance(response, dict) else None
    return found if isinstance(found, str) and re.fullmatch(r"[\w-]+", found) else None


class _Tries:
    """The requests in a row that have brought no event."""

    def __init__(self, note: Note) -> None:
        self.count = 0
        self._note = note

    def seconds(self) -> float:
        """Return the seconds to wait before the next request."""
        return 0.0 if self.count == 0 else _WAIT * 2 ** (self.count - 1)

    def opened(self) -> None:
        """Note that the rest has been opened."""
        text = "the connection broke, and the stream was resumed; no event is missing"
        self._note(RESUMED, text)


class _Resumed:
    def __init__(
        self, first: Source, open_rest: "Callable[[PreparedRequest], Source]", note: Note
    ) -> None:
        self._first = self._now = first
        self._open = open_rest
        self._events = _Events()
        self._tries = _Tries(note)

    def source(self) -> Source:
        first = self._first
        return Source(self._chunks(), self._close, first.status, first.headers)

    def _close(self) -> object:
        return self._now.close()

    def _chunks(self) -> Iterator[bytes]:
        while True:
            failure: Exception | None = None
            try:
                for chunk in self._now.chunks:
                    if whole := self._events.whole(chunk):
                        self._tries.count = 0
                        yield whole
            except Exception as error:  # noqa: BLE001 - raised again if there is no rest
                failure = error
            if not self._reopened():
                yield self._events.taken()
                if failure is not None:
                    raise failure
                return

    def _reopened(self) -> bool:
        request = self._events.request_of_rest()
        while request is not None and self._tries.count < _MAX_TRIES:
            time.sleep(self._tries.seconds())
            self._tries.count += 1
            self._now.close()
            if self._has_opened(request):
                self._events.taken()
                self._tries.opened()
                return True
        return False

    def _has_opened(self, request: PreparedRequest) -> bool:
        try:
            self._now = self._open(request)
        except Exception:  # noqa: BLE001 - the failure of the first connection is reported
            return False
        return self._now.status == _OK


class _AsyncResumed:
    def __init__(
        self,
        first: AsyncSource,
        open_rest: "Callable[[PreparedRequest], Awaitable[AsyncSource]]",
        note: Note,
    ) -> None:
        self._first = self._now = first
        self._open = open_rest
        self._events = _Events()
        self._tries = _Tries(note)

    def source(self) -> AsyncSource:
        first = self._first
        return AsyncSource(
            self._chunks(),
            self._close,
            first.status,
            first.headers,
            over_connection=first.over_connection,
        )

    async def _close(self) -> object:
        return await self._now.close()

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            failure: Exception | None = None
            try:
                async for chunk in self._now.chunks:
                    if whole := self._events.whole(chunk):
                        self._tries.count = 0
                        yield whole
            except Exception as error:  # noqa: BLE001 - raised again if there is no rest
                failure = error
            if not await self._reopened():
                yield self._events.taken()
                if failure is not None:
                    raise failure
                return

    async def _reopened(self) -> bool:
        request = self._events.request_of_rest()
        while request is not None and self._tries.count < _MAX_TRIES:
            await asyncio.sleep(self._tries.seconds())
            self._tries.count += 1
            await self._now.close()
            if await self._has_opened(request):
                self._events.taken()
                self._tries.opened()
                return True
        return False

    async def _has_opened(self, request: PreparedRequest) -> bool:
        try:
            self._now = await self._open(request)
        except Exception:  # noqa: BLE001 - the failure of the first connection is reported
            return False
        return self._now.status == _OK
