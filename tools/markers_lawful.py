"""Rules of each protocol about the members of an event, a whole answer and a request.

In: a protocol, and the path of a member or a value.  Out: what the member must be, and the value
with the members that others need and without those that exclude each other.

Law: a member that is left out here is the subject of another value.
Source: docs/protocols/<protocol>.md.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from markers_json import Event, items, members
from markers_values import Json, Write


def _json_text(marker: Json) -> Json:
    """Write a JSON text that holds a marker."""
    return json.dumps({"any": marker})


_ANY_FIXED: Final[Mapping[str, Write]] = {
    r".*:choices\[\](\.index|\.(delta|message)\.tool_calls\[\]\.index)": 0,
    r".*[.:](arguments|partial_json)": _json_text,
}
_FIXED: Final[Mapping[str, Mapping[str, Write]]] = {
    "openai-chat": {
        r"request:model(=\?)?": "a-model",
        r"request:(top_p|frequency_penalty|presence_penalty|temperature)": 0.5,
        r"request:top_logprobs": 5,
    },
    "openai-responses": {
        r".*:item_id": "item_1",
        r".*:(output|content|summary|annotation|command)_index": 0,
        r"response\.function_call_arguments\.(delta|done):(delta|arguments)": _json_text,
        r"response\.mcp_call_arguments\.(delta|done):(delta|arguments)": _json_text,
        r"response\.(created|in_progress|queued):response\.status(=\?)?": "in_progress",
        r"response\.completed:response\.status(=\?)?": "completed",
        r"response\.failed:response\.status(=\?)?": "failed",
        r"response\.incomplete:response\.status(=\?)?": "incomplete",
        r"request:model(=\?)?": "a-model",
        r"request:(top_p|temperature)": 0.5,
        r"request:top_logprobs": 5,
    },
    "anthropic-messages": {
        r".*:index": 0,
        r"request:model(=\?)?": "a-model",
        r"request:(top_p|temperature)": 0.5,
    },
    "gemini": {
        r".*:candidates\[\]\.index": 0,
        r".*\.partialArgs\[\]\.jsonPath": lambda marker: f"$.{marker}",
    },
    "gemini-interactions": {
        r".*:index": 0,
        r"(answer|interaction\.\w+:interaction)[:.]object": "interaction",
        r"step\.delta:delta<arguments_delta>\.\w+": _json_text,
        r"interaction\.created:interaction\.status(=\?)?": "in_progress",
    },
    "mistral": {},
    "cohere-chat": {r".*:index": 0},
    "bedrock-converse": {
        r".*\.contentBlockIndex": 0,
        r"contentBlockDelta:.*\.toolUse\.input": _json_text,
    },
}
_PATTERNS: Final = {
    protocol: {re.compile(path): write for path, write in {**_ANY_FIXED, **fixed}.items()}
    for protocol, fixed in _FIXED.items()
}


def _as_it_is(marker: Json) -> Json:
    return marker


@cache
def decided(protocol: str, path: str) -> Write:
    """Return what a protocol decides about a member.

    These are numbers and ids of blocks, which must fit together, texts of JSON, and numbers with a
    range. Every other member gets its marker as it is.
    """
    patterns = _PATTERNS[protocol]
    return next((patterns[each] for each in patterns if each.fullmatch(path)), _as_it_is)


def _complete_chat(event: Event, form: str) -> None:
    """Give the pieces of calls and of audio what comes with the first piece, and counts theirs."""
    _count(event.get("usage"), "prompt_tokens", "completion_tokens")
    if event.get("error"):  # nothing comes beside an error but the end of the choice
        for name in event.keys() - {"id", "model", "error"}:
            del event[name]
        end = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        event["choices"] = [end]
    for choice in items(event.get("choices")):
        if form == "answer" and not choice.get("message"):
            choice["message"] = {"role": "assistant", "content": "Hi"}
        held = members(choice.get("delta") or choice.get("message"))
        for call in items(held.get("tool_calls")):
            call.setdefault("id", "call_1")
            if "custom" not in call:
                members(call.setdefault("function", {})).setdefault("name", "find")
        members(held.get("function_call")).setdefault("name", "find")
        members(held.get("audio")).setdefault("data", "aGk=")
        _leave_one(held, ("tool_calls", "function_call"))
        _leave_one(held, ("reasoning_content", "reasoning"))


_DATA: Final = (
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "audioTranscription",
)
"""Members of a part of Gemini of which it has one."""


def _complete_gemini(event: Event, form: str) -> None:
    """Leave a part one datum, and give a candidate what comes with its members."""
    _count(event.get("usageMetadata"), "promptTokenCount", "candidatesTokenCount")
    if form == "answer" and not event.get("candidates"):
        event["candidates"] = [{"content": {"parts": [{"text": "Hi"}]}}]
    for candidate in items(event.get("candidates")):
        if form == "answer":
            candidate.setdefault("finishReason", "STOP")
        chosen = {"token": "Hi", "tokenId": 1, "logProbability": -1}
        members(candidate.get("logprobsResult")).setdefault("chosenCandidates", [chosen])
        for part in items(members(candidate.get("content")).get("parts")):
            _complete_part(part)


def _complete_part(part: Event) -> None:
    _leave_one(part, _DATA)
    if not any(name in part for name in _DATA):
        part["text"] = "Hi"
    call = members(part.get("functionCall"))
    call.setdefault("name", "find")
    _leave_one(call, ("args", "partialArgs"))
    for piece in items(call.get("partialArgs")):
        _leave_one(piece, ("stringValue", "numberValue", "boolValue", "nullValue"))
        piece.setdefault("jsonPath", "$.any")


def _count(usage: object, *names: str) -> None:
    """Give a record of counts those that every record has."""
    for name in names:
        members(usage).setdefault(name, 1)


def _leave_one(value: Event, names: Sequence[str]) -> None:
    """Leave the first of members that exclude each other."""
    for name in [name for name in names if name in value][1:]:
        del value[name]


def _leave_one_source(value: object) -> None:
    """Leave each medium its data or its address."""
    _leave_one(members(value), ("data", "uri"))
    for inner in (*members(value).values(), *items(value)):
        _leave_one_source(inner)


_USAGES: Final = ("usage", "step_usage", "total_usage")


def _complete_interaction(event: Event, form: str) -> None:
    """Give a whole answer the name by which its clients know it, and counts theirs."""
    _leave_one_source(event)
    held = event.get("interaction", event)
    for holder in (members(held), members(event.get("metadata"))):
        for name in _USAGES:
            _count(holder.get(name), "total_input_tokens", "total_output_tokens")
    if form == "answer":
        event.setdefault("object", "interaction")


def _complete_cohere(event: Event, _: str) -> None:
    """Give a content its type, and leave it one text."""
    if event.get("type") == "message-end":
        event["delta"] = {"finish_reason": "COMPLETE", **members(event.get("delta"))}
    message = members((event.get("delta") or event).get("message"))
    calls = message.get("tool_calls")
    for call in items(calls) or ([members(calls)] if calls else []):
        if event.get("type") != "tool-call-delta":
            call.setdefault("id", "call_1")
            call["function"] = {"name": "find", **members(call.get("function"))}
    held = members(message.get("content"))
    kind = held.get("type", "thinking" if "thinking" in held else "text")
    if kind in {"thinking", "text"}:
        held.pop("text" if kind == "thinking" else "thinking", None)
    if event.get("type") == "content-start":
        held["type"] = kind


def _complete_converse(event: Event, _: str) -> None:
    """Leave the calls of the server's tools no member that a call of the caller's tools has."""
    for name, inner in event.items():
        if name == "toolUse" and "type" in members(inner):
            event[name] = {"toolUseId": "srv_1", "name": "search", "input": {}, **_type_of(inner)}
        for each in (members(inner), *items(inner)):
            _complete_converse(each, _)


def _type_of(call: object) -> Event:
    return {"type": members(call)["type"]}


def _complete_response(event: Event, form: str) -> None:
    """Give a whole answer the status that its error, or what is incomplete, asks for."""
    if form == "answer":
        if event.get("error"):
            event["status"] = "failed"
        elif event.get("incomplete_details"):
            event["status"] = "incomplete"
    if event.get("type") == "response.output_text.annotation.added":
        event.setdefault("annotation", {"type": "file_path", "file_id": "f", "index": 0})


_TOOLS: Final[Mapping[str, Callable[[str], Event]]] = {
    "openai-chat": lambda name: {"type": "function", "function": {"name": name, "parameters": {}}},
    "openai-responses": lambda name: {"type": "function", "name": name, "parameters": {}},
    "anthropic-messages": lambda name: {"name": name, "input_schema": {"type": "object"}},
}


def _leave_one_image(value: object) -> None:
    """Leave each image of a Responses request its address or its file."""
    _leave_one(members(value), ("image_url", "file_id"))
    for inner in (*members(value).values(), *items(value)):
        _leave_one_image(inner)


def complete_request(dialect: str, body: Event, _: str) -> None:
    """Give a request the tool that it chooses, and a model that takes all settings."""
    body["model"] = "a-model"
    _leave_one_image(body)
    chosen = body.get("tool_choice")
    if chosen is not None or "parallel_tool_calls" in body:
        held = members(chosen)
        name = held.get("name") or members(held.get("function")).get("name") or "find"
        body.setdefault("tools", []).append(_TOOLS[dialect](name))


LAWFUL: Final[Mapping[str, Callable[[Event, str], None]]] = {
    "openai-chat": _complete_chat,
    "openai-responses": _complete_response,
    "mistral": _complete_chat,
    "gemini": _complete_gemini,
    "gemini-interactions": _complete_interaction,
    "cohere-chat": _complete_cohere,
    "bedrock-converse": _complete_converse,
}
"""What makes a value of a protocol lawful, where its types allow more than the protocol does."""
