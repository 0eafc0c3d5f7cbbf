"""Markers in every member that a provider may send, and what the library makes of them.

    python tools/markers.py                    checks against the installed SDKs
    python tools/markers.py --newest           checks against the newest SDKs, and their models
    python tools/markers.py --docs FILE        writes the report
    python tools/markers.py --losses FILE      writes each member that is lost
    python tools/markers.py --show PATTERN     shows the events that lose a path, and their results

In: the types of the official SDKs.  Out: the counts, each difference that no row accepts, each row
that accepts nothing, and each class of which the walk left an alternative out.

Law: any of these fails.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markers_accepted import ACCEPTED, Row, Settled, settle
from markers_count import not_made
from markers_judge import KINDS
from markers_losses import LOSSES
from markers_report import missing_models, report
from markers_runs import OUTCOMES, Run, lawful_events, run_all
from markers_sdks import PACKAGES, ROOTS, Root, installed
from markers_values import Values


class Check(NamedTuple):
    """The result of a check.

    Attributes:
        runs: the runs, one for each type.
        settled: the findings by the rows that accept them.
        left_out: classes of which the walk left an alternative out.
    """

    runs: list[Run]
    settled: Settled
    left_out: list[str]

    @property
    def problems(self) -> list[str]:
        """What fails the check."""
        return [
            *(f"{_line(found)}" for found in self.settled.new),
            *(f"stale row: {row.protocol} {row.path}" for row in self.settled.stale),
            *(f"left out by the walk: {name}" for name in self.left_out),
        ]


def check(roots: Sequence[Root], rows: Sequence[Row]) -> Check:
    """Walk types and compare the findings with the rows."""
    runs = run_all(roots)
    findings = {found for run in runs for found in run.findings if found.kind in KINDS}
    walked = {(root.sdk, root.protocol) for root in roots}
    left_out = [name for run in runs for name in not_made(run.root, run.made)]
    return Check(runs, settle(findings, rows, walked), left_out)


def installed_roots() -> list[Root]:
    """Return the types of the packages that are installed."""
    here = installed()
    return [root for root in ROOTS if root.sdk in here]


def _line(found: Sequence[str]) -> str:
    return " | ".join(" ".join(cell.split()) for cell in found)


def show(pattern: str) -> None:
    """Print the events that lose a path, with their results."""
    wanted = re.compile(pattern)
    for root in installed_roots():
        for _, made in lawful_events(root, Values()):
            sent = made.sent()
            markers = [each for each, path in sent.markers.items() if wanted.fullmatch(path)]
            is_compared = any(wanted.fullmatch(path) for path in sent.words)
            if not markers and not is_compared:
                continue
            result = json.dumps(OUTCOMES[root.form](root.protocol, made.value))
            if is_compared or any(marker not in result for marker in markers):
                print(f"{root.sdk} {root.protocol} {json.dumps(made.value)}\n  -> {result}")


def newest() -> int:
    """Run the check with the newest SDKs, above the pinned environment."""
    with tempfile.TemporaryDirectory() as folder:
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        packages = (*PACKAGES, "xai-sdk")
        command = (sys.executable, *pip, "--upgrade", "--target", folder, *packages)
        subprocess.run(command, check=True)
        path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        command = (sys.executable, __file__, "--models", *sys.argv[1:])
        again = [argument for argument in command if argument != "--newest"]
        return subprocess.run(again, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


def _models() -> list[str]:
    from model_sources import literal_names  # noqa: PLC0415 - imports packages of the table alone

    return missing_models((name.written, name.key) for name in literal_names())


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description="Puts a marker into each member that SDKs know.")
    parser.add_argument("--newest", action="store_true", help="check against the newest SDKs")
    parser.add_argument("--models", action="store_true", help="compare the names of models too")
    parser.add_argument("--docs", type=Path, help="write the report to this file")
    parser.add_argument("--losses", type=Path, help="write the members that are lost to this file")
    parser.add_argument("--show", metavar="PATTERN", help="show the events that lose a path")
    arguments = parser.parse_args()
    if arguments.newest:
        return newest()
    if arguments.show:
        show(arguments.show)
        return 0
    done = check(installed_roots(), (*ACCEPTED, *LOSSES))
    models = _models() if arguments.models else None
    text = report(done.runs, done.settled, installed(), models)
    if arguments.docs:
        arguments.docs.write_text(text, encoding="utf-8")
    if arguments.losses:
        findings = {found for run in done.runs for found in run.findings if found.kind in KINDS}
        lost = [each for each in sorted(findings) if not any(row.accepts(each) for row in ACCEPTED)]
        arguments.losses.write_text("".join(f"{_line(each)}\n" for each in lost), encoding="utf-8")
    sys.stdout.write(text)
    for problem in done.problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if done.problems else 0


if __name__ == "__main__":
    sys.exit(main())
