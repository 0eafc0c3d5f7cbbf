"""Answers of a model as its provider streams them, for tests of agents.

In: texts and tool calls.  Out: the body of a response in a dialect, one event for each piece.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Final, TypeAlias

from deltafold._core import Encoder, MessageDelta, dialect_names, target_names
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import WrittenProtocol
from deltafold.testing.recording import Recording

ScriptedCall: TypeAlias = tuple[str, str, Mapping[str, object]]
"""Id of a call, name of the tool, arguments."""

_Step: TypeAlias = tuple[str, dict[str, object]]

_CREATED: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The answers are the same in every run."""


_NAMES: Final = {
    "anthropic-messages": ("claude-demo", "msg_1"),
    "openai-chat": ("gpt-demo", "chatcmpl_1"),
}
"""Model and id of the answers in some dialects."""


def answer(
    dialect: WrittenProtocol,
    *content: str | ScriptedCall,
    input_tokens: int = 50,
    output_tokens: int = 20,
) -> Recording:
    """Make the streamed answer of a model.

    >>> server.queue(
    ...     answer("openai-chat", "Let me ", "see.", ("c1", "tide", {"place": "Brest"}))
    ... )

    Args:
        dialect: a dialect that can be written: "anthropic-messages", "openai-chat", "gemini", ...
        content: texts, one event each, and tool calls.
        input_tokens: tokens of the prompt.
        output_tokens: tokens of the answer.

    Raises:
        MisuseError: answers are not written in this dialect.
    """
    written = [name for name in target_names() if name in dialect_names()]
    if dialect not in written:
        raise MisuseError(f"dialect: answers are written in {', '.join(written)}, not {dialect!r}")
    model_id, response_id = _NAMES.get(dialect, (f"{dialect}-demo", "answer_1"))
    encoder = Encoder(dialect, model_id=model_id, request_id=response_id)
    steps = _steps(response_id, content, (input_tokens, output_tokens))
    events = [
        encoder.feed(MessageDelta("demo", seq, kind, payload, _CREATED))
        for seq, (kind, payload) in enumerate(steps, 1)
    ]
    return Recording.of_events(b"".join(events))


def _steps(
    response_id: str, content: tuple[str | ScriptedCall, ...], tokens: tuple[int, int]
) -> Iterator[_Step]:
    input_tokens, output_tokens = tokens
    yield "start", {"modelId": "", "requestId": response_id}
    yield "usage", {"inputTokens": input_tokens, "outputTokens": 1, "totalTokens": input_tokens + 1}
    blocks = [
        block
        for is_text, items in groupby(content, lambda one: isinstance(one, str))
        for block in ([list(items)] if is_text else [[one] for one in items])
    ]
    has_calls = False
    for index, block in enumerate(blocks):
        for item in block:
            if isinstance(item, str):
                yield "text", {"textDelta": item, "partIndex": index}
                continue
            call_id, name, arguments = item
            call: dict[str, object] = {"toolCallId": call_id}
            yield "tool_call_start", {**call, "toolName": name, "partIndex": index}
            yield "tool_call_args", {**call, "argsTextDelta": json.dumps(arguments)}
            yield "tool_call_end", call
            has_calls = True
        if isinstance(block[0], str):
            yield "part_end", {"partIndex": index}
    total = input_tokens + output_tokens
    counts = {"inputTokens": input_tokens, "outputTokens": output_tokens, "totalTokens": total}
    yield "usage", dict(counts)
    yield "done", {"finishReason": "tool_calls" if has_calls else "stop"}
