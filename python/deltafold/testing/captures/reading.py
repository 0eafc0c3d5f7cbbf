"""Reading of a capture: every form, and forms inside of others.

In: a path, bytes or an open file.  Out: its responses, one after the other.

Laws: one response is held at a time, where the form allows it. Forms are nested at most so many
times. Bytes that are no capture are one body.
"""

import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from io import BufferedReader, BytesIO, FileIO
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

from deltafold._core import Decoder, is_batch_line
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import json_object
from deltafold.contract.names import ProtocolName
from deltafold.streams.bodies import detect
from deltafold.testing.captures import json_values, log_lines, parquet
from deltafold.testing.captures.captured import Captured, captured
from deltafold.testing.captures.forms import PACKED, Form, begin, form_of
from deltafold.testing.captures.har import answers_of, entries_of
from deltafold.testing.captures.http_text import read_head, responses_of, without_encoding
from deltafold.testing.captures.readers import (
    gunzipped,
    joined,
    lines,
    reader_of,
    too_large,
    unbrotli,
    unzstd,
    whole,
)
from deltafold.testing.cassette import cassette_of
from deltafold.testing.recording import Recording

MAX_BYTES: Final = 256 << 20
"""Default bound of the bytes of a capture that is held at once."""

_MAX_NESTED: Final = 4


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of the reading of a capture.

    Attributes:
        column: the column of bodies; None finds it.
        max_bytes: bound of the bytes that are held at once, after they are unpacked.
        nested: number of the forms around this one.
        is_plain: whether JSON in which no body is found is itself taken as a body, because the
            caller has named its protocol.
    """

    column: str | None = None
    max_bytes: int = MAX_BYTES
    nested: int = 0
    is_plain: bool = False

    def inside(self, name: str) -> "ReadOptions":
        """Return the same for a form inside of this one."""
        if self.nested == _MAX_NESTED:
            raise ValueError(f"{name}: nested more than {_MAX_NESTED} times")
        return ReadOptions(self.column, self.max_bytes, self.nested + 1, self.is_plain)


def read_capture(
    source: Path | str | bytes,
    dialect: ProtocolName | None = None,
    *,
    column: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> list[Captured]:
    """Read the responses of a file in the form in which another program kept them.

    The forms: a body, a HAR, the output of `curl -i` and `curl -v`, lines of a log with prefixes, a
    body as a JSON string, JSON, JSON Lines or Parquet with a column of bodies, cassettes of VCR,
    recordings, and archives (tar) of them, each also compressed by gzip, zstd or brotli.

    >>> for captured in deltafold.read_capture("recording.sse.gz"):
    ...     message = deltafold.fold(
    ...         captured.body, captured.dialect, status=captured.status
    ...     )

    Args:
        source: the path of the file, or its bytes.
        dialect: the protocol of all responses; None takes that of the address or the body of each.
        column: the column of bodies, such as `body` or `response.body`; else it is found.
        max_bytes: bound of all bytes, after they are unpacked. Default 256 MiB.

    Raises:
        MisuseError: the file holds no response of a model, its column of bodies must be named, or a
            package that reads it is not installed.
        UnknownDialectError: there is no such dialect.
        ValueError: the file is damaged, or larger than `max_bytes`.
        OSError: the file cannot be read.
    """
    if dialect is not None:
        Decoder(dialect)  # names those that are known, if it is none
    options = ReadOptions(column, max_bytes, is_plain=dialect is not None)
    if isinstance(source, bytes):
        found = _bounded(captured_in(reader_of(source), "capture", options), options, "capture")
    else:
        with Path(source).open("rb") as reader:
            found = _bounded(captured_in(reader, str(source), options), options, str(source))
    return found if dialect is None else [replace(one, dialect=dialect) for one in found]


def _bounded(found: Iterator[Captured], options: ReadOptions, name: str) -> list[Captured]:
    kept: list[Captured] = []
    left = options.max_bytes
    for one in found:
        left -= len(one.body)
        if left < 0:
            raise too_large(name, options.max_bytes)
        kept.append(one)
    return kept


def captured_in(reader: BufferedReader, name: str, options: ReadOptions) -> Iterator[Captured]:
    """Yield the responses of an open file.

    Raises:
        MisuseError, ValueError, OSError: as `read_capture` does.
    """
    form, head = begin(reader, name, options.column)
    return captured_after(form, head, reader, name, options)


def captured_after(
    form: Form, head: bytes, reader: BufferedReader, name: str, options: ReadOptions
) -> Iterator[Captured]:
    """Yield the responses of a file whose form is known, and whose first bytes were read."""
    try:
        yield from _of_form(form, head, reader, name, options)
    except (EOFError, tarfile.TarError, zlib.error) as wrong:
        raise ValueError(f"{name}: damaged: {wrong}") from wrong


def _of_form(
    form: Form, head: bytes, reader: BufferedReader, name: str, options: ReadOptions
) -> Iterator[Captured]:
    again = joined(head, reader)
    if form in PACKED:
        found = _of_packed(form, again, name, options)
    elif form is Form.PARQUET and isinstance(reader.raw, FileIO) and reader.seekable():
        reader.seek(0)
        found = _of_rows(parquet.rows_of(reader, name, options.column), name, options)
    elif form in _BY_PIECES:
        found = _BY_PIECES[form](again, name, options)
    else:
        found = _of_whole(form, whole(again, name, options.max_bytes), name, options)
    return found


def unpacked(form: Form, packed: BufferedReader, name: str, max_bytes: int) -> BufferedReader:
    """Return a reader of the bytes of a compressed file; `form` is one of `PACKED`."""
    if form is Form.GZIP:
        return gunzipped(packed)
    if form is Form.ZSTD:
        return unzstd(packed)
    return unbrotli(packed, name, max_bytes)


def _of_packed(
    form: Form, packed: BufferedReader, name: str, options: ReadOptions
) -> Iterator[Captured]:
    own = options.inside(name)
    with unpacked(form, packed, name, options.max_bytes) as reader:
        kind, head = begin(reader, name.removesuffix(PACKED[form]), options.column)
        yield from captured_after(kind, head, reader, name, own)


def _of_archive(reader: BufferedReader, name: str, options: ReadOptions) -> Iterator[Captured]:
    own = options.inside(name)
    with ExitStack() as stack:
        archive = stack.enter_context(tarfile.open(fileobj=reader, mode="r|"))
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                place = f"{name}/{member.name}"
                # The members of an archive that is read forward cannot be looked into.
                held = content.read(options.max_bytes + 1)
                if len(held) > options.max_bytes:
                    raise too_large(place, options.max_bytes)
                yield from captured_in(reader_of(held), place, own)


def _of_recordings(reader: BufferedReader, name: str, options: ReadOptions) -> Iterator[Captured]:
    recordings = Recording.each(lines(reader, name, options.max_bytes), name)
    for number, recording in enumerate(recordings, 1):
        yield _from_recording(recording, f"{name}#{number}", is_timed=True)


def _from_recording(recording: Recording, place: str, *, is_timed: bool) -> Captured:
    request = recording.request
    url = None if request is None else request.path
    one = captured(
        recording.body, place, url=url, status=recording.status, headers=recording.headers
    )
    return Captured(
        one.body,
        one.place,
        one.dialect,
        one.url,
        one.status,
        recording.headers,
        recording=recording if is_timed else None,
    )


def _of_batch(
    reader: BufferedReader, name: str, options: ReadOptions, first: bytes = b""
) -> Iterator[Captured]:
    last: ProtocolName | None = None
    rows = chain([first], lines(reader, name, options.max_bytes))
    for number, line in enumerate(filter(bytes.strip, rows), 1):
        # Half a line has the protocol of the line before it.
        last = detect(line).dialect or last
        yield Captured(line, f"{name}#{number}", last, is_batched=True)


def _of_plain(reader: BufferedReader, name: str, options: ReadOptions) -> Iterator[Captured]:
    # The members that tell a line of a batch may come after a long answer.
    line = reader.readline(options.max_bytes) if reader.peek(1).startswith(b"{") else b""
    if is_batch_line(line):
        yield from _of_batch(reader, name, options, line)
    else:
        yield captured(line + whole(reader, name, options.max_bytes), name)


def _of_head(reader: BufferedReader, name: str, options: ReadOptions) -> Iterator[Captured]:
    response = read_head(reader)
    body = response.body + whole(reader, name, options.max_bytes)
    body = without_encoding(body, response.headers)
    yield captured(body, name, status=response.status, headers=response.headers)


def _of_json(reader: BufferedReader, name: str, options: ReadOptions) -> Iterator[Captured]:
    line = reader.readline(options.max_bytes)
    if is_batch_line(line):
        yield from _of_batch(reader, name, options, line)
        return
    if line.lstrip().startswith((b"{", b'"')) and reader.peek(1):
        try:
            first = json_values.parsed(line)
        except ValueError:
            pass
        else:
            yield from _of_lines(first, line, reader, name, options)
            return
    yield from _of_document(line + whole(reader, name, options.max_bytes), name, options)


def _of_document(content: bytes, name: str, options: ReadOptions) -> Iterator[Captured]:
    try:
        value = json_values.parsed(content)
    except ValueError:
        yield captured(content, name)  # an answer that was cut
        return
    members = json_object(value) or {}
    entries = entries_of(members)
    if entries is not None:
        yield from answers_of(entries, name)
        return
    if any(isinstance(members.get(key), list) for key in ("interactions", "http_interactions")):
        yield from _of_whole(Form.CASSETTE, content, name, options)
        return
    path = json_values.found_path(value, name) if options.column is None else None
    if options.column is not None:
        path = json_values.path_of(options.column, value)
    if path is None:
        yield _without_bodies(content, name, options)
        return
    bodies = [json_values.body_of(one) for one in json_values.values_at(value, path)]
    if not bodies:
        raise MisuseError(f"{name}: no column {json_values.shown(path)!r}")
    is_one = len(bodies) == 1
    for number, body in enumerate(bodies, 1):
        if body is not None:
            yield from _nested(body, name if is_one else f"{name}#{number}", options)


def _of_lines(
    first: object, line: bytes, reader: BufferedReader, name: str, options: ReadOptions
) -> Iterator[Captured]:
    """Yield the bodies of JSON lines; lines of a log that hold one line each are one body."""
    rows = _numbered(chain([line], lines(reader, name, options.max_bytes)), name)
    if options.column is not None:
        path = json_values.path_of(options.column, first)
    else:
        seen: list[_Row] = []
        found_path = _path_in(rows, seen, name, options.max_bytes)
        if found_path is None:
            yield _without_bodies(b"".join(row for _, row, _ in seen), name, options)
            return
        path, rows = found_path, chain(seen, rows)
    found = _members(rows, path)
    place, one = next(found, (name, None))
    found = chain([(place, one)], found)
    if options.column is None and json_values.is_line_of_log(one, path):
        yield captured(_body_of_log(found, name, options.max_bytes), name)
        return
    number = 0
    for place, one in found:
        body = json_values.body_of(one)
        if body is not None:
            number += 1
            yield from _nested(body, place, options)
    if not number:
        raise MisuseError(f"{name}: no line has a body in the column {json_values.shown(path)!r}")


def _members(rows: Iterator["_Row"], path: json_values.Path) -> Iterator[tuple[str, object]]:
    for place, _, value in rows:
        if value is _BROKEN:
            raise ValueError(f"{place}: not valid JSON")
        for one in json_values.values_at(value, path):
            yield place, one


_Row: TypeAlias = tuple[str, bytes, object]
"""The place, the bytes and the value of a line."""

_BROKEN: Final = object()
"""The value of a line that is not JSON, which is an error if other lines have bodies."""


def _path_in(
    rows: Iterator[_Row], seen: list[_Row], name: str, max_bytes: int
) -> json_values.Path | None:
    """Return the path of the bodies in the first line that has one; adds the lines to `seen`."""
    left = max_bytes
    for place, row, value in rows:
        seen.append((place, row, value))
        path = json_values.found_path(value, place)
        if path is not None:
            return path
        left -= len(row)
        if left < 0:
            raise too_large(name, max_bytes)
    return None


def _without_bodies(content: bytes, name: str, options: ReadOptions) -> Captured:
    """Return JSON without bodies inside as a body: of a known protocol, or of an error."""
    if not options.is_plain and not detect(content).candidates:
        raise MisuseError(
            f"{name}: JSON that holds no stream and no answer of a known protocol. An export with "
            "the final text alone cannot be folded; name a protocol with --dialect if it is a "
            "body, and a column of bodies with --column"
        )
    return captured(content, name)


def _numbered(rows: Iterator[bytes], name: str) -> Iterator[_Row]:
    """Yield the lines that are not blank."""
    for number, row in enumerate(rows, 1):
        if row.strip():
            value: object
            try:
                value = json_values.parsed(row)
            except ValueError:
                value = _BROKEN
            yield f"{name}#{number}", row, value


def _body_of_log(found: Iterator[tuple[str, object]], name: str, max_bytes: int) -> bytes:
    """Return the body whose lines are members of the lines, as a container's log has them."""
    body: list[bytes] = []
    left = max_bytes
    for _, one in found:
        text = json_values.body_of(one) if isinstance(one, str) else None
        if text is not None:
            body.append(text if text.endswith(b"\n") else text + b"\n")
            left -= len(text)
            if left < 0:
                raise too_large(name, max_bytes)
    return log_lines.of_events(body)


