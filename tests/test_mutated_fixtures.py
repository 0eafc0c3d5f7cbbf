"""Fixtures with bytes taken out, put in and changed: whatever they become, the laws hold.

The same seeds give the same bodies in every run.
"""

import random
from typing import TYPE_CHECKING

import pytest

import reference
from deltafold import Limits, Message, MessageDelta, dialect_names
from splits import decode, random_pieces, sized
from test_fixtures import FIXTURES, body_of
from wire_deltas import assert_same

if TYPE_CHECKING:
    from deltafold.streams.core import DecoderOptions

PIECES = [
    *(b'"', b"{", b"}", b"[", b"]", b"\\", b"\n", b"\r", b"\n\n", b":", b",", b" ", b"\0", b"\xff"),
    *(b"null", b"true", b"0", b"-1", b"1e400", b'""', b"{}", b"[]", b"\\ud800", b"\\u0000"),
    *(b"data: ", b"event: error\n", b"[DONE]", b'"index":0,', b'"id":"",', b'"type":"error",'),
]

TIGHT = Limits(
    event_bytes=300,
    depth=10,
    message_bytes=50,
    parts=3,
    tool_calls=2,
    warnings=2,
    provider_state_bytes=200,
)


def mutated(chance: random.Random, bodies: list[bytes]) -> bytes:
    body = bytearray(chance.choice(bodies))
    for _ in range(chance.choice([1, 1, 2, 3, 6])):
        at = chance.randrange(len(body) + 1)
        change = chance.randrange(5)
        if change == 0:
            del body[at : at + chance.choice([1, 2, 5, 20, 80])]
        elif change == 1:
            body[at:at] = chance.choice(PIECES)
        elif change == 2:  # one byte becomes another
            body[at : at + 1] = bytes([chance.randrange(256)])
        elif change == 3:  # something is said twice
            start = chance.randrange(len(body) + 1)
            body[at:at] = body[start : start + chance.choice([5, 30, 200])]
        else:  # an event of another stream comes in between
            body[at:at] = chance.choice(chance.choice(bodies).split(b"\n\n")) + b"\n\n"
    return bytes(body) or b"x"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dialect", dialect_names())
def test_a_mutated_stream_keeps_every_law(dialect: str, seed: int) -> None:
    bodies = [body_of(case)[1] for case in FIXTURES]
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
