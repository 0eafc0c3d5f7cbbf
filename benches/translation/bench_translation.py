"""CPU of the translation of an agent's request, beside other packages and in a call of the gateway.

    bench_translation.py --docs docs/requests.md     rewrites the table of the document

In: the ways of `ways.py`.  Out: a table, and whether the bounds hold.

Laws: each way runs in a process of its own, because what a package imports would burden the others.
The ways run by turns, and a figure is the minimum of the rounds.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeAlias

from agent_sessions import TOOLS, Session
from ways import CHAT, SESSIONS, TURNS, WAYS

HERE: Final = Path(__file__).parent
sys.path.append(str(HERE.parent))
from measured_parts import rewrite  # noqa: E402 - of the folder above
from results import machine  # noqa: E402 - of the folder above

ROUNDS: Final = 3
OURS: Final = "chat-messages"
PEERS: Final = ("litellm", "llm-rosetta", "martian-linguafranca")
PARTS: Final = (*PEERS, "orjson")
OF_OURS: Final = (
    ("Chat to Messages", OURS, "cold"),
    ("the same sessions one turn later", OURS, "later"),
    ("each session with tools of its own", "chat-messages-new-tools", "cold"),
    ("by the parser and the renderer alone", "rules", "cold"),
    ("as a whole call of the gateway", "gateway", "cold"),
    ("as a whole call of the gateway, one turn later", "gateway", "later"),
    ("Chat to Chat", "chat-chat", "cold"),
    ("Chat to Gemini", "chat-gemini", "cold"),
    ("Messages to Chat", "messages-chat", "cold"),
    ("Responses to Messages", "responses-messages", "cold"),
)
"""Rows of the table: name, way, and which of its figures."""
FLOOR: Final = "`orjson.loads` and `orjson.dumps` of the Chat body"

SHARE_OF_PEERS: Final = 0.5
"""Largest share of the time of the fastest peer that Chat to Messages may take."""
TIMES_OF_OURS: Final = 1.3
"""A call of the gateway takes at most this times Chat to Messages, and its HTTP objects."""
HTTP_MILLISECONDS: Final = 1.0

Figures: TypeAlias = dict[str, dict[str, list[float]]]
"""Milliseconds for each size, by way and by "cold" or "later"."""


def run(way: str) -> dict[str, list[float]]:
    """Measure a way in a process of its own."""
    command = [sys.executable, "-W", "ignore", str(HERE / "ways.py"), way]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(rounds: int) -> Figures:
    """Measure all ways by turns, and return the minimum of the rounds."""
    runs: dict[str, list[dict[str, list[float]]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, found in runs.items():
            found.append(run(way))
    return {
        way: {
            name: [min(times) for times in zip(*(each[name] for each in found), strict=True)]
            for name in ("cold", "later")
        }
        for way, found in runs.items()
    }


def fastest_peer(figures: Mapping[str, Mapping[str, Sequence[float]]], size: int) -> str:
    """Return the peer that takes the least time for a size."""
    return min(PEERS, key=lambda peer: figures[peer]["cold"][size])


def ratios(figures: Figures) -> Iterator[str]:
    """Yield the rows of ratios."""
    ours = figures[OURS]["cold"]
    peers = [fastest_peer(figures, size) for size in range(len(TURNS))]
    to_peers = [
        f"{cost / figures[peer]['cold'][size]:.2f} ({peer})"
        for size, (cost, peer) in enumerate(zip(ours, peers, strict=True))
    ]
    yield f"| ratio: Chat to Messages to the fastest peer | {' | '.join(to_peers)} |"
    calls = zip(figures["gateway"]["cold"], ours, strict=True)
    to_ours = [f"{call / cost:.2f}" for call, cost in calls]
    yield f"| ratio: the gateway's call to Chat to Messages | {' | '.join(to_ours)} |"


def table(figures: Figures, rounds: int) -> str:
    """Return the table of all ways."""
    sizes = [len(Session(1000 * turns, turns).body(CHAT)) / 1000 for turns in TURNS]
    heads = [
        f"{turns} turn{'s' if turns > 1 else ''}, {size:.0f} KB"
        for turns, size in zip(TURNS, sizes, strict=True)
    ]
    rows = [
        *OF_OURS,
        *((f"{peer}, Chat to Messages", peer, "cold") for peer in PEERS),
        # The one peer that stores what it has converted.
        ("llm-rosetta, the same sessions one turn later", "llm-rosetta", "later"),
        (FLOOR, "orjson", "cold"),
    ]
    lines = [f"| CPU of a request, ms | {' | '.join(heads)} |", f"|---{'|---:' * len(heads)}|"]
    for name, way, which in rows:
        cells = (f"{cost:.2f}" for cost in figures[way][which])
        lines.append(f"| {name} | {' | '.join(cells)} |")
    versions = ", ".join(f"{name} {version(name)}" for name in PARTS)
    about = (
        f"{machine()}, {versions}. {TOOLS} tools. The fastest of {rounds} rounds of {SESSIONS}"
        " sessions."
    )
    return "\n".join([*lines, *ratios(figures), "", about])


def verdicts(figures: Figures) -> Iterator[str]:
    """Yield whether the bounds hold."""
    for size, turns in enumerate(TURNS):
        ours, call = figures[OURS]["cold"][size], figures["gateway"]["cold"][size]
        peer = fastest_peer(figures, size)
        bounds = (
            (f"of {peer}", ours, SHARE_OF_PEERS * figures[peer]["cold"][size]),
            ("of the gateway", call, TIMES_OF_OURS * ours + HTTP_MILLISECONDS),
        )
        for name, cost, bound in bounds:
            verdict = "holds" if cost <= bound else "missed"
            yield f"turns: {turns}, bound {name}: {cost:.2f} ms, at most {bound:.2f} ms: {verdict}"


def main() -> None:
    """Measure, print the table, and write it into a document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--docs", type=Path)
    chosen = parser.parse_args()
    figures = measured(chosen.rounds)
    text = table(figures, chosen.rounds)
    print(text, *verdicts(figures), sep="\n")
    if chosen.docs is not None:
        rewrite(chosen.docs, "requests", text)


if __name__ == "__main__":
    main()
