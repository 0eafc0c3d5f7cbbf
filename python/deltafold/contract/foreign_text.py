"""Text from outside: well-formed Unicode, and printable where a person reads it.

In: a `str` that was not written here: a header as aiohttp decodes it, a member of a body, a name
that a client sends, the text of an exception.  Out: the same text without lone surrogates, which no
UTF-8 holds; for terminals and logs also without characters that they obey.

Laws: text that needs no change is returned as the same object. A lone surrogate becomes one U+FFFD;
two surrogates that form a pair become their character. A control character becomes its escape in
JSON, so that printed JSON stays the same JSON.

`ErrorFields` applies `well_formed` to every failure, `StreamCore.opened` to the headers of every
response, the extension to the texts of `Decoder`. The loggers of calls and of the server, the
commands and `str(ModelError)` apply `printable`.
"""

from typing import Final

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CONTROLS: Final = (
    *range(0x20),  # C0
    *range(0x7F, 0xA0),  # DEL and C1, with U+0085, where some programs begin a line
    *(0x2028, 0x2029),  # separators of lines and paragraphs
    *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),  # of direction
)
"""Characters that a terminal or a reader of logs obeys. Source: Unicode 17.0, Bidi_Control."""

_ESCAPES: Final = {code: _SHORT.get(chr(code), f"\\u{code:04x}") for code in _CONTROLS}
_ESCAPES_IN_LINES: Final = {
    code: escape for code, escape in _ESCAPES.items() if chr(code) not in "\n\t"
}


def well_formed(text: str) -> str:
    r"""Return the text with U+FFFD in place of each lone surrogate.

    >>> well_formed("bad: \ud83d")
    'bad: �'
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return the text with escapes for the characters that a terminal or a reader of logs obeys.

    >>> print(printable("red \x1b[31m\n"))
    red \u001b[31m\n

    Args:
        text: the text.
        lines: keep line breaks and tabs, for a text that has lines of its own.
    """
    if text.isprintable():
        return text
    if lines:
        return well_formed(text).replace("\r\n", "\n").translate(_ESCAPES_IN_LINES)
    return well_formed(text).translate(_ESCAPES)
