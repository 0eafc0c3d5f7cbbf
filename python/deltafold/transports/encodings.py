"""Decompression of bodies, a bounded piece at a time.

In: the chunks of a body, and its `content-encoding`.  Out: the chunks of the decompressed body.

Laws: a step returns at most 256 KiB, whatever the ratio of compression. A body that contradicts its
headers raises `ContentDecodingError`. HTTP determines the end of the body: a compressed stream
without its last bytes is returned as far as it was received.
"""

import zlib
from collections.abc import AsyncIterator
from typing import Final, Protocol, Self

_STEP_BYTES: Final = 256 * 1024
# `wbits` of `zlib`: with a gzip header, with a zlib header, without a header.
_GZIP: Final = zlib.MAX_WBITS | 16
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
_HEADER_BYTES: Final = 2


class ContentDecodingError(Exception):
    """The compression of a body contradicts its headers, or is not supported."""


def decoded(
    chunks: AsyncIterator[bytes], encoding: str | None, *, max_members: int | None = None
) -> AsyncIterator[bytes]:
    """Return the chunks of the decompressed body.

    >>> decoded(source.chunks, "gzip")

    Args:
        chunks: the chunks of the body.
        encoding: the header `content-encoding`; None is a body without compression.
        max_members: the most streams of gzip in a row; None sets no limit, because a server may end
            one for each event.

    Raises:
        ContentDecodingError: while reading: the body contradicts the header or has more streams
            than it may, or the header is neither gzip nor deflate.
    """
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return chunks
    return Decoded(chunks, name, max_members)


class _Unzip(Protocol):
    """Used part of `zlib.decompressobj()`, whose type has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Decoded:
    """Decompressed body of gzip or deflate."""

    __slots__ = ("_chunks", "_encoding", "_full", "_max_members", "_members", "_rest", "_unzip")

    def __init__(
        self, chunks: AsyncIterator[bytes], encoding: str, max_members: int | None = None
    ) -> None:
        self._chunks = chunks
        self._encoding = "gzip" if encoding == "x-gzip" else encoding
        self._unzip: _Unzip | None = None
        self._rest = b""
        self._full = False
        self._members = 0
        self._max_members = max_members

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
                raise ContentDecodingError(
                    f"the body is not valid {self._encoding}: {error}"
                ) from error
            if unpacked:
                return unpacked

    def _step(self, packed: bytes) -> bytes:
        unzip = self._unzip
        if unzip is None or unzip.eof:
            if len(packed) < _HEADER_BYTES:
                self._rest, self._full = packed, False
                return b""
            # Gzip may be several streams in a row (RFC 1952, section 2.2).
            self._members += 1
            if self._max_members is not None and self._members > self._max_members:
                raise ContentDecodingError(
                    f"the body has more than {self._max_members} members of gzip "
                    "(limits.gzip_members)"
                )
            unzip = self._unzip = zlib.decompressobj(wbits_of(self._encoding, packed))
        unpacked = unzip.decompress(packed, _STEP_BYTES)
        self._rest = unzip.unconsumed_tail or unzip.unused_data
        self._full = bool(self._rest) or len(unpacked) == _STEP_BYTES
        return unpacked


def wbits_of(encoding: str, packed: bytes) -> int:
    """Return the `wbits` with which `zlib` reads a body.

    >>> zlib.decompressobj(wbits_of("gzip", body))

    Args:
        encoding: `gzip` or `deflate`.
        packed: the begin of the body; two bytes distinguish the forms of deflate.
    """
    if encoding == "gzip":
        return _GZIP
    return _ZLIB if _has_zlib_header(packed) else _RAW


def _has_zlib_header(packed: bytes) -> bool:
    """Return whether deflate has the zlib header of HTTP, which some servers leave out.

    Source: RFC 1950, section 2.2: the method is 8, and both bytes are a multiple of 31.
    """
    first = int.from_bytes(packed[:_HEADER_BYTES])
    return first >> 8 & 0x0F == 8 and first % 31 == 0  # noqa: PLR2004 - the RFC's numbers
