"""Last events of a body before a failure, as lines for a person.

In: the end of the bytes that were read, and their dialect.  Out: a few lines, in which the event
that failed, or the end, is marked with its byte offset.

Laws: the lines are made after a failure only, and their number and length are bounded. Characters
that a terminal obeys are escapes.
"""

import sys
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from deltafold._core import Decoder, event_ends
from deltafold.contract.foreign_text import printable
from deltafold.contract.kinds import DeltaKind
from deltafold.errors.model_error import ModelError
from deltafold.message import data_types

_ANY: Final = "openai-chat"  # where every protocol has the same events
_MOST_EVENTS: Final = 3
_LONGEST_LINE: Final = 70
_KEPT_BEGINNING: Final = 14
_KEPT_END: Final = _LONGEST_LINE - _KEPT_BEGINNING - 1
_KEPT_CHUNKS: Final = 4
_KEPT_CHUNK_BYTES: Final = 2048


class _Event(NamedTuple):
    offset: int
    content: bytes


class RecentBytes:
    """Observer of the chunks of a body, which keeps the last of their bytes.

    A short chunk is kept as it is, and of a long one only its end, so that a stream keeps a few
    KiB. The chunks follow each other without a gap.

    Attributes:
        read: the number of bytes that were read.
    """

    __slots__ = ("_chunks", "read")

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque(maxlen=_KEPT_CHUNKS)
        self.read = 0

    def __call__(self, chunk: object) -> None:
        """Keep a chunk; what the decoder refuses is not kept."""
        if not isinstance(chunk, bytes | bytearray | memoryview):
            return
        given = bytes(cast("bytes", chunk))
        self.read += len(given)
        if len(given) > _KEPT_CHUNK_BYTES:
            self._chunks.clear()
        self._chunks.append(given[-_KEPT_CHUNK_BYTES:])

    def tail(self) -> bytes:
        """Return the last bytes."""
        return b"".join(self._chunks)


def excerpt_of(
    read: int,
    tail: bytes,
    dialect: "data_types.ProtocolName | None",
    redacted: Callable[[bytes], bytes] = bytes,
) -> str | None:
    r"""Return the last events before a failure; None if nothing was read.

    >>> print(excerpt_of(31, b'data: 1\n\ndata: {"error": "busy"', "openai-chat"))
    the last events before the failure:
      @0  data: 1
      @9  data: {"error": "busy"
          ^ byte 31: the end of what was read

    Args:
        read: number of bytes that were read.
        tail: the last of them.
        dialect: the protocol of the body, None if the body did not tell it.
        redacted: takes the secrets out of bytes.
    """
    dialect = dialect or _ANY
    start = read - len(tail)
    events = _events(redacted(tail), start, dialect)
    if start > 0:
        events = events[1:] or events  # the beginning of the first one is missing
    if not events:
        return None
    mark = f"byte {read}: the end of what was read"
    for place, event in enumerate(events):
        is_whole = start == 0 or event.offset > start
        if is_whole and _fails(event.content, dialect):
            events = events[: place + 1]
            mark = f"byte {event.offset}: this event failed"
            break
    shown = events[-_MOST_EVENTS:]
    width = len(str(shown[-1].offset))
    lines = [f"  @{event.offset:<{width}}  {_line(event.content)}" for event in shown]
    marked = f"{' ' * (width + 5)}^ {mark}"
    return "\n".join(["the last events before the failure:", *lines, marked])


def explain(error: ModelError, excerpt: str | None) -> None:
    """Give an error its excerpt, which its traceback then shows."""
    if excerpt is not None and error.excerpt is None:
        error.excerpt = excerpt
        error.add_note(excerpt)


def _is_watched() -> bool:
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


IS_WATCHED: Final = _is_watched()
"""Whether a person sees tracebacks: in a terminal, in IPython and in notebooks.

Elsewhere excerpts are not made, because logs keep tracebacks, and events hold what people wrote.
"""


def _events(tail: bytes, start: int, dialect: "data_types.ProtocolName") -> list[_Event]:
    """Return the events in the last bytes, which begin at an offset."""
    if not tail:
        return []
    ends = event_ends(tail, dialect)
    if not ends or ends[-1] < len(tail):
        ends.append(len(tail))
    starts = [0, *ends[:-1]]
    return [_Event(start + begin, tail[begin:end]) for begin, end in zip(starts, ends, strict=True)]


def _fails(event: bytes, dialect: "data_types.ProtocolName") -> bool:
    """Return whether an event is an error by itself."""
    return any(delta.kind is DeltaKind.ERROR for delta in Decoder(dialect).feed(event))


def _line(event: bytes) -> str:
    r"""Return an event on one line: its beginning and its end, where the events of a stream differ.

    >>> _line(b"event: ping\ndata: {}\n\n")
    'event: ping data: {}'
    """
    most = 4 * _LONGEST_LINE
    cut = event if len(event) <= 2 * most else event[:most] + event[-most:]
    text = " ".join(cut.decode("utf-8", "backslashreplace").split())
    text = printable(text)
    if len(text) <= _LONGEST_LINE and cut is event:
        return text
    return f"{text[:_KEPT_BEGINNING]}…{text[-_KEPT_END:]}"
