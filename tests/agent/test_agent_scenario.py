"""A run with every kind of trouble: its events and its log, kills and cancellations."""

import asyncio
import gc
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agent_scenario import (
    NOTE,
    QUESTION,
    Harbour,
    Providers,
    agent_of,
    effects_of,
    go_on,
    opened,
    shown,
    without_random,
)
from answering_server import AnsweringServer, Words
from corpus import ROOT
from deltafold import Agent, OpenAIChatModel, ToolResultPart
from deltafold.conversation import (
    INTERRUPTED,
    AgentEvent,
    AgentState,
    CallEntry,
    CallStage,
    ConversationLog,
    LogFile,
    MemoryNotebookWidget,
    RunStatus,
    SentEntry,
    Session,
    Tool,
    ToolCallRequest,
    ToolResultsEntry,
    check,
    to_plain_text,
)
from deltafold.testing import Recording, answer
from talks import Talk

T = TypeVar("T")
GOLDENS = ROOT / "tests" / "fixtures" / "agents"
KILLS = 200
RESUMED = 100


@pytest.fixture
def server() -> Iterator[Providers]:
    with Providers() as providers:
        yield providers


def lines(values: list[Any]) -> str:
    return "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in values)


def entries_of(path: Path) -> list[Any]:
    with LogFile(path) as log:
        entries: list[Any] = without_random(log.to_dict()["entries"])
        return entries


