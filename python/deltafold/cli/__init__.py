"""The `deltafold` command: folds and transcodes recordings, and calls models.

    deltafold demo [--save FILE]
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

Laws: a mistake of the caller has one to three lines on standard error, which say what to do. No
command prints a traceback, except under `python -X dev`.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from deltafold import MisuseError, __version__, dialect_names, target_names
from deltafold.cli.exits import EXIT_DEFECT, EXIT_DONE, EXIT_INTERRUPTED, EXIT_USAGE, complain
from deltafold.cli.parser import CommandParser, one_of, port, seconds, whole_number

if TYPE_CHECKING:
    from deltafold.testing.captures.reading import ReadOptions

_ENDED_BY_READER: Final = 141
"""Exit code of a program that SIGPIPE ends, 128 and the number of the signal."""

_CUTS: Final = ("event", "break", "event_and_break")

_Command: TypeAlias = Callable[[argparse.Namespace], int]


class _Commands(Protocol):
    """The commands of a parser; argparse has no public name for the type."""

    def add_parser(
        self,
        name: str,
        *,
        help: str,  # noqa: A002 - the name of argparse
        description: str,
        example: str,
    ) -> CommandParser: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code.

    A reader that ends first, such as `head`, ends the command as it ends those of the system.
    """
    try:
        try:
            return _run(sys.argv[1:] if argv is None else list(argv))
        finally:  # `--help` leaves by SystemExit
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes the stream once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _ENDED_BY_READER
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (MisuseError, OSError) as problem:  # such as a file that the environment names
        complain(problem)
        return EXIT_USAGE
    except Exception as defect:
        if sys.flags.dev_mode:
            raise
        complain(
            f"a defect of deltafold {__version__}, please report it: "
            f"{type(defect).__name__}: {defect}; python -X dev -m deltafold ... shows its place"
        )
        return EXIT_DEFECT


def _run(words: list[str]) -> int:
    parser = make_parser()
    commands = parser.commands
    if not words:
        parser.print_help()
        return EXIT_DONE
    if words[0].startswith("-"):
        if not any(name.startswith(words[0]) for name in ("-h", *parser.options())):
            parser.refuse_unknown(words)
    elif words[0] not in commands:
        try:
            one_of("command", commands)(words[0])
        except argparse.ArgumentTypeError as mistake:
            parser.refuse(str(mistake))
    given, unknown = parser.parse_known_args(words)
    if unknown:
        commands.get(words[0], parser).refuse_unknown(unknown)
    return cast("_Command", given.run)(given)


def make_parser() -> CommandParser:
    """Make the parser of the command."""
    parser = CommandParser(
        prog="deltafold",
        description="Folds streams of LLM providers into messages.",
        epilog="Exit codes: 0, success; 1, a stream ended in an error; 2, wrong usage.",
        example="deltafold demo",
    )
    parser.add_argument("--version", action="version", version=f"deltafold {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command", parser_class=CommandParser)
    for add in (
        _demo,
        _fold,
        _stats,
        _transcode,
        _inspect,
        _chat,
        _models,
        _doctor,
        _serve,
        _types,
    ):
        add(commands)
    _completion(commands, parser)
    parser.commands = commands.choices
    return parser


# Each command imports its module when it runs, so that folding a file imports no client.
# ruff: noqa: PLC0415


