"""Parser of request bodies of Gemini's generateContent; the inverse of `render.py`.

Laws: names may be in snake case, as some proxies send them. A call without an id gets one, and a
response answers the oldest unanswered call of its name. The placeholder of a signature is not kept
as a signature.
Source: docs/protocols/gemini.md#parts, docs/protocols/gemini.md#call-ids,
docs/protocols/gemini.md#request.
"""

from typing import Final, cast

from pydantic.alias_generators import to_camel

from deltafold.dialects.envelopes import Envelope, Item, is_piece, rejoined
from deltafold.dialects.gemini.render import DIALECT, FOREIGN_SIGNATURE
from deltafold.dialects.gemini.schemas import json_schema_of
from deltafold.dialects.gemini.settings import SETTINGS
from deltafold.dialects.reader import (
    Names,
    Reader,
    address,
    as_object,
    call_of,
    maybe_text,
    media_of,
    objects,
    shown_text,
    text,
    thinking_of,
    tool_of,
    words,
)
from deltafold.dialects.rendered import Object
from deltafold.dialects.replay import compact
from deltafold.message.messages import (
    ContentPart,
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.specs.tool_specs import ToolSpec

_OF_MODEL: Final = frozenset({"text", "thought", "thoughtSignature", "functionCall"})
_MODES: Final = {"AUTO": "auto", "ANY": "required", "NONE": "none"}


def read_body(reader: Reader) -> None:
    """Read a request body."""
    reader.body = _camel(reader.body)
    system = reader.body.pop("systemInstruction", None)
    if isinstance(system, str):
        system = {"parts": [{"text": system}]}
    if system is not None:
        members = as_object(system, "systemInstruction")
        given = members.get("parts")
        parts = objects(
            [cast("Object", given)] if isinstance(given, dict) else given, "systemInstruction.parts"
        )
        reader.say(Role.SYSTEM, [_said(reader, _camel(part), place) for part, place in parts])
    names = Names(reader.body)
    for content, place in objects(reader.body.pop("contents", None), "contents"):
        _read_content(reader, names, content, place)
    _read_tools(reader)
    _read_tool_config(reader)
    _read_generation(reader)


def _camel(members: Object) -> Object:
    return {to_camel(name) if "_" in name else name: value for name, value in members.items()}


def _read_generation(reader: Reader) -> None:
    given = reader.body.pop("generationConfig", None)
    members = _camel(as_object(given or {}, "generationConfig"))
    reader.take_within(SETTINGS, "generationConfig", members)
    top_k = reader.config.get("top_k")
    if isinstance(top_k, float) and top_k.is_integer():
        reader.config["top_k"] = int(top_k)
    if members:
        reader.config["generation_config"] = members


def _read_tool_config(reader: Reader) -> None:
    given = reader.body.pop("toolConfig", None)
    members = _camel(as_object(given or {}, "toolConfig"))
    calling = _camel(as_object(members.get("functionCallingConfig") or {}, "toolConfig"))
    mode = str(calling.get("mode", "")).upper()
    allowed = words(calling.get("allowedFunctionNames"), "allowedFunctionNames")
    if mode in _MODES and (mode == "ANY" or not allowed):
        choice: object = _MODES[mode]
        if len(allowed) == 1:
            choice = {"mode": "tool", "name": allowed[0]}
        elif allowed:
            choice = {"mode": choice, "allowed_tools": allowed}
        reader.config["tool_choice"] = choice
        rest = {
            name: value
            for name, value in calling.items()
            if name not in {"mode", "allowedFunctionNames"}
        }
        members.pop("functionCallingConfig", None)
        if rest:
            members["functionCallingConfig"] = rest
    if members:
        reader.config["tool_config"] = members


def _read_tools(reader: Reader) -> None:
    """Read the tools; all declarations are rendered as one entry, at the place of the first."""
    tools = reader.body.pop("tools", None)
    entries = 0
    for given, place in objects(
        [cast("Object", tools)] if isinstance(tools, dict) else tools, "tools"
    ):
        tool = {name: value for name, value in _camel(given).items() if value is not None}
        declarations = list(objects(tool.pop("functionDeclarations", None), place))
        entries += bool(declarations) and not reader.tools
        reader.tools.extend(
            _tool(reader, declaration, where) for declaration, where in declarations
        )
        if tool:
            reader.provider_tool(tool, entries)
            entries += 1


def _tool(reader: Reader, declaration: Object, place: str) -> ToolSpec:
    members = _camel(declaration)
    known = {"name", "description", "parameters", "parametersJsonSchema"}
    extra = {name: value for name, value in members.items() if name not in known}
    schema = members.get("parametersJsonSchema")
    if schema is None and members.get("parameters") is not None:
        schema = json_schema_of(members["parameters"])
        extra["parameters"] = members["parameters"]
    return tool_of(reader, members, cast("Object | None", schema), extra, place)


def _read_content(reader: Reader, names: Names, content: Object, place: str) -> None:
    extras = reader.unknown(content, {"role", "parts"}, place)
    parts = [
        (_camel(part), where) for part, where in objects(content.get("parts"), f"{place}.parts")
    ]
    if content.get("role") == "model":
        said = [_of_model(reader, names, part, where) for part, where in parts]
        reader.say(Role.ASSISTANT, _joined(reader, said), extras)
        return
    results = [item for item in parts if "functionResponse" in item[0]]
    ids = names.results([_named(part, where) for part, where in results])
    reader.answer(
        [
            _result(reader, names, call_id, part, where)
            for call_id, (part, where) in zip(ids, results, strict=True)
        ]
    )
    others = [item for item in parts if "functionResponse" not in item[0]]
    if others or not results:
        user = [_said(reader, part, where) for part, where in others]
        reader.say(Role.USER, user, extras)


def _state(reader: Reader, part: Object, *known: str) -> Object | None:
    members = {
        name: value
        for name, value in part.items()
        if name not in {"thoughtSignature", "thought", *known}
    }
    data: Object = {"members": members} if members else {}
    if "thought" in part:
        data["thought"] = part["thought"]
    if part.get("thoughtSignature") not in (None, FOREIGN_SIGNATURE):
        data["thoughtSignature"] = part["thoughtSignature"]
    return reader.state(data)


def _joined(reader: Reader, said: list[Item]) -> list[MessagePart]:
    """Return the parts of a content; the state of a text can follow in a content of its own.

    Chats of the official clients keep each chunk of a stream as a content.
    """
    before: list[Message] = []
    first = said[0] if said else None
    if isinstance(first, Envelope) and first.span is not None:
        while reader.messages and _is_before(reader.messages[-1], first.span.kind):
            before.append(reader.messages.pop())
    earlier = [part for message in reversed(before) for part in message.parts]
    return rejoined([*earlier, *said])


def _is_before(message: Message, kind: str) -> bool:
    """Return whether a message is only text of the kind whose state follows."""
    is_text = all(is_piece(part, kind) for part in message.parts)
    return message.role is Role.ASSISTANT and is_text


def _of_model(reader: Reader, names: Names, part: Object, place: str) -> Item:
    beside = {name: value for name, value in part.items() if name not in _OF_MODEL}
    envelope = reader.opened(part.get("thoughtSignature"), place, beside)
    if envelope is None:
        return _own_part(reader, names, part, place)
    if part.get("text") == "" and envelope.span is not None:
        return envelope
    del part["thoughtSignature"]
    return _with_state(_own_part(reader, names, part, place), envelope)


def _with_state(part: MessagePart, envelope: Envelope) -> MessagePart:
    """Return a part with the state from its envelope."""
    match part:
        case ThinkingPart():
            return envelope.thinking(part.text)
        case TextPart() | ToolCallPart():
            return part.model_copy(update={"provider_state": envelope.state})
        case _:
            return part


def _own_part(reader: Reader, names: Names, part: Object, place: str) -> MessagePart:
    if isinstance(part.get("text"), str):
        said = str(part["text"])
        state = _state(reader, part, "text")
        if part.get("thought"):
            return thinking_of(said, state)
        if not said and state is None:
            return reader.as_sent(said, part)
        return TextPart(text=said, provider_state=state)
    if isinstance(part.get("functionCall"), dict):
        call = _camel(as_object(part["functionCall"], place))
        name = str(call.get("name", ""))
        call_id = names.call(name, call.get("id"))
        state = _state(reader, part, "functionCall")
        data: Object = {} if state is None else cast("Object", state["data"])
        data |= {"has_no_id": True} if not call.get("id") else {}
        data |= {"unsigned": True} if not part.get("thoughtSignature") else {}
        return call_of(call_id, name, call.get("args"), reader.state(data))
    media = _media(reader, part, place)
    if isinstance(media, ImagePart):
        return media
    return ProviderPart(dialect=DIALECT, block=part)


def _said(reader: Reader, part: Object, place: str) -> TextPart | ImagePart | FileRefPart:
    if isinstance(part.get("text"), str):
        said = str(part["text"])
        if not said.strip():
            return reader.as_sent(said, part)
        return TextPart(text=said, provider_state=_state(reader, part, "text"))
    return _media(reader, part, place) or reader.block(part, place, shown_text(part))


def _media(reader: Reader, part: Object, place: str) -> ImagePart | FileRefPart | None:
    for member, known in (
        ("inlineData", {"mimeType", "data", "displayName"}),
        ("fileData", {"mimeType", "fileUri", "displayName"}),
    ):
        if not isinstance(part.get(member), dict):
            continue
        data = _camel(as_object(part[member], place))
        if not data.keys() <= known:
            return None
        name = maybe_text(data.get("displayName"), f"{place}.displayName")
        # A name that the part does not keep comes back with the whole member.
        members = {member: data} if name is not None else {}
        state = _state(reader, {**part, **members}, *(() if members else (member,)))
        mime_type = maybe_text(data.get("mimeType"), f"{place}.mimeType")
        if member == "inlineData":
            return media_of(mime_type, text(data.get("data"), f"{place}.data"), name, state)
        path = address(data.get("fileUri"), f"{place}.fileUri")
        return FileRefPart(path=path, mime_type=mime_type, provider_state=state)
    return None


def _named(part: Object, place: str) -> tuple[str, object]:
    response = as_object(part["functionResponse"], place)
    return str(response.get("name", "")), response.get("id")


def _result(reader: Reader, names: Names, call_id: str, part: Object, place: str) -> ToolResultPart:
    given = as_object(part["functionResponse"], place)
    response = _camel(given)
    answer = as_object(response.get("response") or {}, f"{place}.response")
    content: str | Object | list[ContentPart] = answer
    is_error = answer.keys() == {"error"}
    said = answer.get("error" if is_error else "output")
    if len(answer) == 1 and (isinstance(said, str) or (is_error and isinstance(said, dict))):
        content = cast("str | Object", said)
    parts = [
        _inside(reader, _camel(inner), where)
        for inner, where in objects(response.get("parts"), f"{place}.parts")
    ]
    is_plain = True
    if parts:
        is_plain = isinstance(content, str) and all(
            isinstance(inner, ImagePart | FileRefPart) and inner.provider_state is None
            for inner in parts
        )
        shown = content if isinstance(content, str) else compact(content)
        content = [*([TextPart(text=shown)] if content else []), *parts]
    data: Object = {}
    given_id, called = response.get("id"), names.tool_of(call_id)
    if not given_id:
        data["has_no_id"] = True
    # A client may write another name than that of the call, or an id where the call has none.
    is_renamed = called is not None and response.get("name") not in (None, "", called)
    has_other_id = given_id not in (None, "", call_id)
    is_plain = is_plain and not is_renamed and not has_other_id
    # A response in any other form is sent back unchanged.
    if not is_plain or not response.keys() <= {"id", "name", "response", "parts"}:
        data["members"] = {"functionResponse": response}
    # Another model is sent the id that its call has there.
    state = reader.state(data) if has_other_id else reader.own(data)
    return ToolResultPart(
        tool_call_id=call_id,
        content=content,
        is_error=is_error,
        provider_state=state,
    )


def _inside(reader: Reader, part: Object, place: str) -> ContentPart:
    media = _media(reader, part, place)
    if media is None:
        return ProviderPart(dialect=DIALECT, block=part)
    if isinstance(media, FileRefPart) and not media.path.startswith("data:"):
        return media.model_copy(update={"provider_state": reader.own({"in_place": True})})
    return media
