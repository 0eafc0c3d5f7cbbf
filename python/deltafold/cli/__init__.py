"""The `deltafold` command: folds or transcodes a recorded response body, or writes types.

    deltafold fold FILE --dialect anthropic-messages [--json]
    deltafold transcode FILE --from openai-chat --to anthropic-messages
    deltafold types package.module:Name [--check FILE]

Exit codes: 0, the stream ended well, or the types are written; 1, the stream ended in an error, and
the received parts are printed, or the file has other types; 2, wrong usage. `transcode` writes the
target's stream to standard output, with all answers of the source if the target has several, and
what the target cannot carry to standard error.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from deltafold import (
    ChoicesEncoder,
    Decoder,
    Fold,
    MisuseError,
    Transcoder,
    UnknownDialectError,
    __version__,
    dialect_names,
    target_names,
)
from deltafold.cli.report import as_json, as_text
from deltafold.encoding import EncoderNote

EXIT_DONE = 0
EXIT_ERROR = 1
EXIT_USAGE = 2

# Bytes per read of a file or pipe; large enough that decoding dominates the cost.
_READ_BYTES = 64 * 1024


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="deltafold", description="Folds streams of LLM providers into messages."
    )
    parser.add_argument("--version", action="version", version=f"deltafold {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("fold", help="fold a recorded response body into its message")
    command.add_argument("file", help="the body as bytes; - reads standard input")
    command.add_argument(
        "--dialect", required=True, help=f"the wire protocol, one of: {', '.join(dialect_names())}"
    )
    command.add_argument("--json", action="store_true", help="print the message as JSON")
    transcode = commands.add_parser("transcode", help="write a recorded stream as another protocol")
    transcode.add_argument("file", help="the body as bytes; - reads standard input")
    transcode.add_argument(
        "--from", dest="source", required=True, help=f"one of: {', '.join(dialect_names())}"
    )
    transcode.add_argument(
        "--to", dest="target", required=True, help=f"one of: {', '.join(target_names())}"
    )
    types = commands.add_parser("types", help="print the type of the partial outputs of a type")
    types.add_argument("place", help="a type, as package.module:Name")
    types.add_argument("--check", metavar="FILE", help="compare with a file instead")
    arguments = parser.parse_args(argv)
    if arguments.command == "types":
        return _types(cast("str", arguments.place), cast("str | None", arguments.check))
    if arguments.command == "transcode":
        file, source, target = (
            cast("str", getattr(arguments, name)) for name in ("file", "source", "target")
        )
        return _transcode(file, source, target)
    return _fold(cast("str", arguments.file), cast("str", arguments.dialect), bool(arguments.json))


def _types(place: str, file: str | None) -> int:
    from deltafold.cli.types import module_of_type  # noqa: PLC0415 - it imports the models

    if str(Path.cwd()) not in sys.path:  # the installed script does not look there
        sys.path.insert(0, str(Path.cwd()))
    try:
        text = module_of_type(place)
        if file is None:
            print(text, end="")
            return EXIT_DONE
        is_same = Path(file).read_text("utf-8") == text
    except (MisuseError, OSError) as problem:
        print(f"deltafold: {problem}", file=sys.stderr)
        return EXIT_USAGE
    if not is_same:
        print(f"deltafold: {file} is not what `deltafold types {place}` writes", file=sys.stderr)
        return EXIT_ERROR
    return EXIT_DONE


def _fold(file: str, dialect: str, json: bool) -> int:
    try:
        folding = Fold(dialect)
        if file == "-":
            _feed(folding, sys.stdin.buffer)
        else:
            with Path(file).open("rb") as body:
                _feed(folding, body)
    except (UnknownDialectError, MisuseError, OSError) as problem:
        print(f"deltafold: {problem}", file=sys.stderr)
        return EXIT_USAGE
    error = folding.assembler.get_error()
    write: Callable[[Fold], str] = as_json if json else as_text
    print(write(folding))
    if error is not None:
        print(f"deltafold: {error}", file=sys.stderr)
        return EXIT_ERROR
    return EXIT_DONE


def _feed(folding: Fold, body: BinaryIO) -> None:
    while data := body.read(_READ_BYTES):
        folding.feed(data)
    folding.close()


def _transcode(file: str, source: str, target: str) -> int:
    try:
        transcoder = _transcoder(source, target)
        if file == "-":
            _rewrite(transcoder, sys.stdin.buffer)
        else:
            with Path(file).open("rb") as body:
                _rewrite(transcoder, body)
    except (UnknownDialectError, OSError) as problem:
        print(f"deltafold: {problem}", file=sys.stderr)
        return EXIT_USAGE
    for note in transcoder.notes:
        times = f" ({note['count']} times)" if note["count"] > 1 else ""
        print(f"deltafold: not carried: {note['what']}{times}", file=sys.stderr)
    if transcoder.failed:
        print(
            f"deltafold: the stream ended in an error, status {transcoder.status}", file=sys.stderr
        )
        return EXIT_ERROR
    return EXIT_DONE


class _AllAnswers:
    """Transcoder of a stream whose request asked for several answers."""

    def __init__(self, source: str, encoder: ChoicesEncoder[bytes]) -> None:
        self._decoder = Decoder(source, choice="all")
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


def _transcoder(source: str, target: str) -> Transcoder | _AllAnswers:
    """Return a transcoder of all answers, or of the first one for a target that has one."""
    try:
        encoder = ChoicesEncoder(target)
    except MisuseError:
        return Transcoder(source, target)
    return _AllAnswers(source, encoder)


def _rewrite(transcoder: Transcoder | _AllAnswers, body: BinaryIO) -> None:
    out = sys.stdout.buffer
    while data := body.read(_READ_BYTES):
        out.write(transcoder.feed(data))
    out.write(transcoder.close())
    out.flush()
