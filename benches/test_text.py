"""Text streams, long and of the usual length, through everybody, in large feeds and one event at a
time.
"""

import pytest
from bodies import DIALECTS, FEEDS, LENGTHS, Feed, feeds, text
from pytest_benchmark.fixture import BenchmarkFixture
from readers import READERS


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_text(
    benchmark: BenchmarkFixture, dialect: str, reader: str, count: int, feed: Feed
) -> None:
    read = READERS[reader](dialect, feeds(dialect, count, feed))
    assert read() == text(count, dialect)
    benchmark.extra_info.update(
        {"dialect": dialect, "reader": reader, "events": count, "feed": feed}
    )
    benchmark(read)
