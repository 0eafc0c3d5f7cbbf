"""Columns of bodies at scale: Arrow to messages beside a process pool, and Parquet to Parquet.

    scale.py measure --docs docs/scale.md     rewrites the tables of the document
    scale.py parquet IN OUT                   folds a file, and prints its peak of resident memory

In: bodies of Chat and Anthropic Messages, of 20 to 80 events.  Out: tables.

Laws: the readers run by turns on the same column. Time is the CPU of the process and of its
workers, because wall time of a busy machine says little; each of them uses both cores. The pool
gets its bodies by forking, without pickling, and its messages are not brought into Arrow.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

import deltafold
from hand_written import Anthropic, OpenAIChat
from measured_parts import rewrite
from scale_bodies import bodies_and_dialects

if TYPE_CHECKING:
    from any_name import AnyName

pa: Any = import_module("pyarrow")
parquet: Any = import_module("pyarrow.parquet")

ROWS_IN_A_BATCH: Final = 10_000
WORKERS: Final = 2
ROUNDS: Final = 5
HAND_WRITTEN: Final[dict[str, Any]] = {"openai-chat": OpenAIChat, "anthropic-messages": Anthropic}


def columns(rows: int) -> tuple[Any, Any]:
    """Return the bodies and their dialects as columns."""
    pairs = list(bodies_and_dialects(rows))
    bodies = pa.chunked_array(
        [
            pa.array([body for body, _ in pairs[start : start + ROWS_IN_A_BATCH]], pa.binary())
            for start in range(0, rows, ROWS_IN_A_BATCH)
        ]
    )
    return bodies, pa.chunked_array([pa.array([dialect for _, dialect in pairs])])


@dataclass
class Column:
    """The column that all readers read; the workers of the pool inherit it."""

    bodies: Any = None
    dialects: Any = None


COLUMN: Final = Column()


def fold_by_hand(start: int) -> list[object]:
    """Fold some rows with the hand-written assemblers."""
    bodies = COLUMN.bodies[start : start + 1000]
    dialects = COLUMN.dialects[start : start + 1000].to_pylist()
    messages: list[object] = []
    for body, dialect in zip(bodies.to_pylist(), dialects, strict=True):
        assembler = HAND_WRITTEN[dialect](orjson.loads, as_str=False)
        for _ in assembler.run([body]):
            pass
        messages.append(assembler.message)
    return messages


def in_a_pool(rows: int) -> list[str]:
    """Fold the column in a pool of processes, and return the texts."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("fork")) as pool:
        parts = list(pool.map(fold_by_hand, range(0, rows, 1000)))
    messages: list[Any] = [message for part in parts for message in part]
    return [message.get("text") or message["content"][0]["text"] for message in messages]


def in_columns() -> Any:  # noqa: ANN401 - pyarrow has no types
    """Fold the column, and return the messages."""
    return deltafold.arrow.fold(COLUMN.bodies, COLUMN.dialects)


