"""aider, which speaks Chat, on upstreams of other protocols.

It has no tools: it applies the edits that an answer shows, and asks again after one that does not
fit. A session has thinking, edits that do not fit, and a stream that is cut.
"""

import sys
from pathlib import Path
from typing import Final

import pytest
from scripted import RUNS, TURNS, Session, play

from deltafold import Message
from deltafold.message.parts import TextPart, ThinkingPart
from recorded_upstreams import UPSTREAMS

AIDER: Final = Path(sys.prefix).parent / ".venv-aider" / "bin" / "aider"
FILE: Final = "log.txt"
EDIT: Final = """{file}
```
<<<<<<< SEARCH
{old}
=======
{old}
{new}
>>>>>>> REPLACE
```
"""


def turns_of(session: Session) -> list[Message]:
    """Return answers that append lines to a file, and after each two one that does not fit."""
    turns: list[Message] = []
    line = "begin"
    for number in range(TURNS):
        fits = number % 4 != 1
        new = f"line {number}"
        edit = EDIT.format(file=FILE, old=line if fits else "no such line", new=new)
        thought = ThinkingPart(text=f"Turn {number}.")
        turns.append(session.message(thought, TextPart(text=f"An edit:\n\n{edit}")))
        line = new if fits else line
    return turns


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_aider_finishes_a_session_of_thirty_turns(dialect: str, run: int, tmp_path: Path) -> None:
    work = tmp_path / f"work-{run}"
    work.mkdir()
    (work / FILE).write_text("begin\n")

    def settings(url: str) -> dict[str, str]:
        # Prices come with its package LiteLLM instead of from the internet.
        return {
            "HOME": str(tmp_path),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "OPENAI_API_BASE": f"{url}/v1",
            "OPENAI_API_KEY": "unused",
        }

    off = ["git", "pretty", "fancy-input", "check-update", "show-model-warnings", "auto-lint"]
    off += ["show-release-notes", "suggest-shell-commands", "detect-urls"]
    command: list[str | Path] = [AIDER, "--model", "openai/any-name", "--edit-format", "diff"]
    command += ["--yes-always", "--analytics-disable", "--map-tokens", "0"]
    command += ["--max-chat-history-tokens", "1000000", *(f"--no-{name}" for name in off), FILE]
    # It asks by itself after an edit that did not fit.
    said = [f"Go on with {number}.\n" for number in range(TURNS + 1) if number % 4 != 2]
    last = play(dialect, turns_of(Session()), command, settings, work, typed="".join(said))
    lines = [f"line {number}" for number in range(TURNS) if number % 4 != 1]
    assert (work / FILE).read_text().splitlines() == ["begin", *lines]
    assert last.count("failed to match") >= TURNS // 4
