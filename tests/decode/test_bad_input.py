"""Bad bodies, entry by entry: one clear error, and everything received kept.

The head of the source of the decoder lists its reaction to each kind of bad input. A test holds
each row of that list.
"""

import pytest

from any_name import AnyName
from deltafold import (
    Decoder,
    ErrorCode,
    FinishReason,
    MessageDelta,
)
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    ENDINGS,
    OPENINGS,
    TEXT_EVENTS,
    WHOLE,
    Wire,
    anthropic,
    chunk,
    event,
    finish,
    message_end,
    message_start,
    said,
    saying,
    text_block,
)
from splits import decode, everywhere, failure_of

BOTH = pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT])


# Bodies that are not a stream.


@BOTH
@pytest.mark.parametrize("pieces", [[], [b""], [b"", b""]])
def test_an_empty_body_is_a_retryable_protocol_error(dialect: str, pieces: list[bytes]) -> None:
    deltas, assembler = decode(dialect, pieces)
    found = failure_of(deltas)
    assert (found.error_code, found.retryable) == (ErrorCode.PROTOCOL_ERROR, True)
    assert "empty" in (found.error_message or "")
    assert assembler.parts == []


PAGE = b"<!DOCTYPE html>\n<html><body>data: Bad gateway</body></html>" + b"x" * 2_000


@BOTH
def test_a_page_with_status_200_is_a_retryable_protocol_error_that_shows_its_beginning(
    dialect: str,
) -> None:
    deltas, message = everywhere(dialect, b"  \n" + PAGE)
    found = failure_of(deltas)
    assert (found.error_code, found.retryable) == (ErrorCode.PROTOCOL_ERROR, True)
    words = found.error_message or ""
    assert "Bad gateway" in words
    assert len(words) < 700
    assert message.parts == []


@BOTH
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, ErrorCode.AUTHENTICATION),
        (404, ErrorCode.NOT_FOUND),
        (429, ErrorCode.RATE_LIMITED),
        (502, ErrorCode.SERVER_ERROR),
        (503, ErrorCode.OVERLOADED),
    ],
)
def test_a_page_with_an_error_status_is_the_error_of_its_status(
    dialect: str, status: int, code: ErrorCode
) -> None:
    deltas, _ = everywhere(dialect, PAGE, status=status)
    found = failure_of(deltas)
    assert (found.error_code, found.status) == (code, status)


ERROR_BODIES = {
    ANTHROPIC: b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}',
    CHAT: b'{\n  "error": {\n    "message": "slow down",\n'
    b'    "code": "rate_limit_exceeded"\n  }\n}\n',
}


@BOTH
@pytest.mark.parametrize("status", [200, 429])
def test_a_json_error_body_is_its_error_with_the_evidence_of_the_headers(
    dialect: str, status: int
) -> None:
    deltas, _ = everywhere(
        dialect,
        ERROR_BODIES[dialect],
        status=status,
        headers={"Retry-After": "7", "X-Request-Id": "req_1"},
    )
    found = failure_of(deltas)
    assert (found.error_code, found.error_message) == (ErrorCode.RATE_LIMITED, "slow down")
    assert (found.retryable, found.retry_after) == (True, 7.0)
    assert found.http_request_id == "req_1"
    assert found.status == (status if status >= 400 else None)


def test_milliseconds_beat_seconds_and_the_server_decides_about_a_retry() -> None:
    headers = {"retry-after": "7", "retry-after-ms": "1500", "x-should-retry": "false"}
    deltas, _ = decode(ANTHROPIC, [ERROR_BODIES[ANTHROPIC]], status=429, headers=headers)
    found = failure_of(deltas)
    assert (found.retryable, found.retry_after) == (False, 1.5)


