"""The logger `deltafold`, which every room writes to.

Law: a record is one line, whatever the texts of a provider or a client hold.
"""

import logging
from typing import Final

from deltafold.contract.foreign_text import printable


class _Printable(logging.Filter):
    """Filter of a logger that escapes control characters in the arguments of its records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the arguments of a record; numbers stay numbers."""
        if isinstance(record.args, tuple):
            record.args = tuple(
                argument if isinstance(argument, int | float) else printable(str(argument))
                for argument in record.args
            )
        return True


LOGGER: Final = logging.getLogger("deltafold")
LOGGER.addHandler(logging.NullHandler())  # without it, Python prints warnings to standard error
LOGGER.addFilter(_Printable())
