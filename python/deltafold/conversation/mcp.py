"""Tools of MCP servers: a session of the official `mcp` SDK gives an agent the tools of its server.

In: a session or a client of the SDK, which is open.  Out: one `Tool` for each tool of the server.

Laws: a call is one `tools/call` of the session. Its cancellation and its time limit cancel this
request, and the SDK tells the server so. A call ends when the connection does. Everything that the
server answers reaches the model once: a text that repeats the structured value is left out.
Source: the specification of MCP (https://modelcontextprotocol.io/specification), `server/tools` and
`basic/utilities/cancellation`.
"""

import asyncio
import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from urllib.parse import quote, unquote

from deltafold.contract.exceptions import DeltafoldError, MisuseError
from deltafold.contract.log import LOGGER
from deltafold.conversation.history.frozen import thawed
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.conversation.history.sections import LevelOfDetailSections
from deltafold.conversation.history.tool_calls import (
    ContextAttachment,
    HistoryToolCallResult,
    ToolCallRequest,
)
from deltafold.conversation.tools.tools import Execute, Tool, as_text
from deltafold.message.messages import FileRefPart, ImagePart, TextPart

if TYPE_CHECKING:
    from mcp import Client, ClientSession, MCPError, types

__all__ = ["tools"]

Chosen: TypeAlias = "Iterable[str] | Callable[[types.Tool], bool]"
"""Names of tools, as the server has them, or a function that says whether a tool is meant."""

_Part: TypeAlias = TextPart | ImagePart | FileRefPart

_MAX_PAGES: Final = 1_000
_MIME_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+")
_UNKNOWN_TYPE: Final = "application/octet-stream"

_OTHER_LOOP: Final = (
    "the MCP session of the tool %r belongs to another event loop: await `agent.run` where the "
    "session was opened; `run_sync` runs in a loop of its own"
)
_ENDED: Final = "the connection to the MCP server has ended, and its tools cannot be called"


async def tools(
    session: "ClientSession | Client",
    *,
    only: "Chosen | None" = None,
    require_approval: Chosen = (),
    prefix: str = "",
    timeout_ms: int | None = None,
) -> list[Tool]:
    """Return the tools of an MCP server, which call it through a session.

    >>> from mcp import Client
    >>> from mcp.server import MCPServer
    >>> server = MCPServer("harbour")
    >>> @server.tool()
    ... def tide(place: str) -> str:
    ...     "Look up the next high tide."
    ...     return f"17:42 at {place}"
    >>> async with Client(server) as client:
    ...     tools = await deltafold.conversation.mcp.tools(client)
    >>> [tool.name for tool in tools]
    ['tide']

    The tools are those of this moment: call it again when the server has announced others
    (`notifications/tools/list_changed`).

    Args:
        session: a session that is initialized, or a client, which answers questions of the server
            too (elicitation). The tools work in its event loop, as long as it is open.
        only: the tools to return, by their names or by a function of the SDK's `Tool`; None is all.
        require_approval: the tools whose calls need an approval, in the same form. The hints of the
            server (`tool.annotations`) are worth what the server is.
        prefix: begins the name of each tool, so that two servers may have tools of one name.
        timeout_ms: milliseconds until a call fails; None sets no limit.

    Raises:
        MisuseError: the SDK is not installed, or a name is that of no tool.
        DeltafoldError: the list of the server does not end.
        MCPError: the server refuses the request, or the connection has ended.
    """
    listed = await _listed(session)
    kept = listed if only is None else _chosen("only", only, listed)
    asking = {one.name for one in _chosen("require_approval", require_approval, listed)}
    loop = asyncio.get_running_loop()
    return [
        Tool(
            name=f"{prefix}{one.name}",
            description=one.description or one.title or "",
            parameter_schema=one.input_schema,
            timeout_ms=timeout_ms,
            requires_approval=one.name in asking,
        ).run_by(_caller(session, one.name, loop), reports=True)
        for one in kept
    ]


async def _listed(session: "ClientSession | Client") -> "Sequence[types.Tool]":
    """Return the tools of all pages.

    Raises:
        MisuseError: the SDK is not installed.
        DeltafoldError: the pages do not end.
    """
    try:
        from mcp import Client, types  # noqa: PLC0415 - an optional package
    except ImportError as missing:  # versions before 2 have no Client
        raise MisuseError("mcp 2 is not installed: pip install 'deltafold[mcp]'") from missing
    plain = session.session if isinstance(session, Client) else session
    page = await plain.list_tools()
    found, cursors = list(page.tools), set[str]()
    while (cursor := page.next_cursor) is not None:
        if cursor in cursors or len(cursors) == _MAX_PAGES:
            raise DeltafoldError(f"the MCP server's list of tools does not end: {cursor!r:.100}")
        cursors.add(cursor)
        page = await plain.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        found += page.tools
    return found


