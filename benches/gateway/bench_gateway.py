"""The gateway beside a bare forwarder: CPU an event and a call, latency, and memory of a stream.

    bench_gateway.py --docs docs/gateway.md [--part peers]     rewrites the tables of the document

In: an application, and its upstream and clients, on this machine.  Out: a table.

Laws: forwarder and gateway run by turns, on the same server, client and stream. The application has
a core to itself; upstream and clients share one process on another core. CPU is that of the
application alone, while all streams run. What a stream costs before and after its events is the
column of calls.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO, Final, cast

from other_gateways import PEERS, started_peer, version_of

HERE: Final = Path(__file__).parent
sys.path.append(str(HERE.parent))
from chart import bars  # noqa: E402 - of the folder above
from measured_parts import rewrite  # noqa: E402 - of the folder above

PARTS: Final = ("forwarder", "leaving", "slow", "peers")
CHAT: Final = "/v1/chat/completions"
MESSAGES: Final = "/v1/messages"


@dataclass(frozen=True)
class Case:
    """An application, the path that is called, and the model that is asked for."""

    name: str
    app: str
    path: str
    model: str
    beside: str | None = None


CASES: Final = (
    Case("forwarder, Chat", "forward", CHAT, "chat"),
    Case("forwarder, Messages", "forward", MESSAGES, "messages"),
    Case("gateway, Chat's bytes passed", "gateway", CHAT, "chat", "forwarder, Chat"),
    Case("gateway, Chat to Messages", "gateway", MESSAGES, "chat", "forwarder, Chat"),
    Case("gateway, Messages to Chat", "gateway", CHAT, "messages", "forwarder, Messages"),
)


BURSTS: Final = (2000, 20)
"""Events of the streams in bursts whose difference is measured."""
HTTPX_SHARE: Final = 4
"""Over httpx2, one process carries about a third of the streams that it carries over aiohttp."""
SLOW_CASES: Final = (
    Case("forwarder", "forward", MESSAGES, "messages"),
    Case("gateway, bytes passed", "gateway", MESSAGES, "messages"),
    Case("gateway, Messages to Chat", "gateway", CHAT, "messages"),
)
SLOW_READERS: Final = 40
SLOW_EVENTS: Final = 100_000
"""Events of a stream whose client hardly reads: about 12 MB."""
BESIDE_SLOW_STREAMS: Final = 100
PEER_STREAMS: Final = 50
"""Streams at once beside other gateways: one core of some of them takes no more."""

BESIDE: Final = (
    ("forwarder", "forward"),
    ("deltafold", "gateway"),
    *((name, name) for name in PEERS),
)
WAYS: Final = (
    ("Chat to Chat", CHAT, "chat"),
    ("Chat to Messages", MESSAGES, "chat"),
    ("Messages to Chat", CHAT, "messages"),
)
NOT_ITS_WORK: Final = {
    ("forwarder", "Chat to Messages"): "translates nothing",
    ("forwarder", "Messages to Chat"): "translates nothing",
    ("smg", "Chat to Messages"): "translates nothing",
    ("smg", "Messages to Chat"): "translates nothing",
    ("LiteLLM proxy", "Chat to Messages"): "calls the upstream's Responses API",
}


@dataclass(frozen=True)
class Measured:
    """One run: microseconds of CPU an event and a call, of latency, and bytes of a stream."""

    event: float
    call: float
    latency: float
    memory: float


@contextmanager
def started(script: str, *arguments: object) -> Generator[subprocess.Popen[str]]:
    """Run a script of this folder, and end it."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def line(process: subprocess.Popen[str]) -> dict[str, float]:
    """Return the next line that a process prints, from JSON."""
    found = json.loads(cast("IO[str]", process.stdout).readline())
    return cast("dict[str, float]", found if isinstance(found, dict) else {"port": found})


