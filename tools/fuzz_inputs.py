"""Inputs of the differential fuzzing: fixtures, and what chance makes of them.

In: the fixtures of `tests/fixtures/streams` and a source of chance.  Out: damaged bodies, their
pieces, and options of a decoder.
"""

import base64
import json
import random
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from deltafold import Limits

if TYPE_CHECKING:
    from any_name import AnyName

FIXTURES: Final = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "streams"
SMALL_BYTES: Final = 6 << 10
"""Larger fixtures are left out: they cost more time than they add shapes."""

Json: TypeAlias = Any

_BYTES: Final = b'{}[]",:\\undtfr09-+.eE \n\r\t\x00\x1f\x80\xc3\xe2\xf0\xff<=xa'
_SCALARS: Final[tuple[Json, ...]] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    2**63,
    10**40,
    "",
    "null",
    "x",
    "\ud83d",
    "\udc00x",
    "\x00",
    "é😀",
    "data:image/png;base64,AA==",
    "2026-01-01T00:00:00Z",
    "STOP",
    "length",
    "message_stop",
    [],
    {},
    [1],
    [None],
    ["x"],
    [{}],
    [[]],
    {"type": "text"},
    {"x": 1},
    {"text": 5},
    {"error": "x"},
    {"message": {}},
)
_KEYS: Final = (
    "type",
    "id",
    "index",
    "text",
    "content",
    "error",
    "code",
    "status",
    "message",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "input",
    "usage",
    "finish_reason",
    "delta",
    "item",
    "output",
    "parts",
    "signature",
    "annotations",
)


@dataclass(frozen=True, slots=True)
class Seed:
    """One fixture.

    Attributes:
        name: the folder below `tests/fixtures/streams`.
        dialect: the dialect, or the dialect and the markup.
        wire: the body.
    """

    name: str
    dialect: "AnyName"
    wire: bytes


def seeds(max_bytes: int = SMALL_BYTES) -> list[Seed]:
    """Read the fixtures of at most `max_bytes` bytes."""
    found: list[Seed] = []
    for path in sorted(FIXTURES.glob("*/*/wire.*")):
        case = path.parent
        wire = path.read_bytes()
        if len(wire) <= max_bytes:
            found.append(Seed(f"{case.parent.name}/{case.name}", case.parent.name, wire))
    return found


def mutate_bytes(chance: random.Random, wire: bytes) -> bytes:
    """Set, insert, remove and copy bytes, or repeat an event."""
    body = bytearray(wire)
    if body and chance.random() < 0.2:
        events = bytes(body).split(b"\n\n")
        at = chance.randrange(len(events))
        events[at:at] = [events[at]] * chance.randrange(1, 9)
        body = bytearray(b"\n\n".join(events))
    for _ in range(chance.randrange(1, 9)):
        at = chance.randrange(len(body) + 1)
        match chance.randrange(4):
            case 0 if at < len(body):
                body[at] = chance.choice(_BYTES)
            case 1:
                body[at:at] = bytes((chance.choice(_BYTES),))
            case 2:
                del body[at : at + chance.randrange(1, 12)]
            case _:
                start = chance.randrange(len(body) + 1)
                body[at:at] = body[start : start + chance.randrange(1, 40)]
    return bytes(body)


def mutate_json(chance: random.Random, wire: bytes) -> bytes:
    """Replace, add, remove and copy members of the frames' JSON; the framing stays right."""
    if wire[:1] == b"\x00":
        return _mutate_frames(chance, wire)
    lines = wire.split(b"\n")
    places = [at for at, line in enumerate(lines) if b"{" in line]
    try:
        document = json.loads(wire)
    except (ValueError, RecursionError):
        document = None
    if document is not None or not places:
        return wire if document is None else _dumps(_change(chance, document))
    for _ in range(chance.randrange(1, 4)):
        at = chance.choice(places)
        head, brace, tail = lines[at].partition(b"{")
        try:
            frame = json.loads(brace + tail)
        except (ValueError, RecursionError):
            continue
        lines[at] = head + _dumps(_change(chance, frame))
    return b"\n".join(lines)


