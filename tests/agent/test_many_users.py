"""One agent for many users: each run has its conversation, and a conversation one run."""

import asyncio
import gc
import json
import threading
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import pytest

from answering_server import AnsweringServer, Words
from deltafold import Agent, Message, MisuseError, OpenAIChatModel, Tool
from deltafold.conversation import (
    AgentState,
    ConversationLog,
    IllegalTransitionError,
    InstructionEntry,
    LogFile,
    MemoryLogStore,
    RunState,
    RunStatus,
    SQLiteStore,
    Store,
    ToolCallRequest,
)
from deltafold.testing import Recording, answer

SIXTEEN: Final = range(16)


def echo(words: Words) -> Sequence[str]:
    """Answer with the last text of the user."""
    return ("to ", words[-1][1])


def tide(place: str) -> str:
    """Look up the next high tide at a place."""
    return f"17:42 at {place}"


def calls_first(name: str = "tide", arguments: dict[str, object] | None = None) -> Any:  # noqa: ANN401
    """Return a reply that calls a tool once, and then answers with its result."""

    def reply(words: Words) -> Sequence[Any]:
        role, content = words[-1]
        if role == "tool":
            return (f"told: {content}",)
        return (("c1", name, {"place": content} if arguments is None else arguments),)

    return reply


# Conversations.


def test_each_run_begins_a_conversation_and_a_state_continues_one() -> None:
    with AnsweringServer(echo) as server:
        agent = Agent({}, [tide], model=server.model())
        ann = agent.run_sync("I am Ann.")
        agent.run_sync("I am Ben.")
        agent.run_sync("And now?", state=ann.state)
    assert server.words[1] == [("user", "I am Ben.")]
    assert server.words[2] == [
        ("user", "I am Ann."),
        ("assistant", "to I am Ann."),
        ("user", "And now?"),
    ]
    assert ann.state.run_state.status is RunStatus.COMPLETED


def test_users_at_once_have_their_own_words_runtime_and_approval() -> None:
    seen: list[tuple[str, object, str]] = []

    def whose(place: str, runtime: object, state: AgentState) -> str:
        """Look it up."""
        seen.append((place, runtime, state.log.session_id))
        return place

    async def main() -> None:
        model = server.model()
        agent = Agent(
            {"tools": {"require_approval": ["whose"]}},
            [whose],
            model=model,
            runtime="nobody",
            approve=lambda _tool, _call: False,
        )

        async def one(user: str) -> str:
            state = AgentState(ConversationLog(session_id=user))
            asked: list[str] = []

            async def approve(_tool: Tool, call: ToolCallRequest) -> bool:
                asked.append(call.tool_call_id)
                await asyncio.sleep(0)
                return True

            result = await agent.run(user, state=state, runtime=user, approve=approve)
            assert asked == ["c1"]
            return result.text

        users = [f"user {number}" for number in range(50)]
        texts = await asyncio.gather(*map(one, users))
        assert texts == [f"told: {user}" for user in users]
        assert sorted(seen) == sorted((user, user, user) for user in users)
        assert (await agent.run("x")).text.startswith("told: The call was rejected")
        await model.aclose()

    with AnsweringServer(calls_first("whose")) as server:
        asyncio.run(main())
    for words in server.words:
        assert len([text for role, text in words if role == "user"]) == 1


def test_a_missing_runtime_raises_in_the_run_and_writes_nothing() -> None:
    def needy(runtime: object) -> str:
        """Need it."""
        return str(runtime)

    with AnsweringServer(echo) as server:
        agent, state = Agent({}, [needy], model=server.model()), AgentState()
        with pytest.raises(MisuseError, match="runtime: the tool 'needy' requires it"):
            agent.run_sync("hi", state=state)
        assert not state.log.entries
        assert state.run_state == RunState()
        assert agent.run_sync("hi", state=state, runtime=1).text == "to hi"


