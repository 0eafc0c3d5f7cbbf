"""`Model.stream` over each transport, against the bytes of the same client on a kept connection.

In: a loopback server that writes whole bodies.  Out: the time of a call with 20 and with 2,000
events; the difference between both readers is what a Model adds for a call and for an event.

Laws: the server never sleeps. A bare client sends its next request before the server would fall
asleep, a Model after that. The kernel would charge waking the server to the Model's process alone,
which does not happen over a network. Several processes take turns, because the place of code and
data in memory differs between processes, and moves a call by some microseconds.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Final, cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from calls import BYTES, MODEL
from measuring import note, run
from serving import line, serving

TRANSPORTS: Final = ("aiohttp", "httpx2")
CALLS: Final = {20: 20, 2000: 2}
"""Calls of a reader in one round, by the events of a call."""

PROCESSES: Final = 4
SECONDS: Final = 30
"""Length of a measurement, because slow phases of a machine last for seconds."""

ROUNDS: Final = 6
"""Rounds in one turn of a process: an even number, because the readers begin by turns."""

PROGRAM: Final = Path(__file__).parent / "calls.py"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(sleeps=False) as port:
        yield port


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("events", [2000, 20])
def test_model_path(benchmark: BenchmarkFixture, transport: str, events: int, port: int) -> None:
    calls = CALLS[events]
    command = [sys.executable, str(PROGRAM), str(port), transport, str(events), str(calls)]
    pipe = subprocess.PIPE
    found: list[list[dict[str, float]]] = [[] for _ in range(PROCESSES)]
    with ExitStack() as stack:
        processes: list[subprocess.Popen[str]] = []
        for _ in range(PROCESSES):
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            processes.append(stack.enter_context(process))
            stack.callback(process.terminate)
        assert [line(process) for process in processes] == ["ready"] * PROCESSES

        def turns() -> None:
            ends = time.monotonic() + SECONDS
            while time.monotonic() < ends:
                for process, rounds in zip(processes, found, strict=True):
                    rounds.extend(_rounds(process))

        run(benchmark, turns, 1)
        for process in processes:
            process.communicate()
    about = {"transport": transport, "events": events, "calls": calls, "processes": PROCESSES}
    rounds = list(chain.from_iterable(found))
    samples = {name: [one[name] for one in rounds] for name in (BYTES, MODEL)}
    note(benchmark, group="model path", samples=samples, **about)


def _rounds(process: subprocess.Popen[str]) -> list[dict[str, float]]:
    """Return the CPU seconds of each reader in the rounds of one turn."""
    stdin = cast("IO[str]", process.stdin)
    stdin.write(f"{ROUNDS}\n")
    stdin.flush()
    return cast("list[dict[str, float]]", line(process))
