"""`astream` over an asynchronous generator of chunks, against the iteration of the generator alone.

A generator that waits yields to the event loop before each chunk, as a socket does. One that never
waits costs less than decoding.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Final

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, feeds, text
from deltafold import astream
from measuring import together

if TYPE_CHECKING:
    from any_name import AnyName

ALONE: Final = "the generator alone"
DELTAS: Final = "astream(), every delta"
EVENTS: Final = 2_000
SOURCES: Final = {"waits": True, "never waits": False}


async def generated(chunks: Sequence[bytes], *, waits: bool) -> AsyncIterator[bytes]:
    for chunk in chunks:
        if waits:
            await asyncio.sleep(0)
        yield chunk


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_astream(benchmark: BenchmarkFixture, dialect: "AnyName", source: str) -> None:
    chunks = feeds(dialect, EVENTS, "1 event")
    waits = SOURCES[source]

    async def alone() -> str:
        async for _ in generated(chunks, waits=waits):
            pass
        return ""

    async def deltas() -> str:
        async with astream(generated(chunks, waits=waits), dialect) as stream:
            async for delta in stream:
                _ = delta.text
            return (await stream.final_message()).text

    with asyncio.Runner() as runner:
        reads: dict[str, Callable[[], str]] = {
            ALONE: lambda: runner.run(alone()),
            DELTAS: lambda: runner.run(deltas()),
        }
        about = {"dialect": dialect, "source": source, "events": EVENTS}
        said = together(benchmark, reads, group="asynchronous", **about)
    assert said[DELTAS] == text(EVENTS, dialect)
