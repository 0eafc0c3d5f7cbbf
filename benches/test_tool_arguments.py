"""Arguments of a tool call in deltas of twelve bytes and of one character, to the parsed object.

Most peers grow faster than the arguments, so that the large ones are left to those who do not.
"""

import json

import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, arguments_feeds
from documents import document
from measuring import measure, together
from peers import FRAMEWORKS, SDK_HELPER, SDKS
from readers import BATCHES, FOLD, HAND_WRITTEN, ORJSON, OURS, MakeRead, Said

EVERYBODY: dict[str, MakeRead] = OURS | HAND_WRITTEN | SDKS | FRAMEWORKS

COMPARED = (
    (1_000, 12, (FOLD, BATCHES, *HAND_WRITTEN)),
    (10_000, 12, (FOLD, ORJSON)),
    (100_000, 12, (FOLD, BATCHES, *HAND_WRITTEN)),
    (1_000_000, 12, (FOLD, ORJSON)),
    (1_000, 1, (FOLD, ORJSON)),
    (100_000, 1, (FOLD, ORJSON)),
)

# Characters of a delta, and two sizes of which a byte must cost the same.
GROWING = ((12, 100_000, 1_000_000), (1, 1_000, 100_000))

PEERS = [
    *((reader, 1_000) for reader in SDKS | FRAMEWORKS),
    *((reader, 10_000) for reader in (SDK_HELPER, *FRAMEWORKS)),
    *((reader, 100_000) for reader in (*SDKS, "pydantic-ai")),
]


def parsed(said: Said) -> object:
    """Return the text; some readers leave the joining to their caller."""
    return orjson.loads(said) if isinstance(said, str) else said


@pytest.mark.parametrize(("size", "delta", "readers"), COMPARED)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_arguments(
    benchmark: BenchmarkFixture, dialect: str, size: int, delta: int, readers: tuple[str, ...]
) -> None:
    text = document("escaped ASCII", size)
    chunks = arguments_feeds(dialect, text, delta)
    reads = {reader: EVERYBODY[reader](dialect, chunks) for reader in readers}
    about = {"dialect": dialect, "bytes": size, "delta": delta}
    said = together(benchmark, reads, group="arguments", **about)
    assert all(parsed(one) == json.loads(text) for one in said.values())


@pytest.mark.parametrize(("delta", "small", "large"), GROWING)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_growing_arguments(
    benchmark: BenchmarkFixture, dialect: str, delta: int, small: int, large: int
) -> None:
    texts = {"small": document("escaped ASCII", small), "large": document("escaped ASCII", large)}
    reads = {
        size: OURS[FOLD](dialect, arguments_feeds(dialect, text, delta))
        for size, text in texts.items()
    }
    about = {"what": "arguments", "dialect": dialect, "delta": delta}
    sizes = {size: len(text) for size, text in texts.items()}
    said = together(benchmark, reads, group="growth", **about, **sizes)
    assert all(parsed(said[size]) == json.loads(text) for size, text in texts.items())


@pytest.mark.parametrize(("reader", "size"), PEERS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_arguments_of_peers(
    benchmark: BenchmarkFixture, dialect: str, reader: str, size: int
) -> None:
    text = document("escaped ASCII", size)
    read = EVERYBODY[reader](dialect, arguments_feeds(dialect, text, 12))
    about = {"dialect": dialect, "reader": reader, "bytes": size, "delta": 12}
    assert parsed(measure(benchmark, read, group="arguments", **about)) == json.loads(text)
