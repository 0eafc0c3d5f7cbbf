"""Clients of the gateway that keep a conversation as their protocol writes it.

In: a protocol.  Out: requests over HTTP; the answer and a result of each call are added to the next
one, streamed as the official clients accumulate it (next_turns.py), or whole as it came.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import httpx2

from next_turns import CLIENTS as TURNS

Body: TypeAlias = dict[str, Any]


class NativeClient:
    """A client of a protocol, which keeps its conversation.

    Attributes:
        body: the next request.
        said: the body of the last answer.
    """

    def __init__(self, protocol: str, *, streams: bool) -> None:
        self.protocol = protocol
        self.streams = streams
        self.body = first_request(protocol)
        self.said = b""

    def post(self, url: str, name: str) -> bytes:
        """Send the request, and return the body of the answer."""
        body, path = dict(self.body), PATHS[self.protocol].format(name=name)
        if self.protocol == "gemini":
            path += ":streamGenerateContent?alt=sse" if self.streams else ":generateContent"
        else:
            body |= {"model": name, "stream": self.streams}
        if self.protocol == "openai-chat" and self.streams:
            body["stream_options"] = {"include_usage": True}
        response = httpx2.post(url + path, json=body, timeout=30)
        assert response.status_code == 200, response.text
        return response.content

    def next_body(self) -> Body:
        """Return the request with the answer, and a result of each call or thanks."""
        if self.streams:
            turned = TURNS[TURN_OF[self.protocol]][1](list(events(self.said)))
        else:
            turned = whole_turn(self.protocol, json.loads(self.said))
        member = MEMBERS[self.protocol]
        turn: list[Body] = json.loads(json.dumps(turned[member]))[1:]
        return {**self.body, member: [*self.body[member], *turn]}

    def asking(self, question: str, image: str | None = None) -> Body:
        """Return the request with a question in place of thanks, or of the first question."""
        member = MEMBERS[self.protocol]
        turns = [turn for turn in self.body[member] if not _is_filler(turn)]
        return {**self.body, member: [*turns, _question(self.protocol, question, image)]}

    @property
    def has_results(self) -> bool:
        """Whether the next request ends with results of calls."""
        last = self.body[MEMBERS[self.protocol]][-1]
        parts: str | list[Body] = last.get("content") or last.get("parts") or []
        kinds = {last.get("type"), last.get("role")}
        for part in [] if isinstance(parts, str) else parts:
            kinds |= {part.get("type"), *part}
        return bool(kinds & {"tool", "function_call_output", "tool_result", "functionResponse"})


def events(body: bytes) -> Iterator[Body]:
    """Yield the objects of server-sent events."""
    for line in body.splitlines():
        if line.startswith(b"data: {"):
            yield json.loads(line.removeprefix(b"data: "))


PATHS: Final = {
    "anthropic-messages": "/v1/messages",
    "openai-responses": "/v1/responses",
    "openai-chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/{name}",
}
MEMBERS: Final = {
    "anthropic-messages": "messages",
    "openai-responses": "input",
    "openai-chat": "messages",
    "gemini": "contents",
}
TURN_OF: Final = {
    "anthropic-messages": "messages",
    "openai-responses": "responses",
    "openai-chat": "chat with reasoning_details",
    "gemini": "gemini",
}


def first_request(protocol: str) -> Body:
    schema: Body = {"type": "object", "properties": {}}
    tool: Body = {"name": "find", "description": "Finds."}
    match protocol:
        case "gemini":
            declared = [{"functionDeclarations": [{**tool, "parametersJsonSchema": schema}]}]
            return {"contents": [{"role": "user", "parts": [{"text": "Go"}]}], "tools": declared}
        case "openai-responses":
            function = {"type": "function", **tool, "parameters": schema, "strict": False}
            question = {"role": "user", "content": "Go"}
            return {"input": [question], "tools": [function], "store": False}
        case "openai-chat":
            called = {"type": "function", "function": {**tool, "parameters": schema}}
            return {"messages": [{"role": "user", "content": "Go"}], "tools": [called]}
        case _:
            own = [{**tool, "input_schema": schema}]
            question = {"role": "user", "content": "Go"}
            return {"messages": [question], "tools": own, "max_tokens": 900}


def whole_turn(protocol: str, body: Body) -> Body:
    """Return the turn of a whole answer as a client keeps it, after a question."""
    results: list[Body]
    match protocol:
        case "gemini":
            content = body["candidates"][0]["content"]
            results = [
                {"functionResponse": {"name": "find", "response": {"output": "done"}}}
                for part in content["parts"]
                if "functionCall" in part
            ]
            return {"contents": [{}, content, {"role": "user", "parts": results}]}
        case "openai-responses":
            results = [
                {"type": "function_call_output", "call_id": item["call_id"], "output": "done"}
                for item in body["output"]
                if item["type"] == "function_call"
            ]
            return {"input": [{}, *body["output"], *results]}
        case "openai-chat":
            message = body["choices"][0]["message"]
            message = {key: value for key, value in message.items() if value is not None}
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": "done"}
                for call in message.get("tool_calls", ())
            ]
            return {"messages": [{}, message, *results]}
        case _:
            results = [
                {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
                for block in body["content"]
                if block["type"] == "tool_use"
            ]
            said = {"role": "assistant", "content": body["content"]}
            return {"messages": [{}, said, {"role": "user", "content": results}]}


def _is_filler(turn: Body) -> bool:
    said = turn.get("content", turn.get("parts"))
    fillers: tuple[object, ...] = (
        "Go",
        [],
        [{"text": "Go"}],
        [{"text": "Thanks"}],
        [{"type": "text", "text": "Thanks"}],
    )
    return turn.get("role") == "user" and said in fillers


def _question(protocol: str, text: str, image: str | None) -> Body:
    """Return a question of the user, with an image (base64 of a PNG) if one is given."""
    media: Body
    match protocol:
        case "gemini":
            media = {"inlineData": {"mimeType": "image/png", "data": image}}
            return {"role": "user", "parts": [{"text": text}, *[media] * (image is not None)]}
        case "openai-responses":
            words = {"type": "input_text", "text": text}
            media = {"type": "input_image", "image_url": f"data:image/png;base64,{image}"}
        case "openai-chat":
            words = {"type": "text", "text": text}
            media = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
        case _:
            words = {"type": "text", "text": text}
            source = {"type": "base64", "media_type": "image/png", "data": image}
            media = {"type": "image", "source": source}
    return {"role": "user", "content": [words, *[media] * (image is not None)]}
