"""A parsed view of arguments after every delta: ours, and jiter's partial mode on the text so far.

jiter is given slices of the whole text, so that what a caller pays for keeping the text so far is
left out; ours is given the deltas.
"""

import json
from collections.abc import Callable

import jiter
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from deltafold import Output, PartialJson
from deltafold.streams.output_streams import Expected, OutputStream
from documents import DELTA_BYTES, SHAPES, Shape, deltas, document
from measuring import measure, together

SIZES = (1_000, 10_000, 100_000, 1_000_000)

VIEW_SIZE = 100_000

CHANGING: tuple[Shape, ...] = ("escaped ASCII", "structured")


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


def by_changes(pieces: list[bytes]) -> Callable[[], PartialJson]:
    def read() -> PartialJson:
        reader = PartialJson()
        for piece in pieces:
            reader.feed(piece)
            reader.changes()
        return reader

    return read


def chat_events(pieces: list[bytes]) -> list[bytes]:
    """Return the events of a Chat stream that says these pieces."""
    chunks: list[dict[str, object]] = [
        {"index": 0, "delta": {"content": piece.decode()}} for piece in pieces
    ]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    bodies = ({"id": "a", "model": "m", "choices": [chunk]} for chunk in chunks)
    return [*(b"data: %b\n\n" % json.dumps(body).encode() for body in bodies), b"data: [DONE]\n\n"]


def by_partial(events: list[bytes]) -> Callable[[], object]:
    """Return a reader of a stream that looks at the partial output after every delta."""
    expected = Expected[object, object](Output.of({"type": "object"}))

    def read() -> object:
        value: object = None
        with OutputStream(expected, iter(events), "openai-chat") as stream:
            for _ in stream:
                value = stream.partial
        return value

    return read


def by_deltas(events: list[bytes]) -> Callable[[], object]:
    """Return a reader of the same stream that does not look at the output."""
    expected = Expected[object, object](Output.of({"type": "object"}))

    def read() -> object:
        with OutputStream(expected, iter(events), "openai-chat") as stream:
            for _ in stream:
                pass
        return stream.partial

    return read


@pytest.mark.parametrize("shape", CHANGING)
def test_partial(benchmark: BenchmarkFixture, shape: Shape) -> None:
    text = document(shape, VIEW_SIZE)
    pieces = deltas(text)
    events = chat_events(pieces)
    changes = by_changes(pieces)
    reads: dict[str, Callable[[], object]] = {
        "stream.partial": by_partial(events),
        "stream": by_deltas(events),
        "changes()": lambda: changes().value(),
    }
    about = {"shape": shape, "bytes": VIEW_SIZE, "deltas": len(pieces)}
    known = together(benchmark, reads, group="outputs", **about)
    assert all(value == json.loads(text) for value in known.values())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", CHANGING)
def test_changes(benchmark: BenchmarkFixture, shape: Shape, size: int) -> None:
    text = document(shape, size)
    pieces = deltas(text)
    about = {"reader": "changes()", "shape": shape, "bytes": size, "deltas": len(pieces)}
    known = measure(benchmark, by_changes(pieces), group="views", **about)
    assert known.value() == json.loads(text)


@pytest.mark.parametrize("shape", CHANGING)
def test_growing_changes(benchmark: BenchmarkFixture, shape: Shape) -> None:
    texts = {"small": document(shape, min(SIZES)), "large": document(shape, max(SIZES))}
    pieces = {size: deltas(text) for size, text in texts.items()}
    reads = {size: by_changes(some) for size, some in pieces.items()}
    sizes = {size: len(some) for size, some in pieces.items()}
    known = together(benchmark, reads, group="growth", what="changes()", shape=shape, **sizes)
    assert all(known[size].value() == json.loads(text) for size, text in texts.items())
