"""Answers with an output, as each provider streams them: as text, or as the arguments of a call."""

import json
from collections.abc import Callable, Sequence
from typing import Final

from event_stream import event as frame
from protocol_bodies import (
    CHAT,
    DONE,
    Wire,
    block,
    call_chunk,
    event,
    finish,
    message_end,
    message_start,
    said,
    text_block,
)

Pieces = Sequence[str]

RESPONSE: Final[Wire] = {"id": "r", "object": "response", "model": "m", "output": []}


def chat(pieces: Pieces, tool: str | None = None) -> bytes:
    """Write a body of openai-chat or mistral."""
    if tool is None:
        return said(*pieces) + finish("stop") + DONE
    calls = [
        call_chunk("", name=tool, index=0, id="call1"),
        *(call_chunk(p, index=0) for p in pieces),
    ]
    return b"".join(calls) + finish("tool_calls") + DONE


def anthropic(pieces: Pieces, tool: str | None = None) -> bytes:
    """Write a body of anthropic-messages."""
    if tool is None:
        return message_start() + text_block(0, *pieces) + message_end()
    deltas: list[Wire] = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    start: Wire = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
    return message_start() + block(0, start, *deltas) + message_end("tool_use")


def responses(pieces: Pieces, tool: str | None = None) -> bytes:
    """Write a body of openai-responses."""
    place = {"item_id": "i", "output_index": 0}
    text = "".join(pieces)
    if tool is None:
        item: dict[str, object] = {"id": "i", "type": "message", "role": "assistant", "content": []}
        deltas: list[Wire] = [
            {"type": "response.output_text.delta", **place, "content_index": 0, "delta": piece}
            for piece in pieces
        ]
        item_done: Wire = {
            **item,
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
    else:
        item = {"id": "i", "type": "function_call", "call_id": "c", "name": tool, "arguments": ""}
        deltas = [
            {"type": "response.function_call_arguments.delta", **place, "delta": piece}
            for piece in pieces
        ]
        item_done = {**item, "arguments": text}
    events: list[Wire] = [
        {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *deltas,
        {"type": "response.output_item.done", "output_index": 0, "item": item_done},
        {"type": "response.completed", "response": {**RESPONSE, "status": "completed"}},
    ]
    return b"".join(event(one, str(one["type"])) for one in events)


def gemini(pieces: Pieces, tool: str | None = None) -> bytes:
    """Write a body of gemini, whose calls come whole."""
    parts: list[dict[str, object]] = [{"text": piece} for piece in pieces]
    if tool is not None:
        parts = [{"functionCall": {"name": tool, "args": json.loads("".join(pieces))}}]
    return b"".join(
        event(
            {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [part]},
                        **({"finishReason": "STOP"} if part is parts[-1] else {}),
                    }
                ],
                "modelVersion": "m",
                "responseId": "r",
            }
        )
        for part in parts
    )


def converse(pieces: Pieces, tool: str | None = None) -> bytes:
    """Write a body of bedrock-converse."""
    index = {"contentBlockIndex": 0}
    body = frame("messageStart", {"role": "assistant"})
    if tool is not None:
        start = {"toolUse": {"toolUseId": "t", "name": tool}}
        body += frame("contentBlockStart", {**index, "start": start})
    for piece in pieces:
        delta = {"text": piece} if tool is None else {"toolUse": {"input": piece}}
        body += frame("contentBlockDelta", {**index, "delta": delta})
    body += frame("contentBlockStop", index)
    return body + frame("messageStop", {"stopReason": "tool_use" if tool else "end_turn"})


def ollama(pieces: Pieces, tool: str | None = None) -> bytes:
    """Write a body of ollama, whose calls come whole."""
    messages: list[dict[str, object]] = [{"content": piece} for piece in pieces]
    if tool is not None:
        call = {"function": {"name": tool, "arguments": json.loads("".join(pieces))}}
        messages = [{"content": "", "tool_calls": [call]}]
    lines: list[Wire] = [
        {"model": "m", "message": {"role": "assistant", **message}, "done": False}
        for message in messages
    ]
    end: Wire = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}
    lines.append({**end, "done_reason": "stop"})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def cohere(pieces: Pieces, tool: str | None = None) -> bytes:
    """Write a body of cohere-chat."""
    events: list[dict[str, object]] = [{"type": "message-start", "id": "r"}]
    if tool is None:
        events.append(_cohere("content-start", {"content": {"type": "text", "text": ""}}))
        events += [_cohere("content-delta", {"content": {"text": piece}}) for piece in pieces]
        events.append({"type": "content-end", "index": 0})
    else:
        call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": ""}}
        events.append(_cohere("tool-call-start", {"tool_calls": call}))
        events += [
            _cohere("tool-call-delta", {"tool_calls": {"function": {"arguments": piece}}})
            for piece in pieces
        ]
        events.append({"type": "tool-call-end", "index": 0})
    reason = "TOOL_CALL" if tool else "COMPLETE"
    events.append({"type": "message-end", "delta": {"finish_reason": reason}})
    return b"".join(event(one, str(one["type"])) for one in events)


def _cohere(kind: str, message: dict[str, object]) -> dict[str, object]:
    return {"type": kind, "index": 0, "delta": {"message": message}}


WRITERS: Final[dict[str, Callable[[Pieces, str | None], bytes]]] = {
    "anthropic-messages": anthropic,
    CHAT: chat,
    "openai-responses": responses,
    "gemini": gemini,
    "bedrock-converse": converse,
    "ollama": ollama,
    "cohere-chat": cohere,
    "mistral": chat,
}
CONTENT_TYPES: Final = {
    "bedrock-converse": "application/vnd.amazon.eventstream",
    "ollama": "application/x-ndjson",
}
MODELS: Final = {
    "anthropic-messages": "claude-sonnet-4-5",
    "bedrock-converse": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "gemini": "gemini-2.5-flash",
}
"""Models that follow a schema, where not all of a dialect do."""
