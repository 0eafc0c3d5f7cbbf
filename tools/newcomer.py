"""Timing of the first use: from an empty folder to a streamed answer.

In: the wheel in `dist/`, the first program of README.md, and a recorded answer.  Out: each command
with its seconds, and the answer that the program printed.

Laws: the folder is empty before the first command, and pip has no cache. The program is the text of
README.md, without a change; only the variables of the client name the address and the key. The
server is in this process and the program in another one. The run fails unless the program prints
the recorded text.

usage: tools/newcomer.py [--extra NAME]    from the environment of `make check NAME=newcomer`
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from deltafold import fold
from deltafold.testing import Recording, ReplayServer

ROOT: Final = Path(__file__).resolve().parent.parent
README: Final = ROOT / "README.md"
HEADING: Final = "## Change two lines"
ANSWER: Final = ROOT / "tests/fixtures/streams/openai-chat/text/wire.sse"
PROGRAM: Final = "first.py"
# A newcomer has no packages in the cache of pip.
FRESH_PIP: Final = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the commands of a newcomer; returns the exit code."""
    parser = argparse.ArgumentParser(description="Time the way to the first streamed answer.")
    parser.add_argument("--extra", default="openai", help="extra that installs the client")
    extra = parser.parse_args(arguments).extra
    (wheel,) = (ROOT / "dist").glob("*.whl")
    recording = Recording.read(ANSWER)
    expected = fold(ANSWER.read_bytes(), "openai-chat").text
    with (
        tempfile.TemporaryDirectory(prefix="newcomer-") as folder,
        ReplayServer({"/v1/chat/completions": recording}) as server,
    ):
        place = Path(folder)
        (place / PROGRAM).write_text(first_program(README.read_text(encoding="utf-8")))
        variables = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "unused"}
        total = run((sys.executable, "-m", "venv", ".venv"), place)[0]
        total += run((".venv/bin/pip", "install", "--quiet", f"{wheel}[{extra}]"), place)[0]
        seconds, printed = run((".venv/bin/python", PROGRAM), place, variables)
    total += seconds
    print(f"{total:6.1f} s  in total, for an answer of {len(printed)} characters: {printed!r}")
    if printed != expected:
        print(f"the recorded text is {expected!r}", file=sys.stderr)
        return 1
    return 0


def first_program(readme: str) -> str:
    """Return the first block of Python below the heading."""
    section = readme.partition(f"{HEADING}\n")[2]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    if found is None:
        raise SystemExit(f"README.md has no program below {HEADING!r}")
    return found[1]


def run(
    command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None
) -> tuple[float, str]:
    """Run a command and print its seconds; return the seconds and the standard output."""
    start = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **FRESH_PIP, **(variables or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    print(f"{seconds:6.1f} s  {shown(command)}", flush=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed with status {done.returncode}")
    return seconds, done.stdout


def shown(command: Sequence[str]) -> str:
    """Return a command as a newcomer types it: programs and wheels without their folders."""
    names = (Path(word).name if word.startswith("/") else word for word in command)
    return shlex.join(names)


if __name__ == "__main__":
    raise SystemExit(main())
