"""How long `import deltafold` takes, beside the `import pydantic` that is most of it."""

import subprocess
import sys

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from measuring import note, run

ROUNDS = 9


@pytest.mark.parametrize("package", ["pydantic", "deltafold"])
def test_importing(benchmark: BenchmarkFixture, package: str) -> None:
    note(benchmark, group="importing", reader=f"import {package}", processes=1)
    # The class makes pydantic load what it loads lazily, which deltafold's own models need too.
    program = "from pydantic import BaseModel\nclass One(BaseModel):\n    a: int = 1\n"
    if package == "deltafold":
        program = "import deltafold"

    def load() -> None:
        subprocess.run([sys.executable, "-c", program], check=True)

    run(benchmark, load, ROUNDS)
