"""docs/bench.md has no figure that the report of the benchmarks, docs/bench-report.md, has not.

`benches/report.py` writes both from the same results.
"""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from corpus import ROOT

PAGE: Final = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
REPORT: Final = (ROOT / "docs" / "bench-report.md").read_text(encoding="utf-8")


def rows_of(text: str) -> Iterator[list[str]]:
    """Yield the cells of all rows of the tables of a text, without heads and rules."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def section_of(anchor: str) -> str:
    """Return the section of the report that an anchor names."""
    for section in REPORT.split("\n## ")[1:]:
        title = section.partition("\n")[0]
        if title.lower().replace(" ", "-") == anchor:
            return section
    raise AssertionError(anchor)


ROWS: Final = list(rows_of(PAGE))


def test_the_page_opens_with_the_chart_and_has_five_rows() -> None:
    assert PAGE.index("](bench.svg)") < PAGE.index("|")
    assert len(ROWS) == 5


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_row_has_the_figures_of_its_table(row: list[str]) -> None:
    link, takes, ours, other = row
    anchor = re.match(r"\[.+\]\(bench-report\.md#(.+)\): µs", link)
    assert anchor is not None
    cells = list(rows_of(section_of(anchor[1])))
    columns: list[set[int]] = []
    ratios: list[str] = []
    for named in (ours, other):
        reader, _, figure = named.rpartition(": ")
        found = [
            (place, cell) for line in cells if line[0] == reader for place, cell in enumerate(line)
        ]
        same = [(place, cell) for place, cell in found if cell.partition(" ")[0] == figure]
        columns.append({place for place, _ in same})
        ratios += re.findall(r"\(([\d.,]+)x\)", " ".join(cell for _, cell in same))
    assert columns[0] & columns[1], "the two figures are not of one column"
    share = re.fullmatch(r"(?:1/)?([\d.,]+) (?:of|times) the time", takes)
    assert share is not None
    assert share[1] in ratios
