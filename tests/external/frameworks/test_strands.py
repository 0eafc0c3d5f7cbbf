"""The adapter of strands: events, histories, requests and failures."""

import asyncio
import contextlib
import json
import threading
from typing import Any

import pytest
from comparing import comparable
from handed_over import CASES, FALLBACKS, RAN, RUNS, SENT, sent
from handed_over import answers as handed_over
from openai import AsyncOpenAI
from pydantic import BaseModel
from refused import LOOKS_WHOLE, REFUSED, answers
from served import NAMES, cases, folded, model, recording, served, thoughtful
from strands import Agent, tool
from strands.event_loop.streaming import process_stream
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import (
    ContextWindowOverflowException,
    MaxTokensReachedException,
    ModelThrottledException,
)

import deltafold
from deltafold.dialects import DIALECTS
from deltafold.errors.model_error import ModelError
from deltafold.integrations.strands import DeltafoldStrandsModel
from deltafold.integrations.strands.history import conversation_of
from deltafold.message.messages import Message
from deltafold.testing import Recording, ReplayServer, answer

ALL = list(NAMES)
ASKED: Any = [{"role": "user", "content": [{"text": "Hi"}]}]


def ours(dialect: str, server: ReplayServer, **config: object) -> DeltafoldStrandsModel:
    return DeltafoldStrandsModel(model(dialect, server, **config))


def own(server: ReplayServer) -> OpenAIModel:
    client = AsyncOpenAI(base_url=server.url, api_key="key", max_retries=0)
    return OpenAIModel(client=client, model_id=NAMES["openai-chat"])


def agent_of(one: Any, **options: Any) -> Agent:
    return Agent(one, callback_handler=None, **options)


async def events_of(one: Any, messages: Any = ASKED, **changes: Any) -> list[Any]:
    return [event async for event in one.stream(messages, **changes)]


async def stop_of(one: Any) -> Any:
    """Return reason, message, usage and metrics, as strands folds the events."""
    events = [event async for event in process_stream(one.stream(ASKED))]
    return events[-1]["stop"]


@pytest.mark.parametrize("dialect", ALL)
async def test_an_answer_goes_back_as_it_was_received(dialect: str) -> None:
    row = DIALECTS[dialect]
    config = row.config_class.model_validate({"model_id": NAMES[dialect]})
    question = Message.user("Hi")
    checked = 0
    for case in cases(dialect):
        message = folded(dialect, case)
        if message is None or not message.parts:
            continue
        with served(recording(dialect, case)) as server:
            _, told, _, _ = await stop_of(ours(dialect, server))
        back = conversation_of([told], None, None, dialect)
        expected = row.render([question, message, question], [], config).body
        found = row.render([question, *back, question], [], config).body
        assert comparable(found) == comparable(expected), case
        checked += 1
    assert checked > 30


@pytest.mark.parametrize("dialect", ALL)
async def test_every_fixture_gives_the_text_and_the_calls_of_its_message(dialect: str) -> None:
    checked = 0
    for case in cases(dialect):
        message = folded(dialect, case)
        with served(recording(dialect, case)) as server:
            if message is None:
                with pytest.raises(ModelError):
                    await events_of(ours(dialect, server))
                continue
            _, told, usage, _ = await stop_of(ours(dialect, server))
        content = told["content"]
        text = "".join([text_of(block) for block in content])
        calls = [block["toolUse"]["name"] for block in content if "toolUse" in block]
        assert text == message.text, case
        # Converse has no form for a call that ends before its input begins.
        assert len(calls) <= len(message.tool_calls), case
        found = iter(calls)
        whole = [call.tool_name for call in message.tool_calls if not call.incomplete]
        assert all(name in found for name in whole), case
        counts = message.meta.usage
        if counts is not None and counts.output_tokens is not None:
            assert usage["outputTokens"] == counts.output_tokens, case
        checked += 1
    assert checked > 30


