"""Parser of request bodies of OpenAI's Chat Completions API; the inverse of `render.py`.

Law: the member that holds the reasoning of an assistant's message sets `replay_reasoning`.
Source: the protocol notes on openai-chat, parts 6 and 8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from deltafold.dialects.openai_chat.render import AUDIO_FORMATS, DIALECT
from deltafold.dialects.reader import (
    Reader,
    address,
    as_object,
    call_of,
    data_url,
    file_of,
    function_tools,
    image_of,
    listed,
    objects,
    text,
    thinking_of,
)
from deltafold.dialects.rendered import Object
from deltafold.messages import (
    FileRefPart,
    ImagePart,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_AUDIO_TYPES: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_ASSISTANT: Final = {
    "role",
    "content",
    "refusal",
    "tool_calls",
    "audio",
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
}
_CALL: Final = {"id", "type", "function", "custom", "extra_content"}


def read_body(reader: Reader) -> None:
    """Read a request body."""
    forms = ChatForms(
        assistant=partial(_read_assistant, reader),
        result=partial(read_result, reader),
        contents=partial(read_contents, reader),
        system_roles=frozenset({"system", "developer"}),
    )
    read_chat(reader, forms)
    read_tool_choice(reader)
    _read_limits(reader)


@dataclass(frozen=True, slots=True)
class ChatForms:
    """Readers of the messages of one Chat-like protocol.

    Attributes:
        assistant: reads an assistant's message; its last argument is the place for errors.
        result: reads a tool message.
        contents: reads the contents of a system or user message.
        members: members of a system or user message.
        system_roles: roles that are read as the system's; all other roles are the user's.
    """

    assistant: Callable[[Object, str], None]
    result: Callable[[Object, str], ToolResultPart]
    contents: Callable[[Object, str], Sequence[MessagePart]]
    members: frozenset[str] = frozenset({"role", "content"})
    system_roles: frozenset[str] = frozenset({"system"})


def read_chat(reader: Reader, forms: ChatForms) -> None:
    """Read the messages of a Chat-like protocol, then its tools.

    Neighbouring tool messages become one message.
    """
    results: list[ToolResultPart] = []
    for message, place in objects(reader.body.pop("messages", None), "messages"):
        role = text(message.get("role"), f"{place}.role")
        if role == "tool":
            results.append(forms.result(message, place))
            continue
        reader.answer(results)
        results = []
        if role == "assistant":
            forms.assistant(message, place)
            continue
        extras = reader.unknown(message, forms.members, place)
        is_system = role in forms.system_roles
        if is_system and role != "system":
            extras["role"] = role
        reader.say(Role.SYSTEM if is_system else Role.USER, forms.contents(message, place), extras)
    reader.answer(results)
    function_tools(reader, reader.body.pop("tools", None))


def read_calls(
    message: Object, place: str, id_of: Callable[[str, object], str]
) -> list[ToolCallPart]:
    """Read the function calls of an assistant's message.

    Args:
        message: the message.
        place: its place, for errors.
        id_of: returns the id of a call, given its name and the id in the message.
    """
    calls: list[ToolCallPart] = []
    for call, where in objects(message.get("tool_calls"), f"{place}.tool_calls"):
        function = as_object(call.get("function"), f"{where}.function")
        name = str(function.get("name", ""))
        call_id = id_of(name, call.get("id"))
        calls.append(call_of(call_id, name, function.get("arguments"), None))
    return calls


def _read_limits(reader: Reader) -> None:
    for member in ("max_tokens", "max_completion_tokens"):
        if reader.body.get(member) is not None and "max_tokens" not in reader.config:
            reader.config |= {"max_tokens": reader.body.pop(member), "max_tokens_member": member}
    options = as_object(reader.body.pop("stream_options", None) or {}, "stream_options")
    reader.config["include_usage"] = options == {"include_usage": True}
    if options and not reader.config["include_usage"]:
        reader.body["stream_options"] = options


def read_tool_choice(reader: Reader) -> None:
    """Read the choice of a tool; a value of another form stays in the body."""
    choice = reader.body.get("tool_choice")
    if isinstance(choice, str):
        reader.config["tool_choice"] = "required" if choice == "any" else choice
        del reader.body["tool_choice"]
    elif isinstance(choice, dict):
        function = cast("Object", choice).get("function")
        if isinstance(function, dict):
            name = cast("Object", function).get("name")
            reader.config["tool_choice"] = {"mode": "tool", "name": name}
            del reader.body["tool_choice"]


def read_contents(reader: Reader, message: Object, place: str) -> list[MessagePart]:
    """Read the contents of a system or user message."""
    contents = listed(message.get("content"), f"{place}.content")
    return [said(reader, content, place) for content in contents]


def said(reader: Reader, content: Object, place: str) -> TextPart | ImagePart | FileRefPart:
    """Read a content of a user or system message."""
    match content.get("type"):
        case "text":
            extras = reader.unknown(content, {"type", "text"}, f"{place}.content")
            words_said = text(content.get("text"), f"{place}.text")
            return TextPart(text=words_said, provider_state=reader.extras(extras))
        case "image_url":
            extras = reader.unknown(content, {"type", "image_url"}, f"{place}.content")
            image = content.get("image_url")
            if isinstance(image, str):
                return image_of(address(image, f"{place}.image_url"), None, reader.extras(extras))
            members = as_object(image, f"{place}.image_url")
            if members.keys() > {"url"}:
                extras["image_url"] = members
            where = address(members.get("url"), f"{place}.image_url.url")
            return image_of(where, None, reader.extras(extras))
        case "input_audio":
            audio = as_object(content.get("input_audio"), f"{place}.input_audio")
            mime_type = _AUDIO_TYPES.get(str(audio.get("format")))
            if mime_type in AUDIO_FORMATS and content.keys() == {"type", "input_audio"}:
                path = data_url(str(mime_type), str(audio.get("data")), None)
                return FileRefPart(path=path, mime_type=mime_type)
        case "file":
            file = _file(as_object(content.get("file"), f"{place}.file"))
            if file is not None and content.keys() == {"type", "file"}:
                return file
        case _:
            pass
    return reader.block(content, f"{place}.content: {content.get('type')}")


def _file(file: Object) -> FileRefPart | None:
    if file.keys() == {"file_id"}:
        return FileRefPart(path=address(file["file_id"], "file.file_id"))
    held = str(file.get("file_data", ""))
    if file.keys() != {"file_data", "filename"} or not held.startswith("data:"):
        return None
    return file_of(held, str(file["filename"]))


def _read_assistant(reader: Reader, message: Object, place: str) -> None:
    extras = reader.unknown(message, _ASSISTANT, place)
    parts: list[MessagePart] = _reasoning(reader, message)
    for content in listed(message.get("content"), f"{place}.content"):
        if content.keys() == {"type", "text"}:
            parts.append(TextPart(text=text(content.get("text"), f"{place}.text")))
        elif content.keys() == {"type", "refusal"}:
            parts.append(TextPart(text=str(content["refusal"]), refusal=True))
        else:
            reader.note(f"{place}.content: {content.get('type')}")
            extras["content"] = message["content"]
    if message.get("refusal"):
        parts.append(TextPart(text=str(message["refusal"]), refusal=True))
    if isinstance(message.get("audio"), dict):
        block = {"type": "audio", **cast("Object", message["audio"])}
        parts.append(ProviderPart(dialect=DIALECT, block=block))
    parts.extend(_calls(reader, message, place))
    reader.say(Role.ASSISTANT, parts, extras)


def _reasoning(reader: Reader, message: Object) -> list[MessagePart]:
    for member in ("reasoning_details", "thinking_blocks"):
        pieces = message.get(member)
        if pieces:
            reader.config["replay_reasoning"] = member
            texts = [
                str(piece.get("text") or piece.get("thinking") or piece.get("summary") or "")
                for piece, _ in objects(pieces, member)
            ]
            return [thinking_of("".join(texts), reader.state({member: pieces}))]
    if message.get("reasoning_content"):
        reader.config["replay_reasoning"] = "reasoning_content"
        return [thinking_of(str(message["reasoning_content"]), None)]
    return []


def _calls(reader: Reader, message: Object, place: str) -> list[ToolCallPart]:
    calls: list[ToolCallPart] = []
    for call, where in objects(message.get("tool_calls"), f"{place}.tool_calls"):
        call_id = str(call.get("id") or "")
        reader.unknown(call, _CALL, where)
        state = reader.state(
            {name: value for name, value in call.items() if name == "extra_content"}
        )
        if isinstance(call.get("custom"), dict):
            custom = cast("Object", call["custom"])
            calls.append(
                ToolCallPart(
                    tool_call_id=call_id,
                    tool_name=str(custom.get("name", "")),
                    raw_args_text=str(custom.get("input", "")),
                    input_format="text",
                    provider_state=state,
                )
            )
            continue
        function = as_object(call.get("function"), f"{where}.function")
        name = str(function.get("name", ""))
        calls.append(call_of(call_id, name, function.get("arguments"), state))
    return calls


def read_result(reader: Reader, message: Object, place: str) -> ToolResultPart:
    """Read the message that answers a call."""
    extras = reader.unknown(message, {"role", "tool_call_id", "content"}, place)
    contents = listed(message.get("content"), f"{place}.content")
    if any(content.keys() != {"type", "text"} for content in contents):
        extras["content"] = message["content"]
    texts = [str(content["text"]) for content in contents if isinstance(content.get("text"), str)]
    return ToolResultPart(
        tool_call_id=str(message.get("tool_call_id") or ""),
        content="".join(texts),
        provider_state=reader.extras(extras),
    )
