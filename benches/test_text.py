"""Text streams of three lengths through everybody, in large feeds and one event at a time."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, Feed, feeds, text
from measuring import measure, together
from peers import CONVERTERS, FRAMEWORKS, SDKS
from readers import HAND_WRITTEN, OURS, MakeRead

COMPARED: dict[str, MakeRead] = OURS | HAND_WRITTEN
PEERS: dict[str, MakeRead] = CONVERTERS | SDKS | FRAMEWORKS


@pytest.mark.parametrize(
    ("count", "feed"),
    [(2000, "16 KiB"), (20_000, "16 KiB"), (2000, "1 event"), (20, "16 KiB"), (20, "1 event")],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_text(benchmark: BenchmarkFixture, dialect: str, count: int, feed: Feed) -> None:
    chunks = feeds(dialect, count, feed)
    reads = {name: make(dialect, chunks) for name, make in COMPARED.items()}
    said = together(benchmark, reads, group="text", dialect=dialect, events=count, feed=feed)
    assert set(said.values()) == {text(count, dialect)}


# A slow reader is measured once; small feeds would not change its result.
@pytest.mark.parametrize(
    ("reader", "count"), [*((name, 2000) for name in PEERS), *((name, 20) for name in SDKS)]
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_of_peers(benchmark: BenchmarkFixture, dialect: str, reader: str, count: int) -> None:
    read = PEERS[reader](dialect, feeds(dialect, count, "16 KiB"))
    about = {"dialect": dialect, "reader": reader, "events": count, "feed": "16 KiB"}
    assert measure(benchmark, read, group="text", **about) == text(count, dialect)
