"""HTML of a card, for a notebook.

In: a card.  Out: HTML.

Laws: content is text, and its control characters are visible. The length on the page is bounded,
and long texts are folded. The text has the colours of the notebook, light or dark; only the border
of a block has its own, which both show, and no meaning depends on it.
"""

from html import escape
from typing import Final

from deltafold.contract.foreign_text import printable
from deltafold.message.card import Block, Card, Kind, as_line

_MOST_CHARACTERS: Final = 100_000
_FOLDED_FROM: Final = 2_000
"""Characters of a text that is folded."""
_FOLDED_LINES: Final = 30
_PREVIEW: Final = 160

_PART: Final = "border-left:3px solid {colour};padding:0 0 0 .7em;margin:.3em 0"
_TEXT: Final = "white-space:pre-wrap;overflow-wrap:anywhere"
_CODE: Final = f"{_TEXT};font-family:monospace;font-size:.9em"
_DIM: Final = "opacity:.75;font-size:.85em;margin:.3em 0"
_COLOURS: Final[dict[Kind, str]] = {
    "text": "#3b82f6",
    "thinking": "#a855f7",
    "call": "#22a352",
    "error": "#dc2626",
    "other": "#888",
}


def card_html(card: Card) -> str:
    """Return a card as HTML.

    >>> card_html(message_card(Message.user("<b>Hello</b>"))).count("&lt;b&gt;Hello")
    1
    """
    return f'<div class="deltafold-message">{_inside(card)}</div>'


def _inside(card: Card) -> str:
    title = f"<div><b>{_line(card.title)}</b></div>" if card.title else ""
    facts = " · ".join(map(_line, card.facts))
    below = f'<div style="{_DIM}">{facts}</div>' if facts else ""
    shown = "".join(
        _block(one, grows=card.grows) if isinstance(one, Block) else _nested(one)
        for one in card.blocks
    )
    return f"{title}{below}{shown}" if card.title else f"{shown}{below}"


def _nested(card: Card) -> str:
    return _bordered("error" if card.is_error else "other", _inside(card))


def _bordered(kind: Kind, inside: str) -> str:
    return f'<div style="{_PART.format(colour=_COLOURS[kind])}">{inside}</div>'


def _block(block: Block, *, grows: bool) -> str:
    label = f"<b>{_line(block.label)}</b>" if block.label else ""
    note = f' <span style="{_DIM}">{_line(block.note)}</span>' if block.note else ""
    box = _box(_CODE if block.is_code else _TEXT, block.text)
    is_long = len(block.text) > _FOLDED_FROM or block.text.count("\n") >= _FOLDED_LINES
    if not block.folds and not is_long:
        head = f"<div>{label}{note}</div>" if label or note else ""
        return _bordered(block.kind, f"{head}{box}")
    about = "" if not is_long else f' <span style="{_DIM}">{_text(_preview(block.text))}</span>'
    is_open = " open" if grows and not block.folds else ""
    summary = f"<summary>{label}{note}{about}</summary>"
    return _bordered(block.kind, f"<details{is_open}>{summary}{box}</details>")


def _preview(text: str) -> str:
    """Return the beginning of a long text, and its length."""
    return f"{' '.join(text[:_PREVIEW].split())}… ({len(text):,} characters)"


def _box(style: str, text: str) -> str:
    cut = len(text) - _MOST_CHARACTERS
    if cut > 0:
        # The end of a text is what grows.
        text = f"({cut:,} characters before)\n{text[-_MOST_CHARACTERS:]}"
    return f'<div style="{style}">{_text(text)}</div>'


def _line(text: str) -> str:
    return escape(as_line(text))


def _text(text: str) -> str:
    return escape(printable(text, lines=True))
