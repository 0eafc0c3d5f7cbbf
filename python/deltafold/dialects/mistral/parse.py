"""Parser of request bodies of Mistral's Chat Completions API; the inverse of `render.py`.

Law: contents, a few names of members, and the mark of an answer to be continued differ from
openai-chat.
Source: docs/protocols/mistral.md#contents, docs/protocols/mistral.md#calls,
docs/protocols/mistral.md#request.
"""

from functools import partial
from mimetypes import guess_type
from typing import Final

from deltafold.dialects.mistral.render import DIALECT, media_content
from deltafold.dialects.openai_chat.parse import (
    ChatForms,
    read_calls,
    read_chat,
    read_contents,
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
from deltafold.message.messages import (
    ContentPart,
    FileRefPart,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ToolResultPart,
)

# The first characters of each type's magic number, in base64.
_AUDIO_TYPES: Final = {
    "UklGR": "audio/wav",
    "SUQz": "audio/mpeg",
    "//": "audio/mpeg",
    "ZkxhQ": "audio/flac",
    "T2dnU": "audio/ogg",
}


def read_body(reader: Reader) -> None:
    """Read a request body."""
    names = Names(reader.body)
    forms = ChatForms(
        assistant=partial(_read_assistant, reader, names),
        result=partial(_result, reader, names),
        contents=partial(read_contents, reader, read=_said),
    )
    read_chat(reader, forms)
    read_tool_choice(reader)


def _said(reader: Reader, content: Object, place: str) -> ContentPart:
    kind = content.get("type")
    if kind == "file" and content.keys() == {"type", "file_id"}:
        return FileRefPart(path=address(content["file_id"], f"{place}.file_id"))
    if kind == "document_url":
        return _document(reader, content, place)
    audio = content.get("input_audio")
    if kind == "input_audio" and isinstance(audio, str):
        return _audio(audio)
    if kind == "file":
        return reader.block(content, f"{place}.content: {kind}")
    return said(reader, content, place, media_content)


def _audio(audio: str) -> FileRefPart:
    if "://" in audio:
        return FileRefPart(path=audio, mime_type=guess_type(audio)[0] or "audio/*")
    kinds = (kind for start, kind in _AUDIO_TYPES.items() if audio.startswith(start))
    mime_type = next(kinds, "audio/*")
    return FileRefPart(path=data_url(mime_type, audio, None), mime_type=mime_type)


def _document(reader: Reader, content: Object, place: str) -> FileRefPart:
    where = address(content.get("document_url"), f"{place}.document_url")
    name = maybe_text(content.get("document_name"), f"{place}.document_name")
    if where.startswith("data:"):
        return file_of(where, name)
    state = reader.extras({} if name is None else {"document_name": name})
    return FileRefPart(path=where, provider_state=state)


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
    parts = read_contents(reader, message, place, read=_said)
    content: str | list[ContentPart] = parts
    if not parts:
        content = ""
    elif len(parts) == 1 and isinstance(parts[0], TextPart) and parts[0].provider_state is None:
        content = parts[0].text
    return ToolResultPart(
        tool_call_id=names.result(str(message.get("name", "")), message.get("tool_call_id")),
        content=content,
        provider_state=reader.extras(extras, *(() if message.get("name") else ("name",))),
    )
