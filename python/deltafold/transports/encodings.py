"""Compressed bodies become what they were, a bounded piece at a time.

In: the chunks of a body, and its `content-encoding`.  Out: the chunks of what was packed.

Laws: a step hands out at most 256 KiB, however much a few bytes would become; a body is what its
headers say or a `ContentDecodingError`; where it ends is the business of HTTP: a compressed stream
that lacks its own last bytes is handed out as far as it came.
"""

import zlib
from collections.abc import AsyncIterator
from typing import Final, Protocol, Self

_STEP_BYTES: Final = 256 * 1024
# What `zlib` wants to hear: with a gzip header, with a zlib header, without any.
_GZIP: Final = zlib.MAX_WBITS | 16
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
_HEADER_BYTES: Final = 2


class ContentDecodingError(Exception):
    """A body is not compressed in the way that its headers say, or in one that is not known."""


def decoded(chunks: AsyncIterator[bytes], encoding: str | None) -> AsyncIterator[bytes]:
    """Return the chunks of what a body was before it was packed.

    >>> decoded(source.chunks, "gzip")

    Args:
        chunks: the body as it comes.
        encoding: the header `content-encoding`; None is a body that is not packed.

    Raises:
        ContentDecodingError: when it is read: the body is not what the header says, or the header
            says something else than gzip and deflate.
    """
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return chunks
    return Decoded(chunks, name)


class _Unzip(Protocol):
    """What is used of `zlib.decompressobj()`, whose type has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Decoded:
    """A body in gzip or deflate as what it was."""

    __slots__ = ("_chunks", "_encoding", "_full", "_rest", "_unzip")

    def __init__(self, chunks: AsyncIterator[bytes], encoding: str) -> None:
        self._chunks = chunks
        self._encoding = "gzip" if encoding == "x-gzip" else encoding
        self._unzip: _Unzip | None = None
        self._rest = b""
        self._full = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._encoding not in {"gzip", "deflate"}:
            raise ContentDecodingError(
                f"the body is in {self._encoding}; gzip and deflate were asked for"
            )
        while True:
            # A step that was full may have left some in the depth of zlib, without any input.
            packed = self._rest if self._full else self._rest + await anext(self._chunks)
            self._rest = b""
            try:
                unpacked = self._step(packed)
            except zlib.error as error:
                raise ContentDecodingError(f"the body is no {self._encoding}: {error}") from error
            if unpacked:
                return unpacked

    def _step(self, packed: bytes) -> bytes:
        unzip = self._unzip
        if unzip is None or unzip.eof:
            if len(packed) < _HEADER_BYTES:
                self._rest, self._full = packed, False
                return b""
            # Gzip may be several streams in a row (RFC 1952, section 2.2).
            unzip = self._unzip = zlib.decompressobj(self._header_of(packed))
        unpacked = unzip.decompress(packed, _STEP_BYTES)
        self._rest = unzip.unconsumed_tail or unzip.unused_data
        self._full = bool(self._rest) or len(unpacked) == _STEP_BYTES
        return unpacked

    def _header_of(self, packed: bytes) -> int:
        if self._encoding == "gzip":
            return _GZIP
        return _ZLIB if _has_zlib_header(packed) else _RAW


def _has_zlib_header(packed: bytes) -> bool:
    """Whether deflate comes as HTTP wants it; some servers leave the header out.

    Source: RFC 1950, section 2.2: the method is 8, and both bytes are a multiple of 31.
    """
    return packed[0] & 0x0F == 8 and (packed[0] * 256 + packed[1]) % 31 == 0  # noqa: PLR2004 - the RFC's
