"""The public path over an SDK's response, from a server on loopback that writes once an event.

The compared readers read the bytes of the same client. Most of the time is the client's, so that a
reader is judged by the time that it adds to these bytes: a difference of two times, which takes
more rounds than a ratio.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import anthropic
import httpx2
import openai
import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, text
from deltafold import stream
from measuring import together
from readers import (
    ORJSON,
    STREAM_DELTAS,
    STREAM_MESSAGE,
    STREAM_TEXT,
    Said,
    all_of,
    hand_written_message,
)
from serving import serving

if TYPE_CHECKING:
    from any_name import AnyName

BYTES_ONLY: Final = "bytes only"
RAW_BYTES: Final = "bytes only, iter_raw"
LONGER: Final = 10

_QUESTION: Final[dict[str, Any]] = {
    "model": "m",
    "messages": [{"role": "user", "content": "?"}],
    "stream": True,
}


class Response(Protocol):
    """The unread response of an SDK."""

    http_response: httpx2.Response

    def iter_bytes(self) -> Iterable[bytes]:
        """Yield the bytes as they arrive."""
        ...


Open = Callable[[], AbstractContextManager[Response]]


def opening(dialect: str, port: int, events: int) -> Open:
    """Return a function that sends a request through the SDK's client."""
    url = f"http://127.0.0.1:{port}/{dialect}/each/{events}"
    if dialect == "openai-chat":
        chat = openai.OpenAI(base_url=url, api_key="unused", max_retries=0).chat.completions
        create: Any = chat.with_streaming_response.create
        return cast("Open", lambda: create(**_QUESTION))
    messages = anthropic.Anthropic(base_url=url, api_key="unused", max_retries=0).messages
    create = messages.with_streaming_response.create
    return cast("Open", lambda: create(**_QUESTION, max_tokens=10))


def _dropped(chunks: Iterable[bytes]) -> Said:
    """Read the chunks and nothing in them."""
    for _ in chunks:
        pass
    return ""


def reads_of(dialect: "AnyName", opened: Open) -> dict[str, Callable[[], Said]]:
    """Return all readers of the response."""

    def deltas() -> Said:
        with opened() as response, stream(response, dialect) as reading:
            for delta in reading:
                _ = delta.text
            return all_of(reading.final_message())

    def texts() -> Said:
        with opened() as response, stream(response, dialect) as reading:
            for _ in reading.text():
                pass
            return all_of(reading.final_message())

    def message() -> Said:
        with opened() as response, stream(response, dialect) as reading:
            return all_of(reading.final_message())

    def hand_written() -> Said:
        with opened() as response:
            found = hand_written_message(orjson.loads, dialect, response.iter_bytes(), as_str=False)
        said: Said = found["text"] if dialect == "openai-chat" else found["content"][-1]["text"]
        return said

    def bytes_only() -> Said:
        with opened() as response:
            return _dropped(response.iter_bytes())

    def raw_bytes() -> Said:
        with opened() as response:
            return _dropped(response.http_response.iter_raw())

    return {
        STREAM_MESSAGE: message,
        STREAM_TEXT: texts,
        STREAM_DELTAS: deltas,
        ORJSON: hand_written,
        BYTES_ONLY: bytes_only,
        RAW_BYTES: raw_bytes,
    }


@pytest.fixture(scope="module")
def port() -> Iterable[int]:
    with serving() as port:
        yield port


@pytest.mark.parametrize("events", [2000, 20])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_sdk_response(benchmark: BenchmarkFixture, dialect: str, events: int, port: int) -> None:
    reads = reads_of(dialect, opening(dialect, port, events))
    about = {"group": "sdk response", "dialect": dialect, "events": events}
    said = together(benchmark, reads, LONGER, **about)
    del said[BYTES_ONLY], said[RAW_BYTES]
    assert set(said.values()) == {text(events, dialect)}
