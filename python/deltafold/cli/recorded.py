"""Recorded streams of the command line, many at once.

In: files and folders: bodies, recordings, results of batches, cassettes of VCR, and archives (tar)
of them, each also compressed by gzip or zstd.  Out: one `Recorded` after the other.

Laws: files are told apart by their bytes. One stream is held at a time; an archive and a file of
recordings or of a batch are read as they are unpacked. Nothing is written to disk. A file is
hostile input: the size of a stream is bounded.
"""

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader, BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from deltafold._core import is_batch_line
from deltafold.cli.body_input import STANDARD_INPUT
from deltafold.contract.exceptions import MisuseError
from deltafold.testing.cassette import cassette_of
from deltafold.testing.recording import Recording

_MAX_BYTES: Final = 256 << 20
_HEAD_BYTES: Final = 64 << 10
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_TAR: Final = slice(257, 262)
_CASSETTES: Final = (".yaml", ".yml")
_INTERACTIONS: Final = (b'"interactions"', b'"http_interactions"')

UNREADABLE: Final = (OSError, EOFError, ValueError, MisuseError, tarfile.TarError, zlib.error)
"""Exceptions of a file that cannot be read."""

Piece = tuple[float, int]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded stream.

    Attributes:
        source: the file, the member of an archive, and the number in it, counted from 1.
        body: the bytes of the body.
        status: the HTTP status; 200 if it was not recorded.
        pieces: the seconds before each piece of the body, and its size; None if they were not
            recorded.
        is_batched: the request was one of a batch.
    """

    source: str
    body: bytes
    status: int = 200
    pieces: list[Piece] | None = None
    is_batched: bool = False


def files_below(names: list[str]) -> list[Path]:
    """Return the files: those that are named, and all below the named folders.

    Raises:
        OSError: a name is neither a file nor a folder.
        MisuseError: a name is that of standard input.
    """
    found: list[Path] = []
    for name in names:
        if name == STANDARD_INPUT:
            raise MisuseError("name the files and folders to fold: --to reads no standard input")
        path = Path(name)
        if path.is_dir():
            found += sorted(each for each in path.rglob("*") if each.is_file())
        else:
            path.stat()
            found.append(path)
    return found


def is_batch(path: Path) -> bool:
    """Return whether this is a file with the results of a batch, compressed or not."""
    if not path.is_file():
        return False
    with path.open("rb") as raw, _unpacked(raw) as reader:
        head = reader.peek(_HEAD_BYTES).lstrip()
        return head.startswith(b"{") and is_batch_line(reader.readline(_MAX_BYTES).lstrip())


def recorded_in(path: Path) -> Iterator[tuple[int, Recorded]]:
    """Yield the streams of a file, each with the number of bytes that were read so far.

    Raises:
        Exception: one of `UNREADABLE`: the file is damaged, or a stream is too large.
    """
    with path.open("rb") as raw:
        for found in _streams(raw, str(path)):
            yield raw.tell(), found


def _streams(raw: BufferedReader, name: str) -> Iterator[Recorded]:
    with ExitStack() as stack:
        reader = _unpacked(raw)
        if reader is not raw:
            stack.enter_context(reader)
        yield from _unpacked_streams(reader, name)


def _unpacked_streams(reader: BufferedReader, name: str) -> Iterator[Recorded]:
    head = reader.peek(_HEAD_BYTES)
    if head[_TAR] == b"ustar":
        with tarfile.open(fileobj=reader, mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    # The members of an archive that is read forward cannot be looked into.
                    whole = BytesIO(_whole(content, member.name))
                    with BufferedReader(cast("Any", whole), _HEAD_BYTES) as own:
                        yield from _streams(own, f"{name}/{member.name}")
        return
    first = head.partition(b"\n")[0].lstrip()
    if is_batch_line(first):
        yield from _batched(_lines(reader, name), name)
    elif first.startswith(b"{") and b'"recording"' in first:
        for number, recording in enumerate(Recording.each(_lines(reader, name), name), 1):
            yield _from_recording(recording, f"{name}#{number}", is_timed=True)
    elif _is_cassette(head, name):
        for number, recording in enumerate(cassette_of(_whole(reader, name), name), 1):
            yield _from_recording(recording, f"{name}#{number}", is_timed=False)
    else:
        yield from _bodies(reader, name)


def _bodies(reader: BufferedReader, name: str) -> Iterator[Recorded]:
    # The members that tell a line of a batch may come after a long answer.
    line = reader.readline(_MAX_BYTES) if reader.peek(1).startswith(b"{") else b""
    if is_batch_line(line):
        yield from _batched(chain([line], _lines(reader, name)), name)
    else:
        yield Recorded(name, line + _whole(reader, name))


def _batched(lines: Iterator[bytes], name: str) -> Iterator[Recorded]:
    for number, line in enumerate(filter(bytes.strip, lines), 1):
        yield Recorded(f"{name}#{number}", line, is_batched=True)


def _unpacked(raw: BufferedReader) -> BufferedReader:
    """Return a reader of the bytes without gzip or zstd."""
    mark = raw.peek(len(_ZSTD))
    if mark.startswith(_GZIP):
        return BufferedReader(cast("Any", gzip.GzipFile(fileobj=raw)), _HEAD_BYTES)
    if mark.startswith(_ZSTD):
        unpacking = import_module("pyarrow").CompressedInputStream(raw, "zstd")
        return BufferedReader(unpacking, _HEAD_BYTES)
    return raw


def _is_cassette(head: bytes, name: str) -> bool:
    if name.removesuffix(".gz").removesuffix(".zst").endswith(_CASSETTES):
        return True
    return head.lstrip().startswith(b"{") and any(word in head for word in _INTERACTIONS)


def _whole(content: Any, name: str) -> bytes:  # noqa: ANN401 - any binary file
    body: bytes = content.read(_MAX_BYTES + 1)
    if len(body) > _MAX_BYTES:
        raise ValueError(f"{name}: larger than {_MAX_BYTES} bytes")
    return body


def _lines(reader: BufferedReader, name: str) -> Iterator[bytes]:
    while line := reader.readline(_MAX_BYTES + 1):
        if len(line) > _MAX_BYTES:
            raise ValueError(f"{name}: a line is larger than {_MAX_BYTES} bytes")
        yield line


def _from_recording(recording: Recording, source: str, *, is_timed: bool) -> Recorded:
    pieces: list[Piece] | None = None
    if is_timed:
        pieces = [(after, len(piece)) for after, piece in recording.pieces_sent()]
        if pieces:
            after, size = pieces[0]
            pieces[0] = (after + recording.headers_after, size)
    return Recorded(source, recording.body, recording.status, pieces)
