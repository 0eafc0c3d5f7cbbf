"""Tracing packages keep their spans when deltafold reads the streams; the guide has the versions.

In: `traced_ways.py`, in a process for each package and SDK.  Out: each way has what the SDK's own
loop has, and the table of `docs/how-to/tracing.md` is what was observed.
"""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
GUIDE: Final = HERE.parents[2] / "docs/how-to/tracing.md"

PACKAGES: Final = [
    ("logfire", "openai", "logfire"),
    ("logfire", "anthropic", "logfire"),
    ("openinference", "openai", "openinference-instrumentation-openai"),
    ("openinference", "anthropic", "openinference-instrumentation-anthropic"),
    ("opentelemetry-instrumentation", "openai", "opentelemetry-instrumentation-openai"),
    ("opentelemetry-instrumentation", "anthropic", "opentelemetry-instrumentation-anthropic"),
    ("langfuse", "openai", "langfuse"),
    ("langsmith", "openai", "langsmith"),
    ("own", "anthropic", "anthropic"),
]
"""The package as `traced_ways.py` names it, the SDK, and the distribution with the version."""

WORTH: Final = ["nothing", "span", "answer", "usage", "answer and usage"]
"""What spans may have, the least first."""


def cells_of(package: str, sdk: str) -> dict[str, str]:
    """Read in every way under a package."""
    command = [sys.executable, "-W", "ignore", str(HERE / "traced_ways.py"), package, sdk]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def as_sdk(way: str) -> str:
    """Return the way of the SDK that a way of ours is compared with."""
    if way.endswith("left"):
        return "the SDK's loop, left"
    return "the SDK's loop, raw" if "raw" in way else "the SDK's loop"


@pytest.mark.parametrize(("package", "sdk", "distribution"), PACKAGES)
def test_every_way_has_what_the_sdks_loop_has(package: str, sdk: str, distribution: str) -> None:
    cells = cells_of(package, sdk)
    assert cells["the SDK's loop"] in WORTH[2:]
    for way, found in cells.items():
        assert WORTH.index(found) >= WORTH.index(cells[as_sdk(way)]), (way, cells)
    name = distribution if package != "own" else "anthropic, by its own tracing"
    whole, raw, left = (cells[way] for way in ("stream", "raw stream", "stream, left"))
    row = f"| {name} {version(distribution)} | {sdk} | {whole} | {left} | {raw} |"
    assert row in GUIDE.read_text(), row
