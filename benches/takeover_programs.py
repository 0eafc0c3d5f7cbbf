"""Programs that assemble streams by hand, and the same programs with `deltafold.stream`.

In: a client of openai or anthropic, and a function that shows text.  Out: the answer.

Laws: both programs show each text as it arrives. `CONVERTING` makes an object of its own of each
chunk, as frameworks do that have one class for all providers, keeps these, and joins them at the
end; with `stream` it shows the same objects. `LEAN` shows the text itself, and joins while it
reads. Both join calls by their index.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import deltafold
from takeover_answers import Answer, Call

Show: TypeAlias = Callable[[str], object]
Response: TypeAlias = Any
"""The stream of an SDK."""

Open: TypeAlias = Callable[[], Response]
Program: TypeAlias = Callable[[Response, Show], Answer]

QUESTION: Final[Any] = [{"role": "user", "content": "When is high tide in Brest?"}]


def opening(dialect: str, client: Any) -> Open:  # noqa: ANN401 - a client of either SDK
    """Return a function that sends the request."""
    asked: dict[str, Any] = {"model": "m", "messages": QUESTION, "stream": True}
    if dialect == "openai-chat":
        options = {"include_usage": True}
        return lambda: client.chat.completions.create(**asked, stream_options=options)
    return lambda: client.messages.create(**asked, max_tokens=5000)


@dataclass(slots=True)
class CallPiece:
    """A piece of a call, as it arrived."""

    index: int
    identifier: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(slots=True)
class Piece:
    """A chunk of any provider."""

    text: str = ""
    calls: list[CallPiece] = field(default_factory=list[CallPiece])
    reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(slots=True)
class OpenCall:
    """A call whose arguments are still text."""

    identifier: str = ""
    name: str = ""
    texts: list[str] = field(default_factory=list[str])

    def take(self, identifier: str | None, name: str | None, arguments: str | None) -> None:
        """Join a piece."""
        self.identifier = identifier or self.identifier
        self.name = name or self.name
        if arguments:
            self.texts.append(arguments)

    def ended(self) -> Call:
        """Parse the arguments."""
        return Call(self.name, self.identifier, json.loads("".join(self.texts) or "{}"))


def pieces_of_chat(chunks: Iterable[Any]) -> Iterator[Piece]:
    """Yield an object of the program's own for each chunk of Chat Completions."""
    for chunk in chunks:
        piece = Piece()
        if chunk.usage is not None:
            piece.input_tokens = chunk.usage.prompt_tokens
            piece.output_tokens = chunk.usage.completion_tokens
        if chunk.choices:
            choice = chunk.choices[0]
            piece.reason = choice.finish_reason
            piece.text = choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                function = call.function
                arguments = function.arguments or ""
                piece.calls.append(CallPiece(call.index, call.id, function.name, arguments))
        yield piece


def pieces_of_messages(events: Iterable[Any]) -> Iterator[Piece]:
    """Yield an object of the program's own for each event of the Messages API."""
    for event in events:
        piece = Piece()
        if event.type == "message_start":
            piece.input_tokens = event.message.usage.input_tokens
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            block = event.content_block
            piece.calls.append(CallPiece(event.index, block.id, block.name))
        elif event.type == "content_block_delta":
            if event.delta.type == "text_delta":
                piece.text = event.delta.text
            elif event.delta.type == "input_json_delta":
                piece.calls.append(CallPiece(event.index, arguments=event.delta.partial_json))
        elif event.type == "message_delta":
            piece.reason = event.delta.stop_reason
            piece.output_tokens = event.usage.output_tokens
        yield piece


