"""The soak runs: a short one holds every law that the long one asserts."""

import subprocess
import sys

import pytest

from corpus import ROOT

SOAK = ROOT / "tools" / "soak.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="files and memory are counted in /proc")
def test_a_short_soak_loses_nothing_and_leaves_nothing() -> None:
    options = ["--minutes", "0.12", "--streams", "30", "--sample", "0.4"]
    command = [sys.executable, "-W", "error", str(SOAK), *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "no task, no file left" in ran.stdout
