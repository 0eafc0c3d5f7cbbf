"""Gemini CLI, which speaks Gemini alone, on upstreams of other protocols.

A session has parallel calls, thinking, files that are written, and commands that fail.
"""

import json
from pathlib import Path
from typing import Final

import pytest
from scripted import PROGRAMS, RUNS, Session, Tools, check_work, play, turns_of

from recorded_upstreams import UPSTREAMS

MODEL: Final = "gemini-2.5-pro"
TOOLS: Final = Tools(
    run=lambda command: ("run_shell_command", {"command": command}),
    write=lambda path, text: ("write_file", {"file_path": path, "content": text}),
)


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_gemini_cli_finishes_a_session_of_thirty_turns(
    dialect: str, run: int, tmp_path: Path
) -> None:
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
    # Gemini CLI 0.61 ends with exit code 0 and without a message when a stream has an error.
    last = play(dialect, turns_of(Session(), TOOLS, work), command, settings, work, is_cut=False)
    check_work(work, last)
