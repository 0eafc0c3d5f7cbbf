"""Numbers and tables of the reports, as Markdown.

In: numbers, rows of cells.  Out: a cell, the lines of a table.
"""

from collections.abc import Iterator


def cell(value: float | None, times: float | None = None) -> str:
    """Write a number, and how many times the first one it is."""
    if value is None:
        return "-"
    digits = 3 if value < 1 else 2 if value < 100 else 0
    written = f"{value:,.{digits}f}"
    return written if times is None else f"{written} ({multiple(times)}x)"


def multiple(times: float) -> str:
    """Write how many times as much something is."""
    digits = 2 if times < 2 else 1 if times < 100 else 0
    return f"{times:,.{digits}f}"


def table(head: list[str], rows: list[list[str]], *, rule: str = "---:") -> Iterator[str]:
    """Yield the lines of a table and an empty one; `rule` aligns all columns but the first."""
    yield f"| {' | '.join(head)} |"
    yield f"|---|{f'{rule}|' * (len(head) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""
