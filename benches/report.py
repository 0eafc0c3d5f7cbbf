"""Prints one run: the tables, the targets, and the copies of them that the repository keeps.

In: the JSON of pytest-benchmark, criterion's folder.  Out: Markdown on standard output; with --docs
also docs/bench.md, docs/bench.svg and the short table in README.md.

    python benches/report.py results.json [--criterion target/criterion] [--docs .]
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from bodies import DIALECTS
from chart import bars
from peers import CONVERTERS, FRAMEWORKS, SDK_CREATE, SDK_HELPER, SDKS
from readers import FOLD, HAND_WRITTEN, OURS
from results import Results, machine, read_benchmarks, read_criterion, versions
from targets import Target, targets

BEGIN = "<!-- bench: begin -->"
END = "<!-- bench: end -->"

# Events and feed of each column.
COLUMNS = (
    (2_000, "16 KiB"),
    (20_000, "16 KiB"),
    (2_000, "1 event"),
    (20, "16 KiB"),
    (20, "1 event"),
)
STAGES = ("scan", "frame", "read", "decode", "batches", "fold")


def cell(value: float | None, first: float | None = None) -> str:
    """Write a number, and how many times the first one it is."""
    if value is None:
        return "-"
    written = f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
    return f"{written} ({value / first:,.1f}x)" if first else written


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a table and an empty one."""
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'---:|' * (len(head) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def per_event(results: Results, reader: str, dialect: str, events: int, feed: str) -> float | None:
    """Return the microseconds that a reader takes for an event of text."""
    row = results.one("text", dialect=dialect, reader=reader, events=events, feed=feed)
    return None if row is None else row.microseconds_per_event


def text_tables(results: Results) -> Iterator[str]:
    """Yield the text streams, by dialect."""
    for dialect in DIALECTS:
        head = [
            f"{dialect}, µs an event",
            *(f"{count:,} events, feeds of {feed}" for count, feed in COLUMNS),
        ]
        rows: list[list[str]] = []
        for reader in OURS | HAND_WRITTEN | CONVERTERS | SDKS | FRAMEWORKS:
            cells = [
                cell(
                    per_event(results, reader, dialect, *column),
                    per_event(results, FOLD, dialect, *column),
                )
                for column in COLUMNS
            ]
            rows.append([reader, *cells])
        yield from table(head, rows)


def stage_table(results: Results) -> Iterator[str]:
    """Yield the stages in Rust, beside the floor."""
    columns = [(dialect, count) for dialect in DIALECTS for count in (2_000, 20_000)]
    rows: list[list[str]] = []
    for stage in STAGES:
        cells: list[str] = []
        for dialect, events in columns:
            same: dict[str, object] = {"dialect": dialect, "events": events}
            row = results.one("stages", stage=stage, **same)
            floor = results.one("stages", stage="scan", **same)
            nanoseconds = None if row is None else row.microseconds_per_event * 1e3
            cells.append(cell(nanoseconds, floor and floor.microseconds_per_event * 1e3))
        rows.append([stage, *cells])
    yield from table(["Rust, ns an event", *(f"{d}, {n:,}" for d, n in columns)], rows)


def argument_tables(results: Results) -> Iterator[str]:
    """Yield tool arguments, by dialect."""
    columns = [(1_000, 12), (10_000, 12), (100_000, 12), (1_000_000, 12), (1_000, 1), (100_000, 1)]
    for dialect in DIALECTS:
        rows: list[list[str]] = []
        for reader in OURS | HAND_WRITTEN | SDKS | FRAMEWORKS:
            cells: list[str] = []
            for size, delta in columns:
                same: dict[str, object] = {"dialect": dialect, "bytes": size, "delta": delta}
                row = results.one("arguments", reader=reader, **same)
                first = results.one("arguments", reader=FOLD, **same)
                cells.append(cell(row and row.seconds * 1e3, first and first.seconds * 1e3))
            if set(cells) != {"-"}:
                rows.append([reader, *cells])
        head = [f"{size // 1000:,} KB by {delta}" for size, delta in columns]
        yield from table([f"{dialect}: arguments, ms", *head], rows)


def view_table(results: Results) -> Iterator[str]:
    """Yield the views of unfinished JSON."""
    shapes = list(dict.fromkeys(str(row.about["shape"]) for row in results.all("views")))
    kinds = dict.fromkeys(
        (str(row.about["view"]), row.about["bytes"]) for row in results.all("views")
    )
    rows: list[list[str]] = []
    for view, size in kinds:
        cells: list[str] = []
        for shape in shapes:
            row = results.one("views", view=view, shape=shape, bytes=size)
            ours = results.one("views", view="value()", shape=shape) if view == "jiter" else None
            value = row and row.seconds / row.number("deltas") * 1e6
            cells.append(cell(value, ours and ours.seconds / ours.number("deltas") * 1e6))
        rows.append([f"{view}, {cast('int', size) // 1000:,} KB", *cells])
    yield from table(["JSON, µs after each delta", *shapes], rows)


def other_tables(results: Results) -> Iterator[str]:
    """Yield log probabilities, recordings, memory, threads and HTTP."""
    rows = [
        [
            f"{row.about['reader']}, {row.about['how']}, {row.number('tokens'):,.0f} tokens",
            cell(row.seconds / row.number("tokens") * 1e6),
        ]
        for row in results.all("logprobs")
    ]
    yield from table(["log probabilities", "µs a token"], rows)
    rows = [
        [
            f"{row.about['dialect']}, {row.about['reader']}",
            cell(row.microseconds_per_event),
            cell(row.seconds / row.number("streams") * 1e6),
            f"{row.number('failed'):.0f} of {row.number('streams'):.0f}",
        ]
        for row in results.all("corpus")
    ]
    yield from table(["recorded streams", "µs an event", "µs a stream", "end in an error"], rows)
    rows = [
        [f"{row.about['dialect']}, {row.about['reader']}", cell(row.number("kib"))]
        for row in results.all("held")
    ]
    yield from table(["half-finished stream after 250 deltas", "KiB resident"], rows)
    rows = [
        [f"{row.about['dialect']}, {name}", cell(seconds / row.number("events") * 1e9)]
        for row in results.all("fold_many")
        for name, seconds in row.table("seconds").items()
    ]
    yield from table(["fold_many, 400 bodies of 2,000 events", "ns an event, wall"], rows)
    rows = [
        [
            f"{row.about['dialect']}, {name}, {row.about['writes']}",
            cell(seconds / row.number("events") * 1e6),
            f"{row.table('ratios')[name]:.2f}x",
        ]
        for row in results.all("loopback")
        for name, seconds in row.table("seconds").items()
    ]
    head = ["loopback HTTP, 50 streams at once, writes", "client CPU, µs an event", "of bytes only"]
    yield from table(head, rows)


def target_table(found: list[Target]) -> Iterator[str]:
    """Yield the targets, reached or not."""
    rows = [
        [
            target.what,
            f"{target.sense} {target.bound:g}",
            cell(target.measured),
            "reached" if target.reached else "**not reached**",
        ]
        for target in found
    ]
    yield from table(["target", "bound", "measured", ""], rows)


def report(results: Results) -> str:
    """Return the whole report."""
    found = targets(results)
    lines = [
        "# One run of `make bench`",
        "",
        f"{machine()}.",
        f"{versions()}.",
        "",
        "CPU time, medians; in brackets the multiple of `Fold`, or of the first row.",
        "",
        f"## Targets: {sum(target.reached for target in found)} of {len(found)} reached",
        "",
        *target_table(found),
        "## Text",
        "",
        *text_tables(results),
        "## Stages",
        "",
        "`scan` visits the line ends and validates the UTF-8; the multiples are of it.",
        "",
        *stage_table(results),
        "## Tool arguments",
        "",
        *argument_tables(results),
        *view_table(results),
        "## The rest",
        "",
        *other_tables(results),
    ]
    return "\n".join(lines).rstrip() + "\n"


def short(results: Results) -> str:
    """Return the section of README.md."""
    head = ["CPU µs an event, bytes to message"]
    head += [f"{dialect}, {count:,} events" for dialect in DIALECTS for count in (2_000, 20)]
    rows: list[list[str]] = []
    for reader in (FOLD, *HAND_WRITTEN, *CONVERTERS, *SDKS, *FRAMEWORKS):
        cells = [
            cell(
                per_event(results, reader, dialect, count, "16 KiB"),
                per_event(results, FOLD, dialect, count, "16 KiB"),
            )
            for dialect in DIALECTS
            for count in (2_000, 20)
        ]
        rows.append([reader, *cells])
    lines = [
        "![CPU time an event by reader](docs/bench.svg)",
        "",
        *table(head, rows),
        f"Medians of one run, in brackets the multiple of `Fold`; {machine()}.  `make bench`",
        "repeats it; [docs/bench.md](docs/bench.md) has all of it, with the versions of everybody.",
    ]
    return "\n".join(lines)


def chart(results: Results) -> str:
    """Return the chart of README.md."""
    names = {
        FOLD: "deltafold",
        **{name: name for name in (*HAND_WRITTEN, *CONVERTERS)},
        SDK_CREATE: "SDK, iterated",
        SDK_HELPER: "SDK, stream helper",
        **{name: name for name in FRAMEWORKS},
    }
    rows: dict[str, tuple[float, float]] = {}
    for reader, name in names.items():
        chat, anthropic = (per_event(results, reader, one, 2_000, "16 KiB") for one in DIALECTS)
        if chat is not None and anthropic is not None:
            rows[name] = (chat, anthropic)
    title = "CPU microseconds an event, bytes to message, 2,000 events (logarithmic)"
    return bars(title, (DIALECTS[0], DIALECTS[1]), rows)


def main() -> int:
    """Print the report; rewrite its copies where told to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--criterion", type=Path)
    parser.add_argument(
        "--docs", type=Path, help="the root whose docs/ and README.md are rewritten"
    )
    arguments = parser.parse_args()
    rows = read_benchmarks(cast("Path", arguments.results))
    criterion = cast("Path | None", arguments.criterion)
    if criterion is not None:
        rows += read_criterion(criterion)
    results = Results(rows)
    text = report(results)
    print(text)
    root = cast("Path | None", arguments.docs)
    if root is not None:
        readme = root / "README.md"
        before, begin, rest = readme.read_text().partition(BEGIN)
        _, end, after = rest.partition(END)
        if not (begin and end):
            print(f"{readme} has no lines {BEGIN} and {END}", file=sys.stderr)
            return 1
        readme.write_text(f"{before}{BEGIN}\n{short(results)}\n{END}{after}")
        (root / "docs").mkdir(exist_ok=True)
        (root / "docs/bench.md").write_text(text)
        (root / "docs/bench.svg").write_text(chart(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
