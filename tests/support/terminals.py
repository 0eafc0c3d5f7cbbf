"""Commands on a pseudo terminal.

In: the arguments of the `deltafold` command.  Out: what the terminal gets.
"""

import os
import pty
import subprocess
import sys


def on_a_terminal(arguments: list[str], body: bytes = b"") -> str:
    """Run the command on a pseudo terminal, and return its output."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "60", "LINES": "10"}
    with subprocess.Popen(
        [sys.executable, "-m", "deltafold", *arguments],
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        assert process.stdin is not None
        process.stdin.write(body)
        process.stdin.close()
        written = b""
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # Linux: the other end is closed
                break
            if not data:
                break
            written += data
    os.close(ours)
    return written.decode()
