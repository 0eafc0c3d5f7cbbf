"""The `deltafold` command: folds a recorded response body, from a file or standard input.

    deltafold fold FILE --dialect anthropic-messages [--json]

Exit codes: 0, the stream ended well; 1, it ended in an error, and the received parts are printed;
2, wrong usage.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from deltafold import Fold, MisuseError, UnknownDialectError, __version__, dialect_names
from deltafold.cli.report import as_json, as_text

EXIT_DONE = 0
EXIT_ERROR = 1
EXIT_USAGE = 2

# One read of a file or pipe; large enough that reading costs nothing beside decoding.
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
    arguments = parser.parse_args(argv)
    return _fold(cast("str", arguments.file), cast("str", arguments.dialect), bool(arguments.json))


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
