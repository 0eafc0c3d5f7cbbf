"""Histories of langchain-core as conversations of deltafold.

In: the framework's messages.  Out: deltafold messages.

Laws: an answer of this adapter goes back as it was received, by its outline. Content is read in the
forms that the framework's own models take: text, standard blocks, and blocks of the Chat and
Messages APIs. A block of an unknown form raises `ValueError`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from deltafold.integrations.carried import (
    MEMBER,
    Carried,
    cache_marked,
    call_part,
    text_part,
    thinking_part,
    whole_part,
)
from deltafold.integrations.langchain.answers import sent_arguments
from deltafold.integrations.outlines import Outline, canonical, parts_of_outline
from deltafold.message.messages import Message, Role
from deltafold.message.parts import (
    ContentPart,
    FileRefPart,
    ImagePart,
    MessagePart,
    ProviderPart,
    TextPart,
    ToolResultPart,
)

Block = Mapping[str, Any]


def conversation_of(messages: Sequence[BaseMessage], dialect: str) -> list[Message]:
    """Return the conversation of a request.

    Raises:
        ValueError: a message or a block has an unknown form.
    """
    return [message for given in messages for message in _messages(given, dialect)]


def _messages(given: BaseMessage, dialect: str) -> list[Message]:
    match given:
        case AIMessage():
            parts = _answer(given, dialect)
            return [Message(role=Role.ASSISTANT, parts=parts)] if parts else []
        case ToolMessage():
            result = ToolResultPart(
                tool_call_id=given.tool_call_id,
                content=_result(given.content, dialect),
                is_error=given.status == "error",
            )
            return [Message(role=Role.TOOL, parts=[result])]
        case SystemMessage():
            return [Message(role=Role.SYSTEM, parts=_parts(given.content, dialect))]
        case HumanMessage():
            return [Message(role=Role.USER, parts=_parts(given.content, dialect))]
        case ChatMessage() if given.role in _ROLES:
            return [Message(role=_ROLES[given.role], parts=_parts(given.content, dialect))]
        case _:
            raise ValueError(f"a {type(given).__name__} cannot be sent to a model")


_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER}


def _result(content: object, dialect: str) -> str | list[ContentPart]:
    if isinstance(content, str):
        return content
    return cast("list[ContentPart]", _parts(content, dialect))


def _parts(content: object, dialect: str) -> list[MessagePart]:
    if isinstance(content, str):
        return [TextPart(text=content)]
    parts: list[MessagePart] = []
    for block in cast("Sequence[str | Block]", content):
        if isinstance(block, str):
            parts.append(TextPart(text=block))
            continue
        parts.append(_part(block, dialect))
        extras = cast("Block", block.get("extras") or {})
        mark = block.get("cache_control") or extras.get("cache_control")
        if isinstance(mark, Mapping):
            parts = cache_marked(parts, dialect, cast("Block", mark).get("ttl"))
    return parts


def _part(block: Block, dialect: str) -> MessagePart:
    kind = block.get("type")
    if kind in _TEXTS and "text" in block:
        return TextPart(text=block["text"])
    if kind == "non_standard" and isinstance(value := block.get("value"), dict):
        return _whole(cast("dict[str, Any]", value), dialect)
    if (medium := _medium_of_api(block)) is not None:
        return medium
    if kind in _MEDIA:
        return _medium(block)
    raise ValueError(f"content: a block of type {kind!r} cannot be sent: {dict(block)!r}")


_TEXTS = frozenset({"text", "input_text", "text-plain"})
_MEDIA = frozenset({"image", "file", "audio", "video", "text-plain"})


def _whole(value: dict[str, Any], dialect: str) -> MessagePart:
    """Return a part that this adapter stored whole, or a block of the provider."""
    if value.keys() >= {"kind", "payload"}:
        return whole_part({"part": value}) or ProviderPart(dialect=dialect, block=value)
    return ProviderPart(dialect=dialect, block=value)


def _medium_of_api(block: Block) -> ImagePart | FileRefPart | None:
    """Read an image or a file in the form of the Chat or Messages API; None for other blocks."""
    match block.get("type"):
        case "image_url":
            image = block["image_url"]
            return _image(image if isinstance(image, str) else image["url"], block)
        case "input_audio":
            audio = cast("Block", block["input_audio"])
            return _file(f"audio/{audio['format']}", str(audio["data"]))
        case "file" if isinstance(block.get("file"), Mapping):
            return _chat_file(cast("Block", block["file"]))
        case "image" | "document" if isinstance(block.get("source"), Mapping):
            return _of_source(block, cast("Block", block["source"]))
        case _:
            return None


def _image(url: str, block: Block) -> ImagePart:
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        return ImagePart(mime_type=head[5:].partition(";")[0], data=data)
    return ImagePart(mime_type=str(block.get("mime_type") or "image/png"), url=url)


def _file(mime_type: str, data: str, name: str | None = None) -> FileRefPart:
    named = "" if name is None else f";name={name}"
    return FileRefPart(path=f"data:{mime_type}{named};base64,{data}", mime_type=mime_type)


def _chat_file(file: Block) -> FileRefPart:
    if isinstance(data := file.get("file_data"), str):
        head, _, encoded = data.partition(",")
        return _file(head[5:].partition(";")[0], encoded, file.get("filename"))
    return FileRefPart(path=str(file["file_id"]))


def _of_source(block: Block, source: Block) -> ImagePart | FileRefPart:
    """Read an image or a document in the form of the Messages API."""
    kind = str(source.get("media_type") or "application/pdf")
    is_image = block["type"] == "image"
    match source.get("type"):
        case "base64" if is_image:
            return ImagePart(mime_type=kind, data=source["data"])
        case "base64":
            return _file(kind, source["data"])
        case "url" if is_image:
            return ImagePart(mime_type="image/png", url=source["url"])
        case "url":
            return FileRefPart(path=source["url"], mime_type=kind)
        case "file":
            return FileRefPart(path=source["file_id"])
        case other:
            raise ValueError(f"content: a source of type {other!r} cannot be sent")


def _medium(block: Block) -> ImagePart | FileRefPart:
    """Read a standard block with `base64`, `url` or `file_id`."""
    is_image = block["type"] == "image"
    kind = str(block.get("mime_type") or ("image/png" if is_image else "application/octet-stream"))
    data = block.get("base64")
    if isinstance(data, str):
        if is_image:
            return ImagePart(mime_type=kind, data=data)
        extras = cast("Block", block.get("extras") or {})
        name = block.get("filename") or extras.get("filename")
        return _file(kind, data, name)
    if isinstance(url := block.get("url"), str):
        return _image(url, block) if is_image else FileRefPart(path=url, mime_type=kind)
    if isinstance(name := block.get("file_id"), str):
        return FileRefPart(path=name, mime_type=kind)
    raise ValueError(f"content: the block has no base64, url or file_id: {dict(block)!r}")


def _answer(message: AIMessage, dialect: str) -> list[MessagePart]:
    """Return the parts of an answer, by its outline if that fits."""
    calls: dict[str, tuple[str, object]] = {
        str(call["id"]): (call["name"], call["args"]) for call in message.tool_calls
    }
    calls |= {
        str(call["id"]): (str(call["name"]), sent_arguments(call["args"] or ""))
        for call in message.invalid_tool_calls
    }
    outline = message.response_metadata.get(MEMBER)
    content: Sequence[str | Block] = (
        [message.content] if isinstance(message.content, str) else cast("Any", message.content)
    )
    if isinstance(outline, list):
        text, thinking = _texts(content)
        found = parts_of_outline(cast("Outline", outline), text, thinking, calls)
        if found is not None:
            return found
    provider = message.response_metadata.get("model_provider")
    return _answer_of_content(content, calls, _DIALECTS.get(str(provider), dialect))


_DIALECTS = {
    "anthropic": "anthropic-messages",
    "openai": "openai-responses",
    "google_genai": "gemini",
    "bedrock_converse": "bedrock-converse",
}
"""Dialects of the blocks of the framework's own models, by the name of their provider."""


