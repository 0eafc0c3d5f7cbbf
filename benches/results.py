"""The rows of one run, and the questions that are asked of them.

In: the JSON of pytest-benchmark, and what criterion left behind.  Out: medians, by what a row is
about.
"""

import json
import os
import platform
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
    """One bench: what it is about, and its median in seconds."""

    about: dict[str, object]
    seconds: float

    def number(self, name: str) -> float:
        """Return a number of what the row is about."""
        return float(cast("float", self.about[name]))

    def table(self, name: str) -> dict[str, float]:
        """Return numbers by name."""
        return cast("dict[str, float]", self.about[name])

    @property
    def microseconds_per_event(self) -> float:
        """The median divided by the events."""
        return self.seconds / self.number("events") * 1e6


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

    def ratio(self, group: str, slow: dict[str, object], fast: dict[str, object]) -> float | None:
        """Return how many times the one takes what the other takes."""
        one, other = self.one(group, **slow), self.one(group, **fast)
        return None if one is None or other is None else one.seconds / other.seconds


def read_benchmarks(path: Path) -> list[Row]:
    """Return the rows of pytest-benchmark's JSON."""
    benchmarks = cast(
        "list[dict[str, dict[str, object]]]", json.loads(path.read_text())["benchmarks"]
    )
    return [
        Row(
            {
                name: value
                for name, value in one["extra_info"].items()
                if not isinstance(value, list)
            },
            cast("float", one["stats"]["median"]),
        )
        for one in benchmarks
    ]


def read_criterion(folder: Path) -> list[Row]:
    """Return the rows of criterion's stages; none where they were not run."""
    rows: list[Row] = []
    for path in sorted(folder.glob("*/*/*/new/estimates.json")):
        dialect, stage, events = path.parts[-5:-2]
        estimates = cast("dict[str, dict[str, float]]", json.loads(path.read_text()))
        about: dict[str, object] = {
            "group": "stages",
            "dialect": dialect,
            "stage": stage,
            "events": int(events),
        }
        rows.append(Row(about, estimates["median"]["point_estimate"] / 1e9))
    return rows


def machine() -> str:
    """Say what was measured on."""
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
