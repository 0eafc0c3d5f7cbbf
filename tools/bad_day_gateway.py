"""The gateway of the bad day: hooks and a store that raise and hang, and too few descriptors.

    bad_day_gateway.py UPSTREAM_URL SEED SECONDS     serve on a free port, which is printed

In: requests with an order (`bad_day_orders.py`) below `/plain`, where bytes may pass, and below
`/guarded`, where `on_delta` sees them; about every SECONDS, the number of files that the process
may open is lowered below what it uses.  Out: answers; at `/day`, a `Day` since the last look.

Laws: a hook finds the order of its request in a context variable, which the lines of the log about
it have too. A line that no order explains is a defect.
"""

import asyncio
import contextlib
import logging
import os
import random
import resource
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from bad_day_orders import Order, last_order, markers_of
from deltafold import (
    AnthropicModel,
    DeltaKind,
    ErrorCode,
    Message,
    Model,
    ModelError,
    OpenAIChatModel,
)
from deltafold.gateway import ClientRequest, MemoryStore, create_app
from deltafold.gateway.serving import make_server
from deltafold.models.adapters import OpenAIResponsesModel
from deltafold.transports.timeouts import Timeouts
from soak_processes import Period, note_stalls, trim

ACCOUNTING_SECONDS: Final = 2.0
IDLE_SECONDS: Final = 8.0
HANGS: Final = 3600.0
"""Seconds of what hangs: longer than a day."""

ORDER: Final[ContextVar[Order | None]] = ContextVar("order", default=None)
"""The order of the request that is answered."""

_RESENT: Final = "the request is sent once more"
_LACKING: Final = "socket.accept() out of system resource"
_UNFORESEEN: Final = "a request of %s failed in the gateway"


@dataclass
class Day:
    """What the gateway has seen since the last look.

    Attributes:
        resends: lines about requests that were sent once more, by the marker of their order.
        logged: lines of the log, by their logger, level and text before its arguments.
        broken: what no order explains.
        lacks: when there were too few descriptors, in seconds of `time.monotonic()`; the end is
            None if that goes on.
        stalls: when the event loop stood still.
        lost: why connections to the upstream were lost, by the marker of the order.
        tasks: the tasks, by the names of their functions.
    """

    resends: Counter[str] = field(default_factory=Counter[str])
    logged: Counter[str] = field(default_factory=Counter[str])
    broken: list[str] = field(default_factory=list[str])
    lacks: list[Period] = field(default_factory=list[Period])
    stalls: list[Period] = field(default_factory=list[Period])
    lost: dict[str, str] = field(default_factory=dict[str, str])
    tasks: Counter[str] = field(default_factory=Counter[str])


class DayLog(logging.Handler):
    """Handler that counts the lines of a day."""

    def __init__(self) -> None:
        super().__init__()
        self.day = Day()

    def emit(self, record: logging.LogRecord) -> None:
        """Count a line."""
        day, text = self.day, str(record.msg).partition("\n")[0]
        if _RESENT in text:
            order = ORDER.get()
            day.resends["" if order is None else order.marker] += 1
        is_lacking = record.name == "asyncio" and text.startswith(_LACKING)
        is_foreign = not record.name.startswith("deltafold") and record.levelno >= logging.ERROR
        if not is_lacking and (is_foreign or text == _UNFORESEEN):
            day.broken.append(logging.Formatter().format(record))
        day.logged[f"{record.name}, {record.levelname}: {text}"] += 1


def _name(task: asyncio.Task[Any]) -> str:
    return str(getattr(task.get_coro(), "__qualname__", "?"))


async def trouble(what: str) -> None:
    """Raise or hang, if the order says so.

    Raises:
        RuntimeError: the order says so.
    """
    order = ORDER.get()
    if order is None:
        return
    if order.trouble == f"{what}-raises":
        raise RuntimeError(f"{what} raises")
    if order.trouble == f"{what}-hangs":
        await asyncio.sleep(HANGS)


async def on_request(_: Request, asked: ClientRequest) -> None:
    """Note the order of a request."""
    ORDER.set(last_order(" ".join(message.text for message in asked.messages)))
    await trouble("on_request")


