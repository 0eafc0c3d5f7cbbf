"""Limits of requests: what one request of a client may need before it is answered.

In: the body of a request, and its members.  Out: the bytes of the body, or a refusal that names the
limit.

Laws: a body is bounded as it is sent and as it is unpacked, before it is read. The defaults are ten
times and more what agents send. A refusal is 413 or 400, and comes before any upstream is called.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from starlette.requests import Request

from deltafold.gateway.refusals import refusal
from deltafold.transports.encodings import ContentDecodingError, decoded

MAX_BODY_BYTES: Final = 64 << 20
_DIGITS: Final = 20
_DISCARD_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.2
"""How long the rest of a refused body is read, and how long more of it is waited for."""

_CONVERSATIONS: Final = ("messages", "input", "contents")
_IN_A_MESSAGE: Final = ("content", "parts", "tool_calls")
_IN_A_TOOL: Final = ("functionDeclarations", "function_declarations", "tools")


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The most that one request may have.

    >>> app = create_app({"m": "openai/gpt-5.6-terra"}, limits=RequestLimits(messages=500))

    Attributes:
        gzip_members: streams of gzip in a row that a packed body consists of.
        messages: messages of the conversation.
        parts: parts of all its messages, and calls of tools.
        tools: tools.
        depth: how deeply objects and lists are nested.
    """

    gzip_members: int = 64
    messages: int = 10_000
    parts: int = 50_000
    tools: int = 2_000
    depth: int = 200

    def check(self, members: Mapping[str, object]) -> None:
        """Refuse a request that has more than it may.

        Raises:
            ModelError: its status is 413 or, for the depth, 400; it names the limit.
        """
        items = [item for name in _CONVERSATIONS for item in _items(members.get(name))]
        self._bound("messages", len(items), self.messages)
        self._bound("parts", _count(items, _IN_A_MESSAGE), self.parts)
        tools = _items(members.get("tools"))
        self._bound("tools", len(tools) + _count(tools, _IN_A_TOOL), self.tools)
        level: list[object] = [members]
        for _ in range(self.depth):
            level = [
                child
                for node in level
                for child in (
                    cast("dict[str, object]", node).values()
                    if isinstance(node, dict)
                    else cast("list[object]", node)
                )
                if isinstance(child, dict | list)
            ]
            if not level:
                return
        raise refusal(f"the body is nested more than {self.depth} deep (limits.depth)")

    def _bound(self, name: str, count: int, most: int) -> None:
        if count > most:
            message = f"the request has {count:,} {name}, and {most:,} at most (limits.{name})"
            raise refusal(message, status=413)


async def body_of(request: Request, max_bytes: int, max_members: int) -> bytes:
    """Return the body of a request, unpacked.

    Args:
        request: the request.
        max_bytes: the most bytes of the body, as it is sent and as it is unpacked.
        max_members: the most streams of gzip in a row.

    Raises:
        ModelError: the body is too large (413), or not packed as its header says (415).
    """
    stated = request.headers.get("content-length", "")
    if stated.isdecimal() and len(stated) < _DIGITS:
        _bound_bytes(int(stated), max_bytes)
    sent = _bounded(request.stream(), max_bytes)
    encoding = request.headers.get("content-encoding")
    try:
        unpacked = decoded(sent, encoding, max_members=max_members)
        # Starlette's stream ends with an empty piece; the join of one piece copies nothing.
        return b"".join([piece async for piece in _bounded(unpacked, max_bytes) if piece])
    except ContentDecodingError as error:
        raise refusal(str(error), status=415) from error


async def discard_body(request: Request, max_bytes: int) -> None:
    """Read the rest of a body that is refused, so that its client reads why.

    A connection that is closed while its client sends is reset, and the answer is lost. What comes
    late or is too much is not waited for.
    """
    if "expect" in request.headers:  # the client asks before it sends
        return
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while size < max_bytes:
                async with asyncio.timeout(_PAUSE_SECONDS):
                    message = await request.receive()
                size += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body"):
                    return


async def _bounded(pieces: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in pieces:
        size += len(piece)
        _bound_bytes(size, max_bytes)
        yield piece


def _bound_bytes(size: int, most: int) -> None:
    if size > most:
        raise refusal(f"the body has more than {most:,} bytes (max_body_bytes)", status=413)


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _count(items: Iterable[object], names: Iterable[str]) -> int:
    return sum(
        len(_items(cast("dict[str, object]", item).get(name)))
        for item in items
        if isinstance(item, dict)
        for name in names
    )