@BOTH
def test_an_error_status_without_an_error_in_its_body_is_the_error_of_the_status(
    dialect: str,
) -> None:
    for body in (b"", b"\n\n", b'{"hello": 1}', b"upstream connect error"):
        found = failure_of(decode(dialect, [body], status=503)[0])
        assert (found.error_code, found.status) == (ErrorCode.OVERLOADED, 503)
        said = "HTTP status 503 without an error in the body"
        assert found.error_message == (body.decode() if b"upstream" in body else said)


@BOTH
def test_plain_words_are_no_stream_and_are_counted_as_noise(dialect: str) -> None:
    deltas, _ = everywhere(dialect, b"upstream connect error\nreset\n")
    found = failure_of(deltas)
    assert found.error_code is ErrorCode.CONNECTION_LOST
    assert [warning["code"] for warning in found.warnings] == ["noise"]


@BOTH
def test_a_compressed_body_is_named(dialect: str) -> None:
    deltas, _ = everywhere(dialect, b"\x1f\x8b\x08\x00" + b"\x00" * 50)
    found = failure_of(deltas)
    assert found.error_code is ErrorCode.PROTOCOL_ERROR
    assert "compressed" in (found.error_message or "")


@BOTH
def test_upper_case_field_names_are_no_fields(dialect: str) -> None:
    deltas, message = everywhere(dialect, WHOLE[dialect].replace(b"data:", b"Data:"))
    assert failure_of(deltas).error_code is ErrorCode.PROTOCOL_ERROR
    assert message.parts == []


# A stream cut anywhere.


@BOTH
def test_a_body_that_ends_at_any_byte_ends_once_and_makes_nothing_up(dialect: str) -> None:
    body = WHOLE[dialect]
    for at in range(1, len(body)):
        deltas, assembler = decode(dialect, [body[:at]])
        kinds = [str(found.kind) for found in deltas]
        assert kinds.count("done") + kinds.count("error") == 1
        assert kinds[-1] in {"done", "error"}
        message = assembler.snapshot()
        assert "Hello, world".startswith(message.text)
        for found in message.tool_calls:
            assert '{"x":1}'.startswith(found.raw_args_text)
            assert found.incomplete == (found.raw_args_text != '{"x":1}')
        if kinds[-1] == "error":
            assert deltas[-1].error_code is ErrorCode.CONNECTION_LOST
            assert deltas[-1].retryable


@BOTH
def test_a_transport_that_fails_after_any_event_says_so_once(dialect: AnyName) -> None:
    events = [part + b"\n\n" for part in WHOLE[dialect].split(b"\n\n")[:-1]]
    for count in range(len(events)):
        decoder = Decoder(dialect, run_id="run")
        deltas = list(decoder.feed(b"".join(events[:count])))
        deltas += decoder.fail("connection_lost", "reset by peer")
        assert not list(decoder.fail("timeout", "again"))
        assert not list(decoder.close())
        last = deltas[-1]
        if last.kind == "error":
            assert last.error_message == "reset by peer"
        else:
            assert last.finish_reason is FinishReason.TOOL_CALLS
            assert [warning["code"] for warning in last.warnings] == ["failed_after_finish"]


# Bytes that are not UTF-8, not JSON or not characters.


@BOTH
@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xc0\xaf", "\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"x\x80", "x\ufffd"),
    ],
)
def test_invalid_utf8_inside_a_string_becomes_replacement_characters_and_one_warning(
    dialect: str, raw: bytes, shown: str
) -> None:
    deltas, message = everywhere(dialect, saying(dialect, raw, b"!", raw))
    assert message.text == f"{shown}!{shown}"
    [warning] = deltas[-1].warnings
    assert warning["code"] == "invalid_utf8"


