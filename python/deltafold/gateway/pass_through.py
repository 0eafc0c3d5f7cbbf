"""Passed bytes: the upstream's own events for a client that speaks its protocol.

In: the chunks of the upstream.  Out: whole events, byte for byte.

Laws: nothing is changed, except that a Chat client which did not ask for usage gets no record of
it: the Model asks for all clients. An event leaves when its last byte has arrived, and one that is
never finished does not leave. Nothing leaves that the decoder does not read: no event that it
cannot read, nothing behind the end of the stream, and no content and no success behind an error
that it holds until then. A stream that has all of its content, but not the event after it, is given
that. Each byte is searched once.
"""

import json
import re
from collections.abc import Callable
from typing import Final

from deltafold._core import Decoder
from deltafold.contract.kinds import DeltaKind, json_object
from deltafold.contract.names import RequestProtocol
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.origins import is_at_home
from deltafold.gateway.protocols import protocol_of
from deltafold.gateway.table import Upstream
from deltafold.transports.response_info import ResponseInfo

# Ends of an event by the line ends that it uses.
# Source: "event stream interpretation" of the HTML standard.
_ENDS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")
_OVERLAP: Final = 3
_END: Final = re.compile(rb"\n\n|\r\n\r\n|\r\r")
_COMMENTS: Final = re.compile(rb"(?:\s|:[^\r\n]*[\r\n])*")

BEFORE_CONTENT: Final = {DeltaKind.START, DeltaKind.USAGE, DeltaKind.ERROR}
"""Deltas of an answer without content."""

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which every reader of server-sent events skips."""


def can_pass(asked: ClientRequest, upstream: Upstream) -> bool:
    """Return whether the bytes of an upstream's stream are those that the client expects.

    Bytes of a model that is not the home of the client's name cannot name their model.
    """
    is_same = asked.streams and asked.target == upstream.model.specification
    return is_same and is_at_home(asked, upstream)


def passed_bytes(asked: ClientRequest) -> "PassedBytes":
    """Return what hands the bytes of an upstream on to a client."""
    wants_usage = asked.options.get("include_usage", True)
    return PassedBytes(asked.protocol, bytes if wants_usage else without_usage)


def is_event_stream(response: ResponseInfo | None) -> bool:
    """Return whether an upstream answered with server-sent events."""
    if response is None or response.status != 200:  # noqa: PLR2004 - a status
        return False
    return response.headers.get("content-type", "").startswith("text/event-stream")


class PassedBytes:
    """Chunks that wait until their last event is whole.

    Args:
        protocol: the protocol of the client.
        shown: returns what the client reads of whole events; `bytes` is all of them.

    Attributes:
        is_failing: whether the decoder told an error, or holds one until the end of the stream.
    """

    __slots__ = (
        "_before",
        "_closing",
        "_failing",
        "_is_behind",
        "_is_over",
        "_last",
        "_part",
        "_protocol",
        "_reader",
        "_shown",
        "_taken",
        "_whole",
        "is_failing",
    )

    def __init__(self, protocol: RequestProtocol, shown: Callable[[bytes], bytes] = bytes) -> None:
        self.is_failing = False
        self._protocol: RequestProtocol = protocol
        self._closing, self._failing = protocol_of(protocol).closing, protocol_of(protocol).failing
        self._shown = shown
        self._whole: list[bytes] = []
        self._part: list[bytes] = []
        self._last = self._before = b""
        self._taken = 0
        self._is_over = False
        self._reader: Decoder | None = None
        self._is_behind = False

    @property
    def is_json(self) -> bool:
        """Whether the body is JSON: a whole answer that is called a stream of events."""
        waiting = b"".join((*self._whole, *self._part))
        comments = _COMMENTS.match(waiting)  # signs of life that a proxy writes before it
        return waiting.startswith((b"{", b"["), comments.end() if comments else 0)

    def add(self, chunk: bytes) -> None:
        """Take a chunk of the upstream."""
        if self._is_over:
            return
        if not self._part and chunk.endswith(_ENDS):
            self._whole.append(chunk)
            return
        before = self._before
        seen = before + chunk
        # Most upstreams end lines with a line feed alone. The search for one byte takes a hundredth
        # of the time of the searches for the two other ends.
        marks = _ENDS if b"\r" in seen else _ENDS[:1]
        end = max(seen.rfind(mark) + len(mark) if mark in seen else 0 for mark in marks)
        end -= len(before)
        if end > 0:
            self._whole += [*self._part, chunk[:end]]
            self._part = [chunk[end:]] if end < len(chunk) else []
        elif chunk:
            self._part.append(chunk)
        self._before = seen[-_OVERLAP:] if self._part else b""

    def take(self) -> bytes:
        """Return the events that are whole."""
        return self._shown(self._events())

    def _events(self) -> bytes:
        whole = self._whole
        if not whole:
            return b""
        if len(whole) == 1:
            data = whole.pop()
        else:
            data = b"".join(whole)
            whole.clear()
        self._taken += len(data)
        if self.is_failing:
            data = self._without_late_content(data)
        self._last = b"" if self._is_over else data
        return data

    def _without_late_content(self, data: bytes) -> bytes:
        """Return events up to the first that tells content or success behind a held error.

        A decoder of its own finds the event with the error, and another one reads behind it. One
        that holds an error tells no content, so that a second error does not pass either.
        """
        reader = self._reader or Decoder(self._protocol)
        kept = 0
        while kept < len(data):
            end = _END.search(data, kept)
            event = data[kept : len(data) if end is None else end.end()]
            is_over = reader.finished
            told = {delta.kind for delta in reader.feed(event)}
            if self._is_behind and (is_over or reader.holds_error or told - BEFORE_CONTENT):
                self._is_over = True
                self._part = []
                break
            if reader.holds_error:
                self._is_behind = True
                reader = Decoder(self._protocol)
            kept += len(event)
        self._reader = reader
        return data[:kept]

    def take_until(self, end: int | None, *, without_last: bool = False) -> bytes:
        """Return the events up to the one that ended the stream; what follows it never leaves.

        Args:
            end: the bytes of the body up to the end of this event; None where there is none.
            without_last: whether this event, which the decoder could not read, does not leave too.
        """
        before = self._taken
        data = self._events()
        if end is None:
            return self._shown(data)
        self._is_over = True
        self._part = []
        stop = max(0, end - before)
        # An error without the form of an event is in no event that is whole.
        has_end = stop <= len(data)
        while data[stop : stop + 1] in {b"\r", b"\n"}:  # of the empty line behind the event
            stop += 1
        data = data[:stop]
        if without_last and has_end:
            marks = _ENDS if b"\r" in data else _ENDS[:1]
            body = data.rstrip(b"\r\n")
            data = data[
                : max(body.rfind(mark) + len(mark) if mark in body else 0 for mark in marks)
            ]
        self._last = data if has_end else b""
        return self._shown(data)

    def close(self) -> bytes:
        """Return the rest of a stream that succeeded."""
        data = self._rest()
        if self._closing is not None and self._closing[0] not in self._last:
            self._last = self._closing[1]
            data += self._last
        return self._shown(data)

    def last(self) -> bytes:
        """Return the rest of a stream that ended; an event may lack the empty line after it."""
        return self._shown(self._rest())

    def _rest(self) -> bytes:
        rest = b"".join(self._part)
        if _is_event(rest):
            self._part = []
            self._whole.append(rest + b"\n\n")
        return self._events()

    @property
    def tells_failure(self) -> bool:
        """Whether the last bytes are an event that clients read as the failure of a stream."""
        events = self._last.rstrip(b"\r\n")
        start = max((found.end() for found in _END.finditer(events)), default=0)
        last = events[start:]
        if self._part or not any(line.startswith(b"data:") for line in last.splitlines()):
            return False
        return self._failing.search(last) is not None


_OF_A_RECORD: Final = frozenset(
    {
        "choices",
        "created",
        "id",
        "model",
        "object",
        "obfuscation",
        "p",
        "provider",
        "service_tier",
        "system_fingerprint",
        "time_info",
        "timings",
        "x_groq",
    }
)
"""Members beside `usage` that tell a client without the counts nothing.

