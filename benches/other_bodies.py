"""Text streams of the other dialects, with the members that the providers send.

In: how many events.  Out: the body's events.  Ollama's and Bedrock's are written by the encoder.

Gemini counts anew with each chunk while it generates, as its recordings do; `counts_grow=False`
repeats the counts instead.
"""

import json
from typing import TYPE_CHECKING, Final

from bodies import feeds
from deltafold import transcode

if TYPE_CHECKING:
    from any_name import AnyName

# The pairs of dialects that are transcoded; `source_body` takes the first.
SOURCES: Final = (
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "gemini",
    "gemini, counts that grow",
    "ollama",
    "bedrock-converse",
)
TARGETS: Final = (
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "gemini",
    "ollama",
    "bedrock-converse",
)
_WORDS: Final = (" the", " stream", " of", " words", " flows", " on", ",", " and", " folds", " up")


def _event(value: dict[str, object], *, named: bool) -> bytes:
    name = f"event: {value['type']}\n".encode() if named else b""
    return name + b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def responses_events(count: int) -> list[bytes]:
    """Return a stream of OpenAI Responses."""
    response: dict[str, object] = {
        "id": "resp_68af4030592c81938ec0a5fbab4a3e9f",
        "object": "response",
        "model": "gpt-5-mini-2025-08-07",
        "output": [],
    }
    item = "msg_68af40337e58819392e935fb404414d005fbb5ddbfae6f90"
    usage = {"input_tokens": 12, "output_tokens": count, "total_tokens": 12 + count}
    texts: list[dict[str, object]] = [
        {
            "type": "response.output_text.delta",
            "sequence_number": at + 4,
            "item_id": item,
            "output_index": 0,
            "content_index": 0,
            "delta": _WORDS[at % len(_WORDS)],
            "logprobs": [],
            "obfuscation": "xJ3kQ9aWcZ",
        }
        for at in range(count - 2)
    ]
    whole: list[dict[str, object]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        *texts,
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "usage": usage},
        },
    ]
    return [_event(value, named=True) for value in whole]


def gemini_events(count: int, *, counts_grow: bool = True) -> list[bytes]:
    """Return a stream of Gemini, as server-sent events."""
    return [
        _event(
            {
                "candidates": [
                    {
                        "content": {"parts": [{"text": _WORDS[at % len(_WORDS)]}], "role": "model"},
                        "index": 0,
                        **({"finishReason": "STOP"} if at == count - 1 else {}),
                    }
                ],
                "usageMetadata": {
                    "promptTokenCount": 12,
                    "candidatesTokenCount": at + 1 if counts_grow else count,
                    "totalTokenCount": 13 + at if counts_grow else 12 + count,
                    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
                },
                "modelVersion": "gemini-2.5-flash",
                "responseId": "O9quaIuqMpGfz7IP9tyM6Ak",
            },
            named=False,
        )
        for at in range(count)
    ]


def source_body(source: "AnyName", count: int) -> bytes:
    """Return a text stream of so many events in a dialect; its text is that of the Chat stream."""
    if source in {"openai-chat", "anthropic-messages"}:
        return b"".join(feeds(source, count, "16 KiB"))
    if source == "openai-responses":
        return b"".join(responses_events(count))
    if source.startswith("gemini"):
        return b"".join(gemini_events(count, counts_grow=source.endswith("grow")))
    return transcode(b"".join(feeds("openai-chat", count, "16 KiB")), "openai-chat", source)
