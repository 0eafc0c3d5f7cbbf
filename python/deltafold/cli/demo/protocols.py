"""Streams one recording through the gateway to official clients of three protocols, side by side.

In: a body of the Messages API.  Out: the events of each client as they arrive, one column a client,
and the text, the arguments and the token counts that each client read.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from time import sleep
from typing import Any, Final

import anthropic
import openai
import uvicorn
from rich.console import Console
from rich.live import Live
from rich.text import Text

from deltafold import AnthropicModel
from deltafold.gateway import create_app
from deltafold.testing import Recording, ReplayTransport

_WIDTHS: Final = (20, 32, 23)
"""Widths of the columns: those of the longest names of events. With gaps they take 80."""
MODEL: Final = "any-name"
_ASKED: Final = "Play me the recording."


@dataclass(slots=True)
class Column:
    """Events and content that one client received.

    Attributes:
        title: the client and its protocol.
        events: the kinds of events, each with the number of those in a row.
        text: the text of the answer.
        arguments: the arguments of its tool call.
        tokens: the tokens of the input and of the output.
    """

    title: str
    events: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    text: str = ""
    arguments: str = ""
    tokens: tuple[int, int] = (0, 0)

    def add(self, kind: str) -> None:
        """Note an event."""
        if self.events and self.events[-1][0] == kind:
            self.events[-1] = (kind, self.events[-1][1] + 1)
        else:
            self.events.append((kind, 1))


def show(body: bytes, pace_seconds: float) -> list[Column]:
    """Stream the recording to all clients at once; returns a column for each client."""
    columns = [Column("openai, Chat"), Column("openai, Responses"), Column("anthropic, Messages")]
    with _gateway(body, pace_seconds) as url, _live() as draw:
        asyncio.run(_read_all(url, columns, lambda: draw(_table(columns))))
    print(_table(columns))
    return columns


@contextmanager
def _live() -> Generator[Callable[[str], None]]:
    """Draw a text over and over on a terminal, and erase it at the end."""
    if not sys.stdout.isatty():
        yield lambda _: None
        return
    with Live(console=Console(), transient=True, vertical_overflow="crop") as live:
        yield lambda text: live.update(Text(text))


@contextmanager
def _gateway(body: bytes, pace_seconds: float) -> Generator[str]:
    recording = Recording.of_events(body, delay=pace_seconds)
    replay = ReplayTransport({"*": recording})
    model = AnthropicModel({"model_id": "claude-demo"}, client=replay, api_key="unused")
    config = uvicorn.Config(create_app({"*": model}), port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


async def _read_all(url: str, columns: list[Column], changed: Callable[[], None]) -> None:
    chat, responses, messages = columns
    async with (
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused") as of_openai,
        anthropic.AsyncAnthropic(base_url=url, api_key="unused") as of_anthropic,
    ):

        async def read(column: Column, kinds: AsyncIterator[str]) -> None:
            async for kind in kinds:
                column.add(kind)
                changed()

        await asyncio.gather(
            read(chat, _chat(of_openai, chat)),
            read(responses, _responses(of_openai, responses)),
            read(messages, _messages(of_anthropic, messages)),
        )


async def _chat(client: openai.AsyncOpenAI, column: Column) -> AsyncIterator[str]:
    stream = await client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": _ASKED}],
        stream=True,
        stream_options={"include_usage": True},
    )
    async for chunk in stream:
        if chunk.usage is not None:
            column.tokens = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        for choice in chunk.choices:
            delta: Mapping[str, Any] = choice.delta.model_dump(exclude_none=True)
            column.text += delta.get("content", "")
            for call in delta.get("tool_calls", ()):
                column.arguments += call["function"].get("arguments", "")
            if choice.finish_reason is not None:
                yield "finish_reason"
            else:
                yield ", ".join(name for name, value in delta.items() if value)
        if not chunk.choices:
            yield "usage"


async def _responses(client: openai.AsyncOpenAI, column: Column) -> AsyncIterator[str]:
    stream = await client.responses.create(model=MODEL, input=_ASKED, stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            column.text += event.delta
        elif event.type == "response.function_call_arguments.delta":
            column.arguments += event.delta
        elif event.type == "response.completed" and event.response.usage is not None:
            usage = event.response.usage
            column.tokens = usage.input_tokens, usage.output_tokens
        yield event.type.removeprefix("response.")


async def _messages(client: anthropic.AsyncAnthropic, column: Column) -> AsyncIterator[str]:
    async with client.messages.stream(
        model=MODEL, max_tokens=1000, messages=[{"role": "user", "content": _ASKED}]
    ) as stream:
        async for event in stream:
            if event.type == "content_block_delta":
                delta = event.delta
                column.text += delta.text if delta.type == "text_delta" else ""
                column.arguments += delta.partial_json if delta.type == "input_json_delta" else ""
                yield delta.type
            elif event.type in {"message_start", "content_block_start", "message_stop"}:
                yield event.type
        usage = (await stream.get_final_message()).usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    column.tokens = usage.input_tokens + cached, usage.output_tokens


def _table(columns: list[Column]) -> str:
    """Return the events of all clients, each kind in a line with the number of those in a row."""
    rows = [[one.title for one in columns]]
    rows += [
        [_cell(column, row) for column in columns]
        for row in range(max(len(column.events) for column in columns))
    ]
    return "\n".join("  " + " ".join(map(str.ljust, row, _WIDTHS)).rstrip() for row in rows)


def _cell(column: Column, row: int) -> str:
    if row >= len(column.events):
        return ""
    kind, count = column.events[row]
    return f"   {kind}" if count == 1 else f"{count:>2} {kind}"