async def on_delta(_: ClientRequest, __: DeltaKind, text: str) -> str:
    """Return a text as it is."""
    await trouble("on_delta")
    return text


class BadStore:
    """Store in memory that raises and hangs."""

    def __init__(self) -> None:
        self._kept = MemoryStore()

    async def get(self, response_id: str, owner: str) -> Sequence[Message] | None:
        """Return a conversation."""
        await trouble("get")
        return await self._kept.get(response_id, owner)

    async def put(self, response_id: str, messages: Sequence[Message], owner: str) -> None:
        """Keep a conversation."""
        await trouble("put")
        await self._kept.put(response_id, messages, owner)


def app(url: str, log: DayLog, **options: Any) -> Starlette:  # noqa: ANN401 - those of `create_app`
    """Return a gateway in front of the upstream."""
    settings: Any = {"api_key": "unused", "timeouts": Timeouts(idle=IDLE_SECONDS), **options}
    on_deltas = {"on_delta": settings.pop("on_delta")} if "on_delta" in settings else {}

    async def on_message(asked: ClientRequest, message: Message, error: ModelError | None) -> None:
        own = {name for one in asked.messages for name in markers_of(one.to_json())}
        foreign = set(markers_of(message.to_json())) - own
        if foreign:
            log.day.broken.append(f"on_message: {foreign} in the answer to {own}")
        order = ORDER.get()
        if order is not None and error is not None and error.code is ErrorCode.CONNECTION_LOST:
            log.day.lost[order.marker] = f"{error!r} of {error.__cause__!r}"
        await trouble("on_message")

    models: dict[str, Model[Any]] = {
        "chat": OpenAIChatModel({"model_id": "m"}, base_url=f"{url}/v1", **settings),
        "messages": AnthropicModel({"model_id": "m"}, base_url=url, **settings),
        "responses": OpenAIResponsesModel({"model_id": "m"}, base_url=f"{url}/v1", **settings),
    }
    return create_app(
        models,
        on_request=on_request,
        on_message=on_message,
        store=BadStore(),
        keep_alive=ACCOUNTING_SECONDS / 2,
        accounting_seconds=ACCOUNTING_SECONDS,
        **on_deltas,
    )


async def lack(day: DayLog, chance: random.Random, seconds: float) -> None:
    """Lower the number of files that may be opened, again and again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    while True:
        await asyncio.sleep(seconds * chance.uniform(0.7, 1.3))
        highest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - names alone
        began = time.monotonic()
        day.day.lacks.append((began, None))
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(highest * chance.uniform(0.5, 0.9)), hard))
        try:
            await asyncio.sleep(chance.uniform(2, 6))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            lacks = day.day.lacks
            if lacks and lacks[-1][1] is None:
                lacks.pop()
            lacks.append((began, time.monotonic()))


def main(url: str, seed: str, seconds: str) -> None:
    """Serve."""
    log = DayLog()
    logging.basicConfig(handlers=[log], level=logging.WARNING)
    logging.getLogger("deltafold").setLevel(logging.INFO)

    stalls: list[Period] = []

    async def day(_: Request) -> Response:
        trim()
        seen, log.day = log.day, Day()
        seen.stalls = stalls.copy()
        stalls.clear()
        log.day.lacks = [one for one in seen.lacks if one[1] is None]
        seen.tasks = Counter(map(_name, asyncio.all_tasks()))
        return JSONResponse(vars(seen))

    plain = app(url, log, transport="aiohttp")
    guarded = app(url, log, transport="httpx2", on_delta=on_delta)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        chance = random.Random(seed)
        lacking = asyncio.create_task(lack(log, chance, float(seconds)))
        noting = asyncio.create_task(note_stalls(stalls))
        async with plain.router.lifespan_context(plain), guarded.router.lifespan_context(guarded):
            yield
        lacking.cancel()
        noting.cancel()

    routes = [Mount("/plain", plain), Mount("/guarded", guarded), Route("/day", day)]
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(listening.getsockname()[1], flush=True)
    served = Starlette(routes=routes, lifespan=lifespan)
    make_server(served, log_config=None, access_log=False).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
