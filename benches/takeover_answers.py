"""Answers that the programs read: a text, then two calls, in Chat Completions and in Messages.

In: a dialect.  Out: its body of 2,000 events, and the answer that a program makes of it.

Law: each event has the members that the provider sends.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Final

EVENTS: Final = 2000
DIALECTS: Final = ("openai-chat", "anthropic-messages")
PROMPT_TOKENS: Final = 80
PIECES: Final = 100
"""Number of events with the arguments of one call."""

_WORDS: Final = (" The", " tide", " rises", " at", " Brest", ",", " slowly", " and", " evenly", ".")
_ARGUMENTS: Final[dict[str, object]] = {"place": "Brest", "note": " high tide" * 60}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    name: str
    identifier: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class Answer:
    """Text, calls and counts that a program reads from a stream."""

    text: str
    calls: tuple[Call, ...]
    reason: str | None
    input_tokens: int
    output_tokens: int


def texts(events: int) -> list[str]:
    """Return the text of so many events."""
    return list(islice(cycle(_WORDS), events))


def argument_pieces() -> list[str]:
    """Return the arguments of a call in the pieces of its events."""
    text = json.dumps(_ARGUMENTS)
    size = -(-len(text) // PIECES)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return pieces + [""] * (PIECES - len(pieces))


def expected(dialect: str) -> Answer:
    """Return the answer that a body has."""
    is_chat = dialect == "openai-chat"
    names = ("call_1", "call_2") if is_chat else ("toolu_1", "toolu_2")
    return Answer(
        "".join(texts(_texts_of(dialect))),
        tuple(Call("tide", name, _ARGUMENTS) for name in names),
        "tool_calls" if is_chat else "tool_use",
        PROMPT_TOKENS,
        EVENTS,
    )


def body(dialect: str) -> bytes:
    """Return the body of a dialect."""
    events = list(_chat() if dialect == "openai-chat" else _messages())
    if len(events) != EVENTS:
        raise AssertionError(len(events))
    return b"".join(events)


def _texts_of(dialect: str) -> int:
    # Other events of Chat: the role, two starts of calls, the reason, the counts, the end. Other
    # events of Messages: the start, the start and the stop of three blocks, the reason, the end.
    return EVENTS - 2 * PIECES - (6 if dialect == "openai-chat" else 9)


def _chat() -> Iterator[bytes]:
    def event(choices: list[Any], usage: object = None) -> bytes:
        members: dict[str, object] = {
            "id": "chatcmpl-CfR0eXq9mUu1vKz5b2nT7aLwYs3Hd",
            "object": "chat.completion.chunk",
            "created": 1763928000,
            "model": "gpt-4.1-2025-04-14",
            "service_tier": "default",
            "system_fingerprint": "fp_b3f1157249",
            "choices": choices,
            "usage": usage,
            "obfuscation": "xJ3kQ9aWcZ",
        }
        return b"data: %b\n\n" % json.dumps(members).encode()

    def choice(delta: dict[str, object], reason: str | None = None) -> list[Any]:
        return [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]

    yield event(choice({"role": "assistant", "content": "", "refusal": None}))
    for text in texts(_texts_of("openai-chat")):
        yield event(choice({"content": text}))
    for index, name in enumerate(("call_1", "call_2")):
        function: dict[str, object] = {"name": "tide", "arguments": ""}
        start = {"index": index, "id": name, "type": "function", "function": function}
        yield event(choice({"tool_calls": [start]}))
        for piece in argument_pieces():
            more = {"index": index, "function": {"arguments": piece}}
            yield event(choice({"tool_calls": [more]}))
    yield event(choice({}, "tool_calls"))
    total = PROMPT_TOKENS + EVENTS
    counts = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": EVENTS, "total_tokens": total}
    yield event([], counts)
    yield b"data: [DONE]\n\n"


def _messages() -> Iterator[bytes]:
    def event(kind: str, **members: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()

    def block(
        index: int, content: dict[str, object], deltas: list[dict[str, object]]
    ) -> Iterator[bytes]:
        yield event("content_block_start", index=index, content_block=content)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)

    head: dict[str, object] = {
        "id": "msg_01QyV2n8hHkVYzJ4sEwZ3bTx",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": 1},
    }
    yield event("message_start", message=head)
    words = texts(_texts_of("anthropic-messages"))
    yield from block(
        0, {"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in words]
    )
    for index, name in enumerate(("toolu_1", "toolu_2"), 1):
        yield from block(
            index,
            {"type": "tool_use", "id": name, "name": "tide", "input": {}},
            [{"type": "input_json_delta", "partial_json": piece} for piece in argument_pieces()],
        )
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    yield event("message_delta", delta=end, usage={"output_tokens": EVENTS})
    yield event("message_stop")
