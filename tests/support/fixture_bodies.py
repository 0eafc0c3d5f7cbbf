"""Bodies of the fixtures, and what becomes of them when bytes are taken out, put in and changed."""

import random
from pathlib import Path

from corpus import FIXTURES

CASES = sorted(path.parent for path in FIXTURES.glob("*/*/wire.*"))


def body_of(case: Path) -> tuple[str, bytes]:
    (wire,) = case.glob("wire.*")
    return case.parent.name, wire.read_bytes()


PIECES = [
    *(b'"', b"{", b"}", b"[", b"]", b"\\", b"\n", b"\r", b"\n\n", b":", b",", b" ", b"\0", b"\xff"),
    *(b"null", b"true", b"0", b"-1", b"1e400", b'""', b"{}", b"[]", b"\\ud800", b"\\u0000"),
    *(b"data: ", b"event: error\n", b"[DONE]", b'"index":0,', b'"id":"",', b'"type":"error",'),
]


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