def joined(pieces: Iterable[Piece]) -> Answer:
    """Join the pieces of an answer."""
    texts: list[str] = []
    calls: dict[int, OpenCall] = {}
    reason, input_tokens, output_tokens = None, 0, 0
    for piece in pieces:
        texts.append(piece.text)
        reason = piece.reason or reason
        input_tokens = piece.input_tokens or input_tokens
        output_tokens = piece.output_tokens or output_tokens
        for call in piece.calls:
            found = calls.setdefault(call.index, OpenCall())
            found.take(call.identifier, call.name, call.arguments)
    ended = tuple(call.ended() for call in calls.values())
    return Answer("".join(texts), ended, reason, input_tokens, output_tokens)


def _converting(convert: Callable[[Iterable[Any]], Iterator[Piece]]) -> Program:
    def read(response: Response, show: Show) -> Answer:
        kept: list[Piece] = []
        for piece in convert(response):
            kept.append(piece)
            if piece.text:
                show(piece.text)
        return joined(kept)

    return read


def lean_chat(response: Response, show: Show) -> Answer:
    """Read Chat Completions without objects of the program's own."""
    texts: list[str] = []
    calls: dict[int, OpenCall] = {}
    reason, usage = None, None
    for chunk in response:
        usage = chunk.usage or usage
        if not chunk.choices:
            continue
        choice = chunk.choices[0]
        reason = choice.finish_reason or reason
        if choice.delta.content:
            texts.append(choice.delta.content)
            show(choice.delta.content)
        for call in choice.delta.tool_calls or ():
            found = calls.setdefault(call.index, OpenCall())
            found.take(call.id, call.function.name, call.function.arguments)
    counts = (0, 0) if usage is None else (usage.prompt_tokens, usage.completion_tokens)
    return Answer("".join(texts), tuple(call.ended() for call in calls.values()), reason, *counts)


def lean_messages(response: Response, show: Show) -> Answer:
    """Read the Messages API without objects of the program's own."""
    texts: list[str] = []
    calls: dict[int, OpenCall] = {}
    reason, input_tokens, output_tokens = None, 0, 0
    for event in response:
        if event.type == "content_block_delta":
            if event.delta.type == "text_delta":
                texts.append(event.delta.text)
                show(event.delta.text)
            elif event.delta.type == "input_json_delta":
                calls[event.index].texts.append(event.delta.partial_json)
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            calls[event.index] = OpenCall(event.content_block.id, event.content_block.name)
        elif event.type == "message_start":
            input_tokens = event.message.usage.input_tokens
        elif event.type == "message_delta":
            reason, output_tokens = event.delta.stop_reason, event.usage.output_tokens
    ended = tuple(call.ended() for call in calls.values())
    return Answer("".join(texts), ended, reason, input_tokens, output_tokens)


def answer_of(message: deltafold.Message) -> Answer:
    """Return the answer that a message has."""
    meta = message.meta
    calls = tuple(
        Call(call.tool_name, call.tool_call_id, call.arguments or {})
        for call in message.runnable_tool_calls
    )
    usage = meta.usage or deltafold.Usage()
    counts = usage.input_tokens or 0, usage.output_tokens or 0
    return Answer(message.text, calls, meta.raw_finish_reason, *counts)


def converting_by_stream(response: Response, show: Show) -> Answer:
    """Show objects of the program's own, and take the answer of the message."""
    with deltafold.stream(response) as stream:
        for text in stream.text():
            piece = Piece(text)
            show(piece.text)
        return answer_of(stream.final_message())


def lean_by_stream(response: Response, show: Show) -> Answer:
    """Show the text, and take the answer of the message."""
    with deltafold.stream(response) as stream:
        for text in stream.text():
            show(text)
        return answer_of(stream.final_message())


class Written(NamedTuple):
    """A program by hand, and with `stream`."""

    by_hand: dict[str, Program]
    by_stream: Program


PROGRAMS: Final = {
    "an object of its own for each chunk": Written(
        {
            "openai-chat": _converting(pieces_of_chat),
            "anthropic-messages": _converting(pieces_of_messages),
        },
        converting_by_stream,
    ),
    "lean": Written(
        {"openai-chat": lean_chat, "anthropic-messages": lean_messages}, lean_by_stream
    ),
}
