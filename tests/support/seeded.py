"""Cases of a seeded loop: numbered, drawn from a seed, each one repeatable alone.

In: a seed and numbers of cases.  Out: a source of chance for a case, the order of a finite set, and
the result of a loop.

Laws: a case depends on its seed and its number only, so that `tools/seeded_loops.py` with
`--first <number> --count 1` repeats it. A finite set is read in an order that the seed gives, each
member once.
"""

import functools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class LoopResult:
    """Outcomes of the cases of a loop.

    Attributes:
        cases: how many cases ran.
        counts: how many of them ended in each way.
        wrong: the cases that break a law, with their numbers.
    """

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])

    def add(self, other: "LoopResult") -> None:
        """Add the outcomes of other cases."""
        self.cases += other.cases
        self.counts += other.counts
        self.wrong += other.wrong


def chance_of(seed: int, number: int) -> random.Random:
    """Return the source of chance of a case."""
    return random.Random(f"{seed}.{number}")  # noqa: S311 - makes cases, not secrets


def drawn(total: int, seed: int, first: int, count: int) -> Sequence[int]:
    """Return members of a set by their positions in the order of a seed; none behind its end."""
    return _shuffled(total, seed)[first : first + count]


@functools.lru_cache(maxsize=4)
def _shuffled(total: int, seed: int) -> list[int]:
    order = list(range(total))
    random.Random(seed).shuffle(order)  # noqa: S311 - as above
    return order
