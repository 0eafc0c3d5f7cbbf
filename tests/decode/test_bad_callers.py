"""Calls at the wrong time: deltas at the wrong place, after the end, from two threads, from inside.

Each succeeds or raises a named error. Nothing crashes or is mixed, and received content is kept.
"""

import gc
import threading
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

import deltafold
import reference
from any_name import AnyName
from deltafold import (
    ContractError,
    Decoder,
    Fold,
    MessageAssembler,
    MessageDelta,
    MisuseError,
    ModelError,
)
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    ENDINGS,
    OPENINGS,
    TEXT_EVENTS,
    WHOLE,
    Wire,
    finish,
    said,
)
from splits import (
    NOW,
)
from wire_deltas import Assembler, args, call, delta, end, error, start, text
from wire_deltas import done as done_delta

BOTH = pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT])


# Deltas at the wrong place, given to both assemblers.

ASSEMBLERS = pytest.mark.parametrize(
    "assembler_class",
    [MessageAssembler, reference.MessageAssembler],
    ids=["extension", "reference"],
)

BEGUN = [delta(1, *start()), delta(2, *text("kept")), delta(3, *call()), delta(4, *args("{}"))]

MISPLACED: dict[str, Wire] = {
    "out of order": delta(3, *text("x")),
    "repeated": BEGUN[-1],
    "of another run": delta(5, *text("x"), runId="other"),
    "a second start": delta(5, *start()),
    "a call that was not started": delta(5, *args("{}", "nobody")),
    "an end while a call is open": delta(5, *done_delta()),
}


@ASSEMBLERS
@pytest.mark.parametrize("bad", MISPLACED.values(), ids=MISPLACED)
def test_a_delta_at_the_wrong_place_is_refused_and_the_rest_goes_on(
    assembler_class: type[Assembler], bad: Wire
) -> None:
    assembler = assembler_class()
    for one in BEGUN:
        assembler.consume(one)
    for _ in range(2):
        with pytest.raises(ContractError):
            assembler.consume(bad)
    assert assembler.status == "started"
    assembler.consume(delta(5, *end()))
    assembler.consume(delta(6, *done_delta()))
    message = assembler.build_final_message()
    assert message.text == "kept"
    assert message.runnable_tool_calls
    for late in (delta(7, *text("x")), delta(7, *done_delta()), delta(7, *error())):
        with pytest.raises(ContractError):
            assembler.consume(late)
    assert assembler.build_final_message() == message


@ASSEMBLERS
def test_a_batch_given_twice_or_in_the_wrong_order_is_refused(
    assembler_class: type[Assembler],
) -> None:
    decoder = Decoder(CHAT, run_id="run")
    first, second = decoder.feed(said("a")), decoder.feed(said("b") + finish("stop") + DONE)
    assembler = assembler_class()
    with pytest.raises(ContractError):
        assembler.consume(second)
    assembler.consume(first)
    with pytest.raises(ContractError):
        assembler.consume(first)
    assembler.consume(second)
    assert assembler.build_final_message().text == "ab"


@BOTH
def test_an_assembler_of_another_stream_is_refused_and_stays_as_it_was(dialect: AnyName) -> None:
    other = MessageAssembler("other")
    begun = MessageAssembler("run")
    begun.consume(delta(1, *start()))
    begun.consume(delta(2, *text("mine")))
    for assembler in (other, begun):
        decoder = Decoder(dialect, run_id="run")
        before = assembler.status
        with pytest.raises(ContractError):
            decoder.feed_into(assembler, WHOLE[dialect])
        assert assembler.status == before
    assert begun.text == "mine"


# After the end of the body.


@BOTH
def test_a_feed_after_close_is_misuse_and_changes_nothing(dialect: AnyName) -> None:
    decoder = Decoder(dialect, run_id="run")
    decoder.feed(WHOLE[dialect][:40])
    assert [found.kind for found in decoder.close()][-1] == "error"
    assert decoder.finished
    assembler = MessageAssembler("run")
    with pytest.raises(MisuseError, match=r"after close\(\)"):
        decoder.feed(WHOLE[dialect])
    with pytest.raises(MisuseError, match=r"after close\(\)"):
        decoder.feed_into(assembler, WHOLE[dialect])
    assert assembler.status == "idle"
    assert len(decoder.close()) == 0
    assert len(decoder.fail("timeout", "late")) == 0


