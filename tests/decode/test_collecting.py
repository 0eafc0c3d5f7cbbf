"""Objects of the extension that lead back to themselves are collected, a thousand of a thousand.

A cycle goes through the one thing of the caller's that an object holds: a clock, an attribute of a
subclass, a container that the caller shares.
"""

import gc
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest

import deltafold
from deltafold import Decoder, Fold, MessageAssembler, PartialJson
from deltafold._core import StreamTimer
from deltafold.streams.core import NO_CALL, StreamCore
from protocol_bodies import CHAT, WHOLE

COUNT: Final = 1000


class Owner:
    """Holds an object of the extension, and is held by it."""

    made: Any

    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    def nanoseconds(self) -> int:
        return 1


def decoder(owner: Owner) -> object:
    made = Decoder(CHAT, clock=owner.now)
    made.feed(WHOLE[CHAT][:100])
    return made


def batch(owner: Owner) -> object:
    made = Decoder(CHAT, clock=owner.now)
    deltas = made.feed(WHOLE[CHAT])
    return [made, deltas, iter(deltas), list(deltas), owner]


def fold(owner: Owner) -> object:
    made = Fold(CHAT, clock=owner.now)
    made.feed(WHOLE[CHAT])
    return made


class OwnFold(Fold):
    """Holds its owner in an attribute."""

    owner: Owner


def fold_of_a_subclass(owner: Owner) -> object:
    made = OwnFold(CHAT)
    made.owner = owner
    return made


def stream_timer(owner: Owner) -> object:
    made = StreamTimer(owner.nanoseconds)
    made.start()
    return made


def stream_core(owner: Owner) -> object:
    return StreamCore(CHAT, None, {"clock": owner.now}, NO_CALL)


def stream(owner: Owner) -> object:
    made = deltafold.stream(WHOLE[CHAT], CHAT, clock=owner.now)
    next(iter(made))
    made.close()
    return made


def partial_json(owner: Owner) -> object:
    made = PartialJson()
    made.feed('{"done": {"a": 1}, "open": [')
    value: Any = made.value()
    value["done"]["owner"] = owner
    return made


def whole_json(owner: Owner) -> object:
    made = PartialJson()
    made.feed('[{"a": [1]}, {"b": 2}')
    value: Any = made.value()
    value[0]["owner"] = owner
    made.feed("]")
    assert made.complete
    return made


def assembler(owner: Owner) -> object:
    made = MessageAssembler("run")
    arguments = '{"done": {"a": 1}, "open": '
    deltas: list[tuple[str, dict[str, object]]] = [
        ("start", {"modelId": "m", "requestId": "r"}),
        ("tool_call_start", {"toolCallId": "c", "toolName": "f"}),
        ("tool_call_args", {"toolCallId": "c", "argsTextDelta": arguments}),
    ]
    for seq, (kind, payload) in enumerate(deltas, 1):
        made.consume(deltafold.MessageDelta("run", seq, kind, payload))
    value: Any = made.tool_args("c").value()
    value["done"]["owner"] = owner
    return made


MAKERS: Final[list[Callable[[Owner], object]]] = [
    decoder,
    batch,
    fold,
    fold_of_a_subclass,
    stream_timer,
    stream_core,
    stream,
    partial_json,
    whole_json,
    assembler,
]


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS)
def test_a_thousand_cycles_are_collected(make: Callable[[Owner], object]) -> None:
    left: list[weakref.ref[Owner]] = []
    owner = Owner()
    gc.collect()
    gc.disable()
    try:
        for _ in range(COUNT):
            owner = Owner()
            owner.made = make(owner)
            left.append(weakref.ref(owner))
        del owner
        assert all(one() is not None for one in left)  # nothing else would end them
        gc.collect()
    finally:
        gc.enable()
    assert sum(one() is not None for one in left) == 0


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS)
def test_what_is_still_used_is_not_collected(make: Callable[[Owner], object]) -> None:
    owner = Owner()
    owner.made = make(owner)
    for _ in range(3):
        gc.collect()
    again = Decoder(CHAT, clock=owner.now)
    again.feed(WHOLE[CHAT])
    assert again.finished
    if isinstance(owner.made, Decoder):
        owner.made.feed(WHOLE[CHAT][100:])
        assert owner.made.finished
    if isinstance(owner.made, PartialJson):
        assert owner.made.value() is not None


def test_a_collection_in_the_midst_of_a_clock_takes_nothing() -> None:
    class Collecting(Owner):
        def now(self) -> datetime:
            gc.collect()
            return super().now()

    owner = Collecting()
    owner.made = Fold(CHAT, clock=owner.now)
    owner.made.feed(WHOLE[CHAT])
    assert owner.made.message.text == deltafold.fold(WHOLE[CHAT], CHAT).text
