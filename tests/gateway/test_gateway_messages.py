"""The ASGI messages of a streamed answer: which middlewares see them, and that none is lost."""

from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deltafold.gateway import ModelTable, create_app, read_request, respond
from deltafold.testing import ReplayServer
from gateway_clients import TEXT, recorded
from gateways import served, upstream

BODY = {
    "model": "m",
    "max_tokens": 9,
    "stream": True,
    "messages": [{"role": "user", "content": "?"}],
}


class Seeing:
    """A middleware that keeps the messages of an answer."""

    def __init__(self, app: ASGIApp, seen: list[Message]) -> None:
        self.app = app
        self.seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def seeing(message: Message) -> None:
            self.seen.append(message)
            await send(message)

        await self.app(scope, receive, seeing)


def answer_of(app: Any) -> bytes:  # noqa: ANN401 - an ASGI application
    with served(app) as url:
        return httpx2.post(f"{url}/v1/messages", json=BODY).content


def bytes_of(seen: list[Message]) -> bytes:
    assert [message["type"] for message in seen].count("http.response.start") == 1
    return b"".join(message.get("body", b"") for message in seen)


@pytest.mark.parametrize("dialect", ["anthropic-messages", "openai-chat"])
@pytest.mark.parametrize("place", ["inside", "around", "mounted", "nested", "none"])
def test_a_middleware_sees_all_messages_wherever_it_is(place: str, dialect: str) -> None:
    seen: list[Message] = []
    with ReplayServer([recorded(TEXT, dialect)]) as server:
        inner = create_app({"m": upstream(dialect, server.url)})
        app: ASGIApp = inner
        if place == "inside":
            inner.add_middleware(Seeing, seen)
        elif place == "around":
            app = Seeing(inner, seen)
        elif place == "mounted":
            outer = Starlette()
            outer.router.lifespan_context = inner.router.lifespan_context
            outer.add_middleware(Seeing, seen)
            outer.mount("/", inner)
            app = outer
        elif place == "nested":
            inner.add_middleware(Seeing, seen)
            outer = create_app({"other": upstream(dialect, server.url)})
            outer.router.lifespan_context = inner.router.lifespan_context
            outer.router.routes.insert(0, Mount("/", inner))
            app = outer
        body = answer_of(app)
    assert b"sun in Rome." in body
    assert body.endswith(b'{"type":"message_stop"}\n\n')
    if place != "none":
        assert bytes_of([message for message in seen if "http" in message["type"]]) == body


def test_a_response_sends_through_what_its_caller_gives_it() -> None:
    seen: list[Message] = []
    with ReplayServer([recorded(TEXT, "openai-chat")]) as server:
        table = ModelTable({"m": upstream("openai-chat", server.url)})
        app = create_app(table)

        async def own(scope: Scope, receive: Receive, send: Send) -> None:
            asked = read_request("anthropic-messages", await Request(scope, receive).body())
            response = await respond(asked, table.find(asked.model_id))
            await Seeing(response, seen)(scope, receive, send)

        app.router.routes.insert(0, Mount("/v1/messages", own))
        with served(app) as url:
            body = httpx2.post(f"{url}/v1/messages/", json=BODY).content
    assert b"sun in Rome." in body
    assert bytes_of(seen) == body


def test_messages_after_the_beginning_go_to_the_server_directly() -> None:
    wrapped: list[str] = []
    with ReplayServer([recorded(TEXT, "openai-chat")]) as server:
        app = create_app({"m": upstream("openai-chat", server.url)})
        build = app.build_middleware_stack

        def built() -> ASGIApp:
            stack = build()

            async def counting(scope: Scope, receive: Receive, send: Send) -> None:
                async def counted(message: Message) -> None:
                    wrapped.append(message["type"])
                    await send(message)

                await stack(scope, receive, counted if scope["type"] == "http" else send)

            return counting

        app.build_middleware_stack = built  # type: ignore[method-assign]  # to count
        assert b"sun in Rome." in answer_of(app)
    assert wrapped == ["http.response.start"]
