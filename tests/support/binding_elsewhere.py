"""Providers of Responses, Chat and Gemini that refuse a conversation whose state is not whole.

In: requests over HTTP, and what the model says in its answers.  Out: streams with the state of the
protocol, or the refusals that the providers are known for.

Laws, by class. All of them refuse calls without results.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from binding_server import Block, ScriptedServer
from deltafold.testing.playlist import Request

_PLACEHOLDER: Final = "skip_thought_signature_validator"


def _digest(*values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:24]


def _wire(events: Sequence[Block], *, typed: bool = False, end: str = "") -> bytes:
    lines = [f"event: {one['type']}\n" if typed else "" for one in events]
    said = [f"data: {json.dumps(one)}\n\n" for one in events]
    return ("".join(map("".join, zip(lines, said, strict=True))) + end).encode()


class BindingResponses(ScriptedServer):
    """A ScriptedServer of the Responses API that stores nothing.

    Laws: an item of reasoning is one that was made here, with its encrypted content, and the item
    that it led to stands behind it; an item with its id has its reasoning in front of it. A call
    keeps its name and namespace, a message its phase.
    Source: OpenAI, "Reasoning models", keeping reasoning items in context; the texts of its errors
    as openai-agents-python #1660 and openai-python #2607 quote them.
    """

    def __init__(self, script: Sequence[Sequence[Block]], *, reported: str | None = None) -> None:
        super().__init__(script, reported=reported)
        self._after: dict[str, Block] = {}
        """The item behind each item of reasoning, by its encrypted content."""
        self._led_by: dict[str, str] = {}
        """Id of the reasoning in front of an item, by the id of the item."""
        self._items: dict[str, Block] = {}
        """Items by the id of their call, or by their text."""

    def refusal_of(self, body: Block, request: Request) -> str | None:  # noqa: ARG002 - of all protocols
        """Refuse reasoning that is not whole, changed items, and open calls."""
        items: list[Block] = body["input"]
        before: Block = {}
        for item, after in zip(items, [*items[1:], {}], strict=True):
            refusal = self._refused_item(before, item, after)
            if refusal is not None:
                return refusal
            before = item
        calls = {item["call_id"] for item in items if item.get("type") == "function_call"}
        results = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
        if calls - results:
            return f"No tool output found for function call {min(calls - results)}."
        if results - calls:
            return f"No tool call found for function call output {min(results - calls)}."
        return None

    def _refused_item(self, before: Block, item: Block, after: Block) -> str | None:
        if item.get("type") == "reasoning":
            following = self._after.get(str(item.get("encrypted_content")))
            if following is None:
                return f"The encrypted content for item {item.get('id')} could not be verified."
            if _key(after) != _key(following):
                return (
                    f"Item '{item.get('id')}' of type 'reasoning' was provided without its "
                    "required following item."
                )
            return None
        led_by = self._led_by.get(str(item.get("id")))
        if led_by is not None and before.get("id") != led_by:
            return (
                f"Item '{item['id']}' of type '{item['type']}' was provided without its required "
                f"'reasoning' item: '{led_by}'."
            )
        made = self._items.get(_key(item))
        if made is None:
            return None
        changed = [
            name
            for name in ("name", "namespace", "phase")
            if made.get(name) != item.get(name)
            and item.get("type", "message") == made["type"]
            and (name in item or name != "phase" or self.has_text_state)
        ]
        return f"{made['type']} {_key(item)}: {', '.join(changed)} changed" if changed else None

    def error_of(self, message: str) -> Block:
        """Return the body of a refusal."""
        code = "invalid_encrypted_content" if "encrypted content" in message else None
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
        return {"error": error}

    def stream_of(self, body: Block, blocks: Sequence[Block]) -> bytes:
        """Return an answer with encrypted reasoning in front of what it led to."""
        number = len(self.bodies)
        calls = any(block["type"] == "tool_use" for block in blocks)
        items = [_item(f"{number}_{place}", one, calls=calls) for place, one in enumerate(blocks)]
        for item, after in zip(items, [*items[1:], None], strict=True):
            if item["type"] == "reasoning" and after is not None:
                item["encrypted_content"] = f"enc{_digest(item, number)}"
                self.made.append(item["encrypted_content"])
                self._after[item["encrypted_content"]] = after
                self._led_by[after["id"]] = item["id"]
            self._items[_key(item)] = item
        response: Block = {
            "id": f"resp_{number}",
            "object": "response",
            "model": self.reported or body["model"],
            "status": "in_progress",
            "output": [],
        }
        events: list[Block] = [{"type": "response.created", "response": response}]
        for index, item in enumerate(items):
            events += _item_events(index, item)
        usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
        ended = {**response, "status": "completed", "output": items, "usage": usage}
        events.append({"type": "response.completed", "response": ended})
        for count, event in enumerate(events):
            event["sequence_number"] = count
        return _wire(events, typed=True)

    def replayed(self, body: Block) -> list[str]:
        """Return the encrypted contents of a request."""
        return [
            item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning"
        ]


def _item(number: str, block: Block, *, calls: bool) -> Block:
    """Write a block of the script as an item."""
    match block["type"]:
        case "thinking":
            said = [{"type": "summary_text", "text": block["thinking"]}] * bool(block["thinking"])
            return {"type": "reasoning", "id": f"rs_{number}", "summary": said}
        case "text":
            text: Block = {"type": "output_text", "text": block["text"], "annotations": []}
            phase = "commentary" if calls else "final_answer"
            item: Block = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
            return {**item, "status": "completed", "phase": phase, "content": [text]}
        case _:
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": block["id"]}
            item |= {"name": block["name"], "arguments": json.dumps(block["input"])}
            item |= {"namespace": block["namespace"]} if "namespace" in block else {}
            return {**item, "status": "completed"}


def _key(item: Block) -> str:
    """Return what an item is known by: the id of its call, its text, or its summary."""
    if "call_id" in item:
        return f"{item['type'].removesuffix('_output')} {item['call_id']}"
    if item.get("role") == "assistant":
        content: str | list[Block] = item["content"]
        if isinstance(content, str):
            return f"message {content}"
        return "message " + "".join(part.get("text", "") for part in content)
    return str(item.get("encrypted_content") or item.get("id") or "")


def _item_events(index: int, item: Block) -> Iterator[Block]:
    at: Block = {"item_id": item["id"], "output_index": index}
    emptied: Block = {"function_call": {"arguments": ""}, "message": {"content": []}}
    start = {**item, **emptied.get(item["type"], {"summary": []}), "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": start}
    if item["type"] == "function_call":
        arguments = item["arguments"]
        yield {"type": "response.function_call_arguments.delta", **at, "delta": arguments}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": arguments}
    elif item["type"] == "message":
        at["content_index"] = 0
        part = item["content"][0]
        empty = {**part, "text": ""}
        yield {"type": "response.content_part.added", **at, "part": empty}
        yield {"type": "response.output_text.delta", **at, "delta": part["text"], "logprobs": []}
        yield {
            "type": "response.output_text.done",
            **at,
            "text": part["text"],
            "logprobs": [],
        }
        yield {"type": "response.content_part.done", **at, "part": part}
    for place, part in enumerate(item.get("summary", ())):
        spot = {**at, "summary_index": place}
        empty = {**part, "text": ""}
        yield {"type": "response.reasoning_summary_part.added", **spot, "part": empty}
        yield {"type": "response.reasoning_summary_text.delta", **spot, "delta": part["text"]}
        yield {"type": "response.reasoning_summary_text.done", **spot, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **spot, "part": part}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


class BindingChat(ScriptedServer):
    """A ScriptedServer of the Chat API with the rules of DeepSeek or Moonshot.

    Laws: each message with calls has `reasoning_content`; that of an answer from here is unchanged.
    Moonshot refuses an empty one, DeepSeek takes it.
    Source: DeepSeek, "Thinking mode", tool calls; Moonshot, "Use thinking models"; the refusal as
    theopenco/llmgateway #2093 quotes it.

    Args:
        script: the content blocks of each answer.
        reported: the model that answers name.
        takes_empty: whether empty reasoning is accepted.
    """

    def __init__(
        self,
        script: Sequence[Sequence[Block]],
        *,
        reported: str | None = None,
        takes_empty: bool = True,
    ) -> None:
        super().__init__(script, reported=reported)
        self.takes_empty = takes_empty
        self._reasoning: dict[str, str] = {}
        """Reasoning of an answer, by the id of its first call, or by its text."""

    def refusal_of(self, body: Block, request: Request) -> str | None:  # noqa: ARG002 - of all protocols
        """Refuse calls without their reasoning, and open calls."""
        open_calls: set[str] = set()
        for place, message in enumerate(body["messages"]):
            if message["role"] == "tool":
                open_calls.discard(message["tool_call_id"])
                continue
            if open_calls:
                return f"messages.{place}: tool_calls without results: {sorted(open_calls)}"
            calls: list[Block] = message.get("tool_calls") or []
            open_calls = {call["id"] for call in calls}
            reasoning = message.get("reasoning_content")
            if calls and (reasoning is None or not (reasoning or self.takes_empty)):
                return (
                    "thinking is enabled but reasoning_content is missing in assistant tool call "
                    f"message at index {place}"
                )
            made = self._reasoning.get(_spoken(message)) if calls else None
            if made is not None and reasoning != made and (made or self.takes_empty):
                return f"messages.{place}: reasoning_content changed"
        return f"no results of {sorted(open_calls)}" if open_calls else None

    def error_of(self, message: str) -> Block:
        """Return the body of a refusal."""
        return {"error": {"message": message, "type": "invalid_request_error"}}

    def stream_of(self, body: Block, blocks: Sequence[Block]) -> bytes:
        """Return an answer with its reasoning in front."""
        base: Block = {"id": f"chat_{len(self.bodies)}", "object": "chat.completion.chunk"}
        base |= {"created": 1, "model": self.reported or body["model"]}
        reasoning, text, calls = "", "", list[Block]()
        for block in blocks:
            match block["type"]:
                case "thinking":
                    reasoning += block["thinking"]
                case "text":
                    text += block["text"]
                case _:
                    function = {"name": block["name"], "arguments": json.dumps(block["input"])}
                    call = {"index": len(calls), "id": block["id"], "type": "function"}
                    calls.append({**call, "function": function})
        message: Block = {"content": text, "tool_calls": calls}
        self._reasoning[_spoken(message)] = reasoning
        if reasoning:
            self.made.append(reasoning)
        deltas: list[Block] = [{"role": "assistant", "content": None, "reasoning_content": ""}]
        deltas += [{"reasoning_content": reasoning}] * bool(reasoning)
        deltas += [{"content": text}] * bool(text)
        deltas += [{"tool_calls": [call]} for call in calls]
        events = [
            {**base, "choices": [{"index": 0, "delta": one, "finish_reason": None}]}
            for one in deltas
        ]
        reason = "tool_calls" if calls else "stop"
        end: Block = {"index": 0, "delta": {}, "finish_reason": reason}
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        events.append({**base, "choices": [end], "usage": usage})
        return _wire(events, end="data: [DONE]\n\n")

    def replayed(self, body: Block) -> list[str]:
        """Return the reasoning of a request."""
        said = [one.get("reasoning_content") for one in body["messages"]]
        return [text for text in said if text and text.strip()]


def _spoken(message: Block) -> str:
    calls: list[Block] = message.get("tool_calls") or []
    return calls[0]["id"] if calls else str(message.get("content"))


class BindingGemini(ScriptedServer):
    """A ScriptedServer of Gemini's API.

    Laws: the first call of each content has the signature that was made with it, and a placeholder
    only if it was made elsewhere; a signature stays on its part. Each content with calls is
    followed by as many responses.
    Source: Google, "Thought signatures", signatures in function calling parts and their validation.
    """

    def __init__(self, script: Sequence[Sequence[Block]], *, reported: str | None = None) -> None:
        super().__init__(script, reported=reported)
        self._parts: dict[str, Block] = {}
        """The part of each signature."""
        self._signed: dict[str, str] = {}
        """The signature of each call that has one, by its id."""

    def refusal_of(self, body: Block, request: Request) -> str | None:  # noqa: ARG002 - of all protocols
        """Refuse calls without their signatures, moved signatures, and open calls."""
        contents: list[Block] = body["contents"]
        for place, content in enumerate(contents):
            parts: list[Block] = content["parts"]
            calls = [part for part in parts if "functionCall" in part]
            for part in parts:
                signature = part.get("thoughtSignature")
                if signature is None or signature == _PLACEHOLDER:
                    continue
                made = self._parts.get(signature)
                if made is None:
                    return "Corrupted thought signature."
                if _bare(made) != _bare(part):
                    return f"contents[{place}]: Thought signature is not valid."
            if calls and content.get("role") == "model":
                signature = calls[0].get("thoughtSignature")
                made_here = self._signed.get(calls[0]["functionCall"].get("id", ""))
                if signature is None or (made_here is not None and signature != made_here):
                    return (
                        f"Function call in contents[{place}] is missing a thought_signature in "
                        "functionCall parts."
                    )
                rest = contents[place + 1 : place + 2]
                after: list[Block] = [part for one in rest for part in one["parts"]]
                if len([part for part in after if "functionResponse" in part]) != len(calls):
                    return "the number of function response parts is not that of the calls"
        return None

    def error_of(self, message: str) -> Block:
        """Return the body of a refusal."""
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}

    def stream_of(self, body: Block, blocks: Sequence[Block]) -> bytes:  # noqa: ARG002 - of all protocols
        """Return an answer whose first call, or whose last text, is signed."""
        parts: list[Block] = []
        for block in blocks:
            match block["type"]:
                case "thinking":
                    if block["thinking"]:
                        parts.append({"text": block["thinking"], "thought": True})
                case "text":
                    parts.append({"text": block["text"]})
                case _:
                    call = {"id": block["id"], "name": block["name"], "args": block["input"]}
                    parts.append({"functionCall": call})
        calls = [part for part in parts if "functionCall" in part]
        signed = (calls or parts[-1:])[0]
        if not calls and not self.has_text_state:
            return self._wire(parts)
        signature = _digest(signed, len(self.bodies))
        signed["thoughtSignature"] = signature
        self.made.append(signature)
        self._parts[signature] = signed
        if calls:
            self._signed[signed["functionCall"]["id"]] = signature
        return self._wire(parts)

    def _wire(self, parts: Sequence[Block]) -> bytes:
        base: Block = {"modelVersion": self.reported or "gemini-3-pro-preview"}
        events: list[Block] = [
            {**base, "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}
            for part in parts
        ]
        events[-1]["candidates"][0]["finishReason"] = "STOP"
        usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
        events[-1]["usageMetadata"] = usage
        return _wire(events)

    def replayed(self, body: Block) -> list[str]:
        """Return the signatures of a request."""
        return [
            part["thoughtSignature"]
            for content in body["contents"]
            for part in content["parts"]
            if part.get("thoughtSignature", _PLACEHOLDER) != _PLACEHOLDER
        ]


def _bare(part: Block) -> Any:  # noqa: ANN401 - any JSON
    """Return what a signature is bound to: the call, or the text."""
    call = part.get("functionCall")
    return [call["name"], call.get("args")] if call else part.get("text")
