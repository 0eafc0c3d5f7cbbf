"""Loops over drawn cases: requests and answers of the gateway, and tools of an agent.

In: the names of the loops, a seed, and how many cases.  Out: one line of figures a loop; the cases
that break a law, with their numbers.

The loops are the code of tests, which run a small count of them:

- requests: mutated requests of clients, every protocol before every dialect of upstreams;
- marks: a mark in every member of answers, behind a hook that hides it;
- events: an event more at every place of streams that the gateway passes;
- tools: calls of tools that return and raise anything.

A case is repeated alone by its number: `--seed 7 --first 1234 --count 1`.

usage: python tools/seeded_loops.py [--seed 0] [--first 0] [--count N] [--processes 2] [loop ...]
"""

import argparse
import logging
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Final, NamedTuple, cast

from seeded import LoopResult

_Loop = Callable[[int, int, int], LoopResult]


class _Row(NamedTuple):
    """A loop: the module of tests/support, which has a function of its name, and how many cases."""

    module: str
    cases: int
    unit: str


LOOPS: Final = {
    "requests": _Row("mutated_requests", 200_000, "mutated requests"),
    "marks": _Row("marked_answers", 1_000_000, "places of a mark"),
    "events": _Row("passed_streams", 1_000_000, "streams with an event more"),
    "tools": _Row("tool_outcomes", 5_000, "calls of tools"),
}
"""The loops by their names; a finite set ends before its count."""

PIECE: Final = 1_000
"""Cases of one call of a loop."""
SHOWN: Final = 20


def run(name: str, seed: int, first: int, count: int) -> LoopResult:
    """Run cases of a loop; in a process of the pool."""
    warnings.simplefilter("ignore")  # clients warn of items that their types lack
    logging.disable(logging.ERROR)  # each failed call has a line
    module = LOOPS[name].module
    loop = cast("_Loop", getattr(import_module(module), module))
    return loop(seed, first, count)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="run loops over drawn cases")
    parser.add_argument("loops", nargs="*", choices=[*LOOPS, []], help="default: all of them")
    parser.add_argument("--seed", type=int, default=0, help="of the cases (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--count", type=int, help="how many cases of each loop")
    parser.add_argument("--processes", type=int, default=2, help="at once (default: 2)")
    return parser.parse_args()


def main() -> int:
    """Run the loops and report; returns 1 when a law was broken."""
    given = _arguments()
    broken = 0
    context = multiprocessing.get_context("spawn")
    for name in given.loops or LOOPS:
        count = LOOPS[name].cases if given.count is None else given.count
        end = given.first + count
        begun = time.monotonic()
        found = LoopResult()
        with context.Pool(given.processes) as pool:
            pieces = [
                pool.apply_async(run, (name, given.seed, first, min(PIECE, end - first)))
                for first in range(given.first, end, PIECE)
            ]
            for piece in pieces:
                found.add(piece.get())
        for wrong in found.wrong[:SHOWN]:
            print(wrong)
        seconds = time.monotonic() - begun
        print(f"{name}: {found.cases} {LOOPS[name].unit}, seed {given.seed}, in {seconds:.0f} s")
        print(
            f"{name}: {len(found.wrong)} findings; {dict(found.counts.most_common())}", flush=True
        )
        broken += len(found.wrong)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
