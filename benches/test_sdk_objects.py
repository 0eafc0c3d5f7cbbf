"""The objects of the SDKs: as output of `deltafold.compat`, and as input of `stream` and `Fold`.

The stream comes from a transport inside the process; opening it is a part of the time of the
output. The input has been read before.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, feeds, text
from deltafold import Fold, stream
from deltafold.compat import anthropic, openai
from measuring import together
from transports import anthropic_client, openai_client

if TYPE_CHECKING:
    from any_name import AnyName

EVENTS: Final = 2000
STREAM_OF_OBJECTS: Final = "deltafold.stream(objects)"
FOLD_OF_OBJECTS: Final = "Fold.feed(object)"
DUMPED: Final = "model_dump_json, Fold"
Objects = Callable[[], Iterable[object]]


def opening(dialect: str) -> Objects:
    """Return a function that sends a request through the SDK's client."""
    chunks = feeds(dialect, EVENTS, "1 event")
    question: dict[str, Any] = {"model": "m", "messages": [], "stream": True}
    if dialect == "openai-chat":
        create: Any = openai_client(chunks).chat.completions.create
        return partial(create, **question)
    create = anthropic_client(chunks).messages.create
    return partial(create, **question, max_tokens=10)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sdk_objects(benchmark: BenchmarkFixture, dialect: str) -> None:
    opened = opening(dialect)
    objects: Any = openai.chunks if dialect == "openai-chat" else anthropic.events
    reads = {
        "SDK": lambda: sum(1 for _ in opened()),
        "deltafold.compat": lambda: sum(1 for _ in objects(opened())),
    }
    counts = together(benchmark, reads, group="sdk objects", dialect=dialect, events=EVENTS)
    assert len(set(counts.values())) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_objects_as_input(benchmark: BenchmarkFixture, dialect: "AnyName") -> None:
    objects: Any = list(opening(dialect)())

    def streamed() -> str:
        with stream(objects) as reading:
            return reading.final_message().text

    def folded() -> str:
        fold = Fold(dialect)
        for one in objects:
            fold.feed(one)
        fold.close()
        return fold.message.text

    def dumped() -> str:
        fold = Fold(dialect)
        for one in objects:
            fold.feed(b"data: %b\n\n" % one.model_dump_json(exclude_none=True).encode())
        fold.close()
        return fold.message.text

    reads = {STREAM_OF_OBJECTS: streamed, FOLD_OF_OBJECTS: folded, DUMPED: dumped}
    said = together(benchmark, reads, group="objects as input", dialect=dialect, events=EVENTS)
    assert set(said.values()) == {text(EVENTS, dialect)}
