"""A server that answers as a model would: with a call, with JSON, or with text.

In: requests in the Chat, Messages or Responses API.  Out: streams and whole bodies of the protocol.

Laws: the answer depends on the request alone. A request that offers tools and has no result gets a
call of the first tool, or of the chosen one, unless the choice forbids it. The arguments and the
JSON follow the schema of the request. A stop text ends the text.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import deltafold
from deltafold.dialects import parse_request
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.testing.playlist import Request

_PATHS: Final = {
    "/chat/completions": "openai-chat",
    "/v1/messages": "anthropic-messages",
    "/responses": "openai-responses",
}
_TEXT: Final = "Hello! The tide rises, slowly and evenly, until noon."


class AnsweringServer(ReplayServer):
    """A server that derives each answer from its request."""

    def answer_to(self, request: Request) -> Recording:
        """Choose the answer."""
        self.requests.append(request)
        dialect = _PATHS[request.path]
        body: Any = request.json()
        told = answer(dialect, *_content(body, dialect))
        named = told.body.replace(_demo(dialect), str(body["model"]).encode())
        if body.get("stream"):
            return Recording.of_events(named)
        encoded = deltafold.encode_message(deltafold.fold(named, dialect), dialect)
        return Recording.of(encoded.body, content_type="application/json")


def _demo(dialect: str) -> bytes:
    names = {"openai-chat": b"gpt-demo", "anthropic-messages": b"claude-demo"}
    return names.get(dialect, f"{dialect}-demo".encode())


def _content(body: Mapping[str, Any], dialect: str) -> list[Any]:
    parsed = parse_request(body, dialect)
    config = parsed.config
    schema = config.get("output_schema") or _schema(body)
    if schema is not None:
        return _pieces(json.dumps(_value(schema, schema)))
    tools = list(parsed.tools)
    choice = config.get("tool_choice")
    answered = parsed.messages[-1].role == "tool"
    mode = getattr(choice, "mode", "auto")
    if tools and not answered and mode != "none":
        name = getattr(choice, "name", None)
        tool = next((one for one in tools if one.name == name), tools[0])
        arguments = _value(tool.parameter_schema, tool.parameter_schema)
        return [("call_1", tool.name, arguments)]
    text = _TEXT
    for stop in body.get("stop") or body.get("stop_sequences") or ():
        text = text.partition(stop)[0]
    return _pieces(text)


def _pieces(text: str) -> list[str]:
    return [text[at : at + 8] for at in range(0, len(text), 8)]


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of the answer in any of the APIs; a joke's where only JSON is asked for."""
    form = body.get("response_format") or (body.get("text") or {}).get("format")
    form = form or (body.get("output_config") or {}).get("format")
    if not form:
        return None
    found = form.get("schema") or (form.get("json_schema") or {}).get("schema")
    joke = {name: {"type": "string"} for name in ("setup", "punchline")}
    return found or {"type": "object", "properties": joke, "required": list(joke)}


_VALUES: Final[Mapping[str, Any]] = {
    "string": "你好 Hello こんにちは",
    "integer": 3,
    "number": 3.5,
    "boolean": True,
    "null": None,
}


def _value(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Return a value of a schema."""
    if "$ref" in schema:
        found: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found[step]
        return _value(found, root)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return _value(schema[several][0], root)
    if "enum" in schema or "const" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if kind == "object":
        return {name: _value(one, root) for name, one in schema.get("properties", {}).items()}
    if kind == "array":
        return [_value(schema.get("items", {}), root)]
    return _VALUES[kind if isinstance(kind, str) else kind[0]]
