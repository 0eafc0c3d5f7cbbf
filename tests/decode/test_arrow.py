"""Columns of bodies become columns of messages: row by row what `deltafold.fold` makes of them."""

import random
import signal
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import deltafold
from any_name import AnyName
from arrow_rows import assert_rows, row_of
from corpus import needs_corpus, recorded
from deltafold import dialect_names
from deltafold._core import fold_columns
from deltafold.arrow import Arrow
from deltafold.testing import Recording
from fixture_bodies import CASES, body_of, mutated
from protocol_bodies import ANTHROPIC, CHAT, DONE, WHOLE, call_chunk, chunk, finish, said

pa: Any = pytest.importorskip("pyarrow")


def bodies_of(dialect: str) -> list[bytes]:
    """Return the fixtures of a dialect, and damaged ones."""
    chance = random.Random(dialect)  # noqa: S311 - bodies, not secrets
    whole = [body for case in CASES for name, body in [body_of(case)] if name == dialect]
    return [*whole, b"", *(mutated(chance, whole) for _ in range(100))]


@pytest.mark.parametrize("dialect", dialect_names())
def test_each_row_is_the_message_of_its_body(dialect: AnyName) -> None:
    bodies = bodies_of(dialect)
    folded = deltafold.arrow.fold(pa.array(bodies), dialect, logprobs=True)
    assert_rows(folded, [row_of(body, dialect, logprobs=True) for body in bodies])


@needs_corpus
@pytest.mark.parametrize("dialect", dialect_names())
def test_each_recording_is_a_row(dialect: AnyName) -> None:
    bodies = [body for _, body in recorded(dialect)]
    folded = deltafold.arrow.fold(pa.array(bodies), dialect, logprobs=True)
    assert_rows(folded, [row_of(body, dialect, logprobs=True) for body in bodies])


def test_the_dialects_may_be_a_column_with_a_dictionary_or_without() -> None:
    cases = [body_of(case) for case in CASES if "+" not in case.parent.name]
    names = [dialect for dialect, _ in cases]
    bodies = pa.array([body for _, body in cases])
    expected = [row_of(body, dialect) for dialect, body in cases]
    plain = pa.array(names)
    for dialects in (plain, plain.dictionary_encode(), plain.cast(pa.large_string())):
        assert_rows(deltafold.arrow.fold(bodies, dialects), expected)


def test_a_dialect_may_name_a_markup() -> None:
    body = said("<think>why</think>yes") + finish("stop") + DONE
    (row,) = deltafold.arrow.fold(pa.array([body]), cast("Any", "openai-chat+deepseek")).to_pylist()
    assert (row["thinking"], row["text"]) == ("why", "yes")
    assert row["dialect"] == "openai-chat+deepseek"


def test_a_null_dialect_is_detected() -> None:
    bodies = pa.array([WHOLE[CHAT], WHOLE[ANTHROPIC], WHOLE[ANTHROPIC], b"what is this?"])
    expected = [
        row_of(WHOLE[CHAT], CHAT),
        row_of(WHOLE[ANTHROPIC], ANTHROPIC),
        row_of(WHOLE[ANTHROPIC], ANTHROPIC),
    ]
    for dialects in (None, pa.array([CHAT, None, ANTHROPIC, None])):
        folded = deltafold.arrow.fold(bodies, dialects)
        assert_rows(folded[:3], expected)
        (unknown,) = folded[3:].to_pylist()
        assert unknown["dialect"] is None
        assert unknown["error"]["code"] == "protocol_error"


TYPES = [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()]
VIEWS = [pa.binary_view(), pa.string_view()]


