"""Names that are near a misspelled one.

In: a word, and the names that are known.  Out: the names that were probably meant, and the words
that suggest them.

Law: a word that no name resembles has none.
"""

from collections.abc import Iterable
from typing import Final

_MOST: Final = 3
_SHORTEST_PART: Final = 4
"""A shorter word is a part of too many names."""


def near_names(word: str, names: Iterable[str], *, cutoff: float = 0.6) -> list[str]:
    """Return the names that hold a word, three at most, or else the nearest name.

    >>> near_names("openai", ["openai-chat", "gemini", "openai-responses"])
    ['openai-chat', 'openai-responses']
    >>> near_names("gemnii", ["openai-chat", "gemini", "openai-responses"])
    ['gemini']

    Args:
        word: the word that is none of the names.
        names: the names that are known.
        cutoff: how near a name has to be, from 0 to 1. Source: `difflib.get_close_matches`.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    known = dict.fromkeys(names)
    lowered = word.lower()
    holding = [name for name in known if lowered in name] if len(word) >= _SHORTEST_PART else []
    if 0 < len(holding) <= _MOST:
        return holding
    return get_close_matches(lowered, known, n=1, cutoff=cutoff)


def did_you_mean(word: str, names: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return `; did you mean 'name'?` with the names that are near, "" if there are none."""
    near = near_names(word, names, cutoff=cutoff)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
