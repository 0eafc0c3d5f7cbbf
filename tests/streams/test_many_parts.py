"""Streams of many parts that are no text: each way of reading finds the text that follows them.

`rust/benches` counts the work.
"""

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Final

import pytest

import deltafold
from deltafold import Fold

MANY: Final = 500
BLOCKS: Final[dict[str, dict[str, Any]]] = {
    "calls": {"type": "tool_use", "name": "f", "input": {}},
    "images": {"type": "image", "source": {"type": "url", "url": "https://a.example/b"}},
    "provider parts": {"type": "new_block", "x": 1},
    "empty texts": {"type": "text", "text": "", "citations": [{"type": "x", "cited_text": "a"}]},
}


def event(kind: str, **members: object) -> bytes:
    return b"data: " + json.dumps({"type": kind, **members}).encode() + b"\n\n"


def part(index: int, block: dict[str, Any]) -> bytes:
    if block["type"] == "tool_use":
        block = {**block, "id": f"call_{index}"}
    start = event("content_block_start", index=index, content_block=block)
    return start + event("content_block_stop", index=index)


def text(index: int, written: str) -> bytes:
    return part(index, {"type": "text", "text": written})


def chunks(block: dict[str, Any]) -> list[bytes]:
    """Return a stream with the JSON `[1,2]`, of which each half follows many parts."""
    message: dict[str, object] = {"id": "m", "model": "c", "role": "assistant", "content": []}
    return [
        event("message_start", message=message),
        *(part(index, block) for index in range(MANY)),
        text(MANY, "[1,"),
        *(part(index, block) for index in range(MANY + 1, 2 * MANY)),
        text(2 * MANY, "2]"),
        event("message_delta", delta={"stop_reason": "end_turn"}),
        event("message_stop"),
    ]


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("way", ["deltas", "batches", "text", "message"])
def test_the_first_text_after_many_parts_has_its_time(kind: str, way: str) -> None:
    given = chunks(BLOCKS[kind])
    times: list[float | None] = []

    def read() -> Iterator[bytes]:
        for chunk in given:
            times.append(stream.timing.time_to_first_text)
            yield chunk

    with deltafold.stream(read(), "anthropic-messages") as stream:
        ways: dict[str, Iterable[object]] = {
            "deltas": stream,
            "batches": stream.batches(),
            "text": stream.text(),
        }
        for _ in ways.get(way, ()):
            pass
        message = stream.final_message()
    assert message.text == "[1,2]"
    assert len(message.parts) == 2 * MANY + 1
    assert [seen is None for seen in times] == [number <= MANY + 1 for number in range(len(given))]


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("way", ["deltas", "batches", "text", "message"])
def test_an_awaited_stream_times_it_too(kind: str, way: str) -> None:
    given = chunks(BLOCKS[kind])
    times: list[float | None] = []

    async def main() -> None:
        async def read() -> AsyncIterator[bytes]:
            for chunk in given:
                times.append(stream.timing.time_to_first_text)
                yield chunk

        async with deltafold.astream(read(), "anthropic-messages") as stream:
            ways: dict[str, AsyncIterable[object]] = {
                "deltas": stream,
                "batches": stream.batches(),
                "text": stream.text(),
            }
            if way in ways:
                async for _ in ways[way]:
                    pass
            assert (await stream.final_message()).text == "[1,2]"

    asyncio.run(main())
    assert [seen is None for seen in times] == [number <= MANY + 1 for number in range(len(given))]


@pytest.mark.parametrize("kind", BLOCKS)
def test_json_of_an_answer_goes_on_behind_many_parts(kind: str) -> None:
    fold = Fold("anthropic-messages")
    reader = fold.assembler.follow_json()
    given = chunks(BLOCKS[kind])
    values: list[object] = []
    for chunk in given:
        fold.feed(chunk)
        values.append(json.loads(json.dumps(reader.value())))
    assert values[MANY] is None
    assert values[MANY + 1] == values[2 * MANY] == [1]
    assert values[-1] == [1, 2]


def test_arguments_of_a_call_are_followed_behind_many_parts() -> None:
    fold = Fold("anthropic-messages")
    reader = fold.assembler.follow_json("g")
    *begun, _, _ = chunks(BLOCKS["calls"])
    at = 2 * MANY + 1
    call: dict[str, object] = {"type": "tool_use", "id": "g", "name": "g", "input": {}}
    pieces = [
        event(
            "content_block_delta", index=at, delta={"type": "input_json_delta", "partial_json": j}
        )
        for j in ("[1", ",2", "]")
    ]
    values: list[object] = []
    for chunk in (*begun, event("content_block_start", index=at, content_block=call), *pieces):
        fold.feed(chunk)
        values.append(json.loads(json.dumps(reader.value())))
    assert values[-5:] == [None, None, [], [1], [1, 2]]