def test_the_instructions_of_an_agent_are_an_entry_where_they_change() -> None:
    with AnsweringServer(echo) as server:
        state = AgentState()
        brief = Agent({}, instructions="Be brief.", model=server.model())
        for agent in (brief, brief, Agent({}, model=server.model())):
            agent.run_sync("hi", state=state)
    assert [words[0] for words in server.words] == [("system", "Be brief.")] * 3
    entries = [one for one in state.log.entries if isinstance(one, InstructionEntry)]
    assert [one.instruction for one in entries] == ["Be brief."]


def test_what_is_no_state_is_refused_with_the_way_to_one(tmp_path: Path) -> None:
    with AnsweringServer(echo) as server, LogFile(tmp_path / "log") as log:
        wrong: Any = log
        with pytest.raises(MisuseError, match=r"AgentState\(log\)"):
            Agent({}, model=server.model()).run_sync("hi", state=wrong)


# Messages that the caller brings.

HELD: Final[list[Any]] = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "hello"},
    {"role": "user", "content": "and now?"},
]
CALLED: Final[dict[str, Any]] = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
    ],
}
RESULT: Final[dict[str, Any]] = {"role": "tool", "tool_call_id": "c1", "content": "17:42"}


def test_a_history_of_the_client_is_appended_and_not_counted() -> None:
    with AnsweringServer(echo) as server:
        agent = Agent({"loop": {"max_turns": 1}}, [tide], model=server.model())
        result = agent.run_sync(HELD)
        again = agent.resume_sync(result.state)
    assert server.words == [[(one["role"], one["content"]) for one in HELD]]
    assert (result.turns, result.text) == (again.turns, again.text) == (1, "to and now?")
    assert result.usage == again.usage
    assert [one.role.value for one in result.state.messages_for("openai-chat")[0]] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]


def test_calls_of_given_messages_never_run() -> None:
    ran: list[str] = []

    def tide() -> str:
        """Look up the tide."""
        ran.append("ran")
        return "17:42"

    two = {**CALLED, "tool_calls": [CALLED["tool_calls"][0], _call("c2")]}
    with AnsweringServer(lambda _: ("done",)) as server:
        agent = Agent({}, [tide], model=server.model())
        for given in (
            [HELD[0], CALLED, RESULT],
            [HELD[0], two, RESULT],  # c2 has no result
            [HELD[0], CALLED, HELD[2]],
            [HELD[0], CALLED, RESULT, CALLED, RESULT, HELD[2]],  # counted from one in each answer
        ):
            result = agent.run_sync(given)
            assert result.text == "done"
            assert agent.resume_sync(result.state).text == "done"
    assert not ran
    assert len(server.requests) == 4
    assert [text for role, text in server.words[1] if role == "tool"] == [
        "17:42",
        "The call was not run, because the conversation went on without it.",
    ]


def _call(call_id: str) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": "tide", "arguments": "{}"}}


def test_results_of_the_caller_answer_the_calls_that_wait() -> None:
    with AnsweringServer(calls_first()) as server:
        config = {"tools": {"require_approval": ["tide"]}}
        agent = Agent(config, [tide], model=server.model())
        waiting = agent.run_sync("Brest")
        assert waiting.status is RunStatus.AWAITING_HUMAN
        result = agent.run_sync([Message.tool_result("c1", "18:00")], state=waiting.state)
    assert result.text == "told: 18:00"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "there is none"),
        (HELD[:2], "the role assistant"),
        ([RESULT], r"messages\[0\]: the result answers the call 'c1'"),
        ([HELD[0], CALLED, RESULT, RESULT], r"messages\[3\]: the result answers the call 'c1'"),
    ],
)
def test_messages_that_do_not_fit_are_refused_before_anything_is_written(
    given: list[Any], said: str
) -> None:
    with AnsweringServer(echo) as server:
        agent, state = Agent({}, model=server.model()), AgentState()
        with pytest.raises(MisuseError, match=said):
            agent.run_sync(given, state=state)
        assert not state.log.entries
        assert agent.run_sync("hi", state=state).text == "to hi"


# One run on a conversation.


