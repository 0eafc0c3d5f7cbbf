"""Headers of a response as texts, from the bytes that HTTP clients keep.

In: pairs of names and values, as bytes.  Out: a mapping of texts, the names in lower case.

Laws: the texts are made when they are first read, because most calls need one header of twenty.
Several values of one name are joined by a comma and a space.  Source: RFC 9110, section 5.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar, cast, overload

D = TypeVar("D")

_Pairs: TypeAlias = Sequence[tuple[bytes, bytes]]


class RawHeaders(Mapping[str, str]):
    """Headers whose texts are made when they are first read.

    Bytes that are not UTF-8 are read as ISO 8859-1, as httpx does.  Source: RFC 9110, section 5.5.

    Attributes:
        raw: the names and values in their order, the names in any case.
    """

    __slots__ = ("_texts", "raw")

    def __init__(self, raw: _Pairs) -> None:
        self.raw = raw
        self._texts: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __bool__(self) -> bool:
        return bool(self.raw)

    def __repr__(self) -> str:
        return repr(self._read())

    @overload
    def get(self, key: str, default: None = None, /) -> str | None: ...
    @overload
    def get(self, key: str, default: str, /) -> str: ...
    @overload
    def get(self, key: str, default: D, /) -> str | D: ...
    def get(self, key: str, default: object = None, /) -> object:
        """Return the header of a name in lower case."""
        if self._texts is None and not self._may_have(key):
            return default
        return self._read().get(key, default)

    def _may_have(self, name: str) -> bool:
        """Return whether a header may have this name, without making the texts."""
        if not name.isascii():
            return True
        wanted = name.encode()
        return any(known.lower() == wanted or not known.isascii() for known, _ in self.raw)

    def _read(self) -> dict[str, str]:
        texts = self._texts
        if texts is None:
            texts = self._texts = {}
            for known, given in self.raw:
                name, value = _text(known).lower(), _text(given)
                texts[name] = f"{texts[name]}, {value}" if name in texts else value
        return texts


def raw_headers(pairs: object) -> RawHeaders | None:
    """Return the headers of a response; None for anything but a tuple or list of pairs of bytes."""
    if not isinstance(pairs, tuple | list):
        return None
    known = cast("_Pairs", pairs)
    try:
        are_bytes = all(type(name) is bytes is type(value) for name, value in known)
    except (TypeError, ValueError):
        return None
    return RawHeaders(known) if are_bytes else None


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("iso-8859-1")


def header_text(value: object) -> str:
    """Return a header's name or value as well-formed text.

    aiohttp decodes headers as UTF-8 and escapes all other bytes as surrogates.  Those headers are
    read as ISO 8859-1, as httpx does.  Source: RFC 9110, section 5.5.
    """
    text = str(value)
    if text.isascii():
        return text
    with suppress(UnicodeEncodeError):
        return text.encode().decode()
    with suppress(UnicodeEncodeError):
        return text.encode("utf-8", "surrogateescape").decode("iso-8859-1")
    return text.encode("utf-8", "replace").decode()
