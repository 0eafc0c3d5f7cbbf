"""Size of an image in pixels, read from the head of its file.

In: the first bytes of a file.  Out: width and height, or None if the format is not known.

Law: bytes may be anything; nothing but their head is read.
Source: the specifications of PNG (11.2.2), GIF89a (18), JPEG (ITU T.81, B.2.2) and WebP (RFC 9649).
"""

import struct
from typing import Final

HEAD_BYTES: Final = 1 << 18
"""Number of bytes within which a file states its size; a JPEG may have other data first."""

_MARKER: Final = 0xFF
_MARKERS_WITHOUT_SEGMENT: Final = frozenset({0x01, *range(0xD0, 0xD8)})
_FRAME_HEADERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_size(head: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, JPEG or WebP file."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack_from(">II", head, 16)
        if head.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack_from("<HH", head, 6)
        if head.startswith(b"\xff\xd8"):
            return _jpeg(head)
        if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
            return _webp(head)
    except struct.error:  # the head is too short
        return None
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """Find the frame header, which states the size, behind the other segments."""
    place = 2
    while place < len(head):
        marker, kind = struct.unpack_from(">BB", head, place)
        if marker != _MARKER:
            return None
        if kind == _MARKER:  # a fill byte
            place += 1
        elif kind in _MARKERS_WITHOUT_SEGMENT:
            place += 2
        elif kind in _FRAME_HEADERS:
            height, width = struct.unpack_from(">HH", head, place + 5)
            return width, height
        else:
            (length,) = struct.unpack_from(">H", head, place + 2)
            place += 2 + length
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    match head[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            low, high, tall, taller = struct.unpack_from("<HBHB", head, 24)
            return (low | high << 16) + 1, (tall | taller << 16) + 1
        case _:
            return None
