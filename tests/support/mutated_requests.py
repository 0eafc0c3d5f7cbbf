"""Requests of clients, mutated, through a gateway: a mistake is 400 before any upstream call.

In: a seed, the number of the first request, and a count.  Out: how many answers have each status,
and the answers that break a law.

Laws: an answer is in the client's form, never plain text, and never a 500; no refused request
reaches an upstream.  Every protocol of clients is asked before every dialect of upstreams.
Source of the requests: the corpus (../shared/corpus), and the smallest of each protocol.
"""

import asyncio
import copy
import functools
import gzip
import json
import random
from typing import Any, Final

import httpx2

from client_requests import PATHS, asked
from corpus import CORPUS
from deltafold.gateway import ModelTable, create_app
from deltafold.testing import ReplayTransport, answer
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sources import AsyncSource
from gateways import model_at
from json_places import at, places
from seeded import LoopResult, chance_of

STRANGE: Final[list[Any]] = [
    None,
    True,
    -1,
    1e400,
    10**30,
    "",
    "\ud800",
    "x" * 200,
    [],
    {},
    [None],
    {"": ""},
    [[]],
    {"type": "x"},
    float("nan"),
    {"type": ["text"]},
    {"text": {"text": "x"}},
]
DIALECTS: Final = ("openai-chat", "openai-responses", "anthropic-messages", "gemini", "ollama")


@functools.cache
def _recorded_requests() -> dict[str, list[dict[str, Any]]]:
    """Return the requests of the corpus by the protocol of the client; none without the corpus."""
    found: dict[str, list[dict[str, Any]]] = {protocol: [] for protocol in PATHS}
    file = CORPUS / "requests.jsonl.gz"
    if file.is_file():
        with gzip.open(file, "rt") as lines:
            for row in map(json.loads, lines):
                if row["dialect"] in found and isinstance(row["body"], dict):
                    found[row["dialect"]].append(row["body"])
    return found


def mutated(body: dict[str, Any], source: random.Random) -> dict[str, Any]:
    """Return a request with one to three members replaced, removed, doubled or moved."""
    made: dict[str, Any] = json.loads(json.dumps(body))
    for _ in range(source.randint(1, 3)):
        known = list(places(made))
        if not known:
            break
        *path, key = source.choice(known)
        holder = at(made, tuple(path))
        match source.randrange(4):
            case 0:
                del holder[key]
            case 1:
                holder[key] = [holder[key], copy.deepcopy(holder[key])]
            case 2:
                holder[key] = copy.deepcopy(at(made, source.choice(known)))
            case _:
                holder[key] = copy.deepcopy(source.choice(STRANGE))
    return made


class CountedTransport(ReplayTransport):
    """Transport that notes the addresses that it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    async def open_async(self, request: HttpRequest) -> AsyncSource:
        self.called.append(request.url)
        return await super().open_async(request)


def _request_of(seed: int, number: int) -> tuple[str, str, str, bytes]:
    """Return the protocol of the client, the dialect of the upstream, the path and the body."""
    chance = chance_of(seed, number)
    # Each protocol comes before each dialect of an upstream in turn.
    protocol = tuple(PATHS)[number % len(PATHS)]
    dialect = DIALECTS[number // len(PATHS) % len(DIALECTS)]
    streams = chance.random() < 0.5
    path, body = asked(protocol, streams=streams)
    recorded = _recorded_requests()[protocol]
    if recorded and chance.random() < 0.5:
        body = chance.choice(recorded)
    changed = mutated(body, chance)
    if protocol == "gemini":
        path = path.replace("/m:", f"/{dialect}:")
    else:
        changed |= {"model": dialect, "stream": streams}
    return protocol, dialect, path, json.dumps(changed).encode("utf-8", "surrogatepass")


def mutated_requests(seed: int, first: int, count: int) -> LoopResult:
    """Send mutated requests to a gateway; the counts are those of each status."""
    return asyncio.run(_mutated_requests(seed, first, count))


async def _mutated_requests(seed: int, first: int, count: int) -> LoopResult:
    found = LoopResult(count)
    transport = CountedTransport()
    table = ModelTable({dialect: model_at(dialect, transport) for dialect in DIALECTS})
    application = httpx2.ASGITransport(create_app(table), raise_app_exceptions=False)
    answers = {dialect: answer(dialect, "ok") for dialect in DIALECTS}
    async with httpx2.AsyncClient(transport=application, base_url="http://localhost") as client:
        for number in range(first, first + count):
            protocol, dialect, path, content = _request_of(seed, number)
            transport.called.clear()
            transport.requests.clear()
            transport.recordings = {"*": answers[dialect]}
            response = await client.post(path, content=content)
            status = response.status_code
            found.counts[str(status)] += 1
            kind = response.headers.get("content-type", "")
            is_form = kind.startswith(("application/json", "text/event-stream"))
            is_paid = status >= 400 and transport.called
            if status >= 500 or not is_form or is_paid:
                what = f"{protocol} -> {dialect} {status} {kind} {transport.called}"
                wrong = f"{what}: {response.text[:200]} {content[:300]!r}"
                found.wrong.append(f"request {number} of seed {seed}: {wrong}")
    return found
