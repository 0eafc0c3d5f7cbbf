"""A provider on loopback that answers whatever a request asks for.

In: requests of Chat, Responses, Messages and Gemini.  Out: a call of the first tool that has no
result yet, else JSON where the request has a schema, else a text; streamed or whole, as asked.

Laws: as OpenAI does, a stream of Chat has its counts only where the request asks for them. The
answers that were sent are kept, so that a program is compared with them.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from deltafold import Message, fold, transcode_response
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.testing.playlist import Request


class AnyProvider(ReplayServer):
    """The server. A queued recording takes precedence over a made answer.

    Attributes:
        counts: whether streams of Chat have usage where the request asks for it.
        answered: the messages that were sent.
    """

    counts = True

    def __init__(self) -> None:
        super().__init__()
        self.answered: list[Message] = []

    def text(self) -> tuple[str, ...]:
        """Return the pieces of the next text."""
        return "At ", "17:42."

    def answer_to(self, request: Request) -> Recording:
        """Make the answer in the protocol of the path."""
        if self._queue:
            return super().answer_to(request)
        body = cast("dict[str, Any]", request.json())
        dialect: Any = _dialect_of(request.path)
        made = answer(dialect, *self._said(body))
        self.requests.append(request)
        self.answered.append(fold(made.body, dialect))
        if not body.get("stream") and ":streamGenerateContent" not in request.path:
            whole = transcode_response(made.body, dialect, dialect).body
            return Recording.of(whole, content_type="application/json")
        asks = _object(body.get("stream_options")).get("include_usage")
        if dialect != "openai-chat" or (asks and self.counts):
            return made
        return Recording.of(without_usage(made.body))

    def _said(self, body: dict[str, Any]) -> tuple[Any, ...]:
        tools, (newest, results) = _tools(body), _results(body)
        if newest < len(tools):
            name, parameters = tools[newest]
            return ((f"call_{results + 1}", name, value_of(parameters)),)
        schema = _schema(body)
        return self.text() if schema is None else tuple(_pieces(json.dumps(value_of(schema))))


def without_usage(body: bytes) -> bytes:
    """Return a stream of Chat without its record of usage."""
    return b"".join(
        event + b"\n\n" for event in body.split(b"\n\n") if event and b'"usage":{' not in event
    )


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + 7] for at in range(0, len(text), 7))


def _dialect_of(path: str) -> str:
    for part, dialect in (
        ("/chat/completions", "openai-chat"),
        ("/responses", "openai-responses"),
        ("/messages", "anthropic-messages"),
        ("/models/", "gemini"),
    ):
        if part in path:
            return dialect
    raise AssertionError(f"no protocol has the path {path}")


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return value or {}


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    return [] if value is None or isinstance(value, str) else list(value)


def _tools(body: dict[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the name and the schema of each tool that the client runs."""
    functions = [_object(tool.get("function", tool)) for tool in _list(body.get("tools"))]
    return [
        (one["name"], _object(one.get("parameters") or one.get("input_schema")))
        for one in functions
    ]


def _results(body: dict[str, Any]) -> tuple[int, int]:
    """Count the results behind the last message of the user, and all of the history."""
    newest, count = None, 0
    for item in reversed(_list(body.get("messages", body.get("input")))):
        blocks = _list(item.get("content"))
        found = sum(one.get("type") == "tool_result" for one in blocks)
        found += item.get("role") == "tool" or item.get("type") == "function_call_output"
        if item.get("role") == "user" and not found and newest is None:
            newest = count
        count += found
    return count if newest is None else newest, count


def _schema(body: dict[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema that a request states for its answer."""
    of_chat = _object(_object(body.get("response_format")).get("json_schema"))
    of_responses = _object(_object(body.get("text")).get("format"))
    of_messages = _object(_object(body.get("output_config")).get("format"))
    stated = (of_chat.get("schema"), of_responses.get("schema"), of_messages.get("schema"))
    return next((schema for schema in stated if schema is not None), None)


def value_of(schema: Mapping[str, Any], whole: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - JSON
    """Return a value that follows a JSON Schema."""
    whole = schema if whole is None else whole
    if "$ref" in schema:
        return value_of(whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], whole)
    if "anyOf" in schema:
        return value_of(schema["anyOf"][0], whole)
    kind = schema.get("type", "object")
    if kind == "object":
        members = schema.get("properties", {})
        return {name: value_of(member, whole) for name, member in members.items()}
    if kind == "array":
        return [value_of(schema["items"], whole)]
    scalars = {"integer": 17, "number": 7.5, "boolean": True}
    return scalars.get(kind, schema.get("enum", ["Brest"])[0])
