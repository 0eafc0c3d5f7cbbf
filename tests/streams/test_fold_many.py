"""Whole bodies on all cores: the same messages as one by one, each its own."""

import threading
from typing import Any, cast

import pytest

import deltafold
from any_name import AnyName
from protocol_bodies import ANTHROPIC, CHAT, DONE, WHOLE, finish, said
from splits import now


def bodies(count: int) -> list[bytes]:
    return [
        said(f"number {number}", " and more") + finish("stop") + DONE for number in range(count)
    ]


@pytest.mark.parametrize("threads", [None, 1, 2, 8])
def test_many_bodies_are_folded_in_their_order(threads: int | None) -> None:
    folded = deltafold.fold_many(bodies(200), CHAT, threads, clock=now)
    assert [one.text for one in folded] == [f"number {number} and more" for number in range(200)]
    assert len({one.run_id for one in folded}) == 200
    one_by_one = [deltafold.fold(body, CHAT, clock=now) for body in bodies(200)]
    for one, alone in zip(folded, one_by_one, strict=True):
        message = one.build_final_message()
        assert message.parts == alone.parts
        assert (message.meta, message.timestamp) == (alone.meta, alone.timestamp)


def test_one_run_is_the_run_of_all() -> None:
    folded = deltafold.fold_many(bodies(3), CHAT, run_id="run")
    assert [one.run_id for one in folded] == ["run"] * 3


@pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT])
def test_a_failed_body_fails_alone(dialect: AnyName) -> None:
    whole = WHOLE[dialect]
    folded = deltafold.fold_many([whole, whole[: len(whole) // 3], b"", whole], dialect)
    assert [one.status for one in folded] == ["done", "error", "error", "done"]
    cut = folded[1].error
    assert cut is not None
    assert cut.code is deltafold.ErrorCode.CONNECTION_LOST
    error = folded[2].error
    assert error is not None
    assert error.code is deltafold.ErrorCode.PROTOCOL_ERROR
    assert folded[0].text == folded[3].text == deltafold.fold(whole, dialect).text


def test_no_bodies_give_nothing() -> None:
    assert deltafold.fold_many([], CHAT) == []


def test_bytes_of_every_kind_are_taken() -> None:
    body = bodies(1)[0]
    kinds: list[bytes | bytearray | memoryview[int]] = [body, bytearray(body), memoryview(body)]
    assert [one.text for one in deltafold.fold_many(kinds, CHAT)] == ["number 0 and more"] * 3


def test_no_threads_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="threads"):
        deltafold.fold_many(bodies(1), CHAT, threads=0)


def test_what_is_no_bytes_is_refused() -> None:
    with pytest.raises(TypeError):
        deltafold.fold_many(cast("Any", [7]), CHAT)
    with pytest.raises(TypeError, match="fold\\(\\) folds one"):
        deltafold.fold_many(said("one").decode(), CHAT)


def test_other_python_threads_run_while_bodies_are_folded() -> None:
    ticks: list[int] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        before = len(ticks)
        deltafold.fold_many([said("x" * 1000) * 20_000] * 4, CHAT, 2)
        assert len(ticks) > before
    finally:
        stop.set()
        thread.join()


def test_a_body_that_reaches_a_limit_costs_no_other_body() -> None:
    blocks = '{"type":"text","text":"a"},' * 65_536
    call = '{"type":"tool_use","id":"c","name":"f","input":{"a":1}}'
    body = f'{{"type":"message","id":"m","model":"m","content":[{blocks}{call}]}}'.encode()
    folded = deltafold.fold_many([WHOLE[ANTHROPIC], body, WHOLE[ANTHROPIC]], ANTHROPIC)
    errors = [one.error for one in folded]
    assert errors[0] is errors[2] is None
    assert errors[1] is not None
    assert errors[1].message == "limit reached: parts (65536)"
    assert len(folded[1].snapshot().parts) == 65_536
    with pytest.raises(deltafold.ModelError, match="limit reached"):
        deltafold.fold(body, ANTHROPIC)
