"""The parser of the command's arguments: what it says about a mistake, and the types of arguments.

In: words of a shell.  Out: their values, or two lines on standard error: the mistake, and an
example of the command.

Law: a name that is not known is answered with the nearest one, or with all of them.
"""

import argparse
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NoReturn, TypeVar

from typing_extensions import override

from deltafold.cli.exits import EXIT_USAGE, complain
from deltafold.contract.near_names import did_you_mean

_HIGHEST_PORT: Final = 65_535
_Name = TypeVar("_Name", bound=str)


class CommandParser(argparse.ArgumentParser):
    """Parser whose mistakes take two lines.

    Args:
        example: a use of the command that works.
        settings: arguments of `ArgumentParser`.

    Attributes:
        example: a use of the command that works.
        commands: the parsers of its commands, by their names.
    """

    def __init__(
        self,
        *,
        example: str,
        **settings: Any,  # noqa: ANN401 - those of argparse, which differ between versions
    ) -> None:
        epilog = settings.pop("epilog", None) or f"Example: {example}"
        super().__init__(**settings, epilog=epilog)
        self.example: str = example
        self.commands: Mapping[str, CommandParser] = {}

    @override
    def error(self, message: str) -> NoReturn:
        """Say what is wrong and what would be right, and leave with the code of wrong usage."""
        self.refuse(message.removeprefix("argument "))

    def refuse(self, mistake: str) -> NoReturn:
        """Say a mistake of the caller, and leave with the code of wrong usage."""
        complain(mistake)
        complain(f"for example: {self.example}; {self.prog} --help has the rest")
        sys.exit(EXIT_USAGE)

    def options(self) -> list[str]:
        """Return the long names of all options."""
        return [name for name in self._option_string_actions if name.startswith("--")]

    def refuse_unknown(self, words: Sequence[str]) -> NoReturn:
        """Refuse words that no argument takes."""
        word = words[0]
        if not word.startswith("-"):
            self.refuse(f"one argument too many: {word!r}")
        name = word.partition("=")[0]
        self.refuse(f"there is no option {name}{did_you_mean(name, self.options())}")


def one_of(what: str, names: Collection[_Name]) -> Callable[[str], _Name]:
    """Return a type of arguments: one of some names.

    Args:
        what: what the names are, for the mistake.
        names: the names.
    """

    def name_of(word: str) -> _Name:
        for name in names:
            if name == word:
                return name
        hint = did_you_mean(word, names) or f"; there are {', '.join(names)}"
        raise argparse.ArgumentTypeError(f"there is no {what} {word!r}{hint}")

    return name_of


def whole_number(word: str) -> int:
    """Return a whole number above zero."""
    if not word.isdecimal() or int(word) == 0:
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number above 0, such as 1000")
    return int(word)


def port(word: str) -> int:
    """Return the number of a port; 0 lets the system choose."""
    if not word.isdecimal() or int(word) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{word!r} is no port, a number from 0 to {_HIGHEST_PORT}")
    return int(word)


def seconds(word: str) -> float:
    """Return a time in seconds, 0 or longer."""
    try:
        given = float(word)
    except ValueError:
        given = -1
    if not isfinite(given) or given < 0:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of seconds, such as 30")
    return given
