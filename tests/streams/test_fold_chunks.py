"""`fold()` of chunks in a list: the message of a stream over the same chunks, and its errors."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

import pytest

import deltafold
from any_name import AnyName
from corpus import FIXTURES
from deltafold import MisuseError, ModelError
from deltafold.streams.options import DecoderOptions
from protocol_bodies import ANTHROPIC, CHAT, DONE, WHOLE, finish, said
from splits import now, sized

CASES = [
    path
    for path in sorted(FIXTURES.glob("*/*/wire.*"))
    if path.parts[-3] in deltafold.dialect_names()
]


def told(made: Callable[[], deltafold.Message]) -> object:
    """Return the message without its made-up id, or the failure with the partial message."""
    try:
        message = made()
    except ModelError as error:
        partial_message = error.partial_message
        facts = error.code, error.message, error.retryable, error.status, error.provider_code
        more = error.retry_after, error.http_request_id, error.body, error.warnings
        return facts, more, None if partial_message is None else without_id(partial_message)
    return without_id(message)


def without_id(message: deltafold.Message) -> dict[str, object]:
    members = message.to_dict()
    del members["id"]
    return members


def streamed(
    chunks: Iterable[bytes], dialect: AnyName, **options: Unpack[DecoderOptions]
) -> deltafold.Message:
    with deltafold.stream((chunk for chunk in chunks), dialect, **options) as stream:
        return stream.final_message()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parts[-3]}/{path.parts[-2]}")
def test_a_list_of_chunks_gives_the_message_of_a_stream(path: Path) -> None:
    dialect, body = cast("Any", path.parts[-3]), path.read_bytes()
    given: DecoderOptions = {"run_id": "run", "clock": now}
    for size in (1, 7, 100, max(1, len(body))):
        chunks = sized(body, size)
        expected = told(partial(streamed, chunks, dialect, **given))
        assert told(partial(deltafold.fold, chunks, dialect, **given)) == expected
        assert told(partial(deltafold.fold, tuple(chunks), dialect, **given)) == expected


def test_chunks_of_every_kind_of_bytes_are_folded() -> None:
    body = WHOLE[ANTHROPIC]
    chunks = cast("list[bytes]", [b"", body[:40], bytearray(body[40:90]), memoryview(body[90:])])
    assert deltafold.fold(chunks, ANTHROPIC).text == deltafold.fold(body, ANTHROPIC).text


def test_no_chunks_are_an_empty_body() -> None:
    for chunks in ([], [b""]):
        with pytest.raises(ModelError, match="the body is empty"):
            deltafold.fold(chunks, CHAT)


def test_chunks_after_the_end_are_not_looked_at() -> None:
    chunks = cast("list[bytes]", [said("Hi"), finish("stop") + DONE, "no bytes"])
    assert deltafold.fold(chunks, CHAT).text == "Hi"


def test_a_chunk_that_is_no_bytes_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^data must be bytes, .* not str: .text. is item 1,"):
        deltafold.fold(cast("list[bytes]", [said("Hi"), "text"]), CHAT)


def test_lines_that_have_lost_their_ends_are_refused() -> None:
    lines = (said("one") + said("two") + DONE).split(b"\n")
    for body in (lines, [b"", *lines], tuple(line for line in lines if line)):
        with pytest.raises(MisuseError) as raised:
            deltafold.fold(body, CHAT)
        with pytest.raises(MisuseError) as expected:
            streamed(body, CHAT)
        assert str(raised.value) == str(expected.value)


def test_options_count_as_they_do_for_a_stream() -> None:
    chunks = [said("<think>a</think>b"), finish("stop") + DONE]
    options: list[dict[str, object]] = [
        {"markup": "think"},
        {"model_id": "asked", "request_id": "r"},
        {"headers": {"retry-after": "7", "x-request-id": "h"}},
        {"status": 429, "headers": {"retry-after": "7"}},
        {"status": 503},
        {"choice": 1},
    ]
    for given in options:
        own = cast("DecoderOptions", {"run_id": "run", "clock": now, **given})
        expected = told(partial(streamed, chunks, CHAT, **own))
        assert told(partial(deltafold.fold, chunks, CHAT, **own)) == expected, given


def test_mistakes_of_the_caller_raise() -> None:
    with pytest.raises(deltafold.UnknownDialectError):
        deltafold.fold([b""], cast("Any", "no-dialect"))
    with pytest.raises(ValueError, match='choice="all"'):
        deltafold.fold([b""], CHAT, choice=cast("int", "all"))
    with pytest.raises(TypeError):
        deltafold.fold([b""], CHAT, **cast("DecoderOptions", {"no_option": 1}))


def test_an_exception_of_the_clock_is_the_callers_own() -> None:
    def broken() -> datetime:
        raise LookupError("no time")

    with pytest.raises(LookupError, match="no time"):
        deltafold.fold([WHOLE[CHAT]], CHAT, clock=broken)
