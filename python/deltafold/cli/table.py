"""Tables of the command line: drawn by rich where it is installed, otherwise by columns of text.

In: a heading and rows of texts.  Out: the table on standard output.

Law: a row is one line, whatever its texts hold.
"""

import sys
from collections.abc import Sequence

from deltafold.contract.foreign_text import printable


def print_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table.  A pipe gets plain columns, so that other programs can read them."""
    heading, *rows = (tuple(map(printable, row)) for row in (heading, *rows))
    if sys.stdout.isatty():
        try:
            from rich.console import Console  # noqa: PLC0415 - an extra
            from rich.table import Table  # noqa: PLC0415
            from rich.text import Text  # noqa: PLC0415
        except ModuleNotFoundError:
            pass
        else:
            table = Table(*heading, box=None, header_style="bold", pad_edge=False)
            for row in rows:
                table.add_row(*map(Text, row))
            Console().print(table)
            return
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    for row in (heading, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
