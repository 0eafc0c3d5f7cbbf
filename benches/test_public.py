"""The public path: `stream()` over chunks of one event, as providers send them."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, feeds, text
from measuring import together
from readers import HAND_WRITTEN, PUBLIC


@pytest.mark.parametrize("count", [2000, 20])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_public_path(benchmark: BenchmarkFixture, dialect: str, count: int) -> None:
    chunks = feeds(dialect, count, "1 event")
    reads = {name: make(dialect, chunks) for name, make in (PUBLIC | HAND_WRITTEN).items()}
    said = together(benchmark, reads, group="public", dialect=dialect, events=count)
    assert set(said.values()) == {text(count, dialect)}
