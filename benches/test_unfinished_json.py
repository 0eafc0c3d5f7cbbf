"""A parsed view of arguments after every delta: ours, and jiter's partial mode on the text so far.

jiter is given slices of the whole text, so that what a caller pays for keeping the text so far is
left out; ours is given the deltas.
"""

import json
from collections.abc import Callable

import jiter
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from deltafold import PartialJson
from documents import DELTA_BYTES, SHAPES, Shape, deltas, document
from measuring import measure, together

SIZES = (1_000, 10_000, 100_000, 1_000_000)

VIEW_SIZE = 100_000


def by_us(pieces: list[bytes]) -> Callable[[], object]:
    def read() -> object:
        reader = PartialJson()
        value: object = None
        for piece in pieces:
            reader.feed(piece)
            value = reader.value()
        return value

    return read


def by_jiter(text: bytes) -> Callable[[], object]:
    ends = range(DELTA_BYTES, len(text) + DELTA_BYTES, DELTA_BYTES)

    def read() -> object:
        value: object = None
        for end in ends:
            value = jiter.from_json(text[:end], partial_mode="trailing-strings")
        return value

    return read


@pytest.mark.parametrize("shape", SHAPES)
def test_value(benchmark: BenchmarkFixture, shape: Shape) -> None:
    text = document(shape, VIEW_SIZE)
    pieces = deltas(text)
    reads = {"value()": by_us(pieces), "jiter": by_jiter(text)}
    about = {"shape": shape, "bytes": VIEW_SIZE, "deltas": len(pieces)}
    known = together(benchmark, reads, group="views", **about)
    assert all(value == json.loads(text) for value in known.values())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", ["escaped ASCII", "structured"])
def test_changes(benchmark: BenchmarkFixture, shape: Shape, size: int) -> None:
    text = document(shape, size)
    pieces = deltas(text)

    def read() -> PartialJson:
        reader = PartialJson()
        for piece in pieces:
            reader.feed(piece)
            reader.changes()
        return reader

    about = {"reader": "changes()", "shape": shape, "bytes": size, "deltas": len(pieces)}
    known = measure(benchmark, read, group="views", **about)
    assert known.value() == json.loads(text)
