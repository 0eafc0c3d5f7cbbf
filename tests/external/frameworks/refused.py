"""Answers with a call that may not run: refused, cut within its arguments, or run by the provider.

In: nothing.  Out: streams of the Messages API, and the arguments with which a tool may have run.

Law: `message.runnable_tool_calls` of deltafold decides what runs; no framework runs more.
"""

import json
from collections.abc import Mapping
from typing import Final

from deltafold.testing import Recording

Wire = Mapping[str, object]

ARGUMENTS: Final = '{"who": "Ann", "note": "for tea"}'
HALF: Final = '{"who": "Ann", "note": "for te'

REFUSED: Final = ("refused", "half, at the limit", "half, in a whole answer")
LOOKS_WHOLE: Final = ("empty, at the limit", "braces, at the limit", "of the provider")
"""Cases with a call that a framework would run with the defaults of its tool, or again."""
ALLOWED: Final = ("whole", "whole, at the limit")
_ANSWERS: Final = {
    "refused": (ARGUMENTS, "refusal"),
    "half, at the limit": (HALF, "max_tokens"),
    "half, in a whole answer": (HALF, "tool_use"),
    "empty, at the limit": ("", "max_tokens"),
    "braces, at the limit": ("{}", "max_tokens"),
    "of the provider": (ARGUMENTS, "end_turn"),
    "whole": (ARGUMENTS, "tool_use"),
    "whole, at the limit": (ARGUMENTS, "max_tokens"),
}


def answers(case: str) -> tuple[Recording, Recording]:
    """Return an answer with a call of `pay`, and the answer after its result."""
    arguments, reason = _ANSWERS[case]
    text: Wire = {"type": "text", "text": ""}
    # Gateways copy a server's tool as one of the caller; its id shows it.
    call_id = "srvtoolu_1" if case == "of the provider" else "toolu_1"
    tool: Wire = {"type": "tool_use", "id": call_id, "name": "pay", "input": {}}
    piece: Wire = {"type": "input_json_delta", "partial_json": arguments}
    calling = [
        *_block(0, text, {"type": "text_delta", "text": "I will."}),
        *_block(1, tool, piece),
    ]
    last = _block(0, text, {"type": "text_delta", "text": "Done."})
    return _stream(calling, reason), _stream(last, "end_turn")


def _block(index: int, start: Wire, delta: Wire) -> list[Wire]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def _stream(blocks: list[Wire], reason: str) -> Recording:
    message: Wire = {"id": "msg_1", "role": "assistant", "model": "claude-opus-4-8"}
    events: list[Wire] = [
        {"type": "message_start", "message": message},
        *blocks,
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    wire = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Recording.of_events("".join(wire).encode())
