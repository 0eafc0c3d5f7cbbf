"""What a file is that holds no body of a response.

In: the name of the file, its first bytes, and the protocols that they fit.  Out: the error that
says what the file is, and what works.

Law: a file is judged by its bytes, never by the end of its name.
"""

from collections.abc import Collection
from typing import Final

from deltafold.contract.exceptions import MisuseError

_FORMS: Final = "a body as it came, curl -i, a HAR, a cassette, or JSON Lines or Parquet of bodies"
_MARKS: Final = {
    b"\x89PNG": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
    b"GIF8": "a picture (GIF)",
    b"%PDF": "a PDF document",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"SQLite format 3": "a database (SQLite)",
    b"PK\x03\x04": "a ZIP archive; unpack it, or pack it as tar",
    b"7z\xbc\xaf": "an archive of 7-Zip; unpack it, or pack it as tar",
    b"<!doctype html": "a page of HTML, perhaps of a proxy",
    b"<html": "a page of HTML, perhaps of a proxy",
    b"<?xml": "XML",
}
"""First bytes of files that are often taken for another one. Source: file(1)."""


def no_body(name: str, head: bytes, candidates: Collection[str], advice: str) -> MisuseError:
    """Return the error of a file whose protocol cannot be told.

    Args:
        name: what to call the file.
        head: its first bytes, all of a short file.
        candidates: the protocols that the bytes fit.
        advice: what the caller can do about bytes that may be those of a body.
    """
    text = head.strip()
    if not text:
        return MisuseError(f"{name} is empty: nothing was recorded; these work: {_FORMS}")
    kind = _kind_of(text)
    if kind is not None:
        return MisuseError(f"{name} is {kind}, no answer of a model; these work: {_FORMS}")
    fit = " and ".join(candidates) or "no protocol"
    return MisuseError(f"{name}: the first bytes fit {fit}; {advice}")


def _kind_of(text: bytes) -> str | None:
    lowered = text[:32].lower()
    for mark, kind in _MARKS.items():
        if text.startswith(mark) or lowered.startswith(mark):
            return kind
    try:
        text[:-4].decode()  # the last bytes may be a part of a character
    except UnicodeDecodeError:
        return "binary data of no known form"
    return "binary data of no known form" if b"\0" in text else None