def _of_rows(
    rows: Iterator[tuple[int, bytes]], name: str, options: ReadOptions
) -> Iterator[Captured]:
    for number, body in rows:
        if len(body) > options.max_bytes:
            raise too_large(f"{name}#{number}", options.max_bytes)
        yield from _nested(body, f"{name}#{number}", options)


def _nested(body: bytes, place: str, options: ReadOptions) -> Iterator[Captured]:
    """Yield the responses of a value; one that fits no form is a body too."""
    form = form_of(body, place, is_whole=True)
    if form is Form.PLAIN or (form is Form.JSON and not body.lstrip().startswith(b'"')):
        yield captured(body, place)
    else:
        inside = replace(options.inside(place), column=None)
        yield from captured_in(reader_of(body), place, inside)


def _of_whole(form: Form, content: bytes, name: str, options: ReadOptions) -> Iterator[Captured]:
    if form is Form.PARQUET:
        yield from _of_rows(parquet.rows_of(BytesIO(content), name, options.column), name, options)
    elif form is Form.CASSETTE:
        for number, recording in enumerate(cassette_of(content, name), 1):
            yield _from_recording(recording, f"{name}#{number}", is_timed=False)
    elif form is Form.TRACE:
        responses = responses_of(content)
        for number, one in enumerate(responses, 1):
            place = name if len(responses) == 1 else f"{name}#{number}"
            yield captured(one.body, place, url=one.url, status=one.status, headers=one.headers)
    else:
        bodies = log_lines.bodies_of(content)
        for number, body in enumerate(bodies or [content], 1):
            yield captured(body, f"{name}#{number}" if bodies[1:] else name)


_BY_PIECES: Final[
    Mapping[Form, Callable[[BufferedReader, str, ReadOptions], Iterator[Captured]]]
] = {
    Form.TAR: _of_archive,
    Form.RECORDINGS: _of_recordings,
    Form.BATCH: _of_batch,
    Form.PLAIN: _of_plain,
    Form.HEAD: _of_head,
    Form.JSON: _of_json,
}
"""Forms that are not read as a whole."""
