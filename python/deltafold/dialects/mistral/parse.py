"""Parser of request bodies of Mistral's Chat Completions API; the inverse of `render.py`.

Law: contents, a few names of members, and the mark of an answer to be continued differ from
openai-chat.
Source: the protocol notes on mistral, parts 1, 2 and 6.
"""

from functools import partial

from deltafold.dialects.mistral.render import DIALECT
from deltafold.dialects.openai_chat.parse import (
    ChatForms,
    read_calls,
    read_chat,
    read_tool_choice,
    said,
)
from deltafold.dialects.reader import (
    Names,
    Reader,
    address,
    data_url,
    file_of,
    listed,
    maybe_text,
    text,
    thinking_of,
)
from deltafold.dialects.rendered import Object
from deltafold.messages import (
    ContentPart,
    FileRefPart,
    ImagePart,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ToolResultPart,
)


def read_body(reader: Reader) -> None:
    """Read a request body."""
    names = Names()
    forms = ChatForms(
        assistant=partial(_read_assistant, reader, names),
        result=partial(_result, reader, names),
        contents=partial(_contents, reader),
    )
    read_chat(reader, forms)
    read_tool_choice(reader)


def _contents(reader: Reader, message: Object, place: str) -> list[ContentPart]:
    contents = listed(message.get("content"), f"{place}.content")
    return [_said(reader, content, place) for content in contents]


def _said(reader: Reader, content: Object, place: str) -> TextPart | ImagePart | FileRefPart:
    kind = content.get("type")
    if kind == "file" and content.keys() == {"type", "file_id"}:
        return FileRefPart(path=address(content["file_id"], f"{place}.file_id"))
    if kind == "document_url":
        return _document(reader, content, place)
    audio = content.get("input_audio")
    if kind == "input_audio" and isinstance(audio, str) and "://" not in audio:
        path = data_url("audio/*", audio, None)
        return FileRefPart(path=path, mime_type="audio/*")
    if kind in {"input_audio", "file"}:
        return reader.block(content, f"{place}.content: {kind}")
    return said(reader, content, place)


def _document(reader: Reader, content: Object, place: str) -> FileRefPart | TextPart:
    where = address(content.get("document_url"), f"{place}.document_url")
    name = maybe_text(content.get("document_name"), f"{place}.document_name")
    if not where.startswith("data:"):
        if name is not None:
            return reader.block(content, f"{place}.document_name")
        return FileRefPart(path=where)
    return file_of(where, name)


def _read_assistant(reader: Reader, names: Names, message: Object, place: str) -> None:
    extras = reader.unknown(message, {"role", "content", "tool_calls", "prefix"}, place)
    parts: list[MessagePart] = []
    for content in listed(message.get("content"), f"{place}.content"):
        match content.get("type"):
            case "text":
                parts.append(TextPart(text=text(content.get("text"), f"{place}.text")))
            case "thinking":
                parts.append(_thinking(reader, content, place))
            case kind:
                reader.note(f"{place}.content: {kind}")
                parts.append(ProviderPart(dialect=DIALECT, block=content))
    parts.extend(
        read_calls(
            reader,
            message,
            place,
            lambda name, call_id: names.call(name, None if call_id == "null" else call_id),
        )
    )
    reader.say(Role.ASSISTANT, parts, extras)


def _thinking(reader: Reader, content: Object, place: str) -> MessagePart:
    inner = listed(content.get("thinking"), f"{place}.thinking")
    texts = [
        text(item.get("text"), f"{place}.text") for item in inner if item.get("type") == "text"
    ]
    state = {name: value for name, value in content.items() if name != "thinking"}
    if len(inner) > 1 or len(texts) != len(inner):
        state["thinking"] = inner
    return thinking_of("".join(texts), reader.state(state))


def _result(reader: Reader, names: Names, message: Object, place: str) -> ToolResultPart:
    extras = reader.unknown(message, {"role", "tool_call_id", "name", "content"}, place)
    parts = _contents(reader, message, place)
    content: str | list[ContentPart] = parts
    if all(isinstance(part, TextPart) and part.provider_state is None for part in parts):
        content = "".join(part.text for part in parts if isinstance(part, TextPart))
    return ToolResultPart(
        tool_call_id=names.result(str(message.get("name", "")), message.get("tool_call_id")),
        content=content,
        provider_state=reader.extras(extras, *(() if message.get("name") else ("name",))),
    )
