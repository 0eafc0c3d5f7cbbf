"""Every block of README.md and docs/ runs: Python over real HTTP against recordings, shell by sh.

The tests of single pages (test_agents_doc.py and others) check more: what their examples print and
send.
"""

import ast
import contextlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from any_provider import AnyProvider
from corpus import ROOT
from deltafold import otel
from deltafold.cli import make_parser
from documentation import Block, Reader, blocks_of, forget, pages, python_of, surround
from given_to_documents import GIVEN, give

BLOCKS: Final = [block for page in pages() for block in blocks_of(page)]
NOT_RUN: Final[dict[str, int]] = {}
"""Number of blocks that are marked as not run, by page; it may only shrink."""

RUN_ELSEWHERE: Final = {
    "docs/gateway.md": "docs/test_gateway_doc.py",
    "docs/how-to/agent-endpoint.md": "docs/test_agent_endpoint.py",
}
"""Pages whose Python blocks another test runs, with its own surroundings."""

FRAMEWORKS: Final = {"langchain", "litellm", "openai_agents", "pydantic_ai", "strands"}
NEWCOMERS: Final = {"langgraph"}
"""Frameworks whose blocks `make newcomer` alone runs, in an environment of their own."""

ENGINES: Final = {"duckdb", "polars", "ray", "spark"}


def run_page(page: str, names: dict[str, Any]) -> None:
    with Reader(names) as reader, contextlib.ExitStack() as stack:
        stack.callback(otel.uninstrument)  # pages show what observes all later calls
        give(page, names, stack)
        for block in python_of(page):
            reader.run(block)
        for name, test in names.items():
            if name.startswith("test_"):
                test()


@pytest.mark.parametrize(
    "page", [page for page in pages() if python_of(page) and page not in RUN_ELSEWHERE]
)
def test_the_python_blocks_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AnyProvider() as server:
        names = surround(tmp_path, server, monkeypatch)
        names["server"] = server
        run_page(page, names)
        if server.open_connections:
            forget(names)


READING_USAGE: Final = [
    page
    for page in pages()
    if page not in RUN_ELSEWHERE and any("usage" in block.code for block in python_of(page))
]


@pytest.mark.parametrize("page", READING_USAGE)
def test_the_python_blocks_of_a_page_run_without_usage(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AnyProvider() as server:
        server.counts = False
        names = surround(tmp_path, server, monkeypatch, counts=False)
        names["server"] = server
        run_page(page, names)
        if server.open_connections:
            forget(names)


def test_programs_that_read_the_usage_of_chat_ask_for_it() -> None:
    for page in READING_USAGE:
        for block in python_of(page):
            if ".usage" not in block.code:
                continue
            for call in ast.walk(ast.parse(block.code)):
                if isinstance(call, ast.Call) and "completions.create" in ast.unparse(call.func):
                    given = {keyword.arg for keyword in call.keywords}
                    assert "stream" not in given or "stream_options" in given, (page, block.line)


def test_the_blocks_that_are_not_run_are_counted() -> None:
    counted: dict[str, int] = {}
    for block in BLOCKS:
        if block.not_run is not None:
            assert block.language == "python"
            ast.parse(block.code)
            counted[block.page] = counted.get(block.page, 0) + 1
    assert counted == NOT_RUN


def test_every_block_has_a_language_that_is_checked() -> None:
    unknown = {(block.page, block.line, block.language) for block in BLOCKS} - {
        (block.page, block.line, language)
        for block in BLOCKS
        for language in ("python", "sh", "toml")
    }
    assert not unknown
    assert {block.framework for block in BLOCKS} - {None} == FRAMEWORKS | NEWCOMERS | ENGINES


def test_every_given_page_exists() -> None:
    assert {*GIVEN, *RUN_ELSEWHERE} <= set(pages())
    for page, test in RUN_ELSEWHERE.items():
        assert Path(page).name in (ROOT / "tests" / test).read_text("utf-8")


def test_every_block_of_toml_is_valid() -> None:
    assert all(tomllib.loads(block.code) for block in BLOCKS if block.language == "toml")


SHELL: Final = [block for block in BLOCKS if block.language == "sh"]


@pytest.mark.parametrize("block", SHELL, ids=lambda block: f"{block.page}:{block.line}")
def test_the_commands_of_a_shell_block_run(
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with AnyProvider() as server:
        surround(tmp_path, server, monkeypatch)
        subprocess.run(["/bin/sh", "-n"], input=block.code, text=True, check=True)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        for line in block.code.splitlines():
            words = shlex.split(line, comments=True)
            if words[:2] == ["deltafold", "serve"]:
                make_parser().parse_args(words[1:])  # it would run until it is stopped
            elif "deltafold" in words and words[0] in {"cat", "deltafold"}:
                ended = subprocess.run(
                    ["/bin/sh", "-c", line],
                    # `true` stands for a browser.
                    env={**os.environ, "PATH": path, "BROWSER": "true", "TMPDIR": str(tmp_path)},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                stated = re.search(r"# .*exit code (\d)", line)
                assert ended.returncode == int(stated[1] if stated else 0), ended.stderr
                assert ended.stdout
            else:
                assert words[0] in {"pip", "make"}, f"{block.page}: {line} is not checked"
