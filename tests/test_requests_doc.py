"""docs/requests.md names every note and every problem, and its examples run."""

import re
from pathlib import Path

import pytest

from deltafold import NoteCode
from deltafold.conversation import ProblemCode

TEXT = (Path(__file__).parents[1] / "docs" / "requests.md").read_text(encoding="utf-8")


def codes_of(section: str) -> set[str]:
    table = TEXT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {code for row in rows for code in re.findall(r"`(\w+)`", row)}


def test_every_note_is_documented() -> None:
    assert codes_of("Notes") == set(NoteCode)


def test_every_problem_is_documented() -> None:
    assert codes_of("Histories that a provider would refuse") == set(ProblemCode)


EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(code: str) -> None:
    exec(compile(code, "requests.md", "exec"), {})  # noqa: S102 - our own documentation