def _mutate_frames(chance: random.Random, wire: bytes) -> bytes:
    frames: list[bytes] = []
    rest = wire
    while len(rest) >= 16:
        size = int.from_bytes(rest[:4], "big")
        if not 16 <= size <= len(rest):
            break
        frames.append(rest[:size])
        rest = rest[size:]
    if not frames:
        return mutate_bytes(chance, wire)
    at = chance.randrange(len(frames))
    frame = frames[at]
    header_bytes = int.from_bytes(frame[4:8], "big")
    headers, payload = frame[12 : 12 + header_bytes], frame[12 + header_bytes : -4]
    try:
        document: Json = json.loads(payload)
        if b'"bytes"' in payload:
            inner = json.loads(base64.b64decode(document["bytes"]))
            document["bytes"] = base64.b64encode(_dumps(_change(chance, inner))).decode()
        else:
            document = _change(chance, document)
    except (ValueError, TypeError, KeyError, RecursionError):
        return mutate_bytes(chance, wire)
    frames[at] = _frame(headers, _dumps(document))
    return b"".join(frames) + rest


def _frame(headers: bytes, payload: bytes) -> bytes:
    """Write a frame of `application/vnd.amazon.eventstream`."""
    prelude = (16 + len(headers) + len(payload)).to_bytes(4, "big")
    prelude += len(headers).to_bytes(4, "big")
    body = prelude + zlib.crc32(prelude).to_bytes(4, "big") + headers + payload
    return body + zlib.crc32(body).to_bytes(4, "big")


def _dumps(document: Json) -> bytes:
    return json.dumps(document).encode()


def _change(chance: random.Random, document: Json) -> Json:
    """Return the document with one place changed."""
    places: list[tuple[Json, Json]] = []
    _collect(document, places)
    if not places:
        return chance.choice(_SCALARS)
    holder, key = chance.choice(places)
    in_object = isinstance(key, str)
    match chance.randrange(6):
        case 0 if in_object:
            del holder[key]
        case 1 if in_object:
            holder[chance.choice(_KEYS)] = chance.choice(_SCALARS)
        case 2:
            other, name = chance.choice(places)
            holder[key] = json.loads(json.dumps(other[name]))
        case 3 if not in_object:
            holder.insert(chance.randrange(len(holder) + 1), chance.choice(_SCALARS))
        case _:
            holder[key] = chance.choice(_SCALARS)
    return document


def _collect(value: Json, places: list[tuple[Json, Json]]) -> None:
    for key in _keys_of(value):
        places.append((value, key))
        _collect(value[key], places)


def _keys_of(value: object) -> list[Json]:
    if isinstance(value, dict):
        return [*cast("dict[str, object]", value)]
    if isinstance(value, list):
        return [*range(len(cast("list[object]", value)))]
    return []


def pieces_of(chance: random.Random, body: bytes) -> list[bytes]:
    """Cut a body at random places; some pieces are empty."""
    if chance.random() < 0.1:
        return [body[at : at + 1] for at in range(len(body))]
    cuts = sorted(chance.randrange(len(body) + 1) for _ in range(chance.randrange(8)))
    return [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def options_of(chance: random.Random) -> dict[str, Any]:
    """Choose options of a decoder: a small limit, an error status, logprobs, raw frames."""
    options: dict[str, Any] = {}
    if chance.random() < 0.2:
        name = chance.choice(
            ("parts", "tool_calls", "warnings", "message_bytes", "provider_state_bytes", "depth")
        )
        options["limits"] = Limits(**{name: chance.choice((1, 2, 3, 8, 40))})
    if chance.random() < 0.1:
        options["status"] = chance.choice((400, 401, 404, 429, 500, 503))
    if chance.random() < 0.2:
        options["logprobs"] = True
    if chance.random() < 0.1:
        options["provider_raw"] = True
    return options
