"""CPU time of a new interpreter for the first fold, stream and message, beside its peers.

In: the programs of `imports.py`.  Out: for each one the CPU seconds over an empty interpreter.

Law: each round runs every program once, with one empty interpreter, and subtracts the latter.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from imports import EMPTY, OURS, PEERS
from measuring import note, run

# Without a cache of bytecode, the compiler would be measured.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def cpu_seconds(program: str) -> float:
    """Return the CPU time of a new interpreter that runs a program."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    subprocess.run([sys.executable, "-c", program], check=True, env=ENVIRONMENT)
    return used() - before


@pytest.mark.parametrize(
    ("programs", "rounds"),
    [pytest.param(OURS, 21, id="deltafold"), pytest.param(PEERS, 5, id="peers")],
)
def test_importing(benchmark: BenchmarkFixture, programs: Mapping[str, str], rounds: int) -> None:
    samples: dict[str, list[float]] = {name: [] for name in programs}
    for program in (EMPTY, *programs.values()):
        cpu_seconds(program)

    def measured() -> None:
        for _ in range(rounds):
            empty = cpu_seconds(EMPTY)
            for name, program in programs.items():
                samples[name].append(cpu_seconds(program) - empty)

    run(benchmark, measured, 1)
    note(benchmark, group="importing", samples=samples)
