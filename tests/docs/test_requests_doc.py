"""docs/requests.md names every note and every problem."""

import re

from deltafold import NoteCode
from deltafold.conversation import ProblemCode
from documentation import text_of

TEXT = text_of("docs/requests.md")


def codes_of(section: str) -> set[str]:
    table = TEXT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {code for row in rows for code in re.findall(r"`(\w+)`", row)}


def test_every_note_is_documented() -> None:
    assert codes_of("Notes") == set(NoteCode)


def test_every_problem_is_documented() -> None:
    assert codes_of("Histories that a provider would refuse") == set(ProblemCode)
