"""Accounting never destroys an answer, and hooks that guard fail closed."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final

import httpx2
import pytest
from starlette.requests import Request

from client_requests import PATHS, asked
from deltafold import DeltaKind, Message
from deltafold.gateway import ClientRequest, MemoryStore, create_app
from deltafold.gateway.leaving import unless_left
from deltafold.testing import ReplayServer, answer
from gateways import gateway, served, upstream


def post(url: str, protocol: str, *, streams: bool, **members: object) -> httpx2.Response:
    path, body = asked(protocol, streams=streams)
    return httpx2.post(url + path, json=body | members, timeout=30)


async def raising(*_: object) -> Any:  # noqa: ANN401 - never returned
    raise RuntimeError("the database at 10.0.0.7 is down")


async def cancelled(*_: object) -> Any:  # noqa: ANN401 - never returned
    raise asyncio.CancelledError


async def hanging(*_: object) -> Any:  # noqa: ANN401 - never returned
    await asyncio.sleep(600)


def at_once(*_: object) -> Any:  # noqa: ANN401 - never returned
    raise RuntimeError("raised before it is awaited")


class FailingStore(MemoryStore):
    """Store that keeps nothing."""

    async def put(self, response_id: str, messages: Sequence[Message], owner: str = "") -> None:
        await raising(response_id, messages, owner)


class UnreadableStore(MemoryStore):
    """Store that cannot be read."""

    async def get(self, response_id: str, owner: str = "") -> Sequence[Message] | None:
        await raising(response_id, owner)
        return None


class HangingStore(MemoryStore):
    """Store that does not answer."""

    async def get(self, response_id: str, owner: str = "") -> Sequence[Message] | None:
        await hanging(response_id, owner)
        return None

    async def put(self, response_id: str, messages: Sequence[Message], owner: str = "") -> None:
        await hanging(response_id, messages, owner)


ACCOUNTINGS: Final[dict[str, dict[str, Any]]] = {
    "on_message raises": {"on_message": raising},
    "on_message raises at once": {"on_message": at_once},
    "on_message cancels itself": {"on_message": cancelled},
    "on_message hangs": {"on_message": hanging},
    "store raises": {"store": FailingStore()},
    "store hangs": {"store": HangingStore()},
    "both hang": {"store": HangingStore(), "on_message": hanging},
}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_accounting_that_fails_costs_the_client_nothing(
    accounting: str, caplog: pytest.LogCaptureFixture, *, streams: bool
) -> None:
    options = ACCOUNTINGS[accounting] | {"accounting_seconds": 0.2}
    with gateway("openai-chat", **options) as (url, server):
        server.queue(answer("openai-chat", "hello"))
        response = post(url, "openai-responses", streams=streams)
    assert response.status_code == 200
    assert "hello" in response.text
    assert ("response.completed" if streams else '"completed"') in response.text
    assert any(record.levelno == logging.ERROR for record in caplog.records)


def test_failures_are_counted_where_a_program_can_read_them() -> None:
    with ReplayServer() as server:
        server.queue(answer("openai-chat", "hello"))
        app = create_app({"m": upstream("openai-chat", server.url)}, on_message=raising)
        with served(app) as url:
            assert post(url, "openai-chat", streams=False).status_code == 200
    assert app.state.accounting.failures == 1


def test_a_slow_hook_ends_behind_its_answer() -> None:
    told: list[str] = []

    async def on_message(_: ClientRequest, message: Message, __: object) -> None:
        await asyncio.sleep(0.5)
        told.append(message.text)

    options = {"on_message": on_message, "accounting_seconds": 0.05}
    with gateway("openai-chat", **options) as (url, server):
        server.queue(answer("openai-chat", "hello"))
        assert post(url, "openai-chat", streams=False).status_code == 200
        assert not told
        while not told:
            httpx2.get(url + "/health")
    assert told == ["hello"]


def test_a_hook_that_was_fast_is_told_before_the_client_has_the_end() -> None:
    told: list[str] = []

    async def on_message(_: ClientRequest, message: Message, __: object) -> None:
        told.append(message.text)

    with gateway("openai-chat", on_message=on_message) as (url, server):
        server.queue(answer("openai-chat", "hello"))
        post(url, "openai-chat", streams=True)
        assert told == ["hello"]


@pytest.mark.parametrize("store", [UnreadableStore(), HangingStore()], ids=["raises", "hangs"])
def test_a_store_that_cannot_be_read_is_503_before_the_upstream_is_called(
    store: MemoryStore,
) -> None:
    with gateway("openai-chat", store=store, accounting_seconds=0.1) as (url, server):
        members = {"previous_response_id": "resp_1"}
        response = post(url, "openai-responses", streams=False, **members)
        requests = server.requests
    assert response.status_code == 503
    assert "10.0.0.7" not in response.text
    assert response.json()["error"]["message"]
    assert not requests


async def of_another_type(*_: object) -> Any:  # noqa: ANN401 - never returned
    return 42


GUARDS: Final = (raising, cancelled, at_once, of_another_type)


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__)
@pytest.mark.parametrize("hook", ["on_connect", "on_request", "on_delta"])
def test_a_guard_that_fails_lets_nothing_pass(
    hook: str, guard: Callable[..., Any], protocol: str, *, streams: bool
) -> None:
    with gateway("openai-chat", **{hook: guard}) as (url, server):
        server.queue(answer("openai-chat", "SECRET"))
        response = post(url, protocol, streams=streams)
        requests = server.requests
    assert "SECRET" not in response.text
    assert "10.0.0.7" not in response.text
    assert "error" in response.text
    if not streams or hook != "on_delta":
        assert response.status_code == 500
        assert response.json()["error"]["message"] == f"the hook {hook} of the gateway failed"
    assert bool(requests) == (hook == "on_delta")


def test_a_request_of_a_hook_replaces_the_clients() -> None:
    async def on_request(_: Request, one: ClientRequest) -> ClientRequest:
        return one

    async def on_delta(_: ClientRequest, __: DeltaKind, text: str) -> str:
        return text

    with gateway("openai-chat", on_request=on_request, on_delta=on_delta) as (url, server):
        server.queue(answer("openai-chat", "hello"))
        assert "hello" in post(url, "openai-chat", streams=False).text


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/messages/count_tokens", "/v1/models"]
)
def test_a_request_whose_guard_hangs_ends_with_its_client(path: str) -> None:
    ended = threading.Event()

    async def on_request(_: Request, __: ClientRequest) -> None:
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    with gateway("openai-chat", on_request=on_request) as (url, server):
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        method = "GET" if path == "/v1/models" else "POST"
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.request(method, url + path, json=body, timeout=0.5)
        assert ended.wait(10)
        assert not server.requests


def test_context_variables_that_a_guard_sets_are_those_of_the_answer() -> None:
    named: ContextVar[str] = ContextVar("named", default="nobody")
    told: list[str] = []

    async def on_request(_: Request, one: ClientRequest) -> None:
        named.set(one.model_id)

    async def on_message(_: ClientRequest, __: Message, ___: object) -> None:
        told.append(named.get())

    with gateway("openai-chat", on_request=on_request, on_message=on_message) as (url, server):
        for streams in (True, False):
            server.queue(answer("openai-chat", "hello"))
            post(url, "openai-chat", streams=streams)
    assert told == ["m", "m"]


def test_work_that_ends_with_its_client_ends_in_its_result() -> None:
    async def run() -> tuple[str | None, list[object]]:
        problems: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, found: problems.append(found))
        event = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await event.wait()
            return {"type": "http.disconnect"}

        async def work() -> str:
            await asyncio.sleep(0)  # the end of the client is waited for first
            await event.wait()
            return "done"

        asyncio.get_running_loop().call_later(0.01, event.set)
        found = await unless_left(work(), receive)
        await asyncio.sleep(0)
        return found, problems

    assert asyncio.run(run()) == ("done", [])
