"""Requests of clients, mutated: a mistake is 400 in the client's form, before any upstream call.

Source of the requests: the corpus (../shared/corpus), and the smallest of each protocol.
"""

import asyncio
import copy
import gzip
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest

from client_requests import PATHS, asked
from corpus import CORPUS, needs_corpus
from deltafold import Model
from deltafold.gateway import ModelTable, create_app
from deltafold.testing import Recording, ReplayTransport, answer
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sources import AsyncSource
from gateways import upstream
from json_places import at, places

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


def recorded_requests() -> Iterator[tuple[str, dict[str, Any]]]:
    with gzip.open(CORPUS / "requests.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["dialect"] in PATHS and isinstance(row["body"], dict):
                yield row["dialect"], row["body"]


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


CALLED: Final[list[str]] = []
"""Addresses that were called for the last request."""


class Counted(ReplayTransport):
    """Transport that notes its calls."""

    async def open_async(self, request: HttpRequest) -> AsyncSource:
        CALLED.append(request.url)
        return await super().open_async(request)


def model_of(dialect: str, count: int) -> Model[Any]:
    recordings: list[Recording] = [answer(dialect, "ok")] * count
    made = upstream(dialect, "http://upstream.example")
    return type(made)(
        {"model_id": "upstream-model"},
        client=Counted(recordings),
        base_url="http://upstream.example",
        api_key="k",
    )


async def defects(count: int, seed: int) -> tuple[dict[int, int], list[str]]:
    """Send mutated requests; return how many answers have each status, and what is wrong."""
    source = random.Random(seed)  # noqa: S311 - makes requests
    rows = list(recorded_requests())
    statuses: dict[int, int] = {}
    wrong: list[str] = []
    table = ModelTable({dialect: model_of(dialect, count) for dialect in DIALECTS})
    transport = httpx2.ASGITransport(create_app(table), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for _ in range(count):
            protocol, body = source.choice(rows)
            dialect, streams = source.choice(DIALECTS), source.random() < 0.5
            path, smallest = asked(protocol, streams=streams)
            changed = mutated(source.choice((body, smallest)), source)
            if protocol == "gemini":
                path = path.replace("/m:", f"/{dialect}:")
            else:
                changed |= {"model": dialect, "stream": streams}
            content = json.dumps(changed).encode("utf-8", "surrogatepass")
            CALLED.clear()
            response = await client.post(path, content=content)
            status = response.status_code
            statuses[status] = statuses.get(status, 0) + 1
            kind = response.headers.get("content-type", "")
            is_form = kind.startswith(("application/json", "text/event-stream"))
            is_paid = status >= 400 and CALLED
            if status >= 500 or not is_form or is_paid:
                found = f"{protocol} -> {dialect} {status} {kind} {CALLED}"
                wrong.append(f"{found}: {response.text[:200]} {content[:300]!r}")
    return statuses, wrong


@needs_corpus
@pytest.mark.parametrize(
    "count", [300, pytest.param(20_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_mutated_request_is_answered_or_refused_in_the_clients_form(count: int) -> None:
    statuses, wrong = asyncio.run(defects(count, 7))
    assert not wrong, "\n".join(wrong[:20])
    assert statuses[200] > count // 20
    assert statuses[400] > count // 20