def _command(
    commands: _Commands,
    name: str,
    summary: str,
    run: _Command,
    example: str,
) -> CommandParser:
    """Add a command; `example` is what follows its name in an example."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary.capitalize()}.",
        example=f"deltafold {name} {example}",
    )
    parser.set_defaults(run=run)
    return parser


def _add_dialect(parser: argparse.ArgumentParser) -> None:
    names = dialect_names()
    about = f"the protocol, else detected: {', '.join(names)}"
    parser.add_argument(
        "--dialect", type=one_of("protocol", names), choices=names, metavar="NAME", help=about
    )


def _add_capture(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="the column of bodies in JSON or Parquet, such as response.body; else found",
    )
    parser.add_argument(
        "--max-bytes",
        type=whole_number,
        metavar="N",
        help="bound of a capture that is held at once, when it is unpacked; default 268435456",
    )


def _read_options(given: argparse.Namespace, dialect: str | None) -> "ReadOptions":
    from deltafold.testing.captures.reading import MAX_BYTES, ReadOptions

    bound = MAX_BYTES if given.max_bytes is None else given.max_bytes
    return ReadOptions(given.column, bound, is_plain=dialect is not None)


def _demo(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.run_demo import run_demo, save_recording

        return run_demo() if given.save is None else save_recording(given.save)

    summary = "see it work: recorded answers through real clients, and an agent; no key"
    parser = _command(commands, "demo", summary, run, "--save broken.sse")
    parser.add_argument(
        "--save",
        metavar="FILE",
        help="write a recording of a stream that broke off instead, for fold and inspect",
    )


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

        if given.vendor is not None:
            parser.refuse("--vendor is for --to: whose prices the rows have")
        options = _read_options(given, given.dialect)
        return fold_files(
            given.files, given.dialect, options, json_lines=given.json, live=given.live
        )

    parser = _command(
        commands, "fold", "fold recorded response bodies into their messages", run, "recording.sse"
    )
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

    summary = "show the distributions of a file of fold --to"
    parser = _command(commands, "stats", summary, run, "rows.parquet")
    parser.add_argument("file", metavar="FILE", help="the Parquet file, or results of a batch")


def _transcode(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.transcode import transcode_file

        options = _read_options(given, given.source)
        return transcode_file(given.file, given.source, given.target, options)

    summary = "write a recorded stream as another protocol"
    parser = _command(commands, "transcode", summary, run, "recording.sse --to openai-chat")
    parser.add_argument("file", nargs="?", default="-", help="a body, or FILE#2 of a capture")
    _add_capture(parser)
    sources, targets = dialect_names(), target_names()
    parser.add_argument(
        "--from",
        dest="source",
        type=one_of("protocol", sources),
        choices=sources,
        metavar="NAME",
        help=f"the protocol of the file, else detected: {', '.join(sources)}",
    )
    parser.add_argument(
        "--to",
        dest="target",
        required=True,
        type=one_of("target", targets),
        choices=targets,
        metavar="NAME",
        help=f"what to write: {', '.join(targets)}",
    )


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

    summary = "show on a page what a recorded stream did"
    parser = _command(commands, "inspect", summary, run, "recording.sse")
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

    example = 'anthropic/claude-sonnet-5-5 "When is high tide?"'
    parser = _command(commands, "chat", "talk with a model", run, example)
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

    summary = "list the vendors, or the facts about one model"
    parser = _command(commands, "models", summary, run, "openai/gpt-5.6-terra")
    parser.add_argument("name", nargs="?", help="a part of a vendor's name, or vendor/model")


def _doctor(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.doctor import examine

        return examine(given.model)

    summary = "show versions, extras, keys, proxies, and what a call would send"
    parser = _command(commands, "doctor", summary, run, "openai/gpt-5.6-terra")
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
    example = "--model fast=openai/gpt-5.6-terra"
    parser = _command(commands, "serve", summary, run, example)
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
    parser.add_argument("--port", type=port, default=8017, help="default 8017")
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
        type=one_of("form of a cut", _CUTS),
        choices=_CUTS,
        metavar="FORM",
        help="what a client sees of an upstream that was lost inside of an answer: an error and a"
        " clean end (event, the default), a body that breaks off (break), or both"
        " (event_and_break)",
    )
    parser.add_argument(
        "--drain",
        type=seconds,
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
    clients = list(CLIENTS)
    parser.add_argument(
        "--print-config",
        type=one_of("client", clients),
        choices=clients,
        metavar="CLIENT",
        help=f"print what to set in a client instead: {', '.join(clients)}",
    )


def _types(commands: _Commands) -> None:
    def run(given: argparse.Namespace) -> int:
        from deltafold.cli.types import print_types

        return print_types(given.place, given.check)

    summary = "print the type of the partial outputs of a type"
    parser = _command(commands, "types", summary, run, "my_program:Recipe")
    parser.add_argument("place", help="a type, as package.module:Name")
    parser.add_argument("--check", metavar="FILE", help="compare with a file instead")


def _completion(commands: _Commands, whole: argparse.ArgumentParser) -> None:
    from deltafold.cli.completion import SHELLS, print_completion

    def run(given: argparse.Namespace) -> int:
        return print_completion(whole, given.shell)

    summary = "print the completion script of a shell"
    parser = _command(commands, "completion", summary, run, "bash")
    parser.add_argument(
        "shell", type=one_of("shell", SHELLS), choices=SHELLS, help=", ".join(SHELLS)
    )
