"""The measured processes: the gateway, and a bare forwarder on the same server and client.

    apps.py forward|gateway CLIENT UPSTREAM_URL     serve on a free port, which is printed

In: the package that calls the upstream (`aiohttp` or `httpx2`).  Out: an ASGI application under
uvicorn.
"""

import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from deltafold import AnthropicConfig, AnthropicModel, OpenAIChatConfig, OpenAIChatModel
from deltafold.gateway import create_app
from deltafold.gateway.serving import make_server
from deltafold.transports.http import make_http_client

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"


def forwarder(package: str, url: str) -> Starlette:
    """Return an application that hands on requests and chunks."""
    clients: list[Any] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        clients.append(make_http_client("asynchronous", package))
        yield

    headers = {"content-type": "application/json", "authorization": "Bearer unused"}

    async def by_aiohttp(request: Request) -> StreamingResponse:
        body = await request.body()
        target = url + request.url.path
        response = await clients[0].post(target, data=body, headers=headers)

        async def chunks() -> AsyncIterator[bytes]:
            async with response:
                async for chunk in response.content.iter_any():
                    yield chunk

        return StreamingResponse(chunks(), response.status, media_type="text/event-stream")

    async def by_httpx2(request: Request) -> StreamingResponse:
        body = await request.body()
        target = url + request.url.path
        sent = clients[0].build_request("POST", target, content=body, headers=headers)
        response = await clients[0].send(sent, stream=True)

        async def chunks() -> AsyncIterator[bytes]:
            try:
                async for chunk in response.aiter_raw():
                    yield chunk
            finally:
                await response.aclose()

        status = response.status_code
        return StreamingResponse(chunks(), status, media_type="text/event-stream")

    answer = by_aiohttp if package == "aiohttp" else by_httpx2
    routes = [Route(path, answer, methods=["POST"]) for path in (CHAT, MESSAGES)]
    return Starlette(routes=routes, lifespan=lifespan)


def gateway(package: str, url: str) -> Starlette:
    """Return the gateway, with a Model of Chat and one of the Messages API."""
    settings: Any = {"api_key": "unused", "transport": package}
    chat = OpenAIChatModel(OpenAIChatConfig(model_id="m"), base_url=f"{url}/v1", **settings)
    messages = AnthropicModel(AnthropicConfig(model_id="m"), base_url=url, **settings)
    return create_app({"chat": chat, "messages": messages})


def main(kind: str, package: str, url: str) -> None:
    """Serve."""
    app = {"forward": forwarder, "gateway": gateway}[kind](package, url)
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(listening.getsockname()[1], flush=True)
    make_server(app, log_level="warning", access_log=False).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
