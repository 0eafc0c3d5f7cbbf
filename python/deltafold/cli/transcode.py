"""`deltafold transcode`: a recorded stream as the stream of another protocol.

In: a file or standard input.  Out: the target's bytes, with all answers of the source if the target
has several; what the target cannot carry on standard error.  A terminal gets printable text.
"""

import sys
from codecs import getincrementaldecoder
from collections.abc import Callable
from itertools import chain

from deltafold import ChoicesEncoder, Decoder, MisuseError, Transcoder, detect
from deltafold.cli.body_input import Body, opened
from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR, EXIT_USAGE, complain
from deltafold.cli.progress import open_progress
from deltafold.cli.recorded import UNREADABLE, named
from deltafold.contract.foreign_text import printable
from deltafold.contract.names import ProtocolName, TargetName
from deltafold.streams.encoded import EncoderNote
from deltafold.testing.captures.reading import ReadOptions


def transcode_file(
    file: str, source: ProtocolName | None, target: TargetName, options: ReadOptions
) -> int:
    """Write a recorded stream as another protocol; returns the exit code."""
    try:
        with (
            open_progress([named(file).file], shows=not sys.stdout.isatty()) as progress,
            opened(file, source, options, progress) as body,
        ):
            transcoder = _transcoder(body, target)
            write = _writer()
            first = next(body.chunks, b"")
            for chunk in chain([first], body.chunks):
                write(transcoder.feed(chunk))
            write(transcoder.close())
            sys.stdout.flush()
    except UNREADABLE as problem:
        complain(problem, named(file).shown)
        return EXIT_USAGE
    for note in transcoder.notes:
        times = f" ({note['count']} times)" if note["count"] > 1 else ""
        complain(f"not carried: {note['what']}{times}")
    if transcoder.failed:
        complain(f"the stream ended in an error, status {transcoder.status}")
        told = detect(first).dialect
        if source not in {None, told} and told is not None:
            complain(f"it looks like {told}: leave --from {source} out, or write --from {told}")
        return EXIT_ERROR
    return EXIT_DONE


def _writer() -> Callable[[bytes], object]:
    """Return what writes bytes to standard output, and their text to a terminal."""
    if not sys.stdout.isatty():
        return sys.stdout.buffer.write
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    return lambda data: sys.stdout.write(printable(decoder.decode(data), lines=True))


class _AllAnswers:
    """Transcoder of a stream whose request asked for several answers."""

    def __init__(self, body: Body, encoder: ChoicesEncoder[bytes]) -> None:
        self._decoder = Decoder(body.dialect, choice="all", **body.options)
        self._encoder = encoder

    @property
    def notes(self) -> list[EncoderNote]:
        return self._encoder.notes

    @property
    def status(self) -> int | None:
        return self._encoder.status

    @property
    def failed(self) -> bool:
        return self._encoder.failed

    def feed(self, data: bytes) -> bytes:
        return self._encoder.feed(self._decoder.feed(data))

    def close(self) -> bytes:
        return self._encoder.feed(self._decoder.close()) + self._encoder.close()


def _transcoder(body: Body, target: TargetName) -> Transcoder | _AllAnswers:
    """Return a transcoder of all answers, or of the first one for a target that has one."""
    try:
        encoder = ChoicesEncoder(target)
    except MisuseError:
        return Transcoder(Decoder(body.dialect, **body.options), target)
    return _AllAnswers(body, encoder)
