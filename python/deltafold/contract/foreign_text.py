"""Text from outside: well-formed Unicode, whatever a provider, a proxy or an SDK put into it.

In: a `str` that was not decoded here: a header as aiohttp decodes it, a member of a body that
`json.loads` read, the text of an exception.  Out: the same text without lone surrogates, which no
UTF-8 holds.

Laws: well-formed text is returned as the same object; each lone surrogate becomes one U+FFFD; two
surrogates that form a pair become their character.  `ErrorFields` applies it to every failure,
`StreamCore.opened` to the headers of every response, the extension to the texts of `Decoder`.
"""


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
