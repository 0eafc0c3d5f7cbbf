"""How often a reader runs: often enough for a median, and a slow one not longer than it must.

In: a function and what it is about.  Out: its result, and a row for the report.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar, cast

from pytest_benchmark.fixture import BenchmarkFixture

T = TypeVar("T")

# Slower than this, a few rounds must do.
SLOW_SECONDS: Final = 0.08
# Seconds for a slow reader's rounds after its first, of which there is one at least.
BUDGET_SECONDS: Final = 1.0


def note(benchmark: BenchmarkFixture, **about: object) -> None:
    """Say what the row is about: `group`, and what tells its rows apart."""
    cast("dict[str, object]", benchmark.extra_info).update(about)


def run(benchmark: BenchmarkFixture, read: Callable[[], T], rounds: int) -> T:
    """Run it so many times, neither more nor less."""
    result: object = benchmark.pedantic(  # type: ignore[no-untyped-call]  # pyright: ignore[reportUnknownMemberType]
        read, rounds=rounds
    )
    return cast("T", result)


def measure(benchmark: BenchmarkFixture, read: Callable[[], T], **about: object) -> T:
    """Run it once for the result and to warm up, then measure it."""
    note(benchmark, **about)
    begun = time.perf_counter()
    result = read()
    seconds = time.perf_counter() - begun
    if seconds < SLOW_SECONDS:
        benchmark(read)
    else:
        rounds = max(1, min(5, int(BUDGET_SECONDS / seconds)))
        run(benchmark, read, rounds)
    return result
