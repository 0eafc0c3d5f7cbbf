"""The gateway beside a bare forwarder: CPU an event and a call, latency, and memory of a stream.

    bench_gateway.py --docs docs/gateway.md [--streams 1000]     rewrites the table of the document

In: upstream, application and clients, each a process of its own on this machine.  Out: a table.

Laws: forwarder and gateway run by turns, on the same server, client and stream. CPU is that of the
application's process alone, while all streams run. What a stream costs before and after its events
is the column of calls.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

HERE: Final = Path(__file__).parent
BEGIN: Final = "<!-- measured: gateway -->\n"
END: Final = "<!-- end -->"
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
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def line(process: subprocess.Popen[str]) -> dict[str, float]:
    """Return the next line that a process prints, from JSON."""
    found = json.loads(cast("IO[str]", process.stdout).readline())
    return cast("dict[str, float]", found if isinstance(found, dict) else {"port": found})


def cpu_microseconds(process: subprocess.Popen[str]) -> float:
    """Return the CPU time of all threads of a process (Linux)."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1000


def resident_bytes(process: subprocess.Popen[str]) -> int:
    """Return the resident memory of a process (Linux)."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


def measure(case: Case, package: str, streams: int, events: int, pause: int) -> Measured:
    """Run the streams of a case once."""
    with started("upstream.py", events, pause) as upstream:
        url = f"http://127.0.0.1:{int(line(upstream)['port'])}"
        with started("apps.py", case.app, package, url) as app:
            port = int(line(app)["port"])
            time.sleep(0.5)
            with started("load.py", port, case.path, case.model, 20, 0.1) as warming:
                for _ in range(3):
                    line(warming)
            memory, before = resident_bytes(app), cpu_microseconds(app)
            with started("load.py", port, case.path, case.model, streams, 2.0) as clients:
                begun = line(clients)
                at_begin, held = cpu_microseconds(app), resident_bytes(app)
                ended = line(clients)
                at_end = cpu_microseconds(app)
                counted = line(clients)
            whole = cpu_microseconds(app) - before
    if counted["complete"] != streams or counted["events"] != streams * events:
        raise SystemExit(f"{case.name}: streams lost events: {counted}")
    window = max(1, ended["events"] - begun["events"])
    event = (at_end - at_begin) / window
    if pause == 0:
        return Measured(whole / counted["events"], 0, counted["median"], 0)
    call = (whole - event * counted["events"]) / streams
    return Measured(event, call, counted["median"], (held - memory) / streams)


def table(package: str, streams: int, rounds: int) -> str:
    """Measure all cases by turns, and return their table."""
    paced: dict[str, list[Measured]] = {case.name: [] for case in CASES}
    burst: dict[str, list[Measured]] = {case.name: [] for case in CASES}
    for _ in range(rounds):
        for case in CASES:
            paced[case.name].append(measure(case, package, streams, 200, 50))
            burst[case.name].append(measure(case, package, 100, 2000, 0))
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
            f"{_median(burst[case.name], 'event'):.2f}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def leaving(package: str, streams: int) -> str:
    """Run many streams of which every third is left, and say what is left of them."""
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


def open_files(process: subprocess.Popen[str]) -> int:
    """Return the number of open files of a process (Linux)."""
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def _median(runs: list[Measured], name: str) -> float:
    return statistics.median(cast("float", getattr(run, name)) for run in runs)


def main() -> None:
    """Measure, and rewrite the document."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--leaving", type=int, default=50_000)
    asked = parser.parse_args()
    tables = [table(package, asked.streams, asked.rounds) for package in ("aiohttp", "httpx2")]
    text = asked.docs.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{asked.docs} has no place for the table: {BEGIN.strip()} {END}")
    about = f"{asked.streams:,} streams of 200 events, 20 a second each; 100 of 2,000 in bursts."
    about += " CPU, median latency, memory of a stream, CPU of an event in bursts of 16 KiB."
    left = f"{asked.leaving:,} streams, 200 at once, of which every third client leaves early."
    tables += [left, leaving("aiohttp", asked.leaving)]
    written = "\n\n".join([about, *tables])
    asked.docs.write_text(f"{before}{begin}\n{written}\n\n{end}{after}", encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
