"""Texts from outside on a terminal, from every command: no control character reaches it.

A pipe gets what came.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from deltafold import Decoder, Message, Transcoder, fold
from deltafold.cli import main
from deltafold.contract.foreign_text import printable
from deltafold.testing import Recording, ReplayServer
from terminals import on_a_terminal

HOSTILE: Final = "<\x1b]0;T\x07\x9b1m\x7f\u202e\u2028\x85>"
SHOWN: Final = r"<\u001b]0;T\u0007\u009b1m\u007f\u202e\u2028\u0085>"
OBEYED: Final = ("\x1b]0", "\x07", "\x9b", "\x7f", "\u202e", "\u2028", "\x85")


def chunk(delta: dict[str, Any], finish_reason: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def call(name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps({name: name})}
    return {"tool_calls": [{"index": 0, "id": f"call {name}", "function": function}]}


NAME: Final = f"{HOSTILE}\nfinish reason: forged"
PARTS: Final = (
    chunk({"reasoning_content": f"I think\n{HOSTILE}"}, model=HOSTILE, id=HOSTILE)
    + chunk({"content": f"one\n\ttwo\r\n{HOSTILE}"})
    + chunk(call(NAME))
)
WHOLE: Final = PARTS + chunk({}, "tool_calls") + b"data: [DONE]\n\n"
FAILED: Final = (
    PARTS
    + b"data: "
    + json.dumps({"error": {"message": f"{NAME}\nERROR: no", "code": NAME, "type": NAME}}).encode()
    + b"\n\n"
)


def whole(file: str) -> str:
    return file.replace("failed", "whole")


COMMANDS: Final[dict[str, Callable[[str], list[str]]]] = {
    "fold": lambda file: ["fold", file],
    "fold --live": lambda file: ["fold", file, "--live"],
    "fold --json": lambda file: ["fold", file, "--json"],
    "fold of two": lambda file: ["fold", file, file],
    "fold --json of two": lambda file: ["fold", "--json", file, file],
    "transcode": lambda file: ["transcode", file, "--to", "anthropic-messages"],
    "transcode to itself": lambda file: ["transcode", file, "--to", "openai-chat"],
    "inspect": lambda file: ["inspect", file, "--no-open", "--diff", whole(file)],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_gets_no_control_character(command: str, tmp_path: Path) -> None:
    for name, body in (("whole", WHOLE), ("failed", FAILED)):
        (tmp_path / f"{name}{HOSTILE}.sse").write_bytes(body)
    shown = on_a_terminal(COMMANDS[command](str(tmp_path / f"failed{HOSTILE}.sse")))
    assert not [character for character in OBEYED if character in shown]
    assert SHOWN in shown.replace("\r\n", "")  # rich breaks long lines
    assert "\nfinish reason: forged" not in shown
    assert "\nERROR: no" not in shown


def test_the_lines_of_an_answer_stay_lines_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.sse").write_bytes(WHOLE)
    shown = on_a_terminal(["fold", str(tmp_path / "a.sse")])
    assert f"text: one\r\n\ttwo\r\n{SHOWN}\r\n" in shown


def test_json_on_a_terminal_is_the_same_json(tmp_path: Path) -> None:
    (tmp_path / "a.sse").write_bytes(WHOLE)
    shown = on_a_terminal(["fold", "--json", str(tmp_path / "a.sse")])
    assert Message.from_json(shown).parts == fold(WHOLE, "openai-chat").parts


def test_a_pipe_gets_what_came(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    file = tmp_path / "a.sse"
    file.write_bytes(WHOLE)
    for live in ("--live", "--no-live"):
        assert main(["fold", str(file), live]) == 0
        assert HOSTILE.encode() in capfdbinary.readouterr().out
    assert main(["fold", str(file), "--json"]) == 0
    out = capfdbinary.readouterr().out
    assert "\u202e\u2028\x85>".encode() in out
    assert Message.from_json(out).parts == fold(WHOLE, "openai-chat").parts
    assert main(["transcode", str(file), "--to", "openai-chat"]) == 0
    transcoder = Transcoder(Decoder("openai-chat"), "openai-chat")
    written = transcoder.feed(WHOLE) + transcoder.close()
    assert len(capfdbinary.readouterr().out) == len(written)


@pytest.mark.parametrize("has_rich", [True, False])
@pytest.mark.parametrize("body", [WHOLE, FAILED], ids=["whole", "failed"])
def test_a_chat_shows_no_control_character(
    body: bytes,
    *,
    has_rich: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich.live", None)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with ReplayServer() as server:
        server.queue(Recording.of_events(body))
        asked = ["chat", "openai-chat/gpt-5", "Hi", "--set", f"base_url={server.url}/v1"]
        assert main(asked) == (0 if body == WHOLE else 1)
    out, err = capsys.readouterr()
    for shown in (out, err):
        assert not [character for character in OBEYED if character in shown]
        assert "\nfinish reason: forged" not in shown
        assert "\nERROR: no" not in shown
    assert SHOWN in (out if body == WHOLE else err)


def test_a_table_has_a_line_for_each_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "a.sse").write_bytes(chunk({"content": "a"}, "stop", model=NAME))
    assert main(["fold", str(tmp_path / "a.sse"), "--to", str(tmp_path / "a.parquet")]) in {0, 1}
    capsys.readouterr()
    main(["stats", str(tmp_path / "a.parquet")])
    shown = capsys.readouterr().out
    assert rf"{SHOWN}\nfinish reason: forged" in shown
    assert not [character for character in OBEYED if character in shown]


def test_a_complaint_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / NAME).write_bytes(b"of no protocol")
    assert main(["fold", str(tmp_path / NAME)]) == 2
    (line,) = capsys.readouterr().err.split("\n")[:-1]
    assert f"{SHOWN} finish reason: forged" in line


def test_printable_text_is_the_same_object_and_escapes_are_those_of_json() -> None:
    plain = "plain, é, 日本"
    assert printable(plain) is plain
    joined = "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}"
    assert printable(joined) == joined
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x2066, 0x206A), 0x202E):
        escaped = printable(chr(code))
        assert escaped.isascii()
        assert escaped.isprintable()
        assert json.loads(f'"{escaped}"') == chr(code)
    assert printable("a\tb\r\nc\rd", lines=True) == "a\tb\nc\\rd"
    assert printable("\ud83d") == "\N{REPLACEMENT CHARACTER}"