def text_of(block: Any) -> str:
    if "citationsContent" in block:
        return "".join(one["text"] for one in block["citationsContent"]["content"])
    return str(block.get("text", ""))


@pytest.mark.parametrize("case", ["text", "parallel-calls", "tool-call", "deepseek"])
async def test_a_chat_answer_is_that_of_the_own_model(case: str) -> None:
    with served(recording("openai-chat", case)) as server:
        expected = await stop_of(own(server))
        found = await stop_of(ours("openai-chat", server))
    assert found[0] == expected[0]
    assert found[1] == expected[1]
    assert found[2]["totalTokens"] == expected[2]["totalTokens"]


@pytest.mark.parametrize("piece_bytes", [1, 7, 100_000])
async def test_any_chunking_gives_the_same_message(piece_bytes: int) -> None:
    whole = recording("openai-chat", "parallel-calls")
    with served(whole) as server:
        expected = await stop_of(ours("openai-chat", server))
    with served(Recording.of(whole.body, piece_bytes=piece_bytes)) as server:
        found = await stop_of(ours("openai-chat", server))
    assert found[:3] == expected[:3]


@tool
def weather(city: str) -> str:
    """Look up the weather of a city."""
    return f"Rain in {city}."


@tool
def chart(city: str) -> dict[str, Any]:
    """Draw the weather of a city."""
    image = {"format": "png", "source": {"bytes": b"\x89PNG"}}
    return {"status": "success", "content": [{"text": city}, {"image": image}, {"json": {"x": 1}}]}


def two_turns(dialect: str) -> list[Recording]:
    calls = [("call_1", "weather", {"city": "Oslo"}), ("call_2", "weather", {"city": "Rome"})]
    return [answer(dialect, "Let me see.", *calls), answer(dialect, "Rain in both.")]


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("waits", [False, True])
async def test_an_agent_runs_parallel_tools(dialect: str, *, waits: bool) -> None:
    with served(*two_turns(dialect)) as server:
        agent = agent_of(ours(dialect, server), tools=[weather], system_prompt="Be brief.")
        if waits:
            result = await asyncio.to_thread(agent, "How is the weather?")
        else:
            result = await agent.invoke_async("How is the weather?")
        first, second = [json.dumps(request.json()) for request in server.requests]
    assert str(result).strip() == "Rain in both."
    assert result.metrics.accumulated_usage["outputTokens"] == 40
    assert "Be brief." in first
    assert "Look up the weather of a city." in first
    assert "Rain in Oslo." in second
    assert "Rain in Rome." in second


async def test_a_run_has_the_messages_of_the_own_model() -> None:
    found: list[Any] = []
    for make in (own, lambda server: ours("openai-chat", server)):
        with served(*two_turns("openai-chat")) as server:
            agent = agent_of(make(server), tools=[weather])
            await agent.invoke_async("How is the weather?")
            sent = [comparable(request.json()["messages"]) for request in server.requests]
            kept = [(one["role"], one["content"]) for one in agent.messages]
            found.append((kept, len(sent)))
    assert found[0] == found[1]


@pytest.mark.parametrize("dialect", ["anthropic-messages", "openai-responses", "gemini"])
async def test_an_image_in_a_result_reaches_the_provider(dialect: str) -> None:
    call = ("call_1", "chart", {"city": "Oslo"})
    with served(answer(dialect, call), answer(dialect, "Rain.")) as server:
        await agent_of(ours(dialect, server), tools=[chart]).invoke_async("Show it.")
        sent = json.dumps(server.requests[1].json())
    assert "iVBORw==" in sent
    assert "Oslo" in sent
    assert '\\"x\\": 1' in sent or '\\"x\\":1' in sent


