"""First event at which two recordings disagree.

In: two inspections; of two recordings, or of one recording by two versions of deltafold.  Out: a
`Difference`, or None.

Laws: what the deltas carry is compared, not how it was cut: the texts of a part are one text,
however many deltas carry it. Request ids differ between two calls, so that they are not compared;
tool call ids are compared by the order of the calls. Usage is compared after everything else,
because its details differ between most calls.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from deltafold.inspector.inspection import Inspection

_TEXTS: Final = {"text": "textDelta", "thinking": "textDelta", "tool_call_args": "argsTextDelta"}
_NOT_COMPARED: Final = frozenset({"requestId"})
_LONGEST: Final = 120


@dataclass(frozen=True, slots=True)
class Difference:
    """The first disagreement of two recordings.

    Attributes:
        left_event: number of the event of the left recording, from 0.
        right_event: that of the right recording.
        left: what the left recording has there.
        right: what the right recording has there.
    """

    left_event: int
    right_event: int
    left: str
    right: str

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return asdict(self)


def first_difference(left: Inspection, right: Inspection) -> Difference | None:
    """Return the first disagreement of two inspections, None if their deltas say the same.

    >>> first_difference(inspection, inspection) is None
    True
    """
    content = _first(_steps(left, counts=False), _steps(right, counts=False))
    return content or _first(_steps(left, counts=True), _steps(right, counts=True))


def _first(lefts: "Iterator[_Step]", rights: "Iterator[_Step]") -> Difference | None:
    one, other = next(lefts), next(rights)
    while one.place == other.place:
        if one.place == _END:
            return None
        shared = _shared(one.text, other.text)
        if shared < min(len(one.text), len(other.text)):
            return _difference(one, other, shared)
        one.text, other.text = one.text[shared:], other.text[shared:]
        both_end = not one.text and not other.text
        if not both_end and not one.grows:
            return _difference(one, other)
        # A text that is over on one side may go on in the next delta of that side.
        following = next(lefts) if not one.text else one, next(rights) if not other.text else other
        if following[0].place != following[1].place and not both_end:
            return _difference(*following)
        one, other = following
    return _difference(one, other)


@dataclass(slots=True)
class _Step:
    """What one delta adds: a piece of the text of a place, or facts, which are whole."""

    event: int
    place: str
    text: str
    grows: bool


_END: Final = "the end of the stream"


def _steps(inspection: Inspection, *, counts: bool) -> Iterator[_Step]:
    """Yield what the deltas add: the counts of usage alone, or everything else."""
    calls: dict[object, int] = {}
    for event, kind, payload, _ in inspection.deltas:
        if (kind == "usage") != counts:
            continue
        facts = {name: value for name, value in payload.items() if name not in _NOT_COMPARED}
        call = facts.pop("toolCallId", None)
        number = "" if call is None else f" of call {calls.setdefault(call, len(calls)) + 1}"
        text = facts.pop(_TEXTS.get(kind, ""), None)
        part = facts.get("partIndex", "")
        if isinstance(text, str) and text:
            yield _Step(event, f"{kind} {part}{number}", text, grows=True)
        facts.pop("partIndex", None)
        if facts or text is None:
            members = json.dumps(facts, ensure_ascii=False, sort_keys=True) if facts else ""
            yield _Step(event, f"{kind} {part}{number}".rstrip(), members, grows=False)
    yield _Step(len(inspection.texts) - 1, _END, "", grows=False)


def _shared(one: str, other: str) -> int:
    """Return the length of the common beginning."""
    if one.startswith(other) or other.startswith(one):
        return min(len(one), len(other))
    low, high = 0, min(len(one), len(other))
    while low < high:  # the longest equal beginning, by halves, because comparing is fast
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _difference(one: _Step, other: _Step, at: int = 0) -> Difference:
    return Difference(one.event, other.event, _told(one, at), _told(other, at))


def _told(step: _Step, at: int) -> str:
    """Return what a step says from the difference on."""
    text = step.text[at:] if step.grows else step.text
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"{step.place}: {text!r}" if step.grows else f"{step.place} {text}".rstrip()
