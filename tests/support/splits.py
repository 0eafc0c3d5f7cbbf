"""One body, cut in every way: what must come out the same each time.

In: a dialect, None if the body tells it, and the bytes of a body.  Out: its deltas and the
assembler that folded them, after the body was fed whole, cut in two at every place, and in pieces
of 1 to 17 bytes.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypeAlias, Unpack

import deltafold
from any_name import AnyName
from deltafold import Decoder, Message, MessageAssembler, MessageDelta, ModelError, Usage
from deltafold.streams.options import DecoderOptions

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIZES = range(1, 18)

Calls: TypeAlias = list[tuple[str, dict[str, object] | None]]


def now() -> datetime:
    """Return a constant time, so that deltas of two runs can be compared."""
    return NOW


def sized(body: bytes, size: int) -> list[bytes]:
    """Cut a body in pieces of one size."""
    return [body[at : at + size] for at in range(0, len(body), size)]


def halves(body: bytes) -> Iterator[list[bytes]]:
    """Cut a body in two, at every place."""
    for at in range(1, len(body)):
        yield [body[:at], body[at:]]


def random_pieces(body: bytes, seed: int, cuts: int) -> list[bytes]:
    """Cut a body at random places, some of them twice (which makes empty pieces)."""
    chance = random.Random(seed)  # noqa: S311 - places, not secrets
    places = sorted(chance.randrange(len(body) + 1) for _ in range(cuts))
    edges = [0, *places, len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


def decode(
    dialect: AnyName | None, pieces: Iterable[bytes], **options: Unpack[DecoderOptions]
) -> tuple[list[MessageDelta], MessageAssembler]:
    """Decode and fold the pieces of a body of the run "run"."""
    given: DecoderOptions = {"run_id": "run", "clock": now}
    given.update(options)
    decoder = Decoder(dialect, **given)
    assembler = MessageAssembler("run")
    deltas: list[MessageDelta] = []
    for piece in pieces:
        batch = decoder.feed(piece)
        assembler.consume(batch)
        deltas.extend(batch)
    batch = decoder.close()
    assembler.consume(batch)
    deltas.extend(batch)
    return deltas, assembler


def outcome(message: Message | ModelError) -> dict[str, object]:
    """Return all of a message, or of the error that came in its place, but for its id."""
    if isinstance(message, ModelError):
        partial = message.partial_message
        assert partial is not None
        return {**vars(message), "partial_message": outcome(partial), "words": str(message)}
    wire = message.to_dict()
    del wire["id"]
    return wire


def folded(dialect: AnyName | None, pieces: Sequence[bytes]) -> dict[str, object]:
    """Return the outcome of `deltafold.fold` of an iterable of chunks."""
    try:
        return outcome(deltafold.fold(iter(pieces), dialect, run_id="run", clock=now))
    except ModelError as error:
        return outcome(error)


def awaited(dialect: AnyName | None, pieces: Sequence[bytes]) -> dict[str, object]:
    """Return the outcome of `deltafold.afold` of chunks that arrive one by one."""

    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            await asyncio.sleep(0)
            yield piece

    async def main() -> dict[str, object]:
        try:
            return outcome(await deltafold.afold(chunks(), dialect, run_id="run", clock=now))
        except ModelError as error:
            return outcome(error)

    return asyncio.run(main())


def final(assembler: MessageAssembler) -> dict[str, object]:
    """Return the outcome of an assembler that has its terminal."""
    try:
        return outcome(assembler.build_final_message())
    except ModelError as error:
        return outcome(error)


def everywhere(
    dialect: str | None, body: bytes, **options: Unpack[DecoderOptions]
) -> tuple[list[MessageDelta], Message]:
    """Decode a body whole and under every split; returns its deltas and its message so far.

    The one-shot, the asynchronous and the chunked way are held equal on the way.
    """
    deltas, assembler = decode(dialect, [body], **options)
    for pieces in (*halves(body), *(sized(body, size) for size in SIZES)):
        found, _ = decode(dialect, pieces, **options)
        assert found == deltas, pieces[:2]
    if not options:
        expected = final(assembler)
        assert folded(dialect, sized(body, 7)) == expected
        assert awaited(dialect, sized(body, 7)) == expected
    return deltas, assembler.snapshot()


def calls_of(message: Message) -> Calls:
    """Return name and arguments of each call."""
    return [(call.tool_name, call.arguments) for call in message.tool_calls]


def kinds(deltas: list[MessageDelta]) -> list[str]:
    """Return the kinds of the deltas."""
    return [str(delta.kind) for delta in deltas]


def warning_codes(message: Message) -> list[object]:
    """Return the codes of the warnings of a message."""
    return [warning["code"] for warning in message.meta.warnings or []]


def usage_of(message: Message) -> Usage:
    """Return the usage of a message that has one."""
    assert message.meta.usage is not None
    return message.meta.usage


def ends_once(deltas: list[MessageDelta], kind: str) -> MessageDelta:
    """Return the terminal: the only one, the last delta, and of this kind."""
    terminals = [delta for delta in deltas if delta.kind in {"done", "error"}]
    assert [str(delta.kind) for delta in terminals] == [kind]
    assert deltas[-1] is terminals[0]
    assert deltas[0].kind == "start"
    return terminals[0]


def failure_of(deltas: list[MessageDelta]) -> MessageDelta:
    """Return the error that the stream ends with."""
    return ends_once(deltas, "error")
