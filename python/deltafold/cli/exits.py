"""Exit codes of the command, and the form of its complaints.

In: what went wrong.  Out: one line on standard error, without control characters of a provider.
"""

import sys
from typing import Final

from pydantic import ValidationError

from deltafold.contract.foreign_text import printable

EXIT_DONE: Final = 0
"""Everything ended well."""
EXIT_ERROR: Final = 1
"""A stream ended in an error, or a check failed."""
EXIT_USAGE: Final = 2
"""The command was used wrongly."""


def complain(problem: str | Exception) -> None:
    """Write a line about a problem, whose own lines are joined.

    Raises:
        BrokenPipeError: the problem is that the reader of the output has ended, which ends the
            command without a word.
    """
    if isinstance(problem, BrokenPipeError):
        raise problem
    if isinstance(problem, ValidationError):
        mistakes = (
            ": ".join((*map(str, mistake["loc"]), mistake["msg"])) for mistake in problem.errors()
        )
        problem = "; ".join(mistakes)
    line = " ".join(map(str.strip, str(problem).split("\n")))
    print(f"deltafold: {printable(line)}", file=sys.stderr)
