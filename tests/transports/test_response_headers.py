"""Response headers that come one byte at a time, or in another encoding than UTF-8."""

import http.client
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from client_ways import CHAT, STREAMED, dialect_for, every_plain_way, every_way, with_model
from deltafold import ErrorCode, Model, ModelError
from deltafold.transports.headers import raw_headers
from deltafold.transports.timeouts import Timeouts


def read_request(connection: socket.socket) -> None:
    """Read one request to the end of its body, which some clients send in a write of its own."""
    with connection.makefile("rb") as request:
        if not request.readline():
            raise ConnectionResetError
        headers = http.client.parse_headers(request)
        request.read(int(headers["content-length"]))


@contextmanager
def raw_server(talk: Callable[[socket.socket, threading.Event], None]) -> Generator[str]:
    """Read the first request of each connection and call `talk`, which stops at the event."""
    closing = threading.Event()
    threads: list[threading.Thread] = []

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            read_request(connection)
            talk(connection, closing)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threads.append(threading.Thread(target=one, args=(listening.accept()[0],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            closing.set()
            listening.shutdown(socket.SHUT_RDWR)
            for thread in (accepting, *threads):
                thread.join()


def dripping(connection: socket.socket, closing: threading.Event) -> None:
    """Send a header that never ends, one byte at a time."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nx-slow: ")
    while not closing.wait(0.02):
        connection.sendall(b"x")


@pytest.mark.one_in(5)
@every_plain_way
@pytest.mark.parametrize(
    ("timeouts", "limit"),
    [
        (Timeouts(first_byte=0.3), "first_byte"),
        (Timeouts(total=0.3), "total"),
        (Timeouts(first_byte=None, total=0.3), "total"),
        (Timeouts(first_byte=0.3, idle=None, total=30), "first_byte"),
    ],
)
def test_headers_that_drip_miss_the_limit_of_the_answer(
    package: str, loop: str, timeouts: Timeouts, limit: str
) -> None:
    told: list[ModelError] = []
    begun = time.monotonic()

    def use(model: Model[Any]) -> None:
        with pytest.raises(ModelError) as raised:
            model.send_message_sync("Hello")
        told.append(raised.value)

    async def use_async(model: Model[Any]) -> None:
        with pytest.raises(ModelError) as raised:
            await model.send_message("Hello")
        told.append(raised.value)

    with raw_server(dripping) as url:
        with_model(package, loop, url, use, use_async, timeouts=timeouts)
    assert told[0].code is ErrorCode.TIMEOUT
    assert told[0].message.endswith(f"within 0.3 s (timeouts.{limit})")
    assert time.monotonic() - begun < 5


@every_plain_way
def test_headers_that_drip_on_a_connection_that_served_before_miss_their_limit(
    package: str, loop: str
) -> None:
    body = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(CHAT), CHAT)

    def talk(connection: socket.socket, closing: threading.Event) -> None:
        connection.sendall(body)
        read_request(connection)
        dripping(connection, closing)

    told: list[ModelError] = []

    def use(model: Model[Any]) -> None:
        model.send_message_sync("Hello")
        with pytest.raises(ModelError) as raised:
            model.send_message_sync("Hello")
        told.append(raised.value)

    async def use_async(model: Model[Any]) -> None:
        await model.send_message("Hello")
        with pytest.raises(ModelError) as raised:
            await model.send_message("Hello")
        told.append(raised.value)

    with raw_server(talk) as url:
        timeouts = Timeouts(first_byte=0.3)
        with_model(package, loop, url, use, use_async, timeouts=timeouts)
    assert "timeouts.first_byte" in told[0].message


@every_way
def test_a_header_that_is_not_utf_8_is_read_as_latin_1(package: str, loop: str) -> None:
    body = STREAMED[dialect_for(package)]
    head = b"HTTP/1.1 200 OK\r\nx-region: caf\xe9\r\ncontent-length: %d\r\n\r\n"
    refusal = b"HTTP/1.1 500 no\r\nx-region: caf\xe9\r\ncontent-length: 2\r\n\r\n{}"

    def talk(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(head % len(body) + body)
        read_request(connection)
        connection.sendall(refusal)
        read_request(connection)

    regions: list[str] = []

    def use(model: Model[Any]) -> None:
        for _ in range(2):
            with model.stream_sync("Hello") as stream:
                assert list(stream)
                if stream.response is not None:
                    regions.append(stream.response.headers["x-region"])

    async def use_async(model: Model[Any]) -> None:
        for _ in range(2):
            async with model.stream("Hello") as stream:
                assert [delta async for delta in stream]
                if stream.response is not None:
                    regions.append(stream.response.headers["x-region"])

    with raw_server(talk) as url:
        with_model(package, loop, url, use, use_async)
    assert regions
    assert set(regions) == {"café"}


RAW = ((b"Content-Type", b"a"), (b"X", b"1"), (b"x", b"2"), (b"y", b"\xe9"), (b"X", b"3"))
TEXTS = {"content-type": "a", "x": "1, 2, 3", "y": "é"}


@pytest.mark.parametrize("raw", [RAW, list(RAW)])
def test_headers_are_a_mapping_of_texts(raw: object) -> None:
    headers = raw_headers(raw)
    assert headers is not None
    assert isinstance(headers, Mapping)
    # Before the texts are made, and after.
    for _ in range(2):
        assert headers.get("location") is None
        assert headers.get("Content-Type", "?") == "?"
        assert headers.get("x") == "1, 2, 3"
    assert headers == TEXTS
    assert headers == raw_headers(raw)
    assert headers != {}
    assert (dict(headers), {**headers}, repr(headers)) == (TEXTS, TEXTS, repr(TEXTS))
    assert (list(headers), len(headers), bool(headers)) == (list(TEXTS), 3, True)
    assert (list(headers.keys()), list(headers.values())) == (list(TEXTS), list(TEXTS.values()))
    assert list(headers.items()) == list(TEXTS.items())
    assert "x" in headers
    assert "X" not in headers
    with pytest.raises(KeyError, match="location"):
        headers["location"]


def test_a_header_whose_name_is_not_ascii_is_found() -> None:
    headers = raw_headers([(b"\xc9", b"1")])
    assert headers is not None
    assert headers.get("é") == "1"


@pytest.mark.parametrize("raw", [None, {}, "x", [(b"a",)], [(b"a", "b")], [("a", b"b")], [b"a"]])
def test_what_is_no_list_of_pairs_of_bytes_gives_no_headers(raw: object) -> None:
    assert raw_headers(raw) is None


@pytest.mark.parametrize("raw", [(), []])
def test_no_headers_are_false(raw: object) -> None:
    headers = raw_headers(raw)
    assert headers is not None
    assert not headers
    assert headers == {}
