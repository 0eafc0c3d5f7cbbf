"""Folds: whole bodies, or bytes that the caller feeds, into messages.

In: bytes.  Out: `Message`, or the assemblers that hold many.

Laws: those of `delta_streams.py`; a body in one piece is folded with the GIL released.
"""

from collections.abc import AsyncIterable, Iterable
from typing import Final, Unpack, cast

from deltafold._core import (
    Decoder,
    Fold,
    MessageAssembler,
    event_ends,
    fold_bodies,
    fold_chunks,
)
from deltafold.errors.model_error import ModelError
from deltafold.message import data_types
from deltafold.streams import excerpts
from deltafold.streams.bodies import WholeBody, whole_body
from deltafold.streams.delta_streams import astream, stream
from deltafold.streams.options import DecoderOptions
from deltafold.transports.unready import LineWatch

__all__ = ["Fold", "afold", "fold", "fold_many"]

# Types of chunks that are all held already: nothing is waited for, can fail or is closed.
_HELD: Final = frozenset({list, tuple})
_EXCERPT_BYTES: Final = 8192


def fold(
    body: WholeBody | Iterable[object],
    dialect: "data_types.ProtocolName | None" = None,
    **options: Unpack[DecoderOptions],
) -> "data_types.Message":
    """Fold a whole body, its chunks, or its events as `stream` takes them, into the message.

    A body in one piece is folded with the GIL released.  Without a dialect, the first events tell
    it, or the address of a response.

    >>> deltafold.fold(body, "openai-chat").text

    Raises:
        ModelError: the stream ended in an error; `partial_message` has what came before.
        UnknownDialectError: there is no such dialect, or the body does not tell its own: it fits
            none, or two that would read it in different ways.
    """
    if isinstance(body, bytes | bytearray | memoryview | str):
        whole = whole_body(body)
        try:
            return fold_many([whole], dialect, threads=1, **options)[0].build_final_message()
        except ModelError as error:
            _explain(error, whole, dialect)
            raise
    # A given status may be a refusal, which the stream reads in another way.
    if type(body) in _HELD and "status" not in options:
        chunks = cast("list[object]", body)
        watch = LineWatch()
        for chunk in chunks:
            watch(chunk)
            if watch.is_over:
                break
        try:
            return fold_chunks(chunks, dialect, options)
        except ModelError as error:
            if all(isinstance(chunk, bytes | bytearray) for chunk in chunks):
                _explain(error, b"".join(cast("list[bytes]", chunks)), dialect)
            raise
    with stream(body, dialect, **options) as opened:
        return opened.final_message()


def _explain(error: ModelError, body: bytes, dialect: "data_types.ProtocolName | None") -> None:
    """Give an error the last events of a body up to the one that ends it."""
    if not excerpts.IS_WATCHED:
        return
    if dialect is None:
        told = Decoder()
        told.feed(body)
        told.close()
        dialect = cast("data_types.ProtocolName", told.dialect)  # `close` raises for none
    decoder, start = Decoder(dialect), 0
    for end in [*event_ends(body, dialect), len(body)]:
        decoder.feed(body[start:end])
        start = end
        if decoder.finished:
            break
    tail = body[max(0, start - _EXCERPT_BYTES) : start]
    excerpts.explain(error, excerpts.excerpt_of(start, tail, dialect))


def fold_many(
    bodies: Iterable[WholeBody],
    dialect: "data_types.ProtocolName | None" = None,
    threads: int | None = None,
    **options: Unpack[DecoderOptions],
) -> list[MessageAssembler]:
    """Fold many whole bodies at once, on all cores, with the GIL released.

    Returns one assembler per body, in the order of the bodies. Each one makes its message on demand
    and reports a failure in `error`. A given `run_id` is the run id of all messages; without it
    each body has its own.

    >>> folded = deltafold.fold_many(bodies, "openai-chat")
    >>> [one.text for one in folded if one.error is None]

    Args:
        bodies: the response bodies.
        dialect: the wire protocol of all bodies; None takes that of each body from its events.
        threads: number of threads; the default is the number of cores.
        options: the options of `Decoder`.

    Raises:
        UnknownDialectError: no dialect has this name, or a body does not tell its own.
        TypeError: `bodies` is one body, or an item is not bytes, bytearray, memoryview or str.
        ValueError: `threads` is 0.
    """
    decoder = Decoder(dialect, **options)
    one_run = options.get("run_id") is not None
    if isinstance(bodies, bytes | bytearray | memoryview | str):
        raise TypeError(
            f"bodies must be a list of bodies, not one {type(bodies).__name__}; fold() folds one"
        )
    whole = [whole_body(body, f"bodies[{place}]") for place, body in enumerate(bodies)]
    return fold_bodies(decoder, whole, one_run=one_run, threads=threads)


async def afold(
    chunks: WholeBody | AsyncIterable[object] | Iterable[object],
    dialect: "data_types.ProtocolName | None" = None,
    **options: Unpack[DecoderOptions],
) -> "data_types.Message":
    """Fold a whole body, or asynchronous chunks or events, into the message; raises as `fold()`.

    >>> message = await deltafold.afold(body, "openai-chat")
    """
    body = whole_body(chunks) if isinstance(chunks, str) else chunks
    async with astream(body, dialect, **options) as opened:
        return await opened.final_message()
