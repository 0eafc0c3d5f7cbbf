"""Streams whose blank lines were lost: each line of data is an event.

Source: docs/protocols/decoding.md#g16.
"""

from typing import Any, Final, cast

import pytest

import deltafold
from corpus import FIXTURES
from deltafold import ErrorCode, MessageAssembler
from splits import everywhere, sized

STREAMS: Final = sorted(FIXTURES.glob("*/*/wire.sse"))
NAMES: Final = [f"{path.parent.parent.name}/{path.parent.name}" for path in STREAMS]
OTHERS: Final = {
    "openai-chat/multi-line-data": "one of its events has its JSON on several lines",
    "openai-chat/keep-alives": "one of its lines of data is no JSON",
    "gemini/error-mid-stream": "only the blank lines tell which event the name `error` has",
    "gemini-interactions/type-only-in-event-name": "only the blank lines tell whose the names are",
    "openai-responses/type-only-in-event-name": "only the blank lines tell whose the names are",
}
GEMINI: Final = (
    b'data: {"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}\n'
    b'data: {"candidates":[{"content":{"parts":[{"text":"lo"}]},"finishReason":"STOP"}]}'
)


def without_blanks(body: bytes) -> bytes:
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"\n".join(line for line in lines if line)


def told(folded: MessageAssembler) -> tuple[dict[str, Any], ErrorCode | None]:
    message = folded.snapshot().to_dict()
    for name in ("id", "timestamp"):
        del message[name]
    error = folded.error
    return message, None if error is None else error.code


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_without_blank_lines_is_the_same_message(name: str) -> None:
    dialect = cast("Any", name.partition("/")[0])
    body = STREAMS[NAMES.index(name)].read_bytes()
    bare = without_blanks(body)
    whole, expected = deltafold.fold_many([bare, body], dialect, run_id="run")
    assert (told(whole) == told(expected)) == (name not in OTHERS)
    for size in (1, 7, 64, 1000):
        folded = deltafold.Fold(dialect, run_id="run")
        for piece in sized(bare, size):
            folded.feed(piece)
        folded.close()
        assert told(folded.assembler) == told(whole)


def test_the_others_exist() -> None:
    assert set(OTHERS) <= set(NAMES)


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\r\n\r\n"])
def test_two_lines_are_two_events_wherever_they_are_cut(end: bytes) -> None:
    _, message = everywhere("gemini", GEMINI + end)
    assert (message.text, message.meta.finish_reason) == ("Hello", "stop")


def test_a_last_line_that_is_cut_is_dropped() -> None:
    deltas, message = everywhere("gemini", GEMINI[:-9])
    assert (message.text, deltas[-1].error_code) == ("Hel", ErrorCode.CONNECTION_LOST)


def test_json_over_several_lines_stays_one_event() -> None:
    printed = b'data: {"candidates": [\ndata: {"content": {"parts": [{"text": "Hi"}]},'
    end = b'\ndata: "finishReason": "STOP"}]}'
    assert everywhere("gemini", printed + end)[1].text == "Hi"
    deltas, message = everywhere("gemini", printed)
    assert (message.text, deltas[-1].error_code) == ("", ErrorCode.CONNECTION_LOST)


def test_a_wrong_line_between_others_is_an_error() -> None:
    first, second = GEMINI.splitlines()
    deltas, message = everywhere("gemini", first + b"\ndata: {]\n" + second)
    assert (message.text, deltas[-1].error_code) == ("Hel", ErrorCode.PROTOCOL_ERROR)
