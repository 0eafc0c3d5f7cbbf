"""CONTRIBUTING.md against the tree: its map, its twelve rows, and its lists of files.

AGENTS.md names the same rooms.
"""

import re
from pathlib import Path
from typing import Final

import pytest

from corpus import ROOT
from deltafold import target_names
from deltafold.dialects import DIALECTS
from toy_additions import SECTIONS, TOYS, changed
from toy_additions import listed as toy_rows

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
    """Let `make check NAME=toy`, which needs a build, find nothing that a look finds."""
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


CRATES: Final = ("rust/bindings/src", "rust/core/src")


def first_line(file: Path) -> str:
    """Return the first line of the head of a file."""
    line = file.read_text(encoding="utf-8").split("\n")[0]
    return line.removeprefix('"""').removesuffix('"""').removeprefix("//! ")


def rooms_of(folder: str) -> dict[str, str]:
    """Return the first line of the head of each room below a folder, by the name of the room."""
    head, ending = ("mod.rs", ".rs") if folder in CRATES else ("__init__.py", ".py")
    rooms: dict[str, str] = {}
    for entry in (ROOT / folder).iterdir():
        if (entry / head).is_file():
            rooms[entry.name] = first_line(entry / head)
        elif entry.suffix == ending and entry.stem not in {"lib", "__init__"}:
            rooms[entry.stem] = first_line(entry)
    return rooms


@pytest.mark.parametrize("folder", ["python/deltafold", *CRATES])
def test_the_map_has_each_room_once_with_the_first_line_of_its_head(folder: str) -> None:
    text = TEXT.partition(f"\n`{folder}`")[2].partition("|---|---|\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) == len(text.splitlines())
    assert sorted(rows) == sorted(rooms_of(folder).items())


@pytest.mark.parametrize("folder", ["python/deltafold", *CRATES])
def test_the_page_for_agents_names_the_same_rooms(folder: str) -> None:
    page = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith(f"- `{folder}`"))
    named = re.split(r", |\. ", line.partition(": ")[2].removesuffix("."))
    assert set(named) >= rooms_of(folder).keys()


def changes() -> list[list[str]]:
    """Return the rows of "To change this, open that"."""
    text = TEXT.partition("## To change this, open that\n")[2].partition("\n## ")[0]
    rows = [row.strip("|").split("|") for row in text.strip().splitlines()[2:]]
    return [[cell.strip() for cell in row] for row in rows]


def test_there_are_twelve_changes() -> None:
    assert len(changes()) == 12


def files_of(text: str) -> list[str]:
    """Return the paths of a text, without those that stand for several files."""
    roots = r"(?:benches|docs|examples|python|requirements|rust|tests|tools)/"
    found = re.findall(rf"`({roots}[^`\s<]*\.\w+)`", text)
    return [file for file in found if "*" not in file]


@pytest.mark.parametrize("row", changes(), ids=lambda row: row[0])
def test_the_file_to_open_holds_what_the_row_names(row: list[str]) -> None:
    _, where, symbol = row
    first, *others = (ROOT.joinpath(file).read_text(encoding="utf-8") for file in files_of(where))
    assert re.search(rf"\b{symbol.strip('`')}\b", first)
    for named in re.findall(r"`(\w+)`", where):
        assert any(re.search(rf"\b{named}\b", text) for text in (first, *others))


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "AGENTS.md"])
def test_every_path_of_a_page_exists(page: str) -> None:
    files = files_of((ROOT / page).read_text(encoding="utf-8"))
    assert [file for file in files if not (ROOT / file).exists()] == []
