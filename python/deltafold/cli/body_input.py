"""Recorded bodies of the command line: a file or standard input, and its protocol.

In: the name of a file, `-` for standard input.  Out: the chunks of the body, and its dialect. Of
the result file of a batch each line is a body.

Law: standard input is read as it arrives, and nothing is read before it is needed.
"""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Final, cast

from deltafold import MisuseError, detect, dialect_names
from deltafold._core import FIRST_REFUSAL, is_batch_line
from deltafold.cli.exits import complain
from deltafold.cli.progress import Progress, opened_file
from deltafold.cli.recorded import STANDARD_INPUT, Named, chosen, named, the_one
from deltafold.contract.names import ProtocolName
from deltafold.streams.options import ChoicesOptions
from deltafold.testing.captures.captured import Captured, captured
from deltafold.testing.captures.forms import Form, begin
from deltafold.testing.captures.http_text import read_head, without_encoding
from deltafold.testing.captures.readers import joined
from deltafold.testing.captures.reading import ReadOptions, captured_after
from deltafold.testing.no_body import no_body
from deltafold.testing.recorder import kept_response_headers
from deltafold.testing.recording import Recording
from deltafold.testing.recording_files import open_recording

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
        options: options of the decoder: status and headers of a capture that has them.
        is_one_of_several: its file has others.
    """

    name: str
    dialect: ProtocolName
    chunks: Iterator[bytes]
    options: ChoicesOptions = field(default_factory=ChoicesOptions)
    is_one_of_several: bool = False


@contextmanager
def opened(
    file: str, dialect: ProtocolName | None, options: ReadOptions, progress: Progress
) -> Generator[Body]:
    """Open the one body of a file, and detect its dialect where none is given.

    Of a recording with times, the body is what was received.

    Raises:
        MisuseError: the first bytes fit no protocol, or more than one; there are several bodies.
        OSError, ValueError: the file cannot be read.
    """
    one = named(file)
    with _reader(one, progress) as reader:
        form, head = begin(reader, one.shown, options.column)
        if one.place is None and form is Form.PLAIN:
            yield _body(one.shown, reader, dialect, head)
        elif _is_live(one, form):
            yield _body_below_head(one.shown, joined(head, reader), dialect)
        else:
            found = captured_after(form, head, reader, one.shown, options)
            yield _captured_body(the_one(found, one), one.place or one.shown, dialect)


@contextmanager
def opened_bodies(
    file: str, dialect: ProtocolName | None, options: ReadOptions, progress: Progress
) -> Generator[Iterator[Body]]:
    """Open the bodies of a file: those of a capture or of the results of a batch, or the one body.

    Raises:
        MisuseError: the first bytes fit no protocol, or more than one.
        OSError, ValueError: the file cannot be read.
    """
    one = named(file)
    with _reader(one, progress) as reader:
        yield _bodies(one, reader, dialect, options)


def _folder_instead(folder: str) -> MisuseError:
    """Return the error of a folder in the place of a file."""
    files = sorted(each for each in Path(folder).rglob("*") if each.is_file())
    if not files:
        return MisuseError(f"{folder} is a folder without files; name a file")
    return MisuseError(
        f"{folder} is a folder: name a file of it, such as {files[0]}, or write a row for each: "
        f"deltafold fold {folder} --to rows.parquet"
    )


@contextmanager
def _reader(one: Named, progress: Progress) -> Generator[BufferedReader]:
    if one.file == STANDARD_INPUT:
        if sys.stdin.isatty():
            complain("reading standard input; name a file, or end it with Ctrl-D")
        yield cast("BufferedReader", sys.stdin.buffer)
        return
    if Path(one.file).is_dir():
        raise _folder_instead(one.file)
    with opened_file(one.file, progress) as reader:
        yield reader


def _is_live(one: Named, form: Form) -> bool:
    """Return whether a stream below a head may still arrive: `curl -iN … | deltafold fold`."""
    return form is Form.HEAD and one == Named(STANDARD_INPUT)


def _bodies(
    one: Named, reader: BufferedReader, dialect: ProtocolName | None, options: ReadOptions
) -> Iterator[Body]:
    name = one.shown
    form, head = begin(reader, name, options.column)
    if one.place is None and form in {Form.PLAIN, Form.BATCH}:
        if head.lstrip().startswith(b"{"):
            if b"\n" not in head:
                head += reader.readline(_LINE_BYTES)
            if is_batch_line(head.lstrip().partition(b"\n")[0]):
                yield from _lines(name, head, reader, dialect)
                return
        yield _body(name, reader, dialect, head)
    elif _is_live(one, form):
        yield _body_below_head(name, joined(head, reader), dialect)
    else:
        found = chosen(captured_after(form, head, reader, name, options), one)
        yield from _captured_bodies(found, one, dialect)


def _captured_bodies(
    found: Iterator[Captured], one: Named, dialect: ProtocolName | None
) -> Iterator[Body]:
    first, second = next(found, None), next(found, None)
    if first is None:
        raise MisuseError(f"{one.shown}: no answer of a model")
    if second is None:
        yield _captured_body(first, one.place or one.shown, dialect)
        return
    last = dialect
    for each in chain((first, second), found):
        # One that fits no protocol, or two, has that of the answer before it.
        last = dialect or each.dialect or last
        yield replace(_captured_body(each, each.place, last), is_one_of_several=True)


def _captured_body(captured: Captured, name: str, dialect: ProtocolName | None) -> Body:
    recording = captured.recording
    chunks = [captured.body] if recording is None else [one for _, one in recording.pieces_sent()]
    options = ChoicesOptions(status=captured.status, headers=captured.headers)
    return Body(name, known_dialect(captured, name, dialect), iter(chunks), options)


def known_dialect(captured: Captured, name: str, dialect: ProtocolName | None) -> ProtocolName:
    """Return the dialect of a response.

    Raises:
        MisuseError: neither the caller nor the capture tells it.
    """
    known = dialect or captured.dialect
    if known is None:
        raise no_body(name, captured.body, detect(captured.body).candidates, ADVICE)
    return known


def _body_below_head(name: str, reader: BufferedReader, dialect: ProtocolName | None) -> Body:
    response = read_head(reader)
    headers = response.headers
    options = ChoicesOptions(status=response.status, headers=kept_response_headers(headers))
    if response.status < FIRST_REFUSAL and "content-encoding" not in headers:
        body = _body(name, reader, dialect, response.body or reader.read1(_READ_BYTES))
        return replace(body, options=options)
    content = without_encoding(response.body + reader.read(), headers)
    one = captured(content, name, status=response.status, headers=headers)
    return _captured_body(one, name, dialect)


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
        yield Body(f"{name}#{number}", last, iter([line]), is_one_of_several=True)


def _body(name: str, reader: BufferedReader, dialect: ProtocolName | None, head: bytes) -> Body:
    chunks = chain([head], iter(lambda: reader.read1(_READ_BYTES), b""))
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
    raise no_body(name, first, detected.candidates, ADVICE)


def whole_recording(
    file: str, dialect: ProtocolName | None, options: ReadOptions, progress: Progress
) -> tuple[str, ProtocolName, Recording]:
    """Read a file or standard input to its end; return its name, its dialect and its recording.

    Raises:
        MisuseError: the dialect cannot be detected, or there are several bodies.
        OSError, ValueError: the file cannot be read.
    """
    one = named(file)
    with _reader(one, progress) as reader:
        form, head = begin(reader, one.shown, options.column)
        if one.place is None and form is Form.PLAIN:
            known, recording = open_recording(
                head + reader.read(), one.shown, dialect, advice=ADVICE
            )
            return one.shown, known, recording
        found = the_one(captured_after(form, head, reader, one.shown, options), one)
    name = one.place or one.shown
    return name, known_dialect(found, name, dialect), found.as_recording()
