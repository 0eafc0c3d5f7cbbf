"""Events of a recording, and the deltas that each of them gives.

In: a recording and its dialect.  Out: `Inspection`, whose fields are JSON values.

Laws: each event is fed alone, so that its deltas are known; the deltas are those of a stream of the
same body. Warnings, error, finish reason, counts and the calls that may run are those of the fold
of the body. Events are those of the decoder's own framing, and together they are the whole body.
The end of the body is an event of its own, because it can give deltas. The same recording gives the
same inspection.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
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
from deltafold.inspector.answer import Answer, answer_of
from deltafold.inspector.frames import ShownFrame, frame_of
from deltafold.message.cost import cost_of
from deltafold.streams.core import NO_CALL, StreamCore
from deltafold.testing.recording import Recording
from deltafold.testing.transport import fault_of
from deltafold.transports.sources import Source

Change: TypeAlias = tuple[list[str | int], Literal["set", "append"], object]
"""A change of a tool call's arguments: path, operation and value, as `PartialJson.changes` has."""

ShownDelta: TypeAlias = tuple[int, str, Mapping[str, object], list[Change]]
"""A delta: the number of its event, its kind, its payload, and the changes of the arguments."""

Level: TypeAlias = Literal["error", "refusal", "call", "warning"]
"""Kind of a problem: an error, a refused answer, a call that was cut off or that no tool can take,
a warning."""

Note: TypeAlias = tuple[int, Level, str, str, int | None]
"""A problem: the number of its event, its level, its code, its text, and its byte offset."""

_MAX_EVENTS: Final = 200_000
"""Of a page: a browser's list ends at about 33 million pixels, and each event has its row."""

_RUN: Final = "inspected"
_LEVELS: Final[tuple[Level, ...]] = ("error", "refusal", "call", "warning")
"""Order of the problems of one event."""


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
        notes: problems, in the order of their events.
        cost: US dollars and the source of the amount, None if it is not known.
        answer: what the fold of the recording says, None in a page of an older version.
        frames: type and content of each event that is a binary frame, None for other events; empty
            without a binary frame.
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
    # The two are younger than the others: pages without them are still read.
    answer: Answer | None = None
    frames: list[ShownFrame | None] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON values, without copying the large ones."""
        members = {one.name: getattr(self, one.name) for one in fields(self)}
        members["answer"] = None if self.answer is None else asdict(self.answer)
        return members

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
        self._ends_of_calls: dict[str, tuple[int, list[Change]]] = {}
        self._last = 0
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
        answer = self._answer()
        frames = [frame_of(event) for event in self._events()]
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
            notes=sorted(self._notes, key=lambda note: (note[0], _LEVELS.index(note[1]))),
            cost=None if cost.usd is None else (cost.usd, str(cost.source)),
            answer=answer,
            frames=frames if any(frames) else [],
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
            payload, changes = delta.payload, self._changes(delta)
            self._deltas.append((event, delta.kind.value, payload, changes))
            self._last = event
            if delta.tool_call_id is not None:
                self._ends_of_calls[delta.tool_call_id] = event, changes
            # The end names the model that finished the answer, if it is another one.
            if delta.kind in {DeltaKind.START, DeltaKind.DONE}:
                self._model_id = delta.model_id or self._model_id

    def _changes(self, delta: MessageDelta) -> list[Change]:
        call = delta.tool_call_id
        if call is None:
            return []
        if delta.kind is DeltaKind.TOOL_CALL_START:
            if delta.input_format != "text":
                self._readers[call] = PartialJson()
            return []
        reader = self._readers.get(call)
        if reader is None:
            return []
        if delta.args_text:
            reader.feed(delta.args_text)
        elif delta.kind is DeltaKind.TOOL_CALL_END and not delta.incomplete:
            reader.close()
        return [(list(path), kind, new) for path, kind, new in reader.changes()]

    def _answer(self) -> Answer:
        """Return what the fold says, and note its problems at the events that caused them."""
        message, error = self._core.snapshot(), self._core.error()
        answer = answer_of(message, error)
        if error is not None:
            text = error.message or "no message"
            self._notes.append((self._last, "error", error.code.value, text, None))
        elif answer.forbids_calls is not None:
            code = str(answer.finish_reason)
            self._notes.append((self._last, "refusal", code, answer.forbids_calls, None))
        for warning in message.meta.warnings:
            self._warn(warning)
        for call in message.tool_calls:
            event, changes = self._ends_of_calls[call.tool_call_id]
            if call.defect is not None:
                code = "incomplete" if call.incomplete else "parse_error"
                text = f"{call.tool_name} ({call.tool_call_id}): {call.defect}"
                self._notes.append((event, "call", code, text, None))
            elif not call.raw_args_text:
                changes.append(([], "set", call.arguments))
        return answer

    def _warn(self, warning: Mapping[str, object]) -> None:
        offset, event = warning.get("offset"), self._last
        if isinstance(offset, int):
            event = min(bisect_right(self._starts, offset) - 1, event)
        code, text = str(warning.get("code")), str(warning.get("message"))
        place = offset if isinstance(offset, int) else None
        self._notes.append((event, "warning", code, text, place))


def _no_time() -> datetime:
    return datetime(2000, 1, 1, tzinfo=UTC)


def _nothing() -> None:
    """Close no connection."""
