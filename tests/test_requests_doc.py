"""docs/requests.md names every note and every problem, and its example runs."""

import re
from pathlib import Path

from deltafold import NoteCode
from deltafold.history import ProblemCode

TEXT = (Path(__file__).parents[1] / "docs" / "requests.md").read_text(encoding="utf-8")


def codes_of(section: str) -> set[str]:
    table = TEXT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {code for row in rows for code in re.findall(r"`(\w+)`", row)}


def test_every_note_is_documented() -> None:
    assert codes_of("Notes") == set(NoteCode)


def test_every_problem_is_documented() -> None:
    assert codes_of("Histories that a provider would refuse") == set(ProblemCode)


def test_the_example_runs() -> None:
    code = TEXT.partition("```python\n")[2].partition("```")[0]
    exec(compile(code, "requests.md", "exec"), {})  # noqa: S102 - our own documentation
