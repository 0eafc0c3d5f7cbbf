"""Answers of two models: the first one declines after a call, and the second one serves the rest.

In: nothing.  Out: answers of the Messages API, streamed and whole.

Law: only the calls behind the last `fallback` block run.
Source: Anthropic, "Refusals and fallback", continuing and streaming (read 2026-11).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from deltafold.testing import Recording

Wire = Mapping[str, Any]

ASKED: Final = "claude-opus-4-8"
SERVED: Final = "claude-sonnet-5"
BOUNDARY: Final[Wire] = {
    "type": "fallback",
    "from": {"model": ASKED},
    "to": {"model": SERVED},
    "trigger": {"type": "refusal", "category": None},
}
FALLBACKS: Final[Wire] = {"fallbacks": [{"model": SERVED}]}
"""Members of a request that lets another model take over."""


def call(who: str) -> Wire:
    """Return the call of `pay` for somebody, whose id ends with the name."""
    return {"type": "tool_use", "id": f"toolu_{who}", "name": "pay", "input": {"who": who}}


def text(said: str) -> Wire:
    """Return a text."""
    return {"type": "text", "text": said}


THINKING: Final[Wire] = {"type": "thinking", "thinking": "Hm.", "signature": "SIG"}

CASES: Final[dict[str, list[Wire]]] = {
    "a call on each side": [
        text("I will. "),
        call("Ann"),
        BOUNDARY,
        THINKING,
        text("Rather so. "),
        call("Bob"),
    ],
    "two calls before": [call("Ann"), call("Cy"), BOUNDARY, call("Bob")],
    "two boundaries": [call("Ann"), BOUNDARY, call("Cy"), BOUNDARY, call("Bob")],
    "no call behind": [call("Ann"), BOUNDARY, text("No.")],
}
RUNS: Final = {name: [] if name == "no call behind" else ["Bob"] for name in CASES}
"""Names for which `pay` runs, by the case."""


def answers(case: str, *, whole: bool = False) -> tuple[Recording, ...]:
    """Return the answer of a case, and the answer after the results, if a call runs."""
    found = [answer_of(CASES[case], "tool_use" if RUNS[case] else "end_turn", whole=whole)]
    if RUNS[case]:
        found.append(answer_of([text("Done.")], "end_turn", whole=whole))
    return tuple(found)


def sent(body: Wire) -> list[str]:
    """Return the blocks behind the question of a request: kinds, with the ids of calls."""
    return [
        " ".join([block["type"], *(block[name] for name in ("id", "tool_use_id") if name in block)])
        for message in body["messages"][1:]
        for block in message["content"]
    ]


SENT: Final[dict[str, list[str]]] = {
    "a call on each side": ["text", "fallback", "thinking", "text"],
    "two calls before": ["fallback"],
    "two boundaries": ["fallback", "fallback"],
}
"""Blocks of the answer in the next request, before the call that ran and its result."""
RAN: Final = ["tool_use toolu_Bob", "tool_result toolu_Bob"]


def answer_of(blocks: list[Wire], reason: str, *, whole: bool = False) -> Recording:
    """Return an answer of blocks, with its stop reason."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": SERVED}
    ended = {"stop_reason": reason, "stop_sequence": None}
    counts = {"input_tokens": 9, "output_tokens": 9}
    if whole:
        body = {**head, **ended, "content": blocks, "usage": counts}
        return Recording.of(json.dumps(body).encode(), content_type="application/json")
    events: list[Wire] = [{"type": "message_start", "message": {**head, "content": []}}]
    for index, block in enumerate(blocks):
        events += _events(index, block)
    events += [
        {"type": "message_delta", "delta": ended, "usage": counts},
        {"type": "message_stop"},
    ]
    wire = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Recording.of_events("".join(wire).encode())


def _events(index: int, block: Wire) -> list[Wire]:
    started, deltas = dict(block), list[Wire]()
    match block["type"]:
        case "tool_use":
            started["input"] = {}
            pieces = json.dumps(block["input"])
            for piece in (pieces[:6], pieces[6:]):
                deltas.append({"type": "input_json_delta", "partial_json": piece})
        case "text":
            started["text"] = ""
            deltas.append({"type": "text_delta", "text": block["text"]})
        case "thinking":
            started |= {"thinking": "", "signature": ""}
            deltas.append({"type": "thinking_delta", "thinking": block["thinking"]})
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case _:
            pass
    return [
        {"type": "content_block_start", "index": index, "content_block": started},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]
