"""Streams in a notebook.

In: a stream that is being read.  Out: a display of its message, which is updated meanwhile.

Law: IPython is imported only when it has asked for the display, and pydantic only for a message.
"""

import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from deltafold.message import data_types

if TYPE_CHECKING:
    from deltafold.message.card import Card

_SECONDS_BETWEEN_UPDATES: Final = 0.1


class ShownStream(Protocol):
    """The members of a stream that its display reads."""

    @property
    def status(self) -> str:
        """Status of the stream."""
        ...

    def snapshot(self) -> "data_types.Message":
        """Return the message so far."""
        ...


class LiveDisplay:
    """Display of one stream in a notebook, updated at most ten times a second and at the end.

    Args:
        stream: the stream.
        clock: seconds that only rise.
    """

    def __init__(self, stream: ShownStream, clock: Callable[[], float] = time.monotonic) -> None:
        display: Any = import_module("IPython.display").display
        self._clock = clock
        self._next = 0.0
        self._handle: Any = display(_bundle(stream), raw=True, display_id=True)

    def update(self, stream: ShownStream) -> None:
        """Show the stream as it is now, if it is time."""
        now = self._clock()
        if now < self._next and stream.status == "started":
            return
        self._next = now + _SECONDS_BETWEEN_UPDATES
        self._handle.update(_bundle(stream), raw=True)


def display_live(stream: ShownStream) -> LiveDisplay | None:
    """Display a stream in a notebook; a terminal cannot update a display and gets the `repr`."""
    shell: Any = import_module("IPython").get_ipython()
    if getattr(shell, "kernel", None) is None:
        print(repr(stream))  # noqa: T201 - what IPython itself does with an object
        return None
    return LiveDisplay(stream)


def _bundle(stream: ShownStream) -> dict[str, str]:
    from deltafold.message.html import card_html  # noqa: PLC0415 - it loads pydantic

    return {"text/html": card_html(stream_card(stream)), "text/plain": repr(stream)}


def stream_card(stream: ShownStream) -> "Card":
    """Return the card of a stream: its message so far, and the status of the stream."""
    from deltafold.message.cards import message_card  # noqa: PLC0415 - it loads pydantic

    grows = stream.status in {"idle", "started"}
    return message_card(stream.snapshot(), f"stream {stream.status}", grows=grows)
