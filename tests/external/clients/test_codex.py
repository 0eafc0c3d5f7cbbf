"""Codex, which speaks Responses alone, on upstreams of other protocols.

A session has parallel calls, freeform calls, a patch, tools of a namespace, thinking, a tool that
fails, and a stream that is cut. Codex must run every tool, send every result back, and end with the
last answer.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from scripted import PROGRAMS, RUNS, TURNS, Session, play

from deltafold import Message
from deltafold.cli.clients import CLIENTS
from deltafold.message.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart
from deltafold.streams.encoded import EncoderTool
from recorded_upstreams import UPSTREAMS

# A model of Codex's own list: the others get a smaller set of tools, without freeform ones.
MODEL: Final = "gpt-6-astra"
PATCH: Final = "*** Begin Patch\\n*** Add File: patched.txt\\n+by a patch\\n*** End Patch"


TOOLS: Final[Mapping[str, EncoderTool]] = {
    "functions__exec": {"kind": "custom", "namespace": "functions", "name": "exec"},
    "clock__sleep": {"kind": "function", "namespace": "clock", "name": "sleep"},
}
"""Tools that Codex declares, by the names that upstreams of other protocols know."""


def turn(session: Session, number: int) -> Message:
    """Return one of the kinds of turn, by turns."""

    def javascript(code: str) -> ToolCallPart:
        """Call Codex's freeform tool, whose input is no JSON."""
        return session.call("functions__exec", {"input": code})

    command = f"text(await tools.exec_command({{cmd: 'echo {number} >> log.txt'}}))"
    thought = ThinkingPart(text=f"Turn {number}.")
    parts: list[MessagePart]
    match number % 5:
        case 0:
            parts = [thought, javascript(command), javascript("text('\\u00e9 \"\\\\')")]
        case 1:
            parts = [TextPart(text="A patch."), javascript(f"await tools.apply_patch('{PATCH}')")]
        case 2:
            parts = [javascript("throw new Error('on purpose')")]
        case 3:
            parts = [thought, session.call("clock__sleep", {"duration_ms": 1})]
        case _:
            parts = [TextPart(text="Again."), javascript(command)]
    return session.message(*parts)


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_codex_finishes_a_session_of_thirty_turns(dialect: str, run: int, tmp_path: Path) -> None:
    session = Session()
    home, work = tmp_path / "home", tmp_path / f"work-{run}"
    home.mkdir()
    work.mkdir()

    def settings(url: str) -> dict[str, str]:
        (home / "config.toml").write_text(CLIENTS["codex"].format(url=url, model=MODEL))
        return {"HOME": str(tmp_path), "CODEX_HOME": str(home)}

    command: list[str | Path] = [PROGRAMS / "codex", "exec", "--skip-git-repo-check", "--json"]
    command += ["-m", MODEL, "--dangerously-bypass-approvals-and-sandbox", "Work."]
    turns = [turn(session, number) for number in range(TURNS)]
    last = play(dialect, turns, command, settings, work, tools=TOOLS)
    numbers = [str(number) for number in range(TURNS) if number % 5 in {0, 4}]
    assert (work / "log.txt").read_text().split() == numbers
    assert (work / "patched.txt").read_text() == "by a patch\n"
    assert last.count("on purpose") >= TURNS // 5
    assert "incompatible payload" not in last
    assert "unsupported call" not in last
