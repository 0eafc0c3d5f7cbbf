"""`tools/quietly.sh`: the output of a command, only where it fails."""

import subprocess
from pathlib import Path
from typing import Final

QUIETLY: Final = Path(__file__).parents[2] / "tools" / "quietly.sh"


def quietly(script: str) -> "subprocess.CompletedProcess[str]":
    command = [str(QUIETLY), "/bin/sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_command_that_succeeds_says_nothing() -> None:
    ran = quietly("echo compiling; echo warning >&2")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_command_that_fails_says_everything_and_keeps_its_code() -> None:
    ran = quietly("echo compiling; echo error >&2; exit 7")
    assert (ran.returncode, ran.stdout) == (7, "")
    assert ran.stderr.splitlines()[-2:] == ["compiling", "error"]
    assert "/bin/sh -c" in ran.stderr
