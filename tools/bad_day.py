"""The bad day: hundreds of calls at once while hosts, networks, clients and the machine fail.

    bad_day.py --minutes 20 [--streams 500] [--halves 300] [--seed 0] [--docs docs/reliability.md]

In: an upstream (`bad_day_server.py`) and a gateway (`bad_day_gateway.py`), each a process of its
own; Models and agents with synchronous tools in this one.  Out: a table of the outcomes, and the
samples of memory, files and tasks, and the lines of the gateway's log; exit code 1 if a law was
broken.

Laws that the run asserts, beside those of `bad_day_laws.py` and `bad_day_ways.py`:
- each client has its whole answer or an error in its form, never less, and every call ends;
- connections that send half of a request are closed;
- no line of a log is an error that nobody ordered;
- after the end, no task, no thread and no file is left, in this process and in the gateway;
- memory is flat (`soak_processes.py`).

A violation ends the run with its way, its fault and its seed, from which the call is drawn again.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import random
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from bad_day_answers import PATHS, read_answer, request_body
from bad_day_laws import WHOLE, Call, judge
from bad_day_orders import FAULTS, TOOL_HANGS, TROUBLES, Order
from bad_day_server import Reads
from bad_day_ways import AGENTS, MARKER, MODELS, OWNERS, PAIRS, Ways, half_requests, ways
from deltafold.conversation.tools.tool_threads import hung_threads
from soak_processes import (
    Broken,
    Period,
    Process,
    Sample,
    answers,
    command,
    memory_rows,
    note_stalls,
    outcome_rows,
    report,
    started,
    until,
)

HERE: Final = Path(__file__).resolve().parent

SETTLE_SECONDS: Final = 20.0
"""After this time, nothing of a call that has ended is under way any more."""

END_SECONDS: Final = 100
"""The longest end of the gateway: what hangs behind an answer is cancelled after a minute."""

LACKS: Final = 20
"""Times in a run at which descriptors are lacking."""

STRANGER: Final = "another client's response"


class ResendLog(logging.Handler):
    """Handler that counts the requests of this process which are sent once more."""

    def __init__(self) -> None:
        super().__init__()
        self.resends: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Count a line."""
        if "the request is sent once more" in str(record.msg):
            self.resends[MARKER.get()] += 1


@dataclass
class Totals:
    """Sums over the calls that were judged."""

    calls: int = 0
    asked: int = 0
    reached: int = 0
    read: int = 0
    resends: int = 0
    lost_kept: int = 0
    closed: int = 0
    ran: int = 0
    hung: int = 0
    lacks: int = 0


