"""SECURITY.md names the tests of each promise, and its numbers are those of the code.

A promise is a row of a table with a column "Tests", a point of the list about secrets, and a
paragraph of the sections about limits and subinterpreters.  A table without the column belongs to
the paragraph before it.
"""

import re
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Final

import pytest

from corpus import ROOT
from deltafold import Limits
from deltafold.gateway import FileFetcher
from deltafold.transports.timeouts import Timeouts

PAGE: Final = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED: Final = re.compile(r"`((?:test_\w+\.py|\w+\.rs)(?:::\w+)?)`")
SECTIONS: Final = ("Threat model", "Limits", "Subinterpreters")
"""Sections with promises; whatever their paragraphs say is one, except in the first."""


def promises(page: str) -> Iterator[tuple[str, str]]:
    """Yield each promise of a page, and the text that names its tests."""
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        if title not in SECTIONS:
            continue
        before = ""
        for block in re.split(r"\n{2,}", text.strip()):
            if block.startswith("|"):
                yield from rows(block, before)
            elif block.startswith("- "):
                if before.startswith("What deltafold promises"):
                    points = re.split(r"^- ", block, flags=re.MULTILINE)[1:]
                    yield from ((point, point) for point in points)
            elif title != SECTIONS[0] and not block.endswith(":"):
                yield block, block
            before = block


def rows(table: str, before: str) -> Iterator[tuple[str, str]]:
    """Yield the rows of a table; without a column of tests, the paragraph before it has them."""
    head, _, *lines = table.splitlines()
    for line in lines:
        yield line, line.rpartition("| ")[2] if head.endswith("| Tests |") else before


def sources() -> dict[str, Path]:
    """Return the files of tests by their names, each of which is one file's."""
    found: dict[str, Path] = {}
    python = (
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if "external" not in path.relative_to(ROOT).parts
    )
    rust = (ROOT / "rust" / "core" / "tests" / "suite").glob("*.rs")
    for path in (*python, *rust):
        assert path.name not in found, path.name
        found[path.name] = path
    return found


def problems(page: str) -> list[str]:
    """Return promises without a test, and names of tests that do not exist."""
    known = sources()
    found = [f"no test: {promise}" for promise, tests in promises(page) if not NAMED.search(tests)]
    for name in NAMED.findall(page):
        file, _, function = name.partition("::")
        text = known[file].read_text(encoding="utf-8") if file in known else ""
        if not text or (
            function and not re.search(rf"^\s*(def|fn) {function}\(", text, re.MULTILINE)
        ):
            found.append(f"no such test: {name}")
    return found


def test_each_promise_names_tests_that_exist() -> None:
    assert not problems(PAGE)
    assert len([*promises(PAGE)]) > 30


GOOD: Final = """
## Threat model

It assumes that:

- **The caller is trusted.**

What deltafold promises for all:

| Promise | Tests |
|---|---|
| A cut call does not run | `test_runnable.py` |

What deltafold promises for secrets:

- No key is
  shown. Tests: `test_secrets.py`, `cutting.rs::every_recording_can_be_cut_off_anywhere`.

## Limits

A stream ends. Tests: `test_bad_sizes.py::test_the_table_has_every_bound`.

| Limit | Default |
|---|---:|
| `depth` | 128 |

Other bounds:

| Bound | Value | Tests |
|---|---:|---|
| Redirects | 3 | `test_http.py::test_a_circle_of_redirects_ends` |

## Supported versions

The latest one.
"""


def test_a_page_whose_promises_have_tests_has_no_problem() -> None:
    assert not problems(GOOD)
    assert len([*promises(GOOD)]) == 5


@pytest.mark.parametrize(
    ("text", "instead", "problem"),
    [
        ("| `test_runnable.py` |", "| tests |", "no test: | A cut call does not run | tests |"),
        ("| `test_runnable.py` |", "|  |", "no test: | A cut call does not run |  |"),
        ("`test_runnable.py`", "`test_walkable.py`", "no such test: test_walkable.py"),
        ("::test_a_circle_of", "::test_a_square_of", "no such test: test_http.py::test_a_square"),
        ("::every_recording_can", "::every_cut_can", "no such test: cutting.rs::every_cut_can"),
        ("\n\n## Limits", "\n- No name is shown.\n\n## Limits", "no test: No name is shown."),
        (" Tests: `test_bad_sizes.py::test_the_table_has_every_bound`.", "", "no test: A stream"),
        (
            " Tests: `test_bad_sizes.py::test_the_table_has_every_bound`.",
            "",
            "no test: | `depth` | 128 |",
        ),
        ("\nOther bounds:", "\nThe wait ends.\n\nOther bounds:", "no test: The wait ends."),
    ],
)
def test_a_promise_without_a_test_and_a_wrong_name_are_found(
    text: str, instead: str, problem: str
) -> None:
    assert text in GOOD
    assert any(one.startswith(problem) for one in problems(GOOD.replace(text, instead)))


def number_of(text: str) -> int:
    """Return a number of the page: `32 MiB`, `65,536`."""
    digits, _, unit = text.partition(" ")
    return int(digits.replace(",", "")) << {"": 0, "KiB": 10, "MiB": 20}[unit]


def test_the_page_has_the_defaults() -> None:
    limits = Limits()
    given = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+(?: [KM]iB)?) \|", PAGE, re.MULTILINE))
    names = [name for name in dir(limits) if isinstance(getattr(limits, name), int)]
    assert {name: number_of(text) for name, text in given.items()} == {
        name: getattr(limits, name) for name in names
    }
    fetched = {name: one.default for name, one in signature(FileFetcher).parameters.items()}
    for text, name in (("64 files", "max_files"), ("10 seconds a file", "max_seconds")):
        assert f"{text} (`{name}`)" in PAGE.replace("\n", " ")
        assert fetched[name] == int(text.split()[0])
    assert fetched["max_bytes"] == number_of("20 MiB")
    assert fetched["max_total_seconds"] == 60
    waits = Timeouts()
    assert (waits.connect, waits.first_byte, waits.idle) == (10, 120, 120)
    assert (waits.pool, waits.total) == (None, None)
