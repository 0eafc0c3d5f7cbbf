"""What an exchange makes of bytes, however they are cut and damaged; without a network."""

import asyncio
from collections.abc import Iterable

import httptools
from hypothesis import given, settings
from hypothesis import strategies as st

from deltafold.transports.http1.connecting import Connection
from deltafold.transports.http1.errors import ProtocolViolationError
from deltafold.transports.http1.exchange import Exchange
from deltafold.transports.http1.routes import Route
from http1_servers import CHUNKED, HELLO, OK


class Wire(asyncio.Transport):
    """A transport whose other end is the test."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: asyncio.BaseProtocol | None = None
        self.closed = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Whoever plays the server here does not listen."""

    def resume_reading(self) -> None:
        """The same."""


def played(pieces: Iterable[bytes]) -> tuple[bytes, Exception | None, int, bool]:
    """Return body, failure, how often the connection came back, and whether it may be used."""
    ends: list[bool] = []

    async def main() -> tuple[bytes, Exception | None]:
        connection = Connection(Route("http", "h", 80, None), lambda _: None)
        wire = connection.transport = Wire()
        exchange = Exchange(
            connection,
            httptools.HttpResponseParser,
            lambda _, reusable: ends.append(reusable),
            has_body=True,
        )
        for piece in pieces:
            if not wire.closed and wire.protocol is exchange:
                exchange.data_received(piece)
        if wire.protocol is exchange:
            exchange.connection_lost(None)
        body = b""
        try:
            await exchange.head()
            async for chunk in exchange:
                body += chunk
        except (ConnectionError, ProtocolViolationError) as failure:
            return body, failure
        return body, None

    body, failure = asyncio.run(main())
    return body, failure, len(ends), ends[-1]


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces: list[bytes] = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in (*pieces, data) if piece]


chunk_lists = st.lists(st.binary(min_size=1, max_size=40), max_size=8)
sizes = st.lists(st.integers(1, 60), max_size=12)


@settings(max_examples=150, deadline=None)
@given(chunks=chunk_lists, extension=st.sampled_from([b"", b";a=b"]), cuts=sizes)
def test_chunks_are_their_body_however_they_are_cut(
    chunks: list[bytes], extension: bytes, cuts: list[int]
) -> None:
    framed = b"".join(b"%x%b\r\n%b\r\n" % (len(one), extension, one) for one in chunks)
    found = played(cut(CHUNKED + framed + b"0\r\nx-sum: 1\r\n\r\n", cuts))
    assert found == (b"".join(chunks), None, 1, True)


@settings(max_examples=150, deadline=None)
@given(chunks=chunk_lists, cuts=sizes, share=st.floats(0, 1))
def test_a_cut_body_is_the_beginning_of_it_and_a_lost_connection(
    chunks: list[bytes], cuts: list[int], share: float
) -> None:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in chunks)
    whole = CHUNKED + framed + b"0\r\n\r\n"
    came = whole[: int(share * (len(whole) - 1))]
    body, failure, ends, reusable = played(cut(came, cuts))
    assert b"".join(chunks).startswith(body)
    assert isinstance(failure, ConnectionError)
    assert (ends, reusable) == (1, False)


@settings(max_examples=300, deadline=None)
@given(
    base=st.sampled_from(
        [HELLO, HELLO + HELLO, CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", OK + b"\r\nx"]
    ),
    damage=st.lists(st.tuples(st.integers(0, 80), st.binary(max_size=6)), max_size=3),
    cuts=sizes,
)
def test_damaged_bytes_end_in_a_body_or_in_one_known_error(
    base: bytes, damage: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    for at, bytes_there in damage:
        base = base[:at] + bytes_there + base[at + len(bytes_there) :]
    found = played(cut(base, cuts))
    assert found[2] == 1
    # Cut otherwise it is the same.
    assert played([base])[0] == found[0]
