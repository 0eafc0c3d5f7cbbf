"""Smallest lawful stream of each protocol around one event.

In: an event with markers, as JSON.  Out: the bytes of a response that holds it.

Law: an event comes after all that its protocol wants before it, and before all that it wants
after it. What a protocol repeats, as the whole text after its pieces, repeats the event's value.
Source: docs/protocols/<protocol>.md.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import event_stream
from markers_json import Event, items, members


def _sse(*events: Event, name: str = "type") -> bytes:
    """Write events; their names are in the member `name`."""
    return b"".join(_one(event, event.get(name)) for event in events)


def _one(event: Event, name: object = None) -> bytes:
    head = f"event: {name}\n" if isinstance(name, str) else ""
    return f"{head}data: {json.dumps(event)}\n\n".encode()


_DONE: Final = b"data: [DONE]\n\n"


def openai_chat(event: Event) -> bytes:
    """Put a chunk into a stream of Chat Completions; text is before it, or after it."""
    if "error" in event and not event.get("choices"):
        return _one(event)
    shared: Event = {
        name: event[name] for name in ("id", "model", "created", "object") if name in event
    }
    choices = items(event.get("choices"))

    def chunk(delta: Event, reason: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**shared, "choices": [choice]}

    text = chunk({"role": "assistant", "content": "Hi"})
    if any(choice.get("finish_reason") for choice in choices):
        return _sse(text, event, name="") + _DONE
    if not choices:  # the chunk with the counts comes last
        return _sse(text, chunk({}, "stop"), event, name="") + _DONE
    called = any(members(choice.get("delta")).get("tool_calls") for choice in choices)
    end = chunk({}, "tool_calls" if called else "stop")
    after = () if called else (text,)
    return _sse(event, *after, end, name="") + _DONE


_ITEMS: Final[Mapping[str, Callable[[Any], Event]]] = {
    "output_text": lambda value: _message({"type": "output_text", "text": value}),
    "refusal": lambda value: _message({"type": "refusal", "refusal": value}),
    "reasoning_text": lambda value: _item(
        "reasoning", summary=[], content=[{"type": "reasoning_text", "text": value}]
    ),
    "reasoning_summary_text": lambda value: _item(
        "reasoning", summary=[{"type": "summary_text", "text": value}]
    ),
    "reasoning_summary_part": lambda value: _item("reasoning", summary=[value]),
    "content_part": lambda value: (
        _item("reasoning", summary=[], content=[value])
        if value.get("type") == "reasoning_text"
        else _message(value)
    ),
    "function_call_arguments": lambda value: _item(
        "function_call", call_id="call_1", name="find", arguments=value
    ),
    "custom_tool_call_input": lambda value: _item(
        "custom_tool_call", call_id="call_1", name="find", input=value
    ),
    "mcp_call_arguments": lambda value: _item(
        "mcp_call", server_label="s", name="find", arguments=value
    ),
    "code_interpreter_call_code": lambda value: _item(
        "code_interpreter_call", container_id="c", outputs=None, code=value
    ),
    "shell_call_command": lambda value: _item(
        "shell_call", call_id="call_1", action={"commands": [value]}
    ),
    "shell_call_output_content": lambda value: _item(
        "shell_call_output",
        call_id="call_1",
        output=[{"outcome": {"type": "exit", "exit_code": 0}, **_first(value)}],
    ),
    "output_text.annotation": lambda value: _message(
        {"type": "output_text", "text": "Hi", "annotations": [value]}
    ),
    "apply_patch_call_operation_diff": lambda value: _item(
        "apply_patch_call",
        call_id="call_1",
        operation={"type": "update_file", "path": "p", "diff": value},
    ),
}
"""Item in which the value of a streamed piece comes again, by the name of the event."""


def _first(value: object) -> Event:
    return (items(value) or [members(value)])[0]


def _item(kind: str, **members: object) -> Event:
    return {"id": "item_1", "type": kind, "status": "completed", **members}


def _message(part: object) -> Event:
    return _item("message", role="assistant", content=[part])


_PROGRESS: Final[Mapping[str, Event]] = {
    "image_generation_call": {"result": "aGk="},
    "web_search_call": {"action": {"type": "search", "query": "q"}},
    "file_search_call": {"queries": ["q"], "results": None},
    "code_interpreter_call": {"container_id": "c", "code": "1", "outputs": None},
    "mcp_call": {"server_label": "s", "name": "find", "arguments": "{}"},
    "mcp_list_tools": {"server_label": "s", "tools": []},
    "compaction": {"encrypted_content": "e"},
}
"""Members of the item whose progress an event reports."""


def openai_responses(event: Event) -> bytes:
    """Put an event of the Responses API into its stream."""
    kind = str(event["type"]).removeprefix("response.")
    response = members(event.get("response"))
    base: Event = {"id": "resp_1", "model": "gpt-5.5"}
    if response:
        base = {name: response[name] for name in base if name in response}
    created = {"type": "response.created", "response": _response(base, "in_progress", [])}
    if kind in {"error", "completed", "failed", "incomplete"}:
        return _sse(created, event)
    if response:
        first = () if kind in {"created", "queued"} else (created,)
        return _sse(*first, event, *_streamed(base, _ITEMS["output_text"]("Hi")))
    item = members(event.get("item"))
    if item:
        added = event if kind == "output_item.added" else _added(item)
        done = {"type": "response.output_item.done", "output_index": 0, "item": item}
        last = done if kind == "output_item.added" else event
        return _sse(created, added, last, _completed(base, item))
    whole = _item_of(kind, event)
    if whole is None:  # audio, and events that no item belongs to or that are new here
        return _sse(created, event, *_streamed(base, _ITEMS["output_text"]("Hi")))
    return _sse(created, _added(_begun(whole)), event, *_ended(base, whole))


_VALUES: Final = (
    "delta", "text", "arguments", "input", "code", "refusal", "part", "command", "output",
    "annotation", "diff",
)  # fmt: skip
"""Members of an event that hold a piece of an item."""


def _item_of(kind: str, event: Event) -> Event | None:
    """Return the finished item that an event is about."""
    name = kind.rpartition(".")[0]
    if name in _ITEMS:
        return _ITEMS[name](next((event[key] for key in _VALUES if key in event), None))
    family = next((item for item in _PROGRESS if kind.startswith(item)), None)
    return None if family is None else _item(family, **_PROGRESS[family])


def _begun(item: Event) -> Event:
    """Return an item before its pieces."""
    streamed: Event = {"content": [], "summary": [], "output": [], "arguments": "", "input": ""}
    begun = {name: streamed.get(name, value) for name, value in item.items()}
    if "action" in begun:
        begun["action"] = {"commands": []}
    return {**begun, "status": "in_progress"}


def _response(base: Event, status: str, output: list[Any]) -> Event:
    return {**base, "object": "response", "status": status, "output": output}


def _added(item: Event) -> Event:
    return {"type": "response.output_item.added", "output_index": 0, "item": item}


def _completed(base: Event, *items: Event) -> Event:
    return {"type": "response.completed", "response": _response(base, "completed", [*items])}


def _ended(base: Event, item: Event) -> tuple[Event, ...]:
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    return done, _completed(base, item)


def _streamed(base: Event, item: Event) -> tuple[Event, ...]:
    return _added(_begun(item)), *_ended(base, item)


_BLOCKS: Final[Mapping[str, Event]] = {
    "text_delta": {"type": "text", "text": ""},
    "citations_delta": {"type": "text", "text": "Hi"},
    "input_json_delta": {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "signature_delta": {"type": "thinking", "thinking": "Hm", "signature": ""},
    "compaction_delta": {"type": "compaction", "content": None},
}
"""Block that a delta extends."""


def anthropic_messages(event: Event) -> bytes:
    """Put an event of the Messages API into its stream."""
    start: Event = {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    }
    text = ({"type": "content_block_start", "index": 0, "content_block": _BLOCKS["text_delta"]},
            {"type": "content_block_delta", "index": 0,
             "delta": {"type": "text_delta", "text": "Hi"}})  # fmt: skip
    stop = {"type": "content_block_stop", "index": 0}
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    last = {"type": "message_stop"}
    extended = str(members(event.get("delta")).get("type", "text_delta"))
    block = _BLOCKS.get(extended, {"type": extended.removesuffix("_delta")})
    begun = {"type": "content_block_start", "index": 0, "content_block": block}
    streams: Mapping[str, tuple[Event, ...]] = {
        "message_start": (event, *text, stop, ended, last),
        "content_block_start": (start, event, stop, ended, last),
        "content_block_delta": (start, begun, event, stop, ended, last),
        "content_block_stop": (start, *text, event, ended, last),
        "message_delta": (start, *text, stop, event, last),
        "message_stop": (start, *text, stop, ended, event),
    }
    return _sse(*streams.get(event["type"], (start, event, *text, stop, ended, last)))


def gemini(event: Event) -> bytes:
    """Put a response of generateContent into a stream."""
    candidates = items(event.get("candidates"))
    if any(candidate.get("finishReason") for candidate in candidates):
        return _sse(event, name="")
    end = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    return _sse(event, end, name="")


_STEPS: Final[Mapping[str, str]] = {
    "text": "model_output",
    "image": "model_output",
    "audio": "model_output",
    "video": "model_output",
    "document": "model_output",
    "text_annotation_delta": "model_output",
    "text_annotation": "model_output",
    "thought_summary": "thought",
    "thought_signature": "thought",
    "arguments_delta": "function_call",
}
"""Step that a delta extends, where it has another name."""


def gemini_interactions(event: Event) -> bytes:
    """Put an event of the Interactions API into its stream."""
    held = members(event.get("interaction"))
    base: Event = {"id": "v1_a", "model": "gemini-3-pro", "object": "interaction"}
    base = {name: held.get(name, event.get(f"interaction_{name}", base[name])) for name in base}
    created = {
        "event_type": "interaction.created",
        "interaction": {**base, "status": "in_progress"},
    }
    completed = {
        "event_type": "interaction.completed",
        "interaction": {**base, "status": "completed"},
    }
    text = (
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Hi"}},
    )
    stop = {"event_type": "step.stop", "index": 0}
    kind = event["event_type"]
    events: tuple[Event, ...]
    if kind == "interaction.created":
        events = (event, *text, stop, completed)
    elif kind == "interaction.completed":
        events = (created, *text, stop, event)
    elif kind == "step.start":
        events = (created, event, stop, completed)
    elif kind == "step.delta":
        delta = event["delta"]["type"]
        step: Event = {"type": _STEPS.get(delta, delta)}
        if step["type"] != "model_output":
            step["id"] = "step_1"
        if step["type"] == "function_call":
            step["name"] = "find"
        before = {"event_type": "step.start", "index": 0, "step": step}
        events = (created, before, event, stop, completed)
    elif kind == "step.stop":
        events = (created, *text, event, completed)
    elif kind == "error":
        events = (created, event)
    else:
        events = (created, event, *text, stop, completed)
    return _sse(*events, name="event_type") + b"event: done\ndata: [DONE]\n\n"


def cohere_chat(event: Event) -> bytes:
    """Put an event of Cohere's second API into its stream."""
    start = {"type": "message-start", "id": "resp-1", "delta": {"message": {"role": "assistant"}}}
    end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
    called = {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}}

    def content(member: str) -> Event:
        block = {"type": member, member: ""}
        return {"type": "content-start", "index": 0, "delta": {"message": {"content": block}}}

    text = content("text")
    more = {
        "type": "content-delta",
        "index": 0,
        "delta": {"message": {"content": {"text": "Hi"}}},
    }

    def more_of(begun: Event) -> tuple[Event, ...]:
        piece = {"thinking" if begun.get("type") == "thinking" else "text": "Hi"}
        return ({**more, "delta": {"message": {"content": piece}}},)

    stop = {"type": "content-end", "index": 0}
    call = {"id": "f_1", "type": "function", "function": {"name": "find", "arguments": ""}}
    called_start = {
        "type": "tool-call-start",
        "index": 0,
        "delta": {"message": {"tool_calls": call}},
    }
    called_stop = {"type": "tool-call-end", "index": 0}
    cited: Event = {
        "type": "citation-start",
        "index": 0,
        "delta": {"message": {"citations": {"start": 0, "end": 2, "text": "Hi", "sources": []}}},
    }
    cited_end = {"type": "citation-end", "index": 0}
    delta = event
    for name in ("delta", "message", "content"):
        delta = members(delta.get(name))
    thinks = "thinking" in delta
    is_empty = not thinks and "text" not in delta
    kind = event["type"]
    streams: Mapping[str, tuple[Event, ...]] = {
        "message-start": (event, text, more, stop, end),
        "content-start": (start, event, *(more_of(delta) if is_empty else ()), stop, end),
        "content-delta": (start, content("thinking") if thinks else text, event, stop, end),
        "content-end": (start, text, more, event, end),
        "tool-plan-delta": (start, event, called_start, called_stop, called),
        "tool-call-start": (start, event, called_stop, called),
        "tool-call-delta": (start, called_start, event, called_stop, called),
        "tool-call-end": (start, called_start, event, called),
        "citation-start": (
            start,
            text,
            more,
            event,
            cited_end,
            stop,
            end,
        ),
        "citation-end": (start, text, more, cited, event, stop, end),
        "message-end": (start, text, more, stop, event),
    }
    return _sse(*streams.get(kind, (start, event, text, more, stop, end)))


