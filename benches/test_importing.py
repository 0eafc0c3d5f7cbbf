"""How long `import deltafold` takes, beside the `import pydantic` that is most of it."""

import statistics
import subprocess
import sys
import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from measuring import note, run

ROUNDS = 9


@pytest.mark.parametrize("package", ["pydantic", "deltafold"])
def test_importing(benchmark: BenchmarkFixture, package: str) -> None:
    # The class makes pydantic load what it loads lazily, which deltafold's own models need too.
    program = "from pydantic import BaseModel\nclass One(BaseModel):\n    a: int = 1\n"
    if package == "deltafold":
        program = "import deltafold"
    seconds: list[float] = []

    def load() -> None:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        seconds.append(time.perf_counter() - begun)

    run(benchmark, load, ROUNDS)
    # The time of another process is no CPU time of this one.
    wall = statistics.median(seconds)
    note(benchmark, group="importing", reader=f"import {package}", milliseconds=wall * 1e3)
