"""The logger `deltafold`, which every room writes to.

Law: a record begins one line, whatever the texts of a provider or a client hold. The traceback of a
record is indented, so that no line of an exception's text looks like a record.
"""

import logging
import textwrap
import traceback
from typing import Final

from deltafold.contract.foreign_text import printable


class _Printable(logging.Filter):
    """Filter of a logger that escapes control characters in its records, tracebacks included."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the arguments of a record, and format its exception; numbers stay numbers."""
        if isinstance(record.args, tuple):
            record.args = tuple(
                argument if isinstance(argument, int | float) else printable(str(argument))
                for argument in record.args
            )
        if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
            lines = "".join(traceback.format_exception(record.exc_info[1]))
            record.exc_text = textwrap.indent(printable(lines.rstrip("\n"), lines=True), "  ")
        return True


LOGGER: Final = logging.getLogger("deltafold")
LOGGER.addHandler(logging.NullHandler())  # without it, Python prints warnings to standard error
LOGGER.addFilter(_Printable())
