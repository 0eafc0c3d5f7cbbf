"""Responses of httpx that a caller opened: read without the decoder, and past nobody's code."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps

import httpx
import httpx2
import pytest

import deltafold
from deltafold.testing import Recording, ReplayServer
from replay_servers import wait_until_closed
from wires import CHAT

BODY = CHAT


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer({"*": Recording.of(BODY, piece_bytes=100)}) as replay:
        yield replay
        wait_until_closed(replay)


@pytest.mark.parametrize("client", [httpx.Client, httpx2.Client])
@pytest.mark.parametrize("encoding", ["gzip", "identity", None])
def test_every_encoding_is_read(
    encoding: str | None,
    client: type[httpx.Client] | type[httpx2.Client],
    server: ReplayServer,
) -> None:
    headers = {} if encoding is None else {"content-encoding": encoding}
    packed = gzip.compress(BODY) if encoding == "gzip" else BODY
    server.recordings = {"*": replace(Recording.of(packed), headers=headers)}
    tee: list[bytes] = []
    with client() as opened:
        for _ in range(2):
            with opened.stream("POST", server.url) as response:
                message = deltafold.stream(response, "openai-chat", tee=tee.append).final_message()
            assert response.is_closed
            assert message.text
    assert b"".join(tee) == BODY * 2
    assert server.connections == 1


def test_an_uncompressed_body_is_read_without_the_decoder(
    monkeypatch: pytest.MonkeyPatch, server: ReplayServer
) -> None:
    with httpx.Client() as client, client.stream("POST", server.url) as response:
        monkeypatch.setattr(response, "_get_content_decoder", None)
        assert deltafold.stream(response, "openai-chat").final_message().text


# The caller's code that looks at the bytes.


def seen_by(response: httpx.Response, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Write down the chunks."""
    seen: list[bytes] = response.extensions["seen"]
    for piece in chunks:
        seen.append(piece)
        yield piece


class Counting(httpx.Response):
    """A response whose class sees the bytes."""

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """Yield the bytes, and write them down."""
        return seen_by(self, super().iter_bytes(chunk_size))


class Proxy:
    """An object around a response, which sees the bytes."""

    def __init__(self, response: httpx.Response) -> None:
        self._inner = response

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the bytes, and write them down."""
        return seen_by(self._inner, self._inner.iter_bytes())

    def close(self) -> None:
        """Close the response."""
        self._inner.close()


def of_a_class(response: httpx.Response) -> object:
    """Give the response a class that sees the bytes."""
    response.__class__ = Counting
    return response


def of_an_attribute(response: httpx.Response) -> object:
    """Give the response a method that sees the bytes."""
    chunks = response.iter_bytes()
    vars(response)["iter_bytes"] = lambda: seen_by(response, chunks)
    return response


@pytest.mark.parametrize("wrapped", [of_a_class, of_an_attribute, Proxy])
def test_the_bytes_pass_by_the_callers_code(
    wrapped: Callable[[httpx.Response], object], server: ReplayServer
) -> None:
    seen: list[bytes] = []
    with httpx.Client() as client, client.stream("POST", server.url) as response:
        response.extensions["seen"] = seen
        assert deltafold.stream(wrapped(response), "openai-chat").final_message().text
    assert b"".join(seen) == BODY


def test_the_bytes_pass_by_a_method_that_the_caller_replaced(
    monkeypatch: pytest.MonkeyPatch, server: ReplayServer
) -> None:
    seen: list[bytes] = []
    own = httpx.Response.iter_bytes

    @wraps(own)
    def iter_bytes(self: httpx.Response) -> Iterator[bytes]:
        return seen_by(self, own(self))

    monkeypatch.setattr(httpx.Response, "iter_bytes", iter_bytes)
    with httpx.Client() as client, client.stream("POST", server.url) as response:
        response.extensions["seen"] = seen
        deltafold.stream(response, "openai-chat").final_message()
    assert b"".join(seen) == BODY


# The rest behind the terminal event.


class Parts(httpx.SyncByteStream):
    """A body in these pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)


def test_a_rest_whose_reads_cannot_be_limited_is_not_read() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        extensions = {"network_stream": object()}
        return httpx.Response(200, stream=Parts([BODY, b": more\n\n"]), extensions=extensions)

    tee: list[bytes] = []
    transport = httpx.MockTransport(answer)
    with (
        httpx.Client(transport=transport) as client,
        client.stream("POST", "http://test") as response,
    ):
        with deltafold.stream(response, "openai-chat", tee=tee.append) as stream:
            assert stream.final_message().text
        assert response.is_closed
    assert tee == [BODY]