def bedrock_converse(event: Event) -> bytes:
    """Put an event of ConverseStream into its stream; its one member is its name."""
    start = {"messageStart": {"role": "assistant"}}
    more = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}}}
    stop = {"contentBlockStop": {"contentBlockIndex": 0}}
    last = {"messageStop": {"stopReason": "end_turn"}}
    (kind,) = event
    if kind.endswith("Exception"):
        return _frames(start, more) + event_stream.exception(kind, event[kind])
    if kind == "contentBlockDelta" and "toolUse" in members(event[kind].get("delta")):
        call = {"toolUse": {"toolUseId": "call_1", "name": "find"}}
        begun: Event = {"contentBlockStart": {"contentBlockIndex": 0, "start": call}}
        called = {"messageStop": {"stopReason": "tool_use"}}
        return _frames(start, begun, event, stop, called)
    streams = {
        "messageStart": (event, more, stop, last),
        "contentBlockStart": (start, event, stop, last),
        "contentBlockDelta": (start, event, stop, last),
        "contentBlockStop": (start, more, event, last),
        "messageStop": (start, more, stop, event),
        "metadata": (start, more, stop, last, event),
    }
    return _frames(*streams.get(kind, (start, event, more, stop, last)))


def _frames(*events: Event) -> bytes:
    return b"".join(
        event_stream.event(name, body) for event in events for name, body in event.items()
    )


STREAMS: Final[Mapping[str, Callable[[Event], bytes]]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic-messages": anthropic_messages,
    "gemini": gemini,
    "gemini-interactions": gemini_interactions,
    "mistral": openai_chat,
    "cohere-chat": cohere_chat,
    "bedrock-converse": bedrock_converse,
}
