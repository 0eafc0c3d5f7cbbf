"""The streams that are measured: plain text in both dialects, cut into feeds.

In: how many events.  Out: the body's events, each with the members that the provider really sends,
and the same bytes in feeds of 16 KiB or of one event.

The sizes are those of real streams: 301 bytes an event for Chat with its padding member, 126 for
Anthropic.
"""

import json
from typing import Final, Literal, TypeAlias

Feed: TypeAlias = Literal["16 KiB", "1 event"]

FEEDS: Final[tuple[Feed, ...]] = ("16 KiB", "1 event")
DIALECTS: Final = ("openai-chat", "anthropic-messages")

# A long answer, and the median real stream.
LENGTHS: Final = (2000, 20)

_WORDS = (" the", " stream", " of", " words", " flows", " on", ",", " and", " folds", " up")


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _chat(delta: dict[str, object], finish_reason: str | None = None) -> bytes:
    chunk: dict[str, object] = {
        "id": "chatcmpl-C5vyvpkVGXKzJvbjMV6HzCEmnmNYE",
        "object": "chat.completion.chunk",
        "created": 1795000000,
        "model": "gpt-5-mini-2025-08-07",
        "service_tier": "default",
        "system_fingerprint": None,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}],
        "usage": None,
        "obfuscation": "xJ3kQ9aWcZ",
    }
    return b"data: " + _dump(chunk) + b"\n\n"


def _chat_events(count: int) -> list[bytes]:
    usage = {"prompt_tokens": 12, "completion_tokens": count, "total_tokens": 12 + count}
    last: dict[str, object] = {
        "id": "chatcmpl-C5vyvpkVGXKzJvbjMV6HzCEmnmNYE",
        "object": "chat.completion.chunk",
        "created": 1795000000,
        "model": "gpt-5-mini-2025-08-07",
        "choices": [],
        "usage": usage,
    }
    texts = [_chat({"content": _WORDS[at % len(_WORDS)]}) for at in range(count - 4)]
    return [
        _chat({"role": "assistant", "content": ""}),
        *texts,
        _chat({}, "stop"),
        b"data: " + _dump(last) + b"\n\n",
        b"data: [DONE]\n\n",
    ]


def _anthropic(event: dict[str, object]) -> bytes:
    return f"event: {event['type']}\ndata: ".encode() + _dump(event) + b"\n\n"


def _anthropic_events(count: int) -> list[bytes]:
    message: dict[str, object] = {
        "id": "msg_01QyV2n8hHkVYzJ4sEwZ3bTx",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 12, "output_tokens": 1},
    }
    block = {"type": "text", "text": ""}
    texts: list[dict[str, object]] = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": _WORDS[at % len(_WORDS)]},
        }
        for at in range(count - 5)
    ]
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *texts,
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": count},
        },
        {"type": "message_stop"},
    ]
    return [_anthropic(event) for event in events]


def feeds(dialect: str, count: int, feed: Feed) -> list[bytes]:
    """Return a stream of so many events, cut into feeds."""
    events = _chat_events(count) if dialect == "openai-chat" else _anthropic_events(count)
    if feed == "1 event":
        return events
    body = b"".join(events)
    size = 16 * 1024
    return [body[at : at + size] for at in range(0, len(body), size)]


def text(count: int, dialect: str) -> str:
    """Return the text that a stream of so many events says."""
    texts = count - (4 if dialect == "openai-chat" else 5)
    return "".join(_WORDS[at % len(_WORDS)] for at in range(texts))
