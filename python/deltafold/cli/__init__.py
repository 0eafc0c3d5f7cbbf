"""The `deltafold` command: folds and transcodes recordings, and calls models.

    deltafold fold FILE ... [--dialect NAME] [--json] [--live]
    deltafold fold FILE ... --to FILE.parquet [--dialect NAME] [--vendor NAME]
    deltafold stats FILE
    deltafold transcode FILE [--from NAME] --to NAME
    deltafold inspect FILE [--diff OTHER] [--out PAGE] [--no-open]
    deltafold chat VENDOR/MODEL [PROMPT]
    deltafold models [NAME]
    deltafold doctor [VENDOR/MODEL]
    deltafold serve [FILE] [--model NAME=VENDOR/MODEL] [--replay FOLDER]
    deltafold types package.module:Name [--check FILE]
    deltafold completion SHELL

Exit codes: 0, everything ended well; 1, a stream ended in an error, and the received parts are
printed, a file has other types, or two recordings differ; 2, wrong usage.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from deltafold import __version__, dialect_names, target_names

if TYPE_CHECKING:
    from deltafold.testing.captures.reading import ReadOptions

_ENDED_BY_READER: Final = 141
"""Exit code of a program that SIGPIPE ends, 128 and the number of the signal."""

_Command: TypeAlias = Callable[[argparse.Namespace], int]


class _Commands(Protocol):
    """The commands of a parser; argparse has no public name for the type."""

    def add_parser(
        self,
        name: str,
        *,
        help: str,  # noqa: A002 - the name of argparse
        description: str,
    ) -> argparse.ArgumentParser: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code.

    A reader that ends first, such as `head`, ends the command as it ends those of the system.
    """
    try:
        try:
            arguments = make_parser().parse_args(argv)
            code = cast("_Command", arguments.run)(arguments)
        finally:  # `--help` leaves by SystemExit
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes the stream once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _ENDED_BY_READER
    return code


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command."""
    parser = argparse.ArgumentParser(
        prog="deltafold",
        description="Folds streams of LLM providers into messages.",
        epilog="Exit codes: 0, success; 1, a stream ended in an error; 2, wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"deltafold {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for add in (_fold, _stats, _transcode, _inspect, _chat, _models, _doctor, _serve, _types):
        add(commands)
    _completion(commands, parser)
    return parser


# Each command imports its module when it runs, so that folding a file imports no client.
# ruff: noqa: PLC0415


def _command(
    commands: _Commands,
    name: str,
    summary: str,
    run: _Command,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
    parser.set_defaults(run=run)
    return parser


def _add_dialect(parser: argparse.ArgumentParser) -> None:
    names = dialect_names()
    about = f"the protocol, else detected: {', '.join(names)}"
    parser.add_argument("--dialect", choices=names, metavar="NAME", help=about)


def _add_capture(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="the column of bodies in JSON or Parquet, such as response.body; else found",
    )
    parser.add_argument(
        "--max-bytes",
        type=int,
        metavar="N",
        help="bound of a capture that is held at once, when it is unpacked; default 268435456",
    )


def _read_options(given: argparse.Namespace, dialect: str | None) -> "ReadOptions":
    from deltafold.testing.captures.reading import MAX_BYTES, ReadOptions

    bound = MAX_BYTES if given.max_bytes is None else given.max_bytes
    return ReadOptions(given.column, bound, is_plain=dialect is not None)


def _fold(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        if given.to is not None:
            from deltafold.cli.columns import fold_to_parquet

            return fold_to_parquet(
                given.files,
                given.to,
                given.dialect,
                given.vendor,
                options=_read_options(given, given.dialect),
            )
        from deltafold.cli.fold import fold_files

        options = _read_options(given, given.dialect)
        return fold_files(
            given.files, given.dialect, options, json_lines=given.json, live=given.live
        )

    parser = _command(commands, "fold", "fold recorded response bodies into their messages", run)
    parser.add_argument(
        "files",
        nargs="*",
        default=["-"],
        metavar="FILE",
        help="a body or a capture; - is standard input",
    )
    _add_dialect(parser)
    _add_capture(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the message as JSON; of several files, a line each",
    )
    parser.add_argument(
        "--live",
        action=argparse.BooleanOptionalAction,
        help="show the message while it grows; the default for standard input on a terminal",
    )
    parser.add_argument(
        "--to",
        metavar="FILE.parquet",
        help="write a row for each stream of files, folders, captures and archives",
    )
    parser.add_argument("--vendor", help="with --to: whose prices; else the dialect's own vendor")


def _stats(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.recorded import is_batch

        if is_batch(Path(given.file)):
            from deltafold.cli.columns import show_batch_stats

            return show_batch_stats(given.file)
        from deltafold.cli.stats import show_stats

        return show_stats(given.file)

    parser = _command(commands, "stats", "show the distributions of a file of fold --to", run)
    parser.add_argument("file", metavar="FILE", help="the Parquet file, or results of a batch")


def _transcode(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.transcode import transcode_file

        options = _read_options(given, given.source)
        return transcode_file(given.file, given.source, given.target, options)

    parser = _command(commands, "transcode", "write a recorded stream as another protocol", run)
    parser.add_argument("file", nargs="?", default="-", help="a body, or FILE#2 of a capture")
    _add_capture(parser)
    parser.add_argument("--from", dest="source", choices=dialect_names(), help="else detected")
    parser.add_argument("--to", dest="target", required=True, choices=target_names())


def _inspect(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.inspect_page import inspect_file

        return inspect_file(
            given.file,
            given.dialect,
            _read_options(given, given.dialect),
            diff=given.diff,
            out=given.out,
            opens=given.open,
        )

    parser = _command(commands, "inspect", "show on a page what a recorded stream did", run)
    parser.add_argument(
        "file", nargs="?", default="-", help="a body, FILE#2 of a capture, or a page"
    )
    _add_dialect(parser)
    _add_capture(parser)
    parser.add_argument(
        "--diff", metavar="OTHER", help="show another one beside it, and the first difference"
    )
    parser.add_argument("--out", metavar="PAGE", help="the HTML file; else a temporary one")
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="show the page in a browser",
    )


def _chat(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.chat import chat

        return chat(given.model, given.prompt, given.system, given.set)

    parser = _command(commands, "chat", "talk with a model", run)
    parser.add_argument("model", help="vendor/model, for example anthropic/claude-sonnet-4-5")
    parser.add_argument("prompt", nargs="?", help="one message; else lines, or standard input")
    parser.add_argument("--system", metavar="TEXT", help="the system prompt")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting, for example max_tokens=500 or base_url=http://127.0.0.1:8000/v1",
    )


def _models(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.list_models import list_models

        return list_models(given.name)

    parser = _command(commands, "models", "list the vendors, or the facts about one model", run)
    parser.add_argument("name", nargs="?", help="a part of a vendor's name, or vendor/model")


def _doctor(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.doctor import examine

        return examine(given.model)

    summary = "show versions, extras, keys, proxies, and what a call would send"
    parser = _command(commands, "doctor", summary, run)
    parser.add_argument("model", nargs="?", help="vendor/model, whose request to show; not sent")


def _serve(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.serve import serve

        return serve(
            given.file,
            given.model,
            replay=given.replay,
            host=given.host,
            port=given.port,
            no_auth=given.no_auth,
            fetch_files=given.fetch_files,
            on_cut=given.on_cut,
            drain=given.drain,
            allowed_hosts=given.allow_host,
            allowed_origins=given.allow_origin,
            config_of=given.print_config,
        )

    from deltafold.cli.clients import CLIENTS

    summary = "answer clients of any protocol by calling models"
    parser = _command(commands, "serve", summary, run)
    parser.add_argument("file", nargs="?", help="a TOML file with a table [models]")
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME=VENDOR/MODEL",
        help="a model; * in both names stands for the same text",
    )
    parser.add_argument(
        "--replay", metavar="FOLDER", help="answer with the recordings of a folder instead"
    )
    parser.add_argument("--host", default="127.0.0.1", help="default 127.0.0.1")
    parser.add_argument("--port", type=int, default=8017, help="default 8017")
    parser.add_argument(
        "--no-auth", action="store_true", help="answer other machines too, without authentication"
    )
    parser.add_argument(
        "--fetch-files",
        action="store_true",
        help="fetch files that a request names by address, where a provider takes only the bytes",
    )
    parser.add_argument(
        "--on-cut",
        choices=("event", "break", "event_and_break"),
        help="what a client sees of an upstream that was lost inside of an answer: an error and a"
        " clean end (the default), a body that breaks off, or both",
    )
    parser.add_argument(
        "--drain",
        type=float,
        default=30,
        metavar="SECONDS",
        help="how long answers may go on after the first signal; default 30",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name in the header Host that counts as one of this machine",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="an origin of pages that may call, such as https://example.org",
    )
    parser.add_argument(
        "--print-config", choices=list(CLIENTS), help="print what to set in a client instead"
    )


def _types(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.types import print_types

        return print_types(given.place, given.check)

    parser = _command(commands, "types", "print the type of the partial outputs of a type", run)
    parser.add_argument("place", help="a type, as package.module:Name")
    parser.add_argument("--check", metavar="FILE", help="compare with a file instead")


def _completion(commands: _Commands, whole: argparse.ArgumentParser) -> None:
    from deltafold.cli.completion import SHELLS, print_completion

    def run(given: argparse.Namespace) -> int:
        return print_completion(whole, given.shell)

    parser = _command(commands, "completion", "print the completion script of a shell", run)
    parser.add_argument("shell", choices=SHELLS)