def test_a_second_run_on_a_conversation_is_refused_and_the_first_loses_nothing() -> None:
    async def main() -> None:
        model = server.model()
        state = AgentState()
        began = asyncio.Event()

        async def slow(place: str) -> str:
            """Look it up slowly."""
            began.set()
            await asyncio.sleep(0.05)
            return place

        agent = Agent({}, [slow], model=model)
        first = asyncio.create_task(agent.run("Brest", state=state))
        await began.wait()
        before = state.log.entries
        other = AgentState(state.log)
        for second in (
            agent.run("again", state=state),
            Agent({}, model=model).run("again", state=state),
            agent.run("again", state=other),
            agent.resume(state),
            agent.resume(other),
        ):
            with pytest.raises(IllegalTransitionError, match="a run is under way"):
                await second
        threads = [asyncio.to_thread(agent.run_sync, "x", state=state) for _ in range(3)]
        found = await asyncio.gather(*threads, return_exceptions=True)
        assert {type(one) for one in found} == {IllegalTransitionError}
        assert state.log.entries == before
        assert (await first).text == "told: Brest"
        assert (await agent.run("Dover", state=other)).text == "told: Dover"
        await model.aclose()

    with AnsweringServer(calls_first("slow")) as server:
        asyncio.run(main())


def test_a_second_run_on_a_session_of_one_store_is_refused(tmp_path: Path) -> None:
    def state_of(store: Store) -> AgentState:
        return AgentState(ConversationLog("ann", store=store))

    path = tmp_path / "all.db"
    memory = MemoryLogStore()
    with AnsweringServer(echo) as server, SQLiteStore(path) as one, SQLiteStore(path) as other:
        agent = Agent({}, model=server.model())
        for first, second in ((memory, memory), (one, one), (one, other)):
            state = state_of(first)
            events: Any = agent.stream_sync("one", state=state)
            next(events)
            begun = len(state.log.entries)
            with pytest.raises(IllegalTransitionError):
                agent.run_sync("two", state=state_of(second))
            assert len(state_of(second).log.entries) == begun
            assert list(events)[-1].run.text == "to one"
            assert agent.run_sync("two", state=state_of(second)).text == "to two"


@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_may_run_its_agent_on_another_conversation_alone(*, is_async: bool) -> None:
    refused: list[str] = []
    inner: list[str] = []

    def both(agent: Agent[Any], state: AgentState | None) -> str:
        assert state is not None
        try:
            agent.run_sync("inner", state=state)
        except IllegalTransitionError as error:
            refused.append(str(error))
        inner.append(agent.run_sync("inner").text)
        return "looked"

    async def ask(agent: Agent[Any], state: AgentState) -> str:
        """Ask the same agent."""
        try:
            await agent.run("inner", state=state)
        except IllegalTransitionError as error:
            refused.append(str(error))
        inner.append((await agent.run("inner")).text)
        return "looked"

    both.__doc__ = ask.__doc__
    both.__name__ = "ask"

    def reply(words: Words) -> Sequence[Any]:
        if words[-1] == ("user", "outer"):
            return (("c1", "ask", {}),)
        return (f"to {words[-1][1]}",)

    with AnsweringServer(reply) as server:
        tool: Callable[..., object] = ask if is_async else both
        result = Agent({}, [tool], model=server.model()).run_sync("outer")
    assert (result.text, inner, len(refused)) == ("to looked", ["to inner"], 1)


def test_a_run_begins_after_a_stream_that_was_dropped() -> None:
    async def in_this_loop() -> str:
        state = AgentState()
        events = agent.stream("one", state=state)
        await anext(events)
        del events
        gc.collect()
        await asyncio.sleep(0.05)
        async with model:
            return (await agent.run("two", state=state)).text

    with AnsweringServer(echo) as server:
        model = server.model()
        agent = Agent({}, model=model)
        assert asyncio.run(in_this_loop()) == "to two"
        state = AgentState()
        events: Any = agent.stream_sync("one", state=state)
        next(events)
        with pytest.raises(IllegalTransitionError):
            agent.run_sync("two", state=state)
        del events
        assert agent.run_sync("two", state=state).text == "to two"
        # A loop that was closed without its generators ends no run.
        loop = asyncio.new_event_loop()
        dropped: Any = agent.stream("three", state=state)
        loop.run_until_complete(anext(dropped))
        loop.close()
        del dropped
        assert agent.run_sync("four", state=state).text == "to four"


