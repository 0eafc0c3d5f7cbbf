"""Runs the own tests of other projects plain, with accelerated clients, and with folded streams.

In: the source distributions in `.venv-takeover/sdists`, the recordings (../shared/corpus or
DELTAFOLD_CORPUS), the environments of `suites`.  Out: docs/takeovers.md, and exit code 1 where a
test fails only with deltafold beneath.

Laws: a test that passes plain must pass in both other modes, with the same answer if it notes one,
or be a row of `ACCEPTED`; a row that no test needs fails as well. A suite that reaches fewer
clients or streams than its least counts fails, because it would pass without deltafold. Run by
`make check NAME=takeover`.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from suites import ACCEPTED, MISSING, RECORDED, SUITES, Suite

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
SDISTS: Final = ROOT / ".venv-takeover" / "sdists"
CORPUS: Final = Path(os.environ.get("DELTAFOLD_CORPUS", ROOT.parent / "shared" / "corpus"))
MODES: Final = ("plain", "accelerated", "folded")
SECONDS_EACH: Final = 60


class Run(NamedTuple):
    """Result of one run of a suite.

    Attributes:
        outcomes: `passed`, `failed` or `skipped` by node id.
        counts: the counts of the plugin.
        answers: what the models answered, for the tests that note it.
    """

    outcomes: dict[str, str]
    counts: dict[str, int]
    answers: dict[str, object]

    @property
    def failed(self) -> set[str]:
        """The tests that failed."""
        return {name for name, outcome in self.outcomes.items() if outcome == "failed"}

    @property
    def passed(self) -> int:
        """The number of the tests that passed."""
        return Counter(self.outcomes.values())["passed"]


class Taken(NamedTuple):
    """A suite, the version of its distribution, and its runs by mode."""

    suite: Suite
    version: str
    runs: dict[str, Run]


def folder_of(suite: Suite) -> Path:
    """Return the folder in which a suite runs: its unpacked source distribution, or ours."""
    if suite in RECORDED:
        return HERE / "models"
    name = suite.distribution.replace("-", "_")
    (found,) = (path for path in SDISTS.glob(f"{name}-*") if path.is_dir())
    return found


def run(suite: Suite, mode: str) -> Run:
    """Run a suite in a mode.

    Raises:
        RuntimeError: pytest ended without a report.
    """
    paths = [str(HERE), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")]
    config = ("-c", os.devnull, "--rootdir", ".") if suite in RECORDED else ()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = subprocess.run(
            [
                _python(suite),
                *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "takeover_plugin", *config),
                *("--takeover", mode, "--takeover-of", suite.project),
                *("--takeover-report", str(report), "--timeout", str(SECONDS_EACH)),
                *suite.arguments,
            ],
            cwd=folder_of(suite),
            env={**_without_keys(), "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            raise RuntimeError(f"{suite.name}, {mode}: {done.stdout}{done.stderr}"[-4000:])
        return Run(**json.loads(report.read_text(encoding="utf-8")))


def version_of(suite: Suite) -> str:
    """Return the installed version of the distribution that a suite tests."""
    code = f"import importlib.metadata as found; print(found.version({suite.distribution!r}))"
    return subprocess.run(
        [_python(suite), "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def _python(suite: Suite) -> str:
    return str(ROOT / f".venv-{suite.environment}" / "bin" / "python")


def _without_keys() -> dict[str, str]:
    """Return the environment of this process without the keys of providers."""
    return {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}


def new_failures(taken: Taken, mode: str) -> set[str]:
    """Return the tests that passed plain, and did not pass or answered something else in a mode."""
    plain, other = taken.runs["plain"], taken.runs[mode]
    passed = {name for name, was in plain.outcomes.items() if was == "passed"}
    return {
        name
        for name in passed
        if other.outcomes.get(name) != "passed"
        or plain.answers.get(name) != other.answers.get(name)
    }


def complaints(taken: Taken) -> Iterator[str]:
    """Yield a line for each thing that is wrong with a suite."""
    suite = taken.suite
    for mode in MODES[1:]:
        rows = [one for one in ACCEPTED if (one.suite, one.mode) == (suite.name, mode)]
        accepted = {test for one in rows for test in one.tests}
        found = new_failures(taken, mode)
        for test in sorted(found - accepted):
            yield f"{suite.name}, {mode}: {test} passes plain, and fails or differs"
        for test in sorted(accepted - found):
            yield f"{suite.name}, {mode}: {test} is accepted, and neither fails nor differs"
    for what, least, count in (
        ("tests passed plain", suite.passed, taken.runs["plain"].passed),
        ("clients were accelerated", suite.clients, _count(taken, "accelerated", "clients")),
        ("streams were read faster", suite.faster, _count(taken, "accelerated", "faster")),
        ("streams were folded", suite.folded, _count(taken, "folded", "streams")),
    ):
        if count < least:
            yield f"{suite.name}: {count} {what}, expected at least {least}"


def _count(taken: Taken, mode: str, name: str) -> int:
    return taken.runs[mode].counts.get(name, 0)


def report(all_taken: list[Taken]) -> str:
    """Return the page."""
    own = [taken for taken in all_taken if taken.suite in SUITES]
    recorded = [taken for taken in all_taken if taken.suite in RECORDED]
    return _PAGE.format(
        head=_HEAD,
        own="\n".join(map(_row, own)),
        recorded="\n".join(map(_row, recorded)),
        selections="\n".join(f"| {one.suite.name} | {one.suite.selection} |" for one in own),
        accepted="\n".join(
            f"| {one.suite} | {one.mode} | {_names(one.tests)} | {_linked(one.reason)} |"
            for one in ACCEPTED
        ),
        missing="\n".join(f"| {name} | {consequence} |" for name, consequence in MISSING.items()),
    )


def _row(taken: Taken) -> str:
    runs, folded = taken.runs, taken.runs["folded"].counts
    differing = {mode: len(new_failures(taken, mode)) for mode in MODES[1:]}
    cells = (
        taken.suite.distribution,
        taken.version,
        runs["plain"].passed,
        len(runs["plain"].failed),
        *differing.values(),
        _count(taken, "accelerated", "clients"),
        _count(taken, "accelerated", "faster"),
        folded.get("streams", 0),
        folded.get("objects", 0),
    )
    return f"| {' | '.join(map(str, cells))} |"


def _names(tests: tuple[str, ...]) -> str:
    return ", ".join(f"`{test.rpartition('::')[2]}`" for test in tests)


def _linked(reason: str) -> str:
    """Return a reason whose links start at the page."""
    return reason.replace("](docs/", "](")


_HEAD: Final = (
    "| project | version | passed plain | failed plain | new failures: accelerated | folded"
    " | clients accelerated | their streams | streams folded | their objects |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)

_PAGE: Final = """\
# The tests of other projects

