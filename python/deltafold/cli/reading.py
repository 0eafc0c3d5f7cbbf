"""Recorded bodies of the command line: a file or standard input, and its protocol.

In: the name of a file, `-` for standard input.  Out: the chunks of the body, and its dialect.

Law: standard input is read as it arrives, and nothing is read before it is needed.
"""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Final, cast

from deltafold import MisuseError, detect, dialect_names

STANDARD_INPUT: Final = "-"

# Bytes per read of a file or pipe; large enough that decoding dominates the cost.
_READ_BYTES: Final = 64 * 1024
# `detect` examines at most this much.
_DETECTED_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Body:
    """A recorded body that is open.

    Attributes:
        name: what to call it in messages.
        dialect: the protocol of its bytes.
        chunks: its bytes.
    """

    name: str
    dialect: str
    chunks: Iterator[bytes]


@contextmanager
def opened(file: str, dialect: str | None) -> Generator[Body]:
    """Open a body, and detect its dialect where none is given.

    Raises:
        MisuseError: the first bytes fit no protocol, or more than one.
        OSError: the file cannot be read.
    """
    if file == STANDARD_INPUT:
        yield _body("standard input", cast("BufferedReader", sys.stdin.buffer), dialect)
        return
    with Path(file).open("rb") as bytes_of_file:
        yield _body(file, bytes_of_file, dialect)


def _body(name: str, reader: BufferedReader, dialect: str | None) -> Body:
    chunks = iter(lambda: reader.read1(_READ_BYTES), b"")
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
    if detected.candidates:
        raise MisuseError(
            f"{name}: the first bytes fit {' and '.join(detected.candidates)}; "
            "choose one with --dialect"
        )
    raise MisuseError(
        f"{name}: the first bytes fit no protocol; if it is one of {', '.join(dialect_names())}, "
        "give --dialect"
    )
