"""Measurements in separate processes: held memory, threads against processes, loopback HTTP.

The row of the report is what the processes say; the time that pytest-benchmark takes is the time of
starting and running them, and means nothing.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, feeds, text
from deltafold import fold_many
from measuring import note, run
from processes import CLIENTS, HELD_DELTAS
from serving import COMMAND, line, serving

if TYPE_CHECKING:
    from any_name import AnyName

# The SDKs are too slow to begin ten thousand streams, and too large to hold them.
HELD = {"deltafold": 10_000, "hand-written": 2_000, "SDK helper": 100}

BODIES = 400
FOLD_ROUNDS = 9

STREAMS, EVENTS = 50, 2_000


def once(benchmark: BenchmarkFixture, *arguments: str) -> object:
    """Run the command once and return its output."""

    def ask() -> str:
        command = [*COMMAND, *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    said: object = json.loads(run(benchmark, ask, 1))
    return said


@pytest.mark.parametrize("reader", HELD)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_held_memory(benchmark: BenchmarkFixture, dialect: str, reader: str) -> None:
    kib = once(benchmark, "held", reader, dialect, str(HELD[reader]))
    said = len(text(HELD_DELTAS + 5, "anthropic-messages").encode())
    note(benchmark, group="held", dialect=dialect, reader=reader, kib=kib, text_bytes=said)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_fold_many(benchmark: BenchmarkFixture, dialect: "AnyName") -> None:
    """Two threads of one process against two processes, on the same number of bodies."""
    body = b"".join(feeds(dialect, 2000, "16 KiB"))
    work = [bytes(bytearray(body)) for _ in range(8)] * (BODIES // 8)
    command = [*COMMAND, "fold", dialect, str(BODIES // 2)]
    pipe = subprocess.PIPE
    others = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    assert [line(other) for other in others] == ["ready", "ready"]
    seconds: dict[str, list[float]] = {"two threads": [], "two processes": [], "one thread": []}

    def rounds() -> None:
        for _ in range(FOLD_ROUNDS):
            begun = time.perf_counter()
            folded = fold_many(work, dialect, threads=2)
            seconds["two threads"].append(time.perf_counter() - begun)
            assert len(folded) == BODIES
            del folded
            begun = time.perf_counter()
            for other in others:
                stdin = cast("IO[str]", other.stdin)
                stdin.write("\n")
                stdin.flush()
            for other in others:
                line(other)
            seconds["two processes"].append(time.perf_counter() - begun)
            begun = time.perf_counter()
            fold_many(work, dialect, threads=1)
            seconds["one thread"].append(time.perf_counter() - begun)

    run(benchmark, rounds, 1)
    for other in others:
        other.communicate()
    note(benchmark, group="fold_many", dialect=dialect, events=BODIES * 2000, samples=seconds)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as port:
        yield port


@pytest.mark.parametrize("writes", ["few", "each"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_loopback(benchmark: BenchmarkFixture, dialect: str, writes: str, port: int) -> None:
    arguments = [str(port), dialect, writes, str(STREAMS), str(EVENTS), *CLIENTS]
    rounds = cast("list[dict[str, float]]", once(benchmark, "client", *arguments))
    samples = {name: [one[name] for one in rounds] for name in CLIENTS}
    about = {"dialect": dialect, "writes": writes, "events": STREAMS * EVENTS}
    note(benchmark, group="loopback", samples=samples, **about)
