"""Frames of `application/vnd.amazon.eventstream`, made by hand.

In: headers and a payload.  Out: the frame's bytes, both checksums right.  Source: the layout in the
specification of the Amazon event stream encoding.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from typing import TypeAlias

Wire: TypeAlias = Mapping[str, object]


def number(value: int, size: int = 4) -> bytes:
    """Write an unsigned integer in network order."""
    return value.to_bytes(size, "big")


def header(name: str, value: str) -> bytes:
    """Write a header that holds a string."""
    text = value.encode()
    return number(len(name), 1) + name.encode() + b"\x07" + number(len(text), 2) + text


def frame(headers: bytes, payload: bytes) -> bytes:
    """Write a frame around a header block and a payload."""
    prelude = number(16 + len(headers) + len(payload)) + number(len(headers))
    body = prelude + number(zlib.crc32(prelude)) + headers + payload
    return body + number(zlib.crc32(body))


def named(kind: str, name: str, payload: bytes) -> bytes:
    """Write a frame of a message type, as Bedrock orders its headers."""
    parts = (f":{kind}-type", name), (":content-type", "application/json"), (":message-type", kind)
    return frame(b"".join(header(*part) for part in parts), payload)


def event(name: str, body: Wire) -> bytes:
    """Write an event."""
    return named("event", name, json.dumps(body, separators=(",", ":")).encode())


def exception(name: str, body: Wire) -> bytes:
    """Write an exception."""
    return named("exception", name, json.dumps(body, separators=(",", ":")).encode())


def chunk(inner: Wire | str | bytes, **beside: object) -> bytes:
    """Write a chunk of InvokeModelWithResponseStream around an event of a model."""
    if isinstance(inner, Mapping):
        inner = json.dumps(inner, separators=(",", ":"))
    text = inner.encode() if isinstance(inner, str) else inner
    return event("chunk", {"bytes": base64.b64encode(text).decode(), **beside})
