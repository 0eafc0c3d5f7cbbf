"""A message as something to read or to pipe on.

In: a message.  Out: text.
"""

import json

from deltafold.cli.screen import printable
from deltafold.message.messages import Message


def as_json(message: Message) -> str:
    """Return the message in its wire form, indented."""
    return json.dumps(message.to_dict(), ensure_ascii=False, indent=2)


def as_text(message: Message, *, for_terminal: bool = False) -> str:
    """Return the parts of the message, then the finish reason and the usage.

    Args:
        message: the message.
        for_terminal: leave out control characters, which a terminal would obey.
    """
    return printable(str(message)) if for_terminal else str(message)
