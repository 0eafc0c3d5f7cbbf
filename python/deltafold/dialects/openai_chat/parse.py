"""Parser of request bodies of OpenAI's Chat Completions API; the inverse of `render.py`.

Law: the member that holds the reasoning of an assistant's message sets `replay_reasoning`.
Source: docs/protocols/openai-chat.md#reasoning, docs/protocols/openai-chat.md#request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from mimetypes import guess_type
from typing import Final, TypeAlias, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects.envelopes import Envelope, joined, pieces
from deltafold.dialects.media import has_source, source_of
from deltafold.dialects.openai_chat.envelopes import google_signature, of_kind, unsealed
from deltafold.dialects.openai_chat.render import DIALECT, MediaRenderer, media_content
from deltafold.dialects.reader import (
    Names,
    Reader,
    address,
    as_object,
    call_of,
    data_url,
    file_of,
    function_tools,
    image_of,
    is_below_zero,
    listed,
    objects,
    odd_arguments,
    read_allowed_tools,
    shown_text,
    text,
    thinking_of,
)
from deltafold.dialects.rendered import Object
from deltafold.dialects.turns import messages_in_tool_turns
from deltafold.message.messages import (
    ContentPart,
    FileRefPart,
    ImagePart,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
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
    "function_call",
}
_REASONING: Final = ("reasoning_details", "thinking_blocks", "reasoning_content", "reasoning")
"""Members that can hold reasoning, the one with most content first."""
_CALL: Final = {"id", "type", "function", "custom", "extra_content"}

_TEXTS: Final = {"$or": ["$text", [{"type": "text", "text": "$text"}]]}

PLAIN: Final[Object] = {
    "history": "messages",
    "rows": [
        {
            "speaker": "user",
            "item": {"role": {"$or": ["user", "system", "developer"]}, "content": _TEXTS},
        },
        {
            "speaker": "assistant",
            "item": {
                "role": "assistant",
                "content?": {"$or": ["$text", None, ""]},
                "tool_calls?": [
                    {
                        "id": "$call",
                        "type": "function",
                        "function": {"name": "$name", "arguments": "$arguments"},
                    }
                ],
            },
        },
        {
            "speaker": "user",
            "item": {"role": "tool", "tool_call_id": "$result", "content": {"$or": ["$text", ""]}},
        },
    ],
}
"""Plain messages, in the form that `rust/core/src/stencil/rows.rs` reads."""


def read_body(reader: Reader) -> None:
    """Read a request body."""
    names = Names(reader.body)
    forms = ChatForms(
        assistant=partial(_read_assistant, reader, names),
        result=partial(_read_result, reader, names),
        contents=partial(read_contents, reader),
        system_roles=frozenset({"system", "developer"}),
    )
    read_chat(reader, forms)
    _read_replay(reader)
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
        if role in {"tool", "function"}:
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
    reader: Reader,
    message: Object,
    place: str,
    id_of: Callable[[str, object], str],
    *,
    kept: Sequence[str] = (),
) -> list[ToolCallPart]:
    """Read the function calls of an assistant's message.

    Args:
        reader: the request.
        message: the message.
        place: its place, for errors.
        id_of: returns the id of a call, given its name and the id in the message.
        kept: members that some clients write and others leave out.
    """
    calls: list[ToolCallPart] = []
    for call, where in objects(message.get("tool_calls"), f"{place}.tool_calls"):
        function = as_object(call.get("function"), f"{where}.function")
        name = str(function.get("name", ""))
        call_id, arguments = id_of(name, call.get("id")), function.get("arguments")
        data = odd_arguments(arguments) | ({} if call.get("id") else {"absent": ["id"]})
        if members := {member: call[member] for member in kept if member in call}:
            data |= {"members": members}
        calls.append(call_of(call_id, name, arguments, reader.own(data)))
    return calls


def _read_replay(reader: Reader) -> None:
    """Set the turns whose reasoning the request sends."""
    after_last_user = 1 + max(
        (i for i, message in enumerate(reader.messages) if message.role is Role.USER), default=-1
    )
    with_tools = messages_in_tool_turns(reader.messages)
    closed = [
        number
        for number, message in enumerate(reader.messages[:after_last_user])
        if any(isinstance(part, ThinkingPart) for part in message.parts)
    ]
    if closed:
        is_tool_turns = all(number in with_tools for number in closed)
        reader.config["replay_reasoning_turns"] = "tool_turns" if is_tool_turns else "all"


def _read_limits(reader: Reader) -> None:
    for member in ("max_completion_tokens", "max_tokens"):
        limit = reader.body.get(member)
        # Local servers accept -1 for no limit; it stays in the body.
        if limit is not None and not is_below_zero(limit) and "max_tokens" not in reader.config:
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
        members = cast("Object", choice)
        function = members.get("function")
        allowed = members.get("allowed_tools")
        if isinstance(function, dict):
            name = cast("Object", function).get("name")
            reader.config["tool_choice"] = {"mode": "tool", "name": name}
            del reader.body["tool_choice"]
        elif isinstance(allowed, dict):
            read_allowed_tools(reader, cast("Object", allowed), "function")


def said(
    reader: Reader, content: Object, place: str, media: MediaRenderer = media_content
) -> ContentPart:
    """Read a content of a user or system message.

    Args:
        reader: the request.
        content: the content.
        place: its place, for errors.
        media: renders a file; a file in any other form keeps its block.
    """
    kind = str(content.get("type"))
    if kind == "text":
        return _text(reader, content, place)
    if kind == "image_url":
        return _image(reader, content, place, media)
    file = _file(content, place)
    if file is None:
        return reader.block(content, f"{place}.content: {kind}", shown_text(content))
    return medium_as_given(reader, file, content, media)


ContentReader: TypeAlias = Callable[[Reader, Object, str], ContentPart]
"""Reads a content of a message; its last argument is the place for errors."""


def read_contents(
    reader: Reader, message: Object, place: str, *, read: ContentReader = said
) -> list[ContentPart]:
    """Read the contents of a message."""
    contents = listed(message.get("content"), f"{place}.content")
    return [read(reader, content, place) for content in contents]


def _image(reader: Reader, content: Object, place: str, media: MediaRenderer) -> ContentPart:
    extras = reader.unknown(content, {"type", "image_url"}, f"{place}.content")
    image = content.get("image_url")
    if isinstance(image, str):
        found = image_of(address(image, f"{place}.image_url"), None, None)
        return medium_as_given(reader, found, content, media)
    members = as_object(image, f"{place}.image_url")
    if members.keys() > {"url"}:
        extras["image_url"] = members
    where = address(members.get("url"), f"{place}.image_url.url")
    found = image_of(where, None, reader.extras(extras))
    return found if has_source(found) else reader.block(content, f"{place}.image_url")


def _text(reader: Reader, content: Object, place: str) -> TextPart:
    extras = reader.unknown(content, {"type", "text"}, f"{place}.content")
    words_said = text(content.get("text"), f"{place}.text")
    if not words_said and not extras:
        return reader.as_sent(words_said, content)
    return TextPart(text=words_said, provider_state=reader.extras(extras))


def _file(content: Object, place: str) -> FileRefPart | None:
    match content.get("type"):
        case "input_audio":
            return audio_of(as_object(content.get("input_audio"), f"{place}.input_audio"))
        case "file":
            return file_in(as_object(content.get("file"), f"{place}.file"))
        case "video_url":
            video = content.get("video_url")
            where = video if isinstance(video, str) else as_object(video, place).get("url")
            return _video(address(where, f"{place}.video_url"))
        case _:
            return None


def audio_of(audio: Object) -> FileRefPart | None:
    """Make a file of a recording, which is base64 or an address; None without any of both."""
    held, form = audio.get("data"), str(audio.get("format") or "*")
    if not isinstance(held, str) or not held:
        return None
    mime_type = _AUDIO_TYPES.get(form, f"audio/{form}")
    is_address = held.startswith(("data:", "http:", "https:"))
    path = held if is_address else data_url(mime_type, held, None)
    return FileRefPart(path=path, mime_type=mime_type)


def file_in(file: Object) -> FileRefPart | None:
    """Make a file of an id, of an address or of the data in it; None without any of these."""
    for member in ("file_id", "file_url", "file_data"):
        held = file.get(member)
        if not isinstance(held, str) or not held:
            continue
        if held.startswith("data:"):
            name = file.get("filename")
            return file_of(held, name if isinstance(name, str) else None)
        is_located = member != "file_data" or held.startswith(("http:", "https:"))
        return FileRefPart(path=held) if is_located else None
    return None


def _video(address: str) -> FileRefPart:
    if address.startswith("data:"):
        return file_of(address, None)
    return FileRefPart(path=address, mime_type=guess_type(address)[0] or "video/mp4")


def medium_as_given(
    reader: Reader, medium: ImagePart | FileRefPart, content: Object, media: MediaRenderer
) -> TextPart | ImagePart | FileRefPart:
    """Return a medium; its block is kept if rendering writes it in another form.

    A medium without a known kind of source is its block alone.
    """
    if not has_source(medium):
        return reader.block(content, str(content.get("type")))
    if media(source_of(medium)) == content:
        return medium
    return medium.model_copy(update={"provider_state": reader.own({"block": content})})


def _read_assistant(reader: Reader, names: Names, message: Object, place: str) -> None:
    message, envelopes = unsealed(reader, message, place)
    parts, extras = _reasoning(reader, message, of_kind(envelopes, "thinking"))
    images = _images(reader, message, place)
    known = {*_ASSISTANT, *_REASONING, *(["images"] if images else [])}
    extras |= reader.unknown(message, known, place)
    for content in listed(message.get("content") or None, f"{place}.content"):
        if content.get("type") == "text":
            parts.append(_text(reader, content, place))
        elif content.keys() == {"type", "refusal"}:
            state = reader.own({"block": content})
            refusal = str(content["refusal"])
            parts.append(TextPart(text=refusal, refusal=True, provider_state=state))
        else:
            kind = content.get("type")
            parts.append(reader.block(content, f"{place}.content: {kind}", shown_text(content)))
    if message.get("refusal"):
        parts.append(TextPart(text=str(message["refusal"]), refusal=True))
    parts.extend(images)
    if isinstance(message.get("audio"), dict):
        block = {"type": "audio", **cast("Object", message["audio"])}
        parts.append(ProviderPart(dialect=DIALECT, block=block))
    parts.extend(_calls(reader, names, message, place))
    parts = joined([*_texts_of(parts, of_kind(envelopes, "text")), *envelopes])
    if message.get("content") == "" and not any(_is_said(part) for part in parts):
        extras["content"] = ""
    reader.say(Role.ASSISTANT, parts, extras)


def _images(reader: Reader, message: Object, place: str) -> list[ImagePart]:
    """Read the images that OpenRouter has beside the text; a list of another form is unknown."""
    images = message.get("images")
    if not isinstance(images, list):
        return []
    found: list[ImagePart] = []
    for item in cast("list[object]", images):
        image = json_object(item)
        if image is None or json_object(image.get("image_url")) is None:
            return []
        medium = _image(reader, dict(image), f"{place}.images", media_content)
        if not isinstance(medium, ImagePart):
            return []
        state = reader.own({"block": image})
        found.append(medium.model_copy(update={"provider_state": state}))
    return found


def _is_said(part: MessagePart) -> bool:
    """Return whether a part is rendered beside reasoning."""
    return not isinstance(part, ThinkingPart)


def _texts_of(parts: list[MessagePart], envelopes: list[Envelope]) -> list[MessagePart]:
    """Return the parts with the text split where its state begins and ends."""
    if not envelopes:
        return parts
    texts = [part for part in parts if isinstance(part, TextPart) and not part.refusal]
    whole = texts[0] if len(texts) == 1 and not texts[0].provider_state else None
    if whole is None:
        return parts
    split = [
        whole.model_copy(update={"text": text, "provider_state": envelope and envelope.state})
        for text, envelope in pieces(whole.text, envelopes, "text")
    ]
    at = parts.index(whole)
    return [*parts[:at], *split, *parts[at + 1 :]]


def _reasoning(
    reader: Reader, message: Object, envelopes: list[Envelope]
) -> tuple[list[MessagePart], Object]:
    """Return the reasoning of a message, and further members that hold it in another form.

    A message whose member is not the one of the first message keeps its member in the state.
    """
    found = [name for name in _REASONING if message.get(name) not in (None, [])]
    sent = [*_enveloped(envelopes), *found]
    if sent:
        reader.config.setdefault("replay_reasoning", sent[0])
    if not found:
        return _thoughts("", envelopes), {}
    member = cast("str", reader.config["replay_reasoning"])
    name = member if member in found else found[0]
    others = {other: message[other] for other in found if other != name}
    value = message[name]
    own: Object = {} if name == member else {"reasoning": {name: value}}
    if isinstance(value, str) and envelopes:
        return _thoughts(value, envelopes), others
    if isinstance(value, str):
        return [thinking_of(value, reader.state(own))], others
    texts = [
        str(piece.get("text") or piece.get("thinking") or piece.get("summary") or "")
        for piece, _ in objects(value, name)
    ]
    own_part = thinking_of("".join(texts), reader.state(own or {name: value}))
    return [own_part, *_thoughts("", envelopes)], others


def _enveloped(envelopes: list[Envelope]) -> list[str]:
    """Return the members of a Chat message that envelopes carry."""
    own = [e.state for e in envelopes if e.state is not None and e.state["dialect"] == DIALECT]
    carried = [cast("Object", state["data"]) for state in own]
    return [name for name in _REASONING if any(name in data for data in carried)]


def _thoughts(text: str, envelopes: list[Envelope]) -> list[MessagePart]:
    """Return the reasoning as one part for each envelope, and one for each piece between two."""
    if not envelopes:
        return []
    return [
        thinking_of(piece, None) if envelope is None else envelope.thinking(piece)
        for piece, envelope in pieces(text, envelopes, "thinking")
        if piece or (envelope is not None and envelope.state is not None)
    ]


def _calls(reader: Reader, names: Names, message: Object, place: str) -> list[ToolCallPart]:
    calls: list[ToolCallPart] = []
    if isinstance(message.get("function_call"), dict):
        old_call = cast("Object", message["function_call"])
        name, arguments = str(old_call.get("name", "")), old_call.get("arguments")
        legacy = reader.own({"legacy": True, **odd_arguments(arguments)})
        calls.append(call_of(names.call(name, None), name, arguments, legacy))
    for call, where in objects(message.get("tool_calls"), f"{place}.tool_calls"):
        members = reader.unknown(call, _CALL, where)
        data: Object = {"members": members} if members else {}
        if isinstance(call.get("custom"), dict):
            read = _custom_call(cast("Object", call["custom"]), call, reader.own(data))
        else:
            function = as_object(call.get("function"), f"{where}.function")
            arguments = function.get("arguments")
            data |= odd_arguments(arguments)
            state = reader.own(data)
            if "extra_content" in call:  # The signature of a Gemini model.
                envelope = reader.opened(google_signature(call), where, members)
                own = reader.state({**data, "extra_content": call["extra_content"]})
                state = own if envelope is None else envelope.state
            call_id = str(call.get("id") or "")
            read = call_of(call_id, str(function.get("name", "")), arguments, state)
        if read.tool_call_id:
            names.call(read.tool_name, read.tool_call_id)
        calls.append(read)
    return calls


def _custom_call(custom: Object, call: Object, state: Object | None) -> ToolCallPart:
    return ToolCallPart(
        tool_call_id=str(call.get("id") or ""),
        tool_name=str(custom.get("name", "")),
        raw_args_text=str(custom.get("input", "")),
        input_format="text",
        provider_state=state,
    )


def _read_result(reader: Reader, names: Names, message: Object, place: str) -> ToolResultPart:
    name = str(message.get("name") or "")
    call_id = names.result(name, message.get("tool_call_id"))
    if message["role"] == "function":
        content = "" if message.get("content") is None else message["content"]
        return ToolResultPart(
            tool_call_id=call_id,
            content=text(content, f"{place}.content"),
            provider_state=reader.own({"legacy": name}),
        )
    return read_result(reader, {**message, "tool_call_id": call_id}, place, given=message)


def read_result(
    reader: Reader,
    message: Object,
    place: str,
    *,
    given: Object | None = None,
    read: ContentReader = said,
) -> ToolResultPart:
    """Read the message that answers a call.

    Args:
        reader: the request.
        message: the message, with the id of its call.
        place: its place, for errors.
        given: the original message, if it can be without the id.
        read: reads a content.
    """
    extras = reader.unknown(message, {"role", "tool_call_id", "content"}, place)
    contents = listed(message.get("content"), f"{place}.content")
    absent = () if given is None or given.get("tool_call_id") else ("tool_call_id",)
    state = reader.extras(extras, *absent)
    content: str | list[ContentPart] = [read(reader, item, place) for item in contents]
    if len(contents) == 0 or (len(contents) == 1 and contents[0].keys() == {"type", "text"}):
        content = str(contents[0]["text"]) if contents else ""
    else:
        data = cast("Object", state["data"]) if state is not None else {}
        state = reader.own({**data, "in_place": True})
    return ToolResultPart(
        tool_call_id=str(message.get("tool_call_id") or ""),
        content=content,
        provider_state=state,
    )