@BOTH
def test_a_fold_that_was_closed_keeps_its_message(dialect: AnyName) -> None:
    fold = Fold(dialect)
    fold.feed(WHOLE[dialect])
    fold.close()
    message = fold.message
    with pytest.raises(MisuseError):
        fold.feed(WHOLE[dialect])
    fold.close()
    assert fold.message == message


# Two threads, and Python code that runs in the middle of a call.


@BOTH
def test_two_threads_on_one_decoder_succeed_or_are_told_and_never_mix(dialect: AnyName) -> None:
    decoder = Decoder(dialect, run_id="run")
    decoder.feed(OPENINGS[dialect])
    piece = (TEXT_EVENTS[dialect] % b"abc") * 50
    taken: list[int] = []
    refused: list[MisuseError] = []
    said_texts: list[str] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        for _ in range(200):
            try:
                batch = decoder.feed(piece)
            except MisuseError as found:
                refused.append(found)
            else:
                taken.append(1)
                said_texts.append(batch.text)

    run_threads(work, 4)
    assert len(taken) + len(refused) == 800
    assert "".join(said_texts) == "abc" * 50 * len(taken)
    assert [found.kind for found in decoder.feed(ENDINGS[dialect])][-1] == "done"


def run_threads(work: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


@BOTH
def test_readers_beside_a_folding_thread_see_a_message_or_are_told(dialect: AnyName) -> None:
    fold = Fold(dialect)
    fold.feed(OPENINGS[dialect])
    piece = (TEXT_EVENTS[dialect] % b"abc") * 20
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not done.is_set():
            try:
                seen.append(len(fold.text))
                seen.append(len(fold.snapshot().text))
            except MisuseError:
                continue

    def write() -> None:
        for _ in range(300):
            while True:
                try:
                    fold.feed(piece)
                except MisuseError:
                    continue
                break
        done.set()

    roles = iter([write, read, read])
    lock = threading.Lock()

    def work() -> None:
        with lock:
            role = next(roles)
        role()

    run_threads(work, 3)
    assert all(length % 3 == 0 for length in seen)
    assert fold.text == "abc" * 20 * 300


class FeedsWhenDropped:
    """Calls back when it is collected."""

    def __init__(self, action: Callable[[], object]) -> None:
        self.action = action
        self.itself = self  # only the cyclic collector drops it

    def __del__(self) -> None:
        self.action()


@pytest.fixture
def eager_collector() -> Iterator[None]:
    """Let the cyclic collector run at almost every allocation."""
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("eager_collector")
@BOTH
def test_a_del_that_feeds_the_decoder_that_is_feeding_is_safe(dialect: AnyName) -> None:
    decoder = Decoder(dialect, run_id="run")
    decoder.feed(OPENINGS[dialect])
    assembler = MessageAssembler("run")
    outcomes: list[str] = []
    piece = TEXT_EVENTS[dialect] % b"abc"

    def meddle() -> None:
        try:
            outcomes.append("".join(found.text or "" for found in decoder.feed(piece)))
            assembler.snapshot()
        except MisuseError:
            outcomes.append("refused")

    said_texts: list[str] = []
    for _ in range(200):
        FeedsWhenDropped(meddle)
        said_texts.append("".join(found.text or "" for found in decoder.feed(piece * 5)))
    gc.collect()
    assert len(outcomes) == 200
    assert set(outcomes) <= {"abc", "refused"}
    assert "".join(said_texts) == "abc" * 1_000


@pytest.mark.usefixtures("eager_collector")
@pytest.mark.parametrize("assembler_class", [MessageAssembler, reference.MessageAssembler])
def test_a_del_that_looks_at_the_assembler_that_consumes_is_safe(
    assembler_class: type[Assembler],
) -> None:
    assembler = assembler_class()
    seen: list[object] = []

    def meddle() -> None:
        try:
            seen.append((assembler.snapshot().text, assembler.tool_calls, assembler.usage))
        except MisuseError as found:
            seen.append(found)

    assembler.consume(delta(1, *start()))
    for seq in range(2, 102):
        FeedsWhenDropped(meddle)
        assembler.consume(delta(seq, *text("x", annotations=[{"n": seq}])))
    gc.collect()
    assert len(seen) == 100
    assert assembler.text == "x" * 100


def test_a_clock_that_raises_raises_at_the_feed_and_loses_nothing() -> None:
    times = iter([NOW, RuntimeError("no time"), "5 o'clock", datetime(2026, 1, 1), NOW, NOW])  # noqa: DTZ001 - a time without its offset is the point

    def clock() -> datetime:
        time = next(times)
        if isinstance(time, Exception):
            raise time
        return time  # type: ignore[return-value]

    decoder = Decoder(CHAT, run_id="run", clock=clock)
    texts = [decoder.feed(said("a")).text]
    for fault in (RuntimeError, ValueError, ValueError):
        with pytest.raises(fault):
            decoder.feed(said("b"))
    texts.append(decoder.feed(said("b")).text)
    assert texts == ["a", "b"]
    assert [found.kind for found in decoder.close()] == ["part_end", "error"]


def test_a_clock_that_feeds_the_same_decoder_has_its_text_first_or_is_told() -> None:
    decoder: Decoder
    inside: list[str] = []
    busy = False

    def clock() -> datetime:
        nonlocal busy
        if not busy:
            busy = True
            try:
                inside.append(decoder.feed(said("in")).text)
            except MisuseError:
                inside.append("refused")
            busy = False
        return NOW

    decoder = Decoder(CHAT, run_id="run", clock=clock)
    outside = decoder.feed(said("out"))
    assert outside.text == "out"
    assert inside in (["in"], ["refused"])
    expected = 2 if inside == ["refused"] else 1
    assert len(outside) == expected


def test_a_clock_that_closes_the_decoder_leaves_one_terminal() -> None:
    decoder: Decoder
    inside: list[MessageDelta] = []

    def clock() -> datetime:
        if not decoder.finished:
            closing.append(1)
            if len(closing) == 1:
                inside.extend(decoder.close())
        return NOW

    closing: list[int] = []
    decoder = Decoder(CHAT, run_id="run", clock=clock)
    deltas = [*inside, *decoder.feed(said("x") + finish("stop") + DONE)]
    kinds = [str(found.kind) for found in [*inside, *deltas]]
    assert kinds.count("done") + kinds.count("error") == 1


@pytest.mark.parametrize("data", [None, 5, "data: {}", [b"x"], object()])
def test_what_is_no_bytes_is_a_type_error_and_changes_nothing(data: object) -> None:
    decoder = Decoder(CHAT, run_id="run")
    with pytest.raises(TypeError):
        decoder.feed(data)
    assert decoder.feed(said("a")).text == "a"


def test_every_kind_of_bytes_is_read_and_none_is_kept() -> None:
    decoder = Decoder(CHAT, run_id="run")
    mutable = bytearray(said("a"))
    assert decoder.feed(mutable).text == "a"
    mutable[:] = b"x" * len(mutable)
    mutable.clear()
    assert decoder.feed(memoryview(said("b"))).text == "b"
    assert decoder.feed(memoryview(said("c") + b"  ")[:-2]).text == "c"

    class Bytes(bytes):
        pass

    assert decoder.feed(Bytes(said("d"))).text == "d"


def test_whatever_the_bytes_the_error_is_the_models_and_keeps_a_message() -> None:
    bodies = [bytes([n]) * 50 for n in range(256)]
    bodies += [b"data: " + bytes([n]) * 50 + b"\n\n" for n in range(256)]
    for dialect in (CHAT, ANTHROPIC):
        for body in bodies:
            with pytest.raises(ModelError) as raised:  # an InternalError is none
                deltafold.fold(body, dialect)
            assert raised.value.partial_message is not None
