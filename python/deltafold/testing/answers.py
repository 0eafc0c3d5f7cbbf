"""Answers of a model as its provider streams them, for tests of agents.

In: texts and tool calls.  Out: the body of a response in a dialect, one event for each piece.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Final, TypeAlias

from deltafold.exceptions import MisuseError
from deltafold.testing.recording import Recording

ScriptedCall: TypeAlias = tuple[str, str, Mapping[str, object]]
"""Id of a call, name of the tool, arguments."""

_Event: TypeAlias = dict[str, object]


def answer(
    dialect: str,
    *content: str | ScriptedCall,
    input_tokens: int = 50,
    output_tokens: int = 20,
) -> Recording:
    """Make the streamed answer of a model.

    >>> server.queue(answer("openai-chat", "Let me ", "see.", ("c1", "tide", {"place": "Brest"})))

    Args:
        dialect: "anthropic-messages" or "openai-chat".
        content: texts, one event each, and tool calls.
        input_tokens: tokens of the prompt.
        output_tokens: tokens of the answer.

    Raises:
        MisuseError: answers are not written in this dialect.
    """
    write = _WRITERS.get(dialect)
    if write is None:
        raise MisuseError(f"dialect: answers are written in {', '.join(_WRITERS)}, not {dialect!r}")
    return Recording.of_events(b"".join(write(content, input_tokens, output_tokens)))


def _messages(
    content: tuple[str | ScriptedCall, ...], input_tokens: int, output_tokens: int
) -> Iterator[bytes]:
    usage: _Event = {"input_tokens": input_tokens, "output_tokens": 1}
    message: _Event = {"id": "msg_1", "model": "claude-demo", "usage": usage}
    yield _named({"type": "message_start", "message": message})
    blocks = [
        block
        for is_text, items in groupby(content, lambda one: isinstance(one, str))
        for block in ([list(items)] if is_text else [[one] for one in items])
    ]
    for index, block in enumerate(blocks):
        place: _Event = {"index": index}
        if isinstance(block[0], str):
            begin: _Event = {"type": "text", "text": ""}
            deltas: list[_Event] = [{"type": "text_delta", "text": text} for text in block]
        else:
            call_id, name, arguments = block[0]
            begin = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(arguments)}]
        yield _named({"type": "content_block_start", **place, "content_block": begin})
        for delta in deltas:
            yield _named({"type": "content_block_delta", **place, "delta": delta})
        yield _named({"type": "content_block_stop", **place})
    reason = "end_turn" if all(isinstance(one, str) for one in content) else "tool_use"
    ended: _Event = {"type": "message_delta", "delta": {"stop_reason": reason}}
    yield _named({**ended, "usage": {"output_tokens": output_tokens}})
    yield _named({"type": "message_stop"})


def _chat(
    content: tuple[str | ScriptedCall, ...], input_tokens: int, output_tokens: int
) -> Iterator[bytes]:
    yield _chunk({"delta": {"role": "assistant", "content": ""}})
    index = 0
    for item in content:
        if isinstance(item, str):
            yield _chunk({"delta": {"content": item}})
            continue
        call_id, name, arguments = item
        function: _Event = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": index, "id": call_id, "type": "function", "function": function}
        yield _chunk({"delta": {"tool_calls": [call]}})
        index += 1
    yield _chunk({"delta": {}, "finish_reason": "tool_calls" if index else "stop"})
    usage: _Event = {"prompt_tokens": input_tokens, "completion_tokens": output_tokens}
    yield _chunk(None, {**usage, "total_tokens": input_tokens + output_tokens})
    yield b"data: [DONE]\n\n"


def _named(event: _Event) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), json.dumps(event).encode())


def _chunk(choice: _Event | None, usage: _Event | None = None) -> bytes:
    chunk: _Event = {"id": "chatcmpl_1", "model": "gpt-demo"}
    chunk["choices"] = [] if choice is None else [{"index": 0, **choice}]
    if usage is not None:
        chunk["usage"] = usage
    return b"data: %b\n\n" % json.dumps(chunk).encode()


_Writer: TypeAlias = Callable[[tuple[str | ScriptedCall, ...], int, int], Iterator[bytes]]

_WRITERS: Final[Mapping[str, _Writer]] = {"anthropic-messages": _messages, "openai-chat": _chat}
