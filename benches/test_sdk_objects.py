"""The objects of the SDKs from their own streams and from `deltafold.compat`, of the same response.

The stream comes from a transport inside the process; opening it is a part of the time.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, feeds
from deltafold.compat import anthropic, openai
from measuring import together
from transports import anthropic_client, openai_client

EVENTS: Final = 2000
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
