"""The program of docs/how-to/agent-endpoint.md, under uvicorn, with many users at once.

Law: the program is the blocks of the page, without a change. A call is counted where its tool runs,
by what the tool logs.
"""

import asyncio
import importlib.util
import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

import httpx
import pytest
import uvicorn

from deltafold import Encoder, Message, fold, message_deltas
from deltafold.contract.kinds import FinishReason
from deltafold.conversation import ConversationLog, SQLiteStore, StoreConflictError
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.testing.answers import ScriptedCall
from deltafold.testing.playlist import Request
from documentation import python_of
from replay_servers import wait_until_closed

PAGE: Final = "docs/how-to/agent-endpoint.md"
MARK: Final = re.compile(r"user-\d+")
USERS: Final = [f"user-{number:02}" for number in range(50)]
LEAVERS: Final = USERS[::5]
Reply = Callable[[str, int], Sequence[str | ScriptedCall] | Recording]
"""The newest text of the user and the number of results behind it, to the contents of an answer."""


class Provider(ReplayServer):
    """A provider of the Responses API."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self._reply = reply
        self._made = 0

    def answer_to(self, request: Request) -> Recording:
        self.requests.append(request)
        text, results = newest(request)
        made = self._reply(text, results)
        if isinstance(made, Recording):
            return made
        return answer("openai-responses", *made)


def newest(request: Request) -> tuple[str, int]:
    """Return the newest text of the user, and the number of results behind it."""
    results = 0
    body = cast("dict[str, Any]", request.json())
    for item in reversed(body["input"]):
        results += item.get("type") == "function_call_output"
        if item.get("role") == "user":
            said = item["content"]
            return said if isinstance(said, str) else said[0]["text"], results
    raise AssertionError("no text of a user")


class Site:
    """The program while it is served.

    Attributes:
        module: the module of the page.
        url: the address.
        provider: the provider.
        server: the server.
    """

    def __init__(
        self, module: ModuleType, provider: Provider, server: uvicorn.Server, url: str
    ) -> None:
        self.module = module
        self.provider = provider
        self.server = server
        self.url = url

    @asynccontextmanager
    async def client(self, user: str) -> AsyncGenerator[httpx.AsyncClient]:
        headers = {"x-user": user} if user else {}
        async with httpx.AsyncClient(base_url=self.url, headers=headers, timeout=30) as client:
            yield client


@contextmanager
def served(reply: Reply, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Site]:
    """Serve the program, and check at its end that no connection and no thread is left."""
    with Provider(reply) as provider:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-provider")
        path = folder / "boats.py"
        path.write_text("\n\n".join(block.code for block in python_of(PAGE)), encoding="utf-8")
        spec = importlib.util.spec_from_file_location("boats", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        config = uvicorn.Config(module.app, port=0, log_config=None, timeout_graceful_shutdown=20)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.005)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield Site(module, provider, server, f"http://127.0.0.1:{port}")
        finally:
            server.should_exit = True
            thread.join(30)
            module.store.close()
        assert not thread.is_alive()
        assert not server.server_state.connections
        wait_until_closed(provider)


async def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    """Read a stream to its end."""
    return [event async for event in events(response)]


async def events(response: httpx.Response) -> AsyncGenerator[dict[str, Any]]:
    assert response.status_code == 200, (await response.aread()).decode()
    async for line in response.aiter_lines():
        if line:
            yield json.loads(line.removeprefix("data: "))


async def post(client: httpx.AsyncClient, path: str, **body: object) -> list[dict[str, Any]]:
    """Send a request, and return the events of its whole stream."""
    async with client.stream("POST", path, json=body) as response:
        return await events_of(response)


def text_of(told: Sequence[dict[str, Any]]) -> str:
    """Return what the page shows of answers: a retry drops what was shown since the last turn."""
    lines = [""]
    for event in told:
        if event["kind"] == "turn":
            lines.append("")
        elif event["kind"] == "text":
            lines[-1] += event["text"]
        elif event["kind"] == "retry" and not event["continues"]:
            lines[-1] = ""
    return "".join(lines)


def calls_in(caplog: pytest.LogCaptureFixture) -> Counter[str]:
    """Count the runs of the tools by the user and the place."""
    return Counter(
        one.getMessage()
        for one in caplog.records
        if "tide" in one.getMessage() or "books" in one.getMessage()
    )


def stalled(*content: str) -> Recording:
    """Return an answer that falls silent before its last event."""
    made = answer("openai-responses", *content)
    return made.stopping("stall", after=len(made.body) - len(made.pieces[-1][1]) - 1)


def crowd(text: str, results: int) -> Sequence[str | ScriptedCall] | Recording:
    """Answer the users of the crowd."""
    verb, user = text.split()
    if verb == "wait":  # half of the leavers get a result before the silence
        late = int(user[-2:]) % 2 == 0 or results > 0
        return stalled("one ", user, " more") if late else (("c1", "tide", {"place": user}),)
    if results:
        return f"{verb} ", "done ", "for ", user
    tool = {"look": "tide", "again": "tide", "book": "book_boat"}[verb]
    return "let me see, ", user, (f"call-{verb}", tool, {"place": f"{verb}-{user}"})


async def book(client: httpx.AsyncClient, user: str) -> list[dict[str, Any]]:
    """Ask for a boat, approve the call, and return the events of both streams."""
    asked = await post(client, "/messages", text=f"book {user}")
    assert asked[-1]["reason"] == "approval"
    (pending,) = [event for event in asked if event["kind"] == "approval"]
    known = (await client.get("/messages")).json()
    assert [call["id"] for call in known["pending"]] == [pending["id"]]
    assert all(user in text for text in known["texts"] if "user-" in text)
    decided = await post(client, "/approvals", call_id=pending["id"], approved=True)
    assert text_of(decided) == f"book done for {user}"
    again = await client.post("/approvals", json={"call_id": pending["id"], "approved": True})
    assert again.status_code == 404
    return [*asked, *decided]


async def leave(site: Site, user: str) -> list[dict[str, Any]]:
    """Leave in the middle of an answer, while a second tab is refused."""
    told: list[dict[str, Any]] = []
    async with (
        site.client(user) as client,
        site.client(user) as second,
        client.stream("POST", "/messages", json={"text": f"wait {user}"}) as response,
        aclosing(events(response)) as reading,
    ):
        async for event in reading:
            told.append(event)
            if event["kind"] == "text" and user in event["text"]:
                break
        for _ in range(2):
            refused = await second.post("/messages", json={"text": f"again {user}"})
            assert refused.status_code == 409
    return told


async def went_on(client: httpx.AsyncClient, text: str) -> list[dict[str, Any]]:
    """Send a message, also while the server has not seen yet that its user has left."""
    for _ in range(500):
        async with client.stream("POST", "/messages", json={"text": text}) as response:
            if response.status_code != 409:
                return await events_of(response)
        await asyncio.sleep(0.01)
    raise AssertionError("the run of a reader who has left goes on")


def test_fifty_users_at_once_of_whom_ten_leave_and_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "boats")

    async def one(site: Site, user: str) -> None:
        told: list[dict[str, Any]] = []
        verb = "look"
        if user in LEAVERS:
            told += await leave(site, user)
            verb = "again"
        async with site.client(user) as client:
            first = await went_on(client, f"{verb} {user}")
            assert text_of(first).endswith(f"{verb} done for {user}")
            assert first[-1]["status"] == "completed"
            told += [*first, *await book(client, user)]
        assert set(MARK.findall(json.dumps(told))) == {user}

    async def main(site: Site) -> None:
        await asyncio.gather(*(one(site, user) for user in USERS))

    with served(crowd, tmp_path, monkeypatch) as site:
        asyncio.run(main(site))
    for request in site.provider.requests:
        assert len(set(MARK.findall(request.body.decode()))) == 1
    ran = {f"{user} books a boat at book-{user}" for user in USERS}
    for user in USERS:
        verb = "again" if user in LEAVERS else "look"
        ran.add(f"{user} looks up the tide at {verb}-{user}")
    ran |= {f"{user} looks up the tide at {user}" for user in LEAVERS if int(user[-2:]) % 2}
    assert calls_in(caplog) == dict.fromkeys(ran, 1)
    with SQLiteStore("conversations.db") as store:
        assert sorted(store.sessions()) == USERS


def echo(text: str, results: int) -> Sequence[str | ScriptedCall] | Recording:
    """Answer with the text of the user, or call the tool of its first word."""
    words = text.split()
    if words[0] == "book" and not results:
        return (("c1", "book_boat", {"place": words[1]}),)
    if words[0] == "forever":
        return ((f"c{results}", "tide", {"place": "Brest"}),)
    return "to ", text


def on_site(
    reply: Reply,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Site, httpx.AsyncClient], Coroutine[Any, Any, None]],
) -> None:
    """Act as one user of the program."""

    async def main(site: Site) -> None:
        async with site.client("ann") as client:
            await act(site, client)

    with served(reply, folder, monkeypatch) as site:
        asyncio.run(main(site))


def test_a_second_tab_is_refused_and_the_first_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def held(text: str, results: int) -> Sequence[str | ScriptedCall] | Recording:
        if text == "first":
            go_on.wait(30)
        return echo(text, results)

    async def act(site: Site, client: httpx.AsyncClient) -> None:
        async with client.stream("POST", "/messages", json={"text": "first"}) as response:
            async with site.client("ann") as tab, site.client("ben") as other:
                refused = await tab.post("/messages", json={"text": "second"})
                assert (refused.status_code, refused.text) == (
                    409,
                    "This conversation is being answered already.",
                )
                assert (await tab.get("/messages")).json() == {"texts": ["first"], "pending": []}
                assert text_of(await post(other, "/messages", text="mine")) == "to mine"
            go_on.set()
            assert text_of(await events_of(response)) == "to first"
        assert (await client.get("/messages")).json()["texts"] == ["first", "to first"]

    on_site(held, tmp_path, monkeypatch, act)


def test_a_conversation_that_another_process_continues_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def held(text: str, results: int) -> Sequence[str | ScriptedCall] | Recording:
        go_on.wait(30)
        return echo(text, results)

    async def act(site: Site, client: httpx.AsyncClient) -> None:
        async with client.stream("POST", "/messages", json={"text": "first"}) as response:
            with SQLiteStore("conversations.db") as store:
                log = ConversationLog("ann", store=store)
                log.append_message(Message.user("elsewhere"))
            go_on.set()
            told = await events_of(response)
        assert (told[-1]["status"], told[-1]["reason"]) == ("failed", "conflict")
        assert text_of(await post(client, "/messages", text="again")) == "to again"

        def taken(session_id: str, position: int, _data: str) -> None:
            raise StoreConflictError(session_id, position)

        with monkeypatch.context() as patch:
            patch.setattr(site.module.store, "append", taken)
            assert (await client.post("/messages", json={"text": "x"})).status_code == 409
        assert text_of(await post(client, "/messages", text="x")) == "to x"

    on_site(held, tmp_path, monkeypatch, act)


def test_a_retry_drops_what_the_page_shows_of_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = answer("openai-responses", "High tide ", "is at 17:42.")
    script = [
        Recording.error(503, {"error": {"message": "busy"}}, {"retry-after": "0"}),
        whole.stopping("cut", after=len(whole.body) * 2 // 3),
        whole,
    ]

    async def act(site: Site, client: httpx.AsyncClient) -> None:
        told = await post(client, "/messages", text="When?")
        kinds = [event["kind"] for event in told]
        first, second = (at for at, kind in enumerate(kinds) if kind == "retry")
        assert "text" not in kinds[:first]
        assert "text" in kinds[first:second]
        assert not told[second]["continues"]
        assert text_of(told) == "High tide is at 17:42."
        assert (await client.get("/messages")).json()["texts"] == ["When?", text_of(told)]
        assert len(site.provider.requests) == 3

    on_site(lambda _text, _results: script.pop(0), tmp_path, monkeypatch, act)


def cut_by_its_length(_text: str, _results: int) -> Recording:
    """Return an answer that its limit of tokens has cut."""
    message = fold(answer("openai-responses", "High tide is").body, "openai-responses")
    meta = message.meta.model_copy(update={"finish_reason": FinishReason.LENGTH})
    encoder = Encoder("openai-responses")
    cut = message.model_copy(update={"meta": meta})
    return Recording.of_events(b"".join(map(encoder.feed, message_deltas(cut))) + encoder.close())


def refused(_text: str, _results: int) -> Recording:
    """Refuse the key, and repeat it."""
    return Recording.error(401, {"error": {"message": "key-of-the-provider"}})


ENDS: Final[list[tuple[Reply, str, str, str]]] = [
    (echo, "hello", "completed", "answered"),
    (cut_by_its_length, "hello", "completed", "length"),
    (echo, "forever", "aborted", "max_turns"),
    (refused, "hello", "failed", "error"),
    (echo, "book Brest", "awaiting_human", "approval"),
]


@pytest.mark.parametrize(("reply", "said", "status", "reason"), ENDS)
def test_each_end_of_a_run_is_an_event_with_a_text_for_the_page(
    reply: Reply,
    said: str,
    status: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(site: Site, client: httpx.AsyncClient) -> None:
        told = await post(client, "/messages", text=said)
        text = site.module.ENDS[reason]
        assert told[-1] == {"kind": "run_end", "status": status, "reason": reason, "text": text}
        assert bool(text) is (reason != "answered")
        assert "key-of-the-provider" not in json.dumps(told)

    on_site(reply, tmp_path, monkeypatch, act)


def test_calls_are_decided_by_their_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "boats")

    async def act(site: Site, client: httpx.AsyncClient) -> None:
        decision = {"call_id": "c1", "approved": True}
        await post(client, "/messages", text="book Brest")
        async with site.client("ben") as ben:
            await post(ben, "/messages", text="hi")
            assert (await ben.post("/approvals", json=decision)).status_code == 404
            assert (await ben.get("/messages")).json()["pending"] == []
        unknown = await client.post("/approvals", json={**decision, "call_id": "c2"})
        assert (unknown.status_code, unknown.text) == (
            404,
            "This call does not wait for an approval.",
        )
        told = await post(client, "/approvals", call_id="c1", approved=False, reason="Too dear.")
        assert [one["status"] for one in told if one["kind"] == "tool_end"] == ["rejected"]
        assert told[-1]["status"] == "completed"
        sent = site.provider.requests[-1].body.decode()
        assert "Too dear." in sent
        # The user goes on without a decision: the call is not run.
        await post(client, "/messages", text="book Dover")
        assert text_of(await post(client, "/messages", text="no")) == "to no"
        assert (await client.post("/approvals", json=decision)).status_code == 404

    on_site(echo, tmp_path, monkeypatch, act)
    assert not calls_in(caplog)


def test_wrong_requests_are_refused_and_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(site: Site, client: httpx.AsyncClient) -> None:
        for body, status in (
            (b"", 400),
            (b"[" * 10_000, 400),
            (b'{"text": 1}', 400),
            (b'{"text": ""}', 400),
            (b'{"text": "\\ud800"}', 400),
            (b'{"text": "' + b"x" * 30_000 + b'"}', 413),
        ):
            got = await client.post("/messages", content=body)
            assert got.status_code == status, body[:20]
        wrong = {"call_id": "c1", "approved": "yes"}
        said = await client.post("/approvals", json=wrong)
        assert (said.status_code, said.text[:10]) == (400, "approved: ")
        async with site.client("") as nobody:
            for method, path in (
                ("GET", "/messages"),
                ("POST", "/messages"),
                ("POST", "/approvals"),
            ):
                got = await nobody.request(method, path, json={"text": "hi"})
                assert got.status_code == 401
        assert not site.module.store.sessions()
        assert "<title>Boats</title>" in (await client.get("/")).text

    on_site(echo, tmp_path, monkeypatch, act)


def test_a_reader_who_leaves_while_an_event_is_sent_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(site: Site, client: httpx.AsyncClient) -> None:
        module, is_sending = site.module, asyncio.Event()
        state = module.conversation_of("ann")
        events = module.agent.stream("hello", state=state, runtime="ann")
        response = module.RunResponse(await anext(events), events)

        async def receive() -> dict[str, str]:
            await is_sending.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.body":
                is_sending.set()
                await asyncio.Event().wait()  # the reader takes nothing

        await response({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
        assert state.run_state.status == "aborted"
        assert text_of(await post(client, "/messages", text="again")) == "to again"

    on_site(echo, tmp_path, monkeypatch, act)
