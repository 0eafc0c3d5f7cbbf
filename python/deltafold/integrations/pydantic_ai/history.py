"""Histories of pydantic-ai as conversations of deltafold.

In: the framework's messages and instructions.  Out: deltafold messages.

Laws: a response of this adapter goes back as it was received. Of a response of the framework's own
model, signatures and encrypted reasoning of the same provider go back too. Files that an API takes
by data only are downloaded by the framework's own function, with its limits. A part that the
framework must translate first raises `UserError`.
"""

import base64
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ERROR_OUTCOMES,
    BinaryContent,
    CachePoint,
    CompactionPart,
    FilePart,
    FileUrl,
    ImageUrl,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    NativeToolCallPart,
    SystemPromptPart,
    TextContent,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import TextPart as FrameworkText
from pydantic_ai.models import download_item

from deltafold.integrations.carried import (
    Carried,
    cache_marked,
    call_part,
    carried_in,
    text_part,
    thinking_part,
    whole_part,
)
from deltafold.message.messages import Message, Role
from deltafold.message.parts import (
    ContentPart,
    FileRefPart,
    ImagePart,
    MessagePart,
    TextPart,
    ToolResultPart,
)

_WITH_ERRORS: Final = frozenset({"anthropic-messages", "bedrock-converse"})
"""Dialects that mark a result as an error."""

_NO_IMAGE_URLS: Final = frozenset({"gemini", "bedrock-converse", "ollama"})
"""Dialects that take an image by its data only."""

_DOCUMENT_URLS: Final = frozenset({"anthropic-messages", "openai-responses"})
"""Dialects that take a PDF by its address."""


async def conversation_of(
    messages: Sequence[ModelMessage],
    instructions: Iterable[InstructionPart],
    *,
    dialect: str,
    provider_name: str,
) -> list[Message]:
    """Return the conversation of a request.

    Args:
        messages: the framework's history.
        instructions: the instructions of the request.
        dialect: the dialect of the request.
        provider_name: the name of the vendor.

    Raises:
        UserError: a part was not prepared by the framework.
    """
    conversation: list[Message] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                await _add_request_part(part, conversation, dialect)
        elif parts := [
            found
            for part in message.parts
            for found in _answer_parts(part, message, dialect, provider_name)
        ]:
            conversation.append(Message(role=Role.ASSISTANT, parts=parts))
    place = next(
        (at for at, one in enumerate(conversation) if one.role is not Role.SYSTEM),
        len(conversation),
    )
    conversation[place:place] = [Message.system(part.content) for part in instructions]
    return conversation


async def _add_request_part(
    part: ModelRequestPart, conversation: list[Message], dialect: str
) -> None:
    match part:
        case SystemPromptPart():
            conversation.append(Message.system(part.content))
        case UserPromptPart(content=str(text)):
            conversation.append(Message.user(text))
        case UserPromptPart():
            parts = await _user_parts(part.content, conversation, dialect)
            if parts:
                conversation.append(Message(role=Role.USER, parts=parts))
        case ToolReturnPart():
            result = await _result(part, dialect)
            conversation.append(Message(role=Role.TOOL, parts=[result]))
        case CompactionPart():
            conversation.append(Message.user(part.content or ""))
        case _:
            raise UserError(
                f"{type(part).__name__} cannot be rendered: pass the messages through "
                "`model.prepare_messages(messages)` first, as an Agent does"
            )


async def _user_parts(
    content: Iterable[UserContent], conversation: list[Message], dialect: str
) -> list[MessagePart]:
    parts: list[MessagePart] = []
    for item in content:
        if isinstance(item, str):
            parts.append(TextPart(text=item))
        elif isinstance(item, TextContent):
            parts.append(TextPart(text=item.content))
        elif not isinstance(item, CachePoint):
            parts.append(await _medium(item, dialect))
        elif parts:
            parts = cache_marked(parts, dialect, item.ttl)
        elif conversation and conversation[-1].role in {Role.USER, Role.TOOL}:
            last = conversation[-1]
            if last.role is Role.USER or dialect != "bedrock-converse":
                marked = cache_marked(last.parts, dialect, item.ttl)
                conversation[-1] = last.model_copy(update={"parts": marked})
    return parts


async def _medium(
    item: FileUrl | BinaryContent | UploadedFile, dialect: str
) -> ImagePart | FileRefPart:
    if isinstance(item, UploadedFile):
        return FileRefPart(path=item.file_id, mime_type=item.media_type)
    if isinstance(item, BinaryContent):
        if item.is_image:
            return ImagePart(mime_type=item.media_type, data=item.base64)
        return FileRefPart(path=item.data_uri, mime_type=item.media_type, size=len(item.data))
    return await _medium_at(item, dialect)


