"""Recorded streams with one event more: put in at any place, or appended.

In: a recording, a place and an event of its protocol.  Out: the bytes that an upstream sends.
Source of the streams: the fixtures and the recordings of the corpus that are server-sent events.
"""

import functools
import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from any_name import AnyName
from text_bodies import text_fixtures, text_recordings


def _event(name: str | None = None, **data: object) -> bytes:
    head = b"" if name is None else b"event: %b\n" % name.encode()
    return head + b"data: " + json.dumps(data).encode() + b"\n\n"


def _chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event(
        id="put-in",
        object="chat.completion.chunk",
        created=1,
        model="put-in",
        choices=[choice],
    )


def _typed(kind: str, **data: object) -> bytes:
    return _event(kind, type=kind, **data)


def _candidate(*parts: dict[str, object], **members: object) -> bytes:
    content = {"role": "model", "parts": list(parts)}
    return _event(candidates=[{"index": 0, "content": content, **members}])


PUT_IN: Final = "delete_all"
"""Name of the tool that a call of an event has."""
_MESSAGE: Final[dict[str, object]] = {
    "id": "msg_put_in",
    "type": "message",
    "role": "assistant",
    "model": "put-in",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
_RESPONSE: Final[dict[str, object]] = {
    "id": "resp_put_in",
    "object": "response",
    "created_at": 1,
    "model": "put-in",
    "output": [],
    "status": "in_progress",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
_CALL: Final = {
    "type": "function_call",
    "id": "fc_put_in",
    "call_id": "call_put_in",
    "name": PUT_IN,
    "arguments": "{}",
    "status": "completed",
}
GARBAGE: Final = b"data: {gar\xffbage\n\n"
_ANY: Final = {
    "garbage": GARBAGE,
    "comment": b": a comment\n\n",
    "unknown event": _event("put_in", type="put_in", value=1),
    "no object": b"data: 5\n\n",
}
"""Events that all protocols have in common."""
_OWN: Final[dict[str, dict[str, bytes]]] = {
    "openai-chat": {
        "start": _chunk({"role": "assistant", "content": ""}),
        "text": _chunk({"content": "PUT IN"}),
        "call": _chunk(
            {
                "tool_calls": [
                    {
                        "index": 7,
                        "id": "call_put_in",
                        "type": "function",
                        "function": {"name": PUT_IN, "arguments": "{}"},
                    }
                ]
            }
        ),
        "finish": _chunk({}, "stop"),
        "end": b"data: [DONE]\n\n",
        "error": _event(
            error={"message": "Put in", "type": "server_error", "code": None, "param": None}
        ),
    },
    "openai-responses": {
        "start": _typed("response.created", response=_RESPONSE, sequence_number=0),
        "text": _typed(
            "response.output_text.delta",
            item_id="msg_put_in",
            output_index=0,
            content_index=0,
            delta="PUT IN",
            sequence_number=0,
            logprobs=[],
        ),
        "call": _typed("response.output_item.added", output_index=7, item=_CALL, sequence_number=0)
        + _typed("response.output_item.done", output_index=7, item=_CALL, sequence_number=0),
        "end": _typed(
            "response.completed", response={**_RESPONSE, "status": "completed"}, sequence_number=0
        ),
        "failed": _typed(
            "response.failed",
            response={
                **_RESPONSE,
                "status": "failed",
                "error": {"code": "server_error", "message": "Put in"},
            },
            sequence_number=0,
        ),
        "error": _typed(
            "error", code="server_error", message="Put in", param=None, sequence_number=0
        ),
    },
    "anthropic-messages": {
        "start": _typed("message_start", message=_MESSAGE),
        "text": _typed(
            "content_block_delta", index=0, delta={"type": "text_delta", "text": "PUT IN"}
        ),
        "call": _typed(
            "content_block_start",
            index=7,
            content_block={
                "type": "tool_use",
                "id": "toolu_put_in",
                "name": PUT_IN,
                "input": {},
            },
        )
        + _typed("content_block_stop", index=7),
        "finish": _typed(
            "message_delta",
            delta={"stop_reason": "end_turn", "stop_sequence": None},
            usage={"output_tokens": 1},
        ),
        "end": _typed("message_stop"),
        "ping": _typed("ping"),
        "error": _typed("error", error={"type": "overloaded_error", "message": "Put in"}),
    },
    "gemini": {
        "text": _candidate({"text": "PUT IN"}),
        "call": _candidate({"functionCall": {"name": PUT_IN, "args": {}}}),
        "end": _candidate(finishReason="STOP"),
        "blocked": _event(promptFeedback={"blockReason": "SAFETY"}),
        "error": _event(error={"code": 503, "message": "Put in", "status": "UNAVAILABLE"}),
        "bare error": b'{"error": {"code": 503, "message": "Put in", "status": "UNAVAILABLE"}}\n\n',
    },
}
EVENTS: Final = {dialect: {**events, **_ANY} for dialect, events in _OWN.items()}
"""Events to put into the streams of a protocol, by their names."""

WHOLE_BYTES: Final = 16 << 10
"""Recordings up to this size get an event at every place, larger ones at the outer places."""
OUTER_PLACES: Final = 12
_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":", b"\xef\xbb\xbf")
EVENT_ENDS: Final = re.compile(rb"(?:\r\n\r\n|\n\n|\r\r)+")


class StreamWithEvent(NamedTuple):
    """A recording with an event at a place."""

    dialect: AnyName
    name: str
    body: bytes
    event: str
    at: int

    def sent(self) -> bytes:
        """Return the bytes that the upstream sends."""
        before, rest = self.body[: self.at], self.body[self.at :]
        end = b"" if not before or before.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")) else b"\n\n"
        return before + end + EVENTS[self.dialect][self.event] + rest

    def __str__(self) -> str:
        return f"{self.dialect}/{self.name} with {self.event} at {self.at}"


def _places_of(body: bytes) -> list[int]:
    places = [0, *(found.end() for found in EVENT_ENDS.finditer(body))]
    if places[-1] != len(body):
        places.append(len(body))
    if len(body) <= WHOLE_BYTES or len(places) <= 2 * OUTER_PLACES:
        return places
    return places[:OUTER_PLACES] + places[-OUTER_PLACES:]


@functools.cache
def streams_with_an_event(*, with_corpus: bool) -> list[StreamWithEvent]:
    """Return each event at each place of the fixtures, and of the recordings of the corpus."""
    return [*_streams(with_corpus=with_corpus)]


def _streams(*, with_corpus: bool) -> Iterator[StreamWithEvent]:
    for dialect, name, body in (*text_fixtures(), *(text_recordings() if with_corpus else ())):
        if not body.lstrip().startswith(_FIELDS):
            continue  # a whole answer, or the events of another framing
        for event in EVENTS.get(dialect, ()):
            for at in _places_of(body):
                yield StreamWithEvent(dialect, name, body, event, at)
