"""The next request of a client, with the streamed answer in its history.

In: the events of a target's stream.  Out: the request with the question, the answer as the client
keeps it, and a result for each call.

Laws: the official Python client accumulates the answer where it accumulates at all: Messages, Chat
and Responses. A chat of Gemini's client keeps every chunk as a content. Of Bedrock, there is only
the loop that every client writes by itself.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final

import anthropic._models
import anthropic.types
import openai
import openai._models
from anthropic.lib.streaming._messages import accumulate_event
from google.genai import types as gemini
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses import ResponseStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from any_name import AnyName

Body = dict[str, Any]
Events = Sequence[Body]

QUESTION: Final = "What is the weather in Oslo?"
ANSWER: Final = "Rain."


def messages(events: Events) -> Body:
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in events:
        typed: Any = anthropic._models.construct_type(
            type_=anthropic.types.RawMessageStreamEvent, value=event
        )
        snapshot = accumulate_event(event=typed, current_snapshot=snapshot, json_bufs=buffers)
    blocks = [block.to_dict() for block in snapshot.content]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": ANSWER}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    turns = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": blocks}]
    return {"model": "m", "max_tokens": 9, "messages": [*turns, _user(results)]}


def _user(results: list[Body]) -> Body:
    return {"role": "user", "content": results or [{"type": "text", "text": "Thanks"}]}


def chat(events: Events) -> Body:
    state: Any = ChatCompletionStreamState()
    for event in events:
        state.handle_chunk(ChatCompletionChunk.construct(**event))
    message = state.current_completion_snapshot.choices[0].message
    turn = message.to_dict(exclude_none=True)
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": ANSWER}
        for call in turn.get("tool_calls") or ()
    ]
    question = {"role": "user", "content": QUESTION}
    return {"model": "m", "messages": [question, turn, *results]}


def plain_chat(events: Events) -> Body:
    """Return the request of a client that keeps only the members that it knows."""
    body = chat(events)
    known = {"role", "content", "refusal", "tool_calls"}
    calls = {"id", "type", "function"}
    for message in body["messages"]:
        if message["role"] == "assistant":
            for name in message.keys() - known:
                del message[name]
            for call in message.get("tool_calls", ()):
                for name in call.keys() - calls:
                    del call[name]
    return body


def responses(events: Events) -> Body:
    state: Any = ResponseStreamState(input_tools=openai.omit, text_format=openai.omit)
    last: Any = None
    for event in events:
        last = openai._models.construct_type(type_=ResponseStreamEvent, value=event)
        state.handle_event(last)
    items = [item.to_dict(exclude_none=True) for item in last.response.output]
    results: list[Body] = []
    for item in items:
        if item["type"] in {"function_call", "custom_tool_call"}:
            kind = f"{item['type']}_output"
            results.append({"type": kind, "call_id": item["call_id"], "output": ANSWER})
    return {"model": "m", "input": [{"role": "user", "content": QUESTION}, *items, *results]}


def gemini_chat(events: Events) -> Body:
    contents: list[Body] = []
    for event in events:
        chunk = gemini.GenerateContentResponse.model_validate(event)
        for candidate in chunk.candidates or ():
            assert candidate.content is not None
            contents.append(candidate.content.model_dump(mode="json", exclude_none=True))
    calls = [part for content in contents for part in content["parts"] if "function_call" in part]
    results: list[Body] = []
    for part in calls:
        call = part["function_call"]
        known = {"id": call["id"]} if "id" in call else {}  # some models give calls no id
        response = {**known, "name": call["name"], "response": {"output": ANSWER}}
        results.append({"functionResponse": response})
    question = {"role": "user", "parts": [{"text": QUESTION}]}
    thanks = {"role": "user", "parts": results or [{"text": "Thanks"}]}
    return {"contents": [question, *contents, thanks]}


def converse(events: Events) -> Body:
    blocks: dict[int, Body] = {}
    arguments: dict[int, str] = {}
    for event in events:
        if start := event.get("contentBlockStart"):
            use = start["start"]["toolUse"]
            blocks[start["contentBlockIndex"]] = {"toolUse": {**use, "input": {}}}
        if changed := event.get("contentBlockDelta"):
            index, delta = changed["contentBlockIndex"], changed["delta"]
            if "toolUse" in delta:
                arguments[index] = arguments.get(index, "") + delta["toolUse"]["input"]
            elif "reasoningContent" in delta:
                _reason(blocks.setdefault(index, {"reasoningContent": {}}), delta)
            elif "text" in delta:
                block = blocks.setdefault(index, {"text": ""})
                block["text"] += delta["text"]
    return _converse_request(blocks, arguments)


def _reason(block: Body, delta: Body) -> None:
    inside, piece = block["reasoningContent"], delta["reasoningContent"]
    if "redactedContent" in piece:
        # The client decodes bytes and encodes them again.
        data = base64.b64decode(piece["redactedContent"], validate=True)
        inside["redactedContent"] = base64.b64encode(data).decode()
        return
    said = inside.setdefault("reasoningText", {"text": ""})
    said["text"] += piece.get("text", "")
    if "signature" in piece:
        said["signature"] = said.get("signature", "") + piece["signature"]


def _converse_request(blocks: dict[int, Body], arguments: dict[int, str]) -> Body:
    results: list[Body] = []
    for index, block in blocks.items():
        if use := block.get("toolUse"):
            text = arguments.get(index, "")
            use["input"] = TypeAdapter(object).validate_json(text) if text.strip() else {}
            result = {"toolUseId": use["toolUseId"], "content": [{"text": ANSWER}]}
            results.append({"toolResult": result})
    turns = [
        {"role": "user", "content": [{"text": QUESTION}]},
        {"role": "assistant", "content": [block for _, block in sorted(blocks.items())]},
        {"role": "user", "content": results or [{"text": "Thanks"}]},
    ]
    return {"messages": turns}


CLIENTS: Final[dict[str, tuple[AnyName, Callable[[Events], Body], Body]]] = {
    "messages": ("anthropic-messages", messages, {}),
    "chat with reasoning_details": ("openai-chat", chat, {"signatures": "reasoning_details"}),
    "chat with thinking_blocks": ("openai-chat", chat, {"signatures": "thinking_blocks"}),
    "chat with extra_content": ("openai-chat", chat, {"signatures": "extra_content"}),
    "responses": ("openai-responses", responses, {"hold": True}),
    "gemini": ("gemini", gemini_chat, {}),
    "converse": ("bedrock-converse", converse, {}),
}
"""All clients: the protocol, how a client keeps an answer, and the options of the encoder."""
