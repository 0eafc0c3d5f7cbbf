"""The content of a request that a model sees, in one neutral form for all protocols.

In: the body of a request, as JSON.  Out: its content, in the order of the wire.

Laws: the walker reads wire formats and uses no parser of `deltafold`. Members that only the service
reads (cache marks, signatures, item ids) are not content.
Source: the sections "Request" of docs/protocols/, and the request types of the official clients.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from content_kinds import Block, Call, Content, Inside, Json, Medium, Reasoning, Result, Text, Tool
from normal_form import (
    Body,
    in_camel_case,
    is_list,
    is_object,
    items_of,
    members_of,
    standard_base64,
)

SPEAKERS: Final = {"developer": "system", "model": "assistant", "": "user"}
"""Roles of the wire that have another name in the neutral form."""


class Walk:
    """The content of one body.

    Attributes:
        contents: everything that was said, in the order of the wire.
        tools: the definitions of the caller's tools.
    """

    def __init__(self, dialect: str, body: Body) -> None:
        self.contents: list[Content] = []
        self.tools: list[Tool] = []
        self._calls = 0
        self._waiting: dict[int, Call] = {}
        WALKERS[dialect](self, body)

    def call(self, name: object, arguments: object, call_id: object = None) -> None:
        """Add a call."""
        call = Call(str(name or ""), value_of(arguments), str(call_id) if call_id else None)
        self.contents.append(call)
        self._waiting[self._calls] = call
        self._calls += 1

    def result(
        self, call_id: object, name: object, contents: Iterator[Inside], *, is_error: bool = False
    ) -> None:
        """Add a result. Without an id, the result answers the oldest waiting call of its name."""
        given = str(call_id) if call_id else None
        waiting = [
            number
            for number, call in self._waiting.items()
            if (call.id == given if given and call.id else not name or call.name == name)
        ]
        call = waiting[0] if waiting else None
        if call is not None:
            del self._waiting[call]
        self.contents.append(Result(call, given, tuple(contents), is_error))

    def tool(self, tool: Body, schema: object) -> None:
        """Add the definition of a tool."""
        described = str(tool.get("description") or "")
        parameters: Any = schema or {"type": "object", "properties": {}}
        self.tools.append(Tool(str(tool.get("name")), described, parameters))


def value_of(text: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON in a text, or the value itself; nothing is an empty object."""
    if not isinstance(text, str):
        return {} if text is None else text
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return text
    return {} if found is None else found


def kind_of(mime_type: object) -> str:
    """Return the kind of media of a MIME type."""
    major = str(mime_type or "").partition("/")[0]
    if not major:
        return ""
    return major if major in {"image", "audio", "video"} else "document"


def data(role: str, encoded: object, kind: str) -> Medium:
    """Return data in base64."""
    return Medium(role, "data", str(encoded).rstrip("="), kind)


def plain(role: str, text: object) -> Medium:
    """Return the data of a text file."""
    return data(role, base64.b64encode(str(text).encode()).decode(), "document")


def located(role: str, address: object, kind: str = "") -> Medium:
    """Return the medium at an address, or in it."""
    where = str(address)
    if not where.startswith("data:"):
        return Medium(role, "url", where, kind)
    head, _, held = where[len("data:") :].partition(",")
    is_encoded = head.endswith(";base64")
    encoded = held if is_encoded else base64.b64encode(unquote_to_bytes(held)).decode()
    return data(role, encoded, kind_of(head.partition(";")[0]) or kind)


def stored(role: str, file_id: object, kind: str = "") -> Medium:
    """Return the medium in a provider's file store."""
    return Medium(role, "id", str(file_id), kind)


