"""Malformed text from outside becomes well-formed, and raises nowhere.

Invalid UTF-8 in headers and bodies, lone surrogate escapes in JSON: through every client, and
through the exceptions of the SDKs.
"""

import json
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import aiohttp
import anthropic
import anyio
import httpx
import httpx2
import openai
import pytest

import deltafold
from deltafold import (
    AnthropicModel,
    Decoder,
    ErrorCode,
    ErrorMapper,
    Model,
    ModelError,
    OpenAIChatModel,
)
from deltafold.contract.foreign_text import well_formed
from deltafold.errors.mapper import ErrorFields
from wires import CHAT

LONE: Final = '{"error":{"message":"bad: \\ud83d","code":"\\udc00","type":"\\ud83d"}}'
ODD_HEADERS: Final = (
    b"x-request-id: r\xff\r\nx-odd: caf\xe9\xed\xa0\xbd\r\nX-Many: 1\r\nx-many: 2\r\nx-many: 3\r\n"
)
PAGE: Final = b"<html>\xff\xed\xa0\xbd</html>"
KEY: Final[dict[str, Any]] = {"api_key": "k"}
ONCE: Final[dict[str, Any]] = {"api_key": "k", "max_retries": 0}


@contextmanager
def answering(status: bytes, content_type: bytes, body: bytes) -> Generator[str]:
    """Answer every request with these bytes, whatever they are."""
    head = b"HTTP/1.1 %s\r\ncontent-type: %s\r\nconnection: close\r\ncontent-length: %d\r\n"
    answer = head % (status, content_type, len(body)) + ODD_HEADERS + b"\r\n" + body

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    seen = b""
                    while b'"stream"' not in seen:  # the body has come
                        seen += connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def model_of(client: object, url: str) -> Model[Any]:
    if isinstance(client, anthropic.Anthropic | anthropic.AsyncAnthropic):
        return AnthropicModel({"model_id": "m"}, client=client)
    return OpenAIChatModel({"model_id": "m"}, client=client, base_url=url, **KEY)


WAYS: Final[dict[str, Callable[[str], Any]]] = {
    "httpx": lambda _: httpx.Client(),
    "httpx2": lambda _: httpx2.Client(),
    "openai": lambda url: openai.OpenAI(base_url=url, **ONCE),
    "anthropic": lambda url: anthropic.Anthropic(base_url=url, **ONCE),
    "httpx, asyncio": lambda _: httpx.AsyncClient(),
    "aiohttp": lambda _: aiohttp.ClientSession(),
    "openai, asyncio": lambda url: openai.AsyncOpenAI(base_url=url, **ONCE),
}


def seen_through(way: str, url: str) -> tuple[list[Any], ModelError | None, Any]:
    """Ask once; return the deltas, the error and the response."""
    make = WAYS[way]
    if way in {"httpx", "httpx2", "openai", "anthropic"}:
        with make(url) as client, model_of(client, url).stream_sync("Hello") as stream:
            return list(stream), stream.error, stream.response

    async def ask() -> tuple[list[Any], ModelError | None, Any]:
        async with make(url) as client, model_of(client, url).stream("Hello") as stream:
            return [delta async for delta in stream], stream.error, stream.response

    return anyio.run(ask)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("content_type", "body"),
    [(b"application/json", LONE.encode()), (b"text/html; charset=utf-8", PAGE)],
    ids=["half a character", "a page"],
)
def test_a_refusal_of_odd_text_is_an_error_of_well_formed_text(
    way: str, content_type: bytes, body: bytes
) -> None:
    with answering(b"400 Bad Request", content_type, body) as url:
        deltas, error, response = seen_through(way, url)
    assert error is not None
    assert (error.code, error.status) == (ErrorCode.INVALID_REQUEST, 400)
    assert [delta.kind for delta in deltas] == ["start", "error"]
    json.dumps([delta.to_dict() for delta in deltas], ensure_ascii=False).encode()
    told = (str(error), error.message, error.provider_code, error.body, error.http_request_id)
    for text in told:
        (text or "").encode()
    assert error.http_request_id is not None
    if response is not None:  # an SDK raises instead
        "".join((*response.headers, *response.headers.values())).encode()


@pytest.mark.parametrize("way", [way for way in WAYS if way != "anthropic"])
def test_odd_headers_of_an_answer_take_nothing_from_it(way: str) -> None:
    with answering(b"200 OK", b"text/event-stream", CHAT) as url:
        deltas, error, response = seen_through(way, url)
    assert error is None
    assert deltas[-1].kind == "done"
    response.request_id.encode()
    assert response.headers["x-odd"] == "caf\xe9\xed\xa0\xbd"  # ISO 8859-1
    assert response.headers["x-many"] == "1, 2, 3"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("plain", "plain"),
        ("é😀", "é😀"),
        ("\ud83d", "�"),
        ("a\udc00b\ud83d", "a�b�"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\ud83d\ude00", "�😀"),
        ("caf\udce9", "caf�"),
    ],
)
def test_each_lone_surrogate_becomes_one_replacement(text: str, told: str) -> None:
    assert well_formed(text) == told


def test_the_exception_of_an_sdk_may_hold_anything() -> None:
    failed = RuntimeError("bad: \ud83d")
    attributes = {
        "body": {"message": "bad: \ud83d", "code": "\udc00", "n": 10**5000},
        "status_code": 400,
        "request_id": "\ud83d",
    }
    for name, value in attributes.items():
        setattr(failed, name, value)
    fields = ErrorMapper().map(failed)
    assert (fields.message, fields.provider_code) == ("bad: �", "�")
    assert fields.http_request_id == "�"
    error = ModelError.from_fields(fields)
    str(error).encode()


def test_a_body_that_no_json_can_say_has_no_text() -> None:
    circle: dict[str, object] = {"message": "no"}
    circle["again"] = circle
    fields = ErrorMapper().map_response(400, {}, circle)
    assert (fields.message, fields.body) == ("no", None)


def test_a_mapper_of_the_callers_own_may_hand_out_what_it_found() -> None:
    class Mapper(ErrorMapper):
        def map(self, exception: BaseException) -> ErrorFields:
            return ErrorFields(
                code=ErrorCode.SERVER_ERROR,
                message=str(exception),
                retryable=False,
                provider_code="\ud83d",
            )

    def chunks() -> Iterator[bytes]:
        yield b""
        raise OSError("lost: \ud83d")

    with deltafold.stream(chunks(), "openai-chat", error_mapper=Mapper()) as stream:
        assert [delta.kind for delta in stream] == ["start", "error"]
        assert stream.error is not None
        assert (stream.error.message, stream.error.provider_code) == ("lost: �", "�")


def test_the_caller_of_a_decoder_may_hand_on_what_a_client_gave() -> None:
    headers = {"x-request-id": "r\udcff", "retry-after": "\udcff"}
    decoder = Decoder("openai-chat", status=429, headers=headers)
    batch = decoder.fail(
        "server_error", "bad: \ud83d", provider_code="\udc00", http_request_id="\ud83d"
    )
    error = batch[-1].to_dict()["payload"]
    assert isinstance(error, dict)
    assert (error["message"], error["providerCode"]) == ("bad: �", "�")
    assert error["httpRequestId"] == "�"
    batch = Decoder("openai-chat", status=429, headers=headers).feed(b"{}")
    assert deltafold.detect(b'{"error":"no"}', "text/\udcff").candidates
    with pytest.raises(ModelError) as caught:
        deltafold.fold(b"{}", "openai-chat", status=429, headers=headers)
    assert (caught.value.code, caught.value.http_request_id) == (ErrorCode.RATE_LIMITED, "r�")