@dataclass
class BadDay:
    """The state of one run."""

    ways: Ways
    control: aiohttp.ClientSession
    urls: tuple[str, str]
    seed: int
    ends: float
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    halves: Counter[str] = field(default_factory=Counter[str])
    logged: Counter[str] = field(default_factory=Counter[str])
    excused: Counter[str] = field(default_factory=Counter[str])
    totals: Totals = field(default_factory=Totals)
    tasks: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self._ended: deque[Call] = deque()
        self._reads: dict[str, Reads] = {}
        self._lacks: list[Period] = []
        self.stalls: list[Period] = []
        self._lost: dict[str, str] = {}
        self.log = ResendLog()
        self._resends = self.log.resends

    async def work(self, worker: int) -> None:
        """Make one call after the other until the time is over."""
        number = 0
        while time.monotonic() < self.ends:
            number += 1
            seed = f"{self.seed}/{worker}/{number}"
            await self._drawn(random.Random(seed), seed)

    async def _drawn(self, chance: random.Random, seed: str) -> None:
        drawn = chance.random()
        way = chance.choice(MODELS if drawn < 0.15 else AGENTS if drawn < 0.3 else PAIRS)
        owner = chance.randrange(OWNERS)
        first = self._call(chance, way, seed, [])
        answer = await self._made(first, owner)
        if answer is None or not answer.response_id or chance.random() < 0.5:
            return
        second = self._call(chance, way, f"{seed}, continued", first.markers)
        is_stranger = chance.random() < 0.3
        trouble = first.order.trouble
        if is_stranger or trouble.startswith("put-"):
            second.is_refused = True
        elif trouble.startswith("get-"):
            second.is_refused = None  # known, unless its store was read before it was kept
        other = (owner + chance.randrange(1, OWNERS)) % OWNERS
        await self._made(
            second,
            other if is_stranger else owner,
            answer.response_id,
            STRANGER if is_stranger else "",
        )

    def _call(self, chance: random.Random, way: str, seed: str, before: list[str]) -> Call:
        """Draw a call."""
        # Half of the upstreams are whole, so that faults do not hide each other.
        fault = "none" if chance.random() < 0.5 else chance.choice(FAULTS)
        if fault == "stall" and chance.random() < 0.8:
            fault = "none"  # a stalled stream takes as long as ten others
        trouble = "none"
        if way in AGENTS:
            trouble = TOOL_HANGS if chance.random() < 0.3 else "none"
        elif way not in MODELS and chance.random() < 0.4:
            trouble = chance.choice(TROUBLES)
        hangs = trouble in {"on_request-hangs", "on_delta-hangs"}
        leaves = chance.random() < 0.15
        marker = f"mark-{chance.getrandbits(64):016x}"
        return Call(
            Order(marker, fault, trouble),
            way,
            seed,
            time.monotonic(),
            leaves=chance.uniform(1.5, 6) if hangs else chance.random() * 4 if leaves else None,
            markers=[*before, marker],
        )

    async def _made(self, call: Call, owner: int, previous: str = "", name: str = "") -> Any:  # noqa: ANN401 - an Answer or None
        call.began = time.monotonic()
        try:
            answer = await self.ways.run(call, owner, previous)
        except (Broken, asyncio.CancelledError):
            raise
        except Exception as error:
            raise call.fail(repr(error)) from error
        call.ended = time.monotonic()
        order = call.order
        if not name:
            name = order.fault if order.trouble == "none" else order.trouble
            if "none" not in {order.fault, order.trouble}:
                name = "two of them"
        self.outcomes[call.way, name, call.outcome] += 1
        self._ended.append(call)
        return answer if call.outcome == WHOLE else None

    async def look(self) -> None:
        """Read what the upstream and the gateway have seen, and judge the calls that are settled.

        Raises:
            Broken: a law is broken.
        """
        upstream, gateway = self.urls
        async with self.control.get(f"{upstream}/calls") as response:
            seen = await response.json()
        for marker, counted in seen["calls"].items():
            reads = self._reads.setdefault(marker, Reads())
            for name, count in counted.items():
                setattr(reads, name, getattr(reads, name) + count)
        self.totals.closed += seen["closed"]
        async with self.control.get(f"{gateway}/day") as response:
            day = await response.json()
        self.tasks = Counter(day["tasks"])
        if day["broken"]:
            raise Broken(f"the gateway: {day['broken'][0]}")
        self.logged.update(day["logged"])
        self._lost |= day["lost"]
        self._resends.update(day["resends"])
        if "" in self._resends:
            raise Broken("a request was sent once more for no call")
        self._lacks = [one for one in self._lacks if one[1] is not None]
        self._lacks += [(began, ended) for began, ended in day["lacks"]]
        self.stalls += [(began, ended) for began, ended in day["stalls"] + seen["stalls"]]
        self.totals.lacks += sum(ended is not None for _, ended in day["lacks"])
        self._settle(time.monotonic() - SETTLE_SECONDS)

    def _settle(self, before: float) -> None:
        while self._ended and self._ended[0].ended < before:
            call = self._ended.popleft()
            marker = call.order.marker
            reads = self._reads.pop(marker, Reads())
            resends = self._resends.pop(marker, 0)
            call.ran = self.ways.ran(marker)
            call.why += self._lost.pop(marker, "")
            excuse = judge(call, reads, resends, self._lacks, self.stalls)
            self.excused[excuse] += excuse != ""
            totals = self.totals
            totals.calls += 1
            totals.asked += call.asked
            totals.reached += min(reads.read, call.asked)
            totals.read += reads.read
            totals.resends += resends
            totals.lost_kept += reads.lost_kept
            totals.ran += call.ran.total()
        oldest = min((call.began for call in self._ended), default=before) - END_SECONDS
        for periods in (self._lacks, self.stalls):
            periods[:] = [one for one in periods if one[1] is None or one[1] > oldest]

    def finish(self) -> None:
        """Judge all calls.

        Raises:
            Broken: a law is broken.
        """
        self._settle(float("inf"))
        if self._reads:
            raise Broken(f"the upstream has read requests of no call: {list(self._reads)[:3]}")
        if self._resends:
            raise Broken(f"requests of no call were sent once more: {self._resends}")
        totals = self.totals
        if totals.resends > totals.lost_kept + totals.closed:
            text = f"{totals.lost_kept} lost requests and {totals.closed} closed connections"
            raise Broken(f"{totals.resends} requests were sent once more, of {text}")


