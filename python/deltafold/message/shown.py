"""Objects that show themselves in a notebook and on a terminal with rich.

In: an object with a card.  Out: its HTML for notebooks, and its lines for rich.

Law: this file imports nothing that takes time; the writers are loaded when something is shown.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderableType

    from deltafold.message.card import Card


class Shown:
    """Mixin of objects that are shown by their card."""

    __slots__ = ()

    @abstractmethod
    def _card(self) -> "Card":
        """Return the card of the object."""

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        from deltafold.message.html import card_html  # noqa: PLC0415 - see the head

        return card_html(self._card())

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> "Iterator[RenderableType]":
        """Yield the lines that rich prints."""
        from deltafold.message.rich_lines import card_lines  # noqa: PLC0415 - see the head

        del console, options
        return card_lines(self._card())


def card_of(shown: Shown) -> "Card":
    """Return the card of an object."""
    return shown._card()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - of this module
