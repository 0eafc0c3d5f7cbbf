"""Events of a recording, and the deltas that each of them gives.

In: a recording and its dialect.  Out: `Inspection`, whose fields are JSON values.

Laws: each event is fed alone, so that its deltas are known; the deltas are those of a stream of the
same body. Events are those of the decoder's own framing, and together they are the whole body. The
end of the body is an event of its own, because it can give deltas. The same recording gives the
same inspection.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final, Literal, Self, TypeAlias

from pydantic import TypeAdapter

from deltafold._core import (
    FIRST_REFUSAL,
    DeltaBatch,
    MessageDelta,
    PartialJson,
    __version__,
    event_ends,
)
from deltafold.contract.foreign_text import well_formed
from deltafold.contract.kinds import DeltaKind
from deltafold.contract.names import ProtocolName
from deltafold.dialects import DIALECTS
from deltafold.message.cost import cost_of
from deltafold.streams.core import NO_CALL, StreamCore
from deltafold.testing.recording import Recording
from deltafold.testing.transport import fault_of
from deltafold.transports.sources import Source

Change: TypeAlias = tuple[list[str | int], Literal["set", "append"], object]
"""A change of a tool call's arguments: path, operation and value, as `PartialJson.changes` has."""

ShownDelta: TypeAlias = tuple[int, str, Mapping[str, object], list[Change]]
"""A delta: the number of its event, its kind, its payload, and the changes of the arguments."""

Note: TypeAlias = tuple[int, Literal["error", "warning"], str, str, int | None]
"""A problem: the number of its event, its level, its code, its text, and its byte offset."""

_MAX_EVENTS: Final = 200_000
"""Of a page: a browser's list ends at about 33 million pixels, and each event has its row."""

_RUN: Final = "inspected"


@dataclass(frozen=True, slots=True)
class Inspection:
    """One recording, as the page shows it.

    Attributes:
        name: the name of the recording.
        dialect: its protocol.
        version: the version of deltafold that decoded it.
        status: the HTTP status.
        ending: how the body ended: `end`, `cut`, `reset` or `stall`.
        timed: whether the recording has times.
        texts: the bytes of each event as text, invalid UTF-8 as escapes; "" for the end.
        offsets: the byte offset of each event in the body.
        seconds: when each event was whole, in seconds since the request; 0 without times.
        pieces: byte offset of the end of each piece of the body, and its time in seconds.
        deltas: the deltas in their order.
        notes: errors and warnings, in the order of their events.
        cost: US dollars and the source of the amount, None if it is not known.
    """

    name: str
    dialect: ProtocolName
    version: str
    status: int
    ending: str
    timed: bool
    texts: list[str]
    offsets: list[int]
    seconds: list[float]
    pieces: list[tuple[int, float]]
    deltas: list[ShownDelta]
    notes: list[Note]
    cost: tuple[float, str] | None

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON values, without copying them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, members: Mapping[str, object]) -> Self:
        """Make the inspection of the fields that a page holds.

        Raises:
            ValueError: a field is missing or has another type; another version wrote the page.
        """
        return TypeAdapter(cls).validate_python(members)


def inspect_recording(
    recording: Recording, dialect: ProtocolName, name: str = "recording"
) -> Inspection:
    """Decode a recording event by event.

    >>> inspection = inspect_recording(Recording.read("recording.sse"), "openai-chat")
    >>> inspection.texts[0][:6], inspection.deltas[0][1]
    ('data: ', 'start')

    Args:
        recording: the recording.
        dialect: its protocol.
        name: what to call it.

    Raises:
        UnknownDialectError: there is no such dialect.
    """
    return _Inspecting(recording, dialect).result(well_formed(name))


