"""Signs of life do not change an answer, whatever they coincide with."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from any_name import AnyName
from client_requests import asked
from deltafold import Message, fold
from deltafold.gateway import (
    AnswerOptions,
    ClientRequest,
    ModelTable,
    read_request,
    respond,
)
from deltafold.gateway.hooks import OnMessage
from deltafold.models.adapters import adapter_of
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sources import AsyncSource, Source
from gateway_clients import TEXT
from recorded_upstreams import written

KEEP_ALIVE: Final = 0.02
PROTOCOLS: Final = ("openai-chat", "openai-responses", "anthropic-messages")


class Chunks:
    """Transport of one answer.

    Args:
        chunks: the answer.
        coincides: the chunk that comes in the turn of the event loop in which a sign of life is
            due, before it; None for none.
    """

    def __init__(self, *chunks: bytes, coincides: int | None) -> None:
        self._all = chunks
        self._coincides = coincides

    def open(self, request: HttpRequest) -> Source:
        raise AssertionError(f"the gateway awaits its upstream: {request}")

    async def open_async(self, _: HttpRequest) -> AsyncSource:
        async def close() -> None:
            pass

        return AsyncSource(self._chunks(), close, 200, {"content-type": "text/event-stream"})

    async def _chunks(self) -> AsyncIterator[bytes]:
        for number, chunk in enumerate(self._all):
            if number == self._coincides:
                event = asyncio.Event()
                time.sleep(2 * KEEP_ALIVE)  # noqa: ASYNC251 - the timer of the sign is over then
                asyncio.get_running_loop().call_soon(event.set)
                await event.wait()
            yield chunk


def answered(
    client: AnyName, upstream: str, chunks: Chunks, on_message: OnMessage | None = None
) -> bytes:
    """Return the bytes of a streamed answer."""
    adapter = adapter_of(upstream)
    assert adapter is not None
    table = ModelTable({"m": adapter({"model_id": "m"}, client=chunks)})
    _, body = asked(client, streams=True)
    usage = {"stream_options": {"include_usage": True}} if client == "openai-chat" else {}
    request = read_request(client, json.dumps(body | usage).encode())
    options = AnswerOptions(keep_alive=KEEP_ALIVE, on_message=on_message)
    sent: list[bytes] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(600)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:  # noqa: ANN401 - of ASGI
        sent.append(message.get("body", b""))

    async def run() -> None:
        response = await respond(request, table.find("m"), options=options)
        await response({"type": "http", "method": "POST"}, receive, send)

    asyncio.run(run())
    return b"".join(sent)


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_sign_of_life_that_comes_with_the_first_bytes_changes_nothing(
    client: AnyName, upstream: str
) -> None:
    first, mark, rest = written(TEXT, upstream).partition(b"\n\n")
    found = answered(client, upstream, Chunks(first + mark, rest, coincides=0))
    assert fold(found, client).text == TEXT.text
    if client == upstream:
        assert found == written(TEXT, upstream)


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_sign_of_life_while_a_whole_answer_waits_for_its_hook_changes_nothing(
    client: AnyName, upstream: str
) -> None:
    async def on_message(_: ClientRequest, __: Message, ___: object) -> None:
        await asyncio.sleep(5 * KEEP_ALIVE)

    chunks = Chunks(written(TEXT, upstream), coincides=None)
    found = answered(client, upstream, chunks, on_message)
    assert fold(found, client).text == TEXT.text
    if client == upstream:
        assert found == written(TEXT, upstream)


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_garbage_that_comes_with_a_sign_of_life_does_not_pass(client: str, upstream: str) -> None:
    first, mark, rest = written(TEXT, upstream).partition(b"\n\n")
    garbage = b'data: {"broken\x00\n\n'
    found = answered(client, upstream, Chunks(first + mark, garbage + rest, coincides=1))
    assert b"broken" not in found
    assert b"Rome" not in found
    assert b"error" in found
