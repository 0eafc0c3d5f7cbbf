"""The rows of one run, and the questions that are asked of them.

In: the JSON of pytest-benchmark, and the stages in Rust.  Out: medians and ratios, by what a row is
about.
"""

import json
import os
import platform
import statistics
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple, cast

PEERS: Final = (
    "openai",
    "anthropic",
    "pydantic-ai-slim",
    "langchain-core",
    "litellm",
    "llm-babel",
    "martian-linguafranca",
    "orjson",
    "jiter",
    "httpx2",
)


class Row(NamedTuple):
    """One reader of one bench: its subject, and its median in seconds."""

    about: dict[str, object]
    seconds: float
    # Its samples, where it was measured by turns with others, and which bench that was.
    samples: tuple[float, ...] = ()
    bench: str = ""

    def number(self, name: str) -> float:
        """Return a number from the subject of the row."""
        return float(cast("float", self.about[name]))

    @property
    def reader(self) -> str:
        """Who read."""
        return str(self.about["reader"])

    def per(self, unit: str) -> float:
        """Return the microseconds for each unit that the row counts."""
        return self.seconds / self.number(unit) * 1e6

    def rounds(self, other: "Row") -> list[float]:
        """Return how many times as long as the other it took, round by round; maybe empty."""
        if not self.samples or self.bench != other.bench:
            return []
        pairs = zip(self.samples, other.samples, strict=True)
        return [mine / theirs for mine, theirs in pairs]

    def times(self, other: "Row") -> float:
        """Return how many times as long as the other it takes.

        Rows that were measured by turns are compared round by round.
        """
        rounds = self.rounds(other)
        return statistics.median(rounds) if rounds else self.seconds / other.seconds

    def differences(self, other: "Row", unit: str) -> list[list[float]]:
        """Return the microseconds for each unit that this takes more than the other.

        Both were measured by turns. The samples of several processes follow each other.

        Returns:
            The difference in each round of each process, those of the fastest phases first. Whether
            a phase is fast is read from the rounds before and after, because a round that was
            chosen for its own times would favour the row that varies more.
        """
        pairs = list(zip(self.samples, other.samples, strict=True))
        processes = int(cast("int", self.about.get("processes", 1)))
        size, rest = divmod(len(pairs), processes)
        if rest:
            raise ValueError(f"{len(pairs)} rounds are not those of {processes} processes")
        found: list[list[float]] = []
        for begin in range(0, len(pairs), size):
            process = pairs[begin : begin + size]
            inner = range(1, size - 1)
            order = sorted(inner, key=lambda at: sum((*process[at - 1], *process[at + 1])))
            differences = [(mine - theirs) / self.number(unit) * 1e6 for mine, theirs in process]
            found.append([differences[at] for at in order])
        return found

    def added(self, other: "Row", unit: str) -> list[float]:
        """Return the microseconds for each unit that this takes more than the other, by process.

        A slow phase of the machine scales both times: their difference grows, their ratio does
        not. Therefore only the fastest quarter of the rounds counts, and of it the median.
        """
        return [
            statistics.median(fastest_first[: max(1, len(fastest_first) // 4)])
            for fastest_first in self.differences(other, unit)
        ]


class Results:
    """The rows of one run."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def all(self, group: str, **about: object) -> Iterator[Row]:
        """Yield the rows of a group that are about this."""
        wanted = {"group": group, **about}
        for row in self._rows:
            if wanted.items() <= row.about.items():
                yield row

    def one(self, group: str, **about: object) -> Row | None:
        """Return the only row that is about this, None where it was not measured."""
        return next(self.all(group, **about), None)

    def beside(self, row: Row, reader: str) -> Row | None:
        """Return the row of another reader of the same bench, None where it was not measured."""
        about = {name: row.about[name] for name in row.about if name not in {"group", "failed"}}
        return self.one(str(row.about["group"]), **{**about, "reader": reader})

    def ratio(self, group: str, slow: str, fast: str, **about: object) -> float | None:
        """Return how many times as long as the fast reader the slow one takes."""
        one = self.one(group, reader=slow, **about)
        other = self.one(group, reader=fast, **about)
        return None if one is None or other is None else one.times(other)


def _rows(name: str, about: dict[str, object], median: float) -> Iterator[Row]:
    """Yield the rows of one bench: one, or one for each reader that took turns."""
    samples = cast("dict[str, list[float]]", about.pop("samples", {}))
    failed = cast("dict[str, int]", about.pop("failed", {}))
    if not samples:
        yield Row(about, median)
    for reader, values in samples.items():
        mine = {**about, "reader": reader, "failed": failed.get(reader)}
        yield Row(mine, statistics.median(values), tuple(values), name)


def read_benchmarks(path: Path) -> list[Row]:
    """Return the rows of pytest-benchmark's JSON."""
    benchmarks = cast("list[dict[str, object]]", json.loads(path.read_text())["benchmarks"])
    rows: list[Row] = []
    for one in benchmarks:
        about = cast("dict[str, object]", one["extra_info"])
        stats = cast("dict[str, float]", one["stats"])
        rows.extend(_rows(str(one["fullname"]), about, stats["median"]))
    return rows


def read_stages(path: Path) -> list[Row]:
    """Return the stages in Rust."""
    rows: list[Row] = []
    for line in path.read_text().splitlines():
        about = cast("dict[str, object]", json.loads(line))
        about["group"] = "stages"
        about["reader"] = about.pop("stage")
        samples = tuple(cast("list[float]", about.pop("samples")))
        bench = f"stages of {about['dialect']}, {about['events']} events"
        rows.append(Row(about, statistics.median(samples), samples, bench))
    return rows


def machine() -> str:
    """Describe the machine of the measurement."""
    names = {
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    }
    name = ", ".join(sorted(names)) or platform.processor() or platform.machine()
    python = f"CPython {platform.python_version()}"
    return f"{name} ({platform.machine()}), {os.cpu_count()} cores, {python}"


def versions() -> str:
    """Say who was measured."""
    names = ("deltafold", *PEERS)
    return ", ".join(f"{name} {version(name)}" for name in names)