@BOTH
@pytest.mark.parametrize("raw", [b"\xff{}", b"{\xff}", b'{"a":1\xff}', b"{}\xff", b'{"a":\xe2}'])
def test_invalid_utf8_outside_of_a_string_is_a_protocol_error_or_noise(
    dialect: str, raw: bytes
) -> None:
    body = OPENINGS[dialect] + TEXT_EVENTS[dialect] % b"kept" + b"data: " + raw + b"\n\n"
    deltas, message = everywhere(dialect, body + ENDINGS[dialect])
    assert message.text == "kept"
    if raw.startswith(b"{"):
        assert failure_of(deltas).error_code is ErrorCode.PROTOCOL_ERROR
    else:
        assert deltas[-1].kind == "done"


@BOTH
@pytest.mark.parametrize("bad", [b"{", b'{"a":}', b"{'a':1}", b'{"a":1}{', b"[1,]", b'{"a":01}'])
def test_what_begins_like_json_and_is_none_is_a_protocol_error_with_its_place(
    dialect: str, bad: bytes
) -> None:
    before = OPENINGS[dialect] + TEXT_EVENTS[dialect] % b"kept"
    body = before + b"data: " + bad + b"\n\n" + ENDINGS[dialect]
    deltas, message = everywhere(dialect, body)
    found = failure_of(deltas)
    assert (found.error_code, found.retryable) == (ErrorCode.PROTOCOL_ERROR, False)
    assert f"byte {len(before)}" in (found.error_message or "")
    assert message.text == "kept"


@BOTH
def test_a_frame_that_is_no_json_does_not_ride_on_its_error(dialect: str) -> None:
    body = OPENINGS[dialect] + TEXT_EVENTS[dialect] % b"a\0b"
    deltas, _ = everywhere(dialect, body, provider_raw=True)
    assert failure_of(deltas).provider_raw is None
    assert all(MessageDelta.from_json(found.to_json()) == found for found in deltas)


@BOTH
def test_an_escaped_nul_is_kept_and_a_raw_one_is_no_json(dialect: str) -> None:
    _, message = everywhere(dialect, saying(dialect, rb"a\u0000b"))
    assert message.text == "a\0b"
    deltas, message = everywhere(dialect, saying(dialect, b"kept", b"a\0b"))
    assert failure_of(deltas).error_code is ErrorCode.PROTOCOL_ERROR
    assert message.text == "kept"


@BOTH
@pytest.mark.parametrize(
    ("texts", "shown", "lone"),
    [
        ([rb"\ud83d\ude00"], "😀", 0),
        ([rb"\ud83d", rb"\ude00"], "😀", 0),
        ([rb"a\ud83d", b"b"], "a\ufffdb", 1),
        ([rb"\ude00"], "\ufffd", 1),
        ([rb"\ud83d\ud83d", rb"\ude00"], "\ufffd😀", 1),
        ([rb"\ud83d"], "\ufffd", 1),
        ([rb"\ude00\ud83d"], "\ufffd\ufffd", 2),
        ([rb"\ud83dx", rb"\ude00"], "\ufffdx\ufffd", 2),
    ],
)
def test_surrogate_escapes_meet_or_become_replacement_characters(
    dialect: str, texts: list[bytes], shown: str, lone: int
) -> None:
    deltas, message = everywhere(dialect, saying(dialect, *texts))
    assert message.text == shown
    message.to_json().encode()
    warnings = [str(found["message"]) for found in deltas[-1].warnings]
    times = f" ({lone} times)" if lone > 1 else ""
    assert warnings == [f"a lone surrogate escape became U+FFFD{times}"] * bool(lone)


def test_lone_surrogates_in_what_is_passed_through_can_be_written_as_utf8() -> None:
    opaque = rb'{"type":"future","note":"a\ud800"}'
    body = message_start() + b'data: {"type":"content_block_start","index":0,"content_block":'
    body += opaque + b"}\n\n" + anthropic("content_block_stop", index=0) + message_end()
    deltas, message = everywhere(ANTHROPIC, body)
    message.to_json().encode()
    for found in deltas:
        assert MessageDelta.from_json(found.to_json()) == found


# Members that the protocol does not define, or that are in the wrong place.


