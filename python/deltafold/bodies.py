"""Bodies that nobody streamed, and bodies that nobody named.

In: the bytes of a response body, or its first ones.  Out: the deltas that a stream of the same
answer gives, or the dialect that the bytes speak.
"""

from typing import NamedTuple, Unpack, cast

from deltafold._core import Decoder, DeltaBatch, decode_body, detect_dialects
from deltafold.stream_core import DecoderOptions


class Detection(NamedTuple):
    """What the first bytes of a body say of its dialect.

    Attributes:
        dialect: the one that it is, None where the bytes do not say it.
        candidates: all that it may be: that one, the two that cannot be told apart, or none.
    """

    dialect: str | None
    candidates: tuple[str, ...]


def whole_body(body: object, name: str = "body") -> bytes:
    """Return a body in one piece as `bytes`.

    Raises:
        TypeError: the body has another type; the error names the argument.
    """
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(cast("bytes", body))  # `bytes` of bytes is the same object
    raise TypeError(
        f"{name}: bytes, bytearray or memoryview is needed, not {type(body).__qualname__}"
    )


def detect(
    first_bytes: bytes | bytearray | memoryview, content_type: str | None = None
) -> Detection:
    """Name the dialect of a body, or say which two its first bytes cannot tell apart.

    A kilobyte is enough for nearly all streams; a cut anywhere does no harm, and at most 64 KiB are
    looked at. `mistral` is told from `openai-chat` by the names of Mistral's models alone; errors
    often look the same in two dialects.

    >>> deltafold.detect(b'data: {"choices":[]}')
    Detection(dialect='openai-chat', candidates=('openai-chat',))
    >>> deltafold.detect(b'{"error":"model not found"}').candidates
    ('ollama', 'openai-chat')

    Args:
        first_bytes: the beginning of the body, content encoding undone.
        content_type: the response's header, where it is known.
    """
    candidates = detect_dialects(whole_body(first_bytes, "first_bytes"), content_type)
    return Detection(candidates[0] if len(candidates) == 1 else None, candidates)


def decode_response(
    body: bytes | bytearray | memoryview,
    dialect: str,
    **options: Unpack[DecoderOptions],
) -> DeltaBatch:
    """Decode a whole response body: the deltas that a stream of the same answer gives.

    A body that is a recorded stream works as well. Nothing raises for a provider's failure: an
    error body ends in an `error` delta. The GIL is released meanwhile.

    >>> batch = deltafold.decode_response(response.content, "openai-chat")
    >>> assembler = deltafold.MessageAssembler()
    >>> assembler.consume(batch)
    >>> assembler.build_final_message().text

    Args:
        body: the body, content encoding undone.
        dialect: its wire protocol, one of `deltafold.dialect_names()`.
        options: the options of `Decoder`, among them `status`, the HTTP status, and `headers`, from
            which request id and retry-after are read.

    Raises:
        UnknownDialectError: there is no such dialect.
    """
    return decode_body(Decoder(dialect, **options), whole_body(body))
