"""Counts the instructions of fixed work and fails when one case needs more than it did.

In: `rust/benches` built for release, run case by case under plain `valgrind --tool=callgrind`.
Out: a line for each finding; exit code 1 when there is one.

Laws: a case may need at most `TOLERANCE` more instructions than the committed baseline says; the
same work ten times as large may need at most `LINEAR` times ten times as many.  Counts depend on
the compiler, the architecture and the vector instructions, so that the baseline names all three;
where they differ the comparison is skipped aloud, and without valgrind everything is.

    python tools/instruction_gate.py [--bless]
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, TypedDict, cast

ROOT: Final = Path(__file__).resolve().parent.parent
BASELINE: Final = ROOT / "rust/benches/instructions.json"

TOLERANCE: Final = 1.05
# Ten times the work is ten times the instructions; what a stream costs by itself makes it fewer.
LINEAR: Final = 1.05

# A name that ends in its size, and those of the same name grow together.
_SIZED: Final = re.compile(r"(?P<name>.*), (?P<size>\d+) bytes")


class Baseline(TypedDict):
    """The committed file."""

    rustc: str
    machine: str
    instructions: dict[str, int]


class Case(NamedTuple):
    """A case: its name, and what its count should grow with."""

    name: str
    units: int


def output(*command: str) -> str:
    """Return what a command prints; it must succeed."""
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def build() -> Path:
    """Build the binary and return where it is."""
    package = ("--package", "deltafold-benches", "--bin", "instructions")
    command = ("cargo", "build", "--release", "--locked", *package, "--message-format", "json")
    for line in output(*command).splitlines():
        message = cast("dict[str, object]", json.loads(line))
        if message.get("executable"):
            return Path(str(message["executable"]))
    raise SystemExit("cargo built no binary named instructions")


def count(binary: Path, case: Case) -> int:
    """Return the instructions of one case."""
    command = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=*counted_work*",
        str(binary),
        case.name,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None or int(found[1]) == 0:
        print(done.stderr, file=sys.stderr)
        raise SystemExit(f"{case.name}: valgrind counted nothing")
    return int(found[1])


def slower(counts: dict[str, int], baseline: Baseline) -> list[str]:
    """Name the cases that need more instructions than the baseline, or that it lacks."""
    found: list[str] = []
    for name, now in counts.items():
        before = baseline["instructions"].get(name)
        if before is None:
            found.append(f"{name}: not in the baseline; `make bless NAME=gate` adds it")
        elif now > before * TOLERANCE:
            found.append(f"{name}: {now:,} instructions, {now / before - 1:+.1%} of {before:,}")
    gone = baseline["instructions"].keys() - counts.keys()
    found.extend(f"{name}: only in the baseline; `make bless NAME=gate` drops it" for name in gone)
    return found


def crooked(cases: list[Case], counts: dict[str, int]) -> list[str]:
    """Name the counts that grow faster than their work."""
    families: dict[str, list[Case]] = {}
    for case in cases:
        sized = _SIZED.fullmatch(case.name)
        if sized is not None:
            families.setdefault(sized["name"], []).append(case)
    found: list[str] = []
    for name, family in families.items():
        for small, large in pairwise(sorted(family, key=lambda case: case.units)):
            before = counts[small.name] / small.units
            now = counts[large.name] / large.units
            if now > before * LINEAR:
                found.append(
                    f"{name}: {now:.1f} instructions a byte at {large.units:,} bytes, "
                    f"{before:.1f} at {small.units:,}: the work is not linear"
                )
    return found


def read_cases(binary: Path) -> list[Case]:
    """Ask the binary which cases it has."""
    rows = (line.split("\t") for line in output(str(binary)).splitlines())
    return [Case(name, int(units)) for name, units in rows]


def main() -> int:
    """Count, compare, or write the baseline anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bless", action="store_true", help="write the baseline anew")
    bless = cast("bool", parser.parse_args().bless)
    if shutil.which("valgrind") is None:
        print("instruction gate SKIPPED: valgrind is not on PATH (Debian: apt install valgrind)")
        return 1 if bless else 0
    binary = build()
    cases = read_cases(binary)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = list(pool.map(partial(count, binary), cases))
    counts = {case.name: one for case, one in zip(cases, counted, strict=True)}
    found = crooked(cases, counts)
    here = Baseline(
        rustc=output("rustc", "--version"),
        machine=output(str(binary), "--machine"),
        instructions=counts,
    )
    if bless:
        BASELINE.write_text(json.dumps(here, indent=1) + "\n")
        print(f"wrote {BASELINE.relative_to(ROOT)}")
    else:
        baseline = cast("Baseline", json.loads(BASELINE.read_text()))
        if (baseline["rustc"], baseline["machine"]) == (here["rustc"], here["machine"]):
            found.extend(slower(counts, baseline))
        else:
            print(
                "instruction gate: comparison SKIPPED, the baseline is of "
                f"{baseline['rustc']} on {baseline['machine']}, "
                f"this is {here['rustc']} on {here['machine']}; growth is checked all the same"
            )
    for line in found:
        print(line)
    if not found:
        print(f"instruction gate: {len(counts)} cases are fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