async def test_an_agent_thinks_and_calls_and_its_signature_returns() -> None:
    dialect = "anthropic-messages"
    first = thoughtful(dialect, "First, the tide.", ("call_1", "weather", {"city": "Oslo"}))
    with served(first, answer(dialect, "Rain.")) as server:
        await agent_of(ours(dialect, server), tools=[weather]).invoke_async("When?")
        sent: Any = server.requests[1].json()
    assert sent["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "First, the tide.",
        "signature": "c2lnbmVk",
    }


@pytest.mark.parametrize(
    ("dialect", "case"),
    [
        ("anthropic-messages", "thinking-signature"),
        ("anthropic-messages", "citations"),
        ("gemini", "signature-on-text"),
        ("openai-responses", "reasoning-encrypted"),
    ],
)
async def test_a_stored_session_goes_back_as_it_was_received(
    tmp_path: Any, dialect: str, case: str
) -> None:
    stored = {"session_id": "tides", "storage_dir": str(tmp_path)}
    sent: list[Any] = []
    for restored in (False, True):
        with served(recording(dialect, case), answer(dialect, "Yes.")) as server:
            one = ours(dialect, server)
            if restored:
                stored["session_id"] = "again"
            agent = agent_of(one, session_manager=FileSessionManager(**stored), agent_id="a")
            await agent.invoke_async("When?")
            if restored:
                agent = agent_of(one, session_manager=FileSessionManager(**stored), agent_id="a")
            await agent.invoke_async("Sure?")
            sent.append(comparable(server.requests[1].json()))
    assert sent[0] == sent[1]
    message = folded(dialect, case)
    assert message is not None
    row = DIALECTS[dialect]
    config = row.config_class.model_validate({"model_id": NAMES[dialect]})
    expected = row.render([Message.user("When?"), message, Message.user("Sure?")], [], config).body
    place = "input" if dialect == "openai-responses" else "messages"
    place = "contents" if dialect == "gemini" else place
    assert json.loads(sent[0])[place] == json.loads(comparable(expected))[place]


async def test_state_does_not_go_to_another_provider() -> None:
    with served(recording("anthropic-messages", "thinking-signature")) as server:
        _, told, _, _ = await stop_of(ours("anthropic-messages", server))
    with served(answer("openai-responses", "Yes.")) as server:
        await events_of(ours("openai-responses", server), [*ASKED, told, *ASKED])
        sent = json.dumps(server.requests[0].json())
    assert "High at noon." in sent
    assert "EqQBCkgIARABGAIiQL" not in sent
    assert "eyJkZWx0YWZvbGQ" not in sent


async def test_an_answer_that_was_changed_is_read_by_its_blocks() -> None:
    with served(recording("openai-responses", "annotations")) as server:
        _, told, _, _ = await stop_of(ours("openai-responses", server))
    (text,) = [block for block in told["content"] if text_of(block)]
    changed = {"role": "assistant", "content": [{"text": "Redacted."}, *told["content"]]}
    changed["content"].remove(text)
    (back,) = conversation_of([changed], None, None, "openai-responses")
    assert [part.kind for part in back.parts] == ["text"]
    assert back.text == "Redacted."


async def test_a_signature_of_the_own_model_for_claude_goes_to_claude() -> None:
    thinking = {"reasoningText": {"text": "Hm.", "signature": "c2lnbmVk"}}
    told = {"role": "assistant", "content": [{"reasoningContent": thinking}, {"text": "Noon."}]}
    with served(answer("anthropic-messages", "Yes.")) as server:
        await events_of(ours("anthropic-messages", server), [*ASKED, told, *ASKED])
        sent: Any = server.requests[0].json()
    assert sent["messages"][1]["content"][0]["signature"] == "c2lnbmVk"


