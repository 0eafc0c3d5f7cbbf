"""Processes of a soak: how they are started, measured and judged.

In: programs that print their port, and the process itself.  Out: samples of memory, files and
tasks, and whether the memory is flat.

Laws: memory is flat if the median of the last quarter is at most 3 % and 4 MiB above that of the
second (the first fills caches). Before each sample of this process, glibc gives back the memory
that it holds free (`malloc_trim`), because that grows for an hour while the memory in use stays the
same.
"""

import argparse
import asyncio
import contextlib
import ctypes
import gc
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

sys.path.append(str(Path(__file__).resolve().parent.parent / "benches"))
from measured_parts import rewrite

GROWTH: Final = 0.03
GROWTH_BYTES: Final = 4 << 20
STALL_SECONDS: Final = 0.2


class Broken(Exception):  # noqa: N818 - a law, not a failure
    """A law of the soak was broken."""


def trim() -> None:
    """Give the operating system the memory that glibc holds free; does nothing without glibc."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


@dataclass(frozen=True)
class Process:
    """A process whose memory and files are counted (Linux)."""

    pid: int

    def resident_bytes(self) -> int:
        """Return the resident memory, without what glibc holds free in this process."""
        if self.pid == os.getpid():
            trim()
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def open_files(self) -> int:
        """Return the number of open files."""
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())


@dataclass(frozen=True)
class Sample:
    """Memory, files and tasks at one moment."""

    seconds: float
    memory: int
    files: int
    tasks: int
    gateway_memory: int
    gateway_files: int


@contextmanager
def started(*arguments: object) -> Generator[tuple[Process, int]]:
    """Run a program that prints its port."""
    command = [sys.executable, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Process(process.pid), int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


Period: TypeAlias = tuple[float, float | None]
"""Seconds of `time.monotonic()` at which something began and ended; None if it goes on."""


async def note_stalls(stalls: list[Period]) -> None:
    """Note when this event loop ran no callback for `STALL_SECONDS`."""
    while True:
        began = time.monotonic()
        await asyncio.sleep(STALL_SECONDS / 5)
        ended = time.monotonic()
        if ended - began > STALL_SECONDS:
            stalls.append((began, ended))


def answers(port: int) -> bool:
    """Return whether a server answers; its loop is open then."""
    request = b"GET / HTTP/1.1\r\nhost: soak\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request)
        return connection.recv(5) == b"HTTP/"


async def until(holds: Callable[[], bool], broken: str, seconds: int = 10) -> None:
    """Wait until the closing of connections is through, and assert that it ends."""
    for _ in range(seconds * 10):
        gc.collect()
        if holds():
            return
        await asyncio.sleep(0.1)
    raise Broken(broken)


def report(sample: Sample, outcomes: Counter[tuple[str, str, str]]) -> None:
    """Print a line about the run so far."""
    line = {
        "seconds": round(sample.seconds),
        "streams": outcomes.total(),
        "MiB": round(sample.memory / 2**20, 1),
        "files": sample.files,
        "tasks": sample.tasks,
        "gateway MiB": round(sample.gateway_memory / 2**20, 1),
        "gateway files": sample.gateway_files,
    }
    print(json.dumps(line), flush=True)


def growth(sizes: list[int]) -> float:
    """Return how far the median of the last quarter is above that of the second, in bytes.

    Raises:
        Broken: it is more than the bound.
    """
    quarter = max(len(sizes) // 4, 1)
    before = statistics.median(sizes[quarter : 2 * quarter] or sizes)
    grown = statistics.median(sizes[-quarter:]) - before
    if grown > before * GROWTH + GROWTH_BYTES:
        raise Broken(f"memory grew by {grown / 2**20:.1f} MiB from {before / 2**20:.1f} MiB")
    return grown


def memory_rows(samples: list[Sample]) -> list[str]:
    """Return a table of the memory of both processes.

    Raises:
        Broken: the memory is not flat.
    """
    sizes = {
        "client": [sample.memory for sample in samples],
        "gateway": [sample.gateway_memory for sample in samples],
    }
    rows = [
        "| process | memory at the end, MiB | growth from the second quarter to the last |",
        "|---|---:|---:|",
    ]
    for name, all_of_it in sizes.items():
        grown = growth(all_of_it) / 2**20
        rows.append(f"| {name} | {all_of_it[-1] / 2**20:.0f} | {grown:+.1f} MiB |")
    return rows


def outcome_rows(
    column: str, names: Iterable[str], outcomes: Counter[tuple[str, str, str]]
) -> list[str]:
    """Return a table of how streams ended.

    Args:
        column: the name of the first column.
        names: the second members of the outcomes, one a row.
        outcomes: how often a way, a name and an end came together.
    """
    counted: Counter[tuple[str, str]] = Counter()
    for (_, name, outcome), count in outcomes.items():
        counted[name, outcome] += count
    rows = [f"| {column} | how the streams ended |", "|---|---|"]
    for one in names:
        ends = sorted(
            ((outcome, count) for (name, outcome), count in counted.items() if name == one),
            key=lambda pair: -pair[1],
        )
        shown = ", ".join(f"{outcome} {count:,}" for outcome, count in ends)
        rows.append(f"| {one} | {shown} |")
    return rows


def command(
    name: str,
    minutes: float,
    run: Callable[[argparse.Namespace], Coroutine[Any, Any, str]],
    **counts: int,
) -> int:
    """Run a soak from the command line; returns the exit code.

    Args:
        name: the name of its part of the page that `--docs` rewrites.
        minutes: how long it runs by default.
        run: runs it, and returns the table of what was measured.
        counts: further options, with their defaults.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=float, default=5.0, help="seconds between two samples")
    parser.add_argument("--docs", type=Path)
    for option, count in counts.items():
        parser.add_argument(f"--{option}", type=int, default=count)
    asked = parser.parse_args()
    try:
        shown = asyncio.run(run(asked))
    except Broken as broken:
        print(f"{name}: {broken}", file=sys.stderr)
        return 1
    print(shown)
    if asked.docs is not None:
        rewrite(asked.docs, name, shown)
    return 0
