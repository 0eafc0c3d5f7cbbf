"""Bodies of both dialects, written event by event.

What the tests of failures and of bad input feed.
"""

import json
from typing import Final, TypeAlias

ANTHROPIC: Final = "anthropic-messages"
CHAT: Final = "openai-chat"

Wire: TypeAlias = dict[str, object]

DONE: Final = b"data: [DONE]\n\n"
USAGE: Final[Wire] = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}


def event(data: object, name: str | None = None) -> bytes:
    """Write one event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def chunk(delta: Wire | None, finish_reason: str | None = None, **top: object) -> bytes:
    """Write one chunk of Chat; `delta` None leaves the choices empty."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    choices = [] if delta is None else [choice]
    return event({"id": "chatcmpl-1", "model": "m", "choices": choices} | top)


def said(*texts: str) -> bytes:
    """Write chunks of Chat that say these texts."""
    return b"".join(chunk({"content": text}) for text in texts)


def call_chunk(arguments: object = None, *, name: str | None = None, **members: object) -> bytes:
    """Write one fragment of a tool call of Chat; `arguments` None leaves them out."""
    function: Wire = {} if name is None else {"name": name}
    if arguments is not None:
        function["arguments"] = arguments
    return chunk({"tool_calls": [{**members, "function": function}]})


def finish(reason: str) -> bytes:
    """Write the chunk of Chat that says why the answer ended."""
    return chunk({}, reason)


def anthropic(kind: str, **members: object) -> bytes:
    """Write one event of Anthropic Messages."""
    return event({"type": kind, **members}, kind)


def message_start(message_id: str = "msg_1", **members: object) -> bytes:
    """Write the first event of Anthropic Messages."""
    message: Wire = {"id": message_id, "model": "m", "content": [], **members}
    return anthropic("message_start", message=message)


def block(index: int, start: Wire, *deltas: Wire, stop: bool = True) -> bytes:
    """Write one content block."""
    events = [anthropic("content_block_start", index=index, content_block=start)]
    events += [anthropic("content_block_delta", index=index, delta=delta) for delta in deltas]
    if stop:
        events.append(anthropic("content_block_stop", index=index))
    return b"".join(events)


def text_block(index: int, *texts: str) -> bytes:
    """Write a block of text."""
    deltas: list[Wire] = [{"type": "text_delta", "text": text} for text in texts]
    return block(index, {"type": "text", "text": ""}, *deltas)


def tool_block(
    index: int, call_id: str, name: str, *fragments: str, stop: bool = True, **start: object
) -> bytes:
    """Write a block that calls a tool."""
    deltas: list[Wire] = [{"type": "input_json_delta", "partial_json": text} for text in fragments]
    head: Wire = {"type": "tool_use", "id": call_id, "name": name, "input": {}, **start}
    return block(index, head, *deltas, stop=stop)


def message_end(stop_reason: str = "end_turn", usage: Wire | None = None) -> bytes:
    """Write the last two events of Anthropic Messages."""
    return message_delta(stop_reason, usage) + anthropic("message_stop")


def message_delta(stop_reason: str | None, usage: Wire | None = None) -> bytes:
    """Write the event that says why the message ends."""
    return anthropic("message_delta", delta={"stop_reason": stop_reason}, usage=usage)


# A whole answer of each dialect: text, a call, its end.
WHOLE: Final = {
    CHAT: said("Hello, ", "world")
    + call_chunk('{"x":', name="f", index=0, id="a")
    + call_chunk("1}", index=0)
    + finish("tool_calls")
    + DONE,
    ANTHROPIC: message_start(usage={"input_tokens": 3, "output_tokens": 1})
    + text_block(0, "Hello, ", "world")
    + tool_block(1, "a", "f", '{"x":', "1}")
    + message_end("tool_use", {"output_tokens": 5}),
}

# One piece of text with its bytes unchanged, and the framing that the protocol requires around it.
TEXT_EVENTS: Final = {
    CHAT: b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n',
    ANTHROPIC: b'data: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":"%b"}}\n\n',
}
OPENINGS: Final = {
    CHAT: b"",
    ANTHROPIC: message_start() + block(0, {"type": "text", "text": ""}, stop=False),
}
ENDINGS: Final = {CHAT: finish("stop") + DONE, ANTHROPIC: message_end()}


def saying(dialect: str, *texts: bytes) -> bytes:
    """Write a whole stream that says these texts, whose bytes are taken as they are."""
    events = b"".join(TEXT_EVENTS[dialect] % one for one in texts)
    return OPENINGS[dialect] + events + ENDINGS[dialect]