def _texts(content: Sequence[str | Block]) -> tuple[str, str]:
    """Return the text and the reasoning of an answer."""
    text, thinking = "", ""
    for block in content:
        if isinstance(block, str):
            text += block
        elif block.get("type") == "text":
            text += block.get("text") or ""
        elif block.get("type") == "reasoning":
            thinking += block.get("reasoning") or ""
    return text, thinking


def _answer_of_content(
    content: Sequence[str | Block], calls: dict[str, tuple[str, object]], dialect: str
) -> list[MessagePart]:
    parts: list[MessagePart] = []
    left = dict(calls)
    for block in content:
        if isinstance(block, str):
            parts += [TextPart(text=block)] if block else []
            continue
        known, kind = _carried(block, dialect), block.get("type")
        if kind in _CALLS:
            name = str(block.get("call_id") or block.get("id"))
            if (call := left.pop(name, None)) is not None:
                parts.append(_call(name, call, known))
        elif kind in _THINKING:
            text = block.get(_THINKING[kind]) or _summary(block)
            parts.append(thinking_part(text, known))
        elif kind != "text" and kind not in _PIECES:
            parts.append(_part(block, dialect) if kind in _KNOWN else _foreign(block, dialect))
        elif kind == "text" and (block.get("text") or known):
            parts.append(text_part(block.get("text") or "", known))
    return parts + [_call(name, call, {}) for name, call in left.items()]


