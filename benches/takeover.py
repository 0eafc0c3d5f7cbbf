"""CPU that the replacement of a hand-written assembler saves, over HTTP on loopback.

In: nothing.  Out: CPU for each event of two programs, as they were written by hand, with the client
accelerated, and with `deltafold.stream`; the table of a document; whether the bounds hold.

Laws: the server is another process. The three forms of a program take turns, and the first round is
not counted. A figure is the minimum of the rounds. Every run of a form gives the same answer, or
the measurement fails. The garbage collector skips imported objects.

    python benches/takeover.py --docs docs/migrate/hand-written.md
"""

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import anthropic
import openai

from deltafold.compat import anthropic as faster_anthropic
from deltafold.compat import openai as faster_openai
from deltafold.testing import Recording, ReplayServer
from measured_parts import rewrite
from results import machine
from takeover_answers import DIALECTS, EVENTS, body, expected
from takeover_programs import PROGRAMS, Open, Program, opening

ROUNDS: Final = 9
FORMS: Final = ("by hand", "`accelerate`", "`stream`")


class Bound(NamedTuple):
    """Lowest ratios of the CPU of the loop to that of its two replacements."""

    accelerated: float
    streamed: float


# Ratios of two public projects whose loops read as these do, measured in the same way: agno, which
# makes objects of its own, and gptme. Both read Chat Completions.
BOUNDS: Final = {
    ("an object of its own for each chunk", "openai-chat"): Bound(156 / 32, 156 / 13.5),
    ("lean", "openai-chat"): Bound(130 / 27, 130 / 11.0),
}


class Form(NamedTuple):
    """A program with the client that it reads."""

    program: Program
    open: Open


def serve() -> None:
    """Serve the bodies until the standard input ends."""
    recordings = {
        "/v1/chat/completions": Recording.of_events(body("openai-chat")),
        "/v1/messages": Recording.of_events(body("anthropic-messages")),
    }
    with ReplayServer(recordings) as server:
        print(server.url, flush=True)
        sys.stdin.read()


@contextmanager
def served() -> Generator[str]:
    """Run the server in another process, and yield its address."""
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if server.stdout is None:
        raise AssertionError
    try:
        yield server.stdout.readline().strip()
    finally:
        server.communicate()


def clients_of(dialect: str, url: str) -> tuple[Any, Any]:
    """Return a client of the SDK, and an accelerated one."""
    if dialect == "openai-chat":
        chat = [openai.OpenAI(base_url=f"{url}/v1", api_key="key") for _ in range(2)]
        return chat[0], faster_openai.accelerate(chat[1])
    claude = [anthropic.Anthropic(base_url=url, api_key="key") for _ in range(2)]
    return claude[0], faster_anthropic.accelerate(claude[1])


def forms_of(name: str, dialect: str, url: str) -> list[Form]:
    """Return the three forms of a program."""
    plain, accelerated = (opening(dialect, client) for client in clients_of(dialect, url))
    by_hand, by_stream = PROGRAMS[name].by_hand[dialect], PROGRAMS[name].by_stream
    return [Form(by_hand, plain), Form(by_hand, accelerated), Form(by_stream, plain)]


def cpu_of(form: Form, dialect: str) -> float:
    """Return the CPU of one answer, in microseconds for each event."""
    shown: list[str] = []
    gc.collect()
    gc.freeze()
    begin = time.process_time()
    answer = form.program(form.open(), shown.append)
    spent = time.process_time() - begin
    gc.unfreeze()
    if answer != expected(dialect) or "".join(shown) != answer.text:
        raise AssertionError(f"{dialect}: another answer: {answer!r}"[:500])
    return spent / EVENTS * 1e6


def measured(name: str, dialect: str, url: str, rounds: int) -> list[float]:
    """Measure the forms of a program by turns, and return the minimum of each."""
    forms = forms_of(name, dialect, url)
    costs: list[list[float]] = [[] for _ in forms]
    for done in range(rounds + 1):
        for form, found in zip(forms, costs, strict=True):
            cost = cpu_of(form, dialect)
            if done:
                found.append(cost)
    return [min(found) for found in costs]


def verdicts(name: str, dialect: str, costs: list[float]) -> Iterator[str]:
    """Yield whether the bounds of a program hold."""
    by_hand, *others = costs
    for form, bound, cost in zip(FORMS[1:], BOUNDS.get((name, dialect), ()), others, strict=False):
        ratio = by_hand / cost
        verdict = "holds" if ratio >= bound else "missed"
        yield f"{name}, {dialect}, {form}: {ratio:.1f} times, at least {bound:.1f}: {verdict}"


def main() -> int:
    """Measure, print the table, and write it into a document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--docs", type=Path)
    chosen = parser.parse_args()
    if chosen.serve:
        serve()
        return 0
    lines = [
        f"| CPU of {EVENTS:,} events, µs an event | protocol | {' | '.join(FORMS)} |",
        "|---|---|---:|---:|---:|",
    ]
    found: list[str] = []
    with served() as url:
        for name in PROGRAMS:
            for dialect in DIALECTS:
                costs = measured(name, dialect, url, chosen.rounds)
                cells = [f"{cost:.1f} ({costs[0] / cost:.1f}x)" for cost in costs]
                lines.append(f"| {name} | {dialect} | {' | '.join(cells)} |")
                found.extend(verdicts(name, dialect, costs))
    versions = ", ".join(f"{name} {version(name)}" for name in ("openai", "anthropic"))
    table = "\n".join(
        [*lines, "", f"{machine()}, {versions}. The fastest of {chosen.rounds} rounds."]
    )
    print(table, *found, sep="\n")
    if chosen.docs is not None:
        rewrite(chosen.docs, "takeover", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
