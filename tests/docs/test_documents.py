"""Every block of README.md and docs/ runs: Python over real HTTP against recordings, shell by sh.

What a block prints is compared with the output behind it, which `make bless` writes. The tests of
single pages (test_agents_doc.py and others) check more, such as what their examples send.
"""

import ast
import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from corpus import ROOT
from documentation import blocks_of, pages, python_of, text_of
from documented_runs import (
    RUN_ELSEWHERE,
    Printed,
    run_python,
    run_shell,
    shell_of,
    states_outputs,
)
from given_to_documents import GIVEN
from stated_outputs import WIDEST, fault_of

BLOCKS: Final = [block for page in pages() for block in blocks_of(page)]
NOT_RUN: Final[dict[str, int]] = {}
"""Number of blocks that are marked as not run, by page; it may only shrink."""

FRAMEWORKS: Final = {"langchain", "litellm", "openai_agents", "pydantic_ai", "strands"}
NEWCOMERS: Final = {"langgraph"}
"""Frameworks whose blocks `make newcomer` alone runs, in an environment of their own."""

ENGINES: Final = {"duckdb", "polars", "ray", "spark"}


def faults_of(printed: Printed) -> list[str]:
    """Return what is wrong with the outputs that pages state, each with its place."""
    found = (
        (block, fault_of(block, text, is_needed=states_outputs(block.page)))
        for block, text in printed
    )
    return [f"{block.page}:{block.line} {fault}" for block, fault in found if fault is not None]


@pytest.mark.parametrize("page", [page for page in pages() if python_of(page)])
def test_the_python_blocks_of_a_page_run_and_print_what_it_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page in RUN_ELSEWHERE:
        printed = [(block, "") for block in python_of(page)]
        assert not any(re.search(r"\bprint\(", block.code) for block, _ in printed)
    else:
        printed = run_python(page, tmp_path, monkeypatch)
    assert not faults_of(printed)


READING_USAGE: Final = [
    page
    for page in pages()
    if page not in RUN_ELSEWHERE and any("usage" in block.code for block in python_of(page))
]


@pytest.mark.parametrize("page", READING_USAGE)
def test_the_python_blocks_of_a_page_run_without_usage(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_python(page, tmp_path, monkeypatch, counts=False)


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
    for block in BLOCKS:
        # A fence of `text` that is the output of a block is no block.
        assert block.language in {"python", "sh", "toml"}, f"{block.page}:{block.line}"
    assert {block.framework for block in BLOCKS} - {None} == FRAMEWORKS | NEWCOMERS | ENGINES


def test_an_output_is_stated_for_blocks_that_this_test_runs() -> None:
    run = {
        (block.page, block.line)
        for page in pages()
        for block in (*python_of(page), *shell_of(page))
    }
    stated = {(block.page, block.line) for block in BLOCKS if block.output is not None}
    assert stated <= run


def test_no_line_of_code_is_wider_than_its_box() -> None:
    for page in ("CONTRIBUTING.md", *pages()):
        is_fenced = False
        for number, line in enumerate(text_of(page).splitlines(), 1):
            if line.lstrip().startswith("```"):
                is_fenced = not is_fenced
            elif is_fenced or line.startswith("    "):
                assert len(line) <= WIDEST, f"{page}:{number}"


def test_every_given_page_exists() -> None:
    assert {*GIVEN, *RUN_ELSEWHERE} <= set(pages())
    for page, test in RUN_ELSEWHERE.items():
        assert Path(page).name in (ROOT / "tests" / test).read_text("utf-8")


def test_every_block_of_toml_is_valid() -> None:
    assert all(tomllib.loads(block.code) for block in BLOCKS if block.language == "toml")


@pytest.mark.parametrize("page", [page for page in pages() if shell_of(page)])
def test_the_commands_of_a_page_run_and_print_what_it_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not faults_of(run_shell(page, tmp_path, monkeypatch))
