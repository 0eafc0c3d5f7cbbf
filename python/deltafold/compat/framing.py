"""Framing of server-sent events: bytes in any pieces to events.

In: chunks of a body.  Out: (event name, data) pairs as bytes; the name is empty without a line
`event:`.

Laws: a chunk may end anywhere, also between CR and LF. Each byte is copied at most twice. An event
without data is skipped. `finish()` returns the event that no blank line ended.
Source: https://html.spec.whatwg.org/multipage/server-sent-events.html, "Parsing an event stream".
"""

from collections.abc import Iterator
from typing import Final

_BOM: Final = b"\xef\xbb\xbf"


class EventFramer:
    r"""Splits the bytes of a body into server-sent events.

    >>> list(EventFramer().feed(b"event: ping\ndata: {}\n\n"))
    [(b'ping', b'{}')]
    """

    def __init__(self) -> None:
        """Begin before the first byte."""
        self._partial: list[bytes] = []
        self._after_cr = False
        self._at_start = True
        self._event = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the events that a chunk completes; consume the iterator before the next call."""
        if self._after_cr and chunk:
            # The line end CR LF was cut in two: its line has been taken already.
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._partial.append(chunk)
            return
        lines = self._joined(chunk).splitlines(keepends=True)
        if lines[-1].endswith(b"\r"):
            self._after_cr = True
        elif not lines[-1].endswith(b"\n"):
            self._partial.append(lines.pop())
        for line in lines:
            yield from self._take(line.rstrip(b"\r\n"))

    def finish(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the event at the end of the body that no blank line ended."""
        rest = self._joined(b"")
        if rest:
            yield from self._take(rest)
        yield from self._take(b"")

    def _joined(self, chunk: bytes) -> bytes:
        if self._partial:
            chunk = b"".join((*self._partial, chunk))
            self._partial.clear()
        if self._at_start and chunk:
            self._at_start = False
            chunk = chunk.removeprefix(_BOM)
        return chunk

    def _take(self, line: bytes) -> Iterator[tuple[bytes, bytes]]:
        if not line:
            data, event = b"\n".join(self._data), self._event
            self._data, self._event = [], b""
            if data:
                yield event, data
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._event = value.removeprefix(b" ")
