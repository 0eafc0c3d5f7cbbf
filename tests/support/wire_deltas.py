"""Deltas in their wire form, made short, and everything that can be seen of an assembler.

Shared by the assembler tests, which give both classes the same deltas and look at them alike.
"""

from typing import TypeAlias

import reference
from deltafold import _core
from deltafold.contract.exceptions import MisuseError
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message

Assembler: TypeAlias = reference.MessageAssembler | _core.MessageAssembler
Wire: TypeAlias = dict[str, object]

TIME = "2026-01-02T03:04:05.678Z"
STATE: Wire = {"dialect": "anthropic-messages", "modelId": "m", "data": {"signature": "s"}}
PROVIDER_PART: Wire = {"kind": "provider", "payload": {"dialect": "d", "block": {"type": "x"}}}
WARNING: Wire = {"code": "noise", "message": "one line skipped", "offset": 7}
USAGE: Wire = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}


def start(**payload: object) -> tuple[str, Wire]:
    return "start", {"modelId": "model", "requestId": "resp", **payload}


def text(text_delta: str, **payload: object) -> tuple[str, Wire]:
    return "text", {"textDelta": text_delta, **payload}


def thinking(text_delta: str, **payload: object) -> tuple[str, Wire]:
    return "thinking", {"textDelta": text_delta, **payload}


def call(call_id: str = "c", **payload: object) -> tuple[str, Wire]:
    return "tool_call_start", {"toolCallId": call_id, "toolName": "f", **payload}


def args(args_text_delta: str, call_id: str = "c") -> tuple[str, Wire]:
    return "tool_call_args", {"toolCallId": call_id, "argsTextDelta": args_text_delta}


def end(call_id: str = "c", **payload: object) -> tuple[str, Wire]:
    return "tool_call_end", {"toolCallId": call_id, **payload}


def done(finish_reason: str = "stop", **payload: object) -> tuple[str, Wire]:
    return "done", {"finishReason": finish_reason, **payload}


def error(error_code: str = "timeout", **payload: object) -> tuple[str, Wire]:
    return "error", {"errorCode": error_code, **payload}


def usage(**payload: object) -> tuple[str, Wire]:
    return "usage", {**USAGE, **payload}


def part_end(part_index: int) -> tuple[str, Wire]:
    return "part_end", {"partIndex": part_index}


def part(part_index: int, whole: Wire = PROVIDER_PART) -> tuple[str, Wire]:
    return "part", {"partIndex": part_index, "part": whole}


def delta(seq: int, kind: str, payload: Wire, **changes: object) -> Wire:
    wire: Wire = {"runId": "run", "seq": seq, "kind": kind, "payload": payload, "timestamp": TIME}
    return {**wire, **changes}


def numbered(*deltas: tuple[str, Wire]) -> list[Wire]:
    return [delta(seq, kind, payload) for seq, (kind, payload) in enumerate(deltas, start=1)]


def consume(assembler: Assembler, *deltas: tuple[str, Wire]) -> None:
    """Number the deltas after those that the assembler has, and fold them."""
    for seq, (kind, payload) in enumerate(deltas, start=assembler.last_seq + 1):
        assembler.consume(delta(seq, kind, payload))


def wire_parts(assembler: Assembler) -> list[object]:
    return [found.model_dump(mode="json") for found in assembler.parts]


def state(assembler: Assembler) -> dict[str, object]:
    """Return every visible attribute, except objects that each access creates."""
    snapshot = assembler.snapshot().to_dict()
    if assembler.status == "idle":
        del snapshot["id"], snapshot["timestamp"]
    return {
        "snapshot": snapshot,
        "run_id": assembler.run_id,
        "status": assembler.status,
        "last_seq": assembler.last_seq,
        "parts": wire_parts(assembler),
        "usage": assembler.usage,
        "text": assembler.text,
        "calls": call_states(assembler),
        "error": None if assembler.error is None else str(assembler.error),
    }


def call_states(assembler: Assembler) -> dict[str, tuple[object, ...]]:
    return {
        name: (
            found.tool_call_id,
            found.tool_name,
            found.args_text,
            found.part_index,
            found.input_format,
            found.ended,
            found.incomplete,
        )
        for name, found in assembler.tool_calls.items()
    }


def ending(assembler: Assembler) -> object:
    try:
        return content(assembler.build_final_message())
    except ModelError as caught:
        partial = caught.partial_message
        assert partial is not None
        # The provider's own error is no member of a delta.
        fields = {**vars(caught), "partial_message": content(partial), "body": None}
        return str(caught), fields
    except MisuseError:
        return "misuse"


def content(message: Message) -> dict[str, object]:
    wire = message.to_dict()
    del wire["id"], wire["timestamp"]
    return wire


def assert_same(one: Assembler, other: Assembler) -> None:
    assert one.snapshot().same_content(other.snapshot())
    assert content(one.snapshot()) == content(other.snapshot())
    assert (one.status, one.run_id, one.last_seq) == (other.status, other.run_id, other.last_seq)
    assert one.usage == other.usage
    assert one.text == other.text
    assert call_states(one) == call_states(other)
    assert list(one.tool_calls) == list(other.tool_calls)
    assert one.parts == other.parts
    assert ending(one) == ending(other)
