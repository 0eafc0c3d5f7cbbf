"""The streams that are measured: text, tool arguments and log probabilities, cut into feeds.

In: how many events, or what the arguments are.  Out: the body's events, each with the members that
the provider really sends, and the same bytes in feeds of 16 KiB or of one event.

The sizes are those of real streams: 301 bytes an event for Chat with its padding member, 126 for
Anthropic.
"""

import json
from typing import Final, Literal, TypeAlias

Feed: TypeAlias = Literal["16 KiB", "1 event"]

DIALECTS: Final = ("openai-chat", "anthropic-messages")
# The other streams whose stages are measured in Rust; Gemini counts anew with most chunks.
STAGED_TOO: Final = ("openai-responses", "gemini", "gemini, counts that grow")

FEED_BYTES: Final = 16 * 1024

_WORDS = (" the", " stream", " of", " words", " flows", " on", ",", " and", " folds", " up")


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _chat(
    delta: dict[str, object], finish_reason: str | None = None, logprobs: object = None
) -> bytes:
    chunk: dict[str, object] = {
        "id": "chatcmpl-C5vyvpkVGXKzJvbjMV6HzCEmnmNYE",
        "object": "chat.completion.chunk",
        "created": 1795000000,
        "model": "gpt-5-mini-2025-08-07",
        "service_tier": "default",
        "system_fingerprint": None,
        "choices": [
            {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
        ],
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


def _anthropic_events(
    block: dict[str, object], deltas: list[dict[str, object]], stop_reason: str
) -> list[bytes]:
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
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {"input_tokens": 12, "output_tokens": len(deltas)},
        },
        {"type": "message_stop"},
    ]
    return [_anthropic(event) for event in events]


def _anthropic_text(count: int) -> list[bytes]:
    texts: list[dict[str, object]] = [
        {"type": "text_delta", "text": _WORDS[at % len(_WORDS)]} for at in range(count - 5)
    ]
    return _anthropic_events({"type": "text", "text": ""}, texts, "end_turn")


def large_feeds(events: list[bytes]) -> list[bytes]:
    """Cut the body into feeds of 16 KiB."""
    body = b"".join(events)
    return [body[at : at + FEED_BYTES] for at in range(0, len(body), FEED_BYTES)]


def feeds(dialect: str, count: int, feed: Feed) -> list[bytes]:
    """Return a stream of so many events, cut into feeds."""
    events = _chat_events(count) if dialect == "openai-chat" else _anthropic_text(count)
    return events if feed == "1 event" else large_feeds(events)


def half_a_stream(dialect: str, deltas: int) -> list[bytes]:
    """Return the events of a stream up to so many text deltas, without its end."""
    if dialect == "openai-chat":
        return _chat_events(deltas + 4)[: deltas + 1]
    return _anthropic_text(deltas + 5)[: deltas + 2]


def arguments_feeds(dialect: str, text: bytes, delta_characters: int) -> list[bytes]:
    """Return a tool call whose arguments are this text, in deltas of so many characters."""
    whole = text.decode()
    pieces = [whole[at : at + delta_characters] for at in range(0, len(whole), delta_characters)]
    if dialect == "anthropic-messages":
        block: dict[str, object] = {
            "type": "tool_use",
            "id": "toolu_01A09q90qw90lq917835lq9",
            "name": "write_file",
            "input": {},
        }
        deltas: list[dict[str, object]] = [
            {"type": "input_json_delta", "partial_json": piece} for piece in pieces
        ]
        return large_feeds(_anthropic_events(block, deltas, "tool_use"))
    name = {"name": "write_file", "arguments": ""}
    call = {"index": 0, "id": "call_DdmO9pD3xa9XTPNJ32zg2hcA", "type": "function", "function": name}
    events = [_chat({"role": "assistant", "content": None, "tool_calls": [call]})]
    events.extend(
        _chat({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces
    )
    return large_feeds([*events, _chat({}, "tool_calls"), b"data: [DONE]\n\n"])


def _token(at: int, alternatives: int) -> dict[str, object]:
    """One token with so many alternatives."""
    word = _WORDS[at % len(_WORDS)]
    top = [
        {"token": word, "logprob": -rank - at % 9973 / 9973, "bytes": list(word.encode())}
        for rank in range(max(1, alternatives))
    ]
    return {**top[0], "top_logprobs": top[:alternatives]}


def logprob_feeds(tokens: int, alternatives: int) -> list[bytes]:
    """Return a stream with the log probabilities of each token."""
    events = [_chat({"role": "assistant", "content": ""})]
    for at in range(tokens):
        logprobs = {"content": [_token(at, alternatives)], "refusal": None}
        events.append(_chat({"content": _WORDS[at % len(_WORDS)]}, logprobs=logprobs))
    return large_feeds([*events, _chat({}, "stop"), b"data: [DONE]\n\n"])


def logprob_body(tokens: int, alternatives: int) -> bytes:
    """Return a whole answer with the log probabilities of each token."""
    said = "".join(_WORDS[at % len(_WORDS)] for at in range(tokens))
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": said, "refusal": None},
        "logprobs": {
            "content": [_token(at, alternatives) for at in range(tokens)],
            "refusal": None,
        },
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 12, "completion_tokens": tokens, "total_tokens": 12 + tokens}
    return _dump(
        {
            "id": "chatcmpl-C5vyvpkVGXKzJvbjMV6HzCEmnmNYE",
            "object": "chat.completion",
            "created": 1795000000,
            "model": "gpt-5-mini-2025-08-07",
            "choices": [choice],
            "usage": usage,
        }
    )


def text(count: int, dialect: str) -> str:
    """Return the text that a stream of so many events says."""
    texts = count - (4 if dialect == "openai-chat" else 5)
    return "".join(_WORDS[at % len(_WORDS)] for at in range(texts))
