"""The upstream of the bad day: answers that repeat the markers of their request, and its counts.

    bad_day_server.py      serve on a free port of the loopback, which is printed

In: requests of Chat, of Messages and of Responses, whose last message has an order
(`bad_day_orders.py`).  Out: streams with the markers of the request before `WORDS`; at `/calls`,
the `Reads` of each marker since the last look.

Laws: every answer announces that its connection is kept. A request is counted when it was read
whole.
"""

import asyncio
import contextlib
import dataclasses
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from bad_day_orders import TOOL_HANGS, Order, last_order, markers_of
from soak_processes import Period, note_stalls
from soak_server import CHAT_ERROR, LENGTH, WORDS, Answered, Left, chat, event, messages, play

PAUSE: Final = 0.15
CLOSE_SECONDS: Final = 0.02
"""The longest time between the end of an answer and the fault `close`."""

_RESULT: Final = re.compile(r'"role": ?"tool"')


@dataclass
class Reads:
    """The requests of one marker.

    Attributes:
        read: all of them.
        lost_new: those whose connection was closed without a byte, on a new connection.
        lost_kept: those on a connection that had served an earlier request.
    """

    read: int = 0
    lost_new: int = 0
    lost_kept: int = 0


@dataclass
class Counts:
    """What the upstream has seen since the last look.

    Attributes:
        calls: the requests by their marker.
        closed: connections that were closed after an answer that had announced to keep them.
        stalls: when the event loop of the upstream stood still.
    """

    calls: dict[str, Reads] = field(default_factory=dict[str, Reads])
    closed: int = 0
    stalls: list[Period] = field(default_factory=list[Period])


def responses(response_id: str, texts: Sequence[str]) -> Answered:
    """Return an answer of Responses."""
    number = count()

    def named(kind: str, **members: object) -> bytes:
        return event({"type": kind, "sequence_number": next(number), **members}, kind)

    def part(text: str) -> dict[str, object]:
        return {"type": "output_text", "text": text, "annotations": []}

    def item(status: str, *parts: object) -> dict[str, object]:
        common = {"type": "message", "role": "assistant", "id": f"msg_{response_id}"}
        return {**common, "status": status, "content": parts}

    def response(status: str, *items: object) -> dict[str, object]:
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        common = {"id": response_id, "object": "response", "model": "m", "created_at": 1}
        return {**common, "status": status, "output": items, "usage": usage}

    at = {"item_id": f"msg_{response_id}", "output_index": 0, "content_index": 0}
    begin = (
        named("response.created", response=response("in_progress"))
        + named("response.output_item.added", output_index=0, item=item("in_progress"))
        + named("response.content_part.added", **at, part=part(""))
    )
    words = [named("response.output_text.delta", **at, delta=text) for text in texts]
    whole = "".join(texts)
    done = item("completed", part(whole))
    end = (
        named("response.output_text.done", **at, text=whole)
        + named("response.content_part.done", **at, part=part(whole))
        + named("response.output_item.done", output_index=0, item=done)
        + named("response.completed", response=response("completed", done))
    )
    error = named("error", code="server_error", message="broken")
    return Answered([begin + words[0], *words[1:]], end, error)


def calls(order: Order, first: int) -> Answered:
    """Return an answer of Chat with two calls, whose ids are new."""

    def chunk(delta: object, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return event({"id": "r", "model": "m", "choices": [choice]})

    events: list[bytes] = []
    for index in range(2):
        hangs = index == 0 and order.trouble == TOOL_HANGS
        name = f"call_{first}_{index}"
        arguments = json.dumps({"marker": order.marker, "call": name, "hangs": hangs})
        function = {"name": "work", "arguments": arguments}
        call = {"index": index, "id": name, "type": "function", "function": function}
        events.append(chunk({"tool_calls": [call]}))
    return Answered(events, chunk({}, "tool_calls") + b"data: [DONE]\n\n", CHAT_ERROR)


class Upstream:
    """The upstream of one run."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._stalls: list[Period] = []
        self._noting = asyncio.create_task(note_stalls(self._stalls))
        self._dropped: set[str] = set()
        self._ids = count(1)
        self._chance = random.Random(0)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        is_usable, served = True, 0
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, Left):
            while is_usable:
                head = await reader.readuntil(b"\r\n\r\n")
                found = LENGTH.search(head)
                body = await reader.readexactly(int(found[1]) if found else 0)
                path = head.split(b" ", 2)[1]
                is_usable = await self._answer(path, body, served, reader, writer)
                served += 1
        writer.close()

    async def _answer(
        self,
        path: bytes,
        body: bytes,
        served: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        text = body.decode("latin-1")
        order = last_order(text)
        if order is None:
            self._show(writer)
            return True
        reads = self._counts.calls.setdefault(order.marker, Reads())
        reads.read += 1
        if order.fault == "drop" and order.marker not in self._dropped:
            self._dropped.add(order.marker)
            reads.lost_new += served == 0
            reads.lost_kept += served > 0
            if self._chance.random() < 0.5:
                writer.transport.abort()
            return False
        answered = self._made(path, text, order)
        fault = "none" if order.fault in {"close", "drop"} else order.fault
        is_usable = await play(answered, fault, reader, writer, PAUSE)
        if order.fault != "close":
            return is_usable
        await asyncio.sleep(self._chance.random() * CLOSE_SECONDS)
        self._counts.closed += 1
        return False

    def _made(self, path: bytes, text: str, order: Order) -> Answered:
        """Return the answer to a request."""
        texts = [f"{marker} " for marker in markers_of(text)] + WORDS
        if path.endswith(b"/chat/completions"):
            asks_for_calls = '"tools"' in text and _RESULT.search(text) is None
            return calls(order, next(self._ids)) if asks_for_calls else chat(1, texts)
        if path.endswith(b"/messages"):
            return messages(texts)
        return responses(f"resp_{next(self._ids)}", texts)

    def _show(self, writer: asyncio.StreamWriter) -> None:
        counts, self._counts = self._counts, Counts()
        counts.stalls = self._stalls.copy()
        self._stalls.clear()
        body = json.dumps(dataclasses.asdict(counts)).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        writer.write(head.encode() + b"\r\n\r\n" + body)


async def serve() -> None:
    """Serve until the process is ended."""
    server = await asyncio.start_server(Upstream().connected, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
