"""Messages that are sent to a conversation while its run goes on, before it, and after it."""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import pytest

import speakers
from answering_server import AnsweringServer, Words
from deltafold import (
    Agent,
    AnthropicModel,
    BedrockConverseModel,
    CohereChatModel,
    GeminiModel,
    Message,
    MistralModel,
    MisuseError,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from deltafold.conversation import (
    AgentEventKind,
    AgentState,
    ConversationLog,
    LogFile,
    MemoryLogStore,
    ModelInputEntry,
    RunStatus,
    SentEntry,
    SQLiteStore,
)
from deltafold.conversation.history.run_entries import When
from deltafold.models.base import Model
from deltafold.testing import Recording, ReplayServer, answer
from speakers import Call
from talks import Talk

MARKER: Final = "Only-in-Brest"
MODELS: Final[dict[str, Callable[..., Model[Any]]]] = {
    "openai-chat": OpenAIChatModel,
    "openai-responses": OpenAIResponsesModel,
    "anthropic-messages": AnthropicModel,
    "gemini": GeminiModel,
    "ollama": OllamaModel,
    "cohere-chat": CohereChatModel,
    "mistral": MistralModel,
    "bedrock-converse": BedrockConverseModel,
}
CALLS: Final = (("c1", "tide", {"place": "Brest"}), ("c2", "tide", {"place": "Dover"}))


def script_of(dialect: str) -> list[Recording]:
    """Return an answer with two calls, and three with a text each."""
    texts = ("First.", "Second.", "Third.")
    if dialect in {"cohere-chat", "mistral"}:
        made = (Call(call_id, name, (json.dumps(given),)) for call_id, name, given in CALLS)
        calls = speakers.stream(dialect, *made, end="tool_calls")
        spoken = (speakers.stream(dialect, speakers.text(text)) for text in texts)
        return [*map(Recording.of_events, (calls, *spoken))]
    name: Any = dialect
    return [answer(name, *CALLS), *(answer(name, text) for text in texts)]


def tide(place: str) -> str:
    """Look up the tide."""
    return f"RESULT of {place}"


def spoken(state: AgentState) -> list[str]:
    """Return who says what in the conversation, as models are shown it."""
    said: list[str] = []
    for message in state.messages_for("openai-chat")[0]:
        kind = "marker" if MARKER in message.to_json() else message.role.value
        said.append("calls" if message.tool_calls else kind)
    return said


def sent_where(words: Words) -> list[int]:
    return [place for place, (_, content) in enumerate(words) if MARKER in str(content)]


@pytest.mark.parametrize("when", ["next_turn", "idle"])
@pytest.mark.parametrize("dialect", MODELS)
def test_a_message_that_is_sent_at_any_event_is_said_once_after_the_results(
    dialect: str, when: When
) -> None:
    script = script_of(dialect)
    events = asyncio.run(_sent_at(dialect, when, script, None))
    assert events > 8
    for place in range(events):
        asyncio.run(_sent_at(dialect, when, script, place))


async def _sent_at(dialect: str, when: When, script: list[Recording], place: int | None) -> int:
    """Run, and send at an event; return the number of events."""
    with ReplayServer() as server:
        server.queue(*script)
        model = MODELS[dialect]({"model_id": "m"}, base_url=server.url, api_key="k")
        state = AgentState()
        agent = Agent({}, [tide], model=model)
        count, was_last = 0, False
        async with model:
            async with aclosing(agent.stream("When?", state=state)) as events:
                async for event in events:
                    if count == place:
                        state.send(MARKER, when)
                    count += 1
                    was_last = event.kind is AgentEventKind.RUN_END
            assert was_last
            said = spoken(state)
            if place is None:
                assert said == ["user", "calls", "tool", "assistant"]
                return count
            if place == count - 1:  # the run had ended: the message waits for the next one
                assert "marker" not in said
                await agent.run("And now?", state=state)
                said = spoken(state)
                later = ["user", "assistant", "marker", "assistant"]
                assert said[4:] == (later if when == "idle" else ["marker", "user", "assistant"])
        assert said.count("marker") == 1
        assert said.index("marker") > said.index("tool")
        assert said[-1] == "assistant"
        bodies = [request.body.decode().count(MARKER) for request in server.requests]
        first = bodies.index(1)
        assert bodies == [0] * first + [1] * (len(bodies) - first)
        if when == "idle" and place < count - 1:
            assert said == ["user", "calls", "tool", "assistant", "marker", "assistant"]
        return count


def test_a_run_that_would_end_goes_on_and_says_so() -> None:
    def reply(words: Words) -> Sequence[str]:
        if len(server.requests) == 1:
            state.send(f"{MARKER} 1", "idle")
            state.send(f"{MARKER} 2")
        return (f"to {words[-1][1]}",)

    state = AgentState()
    with AnsweringServer(reply) as server:
        agent = Agent({}, model=server.model())
        events = list(agent.stream_sync("When?", state=state))
    inputs = [event.message for event in events if event.kind is AgentEventKind.INPUT]
    assert [said and said.text for said in inputs] == [f"{MARKER} 1", f"{MARKER} 2"]
    assert events[-1].run is not None
    assert (events[-1].run.turns, events[-1].run.text) == (2, f"to {MARKER} 2")


def test_without_a_run_a_message_waits_and_comes_before_the_next_input() -> None:
    state = AgentState()
    state.send("Earlier.")
    with AnsweringServer(lambda _: ("done",)) as server:
        agent = Agent({}, model=server.model())
        assert agent.resume_sync(state).text == "done"
        state.send("Between.")
        agent.run_sync("Later.", state=state)
    assert server.words[0] == [("user", "Earlier.")]
    assert [text for role, text in server.words[1] if role == "user"] == [
        "Earlier.",
        "Between.",
        "Later.",
    ]


def test_a_message_survives_a_crash_and_is_delivered_once(tmp_path: Path) -> None:
    with AnsweringServer(lambda words: (f"to {words[-1][1]}",)) as server:
        agent = Agent({}, model=server.model())
        with LogFile(tmp_path / "log") as log:
            agent.run_sync("One.", state=AgentState(log))
            AgentState(log).send("Two.")
        with LogFile(tmp_path / "log") as log:  # another process
            assert agent.resume_sync(AgentState(log)).text == "to Two."
        with LogFile(tmp_path / "log") as log:
            assert agent.resume_sync(AgentState(log)).text == "to Two."
            restored = AgentState(ConversationLog.from_json(log.to_json()))
            assert agent.resume_sync(restored).text == "to Two."
    assert len(server.requests) == 2


@pytest.mark.parametrize("kind", ["awaits", "fails", "limit"])
def test_a_message_waits_where_the_run_cannot_go_on(kind: str) -> None:
    def reply(words: Words) -> Any:  # noqa: ANN401
        state.send(MARKER) if len(words) == 1 else None
        if kind == "fails" and len(server.requests) == 1:
            return Recording.error(400, {"error": {"message": "no"}})
        return (
            (("c1", "tide", {"place": "Brest"}),)
            if words[-1][0] == "user" and (len(words) == 1 and kind != "fails")
            else ("done",)
        )

    state = AgentState()
    config: dict[str, Any] = {"loop": {"on_error": "return"}}
    if kind == "awaits":
        config["tools"] = {"require_approval": ["tide"]}
    if kind == "limit":
        config["loop"]["max_turns"] = 1
    with AnsweringServer(reply) as server:
        talk = Talk(Agent(config, [tide], model=server.model()), state)
        first = talk.run_sync("When?")
        assert first.status is not RunStatus.COMPLETED
        assert MARKER not in json.dumps(server.words)
        if kind == "awaits":
            assert talk.resume_sync({"c1": True}).text == "done"
        else:
            assert talk.run_sync("Go on.").text == "done"
    places = sent_where(server.words[-1])
    assert len(places) == 1
    roles = [role for role, _ in server.words[-1]]
    assert "tool" not in roles[places[0] :]


def test_threads_and_tools_send_and_nothing_is_lost() -> None:
    began, may_end = threading.Event(), threading.Event()
    words = [f"word-{number}" for number in range(40)]

    def slow(state: AgentState) -> str:
        """Wait."""
        state.send("from the tool")
        began.set()
        assert may_end.wait(30)
        return "waited"

    def reply(said: Words) -> Sequence[Any]:
        return ("done",) if any(role == "tool" for role, _ in said) else (("c1", "slow", {}),)

    with AnsweringServer(reply) as server:
        agent, state = Agent({}, [slow], model=server.model()), AgentState()
        running = threading.Thread(target=lambda: agent.run_sync("go", state=state))
        running.start()
        assert began.wait(30)
        senders = [threading.Thread(target=state.send, args=(word,)) for word in words]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        may_end.set()
        running.join(30)
    said = [text for role, text in server.words[-1] if role == "user"]
    assert said[:2] == ["go", "from the tool"]
    assert sorted(said[2:]) == sorted(words)
    assert server.words[-1].index(("tool", "waited")) == 2


@pytest.mark.parametrize("make", [MemoryLogStore, lambda: SQLiteStore(":memory:")])
def test_another_state_of_the_session_sends_to_the_run(make: Callable[[], Any]) -> None:
    store = make()

    def reply(words: Words) -> Sequence[str]:
        if len(server.requests) == 1:
            AgentState(ConversationLog("s", store=store)).send("From a second tab.")
        return (f"to {words[-1][1]}",)

    with AnsweringServer(reply) as server:
        agent = Agent({}, model=server.model())
        result = agent.run_sync("go", state=AgentState(ConversationLog("s", store=store)))
    assert result.text == "to From a second tab."
    read = ConversationLog("s", store=store)
    assert read.entries == result.state.log.entries


def test_what_is_no_message_of_the_user_is_refused() -> None:
    state = AgentState()
    wrong: Any = "later"
    with pytest.raises(MisuseError, match="only the user sends, not the assistant"):
        state.send(Message.assistant("x"))
    with pytest.raises(MisuseError, match=r'when must be "next_turn" or "idle"'):
        state.send("x", wrong)
    assert not state.log.entries


def test_a_reset_forgets_what_was_sent() -> None:
    state = AgentState()
    state.send("x")
    state.reset()
    with AnsweringServer(lambda _: ("done",)) as server:
        Agent({}, model=server.model()).run_sync("go", state=state)
    assert server.words == [[("user", "go")]]


def test_the_log_has_the_message_and_the_input_that_delivers_it() -> None:
    state = AgentState()
    state.send("x")
    with AnsweringServer(lambda _: ("done",)) as server:
        Agent({}, model=server.model()).resume_sync(state)
    entries = state.log.entries
    (sent,) = (one for one in entries if isinstance(one, SentEntry))
    (given,) = (one for one in entries if isinstance(one, ModelInputEntry))
    assert given.metadata["sent"] == str(sent.id)
