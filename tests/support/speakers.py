"""Streams of five protocols, written from their content.

In: a dialect, and what the model says in order: text, thinking, calls.  Out: the bytes of a stream
of that protocol, as its server writes it.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from protocol_bodies import DONE, event

COHERE: Final = "cohere-chat"
GEMINI: Final = "gemini"
INTERACTIONS: Final = "gemini-interactions"
MISTRAL: Final = "mistral"
RESPONSES: Final = "openai-responses"

SPOKEN: Final = (COHERE, GEMINI, INTERACTIONS, MISTRAL, RESPONSES)

Wire: TypeAlias = dict[str, object]


class Text(NamedTuple):
    """Visible text, or reasoning, in pieces."""

    pieces: tuple[str, ...]
    thinking: bool = False


class Call(NamedTuple):
    """A tool call.

    Attributes:
        call_id: any JSON value, for servers send any.
        fragments: the text of its arguments; Gemini sends it parsed, as a whole.
        stops: whether the call is closed.
    """

    call_id: object
    name: str
    fragments: tuple[str, ...] = ()
    stops: bool = True


Said: TypeAlias = Text | Call
End: TypeAlias = Literal["stop", "length", "tool_calls"]

ENDS: Final[dict[str, dict[str, str]]] = {
    COHERE: {"stop": "COMPLETE", "length": "MAX_TOKENS", "tool_calls": "TOOL_CALL"},
    GEMINI: {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP"},
    INTERACTIONS: {"stop": "completed", "length": "incomplete", "tool_calls": "requires_action"},
    MISTRAL: {"stop": "stop", "length": "length", "tool_calls": "tool_calls"},
    RESPONSES: {"stop": "completed", "length": "incomplete", "tool_calls": "completed"},
}


def text(*pieces: str) -> Text:
    """Say something."""
    return Text(pieces)


def thought(*pieces: str) -> Text:
    """Think something."""
    return Text(pieces, thinking=True)


def gemini(*parts: Mapping[str, object], **candidate: object) -> bytes:
    """Write a chunk of Gemini with these parts."""
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    return event(
        {"candidates": [content | candidate], "modelVersion": "m", "responseId": "r"},
    )


def typed(kind: str, **members: object) -> bytes:
    """Write an event that names its type, as Cohere and Responses do."""
    return event({"type": kind, **members}, kind)


def interactions(kind: str, **members: object) -> bytes:
    """Write an event of Interactions."""
    return event({**members, "event_type": kind}, kind)


def mistral(delta: Wire, finish_reason: str | None = None, **top: object) -> bytes:
    """Write a chunk of Mistral."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return event({"id": "r", "model": "m", "choices": [choice], **top})


def _gemini(said: Said, _: int) -> Iterator[bytes]:
    if isinstance(said, Text):
        for piece in said.pieces:
            yield gemini({"text": piece} | ({"thought": True} if said.thinking else {}))
        return
    call: Wire = {"name": said.name}
    if said.call_id is not None:
        call["id"] = said.call_id
    if said.fragments:
        call["args"] = json.loads("".join(said.fragments))
    yield gemini({"functionCall": call})


def _interactions(said: Said, index: int) -> Iterator[bytes]:
    if isinstance(said, Text):
        kind = "thought" if said.thinking else "model_output"
        yield interactions("step.start", index=index, step={"type": kind})
        for piece in said.pieces:
            content = {"type": "text", "text": piece}
            delta = {"type": "thought_summary", "content": content} if said.thinking else content
            yield interactions("step.delta", index=index, delta=delta)
    else:
        step: Wire = {"type": "function_call", "id": said.call_id, "name": said.name}
        yield interactions("step.start", index=index, step=step)
        for fragment in said.fragments:
            delta = {"type": "arguments_delta", "arguments": fragment}
            yield interactions("step.delta", index=index, delta=delta)
    if isinstance(said, Text) or said.stops:
        yield interactions("step.stop", index=index)


def _cohere(said: Said, index: int) -> Iterator[bytes]:
    def message(kind: str, inner: Wire) -> bytes:
        return typed(kind, index=index, delta={"message": inner})

    if isinstance(said, Text):
        kind = "thinking" if said.thinking else "text"
        yield message("content-start", {"content": {"type": kind, kind: ""}})
        for piece in said.pieces:
            yield message("content-delta", {"content": {kind: piece}})
        yield typed("content-end", index=index)
        return
    function = {"name": said.name, "arguments": ""}
    call = {"id": said.call_id, "type": "function", "function": function}
    yield message("tool-call-start", {"tool_calls": call})
    for fragment in said.fragments:
        more = {"function": {"arguments": fragment}}
        yield message("tool-call-delta", {"tool_calls": more})
    if said.stops:
        yield typed("tool-call-end", index=index)


