"""Arguments of a tool call in deltas of twelve bytes and of one character, to the parsed object.

Most peers grow faster than the arguments, so that the large ones are left to those who do not.
"""

import json

import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, arguments_feeds
from documents import document
from measuring import measure
from peers import FRAMEWORKS, SDKS
from readers import BATCHES, FOLD, HAND_WRITTEN, ORJSON, OURS, MakeRead

EVERYBODY: dict[str, MakeRead] = OURS | HAND_WRITTEN | SDKS | FRAMEWORKS
LINEAR = (FOLD, BATCHES, *HAND_WRITTEN)

ROWS = [
    *((reader, 1_000, 12) for reader in (*LINEAR, *SDKS, *FRAMEWORKS)),
    *((reader, 10_000, 12) for reader in (FOLD, ORJSON, *FRAMEWORKS)),
    *((reader, 100_000, 12) for reader in (*LINEAR, *SDKS, "pydantic-ai")),
    *((reader, 1_000_000, 12) for reader in (FOLD, ORJSON)),
    *((reader, 1_000, 1) for reader in (FOLD, ORJSON)),
    *((reader, 100_000, 1) for reader in (FOLD, ORJSON)),
]


@pytest.mark.parametrize(("reader", "size", "delta"), ROWS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_arguments(
    benchmark: BenchmarkFixture, dialect: str, reader: str, size: int, delta: int
) -> None:
    text = document("escaped ASCII", size)
    chunks = arguments_feeds(dialect, text, delta)
    read = EVERYBODY[reader](dialect, chunks)
    said = measure(
        benchmark, read, group="arguments", dialect=dialect, reader=reader, bytes=size, delta=delta
    )
    assert (orjson.loads(said) if isinstance(said, str) else said) == json.loads(text)
