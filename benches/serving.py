"""The processes of the measurements: their command, their lines, the loopback server."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

COMMAND: Final = (sys.executable, str(Path(__file__).parent / "processes.py"))


def say(found: object) -> None:
    """Print a result as a line of JSON, for `line` of the process that waits for it."""
    print(json.dumps(found), flush=True)


def line(process: subprocess.Popen[str]) -> object:
    """Return the next line that a process prints, from JSON.

    Raises:
        RuntimeError: the process has ended.
    """
    said = cast("IO[str]", process.stdout).readline()
    if not said:
        raise RuntimeError(f"{process.args!r} ended with {process.wait()}")
    return json.loads(said)


@contextmanager
def serving(*, sleeps: bool = True) -> Generator[int]:
    """Run the loopback server, and yield its port; the arguments are those of `sending.serve`."""
    words = ["serve"] if sleeps else ["serve", "awake"]
    server = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True)
    try:
        yield cast("int", line(server))
    finally:
        server.terminate()
        server.communicate()
