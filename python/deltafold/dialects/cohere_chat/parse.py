"""The body of Cohere's Chat, version 2, to messages; the mirror of `render.py`.

Law: a plan is reasoning that goes back as a plan; citations are annotations of the first text.
Source: the protocol notes on cohere-chat, part 5.
"""

from typing import Final, cast

from deltafold.dialects.cohere_chat.render import DIALECT
from deltafold.dialects.cohere_chat.settings import SETTINGS
from deltafold.dialects.openai_chat.parse import read_result, said
from deltafold.dialects.reader import (
    ParsedRequest,
    Reader,
    as_object,
    call_of,
    function_tools,
    listed,
    objects,
    text,
    thinking_of,
)
from deltafold.dialects.rendered import Object
from deltafold.messages import MessagePart, ProviderPart, Role, TextPart, ToolResultPart

_MODES: Final = {"REQUIRED": "required", "NONE": "none"}


def parse(body: Object, model_id: str | None = None) -> ParsedRequest:
    """Read a request."""
    reader = Reader(DIALECT, body, model_id)
    results: list[ToolResultPart] = []
    for message, place in objects(reader.body.pop("messages", None), "messages"):
        role = text(message.get("role"), f"{place}.role")
        if role == "tool":
            results.append(read_result(reader, message, place))
            continue
        reader.answer(results)
        results = []
        if role == "assistant":
            _read_assistant(reader, message, place)
            continue
        extras = reader.unknown(message, {"role", "content"}, place)
        contents = listed(message.get("content"), f"{place}.content")
        parts = [said(reader, content, place) for content in contents]
        reader.say(Role.SYSTEM if role == "system" else Role.USER, parts, extras)
    reader.answer(results)
    function_tools(reader, reader.body.pop("tools", None))
    choice = reader.body.pop("tool_choice", None)
    if choice is not None:
        word = text(choice, "tool_choice")
        reader.config["tool_choice"] = _MODES.get(word, word)
    reader.take(SETTINGS)
    return reader.done()


def _read_assistant(reader: Reader, message: Object, place: str) -> None:
    known = {"role", "content", "tool_calls", "tool_plan", "citations"}
    extras = reader.unknown(message, known, place)
    parts: list[MessagePart] = []
    if message.get("tool_plan"):
        parts.append(thinking_of(str(message["tool_plan"]), reader.state({"type": "tool_plan"})))
    citations = cast("list[object] | None", message.get("citations")) or None
    for content in listed(message.get("content"), f"{place}.content"):
        match content.get("type"):
            case "thinking":
                state = reader.state({"type": "thinking"})
                parts.append(thinking_of(str(content.get("thinking", "")), state))
            case "text":
                state = reader.state({"type": "text"}) if citations else None
                said_text = text(content.get("text"), f"{place}.text")
                parts.append(TextPart(text=said_text, annotations=citations, provider_state=state))
                citations = None
            case kind:
                reader.note(f"{place}.content: {kind}")
                parts.append(ProviderPart(dialect=DIALECT, block=content))
    if citations:
        extras["citations"] = citations
    for call, where in objects(message.get("tool_calls"), f"{place}.tool_calls"):
        function = as_object(call.get("function"), f"{where}.function")
        name = str(function.get("name", ""))
        parts.append(call_of(str(call.get("id") or ""), name, function.get("arguments"), None))
    reader.say(Role.ASSISTANT, parts, extras)
