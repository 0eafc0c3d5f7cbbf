"""Markers in every member that a provider may send, and what the library makes of them.

    python tools/markers.py                       checks against the installed SDKs
    python tools/markers.py --losses FILE         writes each lost member that no row accepts
    python tools/markers.py --show PATH           shows the events that lose a path, and their results

In: the types of the official SDKs.  Out: the counts, and each difference.
"""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

from markers_accepted import NOISE, settle
from markers_judge import KINDS
from markers_losses import LOSSES
from markers_runs import OUTCOMES, lawful_events, run_all
from markers_sdks import ROOTS, installed
from markers_values import Values


def show(pattern: str) -> int:
    """Print the events that have a path, with their results."""
    wanted = re.compile(pattern)
    for root in ROOTS:
        if root.sdk not in installed():
            continue
        for _, made in lawful_events(root, Values()):
            sent = made.sent()
            markers = [each for each, path in sent.markers.items() if wanted.fullmatch(path)]
            is_compared = any(wanted.fullmatch(path) for path in sent.words)
            if not markers and not is_compared:
                continue
            result = json.dumps(OUTCOMES[root.form](root.protocol, made.value))
            if is_compared or any(marker not in result for marker in markers):
                print(f"{root.sdk} {root.protocol} {json.dumps(made.value)}\n  -> {result}")
    return 0


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description="Puts markers into all that SDKs know.")
    parser.add_argument("--losses", type=Path, help="write the findings that no row accepts")
    parser.add_argument("--show", metavar="PATH", help="show the events that lose a path")
    arguments = parser.parse_args()
    if arguments.show:
        return show(arguments.show)
    here = installed()
    runs = run_all(root for root in ROOTS if root.sdk in here)
    findings = {finding for run in runs for finding in run.findings if finding.kind in KINDS}
    settled = settle(findings, [*NOISE, *LOSSES], is_newest=False)
    print(Counter(f"{each.sdk} {each.protocol} {each.kind}" for each in settled.new))
    for row in settled.stale:
        print("stale", row.protocol, row.path)
    if arguments.losses:
        lines = [" | ".join((f.kind, f.sdk, f.protocol, f.path, f.seen)).replace("\n", " ") for f in settled.new]
        arguments.losses.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if settled.new or settled.stale else 0


if __name__ == "__main__":
    sys.exit(main())