def test_unknown_event_types_are_noted_once_a_name() -> None:
    unknown = anthropic("weather") + anthropic("weather") + anthropic("mood")
    body = unknown + message_start() + unknown + text_block(0, "a") + unknown + message_end()
    deltas, message = everywhere(ANTHROPIC, body)
    assert message.text == "a"
    words = [str(found["message"]) for found in deltas[-1].warnings]
    assert words == [
        'unknown event type "weather" (6 times)',
        'unknown event type "mood" (3 times)',
    ]


def test_the_name_of_an_unknown_type_is_shown_in_part() -> None:
    body = message_start() + anthropic("x" * 1_000_000) + message_end()
    deltas, _ = decode(ANTHROPIC, [body])
    [warning, empty] = deltas[-1].warnings
    assert empty["code"] == "empty_answer"
    assert len(str(warning["message"])) < 200


def test_objects_that_are_no_chunks_of_chat_say_nothing() -> None:
    odd = event({}) + event({"choices": 5}) + b'data: {"choices":[5,null,{}]}\n\n' + event([1, "x"])
    odd += event({"choices": [{"delta": 5}]}) + event({"choices": [{"delta": {"content": 5}}]})
    odd += chunk({"tool_calls": 7}) + chunk({"tool_calls": [None, {}]}) + event({"id": {}})
    _, message = everywhere(CHAT, odd + said("a") + odd + finish("stop") + DONE)
    assert message.text == "a"
    assert not message.tool_calls


def test_events_of_anthropic_without_their_members_say_nothing() -> None:
    odd = b"".join(
        event({"type": kind, **more})
        for kind in ("content_block_delta", "content_block_stop", "message_delta")
        for more in ({}, {"index": None}, {"index": "x"}, {"delta": 5}, {"usage": 5})
    )
    body = message_start() + odd + text_block(0, "a") + odd + message_end()
    _, message = everywhere(ANTHROPIC, body)
    assert message.text == "a"
    assert not message.tool_calls


def test_deltas_of_blocks_that_were_never_opened_are_kept_with_a_warning() -> None:
    said_text = anthropic(
        "content_block_delta", index=3, delta={"type": "text_delta", "text": "kept"}
    )
    deltas, message = everywhere(ANTHROPIC, message_start() + said_text + message_end())
    assert message.text == "kept"
    assert [found["code"] for found in deltas[-1].warnings] == ["stray_delta"]


@BOTH
def test_events_after_the_terminal_are_ignored(dialect: str) -> None:
    late = {
        CHAT: said("late") + event({"error": {"message": "late"}}) + finish("length") + DONE,
        ANTHROPIC: text_block(0, "late") + anthropic("error", error={"message": "late"}),
    }[dialect]
    expected, _ = everywhere(dialect, WHOLE[dialect])
    for more in (late, WHOLE[dialect], b"data: {\n\n", b"\xff" * 100):
        deltas, _ = everywhere(dialect, WHOLE[dialect] + more)
        assert deltas == expected


@BOTH
def test_of_two_terminals_the_first_counts(dialect: str) -> None:
    fault = {
        CHAT: event({"error": {"message": "first"}}),
        ANTHROPIC: anthropic("error", error={"type": "api_error", "message": "first"}),
    }[dialect]
    deltas, _ = everywhere(dialect, fault + WHOLE[dialect] + fault)
    assert failure_of(deltas).error_message == "first"
    deltas, _ = everywhere(dialect, WHOLE[dialect] + fault)
    assert deltas[-1].kind == "done"


def test_counts_that_no_count_can_be_are_unknown() -> None:
    usage: Wire = {"prompt_tokens": -5, "completion_tokens": 2**70, "total_tokens": "9"}
    _, message = everywhere(CHAT, said("a") + finish("stop") + chunk(None, usage=usage) + DONE)
    if message.meta.usage is not None:
        assert message.meta.usage.input_tokens is None
        assert message.meta.usage.output_tokens is None
