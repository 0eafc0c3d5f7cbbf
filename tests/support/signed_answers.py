"""Answers with content that only their model can read, in each dialect, streamed and whole.

In: the name that the response reports.  Out: the body of an answer that thinks and calls a tool,
the secrets that must go back with the next request, and the history of that request.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import deltafold
import event_stream
from any_name import AnyName
from deltafold import Message
from deltafold.dialects import dialect_of

Body = dict[str, Any]
Blocks = Sequence[tuple[Body, Sequence[Body]]]

USAGE: Final[Body] = {"input_tokens": 10, "output_tokens": 20}


def messages_stream(model: str, blocks: Blocks, stop: str = "tool_use", **of_end: object) -> bytes:
    """Write a stream of the Messages API: blocks as they start, and their deltas."""
    message: Body = {**_messages_head(model), "content": [], "usage": {**USAGE, "output_tokens": 1}}
    events: list[Body] = [{"type": "message_start", "message": message}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    ended: Body = {"stop_reason": stop, "stop_sequence": None}
    usage: Body = {"output_tokens": USAGE["output_tokens"], **of_end}
    events.append({"type": "message_delta", "delta": ended, "usage": usage})
    events.append({"type": "message_stop"})
    return typed_events(events)


def thinking(text: str, signature: str) -> tuple[Body, list[Body]]:
    """Write a block of thinking and its deltas."""
    return {"type": "thinking", "thinking": "", "signature": ""}, [
        {"type": "thinking_delta", "thinking": text},
        {"type": "signature_delta", "signature": signature},
    ]


def said(text: str) -> tuple[Body, list[Body]]:
    """Write a block of text and its deltas."""
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]


def called(call_id: str, name: str = "find") -> tuple[Body, list[Body]]:
    """Write a block of a call and its deltas."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}, [
        {"type": "input_json_delta", "partial_json": "{}"}
    ]


def typed_events(events: Sequence[Body]) -> bytes:
    """Write events with the name of each."""
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), json.dumps(event).encode())
        for event in events
    )


def _plain_events(events: Sequence[Body], *, done: bool) -> bytes:
    body = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    return body + (b"data: [DONE]\n\n" if done else b"")


def _messages_head(model: str) -> Body:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": model}


_REDACTED: Final[Body] = {"type": "redacted_thinking", "data": "REDACTED_DATA"}


def _messages(model: str, *, stream: bool) -> bytes:
    if stream:
        blocks: Blocks = [thinking("Hm.", "SIGNATURE"), (_REDACTED, []), called("toolu_1")]
        return messages_stream(model, blocks)
    content: list[Body] = [
        {"type": "thinking", "thinking": "Hm.", "signature": "SIGNATURE"},
        _REDACTED,
        {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}},
    ]
    ended: Body = {"stop_reason": "tool_use", "stop_sequence": None, "usage": USAGE}
    return json.dumps({**_messages_head(model), "content": content, **ended}).encode()


def _responses(model: str, *, stream: bool) -> bytes:
    reasoning: Body = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "ENCRYPTED",
    }
    call: Body = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "find",
        "arguments": "{}",
        "status": "completed",
    }
    head: Body = {"id": "resp_1", "object": "response", "created_at": 1, "model": model}
    usage: Body = {**USAGE, "total_tokens": 30}
    whole: Body = {**head, "status": "completed", "output": [reasoning, call], "usage": usage}
    if not stream:
        return json.dumps(whole).encode()
    started: Body = {**head, "status": "in_progress", "output": []}
    events: list[Body] = [{"type": "response.created", "response": started}]
    for index, item in enumerate([reasoning, call]):
        place: Body = {"output_index": index}
        begun: Body = {**item, "arguments": ""} if item is call else item
        events.append({"type": "response.output_item.added", **place, "item": begun})
        if item is call:
            place |= {"item_id": "fc_1"}
            kind = "response.function_call_arguments"
            events.append({"type": f"{kind}.delta", **place, "delta": "{}"})
            events.append({"type": f"{kind}.done", **place, "arguments": "{}", "name": "find"})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return typed_events([{**event, "sequence_number": n} for n, event in enumerate(events)])


def _gemini(model: str, *, stream: bool) -> bytes:
    parts: list[Body] = [
        {"text": "Hm.", "thought": True},
        {"functionCall": {"name": "find", "args": {}}, "thoughtSignature": "U0lHTkFUVVJF"},
    ]
    candidate: Body = {
        "content": {"role": "model", "parts": parts},
        "finishReason": "STOP",
        "index": 0,
    }
    counts: Body = {"promptTokenCount": 10, "candidatesTokenCount": 20, "totalTokenCount": 30}
    whole: Body = {"candidates": [candidate], "modelVersion": model, "usageMetadata": counts}
    return _plain_events([whole], done=False) if stream else json.dumps(whole).encode()


