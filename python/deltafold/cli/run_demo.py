"""`deltafold demo`: the demonstration, and a recording to try the other commands with.

In: the recordings of the package.  Out: what `demo/show.py` prints, or a file.

Law: the packages of the extra are imported only when the demonstration runs.
"""

from pathlib import Path

from deltafold.cli.demo.scenes import CUT
from deltafold.cli.exits import EXIT_DONE, EXIT_USAGE, complain
from deltafold.cli.screen import say


def run_demo() -> int:
    """Run the demonstration; returns the exit code."""
    try:
        from deltafold.cli.demo import show  # noqa: PLC0415 - it imports the extra's packages
    except ModuleNotFoundError as missing:
        complain(f'{missing.name} is not installed: pip install "deltafold[demo]"')
        return EXIT_USAGE
    return show.run()


def save_recording(file: str) -> int:
    """Write the recording of a stream that broke off to a new file; returns the exit code."""
    try:
        with Path(file).open("xb") as written:
            written.write(CUT.body)
    except FileExistsError:
        complain(f"{file} exists: name a new file")
        return EXIT_USAGE
    except OSError as problem:
        complain(problem)
        return EXIT_USAGE
    say(
        f"{file}: a stream of anthropic-messages that broke off inside of a tool call; "
        f"try: deltafold fold {file}, deltafold inspect {file}"
    )
    return EXIT_DONE
