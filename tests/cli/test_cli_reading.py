"""`deltafold fold`: detection of the protocol, several files, and the live view of a terminal."""

import io
import json
from pathlib import Path

import pytest

from corpus import FIXTURES
from deltafold import Message, dialect_names
from deltafold.cli import main
from terminals import on_a_terminal
from wires import ANTHROPIC, CHAT, CHAT_ERROR


class Trickle(io.RawIOBase):
    """A pipe that gives a few bytes a read."""

    def __init__(self, body: bytes, size: int) -> None:
        super().__init__()
        self._body, self._size = body, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed: any buffer
        given, self._body = self._body[: self._size], self._body[self._size :]
        buffer[: len(given)] = given
        return len(given)


@pytest.mark.parametrize("dialect", dialect_names())
def test_fold_detects_the_protocol_of_a_file(
    dialect: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = next(FIXTURES.glob(f"{dialect}/text*/wire.*"), None)
    found = found or next(FIXTURES.glob(f"{dialect}/*/wire.*"))
    code = main(["fold", str(found), "--json"])
    shown = capsys.readouterr()
    if code == 2:
        assert "choose one with --dialect" in shown.err
        assert dialect in shown.err
    else:
        assert Message.from_json(shown.out).parts


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_fold_detects_the_protocol_of_a_slow_pipe(
    size: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = io.TextIOWrapper(io.BufferedReader(Trickle(CHAT, size)))
    monkeypatch.setattr("sys.stdin", pipe)
    assert main(["fold", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["parts"]) == 4


def test_a_person_is_told_that_a_command_reads_what_they_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = io.TextIOWrapper(io.BufferedReader(Trickle(CHAT, 4096)))
    monkeypatch.setattr("sys.stdin", typed)
    monkeypatch.setattr(typed, "isatty", lambda: True)
    assert main(["fold", "--json"]) == 0
    assert "reading standard input; name a file" in capsys.readouterr().err


def test_an_unknown_protocol_is_named_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no stream at all")
    assert main(["fold", str(path)]) == 2
    error = capsys.readouterr().err
    assert "notes.txt" in error
    assert "--dialect" in error


def test_two_protocols_that_fit_are_both_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "error.json"
    path.write_bytes(b'{"error":"model not found"}')
    assert main(["fold", str(path)]) == 2
    assert "fit ollama and openai-chat" in capsys.readouterr().err


def test_several_files_have_a_heading_or_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / name for name in ("a.sse", "b.sse")]
    for path, body in zip(paths, (ANTHROPIC, CHAT_ERROR), strict=True):
        path.write_bytes(body)
    assert main(["fold", *map(str, paths)]) == 1
    shown = capsys.readouterr()
    assert f"{paths[0]} (anthropic-messages)" in shown.out
    assert f"{paths[1]} (openai-chat)" in shown.out
    assert f"{paths[1]}: " in shown.err
    assert main(["fold", "--json", *map(str, paths), "/no/such/file"]) == 2
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["dialect"] for line in lines] == ["anthropic-messages", "openai-chat"]
    assert [line["error"] and line["error"]["code"] for line in lines] == [None, "overloaded"]
    assert Message.from_dict(lines[0]["message"]).runnable_tool_calls


def test_a_terminal_shows_the_message_while_it_grows_and_then_the_whole() -> None:
    shown = on_a_terminal(["fold"], CHAT)
    assert "\x1b[" in shown  # rich draws in place
    assert "finish reason: tool_calls" in shown


def test_a_long_message_is_shown_by_its_end_alone_while_it_grows() -> None:
    lines = [f"line {number}" for number in range(200)]
    events = [
        b"data: " + json.dumps({"choices": [{"delta": {"content": f"{line}\n"}}]}).encode()
        for line in lines
    ]
    end = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}'
    shown = on_a_terminal(["fold", "--live"], b"\n\n".join([*events, end, b"data: [DONE]", b""]))
    assert shown.count("line 3\r\n") == 1
    assert "finish reason: stop" in shown
