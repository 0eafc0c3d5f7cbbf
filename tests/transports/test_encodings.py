"""Compressed bodies: each way of packing and cutting gives the original body, in bounded pieces."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltafold.transports.encodings import ContentDecodingError, decoded


def raw_deflate(body: bytes) -> bytes:
    pack = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return pack.compress(body) + pack.flush()


PACK: Final[dict[str, tuple[str | None, Callable[[bytes], bytes]]]] = {
    "none": (None, bytes),
    "identity": ("Identity", bytes),
    "gzip": ("gzip", gzip.compress),
    "x-gzip": (" X-GZIP ", gzip.compress),
    "two members": ("gzip", lambda body: gzip.compress(body[:7]) + gzip.compress(body[7:])),
    "deflate": ("deflate", zlib.compress),
    "deflate without its header": ("deflate", raw_deflate),
}


def unpacked(packed: bytes, encoding: str | None, size: int) -> list[bytes]:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(packed), size):
            yield packed[at : at + size]

    async def main() -> list[bytes]:
        return [chunk async for chunk in decoded(chunks(), encoding)]

    return asyncio.run(main())


@pytest.mark.parametrize("way", PACK)
@settings(max_examples=30, deadline=None)
@given(body=st.binary(max_size=300), size=st.integers(1, 40))
def test_a_packed_body_is_what_it_was(way: str, body: bytes, size: int) -> None:
    encoding, pack = PACK[way]
    assert b"".join(unpacked(pack(body), encoding, size)) == body


@pytest.mark.parametrize("size", [100, 10_000, 10**9])
def test_a_step_is_bounded(size: int) -> None:
    body = bytes(3_000_000) + b"end"
    steps = unpacked(gzip.compress(body), "gzip", size)
    assert b"".join(steps) == body
    assert max(map(len, steps)) <= 256 * 1024


def test_a_packed_body_that_lacks_its_end_is_what_came() -> None:
    assert b"".join(unpacked(gzip.compress(b"hello")[:-8], "gzip", 3)) == b"hello"
    assert unpacked(gzip.compress(b"hello")[:5], "gzip", 3) == []


@pytest.mark.parametrize(
    ("packed", "encoding", "says"),
    [
        (b"hello", "gzip", "not valid gzip"),
        (b"\xff\xffhello", "deflate", "not valid deflate"),
        (zlib.compress(b"hello"), "gzip", "not valid gzip"),
        # The bytes name the test, whose name is the same in every process that collects it.
        (gzip.compress(b"hello", mtime=0) + b"hello", "gzip", "not valid gzip"),
        (gzip.compress(b"hello", mtime=0)[:-8] + b"01234567", "gzip", "not valid gzip"),
        (b"hello", "br", "is in br; gzip and deflate were asked for"),
        (b"hello", "gzip, gzip", "is in gzip, gzip"),
    ],
)
def test_what_is_not_what_it_says_is_an_error(packed: bytes, encoding: str, says: str) -> None:
    with pytest.raises(ContentDecodingError, match=says):
        unpacked(packed, encoding, 100)
