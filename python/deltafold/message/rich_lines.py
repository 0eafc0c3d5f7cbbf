"""Lines of a card, for a terminal with rich.

In: a card.  Out: what rich prints.

Laws: content is text: rich reads no markup in it, and its control characters are visible. The
colours are those of the terminal's own palette, light or dark, and no meaning depends on them. A
long text is cut, and its length is said: the object has all of it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.padding import Padding
from rich.text import Text

from deltafold.contract.foreign_text import printable
from deltafold.message.card import Block, Card, Kind, as_line

if TYPE_CHECKING:
    from rich.console import RenderableType

_MOST_CHARACTERS: Final = 2_000
_MOST_LINES: Final = 30
_FOLDED_CHARACTERS: Final = 300
_FOLDED_LINES: Final = 4
"""What is shown of a text that folds even where it is short."""
_STYLES: Final[dict[Kind, str]] = {
    "text": "",
    "thinking": "magenta",
    "call": "green",
    "error": "red",
    "other": "cyan",
}


def card_lines(card: Card) -> "Iterator[RenderableType]":
    """Yield the title, the facts and the blocks of a card; facts stand below an untitled one."""
    facts = Text(" · ".join(map(as_line, card.facts)), style="dim") if card.facts else None
    if card.title:
        yield Text(as_line(card.title), style="bold red" if card.is_error else "bold")
        if facts is not None:
            yield facts
    for one in card.blocks:
        lines = (
            _block(one, grows=card.grows)
            if isinstance(one, Block)
            else (Padding(line, (0, 0, 0, 2)) for line in card_lines(one))
        )
        yield from lines
    if not card.title and facts is not None:
        yield facts


def _block(block: Block, *, grows: bool) -> Iterator[Text]:
    shown = Text()
    if block.label:
        shown.append(as_line(block.label), style=f"bold {_STYLES[block.kind]}")
    if block.note:
        shown.append(f" {as_line(block.note)}", style="dim")
    if block.label or block.note:
        yield shown
    most = (_FOLDED_CHARACTERS, _FOLDED_LINES) if block.folds else (_MOST_CHARACTERS, _MOST_LINES)
    text, rest = _end(block.text, *most) if grows else _beginning(block.text, *most)
    size = Text(f"… {len(block.text):,} characters in all", style="dim")
    if rest and grows:
        yield size
    if text:
        yield Text(printable(text, lines=True), style=_STYLES[block.kind] if block.folds else "")
    if rest and not grows:
        yield size


def _beginning(text: str, characters: int, lines: int) -> tuple[str, bool]:
    """Return the beginning of a text, and whether it is shorter than the text."""
    kept = "\n".join(text[:characters].split("\n")[:lines])
    return kept, len(kept) < len(text)


def _end(text: str, characters: int, lines: int) -> tuple[str, bool]:
    """Return the end of a text, and whether it is shorter than the text."""
    kept = "\n".join(text[-characters:].split("\n")[-lines:])
    return kept, len(kept) < len(text)
