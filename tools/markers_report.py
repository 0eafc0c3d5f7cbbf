"""Report about the markers: counts, accepted differences, losses, and names of models.

In: the runs and the settled findings.  Out: the page `docs/drift.md`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from markers_accepted import Row, Settled
from markers_judge import LOST, UNKNOWN_EVENT, WARNED, WRONG_PLACE
from markers_runs import Run

_TABLE: Final = Path(__file__).parents[1] / "python/deltafold/dialects/model_table.json"
_HEAD: Final = """\
# Members of the official SDKs

`make check NAME=drift` measures and writes this document. It walks the types of the
newest official SDKs: the events of a stream, whole answers, and requests. It makes every
alternative of every union, every word of every list and both booleans, with a marker
of its own in each member, and puts each event into the smallest lawful stream of its
protocol. A member is kept if its marker is found in the folded message, in its usage,
in its details or in its error. Words and booleans are kept if another value gives another
message. A request is parsed and rendered in its own dialect. A second count of the
alternatives guards the walk. `make test` does the same with the pinned SDKs
(`tests/dialects/test_markers.py`).

A member that is neither kept nor named by a warning must have a row below. A row without
such a member fails too.
"""


def report(
    runs: Sequence[Run],
    settled: Settled,
    versions: Mapping[str, str],
    missing_models: Sequence[str] | None,
) -> str:
    """Return the page."""
    blocks = [_HEAD, _counts(runs, settled, versions)]
    blocks.append(
        "## Accepted differences\n\n"
        "Members that are not kept, or stand elsewhere, without a loss.\n\n"
        + _rows(settled.accepted)
    )
    blocks.append(
        "## Losses\n\nMembers that are lost without a warning.\n\n" + _rows(settled.losses)
        if settled.losses
        else "## Losses\n\nNone."
    )
    if missing_models is not None:
        names = ", ".join(f"`{name}`" for name in missing_models) or "none"
        blocks.append(
            f"## Names of models\n\nNames in the SDKs' literals that the table of models lacks "
            f"({len(missing_models)}): {names}."
        )
    return "\n\n".join(block.strip() for block in blocks) + "\n"


class _Counted(NamedTuple):
    """Numbers of one row of the first table."""

    events: int
    alternatives: int
    members: int
    markers: int
    generic: int
    warned: int
    lost: int
    misplaced: int
    unknown: int


def _counts(runs: Sequence[Run], settled: Settled, versions: Mapping[str, str]) -> str:
    head = (
        "| SDK | version | protocol | values | events | alternatives | members | markers | "
        "kept without a meaning | named by a warning | not kept | elsewhere | unknown events |"
    )
    lines = [head, "|---|---|---|---|" + "---:|" * 9]
    total = [0] * len(_Counted._fields)
    for run in runs:
        counted = _counted(run)
        total = [before + more for before, more in zip(total, counted, strict=True)]
        named = (run.root.sdk, versions[run.root.sdk], run.root.protocol, run.root.form)
        lines.append(f"| {' | '.join(named)} | {' | '.join(map(_number, counted))} |")
    lines.append(f"| all | | | | {' | '.join(map(_number, total))} |")
    accepted, lost = sum(settled.accepted.values()), sum(settled.losses.values())
    lines += ["", f"{_number(accepted)} differences are accepted, {_number(lost)} are losses."]
    return "\n".join(lines)


def _counted(run: Run) -> _Counted:
    def paths(*kinds: str) -> int:
        return len({found.path for found in run.findings if found.kind in kinds})

    return _Counted(
        run.events,
        len(run.made),
        len(run.paths),
        run.markers,
        len(run.generic),
        paths(WARNED),
        paths(LOST),
        paths(WRONG_PLACE),
        paths(UNKNOWN_EVENT),
    )


def _number(value: int) -> str:
    return f"{value:,}"


def _rows(counts: Mapping[Row, int]) -> str:
    lines = ["| SDK | protocol | members | number | reason |", "|---|---|---|---:|---|"]
    for row, count in counts.items():
        cells = (_pattern(row.sdk), _pattern(row.protocol), _pattern(row.path), _number(count))
        lines.append(f"| {' | '.join(cells)} | {row.reason} |")
    return "\n".join(lines)


def _pattern(pattern: str) -> str:
    return "any" if pattern == ".*" else "`" + pattern.replace("|", "\\|") + "`"


def missing_models(names: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names that the table of models lacks, given as name and canonical name.

    A snapshot, the part of a canonical name after `@`, has the row of its alias.
    """
    known = json.loads(_TABLE.read_bytes())["models"]
    lacking = {written for written, key in names if not {key, key.partition("@")[0]} & known.keys()}
    return sorted(lacking)
