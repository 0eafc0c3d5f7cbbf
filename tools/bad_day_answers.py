"""Answers of a gateway, as a client without this library reads them.

In: the status, the content type and all bytes of an answer.  Out: its text, or its error.

Laws: an answer is whole only if its protocol says so, and an error has the form of its protocol.
Anything else breaks a law of the bad day.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from soak_processes import Broken

PATHS: Final = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}


@dataclass(frozen=True)
class Answer:
    """An answer.

    Attributes:
        text: its text; "" for an error.
        error: the message of its error; None for a whole answer.
        response_id: its id, by which a client of Responses continues it.
    """

    text: str
    error: str | None = None
    response_id: str = ""


def request_body(
    protocol: str, model: str, prompt: str, *, streams: bool, previous: str = ""
) -> dict[str, object]:
    """Return the body of a request."""
    body: dict[str, object] = {"model": model, "stream": streams}
    if protocol == "responses":
        body |= {"input": prompt}
        return body | {"previous_response_id": previous} if previous else body
    body["messages"] = [{"role": "user", "content": prompt}]
    if protocol == "messages":
        return body | {"max_tokens": 99}
    return body | {"stream_options": {"include_usage": True}} if streams else body


def read_answer(protocol: str, status: int, content_type: str, body: bytes) -> Answer:
    """Read an answer.

    Raises:
        Broken: it is neither whole nor an error in the form of its protocol.
    """
    try:
        if content_type.startswith("text/event-stream") and status == 200:
            return _STREAMED[protocol](list(_events(body)))
        answer = json.loads(body)  # plain text is none
        return _error(protocol, answer) if status >= 400 else _WHOLE[protocol](answer)
    except (ValueError, LookupError, TypeError, Broken) as error:
        shown = body[-600:].decode("utf-8", "replace")
        raise Broken(f"{error!r} in an answer of {protocol}, {status}: {shown}") from error


def _events(body: bytes) -> Iterator[Any]:
    for event in body.split(b"\n\n"):
        for line in event.split(b"\n"):
            if line.startswith(b"data:"):
                data = line[5:].strip()
                yield None if data == b"[DONE]" else json.loads(data)


def _error(protocol: str, answer: Any) -> Answer:  # noqa: ANN401 - JSON
    if protocol == "messages" and answer["type"] != "error":
        raise Broken("no error of Messages")
    error = answer["error"]
    if not error["message"] or not isinstance(error["message"], str):
        raise Broken("an error without a message")
    return Answer("", error["message"])


def _chat(events: list[Any]) -> Answer:
    texts: list[str] = []
    reason = None
    for event in events:
        if event is None:
            continue
        if "error" in event:
            return _error("chat", event)
        for choice in event["choices"]:
            texts.append(choice["delta"].get("content") or "")
            reason = choice.get("finish_reason") or reason
    if reason != "stop" or events[-1] is not None:
        raise Broken("no end, and no error")
    return Answer("".join(texts))


def _messages(events: list[Any]) -> Answer:
    texts: list[str] = []
    for event in events:
        if event["type"] == "error":
            return _error("messages", event)
        if event["type"] == "content_block_delta":
            texts.append(event["delta"]["text"])
    if events[-1]["type"] != "message_stop":
        raise Broken("no end, and no error")
    return Answer("".join(texts))


def _responses(events: list[Any]) -> Answer:
    texts: list[str] = []
    for event in events:
        if event["type"] == "error":
            message = event["message"] if "message" in event else event["error"]["message"]
            return _error("responses", {"error": {"message": message}})
        if event["type"] == "response.failed":
            return _error("responses", event["response"])
        if event["type"] == "response.output_text.delta":
            texts.append(event["delta"])
    if events[-1]["type"] != "response.completed":
        raise Broken("no end, and no error")
    whole = _whole_response(events[-1]["response"])
    if whole.text != "".join(texts):
        raise Broken("the last event has another text than those before it")
    return whole


def _whole_chat(answer: Any) -> Answer:  # noqa: ANN401 - JSON
    if answer["choices"][0]["finish_reason"] != "stop":
        raise Broken("no end, and no error")
    return Answer(answer["choices"][0]["message"]["content"])


def _whole_message(answer: Any) -> Answer:  # noqa: ANN401 - JSON
    if answer["stop_reason"] != "end_turn":
        raise Broken("no end, and no error")
    return Answer("".join(block["text"] for block in answer["content"]))


def _whole_response(answer: Any) -> Answer:  # noqa: ANN401 - JSON
    if answer["status"] == "failed":
        return _error("responses", answer)
    if answer["status"] != "completed":
        raise Broken("no end, and no error")
    parts = [part["text"] for item in answer["output"] for part in item["content"]]
    return Answer("".join(parts), None, answer["id"])


_STREAMED: Final = {"chat": _chat, "messages": _messages, "responses": _responses}
_WHOLE: Final = {
    "chat": _whole_chat,
    "messages": _whole_message,
    "responses": _whole_response,
}
