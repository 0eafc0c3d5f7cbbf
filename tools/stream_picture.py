"""Draws docs/stream.svg: a recorded stream becomes deltas, and the deltas become a message.

In: a recording of the demo.  Out: an SVG that animates itself, without scripts and fonts.

Laws: the same recording gives the same bytes. A viewer without animation shows the end of the
stream. The colours follow the light or dark scheme of the reader.

    python tools/stream_picture.py
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from deltafold.inspector import inspect_recording
from deltafold.inspector.inspection import ShownDelta
from deltafold.testing import Recording

ROOT: Final = Path(__file__).parents[1]
RECORDING: Final = "python/deltafold/cli/demo/recordings/anthropic-messages.tool-call.sse"
PICTURE: Final = ROOT / "docs" / "stream.svg"

WIDTH: Final = 960
LINE: Final = 18
ROWS: Final = 19
TOP: Final = 58
# Left borders of the columns, and the characters that fit into one: 6.6 units each at this size.
BYTES, BYTES_SIZE = 16, 42
DELTAS, DELTAS_SIZE = 318, 36
MESSAGE, MESSAGE_SIZE = 590, 53
SECONDS_AN_EVENT: Final = 0.16
SECONDS_AT_THE_END: Final = 5.0

STYLE: Final = """
text { font: 11px ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace; }
text { fill: #24292f; }
.title { font-weight: bold; }
.dim { fill: #6e7781; }
.thinking { fill: #8250df; }
.text { fill: #0550ae; }
.call { fill: #116329; }
.other { fill: #953800; }
.box { fill: #f6f8fa; stroke: #d0d7de; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .dim { fill: #8b949e; }
  .thinking { fill: #d2a8ff; }
  .text { fill: #79c0ff; }
  .call { fill: #7ee787; }
  .other { fill: #ffa657; }
  .box { fill: #161b22; stroke: #30363d; }
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
class Step:
    """One event of the recording: its bytes, and the kinds and payloads of its deltas."""

    data: str
    deltas: list[tuple[str, Mapping[str, Any]]]


def steps_of(body: bytes) -> Iterator[Step]:
    """Decode the recording event by event; leave out events that give no delta."""
    inspection = inspect_recording(Recording.of(body), "anthropic-messages")
    for event, deltas in groupby(inspection.deltas, key=_event_of):
        data = inspection.texts[event].rstrip("\n").split("data: ", 1)[-1]
        yield Step(data, [(kind, payload) for _, kind, payload, _ in deltas])


def _event_of(delta: ShownDelta) -> int:
    return delta[0]


def picture(body: bytes) -> str:
    """Return the SVG of a recording."""
    steps = list(steps_of(body))
    seconds = len(steps) * SECONDS_AN_EVENT + SECONDS_AT_THE_END
    shown = [(number + 1) * SECONDS_AN_EVENT / seconds for number in range(len(steps))]
    rows, first_rows = _rows(steps, shown, seconds)
    height = TOP + ROWS * LINE + 16
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        "<title>A stream of bytes becomes deltas, and the deltas become a message</title>\n"
        f"<style>{STYLE}</style>\n"
        f'<clipPath id="rows"><rect x="0" y="{TOP - 14}" width="{MESSAGE - 16}" '
        f'height="{ROWS * LINE + 4}"/></clipPath>\n'
    )
    boxes = "".join(
        f'<rect class="box" x="{left - 8}" y="8" width="{right - left}" '
        f'height="{height - 16}" rx="6"/>\n'
        f'<text class="title" x="{left}" y="28">{title}</text>\n'
        for left, right, title in (
            (BYTES, DELTAS - 8, "bytes of the provider"),
            (DELTAS, MESSAGE - 8, "deltas"),
            (MESSAGE, WIDTH, "message"),
        )
    )
    moved = [max(0, row - ROWS) * -LINE for row in first_rows]
    scroll = (
        f'<g clip-path="url(#rows)"><g transform="translate(0 {moved[-1]})">'
        + _animated("transform", [0, *moved], [0.0, *shown], seconds, kind="translate")
        + f"\n{rows}</g></g>\n"
    )
    return head + boxes + scroll + _message(steps, shown, seconds) + "</svg>\n"


def _rows(steps: list[Step], shown: list[float], seconds: float) -> tuple[str, list[int]]:
    """Return the rows of bytes and deltas, and the number of rows after each step."""
    drawn: list[str] = []
    counts: list[int] = []
    row = 0
    for step, time in zip(steps, shown, strict=True):
        for place, (kind, payload) in enumerate(step.deltas):
            y = TOP + row * LINE
            if place == 0:
                drawn.append(
                    _text((BYTES, y), "dim", _end_of(step.data, BYTES_SIZE), (time, seconds))
                )
            name = CLASSES.get(kind, "other")
            told = _cut(_told(kind, payload), DELTAS_SIZE)
            drawn.append(_text((DELTAS, y), name, told, (time, seconds)))
            row += 1
        counts.append(row)
    return "".join(drawn), counts


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


def _message(steps: list[Step], shown: list[float], seconds: float) -> str:
    """Return the column of the message: the pieces of each part, at the time of their delta."""
    drawn: list[str] = []
    line, column, part = 0, 0, ""
    for step, time in zip(steps, shown, strict=True):
        for kind, payload in step.deltas:
            heading, piece = _piece(kind, payload)
            if heading and heading != part:
                line, column, part = line + (2 if part else 0), 0, heading
                y = TOP + line * LINE
                drawn.append(_text((MESSAGE, y), "dim", heading, (time, seconds)))
                line += 1
            for word in _words(piece):
                if column + len(word.rstrip()) > MESSAGE_SIZE:
                    line, column = line + 1, 0
                x = MESSAGE + column * 6.6
                name = CLASSES.get(kind, "other")
                drawn.append(_text((x, TOP + line * LINE), name, word, (time, seconds)))
                column += len(word)
    return "".join(drawn)


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


def _words(text: str) -> list[str]:
    """Cut a text behind its spaces."""
    words = text.replace("\n", " ").split(" ")
    return [f"{word} " for word in words[:-1]] + ([words[-1]] if words[-1] else [])


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"


def _end_of(text: str, size: int) -> str:
    """Return the end of a text, where the events of a stream differ."""
    return text if len(text) <= size else f"…{text[1 - size :]}"


def _text(place: tuple[float, int], name: str, text: str, when: tuple[float, float]) -> str:
    """Return a text that appears at a time, a fraction of the seconds of the whole."""
    x, y = place
    time, seconds = when
    appears = _animated("opacity", [0, 1], [0.0, time], seconds)
    return (
        f'<text class="{name}" x="{x:g}" y="{y}" xml:space="preserve">{escape(text, quote=False)}'
        f"{appears}</text>\n"
    )


def _animated(
    attribute: str, values: list[int], times: list[float], seconds: float, *, kind: str = ""
) -> str:
    """Return an endless animation that steps through values."""
    stated = [f"0 {value}" if kind else str(value) for value in values]
    element = f'animateTransform type="{kind}"' if kind else "animate"
    return (
        f'<{element} attributeName="{attribute}" calcMode="discrete" repeatCount="indefinite" '
        f'dur="{seconds:.2f}s" values="{";".join(stated)}" '
        f'keyTimes="{";".join(f"{time:.4f}" for time in times)}"/>'
    )


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture((ROOT / RECORDING).read_bytes()), encoding="utf-8")


if __name__ == "__main__":
    main()
