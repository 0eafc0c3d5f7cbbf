"""Contexts that a provider refuses as too long: the agent makes smaller ones, and keeps to them."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import aclosing
from itertools import pairwise
from typing import Any, Final, TypeAlias

import pytest

from deltafold import Agent, ErrorCode, Message, ModelError
from deltafold.conversation import (
    AgentEvent,
    AgentEventKind,
    AgentState,
    CompactionEntry,
    ContextInput,
    ContextManager,
    ConversationLog,
    ModelInputEntry,
    ModelOutputEntry,
    RunStatus,
)
from deltafold.models import Model
from deltafold.testing import Recording, ReplayServer
from small_windows import CHAT, CLAUDE, PROVIDERS, Provider, SmallWindow
from wires import chat, gpt

COMPACT: Final = {"context": {"on_overflow": "compact"}}
LIMIT: Final = 9_000
_SCRIPTED: Final = {AgentEventKind.DELTA, AgentEventKind.TURN}

Ask: TypeAlias = Callable[..., list[AgentEvent]]


def conversation(exchanges: int = 30) -> AgentState:
    """Return a conversation of exchanges with about 110 tokens, and 400 bytes of a request."""
    state = AgentState()
    for number in range(exchanges):
        text = f"question {number}: " + "word " * 70
        state.append_model_input(ModelInputEntry.of_message(Message.user(text)))
        reply = Message.assistant(f"answer {number}.")
        state.append_model_output(ModelOutputEntry.of_message(reply))
    return state


def waiting(model: Model[Any], said: str, state: AgentState, **options: Any) -> list[AgentEvent]:  # noqa: ANN401 - of the agent
    agent = Agent(options.pop("config", COMPACT), model=model, **options)
    return list(agent.stream_sync(said, state=state))


def awaited(model: Model[Any], said: str, state: AgentState, **options: Any) -> list[AgentEvent]:  # noqa: ANN401 - as above
    agent = Agent(options.pop("config", COMPACT), model=model, **options)

    async def main() -> list[AgentEvent]:
        async with model, aclosing(agent.stream(said, state=state)) as events:
            return [event async for event in events]

    return asyncio.run(main())


WAYS: Final[dict[str, Ask]] = {"sync": waiting, "async": awaited}


def asked(state: AgentState) -> AgentState:
    state.append_model_input(ModelInputEntry.of_message(Message.user("And now?")))
    return state


def kinds(events: list[AgentEvent]) -> list[AgentEventKind]:
    return [event.kind for event in events if event.kind not in _SCRIPTED]


def compacted(events: list[AgentEvent]) -> AgentEvent:
    (event,) = (one for one in events if one.kind is AgentEventKind.COMPACTED)
    return event


def tokens_of(event: AgentEvent) -> int:
    assert event.context is not None
    return event.context.update.tokens


def questions(body: str) -> list[int]:
    """Return the numbers of the questions that a request has."""
    return [number for number in range(200) if f"question {number}:" in body]


def held(state: AgentState) -> list[object]:
    """Return the budgets that the log records."""
    outputs = [one for one in state.log.entries if isinstance(one, ModelOutputEntry)]
    return [one.metadata["held_budget"] for one in outputs if "held_budget" in one.metadata]


@pytest.fixture
def server() -> Iterator[SmallWindow]:
    with SmallWindow(LIMIT) as small:
        yield small


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
def test_a_context_that_was_refused_is_compacted(provider: Provider, ask: Ask) -> None:
    state = conversation()
    with SmallWindow(LIMIT, provider=provider) as server:
        config = {**COMPACT, "loop": {"max_retries": 0}}
        events = ask(server.model(), "question 100: and now?", state, config=config)
    event = compacted(events)
    assert kinds(events) == [
        AgentEventKind.COMPACTED,
        AgentEventKind.ANSWER,
        AgentEventKind.RUN_END,
    ]
    assert event.error is not None
    assert event.error.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED
    assert event.turn == 1
    run = events[-1].run
    assert run is not None
    assert (run.status, run.reason, run.text, run.turns) == (
        RunStatus.COMPLETED,
        "answered",
        "Noted.",
        1,
    )
    first, second = server.bodies
    assert server.refused == [0]
    assert len(second) <= LIMIT < len(first)
    # The oldest have gone, and nothing between the others.
    assert questions(first) == [*range(30), 100]
    left = questions(second)
    assert left == [*range(left[0], 30), 100]
    assert left[0] > 5
    assert len([one for one in state.log.entries if isinstance(one, ModelInputEntry)]) == 31


def test_a_run_ends_with_the_error_by_default(server: SmallWindow) -> None:
    agent = Agent(model=server.model())
    with pytest.raises(ModelError) as raised:
        agent.run_sync("question 100: and now?", state=conversation())
    assert raised.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED
    assert len(server.requests) == 1


# The budget.


@pytest.mark.parametrize(
    ("model_id", "exchanges", "context", "expected"),
    [
        ("m", 30, {}, None),
        ("gpt-4.1", 30, {}, None),  # half of its window would be no change
        ("gpt-4", 60, {}, 4_096),
        ("gpt-4", 60, {"token_budget": 1_000_000}, None),
        ("m", 30, {"token_budget": 3_000}, None),
    ],
)
def test_the_budget_is_that_of_the_settings_the_window_or_what_was_sent(
    model_id: str, exchanges: int, context: dict[str, Any], expected: int | None
) -> None:
    state = conversation(exchanges)
    given = ContextInput(asked(conversation(exchanges)), context.get("token_budget"))
    half = ContextManager().build_context(given).update.tokens // 2
    with SmallWindow(6_000 if exchanges == 30 else 18_000) as server:
        settings = {"context": {"on_overflow": "compact", **context}}
        events = waiting(server.model(model_id), "And now?", state, config=settings)
    assert server.refused == [0]
    budget = half if expected is None else expected
    assert held(state) == [budget]
    assert budget < 2 * half
    assert budget / 2 < tokens_of(compacted(events)) <= budget


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
def test_what_goes_is_summarised(server: SmallWindow, ask: Ask, is_async: bool) -> None:
    seen: list[list[Message]] = []

    def summarise(messages: list[Message]) -> str:
        seen.append(messages)
        return f"They spoke of {len(messages)} words."

    async def later(messages: list[Message]) -> str:
        await asyncio.sleep(0)
        return summarise(messages)

    state = conversation()
    compact = later if is_async else summarise
    events = ask(server.model(), "question 100: and now?", state, compact=compact)
    (covered,) = seen
    context = compacted(events).context
    assert context is not None
    assert context.compaction is not None
    (entry,) = [one for one in state.log.entries if isinstance(one, CompactionEntry)]
    assert entry == context.compaction
    assert len(entry.covers) == len(covered)
    assert f"They spoke of {len(covered)} words." in server.bodies[1]
    assert questions(server.bodies[1]) == [*range(len(covered) // 2, 30), 100]
    assert tokens_of(compacted(events)) < 30 * 105 / 2


# Once.


def test_a_second_refusal_of_the_same_answer_is_the_end() -> None:
    with SmallWindow(2_000) as server:
        agent = Agent({**COMPACT, "loop": {"on_error": "return"}}, model=server.model())
        result = agent.run_sync("And now?", state=conversation())
    assert server.refused == [0, 1]
    assert (result.status, result.reason) == (RunStatus.FAILED, "error")
    assert isinstance(result.error, ModelError)
    assert result.error.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


def test_an_input_that_is_too_long_alone_is_refused_once(server: SmallWindow) -> None:
    agent = Agent(COMPACT, model=server.model())
    with pytest.raises(ModelError) as raised:
        agent.run_sync("word " * 3_000)
    assert raised.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED
    assert len(server.requests) == 1


def test_an_input_above_the_budget_is_sent_alone(server: SmallWindow) -> None:
    state = conversation(15)
    agent = Agent(COMPACT, model=server.model())
    events = waiting(server.model(), "question 100: " + "word " * 1_700, state)
    assert [questions(body) for body in server.bodies] == [[*range(15), 100], [100]]
    context = compacted(events).context
    assert context is not None
    assert not context.update.fits
    # It fits the window, and so it does behind the next input.
    assert agent.run_sync("question 101: why?", state=state).status is RunStatus.COMPLETED
    assert server.refused == [0]


def test_a_refusal_behind_the_first_part_is_the_end() -> None:
    error = b'data: {"error":{"message":"too long","code":"context_length_exceeded"}}\n\n'
    begun = chat("Well").split(b"data: [DONE]")[0].split(b"\n\n")[:2]
    with ReplayServer([Recording.of_events(b"\n\n".join([*begun, error]))]) as server:
        agent = Agent(COMPACT, model=CHAT.model(server))
        with pytest.raises(ModelError) as raised:
            agent.run_sync("And now?", state=conversation())
    assert raised.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED
    assert raised.value.partial_message is not None
    assert raised.value.partial_message.text == "Well"
    assert len(server.requests) == 1


def test_another_refusal_is_the_end() -> None:
    refusal = Recording.error(400, {"error": {"message": "no", "code": "invalid_request_error"}})
    with ReplayServer([refusal]) as server, pytest.raises(ModelError):
        Agent(COMPACT, model=CHAT.model(server)).run_sync("And?", state=conversation())
    assert len(server.requests) == 1


# Later requests.


def is_repeated(before: list[Any], after: list[Any]) -> bool:
    return after[: len(before)] == before


def test_later_runs_stay_below_and_repeat_what_was_sent(server: SmallWindow) -> None:
    state = conversation()
    agent = Agent(COMPACT, model=server.model())
    for number in range(100, 140):
        if number % 7 == 0:  # another process
            state = AgentState(ConversationLog.from_json(state.log.to_json()))
        agent.run_sync(f"question {number}: " + "word " * 70, state=state)
    assert server.refused == [0]
    (budget,) = held(state)
    changes = [not is_repeated(*pair) for pair in pairwise(server.messages[1:])]
    assert 0 < sum(changes) < len(changes) / 3
    first = [questions(body)[0] for body in server.bodies[1:]]
    assert first == sorted(first)
    assert isinstance(budget, int)


def test_a_log_that_was_restored_sends_the_same(server: SmallWindow) -> None:
    state = conversation()
    agent = Agent(COMPACT, model=server.model())
    agent.run_sync("question 100: and now?", state=state)
    restored = AgentState(ConversationLog.from_json(state.log.to_json()))
    for one in (state, restored):
        agent.run_sync("question 101: why?", state=one)
    assert server.bodies[-1] == server.bodies[-2]
    assert server.refused == [0]
    # Nothing of the log was lost.
    assert [entry.id for entry in restored.log.entries][: len(conversation().log.entries)] == [
        entry.id for entry in state.log.entries
    ][:60]


def test_another_model_and_a_new_beginning_get_everything(server: SmallWindow) -> None:
    state = conversation()
    Agent(COMPACT, model=server.model()).run_sync("question 100: and now?", state=state)
    with SmallWindow(100_000) as large:
        Agent(COMPACT, model=large.model("other")).run_sync("question 101: why?", state=state)
        assert questions(large.bodies[0]) == [*range(30), 100, 101]
        Agent(model=large.model()).run_sync("question 102: why?", state=state)
        assert questions(large.bodies[1]) == [*range(30), 100, 101, 102]
    state.reset()
    for number in range(20):
        text = f"question {number}: " + "word " * 70
        state.append_model_input(ModelInputEntry.of_message(Message.user(text)))
        state.append_model_output(ModelOutputEntry.of_message(Message.assistant("Yes.")))
    server.limit = 100_000
    Agent(COMPACT, model=server.model()).run_sync("question 103: why?", state=state)
    assert questions(server.bodies[-1]) == [*range(20), 103]


def test_a_conversation_that_overflows_again_gets_a_smaller_budget(server: SmallWindow) -> None:
    state = conversation()
    agent = Agent(COMPACT, model=server.model())
    agent.run_sync("question 100: and now?", state=state)
    server.limit = 4_000
    agent.run_sync("question 101: and now?", state=state)
    agent.run_sync("question 102: and now?", state=state)
    assert server.refused == [0, 2]
    first, second = held(state)
    assert isinstance(first, int)
    assert isinstance(second, int)
    assert second < first


def long_tide(place: str) -> str:
    """Look up the tide."""
    return f"{place}: " + "17:42 " * 250


def test_the_turns_of_a_run_stay_below() -> None:
    calls = [((f"c{number}", "long_tide", {"place": f"port {number}"}),) for number in range(12)]
    state = AgentState()
    with SmallWindow(LIMIT, *calls) as server:
        events = waiting(server.model(), "question 1: when?", state, tools=[long_tide])
        run = events[-1].run
        assert run is not None
        assert (run.reason, run.turns) == ("answered", 13)
        assert len(server.refused) == 1
        for before, after in pairwise(server.messages):
            results = [one for one in after if one["role"] == "tool"]
            assert not results or f"port {len(calls)}" not in results[-1]["content"]
            assert after[0] == before[0]
        # The newest results are whole, and the question is there.
        assert "port 11" in server.bodies[-1]
        assert all(questions(body) == [1] for body in server.bodies)
    for messages in server.messages:
        made = [call["id"] for one in messages for call in one.get("tool_calls", ())]
        assert made == [one["tool_call_id"] for one in messages if one["role"] == "tool"]


def test_a_run_that_failed_behind_the_compaction_is_resumed(server: SmallWindow) -> None:
    state = conversation()
    busy = Recording.error(401, {"error": {"message": "no key"}})
    replies: list[Recording] = [CHAT.refusal, busy]
    with ReplayServer(replies) as failing, pytest.raises(ModelError):
        Agent(COMPACT, model=CHAT.model(failing)).run_sync("question 100: now?", state=state)
    restored = AgentState(ConversationLog.from_json(state.log.to_json()))
    result = Agent(COMPACT, model=server.model()).resume_sync(restored)
    assert result.text == "Noted."
    assert server.refused == [0]
    assert server.bodies[1] == failing.requests[1].body.decode()


# Fallbacks.


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
def test_a_fallback_goes_first(server: SmallWindow, ask: Ask) -> None:
    state = conversation()
    with SmallWindow(100_000, provider=CLAUDE) as second:
        model = server.model().with_fallback(second.model())
        events = ask(model, "question 100: and now?", state)
    assert AgentEventKind.COMPACTED not in kinds(events)
    assert (len(server.requests), len(second.requests)) == (1, 1)
    assert questions(second.bodies[0]) == [*range(30), 100]


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
def test_the_last_model_that_refused_is_asked_again(server: SmallWindow, ask: Ask) -> None:
    state = conversation()
    with SmallWindow(LIMIT, provider=CLAUDE) as second:
        model = server.model().with_fallback(second.model())
        events = ask(model, "question 100: and now?", state)
        assert kinds(events)[:2] == [AgentEventKind.RETRY, AgentEventKind.COMPACTED]
        assert (server.refused, second.refused) == ([0], [0])
        assert len(second.requests) == 2
        run = events[-1].run
        assert run is not None
        assert run.message is not None
        assert [one["code"] for one in run.message.meta.warnings] == ["fallback"]
        assert questions(second.bodies[1])[-1] == 100


def test_a_fallback_that_is_no_larger_is_not_asked() -> None:
    state = conversation(60)
    with SmallWindow(20_000) as first, SmallWindow(20_000) as second:
        model = first.model("gpt-4").with_fallback(second.model("gpt-4-0613"))
        Agent(COMPACT, model=model).run_sync("And now?", state=state)
        assert len(first.requests) == 2
        assert second.requests == []


def test_the_compacted_context_moves_on_too() -> None:
    """A fallback behind a compaction gets the context that the answer has now."""
    state = conversation()
    down = Recording.error(503, {"error": {"message": "busy"}})
    with ReplayServer([CHAT.refusal, down]) as first, SmallWindow(LIMIT, provider=CLAUDE) as second:
        model = CHAT.model(first).with_fallback(second.model(), on={ErrorCode.OVERLOADED})
        config = {**COMPACT, "loop": {"max_retries": 0}}
        result = Agent(config, model=model).run_sync("question 100: and now?", state=state)
        assert result.text == "Noted."
        assert (len(first.requests), second.refused) == (2, [])
        Agent(COMPACT, model=second.model()).run_sync("question 101: why?", state=state)
        assert second.refused == []


def test_usage_of_a_refusal_is_counted() -> None:
    usage = {"prompt_tokens": 700, "completion_tokens": 0, "total_tokens": 700}
    counted = json.dumps(
        {"id": "1", "object": "chat.completion.chunk", "choices": [], "usage": usage}
    )
    error = json.dumps({"error": {"message": "too long", "code": "context_length_exceeded"}})
    refusal = f"data: {counted}\n\ndata: {error}\n\n".encode()
    with ReplayServer([Recording.of_events(refusal), Recording.of_events(gpt("Hi"))]) as server:
        model = CHAT.model(server)
        result = Agent(COMPACT, model=model).run_sync("And now?", state=conversation())
    assert result.text == "Hi"
    alone = result.message
    assert alone is not None
    assert alone.meta.usage is not None
    assert (result.usage.total_tokens or 0) - (alone.meta.usage.total_tokens or 0) == 700