TEXTS: Final = {"text", "title", "snippet", "data", "tool_name", "content", "context", "source"}


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in a block of unknown form."""
    if is_list(value):
        for item in value:
            yield from texts_in(item)
    elif is_object(value):
        for name, member in value.items():
            if isinstance(member, str) and name in TEXTS:
                yield member
            else:
                yield from texts_in(member)


def block(role: str, kind: object, value: object) -> Block:
    """Return a block of one provider."""
    return Block(role, str(kind), tuple(texts_in(value)))


def speaker(role: object) -> str:
    """Return the neutral name of a role."""
    return SPEAKERS.get(str(role or ""), str(role))


# Chat Completions, and the protocols that copied its form.


def walk_chat(walk: Walk, body: Body) -> None:
    """Walk a request of Chat Completions, of Mistral, of Cohere or of Ollama."""
    for message in items_of(body.get("messages")):
        role = speaker(message.get("role"))
        given = message.get("content")
        if role in {"tool", "function"}:
            contents = [*chat_contents("result", given), *chat_images("result", message)]
            name = message.get("name") or message.get("tool_name")
            walk.result(message.get("tool_call_id"), name, iter(contents))
            continue
        reasoning = chat_reasoning(message)
        if reasoning is not None:
            walk.contents.append(Reasoning(reasoning))
        walk.contents += chat_contents(role, given)
        walk.contents += chat_images(role, message)
        if message.get("refusal"):
            walk.contents.append(Text("refusal", str(message["refusal"])))
        if message.get("audio"):
            walk.contents.append(block(role, "audio", message["audio"]))
        called = message.get("function_call")
        if called:
            walk.call(called.get("name"), called.get("arguments"))
        for call in items_of(message.get("tool_calls")):
            chat_call(walk, call)
    for tool in items_of(body.get("tools")):
        if is_object(tool.get("function")):
            walk.tool(tool["function"], tool["function"].get("parameters"))


def chat_call(walk: Walk, call: Body) -> None:
    """Add a call; custom tools take free text."""
    call_id = None if call.get("id") == "null" else call.get("id")
    if is_object(call.get("custom")):
        custom = call["custom"]
        walk.call(custom.get("name"), {"input": custom.get("input")}, call_id)
    else:
        function = members_of(call.get("function"))
        walk.call(function.get("name"), function.get("arguments"), call_id)


def chat_reasoning(message: Body) -> str | None:
    """Return the longest form of a message's reasoning; vendors repeat it under several names."""
    names = ("reasoning_content", "reasoning", "thinking", "tool_plan")
    given = (message.get(name) for name in names)
    found = [value for value in given if value and isinstance(value, str)]
    for name in ("reasoning_details", "thinking_blocks"):
        pieces = items_of(message.get(name))
        if pieces:
            texts = [p.get("text") or p.get("thinking") or p.get("summary") or "" for p in pieces]
            found.append("".join(texts))
    return max(found, key=len) if found else None


def chat_images(role: str, message: Body) -> Iterator[Inside]:
    """Yield the images beside a text, as Ollama and OpenRouter have them."""
    for image in items_of(message.get("images")):
        if is_object(image):
            yield located(role, image["image_url"]["url"], "image")
        else:
            yield data(role, image, "image")


MEDIA_URLS: Final = {"image_url": "image", "video_url": "video", "document_url": "document"}


def chat_contents(role: str, given: object) -> Iterator[Any]:
    """Yield the contents of a message."""
    if isinstance(given, str):
        yield Text(role, given)
    for content in items_of(given):
        kind = content.get("type")
        value = content.get(kind)
        members = members_of(value)
        if kind in {"text", "refusal"}:
            yield Text("refusal" if kind == "refusal" else role, str(value))
        elif kind == "thinking":
            texts = [str(inner.get("text", "")) for inner in items_of(value)]
            yield Reasoning(value if isinstance(value, str) else "".join(texts))
        elif kind in MEDIA_URLS:
            yield located(role, members.get("url", value), MEDIA_URLS[kind])
        elif kind == "input_audio":
            audio = str(members.get("data", value))
            is_address = "://" in audio
            yield located(role, audio, "audio") if is_address else data(role, audio, "audio")
        elif kind == "document" and "data" in members:
            is_text = isinstance(members["data"], str)
            yield Text(role, members["data"]) if is_text else Json(members["data"])
        elif kind == "file" and ("file_id" in members or "file_id" in content):
            yield stored(role, members.get("file_id") or content["file_id"])
        elif kind == "file" and "file_data" in members:
            yield located(role, members["file_data"])
        else:
            yield block(role, kind, content)


