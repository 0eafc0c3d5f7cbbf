"""Hundreds of streams at once from one Model: those that are cancelled cost the others nothing."""

import json
import statistics
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from corpus import ROOT
from deltafold.testing import Recording, ReplayServer
from many_words import BODY, WORDS

STREAMS, ROUNDS = 500, 5


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="files and memory are counted in /proc")
@pytest.mark.parametrize("package", ["httpx2", "aiohttp"])
def test_a_third_is_cancelled_and_the_others_are_whole_and_nothing_grows(package: str) -> None:
    program = str(ROOT / "tests" / "support" / "many_streams.py")
    with ReplayServer({"*": Recording.of_events(BODY, delay=0.02)}) as server:
        arguments = [program, server.url, package, str(STREAMS), str(ROUNDS)]
        command = [sys.executable, "-W", "error", *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    rounds: list[dict[str, Any]] = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(rounds) == ROUNDS
    for one in rounds:
        assert (one["wrong"], one["tasks"]) == ([], 0)
        assert one["texts"] == ["".join(WORDS)]
        assert one["whole"] + one["cancelled"] == STREAMS
        # On a fast machine some of the third are through before their turn comes.
        assert STREAMS // 12 < one["cancelled"] <= STREAMS // 3 + 1
    assert len({one["files"] for one in rounds}) == 1
    # A leak grows in every round. The allocator takes a step of a megabyte in one round or none.
    sizes = [one["resident"] for one in rounds]
    assert (
        statistics.median(after - before for before, after in pairwise(sizes)) <= sizes[0] * 0.005
    )
