"""Parser of request bodies of Cohere's Chat, version 2; the inverse of `render.py`.

Law: a plan is reasoning that is sent back as a plan. Citations are annotations of the first text.
Source: docs/protocols/cohere-chat.md#request.
"""

import json
from functools import partial
from typing import Final, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects.cohere_chat.render import DIALECT
from deltafold.dialects.openai_chat.parse import (
    ChatForms,
    read_calls,
    read_chat,
    read_contents,
    read_result,
    said,
)
from deltafold.dialects.reader import (
    Reader,
    listed,
    shown_text,
    text,
    thinking_of,
)
from deltafold.dialects.rendered import Object
from deltafold.message.messages import ContentPart, MessagePart, ProviderPart, Role, TextPart

_MODES: Final = {"REQUIRED": "required", "NONE": "none"}


def read_body(reader: Reader) -> None:
    """Read a request body."""
    forms = ChatForms(
        assistant=partial(_read_assistant, reader),
        result=partial(read_result, reader, read=_said),
        contents=partial(read_contents, reader, read=_said),
    )
    read_chat(reader, forms)
    choice = reader.body.pop("tool_choice", None)
    if choice is not None:
        word = text(choice, "tool_choice")
        reader.config["tool_choice"] = _MODES.get(word, word)


def _said(reader: Reader, content: Object, place: str) -> ContentPart:
    if content.get("type") == "document":
        return reader.as_sent(_text_of_document(content), content)
    return said(reader, content, place)


def _text_of_document(content: Object) -> str:
    """Return the text of a document, which may have any members; the model reads all of them."""
    document = json_object(content.get("document")) or {}
    if "data" not in document:
        return shown_text(content)
    data = document["data"]
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


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
    parts.extend(read_calls(reader, message, place, lambda _name, call_id: str(call_id or "")))
    reader.say(Role.ASSISTANT, parts, extras)
