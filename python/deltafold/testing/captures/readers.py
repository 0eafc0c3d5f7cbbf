"""Bounded readers of captured bytes.

In: an open file, and its first bytes.  Out: the same bytes again, without gzip, zstd or brotli; all
of them, or their lines.

Laws: nothing is unpacked before it is read. A whole and a line are bounded by `max_bytes`, and the
error names it.
"""

import gzip
from collections.abc import Iterator
from importlib import import_module
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, Final, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.testing.content_encoding import unpacked

BUFFER_BYTES: Final = 64 << 10

_ZSTD_BYTES: Final = 512
"""Compressed bytes a step: four of them may hold 128 KiB (RFC 8878, section 3.1.1.2)."""


class _Joined(RawIOBase):
    """The first bytes of a file that were read, and then the rest of it."""

    def __init__(self, head: bytes, rest: BufferedReader) -> None:
        super().__init__()
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        size = len(buffer)
        given = self._head[:size] or self._rest.read1(size)
        self._head = self._head[size:]
        buffer[: len(given)] = given
        return len(given)


def joined(head: bytes, rest: BufferedReader) -> BufferedReader:
    """Return a reader of the first bytes and of the rest."""
    return BufferedReader(_Joined(head, rest), BUFFER_BYTES)


def reader_of(content: bytes) -> BufferedReader:
    """Return a reader of bytes."""
    return BufferedReader(cast("Any", BytesIO(content)), BUFFER_BYTES)


def whole(reader: BufferedReader, name: str, max_bytes: int) -> bytes:
    """Read to the end.

    Raises:
        ValueError: there are more bytes than `max_bytes`.
    """
    content = reader.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise too_large(name, max_bytes)
    return content


def lines(reader: BufferedReader, name: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the lines with their ends.

    Raises:
        ValueError: a line has more bytes than `max_bytes`.
    """
    while line := reader.readline(max_bytes + 1):
        if len(line) > max_bytes:
            raise too_large(name, max_bytes)
        yield line


def too_large(name: str, max_bytes: int) -> ValueError:
    """Return the error of a capture that exceeds the bound."""
    return ValueError(
        f"{name}: larger than {max_bytes} bytes when it is unpacked; raise max_bytes "
        "(--max-bytes) if it is trusted"
    )


def gunzipped(packed: BufferedReader) -> BufferedReader:
    """Return a reader of the bytes without gzip."""
    return BufferedReader(cast("Any", gzip.GzipFile(fileobj=packed)), BUFFER_BYTES)


def unzstd(packed: BufferedReader) -> BufferedReader:
    """Return a reader of the bytes without zstd.

    Raises:
        MisuseError: no package that reads zstd is installed.
    """
    for module in ("compression.zstd", "zstandard"):
        try:
            package: Any = import_module(module)
        except ImportError:
            continue
        return BufferedReader(_Pieces(_unzstd(package, packed)), BUFFER_BYTES)
    raise MisuseError(
        "no package that reads zstd is installed: pip install zstandard, or use Python 3.14"
    )


def _unzstd(package: Any, packed: BufferedReader) -> Iterator[bytes]:  # noqa: ANN401 - two packages
    """Yield what the frames hold; the decompressors of both packages have these members."""
    make = package.ZstdDecompressor
    frame: Any = None
    while given := packed.read(_ZSTD_BYTES):
        while given:
            frame = frame or (make() if hasattr(make, "eof") else make().decompressobj())
            try:
                yield frame.decompress(given)
            except package.ZstdError as wrong:
                raise ValueError(f"not valid zstd: {wrong}") from wrong
            given = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the zstd data end before their last frame does")


class _Pieces(RawIOBase):
    """Bytes that an iterator yields."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        given = self._left[: len(buffer)]
        self._left = self._left[len(given) :]
        buffer[: len(given)] = given
        return len(given)


def unbrotli(packed: BufferedReader, name: str, max_bytes: int) -> BufferedReader:
    """Return a reader of the bytes without brotli.

    Raises:
        MisuseError: brotli is not installed.
        ValueError: the bytes are damaged or too large.
    """
    return reader_of(unpacked(whole(packed, name, max_bytes), "br"))
