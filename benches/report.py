"""Prints the benches of one run as tables, and keeps the copy in README.md up to date.

In: the JSON of pytest-benchmark.  Out: CPU microseconds an event for every reader, and how many
times the first reader's each is; and the same for views of unfinished JSON, a delta.

    python benches/report.py results.json [--readme README.md]
"""

import argparse
import json
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict, cast

from bodies import DIALECTS, FEEDS, LENGTHS
from readers import READERS

BEGIN = "<!-- bench: begin -->"
END = "<!-- bench: end -->"

Key = tuple[str, str, int, str]


class Result(TypedDict):
    """The members of one benchmark's result that are read here."""

    extra_info: dict[str, object]
    stats: dict[str, float]


def microseconds_per_event(results: list[Result]) -> dict[Key, float]:
    """Return the median CPU time of an event by dialect, reader, length and feed."""
    found: dict[Key, float] = {}
    for result in results:
        info = result["extra_info"]
        if "dialect" not in info:
            continue
        events = cast("int", info["events"])
        key = (str(info["dialect"]), str(info["reader"]), events, str(info["feed"]))
        found[key] = result["stats"]["median"] / events * 1e6
    return found


def table(times: Mapping[Key, float]) -> Iterator[str]:
    """Yield the lines of the table."""
    columns = [(events, feed) for events in LENGTHS for feed in FEEDS]
    heads = [f"{events:,} events, feeds of {feed}" for events, feed in columns]
    ours = next(iter(READERS))
    for dialect in DIALECTS:
        yield f"| {dialect} | {' | '.join(heads)} |"
        yield f"|---|{'---:|' * len(columns)}"
        for reader in READERS:
            cells = [
                _cell(times.get((dialect, reader, *column)), times.get((dialect, ours, *column)))
                for column in columns
            ]
            yield f"| {reader} | {' | '.join(cells)} |"
        yield ""


def view_table(results: list[Result]) -> Iterator[str]:
    """Yield the lines of the table of `PartialJson` beside jiter."""
    times: dict[tuple[str, str, int], float] = {}
    for result in results:
        info = result["extra_info"]
        if "view" not in info:
            continue
        size, deltas = cast("int", info["bytes"]), cast("int", info["deltas"])
        key = (str(info["view"]), str(info["shape"]), size)
        times[key] = result["stats"]["median"] / deltas * 1e6
    shapes = list(dict.fromkeys(shape for _, shape, _ in times))
    yield f"| JSON, after each delta | {' | '.join(shapes)} |"
    yield f"|---|{'---:|' * len(shapes)}"
    for view, size in dict.fromkeys((view, size) for view, _, size in times):
        ours = [times.get(("value()", shape, size)) for shape in shapes]
        cells = [
            _cell(times.get((view, shape, size)), one if view == "jiter" else None)
            for shape, one in zip(shapes, ours, strict=True)
        ]
        yield f"| {view}, {size // 1000:,} KB | {' | '.join(cells)} |"
    yield ""


def _cell(time: float | None, ours: float | None) -> str:
    if time is None:
        return "-"
    if not ours:
        return f"{time:.2f}"
    return f"{time:.2f} ({time / ours:.1f}x)"


def report(results: list[Result]) -> str:
    """Return the whole section."""
    peers = ", ".join(
        f"{name} {version(name)}" for name in ("openai", "anthropic", "orjson", "jiter")
    )
    head = (
        "CPU microseconds per event from bytes to text or message, medians of one run, and the "
        "multiple of `Fold` in brackets;\n"
        f"CPython {platform.python_version()} on {platform.machine()}, deltafold "
        f"{version('deltafold')}, {peers}. `make bench` repeats it."
    )
    events = table(microseconds_per_event(results))
    return "\n".join([head, "", *events, *view_table(results)]).rstrip()


def main() -> int:
    """Print the table; rewrite its copy where one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--readme", type=Path)
    arguments = parser.parse_args()
    results = json.loads(cast("Path", arguments.results).read_text())["benchmarks"]
    section = report(cast("list[Result]", results))
    print(section)
    readme = cast("Path | None", arguments.readme)
    if readme is not None:
        before, begin, rest = readme.read_text().partition(BEGIN)
        _, end, after = rest.partition(END)
        if not (begin and end):
            print(f"{readme} has no lines {BEGIN} and {END}", file=sys.stderr)
            return 1
        readme.write_text(f"{before}{BEGIN}\n{section}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
