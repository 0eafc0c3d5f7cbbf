"""Binary frames of a body as text.

In: the bytes of one event.  Out: its type and its content, None if it is no binary frame.

Law: the decoder's own framing reads the frame, so that a damaged one is none.
Source: docs/protocols/aws-event-stream.md#frames, and for chunks, which hold an event in base64,
docs/protocols/bedrock-converse.md#invoke-model.
"""

import binascii
import json
from typing import Final, TypeAlias

from deltafold._core import EventFramer
from deltafold.contract.kinds import json_object

ShownFrame: TypeAlias = tuple[str, str]
"""Type and content of a binary frame; the type of a failure begins with a colon."""

_FIRST: Final = b"\0"
"""First byte of the length of a frame, which is below 16 MiB."""

_CHUNK: Final = "chunk"


def frame_of(event: bytes) -> ShownFrame | None:
    """Return type and content of an event that is a binary frame.

    >>> frame_of(b"data: {}") is None
    True
    """
    if not event.startswith(_FIRST):
        return None
    found = EventFramer("aws-event-stream").feed(event)
    if len(found) != 1:
        return None
    name, content = (text.decode("utf-8", "backslashreplace") for text in found[0])
    return name, _held(content) if name == _CHUNK else content


def _held(content: str) -> str:
    """Return the event that a chunk holds; other content is unchanged."""
    try:
        held = (json_object(json.loads(content)) or {}).get("bytes")
        return binascii.a2b_base64(str(held), strict_mode=True).decode()
    except (ValueError, RecursionError):
        return content