def _converse(model: str, *, stream: bool) -> bytes:  # noqa: ARG001 - no response of it names one
    call: Body = {"toolUseId": "tooluse_1", "name": "find"}
    usage: Body = {"inputTokens": 10, "outputTokens": 20, "totalTokens": 30}
    if not stream:
        text: Body = {"text": "Hm.", "signature": "SIGNATURE"}
        content: list[Body] = [
            {"reasoningContent": {"reasoningText": text}},
            {"toolUse": {**call, "input": {}}},
        ]
        output: Body = {"message": {"role": "assistant", "content": content}}
        ended: Body = {"stopReason": "tool_use", "usage": usage, "metrics": {"latencyMs": 3}}
        return json.dumps({"output": output, **ended}).encode()
    first, second = {"contentBlockIndex": 0}, {"contentBlockIndex": 1}
    rows: list[tuple[str, Body]] = [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {**first, "delta": {"reasoningContent": {"text": "Hm."}}}),
        ("contentBlockDelta", {**first, "delta": {"reasoningContent": {"signature": "SIGNATURE"}}}),
        ("contentBlockStop", first),
        ("contentBlockStart", {**second, "start": {"toolUse": call}}),
        ("contentBlockDelta", {**second, "delta": {"toolUse": {"input": "{}"}}}),
        ("contentBlockStop", second),
        ("messageStop", {"stopReason": "tool_use"}),
        ("metadata", {"usage": usage, "metrics": {"latencyMs": 3}}),
    ]
    return b"".join(event_stream.event(*row) for row in rows)


