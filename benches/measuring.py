"""Number of runs of a reader: enough for a median, and no more than that for a slow reader.

In: functions and their subjects.  Out: their results, and a row for the report.

Law: compared functions run in alternating rounds, so that a temporary load slows all of them.
Ratios stay valid where times do not.
"""

import gc
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar, cast

from pytest_benchmark.fixture import BenchmarkFixture

T = TypeVar("T")

# Slower than this, a few rounds must do.
SLOW_SECONDS: Final = 0.08
# Seconds for a slow reader's rounds after its first, of which there is one at least.
BUDGET_SECONDS: Final = 1.0

# A sample takes at least this long, so that neither the clock nor the caches that the one before
# left behind count.
SAMPLE_SECONDS: Final = 0.004
TOGETHER_SECONDS: Final = 1.5
MIN_ROUNDS: Final = 5
MAX_ROUNDS: Final = 101
# Rounds between two collections of garbage, which count for no reader.
COLLECTED_ROUNDS: Final = 20


def note(benchmark: BenchmarkFixture, **about: object) -> None:
    """Describe the row: `group`, and the values that distinguish the rows of the group."""
    cast("dict[str, object]", benchmark.extra_info).update(about)


def run(benchmark: BenchmarkFixture, read: Callable[[], T], rounds: int) -> T:
    """Run it so many times, neither more nor less."""
    result: object = benchmark.pedantic(  # type: ignore[no-untyped-call]  # pyright: ignore[reportUnknownMemberType]
        read, rounds=rounds
    )
    return cast("T", result)


def measure(benchmark: BenchmarkFixture, read: Callable[[], T], **about: object) -> T:
    """Run one reader once for the result and to warm up, then measure it."""
    note(benchmark, **about)
    begun = time.perf_counter()
    result = read()
    seconds = time.perf_counter() - begun
    if seconds < SLOW_SECONDS:
        benchmark(read)
    else:
        run(benchmark, read, max(1, min(5, int(BUDGET_SECONDS / seconds))))
    return result


def _sample(read: Callable[[], object], times: int) -> float:
    begun = time.process_time()
    for _ in range(times):
        read()
    return (time.process_time() - begun) / times


def together(
    benchmark: BenchmarkFixture,
    reads: Mapping[str, Callable[[], T]],
    longer: int = 1,
    /,
    **about: object,
) -> dict[str, T]:
    """Measure several readers by turns; returns what each of them read.

    Args:
        benchmark: the fixture of the test.
        reads: the readers by their names.
        longer: how many times as many rounds as usual; differences need more than ratios.
        about: the values that distinguish the rows.
    """
    note(benchmark, **about)
    results = {name: read() for name, read in reads.items()}
    once = {name: _sample(read, 1) for name, read in reads.items()}
    times = {name: max(1, int(SAMPLE_SECONDS / max(one, 1e-7))) for name, one in once.items()}
    round_seconds = sum(once[name] * times[name] for name in reads)
    usual = min(MAX_ROUNDS, TOGETHER_SECONDS / round_seconds)
    rounds = max(MIN_ROUNDS, int(longer * usual))
    samples: dict[str, list[float]] = {name: [] for name in reads}

    def measured() -> None:
        gc.disable()
        try:
            for number in range(rounds):
                if number % COLLECTED_ROUNDS == 0:
                    gc.collect()
                    next(iter(reads.values()))()  # the collection leaves the caches cold
                for name, read in reads.items():
                    samples[name].append(_sample(read, times[name]))
        finally:
            gc.enable()

    run(benchmark, measured, 1)
    note(benchmark, samples=samples)
    return results