@pytest.mark.parametrize("kind", [*TYPES, *VIEWS, pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_every_type_of_text_and_bytes_is_read(kind: Arrow) -> None:
    bodies = [WHOLE[CHAT], None, b"", WHOLE[CHAT][:100]]
    expected = [None if body is None else row_of(body, CHAT) for body in bodies]
    if pa.types.is_dictionary(kind):
        column = pa.array(bodies, pa.string()).dictionary_encode()
    else:
        column = pa.array(bodies, pa.binary()).cast(pa.string()).cast(kind)
    assert_rows(deltafold.arrow.fold(column, CHAT), expected)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("start", [0, 1, 7, 8, 9, 21])
def test_a_slice_is_read_from_its_first_row(kind: Arrow, start: int) -> None:
    bodies = [
        None if number % 3 == 1 else said(f"number {number}") + finish("stop")
        for number in range(30)
    ]
    whole = pa.array(bodies, kind)
    part = slice(start, start + 9)
    expected = [None if body is None else row_of(body, CHAT) for body in bodies[part]]
    dialects = pa.array([CHAT] * 30)
    statuses = pa.array([200] * 30)
    assert_rows(deltafold.arrow.fold(whole[part], CHAT), expected)
    folded = deltafold.arrow.fold(whole[part], dialects[part], statuses=statuses[part])
    assert_rows(folded, expected)


def test_chunks_stay_chunks_and_columns_may_be_cut_elsewhere() -> None:
    bodies = [said(f"number {number}") + finish("stop") for number in range(20)]
    column = pa.chunked_array([bodies[:7], [], bodies[7:12], bodies[12:]])
    dialects = pa.chunked_array([[CHAT] * 5, [CHAT] * 15])
    folded = deltafold.arrow.fold(column, dialects)
    assert isinstance(folded, pa.ChunkedArray)
    assert_rows(folded, [row_of(body, CHAT) for body in bodies])


def test_an_empty_column_gives_an_empty_column() -> None:
    for empty in (pa.array([], pa.binary()), pa.array([]), pa.chunked_array([], pa.binary())):
        for dialects in (CHAT, None):
            folded = deltafold.arrow.fold(empty, dialects)
            assert (len(folded), folded.type) == (0, deltafold.arrow.message_type())
    assert deltafold.arrow.fold(pa.nulls(3), CHAT).to_pylist() == [None] * 3


class ForeignArray:
    """An array of another library: it has the C data interface alone."""

    def __init__(self, column: Arrow) -> None:
        self._column = column

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        pair: tuple[object, object] = self._column.__arrow_c_array__(requested_schema)
        return pair


class ForeignStream:
    """Chunks of another library."""

    def __init__(self, column: Arrow) -> None:
        self._column = column

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._column.__arrow_c_stream__(requested_schema)


def test_any_object_with_the_c_data_interface_is_a_column() -> None:
    expected = [row_of(WHOLE[CHAT], CHAT), None]
    array = ForeignArray(pa.array([WHOLE[CHAT], None]))
    assert_rows(deltafold.arrow.fold(array, CHAT), expected)
    stream = ForeignStream(pa.chunked_array([[WHOLE[CHAT]], [None]], pa.binary()))
    assert_rows(deltafold.arrow.fold(stream, CHAT), expected)


@pytest.mark.parametrize("threads", [None, 1, 2, 7])
def test_the_number_of_threads_changes_nothing(threads: int | None) -> None:
    bodies = [said(f"number {number}" * (number % 50)) + DONE for number in range(3_000)]
    folded = deltafold.arrow.fold(pa.array(bodies), CHAT, threads=threads)
    wanted = [f"number {number}" * (number % 50) for number in range(3_000)]
    assert folded.field("text").to_pylist() == wanted
    folded.validate(full=True)


def test_the_status_of_a_row_makes_a_refusal() -> None:
    body = b'{"error":{"message":"slow down","type":"rate_limit_error"}}'
    column = pa.array([body, WHOLE[CHAT], body])
    folded = deltafold.arrow.fold(column, CHAT, statuses=pa.array([429, None, 503]))
    codes = folded.field("error").field("code").to_pylist()
    assert codes == ["rate_limited", None, "rate_limited"]
    assert folded.field("error").field("status").to_pylist() == [429, None, 503]


def pieces_of(recordings: Sequence[Recording | None]) -> Arrow:
    """Return the column of the pieces of recordings."""
    kind = pa.list_(pa.struct([("after", pa.float64()), ("bytes", pa.int64())]))
    return pa.array(
        [
            recording
            and [{"after": after, "bytes": len(piece)} for after, piece in recording.pieces]
            for recording in recordings
        ],
        kind,
    )


def test_recorded_pieces_give_the_times_of_a_row() -> None:
    events = [chunk({"role": "assistant"}), chunk({"content": "a"}), finish("stop") + DONE]
    timed = Recording(tuple(zip((0.5, 0.25, 1.0), events, strict=True)))
    none = Recording(())
    bodies = pa.array([timed.body, timed.body, none.body, None])
    folded = deltafold.arrow.fold(bodies, CHAT, pieces=pieces_of([timed, None, none, timed]))
    times, *others = folded.field("timing").to_pylist()
    assert times == {
        "time_to_first_byte": 0.5,
        "time_to_first_delta": 0.5,
        "time_to_first_text": 0.75,
        "duration": 1.75,
    }
    assert others == [None] * 3
    assert folded.field("text").to_pylist() == ["a", "a", "", None]
    sliced = deltafold.arrow.fold(bodies[:1], CHAT, pieces=pieces_of([none, timed])[1:])
    assert sliced.field("timing").to_pylist() == [times]


def test_the_first_text_may_follow_other_parts() -> None:
    events = [
        chunk({"reasoning_content": "why"}),
        call_chunk("{}", name="f", id="c", index=0),
        chunk({"content": "a"}),
        finish("stop") + DONE,
    ]
    timed = Recording(tuple((1.0, event) for event in events))
    folded = deltafold.arrow.fold(pa.array([timed.body]), CHAT, pieces=pieces_of([timed]))
    (times,) = folded.field("timing").to_pylist()
    assert (times["time_to_first_delta"], times["time_to_first_text"]) == (1.0, 3.0)


@pytest.mark.parametrize("sizes", [[], [3], [0, 0], [10**9, 5], [-5, 7], [1] * 5000])
def test_sizes_that_do_not_fit_the_body_lose_nothing(sizes: list[int]) -> None:
    pieces = pa.array([[{"after": 0.1, "bytes": size} for size in sizes]])
    column = pa.array([WHOLE[CHAT]])
    folded = deltafold.arrow.fold(column, CHAT, pieces=pieces if sizes else pieces_of([None]))
    (row,) = folded.to_pylist()
    assert {**row, "timing": None} == deltafold.arrow.fold(column, CHAT).to_pylist()[0]


def test_made_up_ids_are_the_same_in_every_batch() -> None:
    call = b'"tool_calls":[{"function":{"name":"f","arguments":{}}}]'
    body = (
        b'{"model":"m","message":{"content":"",' + call + b'},"done":true,"done_reason":"stop"}\n'
    )
    one = deltafold.arrow.fold(pa.array([body]), "ollama").to_pylist()
    many = deltafold.arrow.fold(pa.array([b"", body, body]), "ollama").to_pylist()
    assert one[0]["tool_calls"][0]["id"]
    assert many[1:] == one * 2
    (other,) = deltafold.arrow.fold(pa.array([body]), "ollama", run_id="other").to_pylist()
    assert other["tool_calls"][0]["id"] != one[0]["tool_calls"][0]["id"]


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_row_whose_dialect_has_an_unknown_name_is_an_error_of_that_row(
    *, dictionary: bool
) -> None:
    body = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    names = pa.array([CHAT, "azure", None, "azure", ""])
    dialects = names.dictionary_encode() if dictionary else names
    folded = deltafold.arrow.fold(pa.array([body, body, body, None, body]), dialects)
    rows = folded.to_pylist()
    assert folded.field("text").to_pylist() == ["Hi", None, "Hi", None, None]
    assert [row and row["dialect"] for row in rows] == [CHAT, None, CHAT, None, None]
    assert rows[3] is None
    assert rows[1]["error"]["code"] == "protocol_error"
    assert rows[1]["error"]["message"] == 'there is no dialect "azure"'
    assert rows[1]["tool_calls"] is None
    assert rows[4]["error"]["message"] == 'there is no dialect ""'
    folded.validate(full=True)


def test_a_column_of_unknown_names_alone_is_a_column_of_errors() -> None:
    folded = deltafold.arrow.fold(pa.array([b"", b"x"]), pa.array(["morse", "flags"]))
    codes = folded.field("error").field("code").to_pylist()
    assert codes == ["protocol_error", "protocol_error"]


def test_mistakes_of_the_caller_raise() -> None:
    column = pa.array([b""])
    fold: Callable[..., Any] = deltafold.arrow.fold
    with pytest.raises(deltafold.UnknownDialectError):
        fold(column, "morse")
    with pytest.raises(TypeError, match="bodies must be an Arrow array, not list"):
        fold([b""], CHAT)
    with pytest.raises(TypeError, match="bodies must be a column of binary or string, not int64"):
        fold(pa.array([1]), CHAT)
    with pytest.raises(TypeError, match="ChoicesDecoder"):
        fold(column, CHAT, choice="all")
    with pytest.raises(ValueError, match="dialects has 2 rows, and bodies has 1"):
        fold(column, pa.array([CHAT, CHAT]))
    with pytest.raises(ValueError, match="threads"):
        fold(column, CHAT, threads=0)


@pytest.mark.parametrize(
    "offsets", [[0, 50, 5], [5, 2, 3], [-1, 3, 5], [0, 2**31 - 1, 5], [0, 5], []]
)
def test_invalid_offsets_are_refused(offsets: list[int]) -> None:
    numbers = struct.pack(f"={len(offsets)}i", *offsets)
    decoders: list[tuple[str, deltafold.Decoder | None]] = [(CHAT, deltafold.Decoder(CHAT))]
    with pytest.raises(ValueError, match="outside of its buffers"):
        fold_columns((None, numbers, b"short", 0, 2, False), decoders, [])
    with pytest.raises(ValueError, match="outside of its buffers"):
        fold_columns((b"", struct.pack("=3i", 0, 0, 0), b"", 0, 2, False), decoders, [])
    with pytest.raises(ValueError, match="outside of its buffers"):
        fold_columns((None, bytes(4), b"", 2**63 - 1, 2**63 - 1, True), decoders, [])


@pytest.mark.parametrize("code", [-2, 1, 2**31 - 1])
def test_a_row_of_a_decoder_that_is_not_there_is_refused(code: int) -> None:
    decoders: list[tuple[str, deltafold.Decoder | None]] = [(CHAT, deltafold.Decoder(CHAT))]
    codes = (struct.pack("=i", code), 0)
    with pytest.raises(IndexError, match="unknown dialect"):
        fold_columns((None, bytes(8), b"", 0, 1, False), decoders, [], codes=codes)


@pytest.mark.slow
def test_other_python_threads_run_while_rows_are_folded() -> None:
    ticks: list[int] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(1)

    thread = threading.Thread(target=tick)
    column = pa.array([said("x" * 1000) * 2_000] * 40)
    thread.start()
    try:
        before = len(ticks)
        deltafold.arrow.fold(column, CHAT, threads=2)
        assert len(ticks) > before
    finally:
        stop.set()
        thread.join()


def fold_on(column: Arrow, threads: int) -> None:
    for _ in range(1_000):
        deltafold.arrow.fold(column, CHAT, threads=threads)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_the_call(threads: int) -> None:
    column = pa.array([said("x" * 1000) * 2_000] * 200)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            fold_on(column, threads)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(("count", "kept"), [(2**63 - 1, 2**63 - 1), (2**63, None)])
def test_a_count_beyond_64_bits_is_null(count: int, kept: int | None) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": count}
    body = said("a") + finish("stop") + chunk(None, usage=usage) + DONE
    (row,) = deltafold.arrow.fold(pa.array([body]), CHAT).to_pylist()
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (1, kept)
    assert row["error"] is None


def test_a_body_that_reaches_a_limit_costs_no_other_row() -> None:
    column = pa.array([WHOLE[CHAT], said("a" * 100), WHOLE[CHAT]])
    limits = deltafold.Limits(message_bytes=50)
    folded = deltafold.arrow.fold(column, CHAT, limits=limits)
    assert folded.field("error").is_null().to_pylist() == [True, False, True]


def test_a_column_is_a_message_column_for_parquet(tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    bodies = pa.array([WHOLE[CHAT], None, WHOLE[CHAT][:80]])
    table = pa.table({"message": deltafold.arrow.fold(bodies, CHAT, logprobs=True)})
    parquet.write_table(table, tmp_path / "messages.parquet")
    assert parquet.read_table(tmp_path / "messages.parquet").to_pylist() == table.to_pylist()
