"""The lists of files in CONTRIBUTING.md, against the files of every dialect and every target."""

import re
from pathlib import Path
from typing import Final

import pytest

from deltafold import target_names
from deltafold.dialects import DIALECTS
from toy_additions import SECTIONS, TOYS, changed
from toy_additions import listed as toy_rows

ROOT: Final = Path(__file__).parents[1]
TEXT: Final = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def listed(section: str) -> list[str]:
    """Return the first file of each row of a section."""
    text = TEXT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| \d+ \| `([^`]+)`", text, re.MULTILINE)


FILES: Final = listed("Add a dialect")
MOST_SHARED: Final = {"dialect": 5, "vendor": 1, "gateway": 2, "keyword": 3}
"""Most files of the product, outside of its own folders, that an addition may touch."""
TARGET_FILES: Final = listed("Add a target")

# Mistral's stream is openai-chat with quirks, so that it has no decoder of its own.
DECODED: Final = [name for name in DIALECTS if name != "mistral"]


@pytest.mark.parametrize("addition", SECTIONS)
def test_a_list_has_each_file_once_and_stays_short(addition: str) -> None:
    files = listed(SECTIONS[addition])
    shared = [file for file in files if "<name>" not in file]
    assert len(files) == len(set(files))
    assert 0 < len(shared) <= MOST_SHARED[addition]


@pytest.mark.parametrize("addition", SECTIONS)
def test_every_row_has_the_text_of_a_toy(addition: str) -> None:
    numbers = {int(path.stem) for path in (TOYS / addition).glob("*.txt")}
    assert numbers == set(range(1, len(listed(SECTIONS[addition])) + 1))


def test_the_anchors_of_the_toys_are_in_their_files() -> None:
    """Let `make toy`, which needs a build, find nothing that a look at the files finds."""
    for row in toy_rows(TEXT):
        path = ROOT / row.file
        old = path.read_text(encoding="utf-8") if path.exists() else None
        assert changed(old, row) != old


@pytest.mark.parametrize("dialect", DECODED)
def test_every_listed_file_exists(dialect: str) -> None:
    folder = dialect.replace("-", "_")
    missing = [file for file in FILES if not (ROOT / file.replace("<name>", folder)).is_file()]
    assert not missing


# Gemini's array and Ollama's older path are forms of one writer.
@pytest.mark.parametrize("target", sorted({*target_names()} - {"gemini-array", "ollama-generate"}))
def test_every_listed_file_of_a_target_exists(target: str) -> None:
    files = [ROOT / file.replace("<name>", target.replace("-", "_")) for file in TARGET_FILES]
    assert len(files) == 5
    missing = [
        file
        for file in files
        if not file.is_file() and not (file.with_suffix("") / "mod.rs").is_file()
    ]
    assert not missing


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_other_file_of_the_package_names_the_settings_of_a_dialect(dialect: str) -> None:
    """Find a file that a new dialect would have to touch, beside those in the list."""
    row = DIALECTS[dialect]
    files = {ROOT / file.replace("<name>", dialect.replace("-", "_")) for file in FILES}
    naming = {
        file
        for file in (ROOT / "python" / "deltafold").rglob("*.py")
        if re.search(rf"\b{row.config}\b", file.read_text(encoding="utf-8"))
    }
    # A local model renders its conversation as openai-chat.
    naming.discard(ROOT / "python" / "deltafold" / "dialects" / "local" / "render.py")
    assert naming <= files