def cpu_seconds() -> float:
    """Return the CPU of this process and of its finished workers."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def resident_mebibytes() -> float:
    """Return the resident memory of this process (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def peak_kibibytes() -> int:
    """Return the highest resident memory of this process (Linux; `getrusage` has the parent's)."""
    (line,) = (
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    )
    return int(line.split()[1])


def timed(read: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU and the wall time of a call, in seconds."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    read()
    return cpu_seconds() - cpu, time.perf_counter() - wall


def in_a_loop(pairs: "list[tuple[bytes, AnyName]]") -> None:
    """Fold bodies one by one."""
    for body, dialect in pairs:
        _ = deltafold.fold(body, dialect).text


def by_litellm(pairs: "list[tuple[bytes, AnyName]]") -> None:
    """Build messages with the chunk builder of litellm."""
    litellm = import_module("peers").litellm
    for body, dialect in pairs:
        litellm(dialect, [body])()


def against_the_pool(rows: int) -> list[str]:
    """Measure the readers of the same column by turns, and return the rows of the table."""
    COLUMN.bodies, COLUMN.dialects = columns(rows)
    found = [text for chunk in in_columns().chunks for text in chunk.field("text").to_pylist()]
    assert found == in_a_pool(rows), "both readers read the same texts"
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        ours.append(timed(in_columns))
        theirs.append(timed(lambda: in_a_pool(rows)))
    pairs = list(bodies_and_dialects(max(rows // 20, 1)))
    few = pairs[: max(rows // 500, 1)]
    alone = [timed(lambda: in_a_loop(pairs)) for _ in range(ROUNDS)]
    by_litellm(few[:2])
    built = [timed(lambda: by_litellm(few))]
    base = statistics.median(cpu for cpu, _ in theirs) / rows
    cases = (
        (f"`deltafold.arrow.fold`, {WORKERS} cores", ours, rows),
        (f"orjson by hand, pool of {WORKERS} processes", theirs, rows),
        (f"`deltafold.fold` in a loop ({len(pairs):,} bodies)", alone, len(pairs)),
        (f"litellm's chunk builder ({len(few):,} bodies)", built, len(few)),
    )
    lines: list[str] = []
    for name, times, count in cases:
        cpu = statistics.median(cpu for cpu, _ in times) / count
        wall = min(wall for _, wall in times) / count
        lines.append(f"| {name} | {cpu * 1e6:,.1f} | {base / cpu:.2f} | {1 / wall:,.0f} |")
    mebibytes = COLUMN.bodies.nbytes / 2**20
    COLUMN.bodies = COLUMN.dialects = None
    head = (
        f"{rows:,} bodies in Arrow ({mebibytes:,.0f} MiB), half Chat and half Anthropic Messages."
    )
    return [
        head,
        "",
        "| reader | CPU, µs a body | times the pool | bodies a second |",
        "|---|---:|---:|---:|",
        *lines,
    ]


def write_bodies(path: Path, rows: int) -> None:
    """Write a Parquet file of bodies."""
    schema = pa.schema([("body", pa.binary()), ("dialect", pa.string())])
    pairs = bodies_and_dialects(rows)
    with parquet.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as file:
        while batch := [pair for _, pair in zip(range(ROWS_IN_A_BATCH), pairs, strict=False)]:
            both = [list(column) for column in zip(*batch, strict=True)]
            file.write_batch(pa.record_batch(both, schema=schema), row_group_size=ROWS_IN_A_BATCH)


def fold_file(source: Path, target: Path) -> None:
    """Fold a Parquet file of bodies into one of messages; print its time and its memory."""
    schema = pa.schema([("message", deltafold.arrow.message_type())])
    rows, began = 0, time.perf_counter()
    resident: list[float] = []
    with parquet.ParquetWriter(target, schema, compression="zstd") as file:
        for batch in parquet.ParquetFile(source).iter_batches(ROWS_IN_A_BATCH):
            folded = deltafold.arrow.fold(batch["body"], batch["dialect"])
            file.write_batch(pa.record_batch([folded], schema=schema))
            rows += len(batch)
            resident.append(resident_mebibytes())
    print(
        json.dumps(
            {
                "rows": rows,
                "seconds": time.perf_counter() - began,
                "cpu": cpu_seconds(),
                "peak": peak_kibibytes() / 1024,
                "first": statistics.median(resident[:10]),
                "last": statistics.median(resident[-10:]),
            }
        )
    )


def from_file_to_file(sizes: list[int]) -> list[str]:
    """Fold files of several sizes, each in a process of its own, and return a table."""
    lines = [
        "| rows | bodies a second | CPU, µs a body | MiB: first batches | last batches | peak |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "bodies.parquet"), Path(folder, "messages.parquet")
        for rows in sizes:
            write_bodies(source, rows)
            command = [sys.executable, __file__, "parquet", str(source), str(target)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            took: dict[str, float] = json.loads(done.stdout)
            assert took["rows"] == rows == parquet.ParquetFile(target).metadata.num_rows
            lines.append(
                f"| {rows:,} | {rows / took['seconds']:,.0f} "
                f"| {took['cpu'] / rows * 1e6:,.1f} "
                f"| {took['first']:,.0f} | {took['last']:,.0f} | {took['peak']:,.0f} |"
            )
    head = (
        "From Parquet to Parquet, 10,000 rows a batch; resident memory is the median after the "
        "first and the last ten batches:"
    )
    return [head, "", *lines]


def main() -> None:
    """Measure, and rewrite the document; or fold one file."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("--docs", type=Path, required=True)
    measuring.add_argument("--rows", type=int, default=100_000)
    measuring.add_argument(
        "--files", type=int, nargs="*", default=[100_000, 300_000, 1_000_000], metavar="ROWS"
    )
    folding = commands.add_parser("parquet")
    folding.add_argument("source", type=Path)
    folding.add_argument("target", type=Path)
    asked = parser.parse_args()
    if asked.command == "parquet":
        fold_file(asked.source, asked.target)
        return
    measured = "\n".join([*against_the_pool(asked.rows), "", *from_file_to_file(asked.files)])
    print(measured)
    rewrite(asked.docs, "scale", measured)


if __name__ == "__main__":
    main()
