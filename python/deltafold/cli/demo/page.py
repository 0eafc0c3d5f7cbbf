"""Lines of the demo: no wider than 80 columns, and no wider than the terminal.

In: texts.  Out: lines on standard output.
"""

import shutil
import textwrap
from typing import Final

_WIDEST: Final = 80
_NARROWEST: Final = 40
_NAME: Final = 12


def width() -> int:
    """Return the number of columns of a line."""
    return max(min(shutil.get_terminal_size().columns, _WIDEST), _NARROWEST)


def title(text: str) -> None:
    """Print the heading of a scene."""
    print(f"\n{text}\n{'-' * min(len(text), width())}")


def paragraph(text: str) -> None:
    """Print a text that explains, with its own line breaks."""
    for line in text.splitlines():
        print(textwrap.fill(line, width()))


def item(text: str) -> None:
    """Print one line of an answer; what does not fit is indented below it."""
    print(_filled(text, "  ", "      "))


def row(name: str, text: str) -> None:
    """Print a name, and a text in the column beside it."""
    print(_filled(f"{name:<{_NAME}}{text}", "  ", " " * (_NAME + 2)))


def _filled(text: str, first: str, next_lines: str) -> str:
    return textwrap.fill(
        text,
        width(),
        initial_indent=first,
        subsequent_indent=next_lines,
        break_on_hyphens=False,
    )
