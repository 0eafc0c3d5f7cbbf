"""Folds: whole bodies, or bytes that the caller feeds, into messages.

In: bytes.  Out: `Message`, or the assemblers that hold many.

Laws: those of `stream.py`; a body in one piece is folded with the GIL released.
"""

from collections.abc import AsyncIterable, Iterable
from typing import Unpack

from deltafold._core import Decoder, MessageAssembler, fold_bodies
from deltafold.contract import Usage
from deltafold.messages import Message
from deltafold.stream import astream, stream
from deltafold.stream_core import DecoderOptions, Status


class Fold:
    """Decoder and assembler in one, for a caller who owns the bytes.

    >>> fold = Fold("openai-chat")
    >>> for chunk in chunks:
    ...     fold.feed(chunk)
    >>> fold.close()
    >>> fold.message.text

    Args:
        dialect: the wire protocol of the bytes, one of `deltafold.dialect_names()`.
        options: the options of `Decoder`.

    Raises:
        UnknownDialectError: there is no such dialect.
    """

    __slots__ = ("_assembler", "_decoder")

    def __init__(self, dialect: str, **options: Unpack[DecoderOptions]) -> None:
        self._decoder = Decoder(dialect, **options)
        self._assembler = MessageAssembler(self._decoder.run_id)

    def feed(self, data: bytes | bytearray | memoryview, /) -> int:
        """Fold the next bytes of the body, in any chunking; returns how many deltas they completed.

        Raises:
            MisuseError: called after `close()`, or by two threads at once.
        """
        return self._decoder.feed_into(self._assembler, data)

    def close(self) -> int:
        """Say that the body has ended; returns how many deltas that completed."""
        return self._decoder.close_into(self._assembler)

    def snapshot(self) -> Message:
        """Return the message as far as it has come; an empty one before the first delta."""
        return self._assembler.snapshot()

    @property
    def message(self) -> Message:
        """The final message.

        Raises:
            ModelError: the stream ended in an error; `partial_message` has what came before.
            MisuseError: the stream has not ended yet.
        """
        return self._assembler.build_final_message()

    @property
    def text(self) -> str:
        """All text of the answer so far."""
        return self._assembler.text

    @property
    def usage(self) -> Usage | None:
        """The usage record in force, None before the first one."""
        return self._assembler.usage

    @property
    def status(self) -> Status:
        """Where the stream stands: idle, started, done or error."""
        return self._assembler.status

    @property
    def assembler(self) -> MessageAssembler:
        """The assembler itself: parts, tool calls, error."""
        return self._assembler


def fold(
    body: bytes | bytearray | memoryview | Iterable[bytes],
    dialect: str,
    **options: Unpack[DecoderOptions],
) -> Message:
    """Fold a whole body, or its chunks, into the message.

    A body in one piece is folded with the GIL released.

    >>> deltafold.fold(body, "anthropic-messages").text

    Raises:
        ModelError: the stream ended in an error; `partial_message` has what came before.
        UnknownDialectError: there is no such dialect.
    """
    if isinstance(body, bytes | bytearray | memoryview):
        return fold_many([bytes(body)], dialect, threads=1, **options)[0].build_final_message()
    with stream(body, dialect, **options) as opened:
        return opened.final_message()


def fold_many(
    bodies: Iterable[bytes | bytearray | memoryview],
    dialect: str,
    threads: int | None = None,
    **options: Unpack[DecoderOptions],
) -> list[MessageAssembler]:
    """Fold many whole bodies at once, on all cores, with the GIL released.

    Returns one assembler a body, in their order; each makes its message when asked for it, and
    shows a failed one in `error`. A `run_id` that is given is that of all; without one each body
    has its own.

    >>> folded = deltafold.fold_many(bodies, "openai-chat")
    >>> [one.text for one in folded if one.error is None]

    Args:
        bodies: the response bodies.
        dialect: the wire protocol of all of them.
        threads: how many threads; as many as there are cores when not given.
        options: the options of `Decoder`.

    Raises:
        UnknownDialectError: there is no such dialect.
        ValueError: `threads` is 0.
    """
    decoder = Decoder(dialect, **options)
    one_run = options.get("run_id") is not None
    whole = [bytes(body) for body in bodies]  # `bytes` of bytes is the same object
    return fold_bodies(decoder, whole, one_run=one_run, threads=threads)


async def afold(
    chunks: bytes | bytearray | memoryview | AsyncIterable[bytes] | Iterable[bytes],
    dialect: str,
    **options: Unpack[DecoderOptions],
) -> Message:
    """Fold a whole body, or its chunks as they come, into the message; raises as `fold()` does."""
    async with astream(chunks, dialect, **options) as opened:
        return await opened.final_message()
