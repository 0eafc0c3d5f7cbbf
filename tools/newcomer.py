"""The tasks of newcomers, by the text of README.md and docs/ alone.

In: the wheel in `dist/`, and the pages.  Out: for each task the seconds of its steps; exit code 1
where a task fails.

Laws: a program is the blocks of README.md and docs/ below the headings that the task names, without
a change and in their order. It runs in an empty folder, in a fresh environment with the wheel and
the packages that the page names, against a provider on loopback. A traceback, a warning, anything
else on standard error, and an answer that differs from the provider's fail the task. With
`--without-each` every task runs again without each one of its blocks, and has to fail.

usage: tools/newcomer.py [TASK ...] [--without-each]    from the environment of `make newcomer`
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from documentation import Block, blocks_of
from newcomer_tasks import TASKS, FailedTaskError, Provider, Run, Task

ROOT: Final = Path(__file__).resolve().parent.parent
# A newcomer has no packages in the cache of pip.
FRESH_PIP: Final = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tasks; returns the exit code."""
    parser = argparse.ArgumentParser(description="Do what newcomers do, by the documentation.")
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(task.name for task in TASKS)}")
    parser.add_argument("--without-each", action="store_true", help="each block must be needed")
    given = parser.parse_args(arguments)
    chosen = [task for task in TASKS if not given.tasks or task.name in given.tasks]
    (wheel,) = (ROOT / "dist").glob("*.whl")
    failed = 0
    for task in chosen:
        with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
            python = environment(task, wheel, Path(folder))
            failed += not passed(task, python, blocks_of_task(task))
            if given.without_each:
                failed += sum(
                    not fails_without(task, python, block) for block in blocks_of_task(task)
                )
    print(f"{len(chosen)} tasks, {failed} failures")
    return 1 if failed else 0


def environment(task: Task, wheel: Path, folder: Path) -> Path:
    """Make a fresh environment with the wheel, and return its interpreter."""
    begun = time.perf_counter()
    place = folder / ".venv"
    subprocess.run((sys.executable, "-m", "venv", place), check=True)
    packages = [f"{wheel}[{task.extras}]" if task.extras else str(wheel), *task.packages]
    pip = (str(place / "bin" / "pip"), "install", "--quiet", *packages)
    subprocess.run(pip, env={**os.environ, **FRESH_PIP}, check=True)
    print(f"{task.name}: {time.perf_counter() - begun:.1f} s for the environment", flush=True)
    return place / "bin" / "python"


def blocks_of_task(task: Task) -> list[Block]:
    """Return the blocks of a task's program."""
    found = [
        block
        for page, section in task.parts
        for block in blocks_of(page, section=section)
        if (block.language, block.framework) == (task.language, task.framework)
        and task.having in block.code
    ]
    if not found:
        raise SystemExit(f"{task.name}: the documentation has no block for it")
    return found


def passed(task: Task, python: Path, blocks: Sequence[Block]) -> bool:
    """Run a task, and print what it took, or why it failed."""
    begun = time.perf_counter()
    try:
        attempt(task, python, blocks)
    except FailedTaskError as error:
        print(f"{task.name}: FAILED: {error}", flush=True)
        return False
    print(f"{task.name}: {time.perf_counter() - begun:.1f} s", flush=True)
    return True


def fails_without(task: Task, python: Path, block: Block) -> bool:
    """Run a task without one block; returns whether it fails, as it should."""
    place = f"{block.page}:{block.line}"
    try:
        attempt(task, python, [one for one in blocks_of_task(task) if one != block])
    except FailedTaskError as error:
        print(f"{task.name}: fails without {place}: {str(error).splitlines()[-1][:90]}", flush=True)
        return True
    print(f"{task.name}: DOES NOT NEED {place}", flush=True)
    return False


def attempt(task: Task, python: Path, blocks: Sequence[Block]) -> None:
    """Run a task once, in an empty folder.

    Raises:
        FailedTaskError: it did not do what the documentation says.
    """
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder, Provider() as provider:
        code = "\n\n".join(block.code for block in blocks)
        task.do(Run(Path(folder), python, provider, code))


if __name__ == "__main__":
    raise SystemExit(main())
