"""Text of 2,000 events in Responses and Gemini, beside assemblers written for them alone."""

import json
from collections.abc import Callable, Sequence

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import large_feeds
from hand_written_more import Gemini, OpenAIResponses
from measuring import together
from readers import FOLD, ORJSON, Said, fold

EVENTS = 2_000
WORDS = (" the", " stream", " of", " words", " flows", " on", ",", " and", " folds", " up")


def event(value: dict[str, object], *, named: bool) -> bytes:
    name = f"event: {value['type']}\n".encode() if named else b""
    return name + b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def responses_events() -> list[bytes]:
    response: dict[str, object] = {
        "id": "resp_68af4030592c81938ec0a5fbab4a3e9f",
        "object": "response",
        "model": "gpt-5-mini-2025-08-07",
        "output": [],
    }
    item = "msg_68af40337e58819392e935fb404414d005fbb5ddbfae6f90"
    usage = {"input_tokens": 12, "output_tokens": EVENTS, "total_tokens": 12 + EVENTS}
    texts: list[dict[str, object]] = [
        {
            "type": "response.output_text.delta",
            "sequence_number": at + 4,
            "item_id": item,
            "output_index": 0,
            "content_index": 0,
            "delta": WORDS[at % len(WORDS)],
            "logprobs": [],
            "obfuscation": "xJ3kQ9aWcZ",
        }
        for at in range(EVENTS - 2)
    ]
    whole: list[dict[str, object]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        *texts,
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "usage": usage},
        },
    ]
    return [event(value, named=True) for value in whole]


def gemini_events() -> list[bytes]:
    return [
        event(
            {
                "candidates": [
                    {
                        "content": {"parts": [{"text": WORDS[at % len(WORDS)]}], "role": "model"},
                        "index": 0,
                        **({"finishReason": "STOP"} if at == EVENTS - 1 else {}),
                    }
                ],
                "usageMetadata": {
                    "promptTokenCount": 12,
                    "candidatesTokenCount": at + 1,
                    "totalTokenCount": 13 + at,
                    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
                },
                "modelVersion": "gemini-2.5-flash",
                "responseId": "O9quaIuqMpGfz7IP9tyM6Ak",
            },
            named=False,
        )
        for at in range(EVENTS)
    ]


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
    chunks = large_feeds(responses_events() if of_responses else gemini_events())
    reads = {
        FOLD: fold(dialect, chunks),
        ORJSON: hand_written(OpenAIResponses if of_responses else Gemini, chunks),
    }
    said = together(benchmark, reads, group="other dialects", dialect=dialect, events=EVENTS)
    assert len(set(said.values())) == 1
