"""The provider of the newcomers' tasks: a loopback server that answers what a request asks for.

In: requests of Chat, Responses, Messages and Gemini.  Out: for each tool that has no result yet a
call, then JSON where the request has a schema, else a text that no other answer has.

Laws: as OpenAI does, a stream of Chat has its counts only where the request asks for them. The
answers that were sent are kept, so that a task is compared with them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from deltafold import Message, Usage, fold
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.testing.playlist import Request
from documentation import is_streamed, value_of, whole, without_usage

_PATHS: Final = (
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    ("/messages", "anthropic-messages"),
    ("/models/", "gemini"),
)


@dataclass(slots=True)
class Answered:
    """The answers that a provider sent.

    Attributes:
        messages: the messages, in the order of the requests.
    """

    messages: list[Message] = field(default_factory=list[Message])

    @property
    def texts(self) -> list[str]:
        """The texts, without those of calls."""
        return [message.text for message in self.messages if message.text]

    @property
    def usages(self) -> list[Usage]:
        """The counts of all answers, whether a client asked for them or not."""
        return [one.meta.usage for one in self.messages if one.meta.usage is not None]

    @property
    def tokens(self) -> int:
        """The sum of all counts."""
        return sum(usage.total_tokens or 0 for usage in self.usages)


class Provider(ReplayServer):
    """The server; `answered` has what it sent."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = Answered()

    def answer_to(self, request: Request) -> Recording:
        """Make the answer in the protocol of the path."""
        body = cast("dict[str, Any]", request.json())
        dialect: Any = next(name for part, name in _PATHS if part in request.path)
        made = answer(dialect, *self._said(body))
        self.requests.append(request)
        self.answered.messages.append(fold(made.body, dialect))
        if not is_streamed(request.path, body):
            return whole(made, dialect)
        asks = _object(body.get("stream_options")).get("include_usage")
        if dialect == "openai-chat" and not asks:
            return Recording.of(without_usage(made.body))
        return made

    def _said(self, body: dict[str, Any]) -> tuple[Any, ...]:
        tools, results = _tools(body), _results(body)
        if results < len(tools):
            name, parameters = tools[results]
            return ((f"call_{len(self.requests)}", name, value_of(parameters)),)
        schema = _schema(body)
        if schema is not None:
            return (json.dumps(value_of(schema)),)
        return ("Answer ", f"{len(self.requests)} is ", "17:42.")


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


def _results(body: dict[str, Any]) -> int:
    """Count the results behind the last message of the user."""
    count = 0
    for item in reversed(_list(body.get("messages", body.get("input")))):
        blocks = _list(item.get("content"))
        found = sum(one.get("type") == "tool_result" for one in blocks)
        found += item.get("role") == "tool" or item.get("type") == "function_call_output"
        if item.get("role") == "user" and not found:
            break
        count += found
    return count


def _schema(body: dict[str, Any]) -> Mapping[str, Any] | None:
    of_chat = _object(_object(body.get("response_format")).get("json_schema"))
    of_responses = _object(_object(body.get("text")).get("format"))
    return of_chat.get("schema") or of_responses.get("schema")
