"""Runs of the pages of the documentation, and their outputs written anew (`make bless`).

In: a page, and a folder in which its examples read and write.  Out: each block that ran, with what
it printed.

Laws: the Python blocks of a page run in their order and in one namespace, the commands of its shell
blocks in their order and in one folder. A provider on the loopback interface answers both.
Standard error of a command is a part of its output, as in a terminal.
"""

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from any_provider import AnyProvider
from corpus import ROOT
from deltafold import otel
from deltafold.cli import make_parser
from documentation import (
    Block,
    Reader,
    blocks_of,
    forget,
    pages,
    python_of,
    surround,
    text_of,
    with_outputs,
)
from given_to_documents import give
from stated_outputs import output_of

Printed = list[tuple[Block, str]]

RUN_ELSEWHERE: Final = {
    "docs/gateway.md": "docs/test_gateway_doc.py",
    "docs/how-to/agent-endpoint.md": "docs/test_agent_endpoint.py",
}
"""Pages whose Python blocks another test runs, with its own surroundings; they print nothing."""


def states_outputs(page: str) -> bool:
    """Return whether each block of a page that prints is followed by its output."""
    return page in {"docs/index.md", "docs/choose.md"} or page.startswith("docs/how-to/")


def shell_of(page: str) -> list[Block]:
    """Return the shell blocks of a page."""
    return [block for block in blocks_of(page) if block.language == "sh"]


def run_python(
    page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, counts: bool = True
) -> Printed:
    """Run the Python blocks of a page, and then the tests that they define.

    Args:
        page: the page.
        folder: the folder in which they run.
        monkeypatch: sets the folder and the environment.
        counts: whether recordings, and the streams of Chat that ask for it, have usage.
    """
    with AnyProvider() as server:
        server.counts = counts
        names = surround(folder, server, monkeypatch, counts=counts)
        names["server"] = server
        printed = _read(page, names)
        if server.open_connections:
            forget(names)
    return printed


def _read(page: str, names: dict[str, Any]) -> Printed:
    with Reader(names) as reader, ExitStack() as stack:
        stack.callback(otel.uninstrument)  # pages show what observes all later calls
        give(page, names, stack)
        printed = [(block, reader.run(block)) for block in python_of(page)]
        for name, test in names.items():
            if name.startswith("test_"):
                test()
    return printed


def run_shell(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Printed:
    """Run the `deltafold` commands of the shell blocks of a page; check their exit codes.

    Args:
        page: the page.
        folder: the folder in which they run.
        monkeypatch: sets the folder and the environment.
    """
    with AnyProvider() as server:
        surround(folder, server, monkeypatch)
        return [(block, "".join(_commands(block, folder))) for block in shell_of(page)]


def _commands(block: Block, folder: Path) -> Iterator[str]:
    """Run the commands of a block, and yield what each of them prints."""
    subprocess.run(["/bin/sh", "-n"], input=block.code, text=True, check=True)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "BROWSER": "true",  # the command of this name stands for a browser
        "COLUMNS": "80",
        "PYTHONUNBUFFERED": "1",  # standard error comes where a terminal shows it
        "TMPDIR": str(folder),
    }
    for line in block.code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] == ["deltafold", "serve"]:
            make_parser().parse_args(words[1:])  # it would run until it is stopped
        elif "deltafold" in words and words[0] in {"cat", "deltafold"}:
            ended = subprocess.run(
                ["/bin/sh", "-c", line],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                check=False,
            )
            stated = re.search(r"# .*exit code (\d)", line)
            assert ended.returncode == int(stated[1] if stated else 0), ended.stdout
            assert ended.stdout, line
            yield ended.stdout
        else:
            assert words[0] in {"pip", "make"}, f"{block.page}: {line} is not checked"


def bless() -> None:
    """Write the outputs that differ from what the blocks print."""
    for page in pages():
        stated = any(block.output is not None for block in blocks_of(page))
        if not stated and not states_outputs(page):
            continue
        printed: Printed = []
        for run, is_run in (
            (run_python, bool(python_of(page)) and page not in RUN_ELSEWHERE),
            (run_shell, bool(shell_of(page))),
        ):
            if not is_run:
                continue
            with (
                TemporaryDirectory() as folder,
                pytest.MonkeyPatch.context() as monkeypatch,
                redirect_stdout(io.StringIO()),
            ):
                printed += run(page, Path(folder).resolve(), monkeypatch)
        outputs = {
            block.line: output_of(block, text)
            for block, text in printed
            if states_outputs(page) or block.output is not None
        }
        written = with_outputs(page, outputs)
        if written != text_of(page):
            (ROOT / page).write_text(written, encoding="utf-8")
            print(f"rewrote {page}")  # noqa: T201 - what a command did


if __name__ == "__main__":
    bless()
