"""The commands read captures: each form by each command, and one of several answers by its name."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from capture_forms import EXACT, LINES, SECRET, URL, below_head, har_entry, har_of
from deltafold import Message
from deltafold.cli import main
from deltafold.inspector import read_page
from deltafold.testing import answer

CHAT: Final = "openai-chat"
BODY = answer(CHAT, "Hello ", "world.").body
EVENTS = [line[6:] for line in BODY.splitlines() if line.startswith(b"data: {")]
CAPTURES = {
    **{name: form(BODY) for name, form in (EXACT | LINES).items()},
    "events as lines": b"\n".join(EVENTS) + b"\n",
    "events as an array": b"[" + b",".join(EVENTS) + b"]",
}
ROW = json.dumps({"id": 1, "body": BODY.decode()}).encode() + b"\n"


def rows_of(path: Path) -> list[dict[str, Any]]:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def fold(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, bool]:
    code = main(["fold", str(path)])
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    assert "warning" not in shown.out
    return ("Hello world." if "text: Hello world." in shown.out else shown.out), code == 0


def fold_to(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, bool]:
    out = path.parent / "out.parquet"
    code = main(["fold", str(path), "--to", str(out)])
    assert SECRET not in capsys.readouterr().err
    (row,) = rows_of(out)
    assert row["warnings"] in (None, [])
    return row["text"], code == 0


def inspect(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, bool]:
    page = path.parent / "page.html"
    code = main(["inspect", str(path), "--out", str(page), "--no-open"])
    assert (code, SECRET in capsys.readouterr().err) == (0, False)
    text = page.read_text()
    assert SECRET not in text
    (inspection,) = read_page(text)
    return ("Hello world." if "world." in text else "Hello "), inspection.notes == []


def transcode(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, bool]:
    code = main(["transcode", str(path), "--to", "anthropic-messages"])
    shown = capsys.readouterr().out
    deltas = [json.loads(line[6:]) for line in shown.splitlines() if line.startswith("data: ")]
    return "".join(each.get("delta", {}).get("text", "") for each in deltas), code == 0


COMMANDS: dict[str, Callable[[Path, pytest.CaptureFixture[str]], tuple[str, bool]]] = {
    "fold": fold,
    "fold --to": fold_to,
    "inspect": inspect,
    "transcode": transcode,
}


@pytest.mark.parametrize("form", CAPTURES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_a_form(
    command: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "capture"
    path.write_bytes(CAPTURES[form])
    assert COMMANDS[command](path, capsys) == ("Hello world.", True)


@pytest.mark.parametrize("form", [*EXACT, *LINES])
@pytest.mark.parametrize("command", ["fold --to", "inspect", "transcode"])
def test_a_cut_body_ends_as_a_cut(
    command: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "capture"
    cut = BODY[: BODY.index(b"world.")]
    path.write_bytes((EXACT | LINES)[form](cut))
    assert COMMANDS[command](path, capsys) == ("Hello ", False)


def test_several_answers_are_named_by_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bodies.har"
    refusal = har_entry({"text": '{"error":{"message":"slow down"}}'}, status=429)
    path.write_bytes(har_of(har_entry({}), refusal, har_entry({"text": BODY.decode()})))
    listed = f"{path}#2 429 openai-chat {URL}; {path}#3 200 openai-chat {URL}"
    for command in (["inspect"], ["transcode", "--to", "ai-sdk"]):
        assert main([*command, str(path)]) == 2
        error = capsys.readouterr().err
        assert f"has 2 answers, and this command takes one; name it, such as {path}#2" in error
        assert listed in error
        assert SECRET not in error
    assert main(["inspect", f"{path}#3", "--out", str(tmp_path / "page.html"), "--no-open"]) == 0
    assert main(["transcode", f"{path}#3", "--to", "ai-sdk"]) == 0
    assert "world." in capsys.readouterr().out
    assert main(["fold", str(path)]) == 1
    shown = capsys.readouterr()
    assert f"{path}#3 (openai-chat)\ntext: Hello world." in shown.out
    assert f"{path}#2: " in shown.err
    assert main(["fold", f"{path}#2"]) == 1
    assert "slow down" in capsys.readouterr().err
    assert main(["fold", f"{path}#3", "--json"]) == 0
    assert Message.from_json(capsys.readouterr().out).text == "Hello world."
    assert main(["fold", f"{path}#1"]) == 2
    assert f"{path}#1: {path} has no such answer" in capsys.readouterr().err
    out = tmp_path / "out.parquet"
    assert main(["fold", str(path), "--to", str(out)]) == 1
    assert [row["status"] for row in rows_of(out)] == [429, 200]
    assert [row["error"] and row["error"]["code"] for row in rows_of(out)] == ["rate_limited", None]
    assert main(["fold", f"{path}#3", "--to", str(out)]) == 0
    assert [row["source"] for row in rows_of(out)] == [f"{path}#3"]


def test_an_answer_that_fits_no_protocol_costs_no_other_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bodies.jsonl"
    path.write_bytes(ROW + json.dumps({"id": 2, "body": "Bad gateway"}).encode() + b"\n" + ROW)
    assert main(["fold", str(path), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    codes = [line["error"] and line["error"]["code"] for line in lines]
    assert codes == [None, "connection_lost", None]


def test_many_answers_are_listed_in_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bodies.jsonl"
    path.write_bytes(ROW * 50)
    assert main(["transcode", str(path), "--to", "ai-sdk"]) == 2
    error = capsys.readouterr().err
    assert "has 50 answers" in error
    assert f"{path}#20 200 openai-chat; and 30 more" in error


def test_a_file_with_a_number_in_its_own_name_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a#2").write_bytes(BODY)
    (tmp_path / "a").write_bytes(ROW)
    assert main(["fold", str(tmp_path / "a#2")]) == 0
    assert "Hello world." in capsys.readouterr().out
    assert main(["fold", str(tmp_path / "missing#2")]) == 2
    assert "missing#2" in capsys.readouterr().err


def test_a_column_and_a_bound_are_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"a": BODY.decode(), "b": BODY.decode()}))
    out = ["--out", str(tmp_path / "page.html"), "--no-open"]
    for command in (
        ["fold"],
        ["fold", "--to", str(tmp_path / "out.parquet")],
        ["inspect", *out],
        ["transcode", "--to", "ai-sdk"],
    ):
        name, *rest = command
        assert main([name, str(path), *rest]) == 2
        assert "name one with --column" in capsys.readouterr().err
        assert main([name, str(path), "--column", "b", *rest]) == 0
        capsys.readouterr()
        assert main([name, str(path), "--column", "b", "--max-bytes", "100", *rest]) == 2
        assert "larger than 100 bytes" in capsys.readouterr().err


def test_a_final_text_is_no_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps({"observations": [{"output": "Hello world."}]}))
    out = ["--out", str(tmp_path / "page.html"), "--no-open"]
    for command in (
        ["fold"],
        ["fold", "--to", str(tmp_path / "out.parquet")],
        ["inspect", *out],
        ["transcode", "--to", "ai-sdk"],
    ):
        name, *rest = command
        assert main([name, str(path), *rest]) == 2
        assert "JSON that holds no stream and no answer" in capsys.readouterr().err


class Pipe(io.RawIOBase):
    """A pipe whose writer waits until its last bytes were shown."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__()
        self._pieces = list(pieces)
        self.reads = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed: any buffer
        self.reads += 1
        piece = self._pieces.pop(0) if self._pieces else b""
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize("form", [*EXACT, *LINES])
def test_standard_input_has_any_form(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (EXACT | LINES)[form](BODY)
    pieces = [content[at : at + 100] for at in range(0, len(content), 100)]
    pipe = io.TextIOWrapper(io.BufferedReader(Pipe(*pieces)))
    monkeypatch.setattr("sys.stdin", pipe)
    assert main(["fold"]) == 0
    assert "Hello world." in capsys.readouterr().out


def test_a_stream_below_its_head_is_read_as_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    at = BODY.index(b"\n\n", BODY.index(b"Hello ")) + 2
    pipe = Pipe(below_head(BODY[:at]), BODY[at:])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(pipe)))

    def show(_: bytes) -> None:
        seen.append(pipe.reads)

    monkeypatch.setattr("deltafold.cli.transcode._writer", lambda: show)
    assert main(["transcode", "--to", "ai-sdk"]) == 0
    assert seen[0] == 1


@pytest.mark.parametrize("status", [429, 500])
def test_the_status_of_a_head_on_standard_input_counts(
    status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = f'HTTP/1.1 {status} No\r\n\r\n{{"error":{{"message":"slow down"}}}}'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(refusal.encode())))
    assert main(["fold", "--json"]) == 1
    assert "slow down" in capsys.readouterr().err
