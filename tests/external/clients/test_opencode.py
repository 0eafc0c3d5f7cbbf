"""opencode, which speaks Chat and the Messages API, on upstreams of other protocols.

A session has parallel calls, thinking, files that are written, commands that fail, and a stream
that is cut.
"""

import json
from pathlib import Path
from typing import Final

import pytest
from scripted import PROGRAMS, Session, Tools, check_work, play, turns_of

from recorded_upstreams import UPSTREAMS

RUNS: Final = 2
MODEL: Final = "any-name"
TOOLS: Final = Tools(
    run=lambda command: ("bash", {"command": command, "description": "a command"}),
    write=lambda path, text: ("write", {"filePath": path, "content": text}),
)
PACKAGES: Final = {
    "openai-chat": "@ai-sdk/openai-compatible",
    "anthropic-messages": "@ai-sdk/anthropic",
}


def program() -> Path:
    """Return opencode's program.

    Its package `opencode-ai` finds the program of a platform by a script after the installation,
    and scripts of packages are not run here. package.json has the package of one platform.
    """
    found = PROGRAMS.parent / "opencode-linux-x64" / "bin" / "opencode"
    if not found.is_file():
        pytest.fail("package.json has opencode's program for Linux on x86-64 alone")
    return found


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("protocol", PACKAGES)
@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_opencode_finishes_a_session_of_thirty_turns(
    dialect: str, protocol: str, run: int, tmp_path: Path
) -> None:
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
    turns = turns_of(Session(), TOOLS, work)
    # opencode 1.18 asks again after an error inside of a Chat stream, when it has run the calls
    # that were whole before the cut.  It ends at an error inside of a Messages stream.
    is_cut = protocol == "openai-chat"
    last = play(dialect, turns, command, settings, work, is_cut=is_cut)
    check_work(work, last, repeats=is_cut)
