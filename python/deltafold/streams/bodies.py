"""Whole response bodies: decoding, and detection of their dialect.

In: the bytes of a response body, or its first bytes.  Out: the deltas that a stream of the same
answer gives, or the detected dialect.
"""

from typing import NamedTuple, TypeAlias, Unpack, cast

from deltafold._core import Decoder, DeltaBatch, decode_body, detect_dialects
from deltafold.contract.foreign_text import well_formed
from deltafold.message import data_types
from deltafold.streams.options import DecoderOptions

WholeBody: TypeAlias = bytes | bytearray | memoryview | str
"""A body in one piece; a text is its UTF-8."""


class Detection(NamedTuple):
    """Dialect that the first bytes of a body indicate.

    >>> detection = deltafold.detect(body[:1024])
    >>> detection.dialect, detection.candidates
    ('openai-chat', ('openai-chat',))

    Attributes:
        dialect: the dialect, None if the bytes do not determine it.
        candidates: all possible dialects: the detected one, two that look alike, or none.
    """

    dialect: "data_types.ProtocolName | None"
    candidates: "tuple[data_types.ProtocolName, ...]"


def whole_body(body: object, name: str = "body") -> bytes:
    """Return a body in one piece as `bytes`.

    Raises:
        TypeError: the body has another type; the error names the argument.
    """
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(cast("bytes", body))  # `bytes` of bytes is the same object
    if isinstance(body, str):
        return well_formed(body).encode()
    kind = type(body).__qualname__
    raise TypeError(f"{name} must be bytes, bytearray, memoryview or str, not {kind}")


def detect(first_bytes: WholeBody, content_type: str | None = None) -> Detection:
    """Detect the dialect of a body.

    The result names two candidates if the first bytes fit both. A kilobyte is enough for nearly all
    streams. The bytes may be cut anywhere; at most 64 KiB are examined. Only the names of Mistral's
    models distinguish `mistral` from `openai-chat`. Errors often look the same in two dialects.

    >>> deltafold.detect(b'data: {"choices":[]}')
    Detection(dialect='openai-chat', candidates=('openai-chat',))
    >>> deltafold.detect(b'{"error":"model not found"}').candidates
    ('ollama', 'openai-chat')

    Args:
        first_bytes: the beginning of the body, content encoding undone.
        content_type: the header of the response, if it is known.
    """
    candidates = detect_dialects(whole_body(first_bytes, "first_bytes"), content_type)
    return Detection(candidates[0] if len(candidates) == 1 else None, candidates)


def decode_response(
    body: WholeBody,
    dialect: "data_types.ProtocolName | None" = None,
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
        dialect: its wire protocol, one of `deltafold.dialect_names()`; None takes it from the body.
        options: the options of `Decoder`, among them `status`, the HTTP status, and `headers`, from
            which request id and retry-after are read.

    Raises:
        UnknownDialectError: there is no such dialect, or the body does not tell its own.
    """
    return decode_body(Decoder(dialect, **options), whole_body(body))