@contextmanager
def on_core(number: int) -> Generator[None]:
    """Give a core to the processes that are started inside (Linux)."""
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        raise SystemExit("the application and its clients need a core each: this machine has one")
    os.sched_setaffinity(0, {sorted(cores)[number]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def ask(ends: subprocess.Popen[str], *asked: object) -> None:
    """Have clients started: port, path, model, streams, seconds in which they begin."""
    print(json.dumps(asked), file=cast("IO[str]", ends.stdin), flush=True)


def cpu_microseconds(process: subprocess.Popen[str]) -> float:
    """Return the CPU time of all threads of a process (Linux)."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1000


def resident_bytes(process: subprocess.Popen[str]) -> int:
    """Return the resident memory of a process (Linux)."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


@contextmanager
def serving(app: str, package: str, url: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """Run an application of this folder or another gateway; yield its process and its port."""
    if app in PEERS:
        with started_peer(app, url) as running:
            yield running
        return
    with started("apps.py", app, package, url) as process:
        yield process, int(line(process)["port"])


def measure(case: Case, package: str, streams: int, events: int, pause: int) -> Measured:
    """Run the streams of a case once."""
    with ExitStack() as running:
        with on_core(0):
            ends = running.enter_context(started("ends.py", events, pause))
        url = f"http://127.0.0.1:{int(line(ends)['port'])}"
        with on_core(1):
            app, port = running.enter_context(serving(case.app, package, url))
        time.sleep(0.5)
        ask(ends, port, case.path, case.model, 20, 0.1)
        for _ in range(3):
            line(ends)
        memory, before = resident_bytes(app), cpu_microseconds(app)
        ask(ends, port, case.path, case.model, streams, 2.0)
        begun = line(ends)
        at_begin, held = cpu_microseconds(app), resident_bytes(app)
        ended = line(ends)
        at_end = cpu_microseconds(app)
        counted = line(ends)
        whole = cpu_microseconds(app) - before
    if counted["complete"] != streams or counted["events"] != streams * events:
        raise SystemExit(f"{case.name}: streams lost events: {counted}")
    window = max(1, ended["events"] - begun["events"])
    event = (at_end - at_begin) / window
    if pause == 0:
        return Measured(whole / counted["events"], 0, counted["median"], 0)
    call = (whole - event * counted["events"]) / streams
    return Measured(event, call, counted["median"], (held - memory) / streams)


def in_bursts(case: Case, package: str) -> float:
    """Return the CPU of an event in bursts, without that of the calls."""
    many, few = (events * measure(case, package, 100, events, 0).event for events in BURSTS)
    return (many - few) / (BURSTS[0] - BURSTS[1])


def table(package: str, streams: int, rounds: int) -> str:
    """Measure all cases by turns, and return their table."""
    paced: dict[str, list[Measured]] = {case.name: [] for case in CASES}
    burst: dict[str, list[float]] = {case.name: [] for case in CASES}
    for _ in range(rounds):
        for case in CASES:
            paced[case.name].append(measure(case, package, streams, 200, 50))
            burst[case.name].append(in_bursts(case, package))
    rows = [
        f"| over {package} | µs an event | to the forwarder | a call | latency | KiB | bursts |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for case in CASES:
        call = _median(paced[case.name], "call")
        event = _median(paced[case.name], "event")
        ratio = "" if case.beside is None else f"{event / _median(paced[case.beside], 'event'):.2f}"
        cells = (
            case.name,
            f"{event:.1f}",
            ratio,
            # A process without idle time has no steady part that events could be counted in.
            f"{call:.0f}" if call > 0 else "no idle time",
            f"{_median(paced[case.name], 'latency'):.0f}",
            f"{_median(paced[case.name], 'memory') / 1024:.0f}",
            f"{statistics.median(burst[case.name]):.2f}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def beside(package: str, rounds: int) -> tuple[str, dict[str, tuple[float | None, float | None]]]:
    """Measure other gateways by turns with ours; return the table, and the rows of the chart."""
    found: dict[tuple[str, str], list[Measured]] = {}
    for _ in range(rounds):
        for name, app in BESIDE:
            for way, path, model in WAYS:
                if (name, way) not in NOT_ITS_WORK:
                    case = Case(name, app, path, model)
                    runs = found.setdefault((name, way), [])
                    runs.append(measure(case, package, PEER_STREAMS, 200, 50))
    rows = [
        f"| µs of CPU an event, of latency | {' | '.join(way for way, _, _ in WAYS)} |",
        "|---|---:|---:|---:|",
    ]
    for name, _ in BESIDE:
        cells = [f"{name} {version_of(name)}" if name in PEERS else name]
        for way, _, _ in WAYS:
            if measured := found.get((name, way)):
                cells.append(
                    f"{_median(measured, 'event'):.1f}, {_median(measured, 'latency'):.0f}"
                )
            else:
                cells.append(NOT_ITS_WORK[name, way])
        rows.append(f"| {' | '.join(cells)} |")
    charted = {
        name: (_event(found, name, "Chat to Chat"), _event(found, name, "Chat to Messages"))
        for name, _ in (BESIDE[1], BESIDE[0], *BESIDE[2:])
    }
    return "\n".join(rows), charted


def _event(found: Mapping[tuple[str, str], list[Measured]], name: str, way: str) -> float | None:
    runs = found.get((name, way))
    return None if runs is None else _median(runs, "event")


def leaving(package: str, streams: int) -> str:
    """Run many streams whose clients leave every third one, and count memory and open files."""
    events = 20
    rows: list[str] = []
    for case in CASES[2:]:
        with started("upstream.py", events, 2) as upstream:
            url = f"http://127.0.0.1:{int(line(upstream)['port'])}"
            with started("apps.py", case.app, package, url) as app:
                port = int(line(app)["port"])
                clients = (port, case.path, case.model)
                with started("leaving.py", *clients, streams // 10, 200, events) as warming:
                    line(warming)
                time.sleep(2)
                before, open_before = resident_bytes(app), open_files(app)
                with started("leaving.py", *clients, streams, 200, events) as running:
                    found = line(running)
                time.sleep(2)
                grown = (resident_bytes(app) - before) / 2**20
                files = open_files(app) - open_before
        if found["lost"] or found["complete"] + found["left"] != streams:
            raise SystemExit(f"{case.name}: streams were lost: {found}")
        cells = (case.name, f"{found['complete']:,.0f}", f"{found['left']:,.0f}")
        rows.append(f"| {' | '.join(cells)} | {grown:+.1f} | {files:+d} |")
    head = f"| over {package} | complete | left by the client | MiB more | more open files |"
    return "\n".join([head, "|---|---:|---:|---:|---:|", *rows])


def slow(package: str, rounds: int) -> str:
    """Measure streams alone and beside clients that hardly read."""
    rows = [
        f"| over {package} | µs an event | latency | 99 % | KiB a slow stream |",
        "|---|---:|---:|---:|---:|",
    ]
    for case, count in product(SLOW_CASES, (0, SLOW_READERS)):
        runs: list[tuple[float, float, float, float]] = []
        for _ in range(rounds):
            with started("upstream.py", 200, 50, SLOW_EVENTS) as upstream:
                url = f"http://127.0.0.1:{int(line(upstream)['port'])}"
                with serving(case.app, package, url) as (app, port):
                    with started("load.py", port, CHAT, "chat", 100, 0.5) as warming:
                        for _ in range(3):
                            line(warming)
                    runs.append(beside_slow(app, port, case, count))
        name = f"{case.name}, beside {count} slow readers" if count else case.name
        event, median, late, held = (statistics.median(run[at] for run in runs) for at in range(4))
        memory = f"{held / 1024:.0f}" if count else ""
        rows.append(f"| {name} | {event:.1f} | {median:.0f} | {late:.0f} | {memory} |")
    return "\n".join(rows)


def beside_slow(
    app: subprocess.Popen[str], port: int, case: Case, count: int
) -> tuple[float, float, float, float]:
    """Run streams beside slow ones: CPU of an event, median and late latency, bytes a slow stream.

    The first half of the slow clients is not measured: with them, the process loads code and
    reserves memory that later clients share.
    """
    asked = ("slow.py", port, case.path, case.model, count // 2)
    with ExitStack() as running:
        line(running.enter_context(started(*asked)))
        before = resident_bytes(app)
        line(running.enter_context(started(*asked)))
        held = (resident_bytes(app) - before) / max(1, count // 2)
        clients = running.enter_context(
            started("load.py", port, CHAT, "chat", BESIDE_SLOW_STREAMS, 2.0)
        )
        begun, at_begin = line(clients), cpu_microseconds(app)
        ended, at_end = line(clients), cpu_microseconds(app)
        counted = line(clients)
    if counted["complete"] != BESIDE_SLOW_STREAMS:
        raise SystemExit(f"beside {count} slow readers: streams lost events: {counted}")
    event = (at_end - at_begin) / max(1, ended["events"] - begun["events"])
    return event, counted["median"], counted["p99"], held


def open_files(process: subprocess.Popen[str]) -> int:
    """Return the number of open files of a process (Linux)."""
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def _median(runs: list[Measured], name: str) -> float:
    return statistics.median(cast("float", getattr(run, name)) for run in runs)


def show(docs: Path, part: str, text: str) -> None:
    """Print a part of the document, and rewrite it."""
    print(text)
    rewrite(docs, part, text)


def main() -> None:
    """Measure, and rewrite the document."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--leaving", type=int, default=50_000)
    parser.add_argument("--part", choices=PARTS, action="append")
    asked = parser.parse_args()
    parts = asked.part or PARTS
    if "forwarder" in parts:
        few = asked.streams // HTTPX_SHARE
        tables = [
            table("aiohttp", asked.streams, asked.rounds),
            table("httpx2", few, asked.rounds),
        ]
        about = f"{asked.streams:,} streams of 200 events, over httpx2 {few:,}, 20 a second each;"
        about += " 100 of 2,000 in bursts. CPU, median latency, memory of a stream, CPU of an event"
        about += " in bursts of 16 KiB, without that of the calls."
        show(asked.docs, "forwarder", "\n\n".join([about, *tables]))
    if "leaving" in parts:
        about = f"{asked.leaving:,} streams, 200 at once, of which every third client leaves early."
        show(asked.docs, "leaving", f"{about}\n\n{leaving('aiohttp', asked.leaving)}")
    if "slow" in parts:
        about = (
            f"{BESIDE_SLOW_STREAMS} streams of 200 events, 20 a second each, beside {SLOW_READERS}"
        )
        about += " clients that read 1 KiB a second of an upstream without pauses, under uvloop."
        tables = [slow(package, asked.rounds) for package in ("aiohttp", "httpx2")]
        show(asked.docs, "slow", "\n\n".join([about, *tables]))
    if "peers" in parts:
        peers, charted = beside("aiohttp", asked.rounds)
        about = f"{PEER_STREAMS} streams of 200 events, 20 a second each, ours over aiohttp."
        show(asked.docs, "peers", f"{about}\n\n{peers}")
        chart = bars(
            "µs of CPU an event in a gateway", ("Chat to Chat", "Chat to Messages"), charted
        )
        asked.docs.with_name("gateway.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
