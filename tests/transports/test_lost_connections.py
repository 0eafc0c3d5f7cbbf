"""A connection that its server closed between two calls: the request is sent once more, or not.

Each script is one of a server that answers the first request of a connection, and announces to keep
the connection.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

import aiohttp.client_proto
import aiohttp.http_parser
import anyio
import pytest

from client_ways import every_plain_way, with_model
from deltafold import DeltaStream, ErrorCode, Model, ModelError, load_model
from deltafold.transports.http import open_http, open_http_async
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sources import AsyncSource, Source
from scripted_server import HEAD, WHOLE, ScriptedServer, Step

Outcome = str | ErrorCode


def then(*steps: Step) -> Callable[[int], Iterable[Step]]:
    """Return a script with a whole answer to the first request of each connection."""
    return lambda number: [WHOLE] if number == 1 else steps


def calls(
    package: str,
    loop: str,
    server: ScriptedServer,
    count: int,
    *,
    pause: float = 0.0,
    query: dict[str, str] | None = None,
    **settings: Any,  # noqa: ANN401 - of Model
) -> list[Outcome]:
    """Return the texts and the error codes of calls one after the other through one client."""
    found: list[Outcome] = []

    def use(model: Model[Any]) -> None:
        model.update_config(extra_query=query or {})
        for number in range(count):
            try:
                found.append(model.send_message_sync("When?").text)
            except ModelError as error:
                found.append(error.code)
            threading.Event().wait(pause * (number % 8))

    async def use_async(model: Model[Any]) -> None:
        model.update_config(extra_query=query or {})
        for number in range(count):
            try:
                found.append((await model.send_message("When?")).text)
            except ModelError as error:
                found.append(error.code)
            await anyio.sleep(pause * (number % 8))

    with_model(package, loop, server.url, use, use_async, **settings)
    return found


@every_plain_way
def test_a_server_that_closes_after_each_answer_costs_no_call(package: str, loop: str) -> None:
    with ScriptedServer(lambda _: [WHOLE, 0.002, "close"]) as server:
        assert calls(package, loop, server, 200, pause=0.0005) == ["hi"] * 200


@every_plain_way
@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_request_is_sent_once_more_where_no_byte_of_an_answer_came(
    package: str, loop: str, end: Step
) -> None:
    with ScriptedServer(then(end)) as server:
        assert calls(package, loop, server, 5) == ["hi"] * 5
    assert (server.requests, server.connections) == (9, 5)


ANSWERS = {
    "one byte": b"H",
    "a status": b"HTTP/1.1 200 ",
    "half a header": HEAD + b"x: ",
    "half a head": HEAD,
    "no HTTP": b"220 mail.test ESMTP\r\n",
    "an informational answer": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
    "a head": HEAD + b"\r\n",
}


@every_plain_way
@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_after_a_byte_of_an_answer_nothing_is_sent_again(
    package: str, loop: str, answer: str, end: Step
) -> None:
    with ScriptedServer(then(ANSWERS[answer], 0.05, end)) as server:
        found = calls(package, loop, server, 2)
    assert found[0] == "hi"
    assert found[1] in {ErrorCode.CONNECTION_LOST, ErrorCode.PROTOCOL_ERROR}
    assert (server.requests, server.connections) == (2, 1)


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_the_parser_of_aiohttp_without_an_extension_shows_a_byte_too(
    answer: str, end: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = aiohttp.http_parser.HttpResponseParserPy
    monkeypatch.setattr(aiohttp.client_proto, "HttpResponseParser", slow)
    with ScriptedServer(then(ANSWERS[answer], 0.05, end)) as server:
        assert calls("aiohttp", "asyncio", server, 2)[1] != "hi"
    assert server.requests == 2
    with ScriptedServer(then(end)) as server:
        assert calls("aiohttp", "asyncio", server, 2) == ["hi", "hi"]


@every_plain_way
@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_request_over_a_new_connection_is_sent_once(package: str, loop: str, end: Step) -> None:
    with ScriptedServer(lambda _: [end]) as server:
        assert calls(package, loop, server, 2) == [ErrorCode.CONNECTION_LOST] * 2
    assert (server.requests, server.connections) == (2, 2)


@every_plain_way
def test_a_request_is_sent_twice_at_most(package: str, loop: str) -> None:
    with ScriptedServer(
        lambda number: [WHOLE] if number == 1 and server.connections == 1 else ["close"]
    ) as server:
        assert calls(package, loop, server, 2) == ["hi", ErrorCode.CONNECTION_LOST]
    assert (server.requests, server.connections) == (3, 2)


@every_plain_way
def test_a_connection_that_closes_after_a_second_was_read(package: str, loop: str) -> None:
    with ScriptedServer(then(1.2, "close")) as server:
        assert calls(package, loop, server, 2) == ["hi", ErrorCode.CONNECTION_LOST]
    assert server.requests == 2


@every_plain_way
def test_the_setting_turns_it_off(package: str, loop: str) -> None:
    with ScriptedServer(then("close")) as server:
        found = calls(package, loop, server, 2, resend_lost=False)
    assert found == ["hi", ErrorCode.CONNECTION_LOST]
    assert server.requests == 2


@every_plain_way
def test_the_log_has_a_line_without_secrets(
    package: str, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "deltafold")
    with ScriptedServer(then("close")) as server:
        calls(package, loop, server, 2, query={"key": "password"})
    lines = [record for record in caplog.records if "sent once more" in record.getMessage()]
    assert [record.levelno for record in lines] == [logging.INFO]
    assert f"{server.url}/chat/completions" in lines[0].getMessage()
    assert "password" not in "".join(record.getMessage() for record in lines)


@every_plain_way
def test_the_second_try_has_a_new_connection_beside_kept_ones(package: str, loop: str) -> None:
    together = 3

    def use(model: Model[Any]) -> None:
        streams = [model.stream_sync("When?") for _ in range(together)]
        threads = [
            threading.Thread(target=DeltaStream.final_message, args=[one]) for one in streams
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.send_message_sync("When?").text == "hi"

    async def use_async(model: Model[Any]) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(together):
                group.start_soon(model.send_message, "When?")
        assert (await model.send_message("When?")).text == "hi"

    with ScriptedServer(
        lambda number: ["gather", WHOLE] if number == 1 else ["close"], together=together
    ) as server:
        with_model(package, loop, server.url, use, use_async)
    assert (server.requests, server.connections) == (together + 2, together + 1)


@pytest.mark.parametrize("transport", ["httpx", "httpx2", "aiohttp"])
def test_calls_at_once_through_a_client_of_the_model_lose_nothing(transport: str) -> None:
    async def run() -> list[str]:
        url = server.url
        model = load_model("vllm/m", base_url=url, api_key="k", transport=transport)
        async with model:
            texts: list[str] = []
            for _ in range(10):
                answers = await asyncio.gather(*(model.send_message("When?") for _ in range(8)))
                texts += [answer.text for answer in answers]
                await asyncio.sleep(0.002)
            return texts

    with ScriptedServer(lambda _: [WHOLE, 0.002, "close"]) as server:
        assert asyncio.run(run()) == ["hi"] * 80


class Losing:
    """A transport whose connection is always lost."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    def open(self, request: HttpRequest) -> Source:
        self.requests.append(request)
        raise ConnectionResetError

    async def open_async(self, request: HttpRequest) -> AsyncSource:
        self.requests.append(request)
        raise ConnectionResetError


def test_a_transport_decides_by_itself() -> None:
    transport = Losing()
    request = HttpRequest("POST", "http://host/", {}, {}, b"{}")
    with pytest.raises(ConnectionResetError):
        open_http(transport, request)
    with pytest.raises(ConnectionResetError):
        asyncio.run(open_http_async(transport, request))
    assert len(transport.requests) == 2
