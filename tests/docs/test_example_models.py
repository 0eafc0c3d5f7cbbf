"""Models that examples name: none is shut down within half a year of the table's month."""

import re
from datetime import date
from pathlib import Path
from typing import Final

import pytest

from deltafold.dialects.model_table import facts_of, table_sources

ROOT: Final = Path(__file__).parents[2]
HALF_A_YEAR: Final = 183
FENCED: Final = re.compile(r"^ *```(?!text|json)\w+.*?\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
EXAMPLE: Final = re.compile(r"^ *(?:>>>|\.\.\.) .*$", re.MULTILINE)
NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-.][a-z0-9]+)+|\bo\d(?:-[a-z]+)?\b")
PAGES: Final = (
    ROOT / "README.md",
    *(path for path in (ROOT / "docs").rglob("*.md") if "protocols" not in path.parts),
)
MODULES: Final = tuple(
    # Examples of the table and of its names show older models too.
    path
    for path in (ROOT / "python").rglob("*.py")
    if not path.name.startswith("model_")
)


def examples(path: Path) -> str:
    """Return the code that a page or a module shows."""
    text = path.read_text("utf-8")
    found = FENCED.findall(text) if path.suffix == ".md" else EXAMPLE.findall(text)
    return "\n".join(found)


def test_examples_name_models() -> None:
    named = [name for path in PAGES for name in NAME.findall(examples(path))]
    assert sum(facts_of(name) is not None for name in named) > 20


@pytest.mark.parametrize("path", [*PAGES, *MODULES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_example_names_a_model_that_is_soon_shut_down(path: Path) -> None:
    year, month = map(int, table_sources()["month"].split("-"))
    for name in NAME.findall(examples(path)):
        facts = facts_of(name)
        if facts is None or facts.retired is None:
            continue
        left = date.fromisoformat(facts.retired) - date(year, month, 1)
        assert left.days > HALF_A_YEAR, (name, facts.retired, facts.successor)
