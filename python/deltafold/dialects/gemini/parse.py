"""Parser of request bodies of Gemini's generateContent; the inverse of `render.py`.

Laws: names may be in snake case, as some proxies send them. A call without an id gets one, and a
response answers the oldest unanswered call of its name. The placeholder of a signature is not kept
as a signature.
Source: the protocol notes on gemini, parts 2, 4 and 8.
"""

from typing import Final, cast

from pydantic.alias_generators import to_camel

from deltafold.dialects.gemini.render import DIALECT, FOREIGN_SIGNATURE
from deltafold.dialects.gemini.settings import SETTINGS
from deltafold.dialects.reader import (
    Names,
    Reader,
    address,
    as_object,
    call_of,
    data_url,
    maybe_text,
    media_of,
    objects,
    text,
    thinking_of,
    tool_of,
    words,
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

_MODES: Final = {"AUTO": "auto", "ANY": "required", "NONE": "none"}


def read_body(reader: Reader) -> None:
    """Read a request body."""
    reader.body = _camel(reader.body)
    system = reader.body.pop("systemInstruction", None)
    if isinstance(system, str):
        system = {"parts": [{"text": system}]}
    if system is not None:
        members = as_object(system, "systemInstruction")
        parts = objects(members.get("parts"), "systemInstruction.parts")
        reader.say(Role.SYSTEM, [_said(reader, _camel(part), place) for part, place in parts])
    names = Names()
    for content, place in objects(reader.body.pop("contents", None), "contents"):
        _read_content(reader, names, content, place)
    for tool, place in objects(reader.body.pop("tools", None), "tools"):
        _read_tool(reader, _camel(tool), place)
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
    if mode in _MODES and len(allowed) <= (1 if mode == "ANY" else 0):
        choice: object = {"mode": "tool", "name": allowed[0]} if allowed else _MODES[mode]
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


def _read_tool(reader: Reader, tool: Object, place: str) -> None:
    declarations = tool.pop("functionDeclarations", None)
    for given, where in objects(declarations, f"{place}.functionDeclarations"):
        members = _camel(given)
        known = {"name", "description", "parameters", "parametersJsonSchema"}
        extra = {name: value for name, value in members.items() if name not in known}
        schema = members.get("parametersJsonSchema")
        if schema is None and members.get("parameters") is not None:
            schema = _json_schema(members["parameters"])
        reader.tools.append(tool_of(members, cast("Object | None", schema), extra, where))
    if tool:
        reader.provider_tools.append(tool)


def _json_schema(schema: object) -> object:
    """Bring the API's older form of a schema, with types in capitals, to JSON Schema."""
    if isinstance(schema, list):
        return [_json_schema(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("Object", schema)
    found = {name: _json_schema(value) for name, value in members.items()}
    kind = members.get("type")
    if isinstance(kind, str):
        found["type"] = kind.lower()
        if found.pop("nullable", None) is True:
            found["type"] = [kind.lower(), "null"]
    return found


def _read_content(reader: Reader, names: Names, content: Object, place: str) -> None:
    extras = reader.unknown(content, {"role", "parts"}, place)
    parts = [
        (_camel(part), where) for part, where in objects(content.get("parts"), f"{place}.parts")
    ]
    if content.get("role") == "model":
        said = [_of_model(reader, names, part, where) for part, where in parts]
        reader.say(Role.ASSISTANT, said, extras)
        return
    results = [item for item in parts if "functionResponse" in item[0]]
    reader.answer([_result(reader, names, part, where) for part, where in results])
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
    if part.get("thoughtSignature") not in (None, FOREIGN_SIGNATURE):
        data["thoughtSignature"] = part["thoughtSignature"]
    return reader.state(data)


def _of_model(reader: Reader, names: Names, part: Object, place: str) -> MessagePart:
    if isinstance(part.get("text"), str):
        said = str(part["text"])
        state = _state(reader, part, "text")
        if part.get("thought"):
            return thinking_of(said, state)
        return TextPart(text=said, provider_state=state)
    if isinstance(part.get("functionCall"), dict):
        call = _camel(as_object(part["functionCall"], place))
        name = str(call.get("name", ""))
        call_id = names.call(name, call.get("id"))
        return call_of(call_id, name, call.get("args"), _state(reader, part, "functionCall"))
    media = _media(reader, part, place)
    if isinstance(media, ImagePart):
        return media
    return ProviderPart(dialect=DIALECT, block=part)


def _said(reader: Reader, part: Object, place: str) -> TextPart | ImagePart | FileRefPart:
    if isinstance(part.get("text"), str):
        return TextPart(text=str(part["text"]), provider_state=_state(reader, part, "text"))
    return _media(reader, part, place) or reader.block(part, place)


def _media(reader: Reader, part: Object, place: str) -> ImagePart | FileRefPart | None:
    for member, known in (
        ("inlineData", {"mimeType", "data"}),
        ("fileData", {"mimeType", "fileUri"}),
    ):
        if not isinstance(part.get(member), dict):
            continue
        data = _camel(as_object(part[member], place))
        if not data.keys() <= known:
            return None
        state = _state(reader, part, member)
        mime_type = maybe_text(data.get("mimeType"), f"{place}.mimeType")
        if member == "inlineData":
            return media_of(mime_type, text(data.get("data"), f"{place}.data"), None, state)
        path = address(data.get("fileUri"), f"{place}.fileUri")
        return FileRefPart(path=path, mime_type=mime_type, provider_state=state)
    return None


def _result(reader: Reader, names: Names, part: Object, place: str) -> ToolResultPart:
    given = as_object(part["functionResponse"], place)
    response = _camel(given)
    name = str(response.get("name", ""))
    content: str | Object | list[ContentPart]
    content = as_object(response.get("response") or {}, f"{place}.response")
    is_error = content.keys() == {"error"}
    said = content.get("error" if is_error else "output")
    if len(content) == 1 and (isinstance(said, str) or (is_error and isinstance(said, dict))):
        content = cast("str | Object", said)
    media = _media_of_result(response, place)
    if media is not None and isinstance(content, str):
        content = [*([TextPart(text=content)] if content else []), *media]
    known = {"id", "name", "response", "parts"}
    # A response in any other form is sent back unchanged.
    keeps = response.keys() > known or ("parts" in response and media is None)
    return ToolResultPart(
        tool_call_id=names.result(name, response.get("id")),
        content=content,
        is_error=is_error,
        provider_state=reader.extras({"functionResponse": given}) if keeps else None,
    )


def _media_of_result(response: Object, place: str) -> list[ContentPart] | None:
    media: list[ContentPart] = []
    for inner, where in objects(response.get("parts"), f"{place}.parts"):
        part = _camel(inner)
        if part.keys() != {"inlineData"}:
            return None
        data = _camel(as_object(part["inlineData"], where))
        if data.keys() != {"mimeType", "data"}:
            return None
        mime_type, encoded = str(data["mimeType"]), str(data["data"])
        if mime_type.startswith("image/"):
            media.append(ImagePart(mime_type=mime_type, data=encoded))
        else:
            path = data_url(mime_type, encoded, None)
            media.append(FileRefPart(path=path, mime_type=mime_type))
    return media or None