def matches(name: str, text: str) -> None:
    golden = GOLDENS / name
    if os.environ.get("DELTAFOLD_BLESS"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


# The whole run.


@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
def test_the_events_and_the_log_of_a_run(kind: str, server: Providers, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    events: list[AgentEvent] = []
    with LogFile(path) as log:
        agent = agent_of(server.url, log, Harbour())
        if kind == "synchronous":
            events += agent.stream_sync(QUESTION)
        else:
            events += asyncio.run(read(agent, agent.stream(QUESTION)))
    with LogFile(path) as log:  # another process
        agent = agent_of(server.url, log, Harbour())
        if kind == "synchronous":
            events += agent.stream_resumed_sync({"c3": True})
        else:
            events += asyncio.run(read(agent, agent.stream_resumed({"c3": True})))
    matches("events.jsonl", lines([shown(event) for event in events]))
    matches("log.jsonl", lines(entries_of(path)))


async def read(agent: Talk[None], events: AsyncGenerator[AgentEvent]) -> list[AgentEvent]:
    async with agent:
        return [event async for event in events]


def test_the_requests_show_results_images_and_the_continuation(
    server: Providers, tmp_path: Path
) -> None:
    with LogFile(tmp_path / "log.jsonl") as log:
        go_on(agent_of(server.url, log, Harbour()))
        result = go_on(agent_of(server.url, log, Harbour()))
    assert (result.status, result.reason, result.turns) == (RunStatus.ABORTED, "max_tokens", 3)
    assert result.text == "The boat is booked. One more look."
    # Every request that reported its usage is counted once.
    assert result.usage.input_tokens == 50 + 50 + 9_000 + 9_000
    bodies: list[Any] = [request.json() for request in server.requests]
    assert len(bodies) == 6
    chat = bodies[2]["messages"]
    assert [one["role"] for one in chat] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert chat[-1]["content"][-1]["type"] == "image_url"
    results = bodies[4]["messages"][2]["content"]
    assert [one["type"] for one in results[0]["content"]] == ["text", "image"]
    assert bodies[5]["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "The boat is booked."}],
    }


# Kills.

FORKS = """
import os, random, signal, sys, time
tests, url, folder, seed, kills = sys.argv[1:]
sys.path.insert(0, tests)
import agent_scenario, pathlib
path = pathlib.Path(folder)
moments = random.Random(seed)
conversation = 0
killed = 0
while killed < int(kills):
    child = os.fork()
    if child == 0:
        has_ended = agent_scenario.run_in_process(url, path, str(conversation), 0.002)
        os._exit(0 if has_ended else 7)
    time.sleep(moments.random() * 0.06)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        killed += 1
    elif os.WEXITSTATUS(status) == 0:
        conversation += 1
    elif os.WEXITSTATUS(status) != 7:
        sys.exit(f"conversation {conversation} failed")
print(conversation + 1)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kept", ["files", "all.db"])
def test_a_run_survives_kills_at_random_moments(kept: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    tests = str(ROOT / "tests" / "support")
    path = tmp_path / kept
    if kept == "files":
        path.mkdir()
    with Providers(delay=0.0005) as server:
        done = subprocess.run(
            [sys.executable, "-c", FORKS, tests, server.url, str(path), str(seed), str(KILLS)],
            capture_output=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, (seed, done.stderr.decode()[-3000:])
        conversations = [str(number) for number in range(int(done.stdout))]
        for name in conversations:
            with opened(path, name) as log:
                harbour = Harbour(effects_of(path, name), sends=True)
                while go_on(agent_of(server.url, log, harbour, name)).pending:
                    pass
            with opened(path, name) as log:
                ended_as_it_would_have(log, effects_of(path, name), seed)
        bodies = [request.body.decode() for request in server.requests]
    assert {body.count(f"{NOTE} c2") for body in bodies} == {0, 1}, seed


def ended_as_it_would_have(log: ConversationLog, effects: Path, seed: int) -> None:
    result = {"c1": "chart", "c2": "tides", "c3": "book", "c4": "tides"}
    messages = Session(log=log).messages
    texts = [one.text for one in messages if one.role == "assistant"]
    assert texts == [
        "First the tides.",
        "I book a boat.",
        "The boat is booked. One more look.",
    ], seed
    assert check(messages, "openai-chat").is_clean
    sent = [one.message.text for one in log.entries if isinstance(one, SentEntry) and one.message]
    # The limit of tokens has ended the run before it could deliver what the last call sent.
    said = [one.text for one in messages if NOTE in one.text]
    assert said == [text for text in sent if text.endswith("c2")], seed
    told: dict[str, str] = {
        one.tool_call_id: to_plain_text(one.result.live)
        for entry in log.entries
        if isinstance(entry, ToolResultsEntry)
        for one in entry.results
    }
    started = Counter(
        entry.tool_call_id
        for entry in log.entries
        if isinstance(entry, CallEntry) and entry.stage is CallStage.STARTED
    )
    assert told.keys() == result.keys(), seed
    assert set(started.values()) == {1}, seed
    happened = Counter(effects.read_text(encoding="utf-8").split())
    for name in ("chart", "tides", "book"):
        own = [call for call, tool in result.items() if tool == name]
        sure = [call for call in own if INTERRUPTED not in told[call]]
        # The result of an interrupted call states that the call may have had its effect.
        assert len(sure) <= happened[name] <= len(own), seed


RESUMES = """
import os, sys
from deltafold import Agent, OpenAIChatModel
from deltafold.conversation import AgentState, ConversationLog, SQLiteStore, StoreConflictError
url, path, effects, count = sys.argv[1:]

def pay() -> str:
    "Pay."
    with open(effects, "ab", buffering=0) as file:
        file.write(b"paid ")
    return "paid"

model = OpenAIChatModel({"model_id": "m"}, base_url=url, api_key="k")
agent = Agent({"tools": {"require_approval": ["pay"]}}, [pay], model=model)

def resume(name, ready, go):
    with SQLiteStore(path) as store:
        state = AgentState(ConversationLog(name, store=store))
        os.write(ready, b".")
        os.read(go, 1)
        try:
            return 0 if agent.resume_sync(state, {"c1": True}).text == "done" else 1
        except StoreConflictError:
            return 5

for number in range(int(count)):
    with SQLiteStore(path) as store:
        agent.run_sync("go", state=AgentState(ConversationLog(str(number), store=store)))
    (is_ready, ready), (go, goes) = os.pipe(), os.pipe()
    children = []
    for _ in range(2):
        if (child := os.fork()) == 0:
            os._exit(resume(str(number), ready, go))
        children.append(child)
    for _ in children:
        os.read(is_ready, 1)
    os.write(goes, b"..")
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    if codes != [0, 5]:
        sys.exit(f"session {number}: {codes}")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.timeout(300)
def test_of_two_processes_that_resume_a_session_one_is_refused(tmp_path: Path) -> None:
    def reply(words: Words) -> list[Any]:
        return ["done"] if words[-1][0] == "tool" else [("c1", "pay", {})]

    effects = tmp_path / "effects"
    with AnsweringServer(reply) as server:
        arguments = [f"{server.url}/v1", str(tmp_path / "all.db"), str(effects), str(RESUMED)]
        done = subprocess.run(
            [sys.executable, "-c", RESUMES, *arguments],
            capture_output=True,
            check=False,
            timeout=240,
        )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert effects.read_text(encoding="utf-8").count("paid") == RESUMED


# Cancellation.


def cancelled_at(running: Coroutine[Any, Any, T], count: int) -> Generator[Any, Any, T]:
    """Await a coroutine, and cancel its task at its await of this number."""
    awaiting = running.__await__()
    value: Any = None
    while True:
        try:
            waits_for = awaiting.send(value)
        except StopIteration as stop:
            result: T = stop.value
            return result
        while True:
            count -= 1
            if count == 0:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                value = yield waits_for
                break
            except BaseException as raised:  # noqa: BLE001 - given to the coroutine
                try:
                    waits_for = awaiting.throw(raised)
                except StopIteration as stop:
                    result = stop.value
                    return result


class Cancelling:
    """Awaits a coroutine that is cancelled at one of its awaits."""

    def __init__(self, running: Coroutine[Any, Any, Any], count: int) -> None:
        self._running = running
        self._count = count

    def __await__(self) -> Generator[Any, Any, Any]:
        """Await the coroutine."""
        return cancelled_at(self._running, self._count)


@pytest.mark.slow
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.timeout(300)
def test_a_run_can_be_cancelled_at_every_await(server: Providers, *, early: bool) -> None:
    server.delay = 0.001

    async def main() -> int:
        number = 0
        while True:
            number += 1
            log = ConversationLog()
            pause = Harbour(pause=0.001)
            agent = agent_of(server.url, log, pause, f"{early}{number}", start_tools_early=early)
            try:
                await Cancelling(agent.run(QUESTION), number)
            except asyncio.CancelledError:
                await agent.aclose()
                assert asyncio.all_tasks() == {asyncio.current_task()}
                await goes_on(server, log, f"{early}{number}")
                continue
            await agent.aclose()
            return number

    awaits = asyncio.run(main())
    assert awaits > 30
    gc.collect()
    assert closed(server)


@pytest.mark.slow
@pytest.mark.parametrize("continues", ["run", "resume"])
@pytest.mark.timeout(300)
def test_after_a_cancel_at_any_await_the_next_run_completes(continues: str) -> None:
    async def look(place: str, state: AgentState) -> str:
        """Look up the tide."""
        await asyncio.sleep(0)
        state.send(NOTE)
        return f"17:42 at {place}"

    async def approve(_tool: Tool, _call: ToolCallRequest) -> bool:
        await asyncio.sleep(0)
        return True

    def reply(words: Words) -> Recording:
        has_results = any(role == "tool" for role, _ in words)
        two = (("c1", "look", {"place": "Brest"}), ("c2", "look", {"place": "Dover"}))
        body = answer("openai-chat", *(["done"] if has_results else two)).body
        return Recording.of_events(body, delay=0.0005)

    async def main(model: OpenAIChatModel) -> int:
        settings = {"tools": {"require_approval": ["look"]}, "loop": {"retry_seconds": 0}}
        agent = Agent(settings, [look], model=model, approve=approve)
        number = 0
        while True:
            number += 1
            state = AgentState()
            try:
                await Cancelling(agent.run("go", state=state), number)
            except asyncio.CancelledError:
                assert asyncio.all_tasks() == {asyncio.current_task()}
            else:
                await model.aclose()
                return number
            if not state.log.entries:  # it was cancelled before it began
                continue
            again = agent.run("again", state=state) if continues == "run" else agent.resume(state)
            assert (await again).status is RunStatus.COMPLETED
            messages, _ = state.messages_for("openai-chat")
            calls = [one.tool_call_id for said in messages for one in said.tool_calls]
            results = [
                part.tool_call_id
                for said in messages
                for part in said.parts
                if isinstance(part, ToolResultPart)
            ]
            assert sorted(calls) == sorted(results)
            sent = [one for one in state.log.entries if isinstance(one, SentEntry)]
            assert sum(said.text == NOTE for said in messages) == len(sent)

    with AnsweringServer(reply) as answering:
        awaits = asyncio.run(main(answering.model()))
    print(f"cancelled at {awaits - 1} awaits")  # noqa: T201 - `-s` shows it
    assert awaits > 10  # how many there are depends on what one read brings


async def goes_on(server: Providers, log: ConversationLog, conversation: str) -> None:
    """Check that the log of a cancelled run is lawful, and that the run continues from it."""
    log = ConversationLog.from_json(log.to_json())
    if not any(entry.run_id for entry in log.entries):
        return  # it was cancelled before it began
    agent = agent_of(server.url, log, Harbour(), conversation)
    async with agent:
        result = await agent.resume()
    assert (result.status, result.text) == (RunStatus.AWAITING_HUMAN, "I book a boat.")
    messages, _ = AgentState(log, [MemoryNotebookWidget()]).messages_for("openai-chat")
    assert check(messages, "openai-chat").is_clean


def closed(server: Providers) -> bool:
    for _ in range(200):
        if server.open_connections == 0:
            return True
        server.pause(0.01)
    return False


@pytest.mark.parametrize("place", range(0, 24, 2))
def test_a_run_whose_events_are_left_ends(place: int, server: Providers) -> None:
    async def main() -> None:
        agent = agent_of(server.url, ConversationLog(), Harbour(pause=0.001))
        async with agent, aclosing(agent.stream(QUESTION)) as events:
            for _ in range(place):
                await anext(events)
        assert agent.run_state.status in {RunStatus.IDLE, RunStatus.ABORTED}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert closed(server)
