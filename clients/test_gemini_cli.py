"""Gemini CLI, which speaks Gemini alone, on upstreams of other protocols.

A session has parallel calls, thinking, files that are written, and commands that fail.
"""

import json
from pathlib import Path
from typing import Final

import pytest
from scripted import PROGRAMS, RUNS, TURNS, UPSTREAMS, Session, play

from deltafold import Message
from deltafold.parts import MessagePart, TextPart, ThinkingPart

MODEL: Final = "gemini-2.5-pro"


def turn(session: Session, number: int, work: Path) -> Message:
    """Return one of the kinds of turn, by turns."""
    append = session.call("run_shell_command", {"command": f"echo {number} >> log.txt"})
    thought = ThinkingPart(text=f"Turn {number}.")
    parts: list[MessagePart]
    match number % 4:
        case 0:
            path = str(work / f"{number}.txt")
            write = session.call("write_file", {"file_path": path, "content": '\u00e9 "\\'})
            parts = [thought, append, write]
        case 1:
            fails = session.call("run_shell_command", {"command": "echo on-purpose; exit 3"})
            parts = [TextPart(text="This fails."), fails]
        case _:
            parts = [append]
    return session.message(*parts)


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_gemini_cli_finishes_a_session_of_thirty_turns(
    dialect: str, run: int, tmp_path: Path
) -> None:
    session = Session()
    work = tmp_path / f"work-{run}"
    work.mkdir()
    (tmp_path / ".gemini").mkdir()
    # The detection of loops asks the model whether the session repeats itself.
    chosen = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "model": {"disableLoopDetection": True},
    }
    (tmp_path / ".gemini" / "settings.json").write_text(json.dumps(chosen))

    def settings(url: str) -> dict[str, str]:
        return {
            "HOME": str(tmp_path),
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_API_KEY": "unused",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    command: list[str | Path] = [PROGRAMS / "gemini", "-m", MODEL, "--yolo", "-p", "Work."]
    turns = [turn(session, number, work) for number in range(TURNS)]
    # Gemini CLI 0.61 ends with exit code 0 and without a message when a stream has an error.
    last = play(dialect, turns, command, settings, work, is_cut=False)
    numbers = [str(number) for number in range(TURNS) if number % 4 != 1]
    assert sorted((work / "log.txt").read_text().split(), key=int) == numbers
    assert (work / "28.txt").read_text() == '\u00e9 "\\'
    assert last.count("on-purpose") >= TURNS // 4
