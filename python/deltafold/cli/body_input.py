"""Recorded bodies of the command line: a file or standard input, and its protocol.

In: the name of a file, `-` for standard input.  Out: the chunks of the body, and its dialect. Of
the result file of a batch each line is a body.

Law: standard input is read as it arrives, and nothing is read before it is needed.
"""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Final, cast

from deltafold import MisuseError, detect, dialect_names
from deltafold._core import is_batch_line
from deltafold.contract.names import ProtocolName
from deltafold.streams.options import ChoicesOptions
from deltafold.testing.recording import Recording
from deltafold.testing.recording_files import HEAD, open_recording

STANDARD_INPUT: Final = "-"

ADVICE: Final = f"choose one with --dialect: {', '.join(dialect_names())}"
"""Next step after a dialect that cannot be detected."""

# Bytes per read of a file or pipe; large enough that decoding dominates the cost.
_READ_BYTES: Final = 64 * 1024
# `detect` examines at most this much.
_DETECTED_BYTES: Final = 64 * 1024
_LINE_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class Body:
    """A recorded body that is open.

    Attributes:
        name: what to call it in messages.
        dialect: the protocol of its bytes.
        chunks: its bytes.
        options: options of the decoder: status and headers of a recording that has them.
        is_line: it is a line of the result file of a batch.
    """

    name: str
    dialect: ProtocolName
    chunks: Iterator[bytes]
    options: ChoicesOptions = field(default_factory=ChoicesOptions)
    is_line: bool = False


@contextmanager
def opened(file: str, dialect: ProtocolName | None) -> Generator[Body]:
    """Open a body, and detect its dialect where none is given.

    Of a recording with times, the body is what was received.

    Raises:
        MisuseError: the first bytes fit no protocol, or more than one.
        OSError: the file cannot be read.
    """
    if file == STANDARD_INPUT:
        reader = cast("BufferedReader", sys.stdin.buffer)
        yield _body("standard input", reader, dialect, reader.read1(_READ_BYTES))
        return
    with Path(file).open("rb") as bytes_of_file:
        yield _body(file, bytes_of_file, dialect, bytes_of_file.read1(_READ_BYTES))


@contextmanager
def opened_bodies(file: str, dialect: ProtocolName | None) -> Generator[Iterator[Body]]:
    """Open the bodies of a file: the lines of the result file of a batch, or the one body.

    Raises:
        MisuseError: the first bytes fit no protocol, or more than one.
        OSError: the file cannot be read.
    """
    if file == STANDARD_INPUT:
        yield _bodies("standard input", cast("BufferedReader", sys.stdin.buffer), dialect)
        return
    with Path(file).open("rb") as bytes_of_file:
        yield _bodies(file, bytes_of_file, dialect)


def _bodies(name: str, reader: BufferedReader, dialect: ProtocolName | None) -> Iterator[Body]:
    head = reader.read1(_READ_BYTES)
    if head.lstrip().startswith(b"{") and not head.startswith(HEAD):
        if b"\n" not in head:
            head += reader.readline(_LINE_BYTES)
        if is_batch_line(head.lstrip().partition(b"\n")[0]):
            yield from _lines(name, head, reader, dialect)
            return
    yield _body(name, reader, dialect, head)


def _lines(
    name: str, head: bytes, reader: BufferedReader, dialect: ProtocolName | None
) -> Iterator[Body]:
    """Yield the lines of a batch.

    One that fits no protocol, or two, has that of the line before it.
    """
    *whole, begun = head.split(b"\n")
    rest = iter(lambda: reader.readline(_LINE_BYTES), b"")
    lines = chain(whole, [begun + next(rest, b"")], rest)
    last: ProtocolName | None = None
    for number, line in enumerate(filter(bytes.strip, lines), 1):
        found = detect(line)
        last = dialect or found.dialect or last or found.candidates[0]
        yield Body(f"{name}#{number}", last, iter([line]), is_line=True)


def _body(name: str, reader: BufferedReader, dialect: ProtocolName | None, head: bytes) -> Body:
    chunks = iter(lambda: reader.read1(_READ_BYTES), b"")
    if head.startswith(HEAD):
        content = b"".join((head, *chunks))
        dialect, recording = open_recording(content, name, dialect, advice=ADVICE)
        options = ChoicesOptions(status=recording.status, headers=recording.headers)
        return Body(name, dialect, (piece for _, piece in recording.pieces_sent()), options)
    chunks = chain([head], chunks)
    if dialect is not None:
        return Body(name, dialect, chunks)
    first = b""
    detected = detect(first)
    for chunk in chunks:
        first += chunk
        detected = detect(first)
        if detected.dialect is not None or len(first) >= _DETECTED_BYTES:
            break
    if detected.dialect is not None:
        return Body(name, detected.dialect, chain([first], chunks))
    fit = " and ".join(detected.candidates) or "no protocol"
    raise MisuseError(f"{name}: the first bytes fit {fit}; {ADVICE}")


def whole_recording(file: str, dialect: ProtocolName | None) -> tuple[str, ProtocolName, Recording]:
    """Read a file or standard input to its end; return its name, its dialect and its recording.

    Raises:
        MisuseError: the dialect cannot be detected, or the file is a damaged recording.
        OSError: the file cannot be read.
    """
    if file == STANDARD_INPUT:
        content, name = sys.stdin.buffer.read(), "standard input"
    else:
        content, name = Path(file).read_bytes(), file
    dialect, recording = open_recording(content, name, dialect, advice=ADVICE)
    return name, dialect, recording