def _chosen(option: str, chosen: Chosen, listed: "Sequence[types.Tool]") -> "Sequence[types.Tool]":
    """Return the tools that an option means.

    Raises:
        MisuseError: a name is that of no tool: without it, a misspelled one would need no approval.
    """
    if callable(chosen):
        return [one for one in listed if chosen(one)]
    names = set(chosen)
    known = [one.name for one in listed]
    unknown = sorted(names.difference(known))
    if unknown:
        raise MisuseError(
            f"{option}: the server has no tool {unknown[0]!r}; it has {', '.join(known) or 'none'}"
        )
    return [one for one in listed if one.name in names]


def _caller(
    session: "ClientSession | Client", name: str, loop: asyncio.AbstractEventLoop
) -> Execute:
    """Return the function that calls a tool."""

    async def execute(call: ToolCallRequest, report: Callable[[object], None]) -> object:
        from mcp import MCPError  # noqa: PLC0415 - an optional package

        if asyncio.get_running_loop() is not loop:
            LOGGER.error(_OTHER_LOOP, call.tool_name)
            raise MisuseError(_OTHER_LOOP % call.tool_name)

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            facts = {"progress": progress, "total": total, "message": message}
            report({key: fact for key, fact in facts.items() if fact is not None})

        try:
            return _value_of(
                await session.call_tool(
                    name, thawed(call.arguments or {}), progress_callback=progressed
                )
            )
        except MCPError as error:
            raise _failure_of(error) from error

    return execute


def _failure_of(error: "MCPError") -> Exception:
    """Return the exception of a call: that of the SDK, or one that says that the connection ended.

    The code alone does not say it: servers use it for other errors too.
    """
    from mcp import types  # noqa: PLC0415 - an optional package

    is_end = error.code == types.CONNECTION_CLOSED and error.message == "Connection closed"
    return ConnectionError(_ENDED) if is_end else error


def _value_of(result: "types.CallToolResult") -> object:
    """Return what a tool returns: the structured value, a text, or texts and files.

    A result that the server calls an error is a failed one.
    """
    parts = [_part_of(block) for block in result.content]
    value: object = result.structured_content
    if value is not None:
        said = _said_by(value)
        parts = [one for one in parts if not _repeats(one, said)]
        if not parts and not result.is_error:
            return value
        parts.insert(0, TextPart(text=as_text(value)))
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if result.is_error:
        return HistoryToolCallResult(
            "",
            "",
            ToolExecutionStatus.FAILED,
            LevelOfDetailSections.with_gist("\n\n".join(texts) or "The tool failed."),
            attachments=[
                ContextAttachment(part) for part in parts if not isinstance(part, TextPart)
            ],
        )
    if len(texts) == len(parts) <= 1:
        return "".join(texts)
    return parts


def _said_by(value: object) -> set[str]:
    """Return the JSON of the values that servers repeat as texts beside a structured value.

    That is the value itself. The SDK of Python puts a value that is no object into the member
    `result`, and repeats this value, or each item of a list.
    """
    said = [value]
    if isinstance(value, dict) and value.keys() == {"result"}:
        inner = cast("object", value["result"])
        said += [inner, *cast("list[object]", inner)] if isinstance(inner, list) else [inner]
    return {_canonical(one) for one in said}


def _repeats(part: _Part, said: set[str]) -> bool:
    """Return whether a part is a text of `_said_by`: JSON, or a string as it is."""
    if not isinstance(part, TextPart):
        return False
    if _canonical(part.text) in said:
        return True
    try:
        return _canonical(json.loads(part.text)) in said
    except (ValueError, RecursionError):
        return False


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _part_of(block: "types.ContentBlock") -> _Part:
    """Return a block of a result as the part of a message."""
    from mcp import types  # noqa: PLC0415 - an optional package

    match block:
        case types.TextContent():
            return TextPart(text=block.text)
        case types.ImageContent() | types.AudioContent():
            return _file(block.data, block.mime_type)
        case types.ResourceLink():
            head = f"{block.title or block.name}: {block.uri}"
            return TextPart(text="\n".join(filter(None, (head, block.description))))
        case types.EmbeddedResource(resource=resource):
            if isinstance(resource, types.TextResourceContents):
                return TextPart(text=f"{resource.uri}\n{resource.text}")
            name = unquote(resource.uri.rstrip("/").rpartition("/")[2])
            return _file(resource.blob, resource.mime_type, name)


def _file(data: str, mime_type: str | None, name: str = "") -> _Part:
    """Return an image or another file; a text, if its data is not base64: no provider takes it."""
    stated = (mime_type or "").partition(";")[0].strip()
    known = stated if _MIME_TYPE.fullmatch(stated) else _UNKNOWN_TYPE
    try:
        size = len(b64decode(data, validate=True))
    except ValueError:
        return TextPart(text=f"[{name or known} left out: its data is not base64]")
    if known.startswith("image/"):
        return ImagePart(mime_type=known, data=data)
    named = f";name={quote(name, safe='')}" if name else ""
    return FileRefPart(path=f"data:{known}{named};base64,{data}", mime_type=known, size=size)
