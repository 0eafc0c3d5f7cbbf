"""`deltafold demo`: what it prints, and the recording that it saves."""

import os
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Final

import pytest

from deltafold import ModelError, fold
from deltafold.cli import main
from deltafold.cli.demo.protocols import show
from deltafold.cli.demo.scenes import CALL, SCENES
from terminals import on_a_terminal

WIDTH: Final = 80
TEXTS: Final = (
    "I will look at the forecast for Kyoto first; the list depends on it.",
    "Checking the tides at Brest and at Saint-Malo…",
    "I will write the sieve to a file.",
    "The answer begins well enough, and then the server",
    "The boat waits at Brest at 17:00; Atlantis is on no chart.",
)
IN_ORDER: Final = (
    "deltafold demo: recorded answers",
    *(scene.title for scene in SCENES),
    "at clients of three protocols",
    "All three clients read the same text",
    "An agent: two providers",
    "Anthropic plans, OpenAI executes",
    "book_boat costs money, so the program is asked first",
    "completed, 3 answers",
    "Events a second",
    "openai-chat  ",
)


def demo(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "deltafold", "demo", *words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )


def check_shown(shown: str) -> None:
    places = [shown.find(words) for words in IN_ORDER]
    assert -1 not in places
    assert places == sorted(places)
    for text in TEXTS:
        assert shown.count(text) == 1
    lines = shown.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[-1].startswith("  openai-chat")  # the figures come last
    assert lines[-1].endswith("x")


def test_without_a_terminal_each_answer_is_shown_once_in_80_columns() -> None:
    ran = demo(NO_COLOR="1")
    assert (ran.returncode, ran.stderr) == (0, "")
    check_shown(ran.stdout)
    assert "\x1b" not in ran.stdout


def test_an_encoding_without_the_characters_of_the_answers_fails_nothing() -> None:
    ran = demo(PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert r"Ky\u014dto" in ran.stdout


def test_a_terminal_shows_answers_while_they_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = on_a_terminal(["demo"])
    assert "\x1b[2K" in shown  # rich draws in place
    assert "\x1b[1m" not in shown
    assert "All three clients read the same text" in shown


def test_help_does_not_run_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["demo", "--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert "--save FILE" in shown
    assert "Anthropic:" not in shown


def test_the_saved_recording_is_one_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = tmp_path / "broken.sse", tmp_path / "page.html"
    assert main(["demo", "--save", str(path)]) == 0
    assert f"deltafold fold {path}" in capsys.readouterr().out
    with pytest.raises(ModelError) as failed:
        fold(path.read_bytes())
    assert failed.value.code == "connection_lost"
    assert failed.value.partial_message is not None
    assert not failed.value.partial_message.runnable_tool_calls
    assert main(["fold", str(path)]) == 1
    shown = capsys.readouterr()
    assert "not runnable: the call was cut off" in shown.out
    assert "what arrived is on standard output" in shown.err
    assert main(["inspect", str(path), "--no-open", "--out", str(page)]) == 0
    assert "connection_lost" in page.read_text("utf-8")


def test_no_file_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.sse"
    path.write_text("mine")
    assert main(["demo", "--save", str(path)]) == 2
    assert "exists: name a new file" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert main(["demo", "--save", str(tmp_path / "gone" / "a.sse")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_saving_needs_no_extra() -> None:
    code = (
        "import sys, deltafold.cli.run_demo; "
        "sys.exit(', '.join({'anthropic', 'openai', 'rich', 'starlette'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_every_recording_is_in_the_package() -> None:
    folder = resources.files("deltafold.cli.demo") / "recordings"
    assert {scene.file for scene in SCENES} == {
        one.name for one in folder.iterdir() if one.name.endswith(".sse")
    }


def test_three_clients_read_the_same_answer_in_their_own_events() -> None:
    chat, responses, messages = show(CALL.body, 0.0)
    assert chat.text == responses.text == messages.text != ""
    assert chat.arguments == responses.arguments == messages.arguments != ""
    assert chat.tokens == responses.tokens == messages.tokens == (1948, 187)
    assert chat.events[-1] == ("usage", 1)
    assert responses.events[-1] == ("completed", 1)
    assert messages.events[-1] == ("message_stop", 1)
