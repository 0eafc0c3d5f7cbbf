"""A provider on loopback that answers whatever a request asks for.

In: requests of Chat, Responses, Messages and Gemini.  Out: a call of the first tool that has no
result yet, else JSON where the request has a schema, else a text; streamed or whole, as asked.

Laws: an answer has the model of its request, and its text depends on the newest text of the user
alone. As OpenAI does, a stream of Chat has its counts only where the request asks for them. The
answers that were sent are kept, so that a program is compared with them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from any_name import AnyName
from deltafold import Message, fold, transcode_response
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.testing.playlist import Request

_TEXTS: Final = {
    "Dover": ("High tide in Dover ", "is at 23:10."),
    "Cork": ("High tide in Cork ", "is at 18:25."),
    "Calais": ("High tide in Calais ", "is at 23:40."),
    "Brest": ("High tide in Brest ", "is at 17:42."),
    "chart": ("The water is highest ", "at 17:42, at 6.4 m."),
    "Summarise": ("A table of the high ", "tides of Brest in May."),
    "": ("At ", "17:42."),
}
"""Pieces of the answers, by a word of the question; the first word that it has decides."""

_NAMED: Final = re.compile(r"/models/([^:]+):")
"""The model in a path of Gemini."""


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

    def text(self, question: str) -> tuple[str, ...]:
        """Return the pieces of the answer to a question."""
        return next(pieces for word, pieces in _TEXTS.items() if word in question)

    def answer_to(self, request: Request) -> Recording:
        """Make the answer in the protocol of the path."""
        if self._queue:
            return super().answer_to(request)
        body = cast("dict[str, Any]", request.json())
        dialect: Any = _dialect_of(request.path)
        named = _NAMED.search(request.path)
        made = answer(dialect, *self._said(body))
        made = of_model(made, dialect, named[1] if named else body["model"])
        self.requests.append(request)
        self.answered.append(fold(made.body, dialect))
        if not body.get("stream") and ":streamGenerateContent" not in request.path:
            whole = transcode_response(made.body, dialect, dialect).body
            return Recording.of(whole, content_type="application/json")
        if body.get("logprobs"):
            made = Recording.of_events(_with_logprobs(made.body))
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
        return (
            self.text(_question(body))
            if schema is None
            else tuple(_pieces(json.dumps(value_of(schema))))
        )


def without_usage(body: bytes) -> bytes:
    """Return a stream of Chat without its record of usage."""
    return b"".join(
        event + b"\n\n" for event in body.split(b"\n\n") if event and b'"usage":{' not in event
    )


def of_model(made: Recording, dialect: AnyName, model_id: str) -> Recording:
    """Return an answer under the name of another model."""
    given = fold(made.body, dialect).meta.model_id
    renamed = made.body.replace(f'"{given}"'.encode(), f'"{model_id}"'.encode())
    return Recording.of_events(renamed)


def _with_logprobs(body: bytes) -> bytes:
    """Return a stream of Chat in which each piece of text is a token with its log probability."""

    def scored(event: bytes) -> bytes:
        if b'"delta":{"content":' not in event:
            return event
        chunk = json.loads(event.removeprefix(b"data: "))
        token = chunk["choices"][0]["delta"]["content"]
        score = {"token": token, "logprob": -0.25, "bytes": [*token.encode()], "top_logprobs": []}
        chunk["choices"][0]["logprobs"] = {"content": [score], "refusal": None}
        return b"data: " + json.dumps(chunk, separators=(",", ":")).encode()

    return b"\n\n".join(map(scored, body.split(b"\n\n")))


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


def _question(body: dict[str, Any]) -> str:
    """Return the newest text of the user, in the JSON of its message."""
    said = _list(body.get("messages", body.get("input", body.get("contents"))))
    asked = [item for item in said if item.get("role") == "user" and "tool_result" not in str(item)]
    return str(asked[-1] if asked else body.get("input"))


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
    if "default" in schema:
        return schema["default"]
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