_CALLS = frozenset({"tool_call", "tool_use", "invalid_tool_call", "function_call"})
_PIECES = frozenset({"tool_call_chunk", "input_json_delta", "server_tool_call_chunk"})
_THINKING = {"reasoning": "reasoning", "thinking": "thinking", "redacted_thinking": "text"}
"""Blocks of reasoning, and their member with the text."""


_KNOWN = frozenset({*_MEDIA, "image_url", "input_audio", "non_standard"})
_OF_CHUNKS = frozenset({"index"})


def _foreign(block: Block, dialect: str) -> ProviderPart:
    """Return a block that only its provider understands."""
    kept = {name: value for name, value in block.items() if name not in _OF_CHUNKS}
    return ProviderPart(dialect=dialect, block=kept)


def _summary(block: Block) -> str:
    """Return the text of a reasoning item of Responses."""
    pieces = cast("Sequence[Block]", block.get("summary") or ())
    return "\n\n".join([str(piece.get("text") or "") for piece in pieces])


def _call(call_id: str, call: tuple[str, object], carried: Carried) -> MessagePart:
    name, arguments = call
    raw = arguments if isinstance(arguments, str) else canonical(arguments)
    return call_part(call_id, name, raw or "", carried)


def _carried(block: Block, dialect: str) -> Carried:
    """Return the facts of a block of this adapter, or of the framework's own models."""
    extras = cast("Block", block.get("extras") or {})
    if isinstance(state := extras.get("provider_state"), dict):
        return {"providerState": state}
    if block.get("type") == "reasoning" and "id" in block and "summary" in block:
        data = {name: value for name, value in block.items() if name not in _OF_CHUNKS}
        return {"providerState": {"dialect": "openai-responses", "data": data}}
    signature = extras.get("signature") or block.get("signature")
    if dialect == "anthropic-messages" and block.get("type") == "redacted_thinking":
        data = {"type": "redacted_thinking", "data": block.get("data")}
        return {"redacted": True, "providerState": {"dialect": dialect, "data": data}}
    if isinstance(signature, str):
        name = "thoughtSignature" if dialect == "gemini" else "signature"
        return {"providerState": {"dialect": dialect, "data": {name: signature}}}
    return {}