`make check NAME=takeover` measures and writes this page. It runs the tests of other projects, from
their released sources, three times:

- plain: as they are;
- accelerated: `accelerate` is applied to each client of openai and anthropic that a test makes;
- folded: each object of a stream goes through `deltafold.stream` before the project's assembler
  reads it. The stream must end without an error, and with the text of its objects.

A test that passes plain must pass in the other two runs. No test is changed, and none reaches a
network. A test that fails plain needs a network, a package that is not installed, a fixture or a
file that the source lacks, or a recorded request that the installed SDK writes in another way.

## Their own tests

{head}
{own}

A 0 says that the tests make no such client, or read no such stream, without a network.

| project | selected tests |
|---|---|
{selections}

## Recordings through their models

These projects release no tests of their models, or none that reads a stream without a network.
Their models read every eighth recording of their protocols over loopback HTTP, in tests of the
check. What they make of it must be equal in the three runs; an exception of the project is such a
result. langroid loads an encoding from the network when it is imported; the check replaces it.

{head}
{recorded}

## Accepted differences

| tests | run | names | who is right |
|---|---|---|---|
{accepted}

## Missing tests

The source and the wheel that these projects release do not have all tests of their models.

| project | consequence |
|---|---|
{missing}
"""


def main() -> int:
    """Run all suites and write the page."""
    if not (CORPUS / "manifest.jsonl").exists():
        sys.stderr.write(f"no recordings at {CORPUS}; set DELTAFOLD_CORPUS\n")
        return 1
    found, all_taken = list[str](), list[Taken]()
    for suite in (*SUITES, *RECORDED):
        taken = Taken(suite, version_of(suite), {mode: run(suite, mode) for mode in MODES})
        sys.stderr.write(f"{_row(taken)}\n")
        all_taken.append(taken)
        found.extend(complaints(taken))
    (ROOT / "docs" / "takeovers.md").write_text(report(all_taken), encoding="utf-8")
    sys.stderr.write("".join(f"{line}\n" for line in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
