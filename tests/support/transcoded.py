"""Small streams in and their transcoded events out, for the tests of encoders."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from any_name import AnyName
from deltafold import Transcoder

Event = dict[str, Any]


def sse(*events: Mapping[str, object] | str) -> bytes:
    """Return a body of server-sent events; a text is inserted unchanged."""
    lines = (one if isinstance(one, str) else json.dumps(one) for one in events)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def chat(*deltas: Mapping[str, object], finish: str | None = "stop", usage: bool = True) -> bytes:
    """Return a Chat stream of these deltas."""
    chunks: list[Mapping[str, object] | str] = [_chunk(delta) for delta in deltas]
    if finish is not None:
        chunks.append(_chunk({}, finish))
        if usage:
            counts = {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}
            chunks.append({"id": "c1", "model": "gpt-x", "choices": [], "usage": counts})
        chunks.append("[DONE]")
    return sse(*chunks)


def _chunk(delta: Mapping[str, object], finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {"id": "c1", "model": "gpt-x", "choices": [choice]}


def call(
    index: int, arguments: str | None = None, call_id: str | None = None, name: str | None = None
) -> Event:
    """Return a fragment of a call of a Chat delta."""
    function = {"name": name, "arguments": arguments}
    known = {key: value for key, value in function.items() if value is not None}
    fragment: Event = {"index": index, "function": known}
    if call_id is not None:
        fragment |= {"id": call_id, "type": "function"}
    return fragment


def calls(*fragments: Event) -> Event:
    """Return a Chat delta of fragments of calls."""
    return {"tool_calls": list(fragments)}


def messages(*events: Mapping[str, object]) -> bytes:
    """Return a Messages stream with head and end."""
    usage = {"input_tokens": 9, "output_tokens": 1}
    head: Event = {"id": "msg_1", "model": "claude", "usage": usage, "content": []}
    return sse({"type": "message_start", "message": head}, *events)


def ended(reason: str = "end_turn") -> tuple[Event, Event]:
    """Return the last events of a Messages stream."""
    delta = {"type": "message_delta", "delta": {"stop_reason": reason}}
    return {**delta, "usage": {"output_tokens": 5}}, {"type": "message_stop"}


def transcoded(body: bytes, source: AnyName, target: AnyName, **options: object) -> list[Event]:
    """Return the events of a transcoded body, which are the same in every chunking."""
    whole = _events([body], Transcoder(source, target, as_bytes=False, **cast("Any", options)))
    for size in (1, 7):
        again = Transcoder(source, target, as_bytes=False, **cast("Any", options))
        cut = _events([body[at : at + size] for at in range(0, len(body), size)], again)
        assert [_timeless(event) for event in cut] == [_timeless(event) for event in whole]
    return whole


def _events(
    pieces: Iterable[bytes], transcoder: "Transcoder[list[dict[str, object]]]"
) -> list[Event]:
    events = [event for piece in pieces for event in transcoder.feed(piece)]
    return [*events, *transcoder.close()]


def _timeless(event: Mapping[str, object]) -> Event:
    """Return an event without its times."""
    timed = ("created", "created_at", "timestamp")
    plain = {key: value for key, value in event.items() if key not in timed}
    if isinstance(response := plain.get("response"), dict):
        plain["response"] = _timeless(cast("Event", response))
    return plain


def types(events: Iterable[Mapping[str, object]]) -> list[object]:
    """Return the types of events."""
    return [event.get("type") for event in events]


def of_type(events: Iterable[Event], kind: str) -> list[Event]:
    """Return the events of a type."""
    return [event for event in events if event.get("type") == kind]


def notes(body: bytes, source: AnyName, target: AnyName, **options: object) -> set[str]:
    """Return the codes of the losses of the target."""
    transcoder = Transcoder(source, target, **cast("Any", options))
    transcoder.feed(body)
    transcoder.close()
    return {note["code"] for note in transcoder.notes}