# Responses.


def walk_responses(walk: Walk, body: Body) -> None:
    """Walk a request of Responses."""
    if body.get("instructions"):
        walk.contents.append(Text("system", str(body["instructions"])))
    given = body.get("input")
    if isinstance(given, str):
        walk.contents.append(Text("user", given))
    for item in items_of(given):
        responses_item(walk, item)
    for tool in items_of(body.get("tools")):
        if tool.get("type") == "function":
            walk.tool(tool, tool.get("parameters"))


def responses_item(walk: Walk, item: Body) -> None:
    """Add one item of the input."""
    match item.get("type", "message"):
        case "message":
            walk.contents += responses_contents(speaker(item.get("role")), item.get("content"))
        case "function_call":
            walk.call(item.get("name"), item.get("arguments"), item.get("call_id"))
        case "custom_tool_call":
            walk.call(item.get("name"), {"input": item.get("input")}, item.get("call_id"))
        case "function_call_output" | "custom_tool_call_output":
            output = responses_contents("result", item.get("output"))
            walk.result(item.get("call_id"), None, output)
        case "tool_search_call" if item.get("execution") == "client":
            walk.call("tool_search", item.get("arguments"), item.get("call_id"))
        case "tool_search_output":
            responses_search(walk, item)
        case "reasoning":
            summary, raw = items_of(item.get("summary")), items_of(item.get("content"))
            texts = [str(part.get("text", "")) for part in summary or raw]
            walk.contents.append(Reasoning("\n\n".join(texts)))
        case kind:
            role = "user" if kind.endswith(("_output", "_reference")) else "assistant"
            walk.contents.append(block(role, kind, item))


def responses_search(walk: Walk, item: Body) -> None:
    """Add the names that a search found: a result if the client ran it."""
    names = list(found_names(item))
    calls = {call.id for call in walk.contents if isinstance(call, Call)}
    if item.get("execution", "client" if item.get("call_id") in calls else None) == "client":
        walk.result(item.get("call_id"), None, iter([Text("result", name) for name in names]))
    else:
        walk.contents.append(Block("assistant", "tool_search_output", tuple(names)))


def found_names(item: Body) -> Iterator[str]:
    """Yield the names of found tools."""
    for tool in items_of(item.get("tools")):
        yield from found_names(tool) if "tools" in tool else [str(tool.get("name"))]


def responses_contents(role: str, given: object) -> Iterator[Inside]:
    """Yield the contents of a message or of a result."""
    if isinstance(given, str):
        yield Text(role, given)
    for content in items_of(given):
        kind = content.get("type")
        address = content.get("image_url") or content.get("file_url") or content.get("file_data")
        if kind in {"input_text", "output_text", "text"}:
            yield Text(role, str(content.get("text")), bool(content.get("annotations")))
        elif kind == "refusal":
            yield Text("refusal", str(content.get("refusal")))
        elif kind in {"input_image", "input_file"} and address:
            yield located(role, address, "image" if kind == "input_image" else "")
        elif kind == "input_audio":
            yield data(role, members_of(content["input_audio"]).get("data"), "audio")
        elif kind in {"input_image", "input_file"} and content.get("file_id"):
            yield stored(role, content["file_id"], "image" if kind == "input_image" else "")
        else:
            yield block(role, kind, content)


# Messages.


def walk_anthropic(walk: Walk, body: Body) -> None:
    """Walk a request of Anthropic's Messages."""
    system: Body = {"role": "system", "content": body.get("system")}
    for message in [system, *items_of(body.get("messages"))]:
        role, given = message["role"], message.get("content")
        if isinstance(given, str):
            walk.contents.append(Text(role, given))
        for item in items_of(given):
            anthropic_block(walk, role, item)
    for tool in items_of(body.get("tools")):
        if "input_schema" in tool:
            walk.tool(tool, tool["input_schema"])


