"""Text streams of two lengths through everybody, in large feeds and one event at a time."""

from typing import cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, FEEDS, LENGTHS, Feed, feeds, text
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
    about = cast("dict[str, object]", benchmark.extra_info)
    about.update({"dialect": dialect, "reader": reader, "events": count, "feed": feed})
    benchmark(read)