def _chat(model: str, message: Body, *, stream: bool) -> bytes:
    head: Body = {"id": "chatcmpl-1", "created": 1, "model": model}
    usage: Body = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
    if not stream:
        choice: Body = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        whole: Body = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return json.dumps(whole).encode()
    calls: list[Body] = [{"index": 0, **call} for call in message["tool_calls"]]
    choices: list[Body] = [
        {"index": 0, "delta": {**message, "tool_calls": calls}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    ]
    chunks: list[Body] = [
        {**head, "object": "chat.completion.chunk", "choices": [one]} for one in choices
    ]
    last: Body = {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}
    return _plain_events([*chunks, last], done=True)


_CALL: Final[Body] = {
    "id": "call_0001x",
    "type": "function",
    "function": {"name": "find", "arguments": "{}"},
}


def _openrouter(model: str, *, stream: bool) -> bytes:
    detail: Body = {
        "type": "reasoning.text",
        "text": "Hm.",
        "signature": "SIGNATURE",
        "format": "anthropic-claude-v1",
        "index": 0,
    }
    message: Body = {"role": "assistant", "content": "", "reasoning": "Hm."}
    message |= {"reasoning_details": [detail], "tool_calls": [_CALL]}
    return _chat(model, message, stream=stream)


def _gemini_chat(model: str, *, stream: bool) -> bytes:
    signed: Body = {"extra_content": {"google": {"thought_signature": "U0lHTkFUVVJF"}}}
    message: Body = {"role": "assistant", "content": "", "tool_calls": [_CALL | signed]}
    return _chat(model, message, stream=stream)


def thinking_chat(model: str, *, stream: bool) -> bytes:
    """Write an answer of a local server, whose reasoning is a text."""
    message: Body = {"role": "assistant", "content": "", "reasoning_content": "Hm."}
    return _chat(model, message | {"tool_calls": [_CALL]}, stream=stream)


def _mistral(model: str, *, stream: bool) -> bytes:
    thought: Body = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    thought |= {"signature": "SIGNATURE", "closed": True}
    message: Body = {"role": "assistant", "content": [thought], "tool_calls": [_CALL]}
    return _chat(model, message, stream=stream)


def _cohere(model: str, *, stream: bool) -> bytes:  # noqa: ARG001 - no response of it names one
    ended: Body = {"finish_reason": "TOOL_CALL", "usage": {"tokens": USAGE}}
    call: Body = _CALL
    if not stream:
        content: list[Body] = [{"type": "thinking", "thinking": "Hm, SECRET."}]
        message: Body = {"role": "assistant", "content": content, "tool_calls": [call]}
        return json.dumps({"id": "c1", "message": message, **ended}).encode()
    begun: Body = {"type": "thinking", "thinking": ""}
    events: list[Body] = [
        {"type": "message-start", "id": "c1", "delta": {"message": {"role": "assistant"}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": begun}}},
        {
            "type": "content-delta",
            "index": 0,
            "delta": {"message": {"content": {"thinking": "Hm, SECRET."}}},
        },
        {"type": "content-end", "index": 0},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": call}}},
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": ended},
    ]
    return typed_events(events)


@dataclass(frozen=True)
class Signed:
    """An answer with secrets.

    Attributes:
        name: what the tests call it.
        secrets: texts that must go back with the next request, and to no other model.
        reported: the name that the response reports, or that the request asked for.
        aliases: other names of the same model.
        others: names of other models.
        settings: settings of the next request.
    """

    name: str
    dialect: AnyName
    write: Any
    secrets: tuple[str, ...]
    reported: str
    aliases: tuple[str, ...]
    others: tuple[str, ...]
    settings: tuple[tuple[str, object], ...] = ()

    def body(self, model: str | None = None, *, stream: bool) -> bytes:
        """Write the answer of a model."""
        written: bytes = self.write(model or self.reported, stream=stream)
        return written

    def fold(self, *, stream: bool) -> Message:
        """Read the answer as from an official client: without the name that was asked for."""
        known: Body = {} if self.names_its_model else {"model_id": self.reported}
        return deltafold.fold(self.body(stream=stream), self.dialect, **known)

    @property
    def names_its_model(self) -> bool:
        """Whether responses of the dialect report their model."""
        return self.dialect not in {"bedrock-converse", "cohere-chat"}

    def next_history(self, message: Message) -> list[Message]:
        """Return the history of the next request: every call has a result."""
        results = [Message.tool_result(call.tool_call_id, "done") for call in message.tool_calls]
        return [Message.user("Go"), message, *results]

    def next_body(self, message: Message, model_id: str) -> str:
        """Return the next request to a model, as JSON."""
        dialect = dialect_of(self.dialect)
        fields: Body = {"model_id": model_id, **dict(self.settings)}
        config = dialect.config_class.model_validate(fields)
        return json.dumps(dialect.render(self.next_history(message), [], config).body)


_CLAUDE: Final = (
    "claude-sonnet-4-5",
    "claude-sonnet-4-5@20250929",
    "claude-sonnet-4-5[1m]",
    "anthropic/claude-sonnet-4-5",
    "openrouter/anthropic/claude-sonnet-4.5",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-sonnet-4-5-20250929-v1:0",
)
_NOT_THIS_CLAUDE: Final = (
    "claude-sonnet-4-5-20251001",
    "claude-sonnet-4-5-fast",
    "claude-sonnet-4-6",
    "claude-haiku-4-5",
)

SIGNED: Final = (
    Signed(
        "messages",
        "anthropic-messages",
        _messages,
        ("SIGNATURE", "REDACTED_DATA"),
        "claude-sonnet-4-5-20250929",
        _CLAUDE,
        _NOT_THIS_CLAUDE,
    ),
    Signed(
        "responses",
        "openai-responses",
        _responses,
        ("ENCRYPTED", "rs_1"),
        "gpt-5-2025-08-07",
        ("gpt-5", "openai/gpt-5", "azure/gpt-5-2025-08-07"),
        ("gpt-5-mini", "gpt-5-pro", "gpt-5-codex", "gpt-5-2025-10-06", "ft:gpt-5-2025-08-07:me::1"),
        (("store", False),),
    ),
    Signed(
        "responses of an alias that is routed",
        "openai-responses",
        _responses,
        ("ENCRYPTED",),
        "gpt-5.6-sol",
        ("gpt-5.6", "openai/gpt-5.6"),
        ("gpt-5.6-terra", "gpt-5.5"),
        (("store", False),),
    ),
    Signed(
        "gemini",
        "gemini",
        _gemini,
        ("U0lHTkFUVVJF",),
        "gemini-3-pro",
        (
            "models/gemini-3-pro",
            "projects/p/locations/global/publishers/google/models/gemini-3-pro",
            "gemini-3-pro-001",
        ),
        ("gemini-3-pro-preview", "gemini-3-flash"),
    ),
    Signed(
        "converse",
        "bedrock-converse",
        _converse,
        ("SIGNATURE",),
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        (
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0",
        ),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic.claude-sonnet-4-20250514-v1:0"),
    ),
    Signed(
        "chat of openrouter",
        "openai-chat",
        _openrouter,
        ("SIGNATURE",),
        "anthropic/claude-4.5-sonnet-20250929",
        ("anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4.5:nitro"),
        ("anthropic/claude-haiku-4.5", "anthropic/claude-sonnet-4"),
        (("replay_reasoning", "reasoning_details"),),
    ),
    Signed(
        "chat of gemini",
        "openai-chat",
        _gemini_chat,
        ("U0lHTkFUVVJF",),
        "models/gemini-3-pro-preview",
        ("gemini-3-pro-preview", "google/gemini-3-pro-preview:free"),
        ("gemini-3-pro",),
    ),
    Signed(
        "mistral",
        "mistral",
        _mistral,
        ("SIGNATURE",),
        "magistral-medium-2509",
        ("magistral-medium-latest", "mistral/magistral-medium", "mistral.magistral-medium-2509"),
        ("magistral-small-2509", "magistral-medium-2506"),
    ),
    Signed(
        "cohere",
        "cohere-chat",
        _cohere,
        ("SECRET",),
        "command-a-reasoning-08-2025",
        ("cohere/command-a-reasoning",),
        ("command-a-03-2025", "command-a-reasoning-09-2025"),
    ),
)
"""Answers of each dialect whose provider wants something back."""
