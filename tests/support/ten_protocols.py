"""One answer in each protocol: as a stream of text, as one with a call, and as a whole body."""

import json
from collections.abc import Callable
from typing import Any, Final

import event_stream
from any_name import AnyName
from deltafold import Encoder, Message, Role, TextPart, ToolCallPart, encode_message, message_deltas
from protocol_bodies import CHAT, Wire, event

PIECES: Final = ("Hello ", "world.")
TEXT: Final = "".join(PIECES)
CALL: Final = ("tide", {"place": "Brest"})
_ARGUMENTS: Final = json.dumps(CALL[1])

_ENCODED: Final = (
    "anthropic-messages",
    "bedrock-converse",
    "gemini",
    "ollama",
    "openai-chat",
    "openai-responses",
)


def _message(*, calls: bool) -> Message:
    text = TextPart(text=TEXT)
    call = ToolCallPart(tool_call_id="call_1", tool_name=CALL[0], raw_args_text=_ARGUMENTS)
    return Message(role=Role.ASSISTANT, parts=[text, call] if calls else [text])


def _written(name: AnyName, *, calls: bool) -> bytes:
    encoder = Encoder(name, model_id="model-1", request_id="answer-1")
    written = b"".join(encoder.feed(delta) for delta in message_deltas(_message(calls=calls)))
    return written + encoder.close()


def _whole(name: AnyName, *, calls: bool) -> bytes:
    return encode_message(_message(calls=calls), name, model_id="model-1").body


def _of_mistral(body: bytes) -> bytes:
    return body.replace(b"model-1", b"mistral-small-latest")


def _in_frames(body: bytes) -> bytes:
    """Put the events of a stream of Messages in the frames of Bedrock."""
    data = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
    return b"".join(event_stream.chunk(one) for one in data)


def _cohere(*, calls: bool) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message-start", "id": "c1", "delta": {"message": {"role": "assistant"}}},
        {
            "type": "content-start",
            "index": 0,
            "delta": {"message": {"content": {"type": "text", "text": ""}}},
        },
        *(
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}}
            for text in PIECES
        ),
        {"type": "content-end", "index": 0},
    ]
    if calls:
        function = {"name": CALL[0], "arguments": ""}
        begun = {"id": "call_1", "type": "function", "function": function}
        more = {"function": {"arguments": _ARGUMENTS}}
        events += [
            {
                "type": "tool-call-start",
                "index": 0,
                "delta": {"message": {"tool_calls": begun}},
            },
            {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": more}}},
            {"type": "tool-call-end", "index": 0},
        ]
    reason = "TOOL_CALL" if calls else "COMPLETE"
    usage = {"tokens": {"input_tokens": 5, "output_tokens": 2}}
    events.append({"type": "message-end", "delta": {"finish_reason": reason, "usage": usage}})
    return b"".join(event(one, str(one["type"])) for one in events)


def _whole_cohere(*, calls: bool) -> bytes:
    message: Wire = {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}
    if calls:
        function = {"name": CALL[0], "arguments": _ARGUMENTS}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    reason = "TOOL_CALL" if calls else "COMPLETE"
    return json.dumps({"id": "c1", "finish_reason": reason, "message": message}).encode()


def _interactions(*, calls: bool) -> bytes:
    begun = {"id": "i1", "model": "gemini-3-pro", "status": "in_progress"}
    events: list[dict[str, Any]] = [
        {"event_type": "interaction.created", "interaction": begun},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        *(
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": text}}
            for text in PIECES
        ),
        {"event_type": "step.stop", "index": 0},
    ]
    if calls:
        step: Wire = {"type": "function_call", "id": "call_1", "name": CALL[0], "arguments": {}}
        delta = {"type": "arguments_delta", "arguments": _ARGUMENTS}
        events += [
            {"event_type": "step.start", "index": 1, "step": step},
            {"event_type": "step.delta", "index": 1, "delta": delta},
            {"event_type": "step.stop", "index": 1},
        ]
    done = {**begun, "status": "requires_action" if calls else "completed"}
    events.append({"event_type": "interaction.completed", "interaction": done})
    return b"".join(event(one, str(one["event_type"])) for one in events)


def _whole_interaction(*, calls: bool) -> bytes:
    content = [{"type": "text", "text": TEXT}]
    steps: list[Wire] = [{"type": "model_output", "content": content}]
    if calls:
        call: Wire = {
            "type": "function_call",
            "id": "call_1",
            "name": CALL[0],
            "arguments": CALL[1],
        }
        steps.append(call)
    status = "requires_action" if calls else "completed"
    body = {"id": "i1", "object": "interaction", "model": "gemini-3-pro", "status": status}
    return json.dumps({**body, "steps": steps}).encode()


def streams(*, calls: bool) -> dict[AnyName, bytes]:
    """Return a stream of each protocol by its name."""
    known = {name: _written(name, calls=calls) for name in _ENCODED}
    return {
        **known,
        "mistral": _of_mistral(known[CHAT]),
        "cohere-chat": _cohere(calls=calls),
        "gemini-interactions": _interactions(calls=calls),
        "bedrock-invoke": _in_frames(known["anthropic-messages"]),
    }


def wholes(*, calls: bool) -> dict[str, bytes]:
    """Return a whole body of each protocol; one of bedrock-invoke is its model's own."""
    known = {name: _whole(name, calls=calls) for name in _ENCODED}
    return {
        **known,
        "mistral": _of_mistral(known[CHAT]),
        "cohere-chat": _whole_cohere(calls=calls),
        "gemini-interactions": _whole_interaction(calls=calls),
    }


BODIES: Final[dict[str, Callable[[], dict[AnyName, bytes]]]] = {
    "a stream": lambda: streams(calls=False),
    "a stream with a call": lambda: streams(calls=True),
    "a whole body": lambda: wholes(calls=False),
    "a whole body with a call": lambda: wholes(calls=True),
}