def anthropic_block(walk: Walk, role: str, item: Body) -> None:
    """Add one block of a message."""
    match item.get("type"):
        case "tool_use":
            walk.call(item.get("name"), item.get("input"), item.get("id"))
        case "tool_result":
            given = item.get("content")
            contents = [anthropic_inside("result", inner) for inner in items_of(given)]
            if isinstance(given, str):
                contents = [Text("result", given)]
            is_error = bool(item.get("is_error"))
            walk.result(item.get("tool_use_id"), None, iter(contents), is_error=is_error)
        case "thinking" | "redacted_thinking":
            walk.contents.append(Reasoning(str(item.get("thinking", ""))))
        case "tool_addition" | "tool_removal":
            tool = item["tool"].get("definition", item["tool"])
            walk.contents.append(Text(role, str(tool.get("name"))))
        case _:
            walk.contents.append(anthropic_inside(role, item))


def anthropic_inside(role: str, item: Body) -> Inside:
    """Return a text, a medium or another block."""
    source = members_of(item.get("source"))
    match item.get("type"), source.get("type"):
        case "text", _:
            return Text(role, str(item.get("text")), bool(item.get("citations")))
        case _, "base64":
            return data(role, source.get("data"), kind_of(source.get("media_type")))
        case kind, "url":
            return located(role, source.get("url"), str(kind))
        case kind, "file":
            return stored(role, source.get("file_id"), str(kind))
        case _, "text":
            return plain(role, source.get("data"))
        case kind, _:
            return block(role, kind, item)


# generateContent.


def walk_gemini(walk: Walk, body: Body) -> None:
    """Walk a request of Gemini."""
    form = in_camel_case(body)
    system = form.get("systemInstruction")
    if isinstance(system, str):
        walk.contents.append(Text("system", system))
    contents = [{**members_of(system), "role": "system"}, *form.get("contents", [])]
    for content in contents:
        parts = content.get("parts")
        for part in [parts] if is_object(parts) else items_of(parts):
            gemini_part(walk, speaker(content.get("role")), part)
    tools = form.get("tools")
    for entry in [tools] if is_object(tools) else items_of(tools):
        for tool in items_of(entry.get("functionDeclarations")):
            schema = tool.get("parametersJsonSchema") or json_schema(tool.get("parameters"))
            walk.tool(tool, schema)


def gemini_part(walk: Walk, role: str, part: Body) -> None:
    """Add one part of a content."""
    if "functionCall" in part:
        call = part["functionCall"]
        walk.call(call.get("name"), call.get("args"), call.get("id"))
    elif "functionResponse" in part:
        response = members_of(part["functionResponse"])
        answer = members_of(response.get("response"))
        said = next(iter(answer.values())) if len(answer) == 1 else None
        is_named = answer.keys() <= {"error", "output"}
        contents: list[Inside] = [
            gemini_inside("result", p) for p in items_of(response.get("parts"))
        ]
        if isinstance(said, str) and is_named:
            contents.insert(0, Text("result", said))
        elif answer:
            contents.insert(0, Json(said if is_object(said) and "error" in answer else answer))
        is_error = answer.keys() == {"error"}
        found = iter(contents)
        walk.result(response.get("id"), response.get("name"), found, is_error=is_error)
    elif "text" in part and part.get("thought"):
        walk.contents.append(Reasoning(part["text"]))
    else:
        walk.contents.append(gemini_inside(role, part))


def gemini_inside(role: str, part: Body) -> Inside:
    """Return a text, a medium or another part."""
    if "text" in part:
        return Text(role, part["text"])
    if "inlineData" in part:
        held = part["inlineData"]
        return data(role, standard_base64(str(held.get("data"))), kind_of(held.get("mimeType")))
    if "fileData" in part:
        file = part["fileData"]
        return located(role, file.get("fileUri"), kind_of(file.get("mimeType")))
    return block(role, "/".join(part), part)


