"""Failures of other libraries in splitting bytes into lines and lines into events.

Every body is decoded whole, in one shot, asynchronously, cut in two at every byte and in pieces of
1 to 17 bytes; `everywhere` holds all of them equal.
"""

import pytest

from deltafold import FinishReason
from line_ends import KEEP_ALIVES, line_ends
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    anthropic,
    call_chunk,
    chunk,
    finish,
    message_end,
    message_start,
    said,
    text_block,
    tool_block,
)
from splits import calls_of, everywhere, warning_codes

# Characters and lines that are cut anywhere.

WIDE = "é 漢字 😀 👩‍👩‍👧 \u2028\u2029\u0085\u000c\u000b"


def test_characters_are_whole_wherever_the_bytes_are_cut() -> None:
    wide = "é 漢字 😀 👩‍👩‍👧"
    arguments = f'{{"x":"{wide}"}}'
    _, message = everywhere(
        CHAT,
        chunk({"reasoning": wide})
        + said(wide, wide)
        + call_chunk(arguments, name="f", index=0, id="a")
        + finish("tool_calls")
        + DONE,
    )
    assert (message.text, message.thinking) == (wide * 2, wide)
    assert calls_of(message) == [("f", {"x": wide})]
    body = message_start() + text_block(0, wide) + tool_block(1, "a", "f", arguments)
    _, message = everywhere(ANTHROPIC, body + message_end("tool_use"))
    assert message.text == wide
    assert calls_of(message) == [("f", {"x": wide})]


@pytest.mark.parametrize(
    ("dialect", "first", "second"),
    [
        (CHAT, '{"choices":[{"delta":{"content":"%s"}}]}', "[DONE]"),
        (
            ANTHROPIC,
            '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}',
            '{"type":"message_stop"}',
        ),
    ],
)
def test_the_halves_of_an_escaped_character_meet_in_the_next_delta(
    dialect: str, first: str, second: str
) -> None:
    lines = [first % r"a\ud83d", first % r"\ude00b", second]
    body = "".join(f"data: {line}\n\n" for line in lines).encode()
    if dialect == ANTHROPIC:
        opening = anthropic("content_block_start", index=0, content_block={"type": "text"})
        body = message_start() + opening + body
    deltas, message = everywhere(dialect, body)
    assert message.text == "a😀b"
    assert all("\ufffd" not in (delta.text or "") for delta in deltas)
    assert not warning_codes(message)


@pytest.mark.parametrize("form", line_ends(b""))
def test_only_cr_and_lf_end_a_line(form: str) -> None:
    wide = "a\u2028b\u2029c\u0085d"
    chat = said(wide) + finish("stop") + DONE
    claude = message_start() + text_block(0, wide) + message_end()
    for dialect, body in ((CHAT, chat), (ANTHROPIC, claude)):
        _, message = everywhere(dialect, line_ends(body)[form])
        assert message.text == wide
        assert message.meta.finish_reason is FinishReason.STOP
        assert not warning_codes(message)


# Keep-alives.


@pytest.mark.parametrize("alive", KEEP_ALIVES)
def test_keep_alives_are_nothing_wherever_they_come(alive: bytes) -> None:
    chat = said("a", "b") + finish("stop") + DONE
    claude = message_start() + text_block(0, "a", "b") + message_end()
    for dialect, body in ((CHAT, chat), (ANTHROPIC, claude)):
        expected, _ = everywhere(dialect, body)
        with_alive = b"".join(alive + part + b"\n\n" for part in body.split(b"\n\n")[:-1])
        deltas, message = everywhere(dialect, alive + with_alive)
        assert deltas == expected
        assert not warning_codes(message)


def test_noise_in_data_is_skipped_and_counted_in_one_warning() -> None:
    noise = b"data: : keepalive\n\n"
    chat = noise + said("a") + noise + said("b") + noise + finish("stop") + DONE
    claude = noise + message_start() + noise + text_block(0, "a", "b") + noise + message_end()
    for dialect, body in ((CHAT, chat), (ANTHROPIC, claude)):
        _, message = everywhere(dialect, body)
        assert message.text == "ab"
        [warning] = message.meta.warnings or []
        assert warning["code"] == "noise"
        assert "3 times" in str(warning["message"])


def test_a_ping_event_counts_at_no_place() -> None:
    ping = anthropic("ping")
    body = message_start() + text_block(0, "a", "b") + message_end("end_turn", {"output_tokens": 1})
    expected, _ = everywhere(ANTHROPIC, body)
    pieces = [part + b"\n\n" for part in body.split(b"\n\n")[:-1]]
    deltas, _ = everywhere(ANTHROPIC, ping + ping.join(pieces))
    assert deltas == expected
