"""Text of 2,000 events in Responses and Gemini, beside assemblers written for them alone."""

from collections.abc import Callable, Sequence

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import large_feeds
from hand_written_more import Gemini, OpenAIResponses
from measuring import together
from other_bodies import gemini_events, responses_events
from readers import FOLD, ORJSON, Said, fold

EVENTS = 2_000


def hand_written(
    assembler: type[OpenAIResponses] | type[Gemini], chunks: Sequence[bytes]
) -> Callable[[], Said]:
    def read() -> Said:
        reading = assembler()
        for _ in reading.run(chunks):
            pass
        text: str = reading.message["text"]
        return text

    return read


@pytest.mark.parametrize("dialect", ["openai-responses", "gemini"])
def test_text_of_other_dialects(benchmark: BenchmarkFixture, dialect: str) -> None:
    of_responses = dialect == "openai-responses"
    chunks = large_feeds(responses_events(EVENTS) if of_responses else gemini_events(EVENTS))
    reads = {
        FOLD: fold(dialect, chunks),
        ORJSON: hand_written(OpenAIResponses if of_responses else Gemini, chunks),
    }
    said = together(benchmark, reads, group="other dialects", dialect=dialect, events=EVENTS)
    assert len(set(said.values())) == 1