def _mistral(said: Said, index: int) -> Iterator[bytes]:
    if isinstance(said, Text):
        for piece in said.pieces:
            inner: Wire = {"type": "text", "text": piece}
            content = [{"type": "thinking", "thinking": [inner]}] if said.thinking else piece
            yield mistral({"content": content})
        return
    for at, fragment in enumerate(said.fragments or ("",)):
        function: Wire = {"arguments": fragment}
        function |= {"name": said.name} if at == 0 else {}
        call = {"index": index, "function": function} | ({"id": said.call_id} if at == 0 else {})
        yield mistral({"tool_calls": [call]})


def _responses(said: Said, index: int) -> Iterator[bytes]:
    def item(stage: str, members: Wire) -> bytes:
        return typed(f"response.output_item.{stage}", output_index=index, item=members)

    def more(what: str, delta: str) -> bytes:
        return typed(f"response.{what}.delta", output_index=index, delta=delta)

    if isinstance(said, Text):
        kind = "reasoning" if said.thinking else "message"
        what = "reasoning_text" if said.thinking else "output_text"
        yield item("added", {"type": kind, "id": f"i{index}", "content": []})
        for piece in said.pieces:
            yield more(what, piece)
        contents = [{"type": what, "text": "".join(said.pieces)}]
        yield item("done", {"type": kind, "id": f"i{index}", "content": contents})
        return
    call: Wire = {"type": "function_call", "call_id": said.call_id, "name": said.name}
    yield item("added", {**call, "arguments": ""})
    for fragment in said.fragments:
        yield more("function_call_arguments", fragment)
    if said.stops:
        yield item("done", {**call, "arguments": "".join(said.fragments)})


_SAYING: Final = {
    COHERE: _cohere,
    GEMINI: _gemini,
    INTERACTIONS: _interactions,
    MISTRAL: _mistral,
    RESPONSES: _responses,
}


def opening(dialect: str) -> bytes:
    """Write what names model and response, where that is an event of its own."""
    if dialect == RESPONSES:
        return typed("response.created", response={"id": "r", "model": "m"})
    if dialect == INTERACTIONS:
        about = {"id": "r", "model": "m", "status": "in_progress"}
        return interactions("interaction.created", interaction=about)
    return typed("message-start", id="r") if dialect == COHERE else b""


def ending(dialect: str, end: End | str, counts: tuple[int, int] | None = None) -> bytes:
    """Write the end, with a reason of ours or the protocol's own word for one."""
    raw = ENDS[dialect].get(end, end)
    given, made = counts or (0, 0)
    if dialect == GEMINI:
        usage = {"promptTokenCount": given, "candidatesTokenCount": made}
        wire: Wire = {"candidates": [{"finishReason": raw}]}
        return event(wire | ({"usageMetadata": usage} if counts else {}))
    if dialect == INTERACTIONS:
        usage = {"total_input_tokens": given, "total_output_tokens": made}
        about: Wire = {"id": "r", "model": "m", "status": raw}
        about |= {"usage": usage} if counts else {}
        return interactions("interaction.completed", interaction=about) + DONE
    if dialect == COHERE:
        tokens = {"tokens": {"input_tokens": given, "output_tokens": made}}
        delta: Wire = {"finish_reason": raw}
        delta |= {"usage": tokens} if counts else {}
        return typed("message-end", delta=delta)
    if dialect == MISTRAL:
        usage = {"prompt_tokens": given, "completion_tokens": made}
        return mistral({"content": ""}, raw, **({"usage": usage} if counts else {})) + DONE
    response: Wire = {"id": "r", "model": "m", "status": raw}
    if raw == "incomplete":
        response["incomplete_details"] = {"reason": "max_output_tokens"}
    if counts:
        response["usage"] = {"input_tokens": given, "output_tokens": made}
    return typed(f"response.{raw}", response=response)


def saying(dialect: str, *said: Said) -> bytes:
    """Write the beginning of a stream that says this."""
    events = (one for index, part in enumerate(said) for one in _SAYING[dialect](part, index))
    return opening(dialect) + b"".join(events)


def stream(
    dialect: str, *said: Said, end: End = "stop", counts: tuple[int, int] | None = None
) -> bytes:
    """Write a whole stream that says this."""
    return saying(dialect, *said) + ending(dialect, end, counts)