async def test_media_of_the_user_reach_the_provider() -> None:
    content = [
        {"text": "What is it?"},
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
        {
            "document": {
                "format": "pdf",
                "name": "tides",
                "source": {"bytes": b"%PDF"},
                "citations": None,
            }
        },
    ]
    with served(answer("anthropic-messages", "A chart.")) as server:
        asked = [{"role": "user", "content": content}]
        await events_of(ours("anthropic-messages", server), asked)
        sent: Any = server.requests[0].json()
    kinds = [
        (one["type"], one.get("source", {}).get("data")) for one in sent["messages"][0]["content"]
    ]
    assert kinds == [("text", None), ("image", "iVBORw=="), ("document", "JVBERg==")]


async def test_cache_points_mark_the_blocks_before_them() -> None:
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    use = {"toolUse": {"toolUseId": "call_1", "name": "f", "input": {"x": None}}}
    result = {"toolUseId": "call_1", "status": "success", "content": [{"text": "ok"}]}
    messages = [
        {"role": "user", "content": [{"text": "Hi"}, point]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"toolResult": result}, point]},
    ]
    system: Any = [{"text": "Be brief."}, point]
    with served(answer("anthropic-messages", "Yes."), answer("openai-chat", "Yes.")) as server:
        one = ours("anthropic-messages", server)
        await events_of(one, messages, system_prompt_content=system)
        await events_of(ours("openai-chat", server), messages, system_prompt_content=system)
        claude, chat = [request.json() for request in server.requests]
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert claude["system"][0]["cache_control"] == mark
    assert [one["content"][-1].get("cache_control") for one in claude["messages"]] == [
        mark,
        None,
        mark,
    ]
    assert claude["messages"][1]["content"][0]["input"] == {"x": None}
    assert "cache" not in json.dumps(chat)


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("ending", ["cut", "reset"])
async def test_a_cut_stream_is_an_error_of_the_framework(dialect: str, ending: Any) -> None:
    whole = answer(dialect, "One.", " Two.")
    cut = whole.stopping(ending, whole.body.index(b" Two."))
    with served(cut) as server:
        agent = agent_of(ours(dialect, server))
        with pytest.raises(ModelError) as raised:
            await agent.invoke_async("Hi")
    assert raised.value.partial_message is not None
    assert [one["role"] for one in agent.messages] == ["user"]


async def test_the_own_model_takes_a_cut_stream_as_complete() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    cut = Recording.of(whole.body[: whole.body.index(b'data: {"id"', whole.body.index(b"One."))])
    with served(cut) as server:
        result = await agent_of(own(server)).invoke_async("Hi")
        assert (result.stop_reason, str(result).strip()) == ("end_turn", "")
        with pytest.raises(ModelError):
            await events_of(ours("openai-chat", server))


@pytest.mark.parametrize("status", [429, 503])
async def test_a_throttled_request_is_sent_again_by_the_framework(status: int) -> None:
    from strands import ModelRetryStrategy  # noqa: PLC0415 - only here

    retries = ModelRetryStrategy(max_attempts=2, initial_delay=0, max_delay=0)
    refused = Recording.error(status, {"error": {"message": "slow down"}})
    with served(refused, answer("openai-chat", "Here.")) as server:
        agent = agent_of(ours("openai-chat", server), retry_strategy=retries)
        assert str(await agent.invoke_async("Hi")).strip() == "Here."
    with served(refused) as server, pytest.raises(ModelThrottledException) as raised:
        await events_of(ours("openai-chat", server))
    assert isinstance(raised.value, ModelError)
    assert raised.value.status == status


async def test_a_conversation_that_is_too_long_is_shortened_by_the_framework() -> None:
    error = {"code": "context_length_exceeded", "message": "maximum context length"}
    refused = Recording.error(400, {"error": error})
    history: Any = [
        {"role": role, "content": [{"text": "Hi"}]}
        for _ in range(4)
        for role in ("user", "assistant")
    ]
    with served(refused, answer("openai-chat", "Here.")) as server:
        agent = agent_of(ours("openai-chat", server), messages=history)
        assert str(await agent.invoke_async("Hi")).strip() == "Here."
        first, second = [len(request.json()["messages"]) for request in server.requests]
    assert second < first
    with served(refused) as server, pytest.raises(ContextWindowOverflowException):
        await events_of(ours("openai-chat", server))


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_a_refusal_is_the_error_of_deltafold(status: int) -> None:
    refused = Recording.error(status, {"error": {"message": "no"}})
    with served(refused) as server, pytest.raises(ModelError) as raised:
        await events_of(ours("openai-chat", server))
    assert raised.value.status == status
    assert not isinstance(raised.value, ModelThrottledException)


