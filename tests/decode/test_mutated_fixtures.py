"""Fixtures with bytes taken out, put in and changed: whatever they become, the laws hold.

The same seeds give the same bodies in every run.
"""

import random
from typing import TYPE_CHECKING

import pytest

import reference
from deltafold import Limits, Message, MessageDelta, dialect_names
from fixture_bodies import CASES, body_of, mutated
from splits import decode, random_pieces, sized
from wire_deltas import assert_same

if TYPE_CHECKING:
    from deltafold.streams.options import DecoderOptions

TIGHT = Limits(
    event_bytes=300,
    depth=10,
    message_bytes=50,
    parts=3,
    tool_calls=2,
    warnings=2,
    provider_state_bytes=200,
)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dialect", dialect_names())
def test_a_mutated_stream_keeps_every_law(dialect: str, seed: int) -> None:
    bodies = [body_of(case)[1] for case in CASES]
    chance = random.Random(seed)  # noqa: S311 - bodies, not secrets
    for number in range(50):
        body = mutated(chance, bodies)
        options: DecoderOptions = {}
        if number % 3 == 0:
            options = {"provider_raw": True, "logprobs": True}
        if number % 5 == 0:
            options["limits"] = TIGHT
        deltas, assembler = decode(dialect, [body], **options)
        ends = [str(delta.kind) for delta in deltas if delta.kind in {"done", "error"}]
        assert deltas[0].kind == "start", body
        assert ends == [str(deltas[-1].kind)], body
        for pieces in (sized(body, 1 + number % 19), random_pieces(body, number, cuts=5)):
            assert decode(dialect, pieces, **options)[0] == deltas, body
        plain = reference.MessageAssembler()
        for delta in deltas:
            plain.consume(delta)
            assert MessageDelta.from_json(delta.to_json()) == delta, body
        assert_same(assembler, plain)
        message = assembler.snapshot()
        assert Message.from_json(message.to_json()).to_dict() == message.to_dict(), body