SCHEMA_TYPES: Final = ("", "string", "number", "integer", "boolean", "array", "object", "null")
"""Types of a schema by their numbers in the API's protocol buffer."""


def json_schema(schema: object) -> Any:  # noqa: ANN401 - any JSON
    """Bring the API's own form of a schema to JSON Schema."""
    if is_list(schema):
        return [json_schema(item) for item in schema]
    if not is_object(schema):
        return schema
    form = {name: json_schema(value) for name, value in schema.items()}
    kind = schema.get("type")
    if isinstance(kind, int | str):
        form["type"] = SCHEMA_TYPES[kind] if isinstance(kind, int) else kind.lower()
        if form.pop("nullable", False):
            form["type"] = [form["type"], "null"]
            if "enum" in form:
                form["enum"] = [*form["enum"], None]
        for name in form.keys() & SCHEMA_NUMBERS:
            form[name] = int(form[name])
    return form


SCHEMA_NUMBERS: Final = {
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
}
"""Numbers of 64 bits, which the API writes as strings."""


# Converse.


def walk_converse(walk: Walk, body: Body) -> None:
    """Walk a request of Bedrock's Converse."""
    system: Body = {"role": "system", "content": body.get("system")}
    for message in [system, *items_of(body.get("messages"))]:
        for item in items_of(message.get("content")):
            converse_block(walk, message["role"], item)
    for tool in items_of(members_of(body.get("toolConfig")).get("tools")):
        if "toolSpec" in tool:
            spec = tool["toolSpec"]
            walk.tool(spec, members_of(spec.get("inputSchema")).get("json"))


def converse_block(walk: Walk, role: str, item: Body) -> None:
    """Add one block of a message. A server's tool has its result in the same message."""
    is_of_server = role == "assistant" and ("toolResult" in item or is_server_use(item))
    if "cachePoint" in item:
        return
    if "reasoningContent" in item:
        said = members_of(item["reasoningContent"].get("reasoningText"))
        walk.contents.append(Reasoning(str(said.get("text", ""))))
    elif is_of_server:
        walk.contents.append(block(role, "/".join(item), item))
    elif "toolUse" in item:
        use = item["toolUse"]
        walk.call(use.get("name"), use.get("input"), use.get("toolUseId"))
    elif "toolResult" in item:
        result = item["toolResult"]
        inside = [converse_inside("result", inner) for inner in items_of(result.get("content"))]
        is_error = result.get("status") == "error"
        walk.result(result.get("toolUseId"), None, iter(inside), is_error=is_error)
    else:
        walk.contents.append(converse_inside(role, item))


def is_server_use(item: Body) -> bool:
    """Return whether the provider runs the tool of a call."""
    return members_of(item.get("toolUse")).get("type") == "server_tool_use"


def converse_inside(role: str, item: Body) -> Inside:
    """Return a text, a medium, JSON or another block."""
    if "text" in item:
        return Text(role, item["text"])
    if "json" in item:
        return Json(item["json"])
    kind, value = next(iter(item.items()))
    source = members_of(members_of(value).get("source"))
    if "bytes" in source:
        return data(role, source["bytes"], kind)
    if "s3Location" in source:
        return located(role, source["s3Location"].get("uri"), kind)
    if "text" in source:
        return plain(role, source["text"])
    return block(role, kind, item)


WALKERS: Final[Mapping[str, Callable[[Walk, Body], None]]] = {
    "anthropic-messages": walk_anthropic,
    "bedrock-converse": walk_converse,
    "cohere-chat": walk_chat,
    "gemini": walk_gemini,
    "mistral": walk_chat,
    "ollama": walk_chat,
    "openai-chat": walk_chat,
    "openai-responses": walk_responses,
}
