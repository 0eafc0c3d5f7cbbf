"""A client has what `on_message` has, whatever event an upstream sends and wherever it comes."""

import json
from typing import Final

import pytest

from any_name import AnyName
from inserted_events import EVENTS, StreamWithEvent, streams_with_an_event
from passed_streams import passed, passed_streams, received
from text_bodies import text_fixtures

# The client of Responses serialises items by its types, and warns of those that they lack.
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


_MANY: Final = 500


@pytest.mark.parametrize(
    ("first", "count"),
    [
        pytest.param(0, 200, id="few"),
        *(
            pytest.param(first, _MANY, marks=pytest.mark.slow, id=f"many, from {first}")
            for first in range(0, 4 * _MANY, _MANY)
        ),
    ],
)
def test_the_client_has_what_the_hook_has_with_an_event_more(first: int, count: int) -> None:
    found = passed_streams(
        seed=7, first=first, count=count, with_corpus=count >= _MANY, judge_every=1
    )
    assert not found.wrong, "\n".join(found.wrong[:20])
    assert found.counts["done"] > count // 2
    assert found.counts["the client reads it"] > count // 5
    assert found.counts["protocol_error"] > count // 20


@pytest.mark.parametrize("dialect", EVENTS)
def test_each_event_is_put_in_at_each_place(dialect: str) -> None:
    known = [one for one in streams_with_an_event(with_corpus=False) if one.dialect == dialect]
    name, body = next((one.name, one.body) for one in known if one.body.endswith(b"\n\n"))
    places = [(one.event, one.at) for one in known if one.name == name]
    ends = [at + 2 for at in range(len(body)) if body.startswith(b"\n\n", at)]
    assert places == [(event, at) for event in EVENTS[dialect] for at in (0, *ends)]
    for one in known:
        assert len(one.sent()) - len(one.body) - len(EVENTS[dialect][one.event]) in {0, 2}


def test_nothing_follows_an_error_that_the_decoder_holds() -> None:
    bodies = {
        name: body for dialect, name, body in text_fixtures() if dialect == "openai-responses"
    }
    body = bodies["text"]
    ends = [at + 2 for at in range(len(body)) if body.startswith(b"\n\n", at)]
    streams = {
        at: StreamWithEvent("openai-responses", "text", body, "error", at) for at in (0, *ends)
    }
    assert not passed(streams).wrong


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: %b\n\n" % json.dumps({**chunk, "choices": [choice]}).encode()


def test_no_content_behind_a_failing_finish_word_passes() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    before = [
        _chunk({"role": "assistant", "content": "Half"}),
        _chunk({}, "insufficient_system_resource"),
    ]
    after = [
        b"data: %b\n\n" % json.dumps({"id": "c", "choices": [], "usage": usage}).encode(),
        b"data: [DONE]\n\n",
    ]
    for between in ([], [_chunk({"content": " more"})], [_chunk({}, "stop")]):
        body = b"".join((*before, *between, *after))
        stream = StreamWithEvent("openai-chat", "a failing finish word", body, "comment", 0)
        assert not passed(dict.fromkeys(range(8), stream)).wrong


_MESSAGE: Final = b"""\
event: message_start
data: {"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Half"}}

"""

_BEGUN: Final = {
    "openai-chat": _chunk({"role": "assistant", "content": "Half"}),
    "anthropic-messages": _MESSAGE,
}


@pytest.mark.parametrize(
    ("dialect", "event", "is_read"),
    [
        ("openai-chat", b'data: {"object":"error","message":"busy"}\n\n', False),
        ("openai-chat", b'data: {"detail":"busy"}\n\n', False),
        ("openai-chat", b'event: error\ndata: {"message":"busy"}\n\n', False),
        ("openai-chat", b'data: {"error":{"message":"busy"}}\n\n', True),
        ("anthropic-messages", b'data: {"error":{"message":"busy"}}\n\n', False),
        (
            "anthropic-messages",
            b'event: error\ndata: {"type":"error","error":{"message":"busy"}}\n\n',
            True,
        ),
    ],
)
def test_a_client_reads_the_error_once(dialect: AnyName, event: bytes, *, is_read: bool) -> None:
    body = _BEGUN[dialect] + event
    stream = StreamWithEvent(dialect, "an error of a router", body, "comment", 0)
    assert not passed(dict.fromkeys(range(8), stream)).wrong
    got = received(stream)
    assert body in got
    assert got.endswith(event) == is_read
    assert got.count(b"busy") == (1 if is_read else 2)


@pytest.mark.parametrize("end", [b"\n", b""], ids=["line", "nothing"])
def test_events_without_empty_lines_pass_at_the_end(end: bytes) -> None:
    chunks = [_chunk({"content": "a"}), _chunk({"content": "b"}), _chunk({}, "stop")]
    body = b"".join(chunk.replace(b"\n\n", b"\n") for chunk in chunks) + b"data: [DONE]" + end
    stream = StreamWithEvent("openai-chat", "joined events", body, "comment", 0)
    assert not passed(dict.fromkeys(range(8), stream)).wrong
    assert body in received(stream)


@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""], ids=["empty line", "line", "nothing"])
@pytest.mark.parametrize("status", ["CANCELLED", "UNAVAILABLE", "INTERNAL"])
def test_an_error_that_is_no_event_takes_no_event_with_it(status: str, end: bytes) -> None:
    event = (
        b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"index":0}]}\n\n'
    )
    code = {"CANCELLED": 499, "UNAVAILABLE": 503, "INTERNAL": 500}[status]
    error = {"error": {"code": code, "message": "It ended.", "status": status}}
    body = event + event + json.dumps(error, indent=2).encode() + end
    for at in (0, len(event), 2 * len(event)):
        stream = StreamWithEvent("gemini", "an error that is no event", body, "comment", at)
        assert not passed(dict.fromkeys(range(8), stream)).wrong


def test_a_comment_before_a_whole_answer_passes_no_bytes() -> None:
    bodies = [one for one in text_fixtures() if one[2].lstrip().startswith(b"{")]
    streams = [StreamWithEvent(*one, "comment", 0) for one in bodies if one[0] in EVENTS]
    assert {one.dialect for one in streams} >= {"openai-chat", "openai-responses"}
    for stream in streams:
        assert not passed(dict.fromkeys(range(4), stream)).wrong
