"""The soak: hundreds of streams at once for a long time, with faults, cancels and the gateway.

    soak.py --minutes 45 [--streams 500] [--seed 0] [--docs docs/reliability.md]

In: a server of streams (`soak_server.py`) and a gateway, each a process of its own.  Out: a table
of the outcomes, and the samples of memory, files and tasks; exit code 1 if a law was broken.

Laws that the soak asserts:
- a whole stream has its text, and a broken one ends in the error of its fault;
- no stream is lost: every call ends;
- after the end, no task and no file is left, in this process and in the gateway;
- memory is flat (`soak_processes.py`).

A stream that goes wrong ends the soak with its way, its fault and its seed.
"""

import argparse
import asyncio
import contextlib
import os
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deltafold import AnthropicModel, Model, ModelError, OpenAIChatModel
from deltafold.rollouts import collect
from deltafold.transports.timeouts import Timeouts
from soak_processes import (
    Broken,
    Process,
    Sample,
    answers,
    command,
    memory_rows,
    outcome_rows,
    report,
    started,
    until,
)
from soak_server import FAULTS, TEXT

HERE: Final = Path(__file__).resolve().parent

IDLE_SECONDS: Final = 8.0
CHOICES: Final = 8

EXPECTED: Final[dict[str, set[str]]] = {
    "none": {"whole"},
    "cut": {"connection_lost"},
    "reset": {"connection_lost"},
    "garbage": {"protocol_error"},
    "error": {"server_error"},
    "stall": {"timeout"},
    "429": {"rate_limited"},
    "500": {"server_error"},
}
"""How a direct stream ends, by its fault; behind the gateway a fault ends in some error."""


@dataclass
class Soak:
    """The state of one run."""

    ways: dict[str, Model[Any]]
    chance: random.Random
    ends: float
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)

    async def work(self) -> None:
        """Run one stream after the other until the time is over."""
        while time.monotonic() < self.ends:
            way = self.chance.choice([*self.ways, "rollouts"])
            # Half of the streams are whole, so that faults do not hide each other.
            fault = "none" if self.chance.random() < 0.5 else self.chance.choice(FAULTS)
            if fault == "stall" and self.chance.random() < 0.8:
                fault = "none"  # a stalled stream takes as long as ten others
            outcome = await self._one(way, fault)
            self.outcomes[way, fault, outcome] += 1

    async def _one(self, way: str, fault: str) -> str:
        drawn = self.chance.random()
        if way == "rollouts":
            return await self._rollouts(fault)
        if drawn < 0.2:
            return await self._cancelled(way, fault)
        return await self._read(way, fault, leaves=drawn < 0.3)

    async def _read(self, way: str, fault: str, *, leaves: bool) -> str:
        try:
            async with self.ways[way].stream(f"fault={fault}") as stream:
                if leaves:
                    async for _ in stream.text():
                        return "left"
                message = await stream.final_message()
        except ModelError as error:
            if fault == "none" or (way.startswith("direct") and error.code not in EXPECTED[fault]):
                raise Broken(f"{way}, {fault}: {error!r}") from error
            return str(error.code.value)
        if fault != "none" or message.text != TEXT:
            raise Broken(f"{way}, {fault}: whole, with the text {message.text!r}")
        return "whole"

    async def _cancelled(self, way: str, fault: str) -> str:
        task = asyncio.create_task(self._read(way, fault, leaves=False))
        done, _ = await asyncio.wait((task,), timeout=self.chance.random() * 2)
        if done:
            return await task
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ModelError):
            return await task
        return "cancelled"

    async def _rollouts(self, fault: str) -> str:
        found = [
            one
            async for one in collect(
                self.ways["direct, Chat"], [f"fault={fault}"], n=CHOICES, retries=0
            )
        ]
        codes = {"whole" if one.error is None else str(one.error.code.value) for one in found}
        if len(found) != CHOICES or not codes <= EXPECTED[fault]:
            raise Broken(f"rollouts, {fault}: {len(found)} answers, {codes}")
        if fault == "none" and any(one.message.text != TEXT for one in found):
            raise Broken("rollouts: a whole answer lacks text")
        return min(codes)


@contextlib.asynccontextmanager
async def models(upstream: int, gateway: int) -> AsyncGenerator[dict[str, Model[Any]]]:
    """Make a Model for each way, and close them."""
    direct, through = f"http://127.0.0.1:{upstream}", f"http://127.0.0.1:{gateway}"
    options: Any = {
        "api_key": "key",
        "timeouts": Timeouts(connect=30, first_byte=30, idle=IDLE_SECONDS),
    }
    made: dict[str, Model[Any]] = {
        "direct, Chat": OpenAIChatModel(
            {"model_id": "m"}, base_url=f"{direct}/v1", transport="aiohttp", **options
        ),
        "direct, Messages": AnthropicModel(
            {"model_id": "m", "max_tokens": 99}, base_url=direct, transport="httpx2", **options
        ),
        "gateway, Chat to Messages": OpenAIChatModel(
            {"model_id": "messages"}, base_url=f"{through}/v1", transport="aiohttp", **options
        ),
        "gateway, Messages to Chat": AnthropicModel(
            {"model_id": "chat", "max_tokens": 99}, base_url=through, transport="aiohttp", **options
        ),
    }
    async with contextlib.AsyncExitStack() as stack:
        for model in made.values():
            await stack.enter_async_context(model)
        yield made


async def soak(asked: argparse.Namespace, gateway: Process, ports: tuple[int, int]) -> Soak:
    """Run the streams, and sample while they run."""
    own = Process(os.getpid())
    before = own.open_files()
    async with models(*ports) as ways:
        began = time.monotonic()
        running = Soak(ways, random.Random(asked.seed), began + asked.minutes * 60)
        workers = [asyncio.create_task(running.work()) for _ in range(asked.streams)]
        try:
            while pending := [worker for worker in workers if not worker.done()]:
                done, _ = await asyncio.wait(
                    pending, timeout=asked.sample, return_when=asyncio.FIRST_EXCEPTION
                )
                for worker in done:
                    worker.result()
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
            running.ends = 0  # a worker whose stream was to be cancelled takes this for its end
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
    del workers
    await until(lambda: len(asyncio.all_tasks()) == 1, "a task is left")
    await until(lambda: own.open_files() <= before, "a file is left in the client")
    return running


def table(running: Soak, minutes: float, streams: int) -> str:
    """Return the figures of a run."""
    total = running.outcomes.total()
    rows = [
        f"{total:,} streams in {minutes:g} minutes, {streams} at once; no task, no file left.",
        "",
        *memory_rows(running.samples),
        "",
        *outcome_rows("fault", FAULTS, running.outcomes),
    ]
    return "\n".join(rows)


async def run(asked: argparse.Namespace) -> str:
    """Start the processes, soak, and look for tasks and files that are left."""
    with contextlib.ExitStack() as stack:
        ending = stack.enter_context(contextlib.ExitStack())
        _, upstream = ending.enter_context(started(HERE / "soak_server.py"))
        app = HERE.parent / "benches" / "gateway" / "apps.py"
        url = f"http://127.0.0.1:{upstream}"
        gateway, port = stack.enter_context(started(app, "gateway", "aiohttp", url))
        await until(lambda: answers(port), "the gateway does not answer")
        before = gateway.open_files()
        running = await soak(asked, gateway, (upstream, port))
        ending.close()  # the gateway's idle connections end with their server
        await until(lambda: gateway.open_files() <= before, "a file is left in the gateway")
    return table(running, asked.minutes, asked.streams)


if __name__ == "__main__":
    sys.exit(command("soak", 45, run))
