"""Draws docs/stream.svg and docs/stream-narrow.svg: a stream becomes deltas, and these a message.

In: a recording of the demo.  Out: two SVGs of the same story that animate themselves, without
scripts and fonts: the wide one has its boxes beside each other, the narrow one has them stacked.

Laws: the same recording gives the same bytes. The cycle begins with the end of the stream, holds
it, and then replays the stream. A reader who asks for reduced motion and a viewer without
animation see the end alone. The colours follow the light or dark scheme of the reader.

    python tools/stream_picture.py
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from deltafold.inspector import inspect_recording
from deltafold.inspector.inspection import ShownDelta
from deltafold.testing import Recording

ROOT: Final = Path(__file__).parents[1]
RECORDING: Final = "python/deltafold/cli/demo/recordings/anthropic-messages.tool-call.sse"

FONT: Final = 12
# The widest of the usual fonts, DejaVu Sans Mono and Menlo, advance by 0.602 of their size.
ADVANCE: Final = 0.602 * FONT
LINE: Final = 18
PADDING: Final = 10
# From the top of a box to the bases of its title and first line, and from the last to its end.
TITLE: Final = 22
HEAD: Final = 46
FOOT: Final = 14

SECONDS_FULL: Final = 5.0
SECONDS_AN_EVENT: Final = 0.16
SECONDS_AT_THE_END: Final = 1.0

STYLE: Final = """
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
text { fill: #1d2a2e; }
.title { font-weight: bold; }
.dim { fill: #58676c; }
.thinking { fill: #7a3fb0; }
.text { fill: #0b5f8a; }
.call { fill: #0f6a46; }
.other { fill: #8f4a00; }
rect { fill: #f5f8f8; stroke: #cfdadb; }
@media (prefers-color-scheme: dark) {
  text { fill: #dfe8ea; }
  .dim { fill: #93a3a8; }
  .thinking { fill: #cda6f2; }
  .text { fill: #7cc4ec; }
  .call { fill: #76d3a4; }
  .other { fill: #f0b072; }
  rect { fill: #172024; stroke: #2f3d42; }
}
"""

CLASSES: Final = {
    "thinking": "thinking",
    "text": "text",
    "tool_call_start": "call",
    "tool_call_args": "call",
    "tool_call_end": "call",
}


@dataclass(frozen=True, slots=True)
class Box:
    """A box of the picture: its place, and the lines that fit into it."""

    title: str
    left: int
    top: int
    width: int
    lines: int

    @property
    def height(self) -> int:
        """Height of the box."""
        return HEAD + (self.lines - 1) * LINE + FOOT

    @property
    def columns(self) -> int:
        """Number of characters that fit into a line."""
        return int((self.width - 2 * PADDING) / ADVANCE)

    @property
    def x(self) -> int:
        """Left end of its texts."""
        return self.left + PADDING

    @property
    def y(self) -> int:
        """Base of the first line."""
        return self.top + HEAD


@dataclass(frozen=True, slots=True)
class Layout:
    """One form of the picture.

    Attributes:
        file: the file below docs/.
        width: units of the whole; `FONT` is in the same units.
        aligned: whether the bytes of an event begin in the row of its first delta.
    """

    file: str
    width: int
    source: Box
    deltas: Box
    message: Box
    aligned: bool


BYTES_TITLE, DELTAS_TITLE, MESSAGE_TITLE = "bytes of the provider", "deltas", "message"

WIDE: Final = Layout(
    file="stream.svg",
    width=760,
    source=Box(BYTES_TITLE, 1, 1, 210, 19),
    deltas=Box(DELTAS_TITLE, 219, 1, 224, 19),
    message=Box(MESSAGE_TITLE, 451, 1, 308, 19),
    aligned=True,
)
NARROW: Final = Layout(
    file="stream-narrow.svg",
    width=358,
    source=Box(BYTES_TITLE, 1, 1, 356, 3),
    deltas=Box(DELTAS_TITLE, 1, 105, 356, 5),
    message=Box(MESSAGE_TITLE, 1, 245, 356, 19),
    aligned=False,
)
LAYOUTS: Final = (WIDE, NARROW)


@dataclass(frozen=True, slots=True)
class Step:
    """One event of the recording: its bytes, and the kinds and payloads of its deltas."""

    data: str
    deltas: list[tuple[str, Mapping[str, Any]]]


class Piece(NamedTuple):
    """A text that one step adds to a line."""

    step: int
    name: str
    text: str


class Row(NamedTuple):
    """A line of a box, counted from its first one."""

    line: int
    pieces: Sequence[Piece]


def steps_of(body: bytes) -> Iterator[Step]:
    """Decode the recording event by event; leave out events that give no delta."""
    inspection = inspect_recording(Recording.of(body), "anthropic-messages")
    for event, deltas in groupby(inspection.deltas, key=_event_of):
        data = inspection.texts[event].rstrip("\n").split("data: ", 1)[-1]
        yield Step(data, [(kind, payload) for _, kind, payload, _ in deltas])


def _event_of(delta: ShownDelta) -> int:
    return delta[0]


def picture(body: bytes, layout: Layout) -> str:
    """Return one form of the picture of a recording.

    Raises:
        ValueError: the message has more lines than its box.
    """
    steps = list(steps_of(body))
    message = _message(steps, layout.message)
    if message[-1].line >= layout.message.lines:
        raise ValueError(f"{layout.file}: {message[-1].line + 1} lines of message do not fit")
    source, deltas = _source(steps, layout), _deltas(steps, layout.deltas)
    boxes = (layout.source, layout.deltas, layout.message)
    height = max(box.top + box.height for box in boxes) + 1
    scrolled = [
        _scrolled(box, rows, _scroll(rows, box.lines, len(steps)), name)
        for box, rows, name in ((layout.source, source, "bytes"), (layout.deltas, deltas, "deltas"))
    ]
    rules = [_appearing(len(steps)), *(rule for rule, _ in scrolled)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width} {height}" '
        f'width="{layout.width}" height="{height}" role="img" xml:space="preserve">\n'
        "<title>A stream of bytes becomes deltas, and the deltas become a message</title>\n"
        f"<style>{STYLE}"
        # Nothing moves unless the reader's viewer knows the question and allows it.
        "@media (prefers-reduced-motion: no-preference) {\n"
        f"[class^=s], .rows {{ animation: {_seconds(len(steps)):.2f}s step-end infinite; }}\n"
        f"{''.join(rules)}}}\n</style>\n"
        + "".join(_frame(box) for box in boxes)
        + "".join(drawn for _, drawn in scrolled)
        + "".join(_drawn(layout.message, row) for row in message)
        + "</svg>\n"
    )


def _seconds(steps: int) -> float:
    return SECONDS_FULL + steps * SECONDS_AN_EVENT + SECONDS_AT_THE_END


def _percent(step: int | None, steps: int) -> str:
    """Return the time of a step, or of the beginning of the replay, in percent of the cycle."""
    at = SECONDS_FULL + (0 if step is None else (step + 1) * SECONDS_AN_EVENT)
    return f"{100 * at / _seconds(steps):.2f}%"


def _appearing(steps: int) -> str:
    """Return the rules of texts: each vanishes as the replay begins, and comes with its step."""
    begin = _percent(None, steps)
    return "".join(
        f".s{step} {{ animation-name: s{step}; }} @keyframes s{step} "
        f"{{ {begin} {{ fill-opacity: 0; }} {_percent(step, steps)} {{ fill-opacity: 1; }} }}\n"
        for step in range(steps)
    )


def _scroll(rows: Sequence[Row], lines: int, steps: int) -> list[int]:
    """Return after how many rows the last visible one is, by step: how far a box has scrolled."""
    last = [0] * steps
    for row in rows:
        for piece in row.pieces:
            last[piece.step] = max(last[piece.step], row.line)
    moved: list[int] = []
    for line in last:
        moved.append(max(moved[-1] if moved else 0, line - lines + 1))
    return moved


def _scrolled(box: Box, rows: Sequence[Row], moved: Sequence[int], name: str) -> tuple[str, str]:
    """Return the rules and the elements of a box whose rows scroll."""
    steps = len(moved)
    frames = [f"{_percent(None, steps)} {{ transform: none; }}"]
    frames += [
        f"{_percent(step, steps)} {{ transform: translateY({-LINE * lines}px); }}"
        for step, lines in enumerate(moved)
        if lines and (step == 0 or lines != moved[step - 1])
    ]
    rules = f".{name} {{ animation-name: {name}; }} @keyframes {name} {{ {' '.join(frames)} }}\n"
    drawn = "".join(_drawn(box, row) for row in rows)
    clip = (
        f'<clipPath id="{name}"><rect x="{box.left}" y="{box.y - LINE + 4}" width="{box.width}" '
        f'height="{box.lines * LINE}"/></clipPath>\n'
    )
    return rules, (
        f'{clip}<g clip-path="url(#{name})"><g class="rows {name}" '
        f'transform="translate(0 {-LINE * moved[-1]})">\n{drawn}</g></g>\n'
    )


def _source(steps: Sequence[Step], layout: Layout) -> list[Row]:
    """Return the rows of the bytes."""
    rows: list[Row] = []
    line = 0
    for number, step in enumerate(steps):
        rows.append(Row(line, [Piece(number, "dim", _end_of(step.data, layout.source.columns))]))
        line += len(step.deltas) if layout.aligned else 1
    return rows


def _deltas(steps: Sequence[Step], box: Box) -> list[Row]:
    """Return the rows of the deltas."""
    told = [
        Piece(number, CLASSES.get(kind, "other"), _cut(_told(kind, payload), box.columns))
        for number, step in enumerate(steps)
        for kind, payload in step.deltas
    ]
    return [Row(line, [piece]) for line, piece in enumerate(told)]


def _told(kind: str, payload: Mapping[str, Any]) -> str:
    """Return a delta in one line."""
    about = {
        "start": payload.get("modelId"),
        "text": payload.get("textDelta"),
        "thinking": payload.get("textDelta") or "(signature)",
        "tool_call_start": payload.get("toolName"),
        "tool_call_args": payload.get("argsTextDelta"),
        "usage": payload.get("outputTokens"),
        "done": payload.get("finishReason"),
    }.get(kind, "")
    return f"{kind} {about}".rstrip()


def _message(steps: Sequence[Step], box: Box) -> list[Row]:
    """Return the rows of the message: the heading of each part, and its text in whole words."""
    pieces = [
        (heading, Piece(number, CLASSES.get(kind, "other"), text))
        for number, step in enumerate(steps)
        for kind, payload in step.deltas
        for heading, text in [_piece(kind, payload)]
        if text
    ]
    rows: list[Row] = []
    line = 0
    for heading, part in groupby(pieces, key=lambda pair: pair[0]):
        texts = [piece for _, piece in part]
        rows.append(Row(line, [Piece(texts[0].step, "dim", heading)]))
        for wrapped in _wrapped(texts, box.columns):
            line += 1
            rows.append(Row(line, wrapped))
        line += 2
    return rows


def _piece(kind: str, payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return the heading of a delta's part, and the text that the delta adds."""
    if kind in {"text", "thinking"}:
        return kind, str(payload["textDelta"])
    if kind == "tool_call_start":
        return "tool call", f"{payload['toolName']} "
    if kind == "tool_call_args":
        return "tool call", str(payload["argsTextDelta"])
    if kind == "done":
        return "finish reason", str(payload["finishReason"])
    return "", ""


def _wrapped(pieces: Sequence[Piece], size: int) -> Iterator[list[Piece]]:
    """Yield the lines of a part; a line ends behind a space, also where a piece ends in a word."""
    text = "".join(piece.text for piece in pieces).replace("\n", " ")
    owners = [piece for piece in pieces for _ in piece.text]
    begin = 0
    while begin < len(text):
        end = begin + size
        if end < len(text):
            end = max(text.rfind(" ", begin, end + 1) + 1, begin + 1)
        yield [
            owner._replace(text="".join(text[at] for at in places))
            for owner, places in groupby(range(begin, min(end, len(text))), owners.__getitem__)
        ]
        begin = end


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"


def _end_of(text: str, size: int) -> str:
    """Return the end of a text, where the events of a stream differ."""
    return text if len(text) <= size else f"…{text[1 - size :]}"


def _frame(box: Box) -> str:
    """Return a box and its title."""
    return (
        f'<rect x="{box.left}" y="{box.top}" width="{box.width}" height="{box.height}" rx="6"/>\n'
        f'<text class="title" x="{box.x}" y="{box.top + TITLE}">{box.title}</text>\n'
    )


def _drawn(box: Box, row: Row) -> str:
    """Return a line of text; each of its pieces appears with its step."""
    pieces = "".join(
        f'<tspan class="s{step} {name}">{escape(text, quote=False)}</tspan>'
        for step, name, text in row.pieces
    )
    return f'<text x="{box.x}" y="{box.y + row.line * LINE}">{pieces}</text>\n'


def main() -> None:
    """Write the pictures."""
    body = (ROOT / RECORDING).read_bytes()
    for layout in LAYOUTS:
        (ROOT / "docs" / layout.file).write_text(picture(body, layout), encoding="utf-8")


if __name__ == "__main__":
    main()