async def test_a_limit_of_tokens_is_the_error_of_the_framework() -> None:
    told = recording("anthropic-messages", "max-tokens-mid-args")
    with served(told) as server, pytest.raises(MaxTokensReachedException):
        await agent_of(ours("anthropic-messages", server), tools=[weather]).invoke_async("Hi")


async def test_a_pause_ends_a_turn() -> None:
    with served(recording("anthropic-messages", "pause")) as server:
        result = await agent_of(ours("anthropic-messages", server)).invoke_async("Hi")
    assert (result.stop_reason, str(result).strip()) == ("end_turn", "Searching on.")


async def test_leaving_a_stream_closes_its_connection() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    with served(whole.stopping("stall", whole.body.index(b" Two."))) as server:
        begun = asyncio.Event()

        async def read() -> None:
            async for event in ours("openai-chat", server).stream(ASKED):
                if "contentBlockDelta" in event:
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while server.open_connections:  # noqa: ASYNC110 - the server is a thread
            await asyncio.sleep(0.01)


async def test_a_cancelled_agent_stops_between_events() -> None:
    with served(answer("openai-chat", "One.", " Two.", " Three.")) as server:
        agent = agent_of(ours("openai-chat", server))
        async for event in agent.stream_async("Hi"):
            if event.get("data") == "One.":
                agent.cancel()
            if "result" in event:
                result = event["result"]
    assert result.stop_reason == "cancelled"
    assert isinstance(agent._cancel_signal, threading.Event)


class City(BaseModel):
    """A city."""

    name: str


@pytest.mark.parametrize("dialect", ALL)
async def test_an_agent_gives_an_object(dialect: str) -> None:
    call = ("call_1", "City", {"name": "Oslo"})
    with served(answer(dialect, "It is Oslo."), answer(dialect, call)) as server:
        agent = agent_of(ours(dialect, server))
        result = await agent.invoke_async("Where?", structured_output_model=City)
        sent = json.dumps(server.requests[1].json())
    assert result.structured_output == City(name="Oslo")
    assert any(word in sent for word in ('"tool_choice"', '"toolConfig"'))


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic-messages"])
async def test_structured_output_of_the_model_is_the_schema_of_the_api(dialect: str) -> None:
    with served(answer(dialect, '{"name": ', '"Oslo"}')) as server:
        events = [e async for e in ours(dialect, server).structured_output(City, ASKED, "Brief.")]
        sent = json.dumps(server.requests[0].json())
    assert events[-1] == {"output": City(name="Oslo")}
    assert '"json_schema"' in sent
    assert "Brief." in sent


async def test_structured_output_of_another_form_is_a_value_error() -> None:
    told = answer("openai-chat", '{"name": 7}')
    with served(told) as server, pytest.raises(ValueError, match="name"):
        [one async for one in ours("openai-chat", server).structured_output(City, ASKED)]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"auto": {}}, "auto"),
        ({"any": {}}, "required"),
        ({"tool": {"name": "f"}}, {"type": "function", "function": {"name": "f"}}),
    ],
)
async def test_a_choice_of_a_tool_is_sent(choice: Any, expected: object) -> None:
    schema = {"json": {"type": "object", "properties": {"x": {"type": "string"}}}}
    spec: Any = {"name": "f", "description": "Do it.", "inputSchema": schema}
    with served(answer("openai-chat", "Yes.")) as server:
        await events_of(ours("openai-chat", server), tool_specs=[spec], tool_choice=choice)
        sent: Any = server.requests[0].json()
    assert sent["tool_choice"] == expected
    assert sent["tools"][0]["function"]["parameters"] == schema["json"]


