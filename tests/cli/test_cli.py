"""The `deltafold` command: its output and its exit codes."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from any_name import AnyName
from corpus import FIXTURES
from deltafold import Message, fold_choices
from deltafold.cli import main
from deltafold.testing import Recording
from wires import ANTHROPIC, CHAT, CHAT_ERROR


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "body.sse"
    path.write_bytes(ANTHROPIC)
    return path


def test_fold_prints_the_parts_and_the_usage(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fold", str(recording), "--dialect", "anthropic-messages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:4]] == [
        "thinking",
        "text",
        "tool call get_forecast (toolu_01Forecast)",
        "finish reason",
    ]
    assert any(line.startswith("usage: inputTokens 1948") for line in lines)


def test_fold_prints_json_that_is_a_message(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fold", str(recording), "--dialect", "anthropic-messages", "--json"]) == 0
    message = Message.from_json(capsys.readouterr().out)
    assert message.runnable_tool_calls[0].tool_name == "get_forecast"


def test_fold_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CHAT)))
    assert main(["fold", "-", "--dialect", "openai-chat", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["parts"]) == 4


def test_a_stream_that_ends_in_an_error_shows_what_came_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "error.sse"
    path.write_bytes(CHAT_ERROR)
    assert main(["fold", str(path), "--dialect", "openai-chat"]) == 1
    shown = capsys.readouterr()
    assert "The answer begins well enough" in shown.out
    assert "overloaded" in shown.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["fold", "/no/such/file", "--dialect", "openai-chat"],
        ["fold", "/no/such/file"],
        ["inspect", "/no/such/file"],
        ["inspect", "/no/such/file", "--dialect", "gemini"],
        ["transcode", "/no/such/file", "--to", "ollama"],
        ["models", "no-such-vendor"],
        ["models", "no-such-vendor/model"],
        ["chat", "no-such-vendor/model", "Hello"],
        ["chat", "openai/gpt-5", "Hello", "--set", "temperature"],
        ["chat", "openai/gpt-5", "Hello", "--set", "no_such_setting=1"],
    ],
)
def test_wrong_usage_exits_with_2_and_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1


def test_missing_arguments_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["transcode", "-"])
    assert left.value.code == 2
    assert "--to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        (["fold", "-", "--dialect", "no-such-dialect"], "openai-chat"),
        (["transcode", "-", "--to", "nothing"], "ag-ui"),
        (["completion", "fish-and-chips"], "bash"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(
    arguments: list[str], known: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert known in capsys.readouterr().err


def test_the_command_runs_as_a_module(recording: Path) -> None:
    command = [sys.executable, "-m", "deltafold", "fold", str(recording)]
    command += ["--dialect", "anthropic-messages"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"get_forecast" in done.stdout


def test_importing_the_package_loads_no_sdk_and_no_http_client() -> None:
    code = (
        "import deltafold, deltafold.cli, sys\n"
        "named = {'openai', 'anthropic', 'httpx', 'httpx2', 'aiohttp', 'requests', 'rich'}\n"
        "sys.exit(', '.join(named & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_transcode_writes_the_targets_stream_and_what_was_lost(
    recording: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    arguments = ["transcode", str(recording), "--from", "anthropic-messages", "--to", "openai-chat"]
    assert main(arguments) == 0
    shown = capfdbinary.readouterr()
    assert shown.out.endswith(b"data: [DONE]\n\n")
    assert b"not carried: provider state of anthropic-messages" in shown.err


@pytest.mark.parametrize(("target", "numbers"), [("gemini", {0, 1}), ("ollama", None)])
def test_transcode_writes_every_answer_where_the_target_has_several(
    target: AnyName, numbers: set[int] | None, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    wire = FIXTURES / "openai-chat" / "two-choices" / "wire.sse"
    assert main(["transcode", str(wire), "--from", "openai-chat", "--to", target]) == 0
    written = capfdbinary.readouterr().out
    folded = fold_choices(written, target)
    assert set(folded) == (numbers or {0})
    for number, answer in fold_choices(wire.read_bytes(), "openai-chat").items():
        if number in folded:
            assert folded[number].snapshot().text == answer.snapshot().text


def test_transcode_of_a_failed_stream_exits_with_1(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "error.sse"
    path.write_bytes(CHAT_ERROR)
    assert main(["transcode", str(path), "--from", "openai-chat", "--to", "ollama"]) == 1
    assert b"ended in an error" in capfdbinary.readouterr().err


def test_fold_reads_a_recording_with_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "body.jsonl"
    Recording.of_events(CHAT, delay=0.5).save(path)
    assert main(["fold", str(path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["parts"]) == 4


@pytest.mark.parametrize("live", ["--live", "--no-live"])
def test_fold_reads_the_status_of_a_recording(
    live: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "openai-chat.jsonl"
    Recording.error(429, {"error": {"message": "slow down"}}, {"retry-after": "7"}).save(path)
    assert main(["fold", str(path), "--dialect", "openai-chat", live]) == 1
    shown = capsys.readouterr().err
    assert "rate_limited: slow down (HTTP 429" in shown
    assert "retry after 7 s" in shown


@pytest.mark.parametrize("target", ["anthropic-messages", "openai-chat"])
def test_transcode_reads_the_status_of_a_recording(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "openai-chat.jsonl"
    Recording.error(429, {"error": {"message": "slow down"}}).save(path)
    assert main(["transcode", str(path), "--from", "openai-chat", "--to", target]) == 1
    shown = capsys.readouterr()
    assert "slow down" in shown.out
    assert "status 429" in shown.err


def test_inspect_writes_a_page_that_needs_nothing_else(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["inspect", str(recording), "--out", str(page), "--no-open"]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_inspect_opens_the_page_in_a_browser(
    recording: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_page(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", open_page)
    assert main(["inspect", str(recording)]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert opened == [page.as_uri()]
    assert page.stat().st_mode & 0o077 == 0
    page.unlink()


def test_inspect_says_that_no_browser_was_found(
    recording: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def open_nothing(_: str) -> bool:
        return False

    monkeypatch.setattr("webbrowser.open", open_nothing)
    assert main(["inspect", str(recording), "--out", str(tmp_path / "page.html")]) == 0
    assert "no browser was found" in capsys.readouterr().err


def test_inspect_names_the_first_difference_and_exits_with_1(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, page = tmp_path / "other.sse", str(tmp_path / "page.html")
    other.write_bytes(ANTHROPIC.replace(b"JP", b"KR"))
    command = ["inspect", str(recording), "--diff", str(other), "--out", page, "--no-open"]
    assert main(command) == 1
    left, right, written = capsys.readouterr().out.splitlines()
    assert "KR" in right
    assert left.startswith(str(recording))
    assert ", event " in left
    assert written == page


def test_inspect_compares_a_recording_with_an_earlier_page(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier, page = str(tmp_path / "earlier.html"), str(tmp_path / "page.html")
    assert main(["inspect", str(recording), "--out", earlier, "--no-open"]) == 0
    command = ["inspect", earlier, "--diff", str(recording), "--out", page, "--no-open"]
    assert main(command) == 0
    assert "have the same deltas" in capsys.readouterr().out
