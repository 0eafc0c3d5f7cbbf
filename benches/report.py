"""Prints the passes of the benchmarks: tables, targets, and the copies that the repository keeps.

In: the JSON of pytest-benchmark, the stages in Rust.  Out: Markdown on standard output; with --docs
also docs/bench-report.md, the short page docs/bench.md, docs/bench.svg and the table in README.md.

    python benches/report.py results.json [--stages stages.jsonl] [--docs .]
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import cast

from bodies import DIALECTS, STAGED_TOO
from calls import BYTES, MODEL
from chart import bars
from documents import SHAPES
from headlines import PAGE, REPORT, short_page
from imports import PYDANTIC
from other_bodies import SOURCES, TARGETS
from peers import CONVERTERS, FRAMEWORKS, SDK_CREATE, SDK_HELPER
from readers import FOLD, HAND_WRITTEN, ORJSON, OURS, PUBLIC, STREAM_MESSAGE
from results import Results, machine, read_benchmarks, read_stages, versions
from tables import cell, table
from targets import Target, targets
from test_asynchronous import ALONE
from test_asynchronous import SOURCES as SOURCES_OF_CHUNKS
from test_corpus import FOLDED
from test_model_path import PROCESSES, TRANSPORTS
from transcoding import FIRST_PAIR

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
# Bytes of arguments, and characters of a delta.
SIZES = ((1_000, 12), (10_000, 12), (100_000, 12), (1_000_000, 12), (1_000, 1), (100_000, 1))
# Whom the others of a group are compared with.
FIRST = {
    "public": STREAM_MESSAGE,
    "sdk response": STREAM_MESSAGE,
    "text": FOLD,
    "arguments": FOLD,
    "stages": "scan",
    "views": "value()",
    "logprobs": FOLD,
    "corpus": FOLDED,
    "asynchronous": ALONE,
    "model path": BYTES,
    "fold_many": "two threads",
    "loopback": "bytes only",
    "other dialects": FOLD,
    "transcoding": FOLD,
    "pairs": FIRST_PAIR,
    "importing": PYDANTIC,
}


def compared(results: Results, group: str, reader: str, unit: str, **about: object) -> str:
    """Write what a reader takes for a unit, in microseconds, and the multiple of the first one."""
    row = results.one(group, reader=reader, **about)
    first = results.one(group, reader=FIRST[group], **about)
    if row is None:
        return "-"
    return cell(row.per(unit), None if first is None else row.times(first))


def compared_table(
    results: Results, group: str, title: str, unit: str, columns: dict[str, dict[str, object]]
) -> Iterator[str]:
    """Yield a table of all readers of a group that one of the columns has."""
    readers = dict.fromkeys(
        row.reader for about in columns.values() for row in results.all(group, **about)
    )
    rows = [
        [reader, *(compared(results, group, reader, unit, **about) for about in columns.values())]
        for reader in readers
    ]
    yield from table([title, *columns], rows)


def tables(results: Results) -> Iterator[str]:
    """Yield all tables but the targets."""
    columns: dict[str, dict[str, object]]
    yield from (
        "## Public path",
        "",
        "One event a read; ends with the message and all that is read.",
        "",
    )
    columns = {
        f"{dialect}, {count:,} events": {"dialect": dialect, "events": count}
        for dialect in DIALECTS
        for count in (2_000, 20)
    }
    yield from compared_table(results, "public", "µs an event", "events", columns)
    yield from (
        "## The response of an SDK",
        "",
        "The same over a response of the openai and the anthropic SDK, from a server on loopback",
        "that writes once an event. Most of the time is the HTTP client's. The targets therefore",
        "compare what a reader adds to the bytes of `iter_bytes`, which the hand-written loops",
        "read. It is the median over the quarter of the rounds whose neighbouring rounds were",
        "fastest for both. deltafold reads an uncompressed body by `iter_raw`, without the",
        "generator that decompresses.",
        "",
    )
    yield from compared_table(results, "sdk response", "µs an event", "events", columns)
    yield from ("## Text", "")
    for dialect in DIALECTS:
        columns = {
            f"{count:,} events, feeds of {feed}": {
                "dialect": dialect,
                "events": count,
                "feed": feed,
            }
            for count, feed in COLUMNS
        }
        yield from compared_table(results, "text", f"{dialect}, µs an event", "events", columns)
    columns = {
        f"{dialect}, 2,000 events": {"dialect": dialect}
        for dialect in ("openai-responses", "gemini")
    }
    yield from compared_table(results, "other dialects", "µs an event", "events", columns)
    yield from ("## Stages in Rust", "", "`scan` visits the line ends and validates the UTF-8.", "")
    columns = {
        f"{dialect}, {count:,}": {"dialect": dialect, "events": count}
        for dialect in (*DIALECTS, *STAGED_TOO)
        for count in (2_000, 20_000)
    }
    yield from compared_table(results, "stages", "µs an event", "events", columns)
    yield from ("## Tool arguments", "")
    for dialect in DIALECTS:
        columns = {
            f"{size // 1000:,} KB by {delta}": {"dialect": dialect, "bytes": size, "delta": delta}
            for size, delta in SIZES
        }
        title = f"{dialect}, µs a byte"
        yield from compared_table(results, "arguments", title, "bytes", columns)
    columns = {
        f"{shape}, {size // 1000:,} KB": {"shape": shape, "bytes": size}
        for shape in SHAPES
        for size in (1_000, 10_000, 100_000, 1_000_000)
        if next(results.all("views", shape=shape, bytes=size), None) is not None
    }
    yield from compared_table(results, "views", "parsed view, µs a delta", "deltas", columns)
    yield from ("## Log probabilities", "")
    yield from ("`fold()` reads a whole body, `Fold` the pieces of a stream.", "")
    columns = {
        f"{how}, {tokens:,} tokens, {alternatives} alternatives": {
            "how": how,
            "tokens": tokens,
            "alternatives": alternatives,
        }
        for how in ("streamed", "whole")
        for tokens in (500, 2_000, 32_000)
        for alternatives in (0, 5)
    }
    columns = {
        name: about
        for name, about in columns.items()
        if results.one("logprobs", **about) is not None
    }
    yield from compared_table(results, "logprobs", "µs a token", "tokens", columns)
    yield from (
        "## Asynchronous streams",
        "",
        "2,000 events, one a chunk. A generator that never waits costs less than decoding.",
        "",
    )
    columns = {
        f"{dialect}, {source}": {"dialect": dialect, "source": source}
        for dialect in DIALECTS
        for source in SOURCES_OF_CHUNKS
    }
    yield from compared_table(results, "asynchronous", "µs an event", "events", columns)
    yield from (
        "## A call of a Model",
        "",
        "One call after the other on a kept connection, Chat, the body in writes of 64 KiB, in",
        f"{PROCESSES} processes by turns.",
        "",
    )
    columns = {
        f"{transport}, {events:,} events": {"transport": transport, "events": events}
        for transport in TRANSPORTS
        for events in (2_000, 20)
    }
    yield from compared_table(results, "model path", "µs a call", "calls", columns)
    yield from ("## Recorded streams", "")
    columns = {dialect: {"dialect": dialect} for dialect in DIALECTS}
    yield from compared_table(results, "corpus", "µs an event", "events", columns)
    yield from compared_table(results, "corpus", "µs a stream", "streams", columns)
    rows = [
        [
            f"{row.about['dialect']}, {row.reader}",
            f"{row.about['failed']} of {row.about['streams']}",
        ]
        for row in results.all("corpus")
    ]
    yield from table(["ends in an error", "streams"], rows)
    yield from (
        "## Importing",
        "",
        "CPU time of a new interpreter over that of an empty one.",
        "",
    )
    first = results.one("importing", reader=FIRST["importing"])
    rows = [
        [row.reader, cell(row.seconds * 1e3, None if first is None else row.times(first))]
        for row in results.all("importing")
    ]
    yield from table(["a new interpreter and", "ms"], rows)
    yield from ("## Processes", "")
    rows = [
        [f"{row.about['dialect']}, {row.reader}", cell(row.number("kib"))]
        for row in results.all("held")
    ]
    yield from table(["half-finished stream after 250 deltas", "KiB resident"], rows)
    title = "fold_many, 400 bodies of 2,000 events: µs an event, wall"
    yield from compared_table(results, "fold_many", title, "events", columns)
    columns = {
        f"{dialect}, {writes}": {"dialect": dialect, "writes": writes}
        for dialect in DIALECTS
        for writes in ("few", "each")
    }
    title = "loopback HTTP, 50 streams at once, writes: client CPU, µs an event"
    yield from compared_table(results, "loopback", title, "events", columns)


def transcoding(results: Results) -> Iterator[str]:
    """Yield the tables of one provider's stream written as another's."""
    yield from (
        "## Transcoding",
        "",
        "Bytes of one protocol in, bytes of another out. `Fold` is what reading alone costs.",
        "",
    )
    columns: dict[str, dict[str, object]] = {
        f"{count:,} events, feeds of {feed}": {"events": count, "feed": feed}
        for count, feed in COLUMNS
        if count != 20_000
    }
    yield from compared_table(
        results, "transcoding", f"{FIRST_PAIR}, µs an event", "events", columns
    )
    rows = [
        [
            source,
            *(compared(results, "pairs", f"{source} to {target}", "events") for target in TARGETS),
        ]
        for source in SOURCES
    ]
    yield from table(["2,000 text events, µs an event", *TARGETS], rows)


def slower(results: Results) -> Iterator[str]:
    """Yield our rows that take longer than the assembler that is written by hand."""
    yield from ("## Slower than the hand-written assembler", "")
    rows = [
        [
            f"{group}: {row.about['dialect']}, {row.about['events']:,} events, {row.reader}",
            cell(times),
        ]
        for group in ("public", "sdk response", "text")
        for row in results.all(group)
        if row.reader in PUBLIC or row.reader in OURS
        if (other := results.beside(row, ORJSON)) is not None
        if (times := row.times(other)) > 1
    ]
    if rows:
        yield from table(["reader", "times as long as with orjson"], rows)
    else:
        yield from ("Nothing in the tables of the public path, an SDK's response and text.", "")


def noise(results: Results) -> Iterator[str]:
    """Yield how much the rounds of the public path differ."""
    yield from (
        "## Noise",
        "",
        "Each round runs every reader once, so that a slow phase of the machine slows all of them.",
        "The table has the quartiles of the rounds' ratios against orjson. A target within 3 % of",
        "its bound is neither reached nor missed. Where the HTTP client alone misses the bound in",
        "the same run, the verdict includes its value.",
        "",
    )
    rows: list[list[str]] = []
    for row in results.all("public"):
        other = results.beside(row, ORJSON)
        ratios = [] if other is None else other.rounds(row)
        if row.reader in PUBLIC and len(ratios) > 1:
            quartiles = statistics.quantiles(ratios, n=4)
            what = f"{row.about['dialect']}, {row.about['events']:,} events, {row.reader}"
            rows.append([what, *(cell(one) for one in quartiles), str(len(ratios))])
    yield from table(["reader", "lower quartile", "median", "upper quartile", "rounds"], rows)
    yield from (
        "A slow phase scales two times alike: their difference grows, their ratio does not. What",
        "a Model adds to the bytes of its client is therefore the median of the quarter of the",
        "rounds before and after which both readers were fastest, and the mean of that over the",
        "processes. Over httpx2 a Model reads the connection's stream below `aiter_bytes`, so that",
        "an event takes less time than with the bytes alone.",
        "",
    )
    rows = []
    for ours in results.all("model path", reader=MODEL):
        bare = results.beside(ours, BYTES)
        if bare is not None:
            quarters = ours.added(bare, "calls")
            rounds = list(chain.from_iterable(ours.differences(bare, "calls")))
            cells = [*quarters, *statistics.quantiles(rounds, n=4)]
            what = f"{ours.about['transport']}, {ours.about['events']:,} events"
            rows.append([what, *(cell(one) for one in cells), str(len(rounds))])
    title = "Model.stream: µs added to a call and its events"
    quarters_of = [f"process {number + 1}" for number in range(PROCESSES)]
    columns = ["lower quartile", "median", "upper quartile", "rounds"]
    yield from table([title, *quarters_of, *columns], rows)


def target_table(found: list[Target]) -> Iterator[str]:
    """Yield the targets, reached or not."""
    rows = [
        [
            target.what,
            f"{target.sense} {target.bound:g}",
            cell(target.measured),
            " to ".join(cell(one) for one in (target.values[:1] + target.values[-1:])),
            target.verdict,
        ]
        for target in found
    ]
    yield from table(["target", "bound", "measured", "passes", ""], rows)


def report(passes: Sequence[Results]) -> str:
    """Return docs/bench-report.md: targets of all passes, tables of the last one."""
    found, results = targets(passes), passes[-1]
    lines = [
        "# One run of `make bench`",
        "",
        f"[Benchmarks]({PAGE}) has the chart and the rows that most readers look for.",
        "",
        f"{machine()}.",
        f"{versions()}.",
        "",
        "CPU time, medians, with the multiple of the first row in brackets. Close comparisons",
        "run in alternating rounds, and the ratio is the median of the rounds' ratios. All",
        f"benchmarks run in {len(passes)} passes, one after the other. A target has the median of",
        "the passes, with the lowest and the highest value; the tables are those of the last pass.",
        "",
        f"## Targets: {sum(target.reached for target in found)} of {len(found)} reached",
        "",
        *target_table(found),
        *tables(results),
        *transcoding(results),
        *slower(results),
        *noise(results),
    ]
    return "\n".join(lines).rstrip() + "\n"


def short(results: Results) -> str:
    """Return the section of README.md."""
    columns = [(dialect, count) for dialect in DIALECTS for count in (2_000, 20)]
    public_head = ["CPU µs an event"] + [
        f"{dialect}, {count:,} events" for dialect, count in columns
    ]
    public = [
        [
            reader,
            *(
                compared(results, "public", reader, "events", dialect=dialect, events=count)
                for dialect, count in columns
            ),
        ]
        for reader in (*PUBLIC, *HAND_WRITTEN)
    ]
    lines = [
        "One event a read, as providers send them. Each row ends by reading text, usage, finish",
        "reason and arguments:",
        "",
        *table(public_head, public),
        "Medians of one pass, with the multiple of the first row in brackets;",
        f"{machine()}. `make bench` measures again.",
        f"[Benchmarks](docs/{PAGE}) shows the SDKs and the frameworks too, and",
        f"[the report](docs/{REPORT}) has the rows in which deltafold is slower.",
    ]
    return "\n".join(lines)


def chart(results: Results) -> str:
    """Return the chart of docs/bench.md."""
    names = {
        FOLD: "deltafold",
        **{name: name for name in (*HAND_WRITTEN, *CONVERTERS)},
        SDK_CREATE: "SDK, iterated",
        SDK_HELPER: "SDK, stream helper",
        **{name: name for name in FRAMEWORKS},
    }
    rows: dict[str, tuple[float, float]] = {}
    for reader, name in names.items():
        about = {"reader": reader, "events": 2_000, "feed": "16 KiB"}
        chat, anthropic = (results.one("text", dialect=one, **about) for one in DIALECTS)
        if chat is not None and anthropic is not None:
            rows[name] = (chat.per("events"), anthropic.per("events"))
    title = "CPU microseconds an event, bytes to message, 2,000 events (logarithmic)"
    return bars(title, (DIALECTS[0], DIALECTS[1]), rows)


def main() -> int:
    """Print the report; rewrite its copies if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="one file for each pass")
    parser.add_argument("--stages", type=Path, nargs="+", required=True, help="as above")
    parser.add_argument(
        "--docs", type=Path, help="the root whose docs/ and README.md are rewritten"
    )
    arguments = parser.parse_args()
    files = zip(
        cast("list[Path]", arguments.results), cast("list[Path]", arguments.stages), strict=True
    )
    passes = [Results(read_benchmarks(one) + read_stages(stages)) for one, stages in files]
    text = report(passes)
    print(text)
    root = cast("Path | None", arguments.docs)
    if root is not None:
        readme = root / "README.md"
        before, begin, rest = readme.read_text().partition(BEGIN)
        _, end, after = rest.partition(END)
        if not (begin and end):
            print(f"{readme} has no lines {BEGIN} and {END}", file=sys.stderr)
            return 1
        readme.write_text(f"{before}{BEGIN}\n{short(passes[-1])}\n{END}{after}")
        (root / "docs").mkdir(exist_ok=True)
        (root / "docs" / REPORT).write_text(text)
        (root / "docs" / PAGE).write_text(short_page(passes[-1]))
        (root / "docs/bench.svg").write_text(chart(passes[-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