async def day(asked: argparse.Namespace, gateway: Process, ports: tuple[int, int]) -> BadDay:
    """Make the calls, sample and judge while they run, and wait until all has ended."""
    own = Process(os.getpid())
    before = own.open_files()
    urls = (f"http://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}")
    async with contextlib.AsyncExitStack() as stack:
        control = await stack.enter_async_context(aiohttp.ClientSession())
        made = await stack.enter_async_context(ways(*ports))
        began = time.monotonic()
        running = BadDay(made, control, urls, asked.seed, began + asked.minutes * 60)
        logger = logging.getLogger("deltafold")
        logger.addHandler(running.log)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        noting = asyncio.create_task(note_stalls(running.stalls))
        await running.look()
        tasks = running.tasks
        workers = [asyncio.create_task(running.work(number)) for number in range(asked.streams)]
        halves = [
            asyncio.create_task(
                half_requests(ports[1], random.Random(f"{asked.seed}/half/{n}"), running.halves)
            )
            for n in range(asked.halves)
        ]
        try:
            while pending := [worker for worker in workers if not worker.done()]:
                done, _ = await asyncio.wait(
                    [*pending, *halves], timeout=asked.sample, return_when=asyncio.FIRST_EXCEPTION
                )
                for task in done:
                    task.result()
                await running.look()
                if time.monotonic() < running.ends:
                    sample = Sample(
                        time.monotonic() - began,
                        own.resident_bytes(),
                        own.open_files(),
                        len(asyncio.all_tasks()),
                        gateway.resident_bytes(),
                        gateway.open_files(),
                    )
                    running.samples.append(sample)
                    report(sample, running.outcomes)
        finally:
            ending = (*workers, *halves, noting)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            running.totals.hung = hung_threads()
            made.hanging.set()
        for _ in range(END_SECONDS):
            await asyncio.sleep(1)
            await running.look()
            if running.tasks <= tasks:
                break
        else:
            raise Broken(f"tasks are left in the gateway: {dict(running.tasks - tasks)}")
        running.finish()
    del workers, halves, noting, ending
    await until(lambda: len(asyncio.all_tasks()) == 1, "a task is left")
    await until(lambda: hung_threads() == 0, "a thread is left")
    await until(lambda: own.open_files() <= before, "a file is left in the client")
    return running


async def refused_calls(gateway: int) -> None:
    """Call each model of the gateway, whose upstream has ended.

    httpx looks at its idle connections when it is called again, and closes those that have ended.

    Raises:
        Broken: an answer is no error.
    """
    async with aiohttp.ClientSession() as session:
        for protocol, path in PATHS.items():
            body = request_body(protocol, protocol, "the last call", streams=False)
            url = f"http://127.0.0.1:{gateway}/guarded{path}"
            async with session.post(url, json=body) as response:
                answer = read_answer(
                    protocol, response.status, response.content_type, await response.read()
                )
            if answer.error is None:
                raise Broken("an answer of an upstream that has ended")


def table(running: BadDay, asked: argparse.Namespace) -> str:
    """Return the figures of a run."""
    totals, halves = running.totals, running.halves
    names = ("none", *FAULTS, *TROUBLES, TOOL_HANGS, "two of them", STRANGER)
    begin = (
        f"{totals.calls:,} calls in {asked.minutes:g} minutes, {asked.streams} at once; "
        f"{asked.halves} half requests beside them, no task, no thread, no file left."
    )
    kept, stalled = totals.closed + totals.lost_kept, running.excused["stall"]
    rows = [
        begin,
        "",
        "| what | count |",
        "|---|---:|",
        f"| requests of the clients | {totals.asked:,} |",
        f"| of them, read by the upstream | {totals.reached:,} |",
        f"| logged resends | {totals.resends:,} |",
        f"| second requests that the upstream has read | {totals.read - totals.reached:,} |",
        f"| connections that the upstream announced to keep, and closed | {kept:,} |",
        f"| calls of tools that ran, each once | {totals.ran:,} |",
        f"| half heads and half bodies that the gateway closed | {halves.total():,} |",
        f"| times of too few descriptors | {totals.lacks} |",
        f"| errors while descriptors were lacking | {running.excused['descriptors']:,} |",
        f"| errors of lost used connections while a loop stood still | {stalled:,} |",
        "",
        *memory_rows(running.samples),
        "",
        *outcome_rows("fault", names, running.outcomes),
    ]
    return "\n".join(rows)


async def run(asked: argparse.Namespace) -> str:
    """Start the processes, and look for files that are left."""
    with contextlib.ExitStack() as stack:
        ending = stack.enter_context(contextlib.ExitStack())
        _, upstream = ending.enter_context(started(HERE / "bad_day_server.py"))
        url, seconds = f"http://127.0.0.1:{upstream}", asked.minutes * 60 / LACKS
        gateway, port = stack.enter_context(
            started(HERE / "bad_day_gateway.py", url, asked.seed, max(seconds, 8.0))
        )
        await until(lambda: answers(port), "the gateway does not answer")
        before = gateway.open_files()
        running = await day(asked, gateway, (upstream, port))
        ending.close()  # the gateway's idle connections end with their server
        await refused_calls(port)
        await until(lambda: gateway.open_files() <= before, "a file is left in the gateway")
    for line, count in running.logged.most_common():
        print(f"{count:7,} {line}")
    return table(running, asked)


if __name__ == "__main__":
    sys.exit(command("bad day", 20, run, halves=300))
