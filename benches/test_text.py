"""Text streams of three lengths through everybody, in large feeds and one event at a time."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, Feed, feeds, text
from measuring import measure
from peers import CONVERTERS, FRAMEWORKS, SDKS
from readers import HAND_WRITTEN, OURS, MakeRead

EVERYBODY: dict[str, MakeRead] = OURS | HAND_WRITTEN | SDKS | FRAMEWORKS | CONVERTERS
FAST: dict[str, MakeRead] = OURS | HAND_WRITTEN

# Who is slow is measured once, and short streams and small feeds add nothing to it.
ROWS = [
    *((reader, 2000, "16 KiB") for reader in EVERYBODY),
    *((reader, 20_000, "16 KiB") for reader in FAST),
    *((reader, 2000, "1 event") for reader in FAST),
    *((reader, 20, "16 KiB") for reader in FAST | SDKS),
    *((reader, 20, "1 event") for reader in FAST),
]


@pytest.mark.parametrize(("reader", "count", "feed"), ROWS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_text(
    benchmark: BenchmarkFixture, dialect: str, reader: str, count: int, feed: Feed
) -> None:
    read = EVERYBODY[reader](dialect, feeds(dialect, count, feed))
    said = measure(
        benchmark, read, group="text", dialect=dialect, reader=reader, events=count, feed=feed
    )
    assert said == text(count, dialect)