async def test_settings_change_for_the_next_request() -> None:
    with served(answer("openai-chat", "Yes.")) as server:
        one = ours("openai-chat", server)
        one.update_config(temperature=0.5, context_window_limit=1000)
        assert one.config["model_id"] == NAMES["openai-chat"]
        assert one.context_window_limit == 1000
        await events_of(one)
        assert server.requests[0].json()["temperature"] == 0.5
        with pytest.raises(ValueError, match="temprature"):
            one.update_config(temprature=1)


async def test_a_stream_has_metrics_and_counts() -> None:
    with served(answer("anthropic-messages", "Yes.")) as server:
        *_, stop, facts = await events_of(ours("anthropic-messages", server))
    assert stop == {"messageStop": {"stopReason": "end_turn"}}
    assert facts["metadata"]["usage"]["outputTokens"] == 20
    assert isinstance(facts["metadata"]["metrics"]["latencyMs"], int)


def test_nothing_of_the_framework_is_imported_without_the_adapter() -> None:
    import subprocess  # noqa: PLC0415 - only here
    import sys  # noqa: PLC0415 - only here

    code = "import deltafold.models.adapters, sys; print('strands' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert deltafold.__version__


@pytest.mark.parametrize("case", [*REFUSED, "whole"])
async def test_the_agent_runs_what_may_run(case: str) -> None:
    ran: list[str] = []

    @tool
    def pay(who: str = "?", note: str = "?") -> str:
        """Pay somebody.

        Args:
            who: the name.
            note: the reason.
        """
        ran.append(f"{who} {note}")
        return "paid"

    with served(*answers(case)) as server:
        agent = agent_of(ours("anthropic-messages", server), tools=[pay])
        if case.startswith("half"):
            with pytest.raises(MaxTokensReachedException):
                await agent.invoke_async("Pay.")
        else:
            stop = (await agent.invoke_async("Pay.")).stop_reason
            assert stop == ("content_filtered" if case == "refused" else "end_turn")
    assert ran == (["Ann for tea"] if case == "whole" else [])


@pytest.mark.parametrize("fields", [FALLBACKS, {}], ids=["asked for", "not asked for"])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("case", CASES)
async def test_a_call_before_a_fallback_does_not_run(
    case: str, whole: bool, fields: dict[str, Any]
) -> None:
    ran: list[str] = []

    @tool
    def pay(who: str = "?") -> str:
        """Pay somebody.

        Args:
            who: the name.
        """
        ran.append(who)
        return "paid"

    with served(*handed_over(case, whole=whole)) as server:
        agent = agent_of(ours("anthropic-messages", server, extra_body=fields), tools=[pay])
        stop = (await agent.invoke_async("Pay.")).stop_reason
        last = server.requests[-1].json()
    if not fields:
        # strands has run no call of the blocks that it got, when the boundary arrives too late.
        assert (ran, stop) == ([], "content_filtered")
        return
    assert (ran, stop) == (RUNS[case], "end_turn")
    if ran:
        assert sent(last) == [*SENT[case], *RAN]


@pytest.mark.parametrize("case", LOOKS_WHOLE)
async def test_a_call_that_only_looks_whole_does_not_run(case: str) -> None:
    ran: list[str] = []

    def pay(who: str = "?", note: str = "?") -> str:
        """Pay somebody.

        Args:
            who: the name.
            note: the reason.
        """
        ran.append(f"{who} {note}")
        return "paid"

    with served(*answers(case)) as server:
        agent = agent_of(ours("anthropic-messages", server), tools=[tool(pay)])
        with contextlib.suppress(MaxTokensReachedException):
            await agent.invoke_async("Pay.")
    assert not ran
