"""Signs of life do not change an answer, whatever they coincide with."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

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
from gateway_clients import TEXT, written

KEEP_ALIVE: Final = 0.02
PROTOCOLS: Final = ("openai-chat", "openai-responses", "anthropic-messages")


class OneChunk:
    """Transport of an answer in one chunk.

    Args:
        body: the answer.
        coincides: whether the chunk comes in the turn of the event loop in which a sign of life is
            due, before it.
    """

    def __init__(self, body: bytes, *, coincides: bool) -> None:
        self._pieces = body.partition(b"\n\n")
        self._coincides = coincides

    def open(self, request: HttpRequest) -> Source:
        raise NotImplementedError

    async def open_async(self, _: HttpRequest) -> AsyncSource:
        async def close() -> None:
            pass

        return AsyncSource(self._chunks(), close, 200, {"content-type": "text/event-stream"})

    async def _chunks(self) -> AsyncIterator[bytes]:
        first, mark, rest = self._pieces
        if not self._coincides:
            yield first + mark + rest
            return
        event = asyncio.Event()
        time.sleep(2 * KEEP_ALIVE)  # noqa: ASYNC251 - the timer of the sign is over then
        asyncio.get_running_loop().call_soon(event.set)
        await event.wait()
        yield first + mark
        yield rest


def answered(
    client: str, upstream: str, *, coincides: bool, on_message: OnMessage | None = None
) -> bytes:
    """Return the bytes of a streamed answer."""
    transport = OneChunk(written(TEXT, upstream), coincides=coincides)
    adapter = adapter_of(upstream)
    assert adapter is not None
    table = ModelTable({"m": adapter({"model_id": "m"}, client=transport)})
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
    client: str, upstream: str
) -> None:
    found = answered(client, upstream, coincides=True)
    assert fold(found, client).text == TEXT.text
    if client == upstream:
        assert found == written(TEXT, upstream)


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_sign_of_life_while_a_whole_answer_waits_for_its_hook_changes_nothing(
    client: str, upstream: str
) -> None:
    async def on_message(_: ClientRequest, __: Message, ___: object) -> None:
        await asyncio.sleep(5 * KEEP_ALIVE)

    found = answered(client, upstream, coincides=False, on_message=on_message)
    assert fold(found, client).text == TEXT.text
    if client == upstream:
        assert found == written(TEXT, upstream)
