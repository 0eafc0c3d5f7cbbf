"""A bar chart as SVG: microseconds an event by reader, on a logarithmic scale.

In: names and numbers.  Out: the text of an SVG file that is readable on light and on dark ground.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final
from xml.sax.saxutils import escape

WIDTH: Final = 860
_LABELS: Final = 190
_NUMBERS: Final = 70
_BAR: Final = 9
_ROW: Final = 30
_TOP: Final = 64

_XMLNS: Final = "http://www.w3.org/2000/svg"
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; }
.small { font-size: 11px; fill: #59636e; }
.grid { stroke: #d1d9e0; }
.first { fill: #12727d; } .second { fill: #c2701c; }
.others.first { fill: #a3cbcf; } .others.second { fill: #ecc79c; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; } .small { fill: #9198a1; } .grid { stroke: #3d444d; }
  .first { fill: #2aa1ad; } .second { fill: #e39b45; }
  .others.first { fill: #1f565d; } .others.second { fill: #6e4f2a; }
}
"""


def bars(
    title: str, series: tuple[str, str], rows: Mapping[str, tuple[float | None, float | None]]
) -> str:
    """Return the chart; a row has a number for each of the two series, ours is the first row.

    A reader without a number of a series has no bar there.
    """
    values = [value for pair in rows.values() for value in pair if value is not None]
    # A decade below the shortest bar where that would have no length.
    low = math.floor(math.log10(min(values)) - 0.3)
    high = math.ceil(math.log10(max(values)))
    scale = (WIDTH - _LABELS - _NUMBERS) / (high - low)
    height = _TOP + _ROW * len(rows) + 28

    def place(value: float) -> float:
        return _LABELS + (math.log10(value) - low) * scale

    lines = [
        f'<svg xmlns="{_XMLNS}" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="8" y="22">{escape(title)}</text>',
        *_legend(series),
        *_grid(range(low, high + 1), scale, height),
    ]
    for at, (name, pair) in enumerate(rows.items()):
        top = _TOP + _ROW * at
        lines.append(
            f'<text x="{_LABELS - 10}" y="{top + 16}" text-anchor="end">{escape(name)}</text>'
        )
        whose = "" if at == 0 else "others "
        for order, (which, value) in enumerate(zip(("first", "second"), pair, strict=True)):
            if value is None:
                continue
            y = top + 2 + order * (_BAR + 2)
            end = place(value)
            lines.append(
                f'<rect class="{whose}{which}" x="{_LABELS}" y="{y}" '
                f'width="{end - _LABELS:.1f}" height="{_BAR}"/>'
            )
            lines.append(
                f'<text class="small" x="{end + 5:.1f}" y="{y + 8}">{_short(value)}</text>'
            )
    return "\n".join([*lines, "</svg>", ""])


def _legend(series: tuple[str, str]) -> Iterator[str]:
    for order, (which, name) in enumerate(zip(("first", "second"), series, strict=True)):
        x = _LABELS + order * 190
        yield f'<rect class="{which}" x="{x}" y="36" width="10" height="10"/>'
        yield f'<text x="{x + 16}" y="45">{escape(name)}</text>'


def _grid(powers: range, scale: float, height: int) -> Iterator[str]:
    for power in powers:
        x = _LABELS + (power - powers.start) * scale
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{height - 22}"/>'
        yield (
            f'<text class="small" x="{x:.1f}" y="{height - 8}" text-anchor="middle">'
            f"{10.0**power:g}</text>"
        )


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
