"""Proof that the lists of files in CONTRIBUTING.md are complete, and that no row is superfluous.

In: the tables of CONTRIBUTING.md, and the toy additions in `tests/external/toy`, a text for each
row.  Out: a line for each proof; exit code 1 if an addition fails with all rows, or works without
one of them.

Laws: the tables decide. The file of a row is the one that its table names, and a text whose row the
table lacks is not applied. A copy of the tree is changed, never the tree itself. Each proof runs in
a fresh interpreter. The rows of Python need no build, so that a run has one build, and one more for
each row of Rust that is left out.

    python tools/toy_additions.py                     # all rows
    python tools/toy_additions.py --without 5         # the dialect without its row 5
    python tools/toy_additions.py --without gateway:1
    python tools/toy_additions.py --each              # all rows, then without each row
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TOYS: Final = ROOT / "tests/external/toy"
BUILT: Final = ROOT / "target/toy"
TREE: Final = BUILT / "tree"

SECTIONS: Final = {
    "dialect": "Add a dialect",
    "vendor": "Add a vendor",
    "gateway": "Add a protocol of the gateway",
    "keyword": "Add a keyword of `Decoder`",
}
"""Heading of the table of each addition."""

NOT_COPIED: Final = (".git", "target*", ".venv*", "dist", "site", "node_modules", "__pycache__")
"""What is no source."""

INSERTION: Final = re.compile(r"^@@ (after|before) (.*)\n((?:(?!@@ ).*\n)*)", re.MULTILINE)
"""Lines that a text adds to a file, after or before a line that the file has once."""

LIBRARIES: Final = {".so", ".dylib", ".dll"}

QUICK: Final = {
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
}
"""Settings of a build that nobody measures."""


@dataclass(frozen=True)
class Row:
    """A row of a table: its number, its file, and the text that is new in it."""

    addition: str
    number: int
    file: str

    @property
    def label(self) -> str:
        """The row as `--without` names it."""
        return f"{self.addition}:{self.number}"

    @property
    def is_built(self) -> bool:
        """True for a file that the extension is built of."""
        return self.file.endswith(".rs")

    @property
    def text(self) -> str:
        """The text of the row."""
        return (TOYS / self.addition / f"{self.number}.txt").read_text(encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove the lists; returns the exit code."""
    parser = argparse.ArgumentParser(description="Prove the lists of files in CONTRIBUTING.md.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--without", metavar="ROW", help="leave out a row: 5, or gateway:1")
    what.add_argument("--each", action="store_true", help="leave out each row in turn")
    given = parser.parse_args(arguments)
    rows = listed((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    with copied_tree():
        if given.without:
            label = given.without if ":" in given.without else f"dialect:{given.without}"
            row = next((row for row in rows if row.label == label), None)
            if row is None:
                parser.error(f"--without: there is no row {label}")
            return 0 if fails_without(row, rows) else 1
        works = [proved(rows, addition) for addition in SECTIONS]
        if not all(works):
            return 1
        if not given.each:
            return 0
        # A row of Rust that is left out leaves the extension behind, so that these rows are last.
        in_order = sorted(rows, key=lambda row: row.is_built)
        failures = [fails_without(row, rows) for row in in_order]
        return 0 if all(failures) else 1


def listed(text: str) -> list[Row]:
    """Return the rows of all tables."""
    rows: list[Row] = []
    for addition, heading in SECTIONS.items():
        section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        found = re.findall(r"^\| (\d+) \| `([^`]+)`", section, re.MULTILINE)
        known = {int(path.stem) for path in (TOYS / addition).glob("*.txt")}
        for number, file in found:
            if int(number) not in known:
                raise SystemExit(
                    f"tests/external/toy/{addition} has no text of row {number}, {file}"
                )
            rows.append(Row(addition, int(number), file.replace("<name>", "toy")))
    return rows


def fails_without(left_out: Row, rows: Sequence[Row]) -> bool:
    """Return whether an addition fails without a row, as it must."""
    return proved(rows, left_out.addition, without=left_out)


def proved(rows: Sequence[Row], addition: str, *, without: Row | None = None) -> bool:
    """Apply all rows but one, build, run a proof, and print whether the result is right."""
    start = time.perf_counter()
    apply([row for row in rows if row != without], {row.file: None for row in rows})
    error = build() or run_proof(addition)
    is_right = (not error) == (without is None)
    label = addition if without is None else f"{addition} without {without.number} ({without.file})"
    outcome = "fails" if error else "works"
    print(f"{'' if is_right else 'WRONG: '}{label}: {outcome}, {time.perf_counter() - start:.0f} s")
    if error:
        print("\n".join(f"    {line}" for line in error.splitlines()[-(3 if is_right else 40) :]))
    sys.stdout.flush()
    return is_right


@contextmanager
def copied_tree() -> Generator[None]:
    """Copy the sources to a folder that is removed at the end."""
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(ROOT, TREE, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    try:
        yield
    finally:
        shutil.rmtree(TREE)


def apply(rows: Sequence[Row], files: Iterable[str]) -> None:
    """Make the files as the rows want them; a file that is right already keeps its time."""
    for file in files:
        old = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else None
        new = old
        for row in rows:
            if row.file == file:
                new = changed(new, row)
        path = TREE / file
        if new is None:
            path.unlink(missing_ok=True)
        elif not path.exists() or path.read_text(encoding="utf-8") != new:
            path.parent.mkdir(exist_ok=True)
            path.write_text(new, encoding="utf-8")


def changed(old: str | None, row: Row) -> str:
    """Return a file with the text of a row: a new file, or insertions at lines of an old one."""
    if old is None:
        return row.text
    lines = old.splitlines(keepends=True)
    for where, anchor, text in INSERTION.findall(row.text):
        places = [number for number, line in enumerate(lines) if line.rstrip("\n") == anchor]
        if len(places) != 1:
            raise SystemExit(f"{row.label}: {row.file} has {len(places)} lines {anchor!r}")
        lines.insert(places[0] + (where == "after"), text)
    return "".join(lines)


def build() -> str:
    """Build the extension into the tree; return the errors of the compiler."""
    environment = {
        **os.environ,
        **QUICK,
        "CARGO_TARGET_DIR": str(BUILT / "cargo"),
        "PYO3_PYTHON": sys.executable,
    }
    command = ("cargo", "build", "--release", "--quiet", "--locked")
    package = ("--package", "deltafold-python", "--features", "pyo3/extension-module")
    done = subprocess.run(
        (*command, *package),
        cwd=TREE,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return re.sub(r"(?m)^(?!error).*\n?", "", done.stderr) or done.stderr
    (library,) = (
        path for path in (BUILT / "cargo/release").glob("*_core.*") if path.suffix in LIBRARIES
    )
    name = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    shutil.copy2(library, TREE / "python/deltafold" / name)
    return ""


def run_proof(addition: str) -> str:
    """Run a proof in a fresh interpreter; return its error."""
    done = subprocess.run(
        (sys.executable, TREE / "tests/external/toy/proofs.py", addition),
        cwd=TREE,
        env={**os.environ, "PYTHONPATH": str(TREE / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr or f"exit code {done.returncode}" if done.returncode != 0 else ""


if __name__ == "__main__":
    sys.exit(main())