class _Inspecting:
    """An inspection while it is made."""

    def __init__(self, recording: Recording, dialect: ProtocolName) -> None:
        self._recording = recording
        self._dialect: ProtocolName = dialect
        self._body = recording.body
        self._deltas: list[ShownDelta] = []
        self._notes: list[Note] = []
        self._readers: dict[str, PartialJson] = {}
        self._broken: set[str] = set()
        self._model_id = ""
        self._core = StreamCore(dialect, None, {"run_id": _RUN, "clock": _no_time}, NO_CALL)
        self._starts = [0, *self._ends()]
        sent = list(recording.pieces_sent())
        ends = accumulate(len(piece) for _, piece in sent)
        times = accumulate((after for after, _ in sent), initial=recording.headers_after)
        next(times)
        self._pieces = [(end, round(time, 6)) for end, time in zip(ends, times, strict=True)]

    def result(self, name: str) -> Inspection:
        """Decode, and return the inspection."""
        self._decode()
        timed = self._recording.headers_after > 0 or any(time for _, time in self._pieces)
        cost = cost_of(self._core.assembler.usage, self._vendor, self._model_id)
        return Inspection(
            name=name,
            dialect=self._dialect,
            version=__version__,
            status=self._recording.status,
            ending=self._recording.ending,
            timed=timed,
            texts=[event.decode("utf-8", "backslashreplace") for event in self._events()] + [""],
            offsets=self._starts,
            seconds=list(self._seconds()),
            pieces=self._pieces if timed else [],
            deltas=self._deltas,
            notes=sorted(self._notes, key=lambda note: note[0]),
            cost=None if cost.usd is None else (cost.usd, str(cost.source)),
        )

    @property
    def _vendor(self) -> str:
        row = DIALECTS.get(self._dialect)
        return "" if row is None else row.author

    def _ends(self) -> list[int]:
        """Return the offsets at which events end; the last one is the length of the body."""
        if not self._body:
            return []
        refused = self._recording.status >= FIRST_REFUSAL  # its body is one error
        ends = [] if refused else event_ends(self._body, self._dialect)
        if not ends or ends[-1] < len(self._body):
            ends.append(len(self._body))
        step = -(-len(ends) // _MAX_EVENTS)
        return ends if step == 1 else [*ends[step - 1 : -1 : step], ends[-1]]

    def _events(self) -> Iterator[bytes]:
        for start, end in zip(self._starts, self._starts[1:], strict=False):
            yield self._body[start:end]

    def _seconds(self) -> Iterator[float]:
        """Yield the time of the piece with the last byte of each event, then that of the end."""
        piece = 0
        for end in self._starts[1:]:
            while self._pieces[piece][0] < end:
                piece += 1
            yield self._pieces[piece][1]
        yield self._pieces[-1][1] if self._pieces else self._recording.headers_after

    def _decode(self) -> None:
        recording, core = self._recording, self._core
        # The error of a refusal is its body, and known when the body has ended.
        last = 0 if recording.status >= FIRST_REFUSAL else len(self._starts) - 1
        if not recording.before_headers:
            core.opened(Source(iter(()), _nothing, recording.status, recording.headers))
            for number, event in enumerate(self._events()):
                if core.ended:
                    break
                self._take(number, core.step(event))
        if not core.ended:
            self._take(last, core.step(fault_of(recording.ending)))

    def _take(self, event: int, deltas: DeltaBatch) -> None:
        for delta in deltas:
            payload = delta.payload
            self._deltas.append((event, delta.kind.value, payload, self._changes(event, delta)))
            # The end names the model that finished the answer, if it is another one.
            if delta.kind in {DeltaKind.START, DeltaKind.DONE}:
                self._model_id = delta.model_id or self._model_id
            if delta.kind is DeltaKind.ERROR:
                text = delta.error_message or "no message"
                self._notes.append((event, "error", str(delta.error_code), text, None))
            if delta.incomplete:
                text = f"the arguments of {delta.tool_call_id} are incomplete"
                self._notes.append((event, "warning", "incomplete", text, None))
            for warning in delta.warnings:
                self._warn(event, warning)

    def _warn(self, event: int, warning: Mapping[str, object]) -> None:
        offset = warning.get("offset")
        if isinstance(offset, int):
            event = min(bisect_right(self._starts, offset) - 1, event)
        code, text = str(warning.get("code")), str(warning.get("message"))
        place = offset if isinstance(offset, int) else None
        self._notes.append((event, "warning", code, text, place))

    def _changes(self, event: int, delta: MessageDelta) -> list[Change]:
        call = delta.tool_call_id
        if call is None:
            return []
        if delta.kind is DeltaKind.TOOL_CALL_START:
            if delta.input_format != "text":
                self._readers[call] = PartialJson()
            return []
        reader = self._readers.get(call)
        if reader is None or call in self._broken:
            return []
        if delta.args_text:
            reader.feed(delta.args_text)
        elif delta.kind is DeltaKind.TOOL_CALL_END and not delta.incomplete:
            reader.close()
        changes: list[Change] = [(list(path), kind, new) for path, kind, new in reader.changes()]
        if reader.error is not None:
            self._broken.add(call)
            text = f"the arguments of {call} are not JSON: {reader.error.message}"
            self._notes.append((event, "warning", "parse_error", text, None))
        return changes


def _no_time() -> datetime:
    return datetime(2000, 1, 1, tzinfo=UTC)


def _nothing() -> None:
    """Close no connection."""