async def _medium_at(item: FileUrl, dialect: str) -> ImagePart | FileRefPart:
    is_image = isinstance(item, ImageUrl)
    takes_url = dialect not in _NO_IMAGE_URLS if is_image else _takes_document(item, dialect)
    if takes_url and not item.force_download:
        if is_image:
            return ImagePart(mime_type=_type_of(item), url=item.url)
        return FileRefPart(path=item.url, mime_type=_type_of(item))
    found = await download_item(item, data_format="bytes", type_format="mime")
    kind, data = found["data_type"], found["data"]
    encoded = base64.b64encode(data).decode("ascii")
    if is_image:
        return ImagePart(mime_type=kind, data=encoded)
    return FileRefPart(path=f"data:{kind};base64,{encoded}", mime_type=kind, size=len(data))


def _takes_document(item: FileUrl, dialect: str) -> bool:
    if dialect == "gemini":
        return item.url.startswith("gs://") or "youtube.com/" in item.url or "youtu.be/" in item.url
    return dialect in _DOCUMENT_URLS and _type_of(item) == "application/pdf"


def _type_of(item: FileUrl) -> str:
    try:
        return item.media_type
    except ValueError:  # the address determines no type
        return "image/png" if isinstance(item, ImageUrl) else "application/octet-stream"


async def _result(part: ToolReturnPart[Any], dialect: str) -> ToolResultPart:
    marks_errors = dialect in _WITH_ERRORS
    items = part.content_items(mode="str", wrap_if_error=not marks_errors)
    content: list[ContentPart] = [
        TextPart(text=item) if isinstance(item, str) else await _medium(item, dialect)
        for item in items
    ]
    text = content[0].text if len(content) == 1 and isinstance(content[0], TextPart) else None
    return ToolResultPart(
        tool_call_id=part.tool_call_id,
        content=content if text is None else text,
        is_error=marks_errors and part.outcome in ERROR_OUTCOMES,
    )


def _answer_parts(
    part: ModelResponsePart, response: ModelResponse, dialect: str, provider_name: str
) -> Iterable[MessagePart]:
    """Yield the parts of an answer that one part of the framework stands for."""
    details = getattr(part, "provider_details", None)
    carried = carried_in(details)
    if carried is None and (part.provider_name or response.provider_name) == provider_name:
        carried = _carried_by_framework(part, dialect)
    known: Carried = carried or {}
    whole = whole_part(known)
    if whole is not None:
        yield whole
        return
    match part:
        case FrameworkText():
            if part.content or known:
                yield text_part(part.content, known)
        case ThinkingPart():
            yield thinking_part(part.content, known)
        case ToolCallPart():
            yield call_part(part.tool_call_id, part.tool_name, _arguments(part, known), known)
        case FilePart() if part.content.is_image:
            yield ImagePart(mime_type=part.content.media_type, data=part.content.base64)
        case _:
            # A result that its call carries, or a block of another provider.
            return


def _arguments(part: ToolCallPart, carried: Carried) -> str:
    if carried.get("inputFormat") == "text":
        return str(part.args_as_dict().get("input", ""))
    if carried.get("incomplete"):
        return part.args if isinstance(part.args, str) else ""
    return part.args if isinstance(part.args, str) else part.args_as_json_str()


def _carried_by_framework(part: ModelResponsePart, dialect: str) -> Carried | None:
    """Return the facts of a part that the framework's own model received from this provider."""
    data: dict[str, object] = {}
    carried: Carried = {}
    details: dict[str, Any] = getattr(part, "provider_details", None) or {}
    match part, dialect:
        case ThinkingPart(signature=str(signature)), "anthropic-messages":
            if part.id == "redacted_thinking":
                data, carried = {"type": part.id, "data": signature}, {"redacted": True}
            else:
                data = {"signature": signature}
        case ThinkingPart(signature=str(signature), id=str(name)), "openai-responses":
            summary = [{"type": "summary_text", "text": part.content}] if part.content else []
            data = {
                "id": name,
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": signature,
            }
        case ((FrameworkText() | ToolCallPart() | ThinkingPart()), "gemini"):
            found = details.get("thought_signature")
            data = {"thoughtSignature": found} if isinstance(found, str) else {}
        case NativeToolCallPart(), _:
            return None
        case _:
            pass
    if not data:
        return None
    return {**carried, "providerState": {"dialect": dialect, "data": data}}
