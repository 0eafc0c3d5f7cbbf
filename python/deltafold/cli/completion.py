"""`deltafold completion`: the script that completes the command in a shell.

In: the name of a shell.  Out: its script, which shtab derives from the parser.
"""

import argparse

from deltafold.cli.exits import EXIT_DONE, EXIT_USAGE, complain

SHELLS = ("bash", "zsh", "tcsh")


def print_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the script of a shell; returns the exit code."""
    try:
        import shtab  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        complain("shell completion needs shtab: pip install 'deltafold[cli]'")
        return EXIT_USAGE
    print(shtab.complete(parser, shell))
    return EXIT_DONE
