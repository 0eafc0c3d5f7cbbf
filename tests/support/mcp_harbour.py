"""A server of MCP with a tool for each kind of result: in this process, on stdio or over HTTP.

In: `stdio` or `http` as the argument of the program, else `Harbour`.  Out: the server. The program
over HTTP writes the port that it listens on.

Laws: the list of the tools has two pages. `wait` reports its progress once, and ends when it is
cancelled; `waited` returns when it has ended. `meet` returns when it is called twice at once.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeAlias

import anyio
import uvicorn
from mcp import Client, ClientSession, MCPError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

PIXEL: Final = "iVBORw0KGgo="
SOUND: Final = "UklGRg=="
PAGES: Final[list[list[str]]] = [
    ["text", "texts", "image", "sound", "note", "blob", "link", "broken", "nothing"],
    ["structured", "explained", "list", "fail", "refuse", "count", "meet", "wait", "waited", "die"],
]
SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"self": {"$ref": "#/$defs/place"}, "depth": {"type": "number", "minimum": 0}},
    "required": ["self"],
    "additionalProperties": False,
    "$defs": {"place": {"type": "string", "minLength": 2, "x-unit": "harbour"}},
}
"""The schema of `text`, whose arguments have names that Python uses too."""

Block: TypeAlias = types.ContentBlock
Context: TypeAlias = ServerRequestContext[dict[str, Any], Any]
Session: TypeAlias = ClientSession | Client

_FILE: Final = types.TextResourceContents(
    uri="file:///log.txt", text="calm", mime_type="text/plain"
)
_BLOB: Final = types.BlobResourceContents(
    uri="file:///tides%20today.pdf", blob="JVBERi0=", mime_type="application/pdf"
)
_CONTENTS: Final[dict[str, list[Block]]] = {
    "texts": [types.TextContent(text="17:42"), types.TextContent(text="5.1 m")],
    "image": [
        types.TextContent(text="seen"),
        types.ImageContent(data=PIXEL, mime_type="image/png"),
    ],
    "sound": [types.AudioContent(data=SOUND, mime_type="audio/wav")],
    "note": [types.EmbeddedResource(resource=_FILE)],
    "blob": [types.EmbeddedResource(resource=_BLOB)],
    "link": [
        types.ResourceLink(name="log", uri="file:///log.txt", description="The log of today.")
    ],
    "broken": [types.ImageContent(data="not base64!", mime_type="image/png")],
    "nothing": [],
    "fail": [
        types.TextContent(text="The gauge is dry."),
        types.ImageContent(data=PIXEL, mime_type="image/png"),
    ],
}
_STRUCTURED: Final[dict[str, tuple[list[Block], dict[str, Any]]]] = {
    "structured": (
        [types.TextContent(text='{\n "height": 5.1,\n "at": "17:42"\n}')],
        {"at": "17:42", "height": 5.1},
    ),
    "explained": ([types.TextContent(text="A spring tide.")], {"height": 5.1}),
    "list": (
        [types.TextContent(text="17"), types.TextContent(text="low")],
        {"result": ["17", "low"]},
    ),
}


class Harbour:
    """The server, and what it remembers of its calls."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()
        self._met = asyncio.Barrier(2)
        self._words = list[str]()
        self.server: Server[Any] = Server(
            "harbour", on_list_tools=self._list_tools, on_call_tool=self._call_tool
        )

    async def _list_tools(
        self, _: Context, asked: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        page = 0 if asked is None or asked.cursor is None else int(asked.cursor)
        cursor = str(page + 1) if page + 1 < len(PAGES) else None
        tools = [described(name) for name in PAGES[page]]
        return types.ListToolsResult(tools=tools, next_cursor=cursor)

    async def _call_tool(
        self, context: Context, asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        name, arguments = asked.name, asked.arguments or {}
        if name in _CONTENTS:
            return types.CallToolResult(content=_CONTENTS[name], is_error=name == "fail")
        if name in _STRUCTURED:
            content, value = _STRUCTURED[name]
            return types.CallToolResult(content=content, structured_content=value)
        made = {
            "count": self._count,
            "meet": self._meet,
            "wait": self._wait,
            "waited": self._waited,
        }
        if name in made:
            text = await made[name](context)
        elif name == "text":
            text = f"high tide at {arguments.get('self')}"
        elif name == "die":
            os._exit(1)
        else:
            raise MCPError(types.INVALID_PARAMS, f"no such harbour: {arguments}")
        return types.CallToolResult(content=[types.TextContent(text=text)])

    async def _count(self, context: Context) -> str:
        for step in range(3):
            await context.session.report_progress(step, 3)
        return "counted"

    async def _meet(self, _: Context) -> str:
        await self._met.wait()
        return "met"

    async def _wait(self, context: Context) -> str:
        self._words.append("began")
        try:
            await context.session.report_progress(1, 3, "waiting")
            never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            return await never
        except BaseException as error:
            self._words.append(type(error).__name__)
            self._ended.set()
            raise

    async def _waited(self, _: Context) -> str:
        await self._ended.wait()
        return " ".join(self._words)


def described(name: str) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=name != "die", destructive_hint=name == "die")
    schema = SCHEMA if name == "text" else {"type": "object"}
    title, text = ("Tide times", None) if name == "text" else (None, f"About {name}.")
    return types.Tool(
        name=name, title=title, description=text, input_schema=schema, annotations=hints
    )


# Sessions.


WAYS: Final = ("memory", "legacy memory", "stdio", "http", "legacy http")
PROGRAMS: Final = ("stdio", "http", "legacy http")
"""The ways to a server in another process."""


@asynccontextmanager
async def opened(way: str) -> AsyncGenerator[Session]:
    """Open a session, or a client of the newest protocol, with the server."""
    match way:
        case "memory":
            async with Client(Harbour().server) as client:
                yield client
        case "legacy memory":
            async with Client(Harbour().server, mode="legacy") as client:
                yield client.session
        case "stdio":
            program = StdioServerParameters(command=sys.executable, args=[__file__, "stdio"])
            async with (
                stdio_client(program) as (read, write),
                ClientSession(read, write) as session,
            ):
                await session.initialize()
                yield session
        case "http":
            with served() as url:
                async with Client(url) as client:
                    yield client
        case _:
            with served() as url:
                async with (
                    streamable_http_client(url) as (read, write),
                    ClientSession(read, write) as session,
                ):
                    await session.initialize()
                    yield session


@contextmanager
def served() -> Generator[str]:
    """Run the server in another process, which ends with the block, and yield its address."""
    command = [sys.executable, __file__, "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


async def serve_stdio() -> None:
    server = Harbour().server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve_http() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(Harbour().server.streamable_http_app(), log_config=None)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        anyio.run(serve_stdio)
    else:
        serve_http()
