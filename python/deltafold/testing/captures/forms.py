"""The form of a capture, by its first bytes.

In: the beginning of a file, which may be cut, and its name.  Out: the form; none while more bytes
are needed.

Laws: the beginning of a body whose first event tells its protocol is plain, and needs no more bytes
than the detection of its protocol. The name counts for YAML and brotli alone.
"""

import re
from enum import Enum, auto
from io import BufferedReader
from typing import Final

from deltafold._core import is_batch_line
from deltafold.streams.bodies import detect
from deltafold.testing.captures.http_text import has_head, is_trace
from deltafold.testing.captures.log_lines import has_prefixes
from deltafold.testing.captures.parquet import MAGIC
from deltafold.testing.captures.readers import BUFFER_BYTES


class Form(Enum):
    """The form of a capture."""

    PLAIN = auto()
    GZIP = auto()
    ZSTD = auto()
    BROTLI = auto()
    TAR = auto()
    PARQUET = auto()
    RECORDINGS = auto()
    BATCH = auto()
    JSON = auto()
    CASSETTE = auto()
    HEAD = auto()
    TRACE = auto()
    LOG = auto()


PACKED: Final = {Form.GZIP: ".gz", Form.ZSTD: ".zst", Form.BROTLI: ".br"}
"""Compressed forms, and the ends of their names."""

_ENOUGH: Final = 64 << 10
_ENOUGH_TEXT: Final = 1 << 20
"""A log or a trace may begin with other lines."""

_MAGIC: Final = {b"\x1f\x8b": Form.GZIP, b"\x28\xb5\x2f\xfd": Form.ZSTD, MAGIC: Form.PARQUET}
_TAR: Final = slice(257, 262)
_TAR_END: Final = 262
_BOM: Final = b"\xef\xbb\xbf"
_FIELD: Final = re.compile(rb"(?:data|event|id|retry)?:")
_ARRAY: Final = re.compile(rb"\[\s*[{\[\]\"]")
_RECORDING: Final = re.compile(rb"\{\s*\"recording\"\s*:")
_CASSETTE: Final = re.compile(rb"^(?:http_)?interactions:\s*$", re.MULTILINE)
_CASSETTES: Final = (".yaml", ".yml")
_MIN: Final = 8


def begin(reader: BufferedReader, name: str, column: str | None = None) -> tuple[Form, bytes]:
    """Return the form of a file, and the first bytes, which were read."""
    head = reader.read1(BUFFER_BYTES)
    form = form_of(head, name, is_whole=not head, column=column)
    looked = len(head)
    pieces = [head]
    size = looked
    while form is None:
        piece = reader.read1(BUFFER_BYTES)
        pieces.append(piece)
        size += len(piece)
        # A line may tell the form; else each look is at twice the bytes, for a linear cost.
        has_line = b"\n" in piece and size < _ENOUGH
        if not piece or has_line or size >= 2 * looked:
            head = b"".join(pieces)
            pieces, looked = [head], size
            form = form_of(head, name, is_whole=not piece, column=column)
    return form, b"".join(pieces)


def form_of(head: bytes, name: str, *, is_whole: bool, column: str | None = None) -> Form | None:
    """Return the form; None if it needs more bytes than these.

    Args:
        head: the first bytes.
        name: the name of the file.
        is_whole: there are no more bytes.
        column: the column of bodies, if the caller names one; then JSON has columns.
    """
    form = _form_of_mark(head, name)
    text = head.removeprefix(_BOM).lstrip()
    if form is None and _FIELD.match(text):
        form = Form.PLAIN
    if form is not None:
        return form
    if not is_whole and (len(text) < _MIN or (len(head) < _TAR_END and b"\0" in head)):
        return None
    if text.startswith((b"{", b'"')) or _ARRAY.match(text):
        return _form_of_json(text, is_whole=is_whole, column=column)
    return _form_of_text(text, name, is_whole=is_whole)


def _form_of_mark(head: bytes, name: str) -> Form | None:
    for magic, form in _MAGIC.items():
        if head.startswith(magic):
            return form
    if head[_TAR] == b"ustar":
        return Form.TAR
    if name.endswith(PACKED[Form.BROTLI]):
        return Form.BROTLI
    # Frames of AWS begin with their length.
    return Form.PLAIN if head.startswith(b"\0") else None


def _form_of_json(text: bytes, *, is_whole: bool, column: str | None) -> Form | None:
    if _RECORDING.match(text):
        return Form.RECORDINGS
    first, line_end, _ = text.partition(b"\n")
    if is_batch_line(first):
        return Form.BATCH
    if column is not None or text.startswith(b'"'):
        return Form.JSON
    if detect(text).dialect is not None:
        return Form.PLAIN
    # The rest of the first line may tell the protocol, and the lines of a document after it.
    is_enough = is_whole or len(text) >= _ENOUGH or (line_end and first.rstrip().endswith(b"}"))
    return Form.JSON if is_enough else None


def _form_of_text(text: bytes, name: str, *, is_whole: bool) -> Form | None:
    if has_head(text):
        return Form.HEAD
    if name.endswith(_CASSETTES) or _CASSETTE.search(text):
        return Form.CASSETTE
    if is_trace(text):
        return Form.TRACE
    if has_prefixes(text):
        return Form.LOG
    return Form.PLAIN if is_whole or len(text) >= _ENOUGH_TEXT or b"\0" in text else None
