"""Comparison of the agent loop with those of pydantic-ai, openai-agents and strands.

In: the installed libraries.  Out: docs/loops.md: CPU and memory of the same runs, lines of code,
and a table of features.

Laws: each library runs in a process of its own, and the server in another one. Libraries take
turns, so that a change of the machine's speed meets all of them. Each run is checked: the final
text, the number of deltas, the number of executed tools. A library that fails is reported.

Run by `make bench NAME=loops`.
"""

import argparse
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import loop_features
import loop_lines
from loop_server import CALLS, FINAL_DELTAS, FINAL_TEXT, TURN_DELTAS, TURNS

HERE = Path(__file__).parent
PACKAGES = {
    "deltafold": "deltafold",
    "pydantic-ai": "pydantic-ai-slim",
    "openai-agents": "openai-agents",
    "strands": "strands-agents",
}
FLOORS = ("httpx2", "httpx")
ROUNDS = 7
PARALLEL = 100
# Milliseconds between two events; a provider's events come one by one as well.
PAUSE_MS = 2
DELTAS = (TURNS - 1) * TURN_DELTAS + FINAL_DELTAS
TOOL_RUNS = (TURNS - 1) * CALLS


class Worker:
    """A process that runs one library."""

    def __init__(self, python: str, library: str) -> None:
        self.library = library
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(HERE / "loop_runs.py"), library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def measure(self, url: str, runs: int = 1) -> dict[str, Any]:
        """Let the process run, and return its report after a check of the outcomes."""
        asked, answered = self._process.stdin, self._process.stdout
        if asked is None or answered is None:
            raise AssertionError
        asked.write(json.dumps({"url": url, "runs": runs}) + "\n")
        asked.flush()
        report: dict[str, Any] = json.loads(answered.readline() or '{"error": "process ended"}')
        if "error" not in report and self.library not in FLOORS:
            expected = [{"text": FINAL_TEXT, "deltas": DELTAS}] * runs
            if report["outcomes"] != expected or report["tool_runs"] != TOOL_RUNS * runs:
                report["error"] = f"wrong outcome: {report['outcomes'][0]}, {report['tool_runs']}"
        return report

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def served() -> Iterator[str]:
    """Serve the answers from another process; gives the base URL."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "loop_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if process.stdout is None:
        raise AssertionError
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


@dataclass
class Measures:
    """Measured values of one library; seconds of CPU."""

    paced: list[float] = field(default_factory=list[float])
    at_once: list[float] = field(default_factory=list[float])
    parallel: float = 0.0
    peak_mb: float = 0.0
    error: str | None = None


def measure(pythons: dict[str, str], rounds: int, parallel: int) -> dict[str, Measures]:
    """Measure all libraries by turns."""
    measures = {library: Measures() for library in pythons}
    with served() as base:
        with ExitStack() as stack:
            workers = [Worker(python, library) for library, python in pythons.items()]
            for worker in workers:
                stack.callback(worker.close)
            # The first round makes imports and caches; it is not counted.
            for done in range(rounds + 1):
                for worker in workers:
                    found = measures[worker.library]
                    for milliseconds, into in ((0, found.at_once), (PAUSE_MS, found.paced)):
                        report = worker.measure(f"{base}/{milliseconds}/v1")
                        found.error = found.error or report.get("error")
                        if done and not found.error:
                            into.append(report["cpu_seconds"])
                sys.stderr.write(f"round {done} of {rounds}\n")
        for library, python in pythons.items():
            worker = Worker(python, library)
            found = measures[library]
            worker.measure(f"{base}/0/v1")
            report = worker.measure(f"{base}/0/v1", parallel)
            worker.close()
            found.error = found.error or report.get("error")
            found.parallel = report.get("cpu_seconds", 0.0)
            found.peak_mb = report.get("peak_mb", 0.0)
            sys.stderr.write(f"{library}: {parallel} runs, {found}\n")
    return measures


def folder_of(python: str, package: str) -> Path:
    """Return the folder of a package in an environment."""
    code = f"from importlib.util import find_spec; print(find_spec({package!r}).origin)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()).parent


def version_of(python: str, distribution: str) -> str:
    """Return the version of a distribution in an environment."""
    if python == sys.executable:
        return importlib.metadata.version(distribution)
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def table(measures: dict[str, Measures], names: dict[str, str]) -> str:
    """Write the table of CPU and memory."""
    ours = measures["deltafold"]
    rows = list[str]()
    for library, found in measures.items():
        if found.error:
            rows.append(f"| {names[library]} | failed: {found.error} | | | | | |")
            continue
        cells = list[str]()
        for mine, theirs in ((ours.paced, found.paced), (ours.at_once, found.at_once)):
            middle, least = statistics.median(theirs), min(theirs)
            cells.append(f"{middle * 1000:,.0f} ({least * 1000:,.0f})")
            cells.append(f"{middle / statistics.median(mine):.2f}")
        cells += [f"{found.parallel:,.1f}", f"{found.parallel / ours.parallel:.2f}"]
        rows.append(f"| {names[library]} | {' | '.join(cells)} | {found.peak_mb:,.0f} |")
    return "\n".join(rows)


HEAD = """# Agent loops

