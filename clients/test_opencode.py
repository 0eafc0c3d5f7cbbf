"""opencode, which speaks Chat and the Messages API, on upstreams of other protocols.

A session has parallel calls, thinking, files that are written, commands that fail, and a stream
that is cut.
"""

import json
from pathlib import Path
from typing import Final

import pytest
from scripted import PROGRAMS, TURNS, UPSTREAMS, Session, play

from deltafold import Message
from deltafold.parts import MessagePart, TextPart, ThinkingPart

RUNS: Final = 3
MODEL: Final = "any-name"
PACKAGES: Final = {
    "openai-chat": "@ai-sdk/openai-compatible",
    "anthropic-messages": "@ai-sdk/anthropic",
}


def program() -> Path:
    """Return the program of this platform; its package has no script that npm would link."""
    found = sorted(PROGRAMS.parent.glob("opencode-*-*/bin/opencode"))
    if not found:
        pytest.fail("opencode has no program for this platform")
    return found[0]


def turn(session: Session, number: int, work: Path) -> Message:
    """Return one of the kinds of turn, by turns."""

    def shell(command: str) -> MessagePart:
        return session.call("bash", {"command": command, "description": "a command"})

    append = shell(f"echo {number} >> log.txt")
    thought = ThinkingPart(text=f"Turn {number}.")
    parts: list[MessagePart]
    match number % 4:
        case 0:
            path = str(work / f"{number}.txt")
            write = session.call("write", {"filePath": path, "content": '\u00e9 "\\'})
            parts = [thought, append, write]
        case 1:
            parts = [TextPart(text="This fails."), shell("echo on-purpose; exit 3")]
        case _:
            parts = [append]
    return session.message(*parts)


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("protocol", PACKAGES)
@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_opencode_finishes_a_session_of_thirty_turns(
    dialect: str, protocol: str, run: int, tmp_path: Path
) -> None:
    session = Session()
    work = tmp_path / f"work-{run}"
    work.mkdir()

    def settings(url: str) -> dict[str, str]:
        provider = {
            "npm": PACKAGES[protocol],
            "options": {"baseURL": f"{url}/v1", "apiKey": "unused"},
            "models": {MODEL: {}},
        }
        config = {"permission": {"*": "allow"}, "provider": {"deltafold": provider}}
        (work / "opencode.json").write_text(json.dumps(config))
        off = ("MODELS_FETCH", "AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")
        return {
            "HOME": str(tmp_path),
            "PWD": str(work),
            **{f"OPENCODE_DISABLE_{name}": "1" for name in off},
        }

    command: list[str | Path] = [program(), "run", "--pure", "--auto", "--title", "A session"]
    command += ["--format", "json", "--model", f"deltafold/{MODEL}", "Work."]
    turns = [turn(session, number, work) for number in range(TURNS)]
    # opencode 1.18 asks again after an error inside of a Chat stream, and ends at one of Messages.
    last = play(dialect, turns, command, settings, work, is_cut=protocol == "openai-chat")
    numbers = [str(number) for number in range(TURNS) if number % 4 != 1]
    done = (work / "log.txt").read_text().split()
    if protocol == "openai-chat":
        done = list(dict.fromkeys(done))  # it runs what was whole before the cut, and asks again
    assert sorted(done, key=int) == numbers
    assert (work / "28.txt").read_text() == '\u00e9 "\\'
    assert last.count("on-purpose") >= TURNS // 4
