"""Cards: what an object shows to a person, as a title, facts, and blocks of text.

In: nothing.  Out: the data types, which `cards.py` makes, and `html.py` and `rich_lines.py` write.

Laws: a card holds text and no markup. What a person reads first stands first. A long text is marked
as one that folds, and the writers bound its length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from deltafold.contract.foreign_text import printable

_LONGEST_LINE: Final = 200

Kind: TypeAlias = Literal["text", "thinking", "call", "other", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A text of a card.

    Attributes:
        kind: what the text is, for its colour.
        label: what to call it, "" for the text of an answer.
        note: what to say beside the label, such as the id of a call.
        text: the text.
        is_code: whether the text is code, in a font of fixed width.
        folds: whether the text is folded, however short it is.
    """

    kind: Kind
    text: str
    label: str = ""
    note: str = ""
    is_code: bool = False
    folds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What an object shows.

    Attributes:
        title: the name of the object and its state, "" without one.
        is_error: whether the object is a failure.
        facts: short facts about it.
        blocks: texts, and the cards of objects inside of it.
        grows: whether more will come, so that nothing is folded and the end of a text counts.
    """

    blocks: "Sequence[Block | Card]"
    title: str = ""
    is_error: bool = False
    facts: Sequence[str] = ()
    grows: bool = False


def as_line(text: str) -> str:
    """Return a title, a label, a note or a fact as a line of bounded length.

    >>> as_line("a" * 300)[-3:]
    'aa…'
    """
    cut = text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"
    return printable(cut)
