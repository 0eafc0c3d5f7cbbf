"""Exit codes of the command, and the form of its complaints.

In: what went wrong.  Out: one line on standard error, without control characters of a provider, and
with advice for a shell.
"""

import sys
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from deltafold.cli.advice import for_shell
from deltafold.contract.foreign_text import printable
from deltafold.contract.near_names import near_names
from deltafold.contract.validation_text import validation_text

EXIT_DONE: Final = 0
"""Everything ended well."""
EXIT_ERROR: Final = 1
"""A stream ended in an error, or a check failed."""
EXIT_USAGE: Final = 2
"""The command was used wrongly."""
EXIT_DEFECT: Final = 70
"""The command itself is at fault. Source: EX_SOFTWARE of sysexits.h."""
EXIT_INTERRUPTED: Final = 130
"""Ctrl-C ended the command: 128 and the number of SIGINT, as shells count."""

_NEAR: Final = 0.8
"""Names of files beside each other resemble each other."""


def complain(problem: str | Exception, file: str = "") -> None:
    """Write a line about a problem, whose own lines are joined.

    Args:
        problem: what went wrong.
        file: the file that was read, which a package that fails does not name.

    Raises:
        BrokenPipeError: the problem is that the reader of the output has ended, which ends the
            command without a word.
    """
    if isinstance(problem, BrokenPipeError):
        raise problem
    text = _text_of(problem)
    named = text if file in text else f"{file}: {text}"
    line = " ".join(map(str.strip, named.split("\n")))
    print(f"deltafold: {printable(line)}", file=sys.stderr)


def _text_of(problem: str | Exception) -> str:
    if isinstance(problem, str):
        return problem
    if isinstance(problem, ValidationError):
        return for_shell(validation_text(problem))
    if isinstance(problem, OSError) and isinstance(problem.filename, str):
        return _of_file(problem.filename, problem)
    return for_shell(str(problem))


def _of_file(name: str, problem: OSError) -> str:
    """Say what is wrong with a file, and which one was probably meant."""
    path = Path(name)
    if isinstance(problem, IsADirectoryError):
        return f"{name} is a folder: name a file"
    if isinstance(problem, NotADirectoryError):
        return f"{name} is no folder: name a folder"
    if not isinstance(problem, FileNotFoundError):
        return f"{name}: {(problem.strerror or str(problem)).lower()}"
    if not path.parent.is_dir():
        return f"{name}: there is no folder {path.parent}"
    try:
        beside = [one.name for one in path.parent.iterdir()]
    except OSError:
        beside = []
    near = [str(path.parent / one) for one in near_names(path.name, beside, cutoff=_NEAR)]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"{name}: no such file{hint}"