def test_a_run_begins_after_one_that_was_cancelled_or_failed() -> None:
    failing = Recording.error(400, {"error": {"message": "no"}})

    async def main() -> None:
        model, state = server.model(), AgentState()
        agent = Agent({}, model=model)
        running = asyncio.create_task(agent.run("one", state=state))
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        with pytest.raises(Exception, match="no"):
            await agent.run("fail", state=state)
        assert state.run_state.status is RunStatus.FAILED
        assert (await agent.run("two", state=state)).text == "to two"
        await model.aclose()

    with AnsweringServer(lambda words: failing if "fail" in words[-1] else echo(words)) as server:
        asyncio.run(main())


# Event loops and threads.


@pytest.mark.parametrize("transport", ["httpx", "httpx2", "aiohttp"])
def test_threads_share_an_agent_and_leave_no_connection(transport: str) -> None:
    def reply(words: Words) -> Recording:
        slow = int(words[-1][1]) % 2
        body = answer("openai-chat", "to ", words[-1][1]).body
        return Recording.of_events(body, delay=0.02 if slow else 0.0)

    with AnsweringServer(reply) as server:
        model = OpenAIChatModel(
            {"model_id": "m"}, base_url=f"{server.url}/v1", api_key="k", transport=transport
        )
        agent = Agent({}, [tide], model=model)
        texts: dict[int, str] = {}

        def go(number: int) -> None:
            texts[number] = agent.run_sync(str(number)).text

        threads = [threading.Thread(target=go, args=(one,), daemon=True) for one in SIXTEEN]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert texts == {number: f"to {number}" for number in SIXTEEN}
        assert len(server.requests) == len(SIXTEEN)
        for _ in range(200):
            if not server.open_connections:
                break
            server.pause(0.01)
        assert not server.open_connections


def test_blocks_around_the_program_close_the_model_of_the_settings_alone() -> None:
    async def main() -> None:
        settings = {"name": "openai-chat/m", "base_url": f"{server.url}/v1", "api_key": "k"}
        agent = Agent({"model": settings})
        async with agent:
            async with agent:
                await agent.run("one")
            await agent.run("two")
            assert server.connections == 1  # the inner block has closed nothing
        await until_closed(server, 0)
        given = server.model()
        async with Agent({}, model=given) as other:
            await other.run("three")
        assert server.open_connections == 1
        async with given:
            pass
        await until_closed(server, 0)

    with AnsweringServer(echo) as server:
        asyncio.run(main())


async def until_closed(server: AnsweringServer, number: int) -> None:
    for _ in range(200):
        if server.open_connections == number:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{server.open_connections} connections are open")


def test_a_loop_closes_its_own_connections_and_no_others() -> None:
    with AnsweringServer(echo) as server:
        model = server.model()
        agent = Agent({}, model=model)

        async def main() -> None:
            await agent.run("one")
            assert (await asyncio.to_thread(agent.run_sync, "two")).text == "to two"
            await agent.run("three")
            assert server.connections == 2
            await model.aclose()

        asyncio.run(main())


def test_schemas_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    make = Tool.from_function

    def counted(function: Any, **settings: Any) -> Tool:  # noqa: ANN401
        made.append(function)
        return make(function, **settings)

    monkeypatch.setattr(Tool, "from_function", counted)
    with AnsweringServer(echo) as server:
        agent = Agent({}, [tide], model=server.model())
        for _ in range(3):
            agent.run_sync("hi")
    assert made == [tide]


def test_the_events_of_a_run_end_with_its_state() -> None:
    async def main() -> AgentState | None:
        model = server.model()
        found = None
        async with model, aclosing(Agent({}, model=model).stream("hi")) as events:
            async for event in events:
                found = event.run.state if event.run else found
        return found

    with AnsweringServer(echo) as server:
        state = asyncio.run(main())
    assert state is not None
    assert json.loads(state.log.to_json())["entries"]