`deltafold.conversation.Agent` beside the loops of pydantic-ai, openai-agents and strands.
`make bench NAME=loops` measures and writes this document.

## CPU and memory

One run has {turns} turns: {calling} answers with {deltas} text deltas and {calls} parallel tool
calls each, and a last answer of {final} deltas. A server in another process on the loopback
interface sends Chat Completions streams, one event per HTTP chunk. The answer depends on the
messages of the request. Each library runs the same asynchronous tool by its public streaming API,
and the program reads every delta. Client, model and tools are made before the measurement. The
measurement includes the objects that a conversation needs. Telemetry is off. Each run is checked:
the final text, the number of deltas, the number of executed tools.

CPU is that of the library's process, user and system: the median, and in parentheses the minimum,
of {rounds} runs in turns with the others.

- Paced: the server waits {pause} ms after each event, so that each event arrives by itself.
- At once: the server does not wait.
- {parallel} runs: concurrent runs at once, in one new process, and the peak of its resident memory.

The ratios are to deltafold. httpx2 and httpx make the same exchanges and do not decode them: they
are the cost of the transport. deltafold, pydantic-ai and openai-agents use httpx2 here. strands
requires an openai client below version 3.

| library | paced, ms | ratio | at once, ms | ratio | {parallel} runs, s | ratio | peak MB |
|---|---:|---:|---:|---:|---:|---:|---:|
{table}

Python {python}, {cores} cores.

"""


def report_of(
    measures: dict[str, Measures], names: dict[str, str], rounds: int, parallel: int
) -> str:
    """Write the head of the report, and its first section."""
    return HEAD.format(
        turns=TURNS,
        calling=TURNS - 1,
        deltas=TURN_DELTAS,
        calls=CALLS,
        final=FINAL_DELTAS,
        rounds=rounds,
        pause=PAUSE_MS,
        parallel=parallel,
        table=table(measures, names),
        python=sys.version.split()[0],
        cores=os.cpu_count(),
    )


def main() -> int:
    """Compare everything and write the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--strands-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--parallel", type=int, default=PARALLEL)
    parser.add_argument(
        "--measures", type=Path, help="saved here; read instead of measured if it exists"
    )
    parser.add_argument("--to", type=Path, default=Path("docs/loops.md"))
    chosen = parser.parse_args()
    pythons = dict.fromkeys((*PACKAGES, *FLOORS), sys.executable)
    pythons["strands"] = chosen.strands_python
    names = {
        library: f"{library} {version_of(python, PACKAGES.get(library, library))}"
        for library, python in pythons.items()
    }
    folders = {
        library: folder_of(pythons[library], package)
        for library, (package, _) in loop_lines.MODULES.items()
    }
    lines = loop_lines.section(folders, names)
    features = loop_features.section({one: pythons[one] for one in PACKAGES}, names)
    saved = chosen.measures
    if saved is not None and saved.exists():
        told = json.loads(saved.read_text("utf-8"))
        measures = {library: Measures(**values) for library, values in told.items()}
    else:
        measures = measure(pythons, chosen.rounds, chosen.parallel)
    if saved is not None:
        told = {library: asdict(found) for library, found in measures.items()}
        saved.write_text(json.dumps(told), encoding="utf-8")
    head = report_of(measures, names, chosen.rounds, chosen.parallel)
    chosen.to.write_text(f"{head}{features}\n{lines}", encoding="utf-8")
    return int(any(found.error for found in measures.values()))


if __name__ == "__main__":
    sys.exit(main())
