"""`deltafold fold`: recorded bodies become messages.

In: files or standard input, results of batches among them.  Out: the parts of each message, or the
message as JSON; the error that ended a stream on standard error.
"""

import json
import sys

from deltafold import DeltaStream, Fold, Message, ModelError
from deltafold import stream as streamed
from deltafold.cli.advice import for_shell
from deltafold.cli.body_input import Body, opened_bodies
from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR, EXIT_USAGE, complain
from deltafold.cli.progress import open_progress
from deltafold.cli.recorded import STANDARD_INPUT, UNREADABLE, named
from deltafold.cli.screen import open_screen, say
from deltafold.contract.names import ProtocolName
from deltafold.testing.captures.reading import ReadOptions


def fold_files(
    files: list[str],
    dialect: ProtocolName | None,
    options: ReadOptions,
    *,
    json_lines: bool,
    live: bool | None,
) -> int:
    """Fold each file and print its message; returns the exit code.

    Args:
        files: the names of files, `-` for standard input.
        dialect: the protocol of all files; None detects that of each.
        options: the column and the bound of captures.
        json_lines: print JSON: the message alone of one file, otherwise a line with `file`,
            `dialect`, `message` and `error` of each file, and of each answer of a capture.
        live: show the message while it grows; None does so for standard input on a terminal.
    """
    code = EXIT_DONE
    with open_progress((named(file).file for file in files), shows=not live) as progress:
        for file in files:
            is_live = _is_live(file, live, json_lines=json_lines)
            try:
                with opened_bodies(file, dialect, options, progress) as bodies:
                    for body in bodies:
                        message, error = _folded(body, live=is_live)
                        progress.erase()
                        is_alone = len(files) == 1 and not body.is_one_of_several
                        _print(body, message, error, json_lines=json_lines, is_alone=is_alone)
                        if error is not None:
                            code = max(code, EXIT_ERROR)
            except UNREADABLE as problem:
                progress.erase()
                complain(problem, named(file).shown)
                code = max(code, EXIT_USAGE)
    return code


def _print(
    body: Body, message: Message, error: ModelError | None, *, json_lines: bool, is_alone: bool
) -> None:
    """Print a message and its error, with the name of the body if there are several."""
    if not json_lines:
        if not is_alone:
            custom_id = message.meta.custom_id
            named = body.name if custom_id is None else f"{body.name} {custom_id}"
            say(f"{named} ({body.dialect})")
        say(str(message), lines=True)
    elif is_alone:
        say(json.dumps(message.to_dict(), ensure_ascii=False, indent=2), lines=True)
    else:
        say(_line(body, message, error))
    if error is not None:
        said = for_shell(str(error))
        complain(said if is_alone else f"{body.name}: {said}")


def _is_live(file: str, live: bool | None, *, json_lines: bool) -> bool:
    if live is not None:
        return live
    return file == STANDARD_INPUT and not json_lines and sys.stdout.isatty()


def _folded(body: Body, *, live: bool) -> tuple[Message, ModelError | None]:
    if live:
        with streamed(body.chunks, body.dialect, **body.options) as stream:
            return _shown(stream)
    folding = Fold(body.dialect, **body.options)
    for chunk in body.chunks:
        folding.feed(chunk)
    folding.close()
    return folding.snapshot(), folding.assembler.get_error()


def _shown(stream: DeltaStream) -> tuple[Message, ModelError | None]:
    """Show a stream while it grows, and return its message and its error."""
    with open_screen(keeps=False) as screen:
        for delta in stream:
            screen.show(delta)
    return stream.snapshot(), stream.error


def _line(body: Body, message: Message, error: ModelError | None) -> str:
    line = {
        "file": body.name,
        "dialect": body.dialect,
        "message": message.to_dict(),
        "error": None if error is None else {"code": error.code, "message": str(error)},
    }
    return json.dumps(line, ensure_ascii=False)
