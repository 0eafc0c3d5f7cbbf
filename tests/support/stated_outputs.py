"""Comparison of the outputs in the documentation with the outputs of its examples.

In: a block with its stated output, and the text that the block printed.  Out: the fault of the
stated output, or a new output.

Laws: lines are compared one by one. Spaces at the ends of lines, and empty lines at both ends, do
not count. `…` in a line stands for one or more characters of this line, and other characters stand
beside it: it replaces times, ids, versions and paths, and the rest of a line that is wider than
`WIDEST`. A last line of `…` alone stands for all further lines, and only where a
shell block prints more than `LONGEST` lines.
"""

import re
from difflib import unified_diff
from typing import Final

from documentation import Block

LONGEST: Final = 12
"""Number of lines of the longest output."""

WIDEST: Final = 88
"""Number of characters of the longest line: so many fit into the boxes of the site."""

ANY: Final = "…"


def fault_of(block: Block, printed: str, *, is_needed: bool) -> str | None:
    """Return the fault of the stated output of a block, None without one.

    Args:
        block: the block.
        printed: the text that the block printed.
        is_needed: whether a block that prints needs an output.
    """
    shown = _lines(printed)
    if block.output is None:
        return "prints, and has no output" if printed and is_needed else None
    if not shown:
        return "has an output, and prints nothing"
    stated = block.output.splitlines()
    return _fault_of_form(stated) or _difference(block, stated, shown)


def _fault_of_form(stated: list[str]) -> str | None:
    if any(len(line) > WIDEST for line in stated):
        return f"has a line of output with more than {WIDEST} characters"
    if len(stated) > LONGEST:
        return f"has more than {LONGEST} lines of output: print less"
    return None


def _difference(block: Block, stated: list[str], shown: list[str]) -> str | None:
    if len(stated) > 1 and stated[-1] == ANY:
        if block.language != "sh" or len(shown) <= LONGEST:
            return f"leaves out lines, and is no shell block that prints more than {LONGEST}"
        stated = stated[:-1]
        shown = shown[: len(stated)]
    if len(stated) == len(shown) and all(map(_fits, stated, shown)):
        return None
    return "\n".join(["prints something else:", *unified_diff(stated, shown, "stated", "printed")])


def output_of(block: Block, printed: str) -> str | None:
    """Return the output of a block anew: lines with `…` that fit stay as they are.

    An output without a fault is not changed; a block that prints nothing has none.
    """
    if fault_of(block, printed, is_needed=True) is None:
        return block.output
    shown = _lines(printed)
    if block.language == "sh" and len(shown) > LONGEST:
        shown = [*shown[: LONGEST - 1], ANY]
    kept = [line for line in (block.output or "").splitlines() if ANY in line and line != ANY]
    written = [next((line for line in kept if _fits(line, one)), _narrowed(one)) for one in shown]
    return "".join(f"{line}\n" for line in written) or None


def _lines(printed: str) -> list[str]:
    return "\n".join(line.rstrip() for line in printed.splitlines()).strip("\n").splitlines()


def _fits(stated: str, printed: str) -> bool:
    """Return whether a stated line is a printed one; `…` alone is none."""
    pieces = stated.split(ANY)
    if stated == printed:
        return True
    return any(map(str.strip, pieces)) and bool(
        re.fullmatch(".+".join(map(re.escape, pieces)), printed)
    )


def _narrowed(line: str) -> str:
    """Return a line that is not too wide; a wide one ends with a word where it can."""
    if len(line) <= WIDEST:
        return line
    end = line.rfind(" ", WIDEST - 30, WIDEST - 1)
    return f"{line[: WIDEST - 1] if end < 0 else line[: end + 1]}{ANY}"
