"""The program of docs/how-to/agent-endpoint.md under uvicorn, with many users at once."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from corpus import ROOT
from deltafold.testing import Recording, ReplayServer, Request, answer

PAGE: Final = (ROOT / "docs" / "how-to" / "agent-endpoint.md").read_text(encoding="utf-8")
USERS: Final = 50
LEAVING: Final = 10


class Provider(ReplayServer):
    """Answers by what is said last; it notes the markers of users in each request."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0

    def answer_to(self, request: Request) -> Recording:
        self.requests.append(request)
        body: Any = request.json()
        last = body["input"][-1]
        said = json.dumps(last)
        if "refuse once" in said and not self.refused:
            self.refused += 1
            return Recording.error(503, {"error": {"message": "busy"}}, {"retry-after": "0"})
        if "break" in said:
            return Recording.error(400, {"error": {"message": "no such thing"}})
        if last.get("type") == "function_call_output":
            made = answer("openai-responses", "It says: ", last["output"])
        elif "book" in said:
            made = answer("openai-responses", ("c1", "book", {"place": _marker(said)}))
        elif "tide" in said:
            made = answer("openai-responses", ("c1", "tide", {"place": _marker(said)}))
        else:
            made = answer("openai-responses", "Hello ", *(f"{_marker(said)} " for _ in range(5)))
        return Recording.of_events(made.body, delay=0.01)


def _marker(text: str) -> str:
    found = re.search(r"user-\d+-", text)
    return "nobody" if found is None else found[0]


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        yield server


@pytest.fixture
def served(provider: Provider, tmp_path: Path) -> Iterator[str]:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "trips.py").write_text(program, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
    uvicorn = [sys.executable, "-m", "uvicorn", "trips:app", "--port", str(port)]
    with subprocess.Popen(
        [*uvicorn, "--log-level", "warning"],
        cwd=tmp_path,
        env={**os.environ, **variables},
        stderr=subprocess.PIPE,
    ) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(400):
                try:
                    httpx2.get(url).raise_for_status()
                    break
                except httpx2.ConnectError:
                    time.sleep(0.05)
            yield url
        finally:
            process.terminate()
            _, errors = process.communicate(timeout=20)
            assert errors.decode() == ""
    for _ in range(200):
        if not provider.open_connections:
            break
        provider.pause(0.02)
    assert not provider.open_connections


@asynccontextmanager
async def signed_in(url: str, user: str) -> AsyncGenerator[httpx2.AsyncClient]:
    cookies = {"user": user}
    async with httpx2.AsyncClient(base_url=url, cookies=cookies, timeout=60) as client:
        yield client


async def events_of(
    client: httpx2.AsyncClient, text: str, path: str = "/messages", leave_after: int = 10**6
) -> list[dict[str, Any]]:
    """Say something, and return the events; leave after so many."""
    events: list[dict[str, Any]] = []
    async with client.stream("POST", path, content=text) as response:
        assert response.status_code == 200, await response.aread()
        async for line in response.aiter_lines():
            if line.startswith("data: ") and "turn" not in line:
                events.append(json.loads(line[6:]))
            if len(events) >= leave_after:
                break
    return events


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["kind"] == "text")


def test_fifty_users_have_their_own_words(served: str, provider: Provider) -> None:
    async def one(number: int) -> None:
        marker = f"user-{number}-"
        async with signed_in(served, marker) as client:
            leaves = 1 if number < LEAVING else 10**6
            first = await events_of(client, f"{marker} greets", leave_after=leaves)
            second = await said_again(client, f"{marker} asks for the tide")
            seen = json.dumps([first, second, (await client.get("/messages")).json()])
            assert set(re.findall(r"user-\d+-", seen)) == {marker}
            assert text_of(second) == f"It says: high tide at {marker}: 17:42"
            assert second[-1] == {"kind": "end", "status": "completed", "reason": "answered"}

    async def main() -> None:
        await asyncio.gather(*map(one, range(USERS)))

    asyncio.run(main())
    runs = Counter[str]()
    for request in provider.requests:
        body = request.body.decode()
        (marker,) = set(re.findall(r"user-\d+-", body))
        runs[marker] += '"function_call_output"' in body
    assert set(runs.values()) == {1}
    assert len(runs) == USERS


async def said_again(client: httpx2.AsyncClient, text: str) -> list[dict[str, Any]]:
    """Say something, as soon as the program has noticed that the page had left."""
    for _ in range(200):
        async with client.stream("POST", "/messages", content=text) as response:
            if response.status_code == 409:
                await asyncio.sleep(0.02)
                continue
            lines = [line async for line in response.aiter_lines()]
            return [json.loads(line[6:]) for line in lines if line]
    raise AssertionError("the run of the page that left goes on")


def test_a_second_tab_is_refused_and_the_first_loses_nothing(served: str) -> None:
    async def main() -> None:
        async with signed_in(served, "ann") as first, signed_in(served, "ann") as second:
            async with first.stream("POST", "/messages", content="greet user-1-") as response:
                lines = response.aiter_lines()
                seen = [await anext(lines)]
                refused = await second.post("/messages", content="me too")
                assert (refused.status_code, refused.json()) == (
                    409,
                    {"error": "another tab is at it"},
                )
                seen += [line async for line in lines]
            events = [json.loads(line[6:]) for line in seen if line]
            assert text_of(events) == "Hello " + "user-1- " * 5
            assert events[-1]["status"] == "completed"

    asyncio.run(main())


def test_a_booking_waits_for_its_user(served: str, provider: Provider) -> None:
    async def main() -> None:
        async with signed_in(served, "ann") as ann, signed_in(served, "ben") as ben:
            *_, asked, end = await events_of(ann, "book user-7-")
            assert (asked["kind"], asked["id"]) == ("ask", "c1")
            assert json.loads(asked["what"]) == {"place": "user-7-"}
            assert end["status"] == "awaiting_human"
            decision = json.dumps({"id": "c1", "approved": True})
            refused = await ben.post("/approvals", content=decision)
            assert refused.status_code == 400
            events = await events_of(ann, decision, "/approvals")
            assert text_of(events) == "It says: boat at user-7-, booked for ann"
            again = await ann.post("/approvals", content=decision)
            assert again.status_code == 400

    asyncio.run(main())
    assert len(provider.requests) == 2


def test_a_retry_and_a_failure_reach_the_page(served: str) -> None:
    async def main() -> None:
        async with signed_in(served, "ann") as client:
            events = await events_of(client, "refuse once user-3-")
            assert events[0] == {"kind": "retry", "drop": True}
            assert events[-1]["status"] == "completed"
            failed = await events_of(client, "break it")
            assert failed == [{"kind": "end", "status": "failed", "reason": "error"}]
            assert text_of(await events_of(client, "greet user-3-")).startswith("Hello")

    asyncio.run(main())