Sources: those of `ChatCompletionChunk` of openai-python 3.57 that each chunk has, and the clocks
and counters of OpenRouter, llama.cpp, Cerebras and Groq.
"""

_RECORD: Final = re.compile(rb'"usage"\s*:\s*\{')


def without_usage(events: bytes) -> bytes:
    """Return whole events of Chat without the records of usage that the gateway alone asked for.

    The record is a chunk without choices. Some vendors have it in a chunk with choices, citations,
    filter results or an error, which stay.
    Source: "stream_options" of OpenAI's reference of Chat Completions.
    """
    if b'"usage"' not in events or _RECORD.search(events) is None:  # OpenAI sends null elsewhere
        return events
    kept: list[bytes] = []
    lines: list[bytes] = []
    for line in events.splitlines(keepends=True):
        lines.append(line)
        if not line.strip(b"\r\n"):
            kept += _event_without_usage(lines)
            lines = []
    return b"".join((*kept, *_event_without_usage(lines)))


def _event_without_usage(lines: list[bytes]) -> list[bytes]:
    """Return the lines of an event without its record of usage, none if it has nothing else."""
    fields = [line for line in lines if line.startswith(b"data:")]
    try:
        chunk = json_object(json.loads(b"".join(line[5:] for line in fields)))
    except (ValueError, RecursionError):
        return lines
    if chunk is None or json_object(chunk.get("usage")) is None:
        return lines
    rest = {name: value for name, value in chunk.items() if name != "usage"}
    told = {name for name, value in rest.items() if value}
    if "choices" not in told and told <= _OF_A_RECORD:
        return []
    data = json.dumps(rest, separators=(",", ":")).encode()
    end = fields[-1][len(fields[-1].rstrip(b"\r\n")) :]
    first = lines.index(fields[0])
    others = [line for line in lines[first:] if not line.startswith(b"data:")]
    return [*lines[:first], b"data: " + data + end, *others]


def _is_event(rest: bytes) -> bool:
    """Return whether an event lacks nothing but the empty line after it."""
    fields = [line[5:] for line in rest.splitlines() if line.startswith(b"data:")]
    # The decoder also reads events that stand without empty lines between them.
    return _is_data(b"\n".join(fields)) or (bool(fields) and all(map(_is_data, fields)))


def _is_data(field: bytes) -> bool:
    try:
        json.loads(field)
    except (ValueError, RecursionError):
        return field.strip() == b"[DONE]"
    return True
