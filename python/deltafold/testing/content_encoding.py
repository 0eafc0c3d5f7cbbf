"""Removal of the content encoding of a recorded body.

In: a body and its `content-encoding`.  Out: the bytes that a client reads.

Laws: a body whose encoding was undone when it was recorded stays. A compressed body without its
last bytes is returned as far as it was received. At most 64 MiB are unpacked.
"""

import zlib
from importlib import import_module
from typing import Final, Protocol, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.transports.encodings import wbits_of

_MAX_BYTES: Final = 64 * 1024 * 1024
_GZIP_MARK: Final = b"\x1f\x8b"


class _Decompressor(Protocol):
    def process(self, data: bytes, *, output_buffer_limit: int) -> bytes: ...
    def is_finished(self) -> bool: ...


class _Brotli(Protocol):
    """Used part of the package brotli, which has no types."""

    error: type[Exception]

    def Decompressor(self) -> _Decompressor: ...  # noqa: N802 - the package's name


def unpacked(body: bytes, encoding: str) -> bytes:
    """Return a body without its content encoding.

    >>> unpacked(gzip.compress(b"text"), "gzip"), unpacked(b"text", "gzip")
    (b'text', b'text')

    Args:
        body: the recorded body; it may be unpacked already.
        encoding: the header `content-encoding`; empty without one.

    Raises:
        MisuseError: the package that reads the encoding is not installed.
        ValueError: the body is damaged or larger than 64 MiB, or the encoding is unknown.
    """
    for name in reversed(encoding.lower().split(",")):
        body = _undone(body, name.strip())
    return body


def _undone(body: bytes, encoding: str) -> bytes:
    if encoding in {"", "identity"} or not body:
        return body
    if encoding in {"gzip", "x-gzip"}:
        return _inflated(body, "gzip") if body.startswith(_GZIP_MARK) else body
    if _is_text(body):
        return body
    if encoding == "deflate":
        return _inflated(body, encoding)
    if encoding == "br":
        return _brotli(body)
    raise ValueError(f"the content encoding {encoding!r} is not supported")


def _inflated(body: bytes, encoding: str) -> bytes:
    pieces: list[bytes] = []
    left = _MAX_BYTES
    while body:
        try:
            # Gzip may be several streams in a row.
            unzip = zlib.decompressobj(wbits_of(encoding, body))
            piece = unzip.decompress(body, left + 1)
        except zlib.error as wrong:
            raise ValueError(f"the body is not compressed as its header says: {wrong}") from wrong
        left = _left(left, piece)
        pieces.append(piece)
        body = unzip.unused_data
    return b"".join(pieces)


def _brotli(body: bytes) -> bytes:
    try:
        package = cast("_Brotli", import_module("brotli"))
    except ImportError as missing:
        raise MisuseError(
            "brotli, which reads this body, is not installed: pip install 'deltafold[testing]'"
        ) from missing
    decompressor = package.Decompressor()
    pieces: list[bytes] = []
    left = _MAX_BYTES
    try:
        while not decompressor.is_finished():
            piece = decompressor.process(body, output_buffer_limit=left + 1)
            if not piece and not body:
                break
            left = _left(left, piece)
            pieces.append(piece)
            body = b""
    except package.error as wrong:
        raise ValueError(f"the body is not compressed as its header says: {wrong}") from wrong
    return b"".join(pieces)


def _left(left: int, piece: bytes) -> int:
    if len(piece) > left:
        raise ValueError(f"the body is larger than {_MAX_BYTES} bytes")
    return left - len(piece)


def _is_text(body: bytes) -> bool:
    """Return whether a body is text. Compressed data contain control characters."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return False
    return not any(character < " " and character not in "\t\r\n" for character in text)
