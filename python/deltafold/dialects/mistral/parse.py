"""The body of Mistral's Chat Completions API to messages; the mirror of `render.py`.

Law: what is Mistral's own is the form of contents, the names of a few members, and the mark of an
answer that is to be continued.
Source: the protocol notes on mistral, parts 1, 2 and 6.
"""

from deltafold.dialects.mistral.render import DIALECT
from deltafold.dialects.mistral.settings import SETTINGS
from deltafold.dialects.openai_chat.parse import read_tool_choice, said
from deltafold.dialects.reader import (
    Names,
    ParsedRequest,
    Reader,
    address,
    as_object,
    call_of,
    data_url,
    function_tools,
    listed,
    maybe_text,
    objects,
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


def parse(body: Object, model_id: str | None = None) -> ParsedRequest:
    """Read a request."""
    reader = Reader(DIALECT, body, model_id)
    names = Names()
    results: list[ToolResultPart] = []
    for message, place in objects(reader.body.pop("messages", None), "messages"):
        role = text(message.get("role"), f"{place}.role")
        if role == "tool":
            results.append(_result(reader, names, message, place))
            continue
        reader.answer(results)
        results = []
        if role == "assistant":
            _read_assistant(reader, names, message, place)
            continue
        extras = reader.unknown(message, {"role", "content"}, place)
        contents = listed(message.get("content"), f"{place}.content")
        parts = [_said(reader, content, place) for content in contents]
        reader.say(Role.SYSTEM if role == "system" else Role.USER, parts, extras)
    reader.answer(results)
    function_tools(reader, reader.body.pop("tools", None))
    read_tool_choice(reader)
    reader.take(SETTINGS)
    return reader.done()


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
    head, _, data = where[len("data:") :].partition(",")
    mime_type = head.removesuffix(";base64")
    path = data_url(mime_type, data, name)
    return FileRefPart(path=path, mime_type=mime_type)


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
    for call, where in objects(message.get("tool_calls"), f"{place}.tool_calls"):
        function = as_object(call.get("function"), f"{where}.function")
        name = str(function.get("name", ""))
        call_id = call.get("id")
        call_id = names.call(name, None if call_id == "null" else call_id)
        parts.append(call_of(call_id, name, function.get("arguments"), None))
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
    contents = listed(message.get("content"), f"{place}.content")
    parts: list[ContentPart] = [_said(reader, content, place) for content in contents]
    content: str | list[ContentPart] = parts
    if all(isinstance(part, TextPart) and part.provider_state is None for part in parts):
        content = "".join(part.text for part in parts if isinstance(part, TextPart))
    return ToolResultPart(
        tool_call_id=names.result(str(message.get("name", "")), message.get("tool_call_id")),
        content=content,
        provider_state=reader.extras(extras),
    )
