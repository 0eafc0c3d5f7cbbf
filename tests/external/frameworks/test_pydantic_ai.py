"""The adapter of pydantic-ai: its answers beside those of the framework's own models.

Both read the same bytes over real HTTP.
"""

import asyncio
import contextlib
import json
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from handed_over import CASES, RAN, RUNS, SENT, sent
from handed_over import answers as handed_over
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResultEvent, models
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelHTTPError,
    ModelTimeoutError,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter, PartDeltaEvent, TextPart, ThinkingPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai_transcripts import DIFFERENCES, QUESTION, of_response, streamed, transcript
from refused import ALLOWED, LOOKS_WHOLE, REFUSED, answers
from served import NAMES, cases, likely, model, recording, served, thoughtful, whole_body

import deltafold
from deltafold.errors.model_error import ModelError
from deltafold.integrations.pydantic_ai import DeltafoldModel
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.transports.timeouts import Timeouts

DIALECTS = ("openai-chat", "anthropic-messages", "openai-responses")


def own(dialect: str, server: ReplayServer) -> models.Model[Any]:
    """Return the framework's own model."""
    name = NAMES[dialect]
    if dialect == "anthropic-messages":
        client = AsyncAnthropic(base_url=server.url, api_key="key", max_retries=0)
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))
    openai = AsyncOpenAI(base_url=server.url, api_key="key", max_retries=0)
    provider = OpenAIProvider(openai_client=openai)
    if dialect == "openai-chat":
        return OpenAIChatModel(name, provider=provider)
    return OpenAIResponsesModel(name, provider=provider)


def ours(dialect: str, server: ReplayServer, **config: object) -> DeltafoldModel:
    """Return the adapter over a deltafold model."""
    return DeltafoldModel(model(dialect, server, **config))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_fixtures_have_the_transcripts_of_the_own_models_but_for_named_differences(
    dialect: str,
) -> None:
    differing: list[str] = []
    for case in cases(dialect):
        with served(recording(dialect, case)) as server:
            if await transcript(ours(dialect, server)) != await transcript(own(dialect, server)):
                differing.append(f"{dialect}/{case}")
    named = [case for cases_of in DIFFERENCES.values() for case in cases_of]
    assert differing == sorted(case for case in named if case.startswith(f"{dialect}/"))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_whole_response_is_the_streamed_one(dialect: str) -> None:
    message = deltafold.fold(recording(dialect, "parallel-calls").body, dialect)
    encoded = deltafold.encode_message(message, dialect)
    whole = Recording.of(encoded.body, content_type="application/json")
    with served(recording(dialect, "parallel-calls")) as server:
        expected = await transcript(ours(dialect, server))
    with served(whole) as server:
        adapter = ours(dialect, server)
        response = await adapter.request(QUESTION, None, models.ModelRequestParameters())
        assert server.requests[0].json().get("stream") in {False, None}
    assert of_response(response) == expected


@pytest.mark.parametrize("dialect", [*DIALECTS, "gemini"])
@pytest.mark.parametrize("piece_bytes", [1, 7, 100_000])
async def test_any_chunking_gives_the_same_response(dialect: str, piece_bytes: int) -> None:
    whole = recording(dialect, "parallel-calls")
    with served(whole, Recording.of(whole.body, piece_bytes=piece_bytes)) as server:
        adapter = ours(dialect, server)
        assert await transcript(adapter) == await transcript(adapter)


async def test_each_delta_is_one_event() -> None:
    told = answer("openai-chat", "a", "b", "c")
    with served(told) as server:
        events, response = await streamed(ours("openai-chat", server))
    texts = [event.delta for event in events if isinstance(event, PartDeltaEvent)]
    kinds = [event.event_kind for event in events]
    assert kinds == ["part_start", "final_result", "part_delta", "part_delta", "part_end"]
    assert len(texts) == 2
    assert response.text == "abc"
    assert response.usage.input_tokens == 50
    assert response.provider_name == "openai"


STATUSES = [
    (400, {"error": {"message": "no", "code": "invalid"}}, "ModelRequestRejectedError"),
    (
        400,
        {"error": {"message": "too long", "code": "context_length_exceeded"}},
        "ModelContextWindowExceededError",
    ),
    (400, {"error": {"message": "Thought signature is not valid"}}, "ModelRequestRejectedError"),
    (401, {"error": {"message": "key"}}, "ModelAuthenticationError"),
    (404, {"error": {"message": "model"}}, "ModelNotFoundError"),
    (429, {"error": {"message": "slow"}}, "ModelRateLimitError"),
    (429, {"error": {"message": "x", "code": "insufficient_quota"}}, "ModelQuotaExceededError"),
    (500, {"error": {"message": "x"}}, "ModelServerError"),
]


@pytest.mark.parametrize(("status", "body", "category"), STATUSES)
async def test_a_refusal_raises_the_exception_of_the_own_model(
    status: int, body: object, category: str
) -> None:
    refusal = Recording.error(status, body, {"retry-after": "7"})
    found: list[ModelHTTPError] = []
    with served(refusal) as server:
        for one in (own("openai-chat", server), ours("openai-chat", server)):
            with pytest.raises(ModelHTTPError) as raised:
                await streamed(one)
            found.append(raised.value)
    expected, error = found
    assert type(error).__mro__[:2] == type(expected).__mro__[:2]
    assert category in {base.__name__ for base in type(error).__mro__}
    assert error.status_code == expected.status_code == status
    assert error.retry_after == expected.retry_after == 7
    assert error.body == body
    assert error.headers is not None
    assert error.headers["retry-after"] == "7"
    assert isinstance(error.__cause__, ModelError)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("ending", ["cut", "reset"])
async def test_a_cut_stream_raises_with_what_arrived(dialect: str, ending: Any) -> None:
    whole = recording(dialect, "text")
    cut = whole.stopping(ending, len(whole.body) * 2 // 3)
    with served(cut) as server, pytest.raises(ModelConnectionError) as raised:
        await streamed(ours(dialect, server))
    cause = raised.value.__cause__
    assert isinstance(cause, ModelError)
    assert cause.partial_message is not None
    assert raised.value.phase == ("read" if cause.partial_message.parts else None)


async def test_an_agent_fails_by_a_cut_stream() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    cut = whole.stopping("cut", whole.body.index(b" Two."))
    with served(cut) as server:
        agent = Agent(ours("openai-chat", server))
        with pytest.raises(ModelConnectionError):
            await all_text(agent)


async def all_text(agent: Agent[None, str]) -> str:
    async with agent.run_stream("Hi") as result:
        return "".join([text async for text in result.stream_text(delta=True)])


async def test_a_silent_server_raises_a_timeout() -> None:
    stalled = answer("openai-chat", "Hi").stopping("stall", 0)
    with served(stalled) as server:
        client = deltafold.OpenAIChatModel(
            {"model_id": "m"}, base_url=server.url, api_key="key", timeouts=Timeouts(first_byte=0.2)
        )
        with pytest.raises(ModelTimeoutError):
            await streamed(DeltafoldModel(client))


async def test_an_error_inside_a_stream_has_its_status() -> None:
    with served(recording("anthropic-messages", "in-band-error")) as server:
        found: list[ModelHTTPError] = []
        for one in (own("anthropic-messages", server), ours("anthropic-messages", server)):
            with pytest.raises(ModelHTTPError) as raised:
                await streamed(one)
            found.append(raised.value)
    assert [error.status_code for error in found] == [529, 529]
    assert [error.in_stream for error in found] == [True, True]
    assert type(found[0]) is type(found[1])


async def test_a_fallback_model_goes_on_after_a_refusal() -> None:
    with served(Recording.error(500, {}), answer("openai-chat", "Here.")) as server:
        fallback = FallbackModel(ours("openai-chat", server), ours("openai-chat", server))
        assert (await Agent(fallback).run("Hi")).output == "Here."


async def test_cancelling_closes_the_connection() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    stalled = whole.stopping("stall", whole.body.index(b" Two."))
    with served(stalled) as server:
        adapter = ours("openai-chat", server)
        parameters = models.ModelRequestParameters()
        async with adapter.request_stream([], None, parameters) as stream:
            async for event in stream:
                if event.event_kind == "part_start":
                    await stream.cancel()
            assert stream.get().state == "interrupted"
            assert stream.get().text == "One."
        await closed(server)


async def test_cancelling_the_task_closes_the_connection() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    stalled = whole.stopping("stall", whole.body.index(b" Two."))
    with served(stalled) as server:
        begun = asyncio.Event()

        async def read() -> None:
            parameters = models.ModelRequestParameters()
            async with ours("openai-chat", server).request_stream([], None, parameters) as stream:
                async for _ in stream:
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await closed(server)


async def closed(server: ReplayServer) -> None:
    """Wait until the server has no open connection; the test's own limit ends the wait."""
    while server.open_connections:  # noqa: ASYNC110 - the server is a thread
        await asyncio.sleep(0.01)


def weather(city: str) -> str:
    """Look up the weather of a city."""
    return f"Rain in {city}."


def two_turns(dialect: str) -> list[Recording]:
    calls = [("call_1", "weather", {"city": "Oslo"}), ("call_2", "weather", {"city": "Rome"})]
    return [answer(dialect, "Let me see.", *calls), answer(dialect, "Rain in both.")]


@pytest.mark.parametrize("dialect", [*DIALECTS, "gemini"])
async def test_an_agent_runs_parallel_tools(dialect: str) -> None:
    with served(*two_turns(dialect)) as server:
        agent = Agent(ours(dialect, server), tools=[weather], instructions="Be brief.")
        result = await agent.run("How is the weather?")
        sent = json.dumps(server.requests[1].json())
    assert result.output == "Rain in both."
    assert result.usage.requests == 2
    assert result.usage.tool_calls == 2
    assert "Rain in Oslo." in sent
    assert "Rain in Rome." in sent
    assert "Be brief." in sent


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_agent_has_the_history_of_the_own_model(dialect: str) -> None:
    histories: list[Any] = []
    for make in (own, ours):
        with served(*two_turns(dialect)) as server:
            agent = Agent(make(dialect, server), tools=[weather])
            async with agent.run_stream_events("How is the weather?") as events:
                last = [event async for event in events][-1]
            assert isinstance(last, AgentRunResultEvent)
            assert last.result.output == "Rain in both."
            histories.append([shown(message) for message in last.result.all_messages()])
    assert histories[0] == histories[1]


class Forecast(BaseModel):
    """A forecast."""

    sky: str


async def test_the_same_agent_has_the_same_transcript() -> None:
    """Thinking, parallel tools and an output; then a refusal; then a cut."""
    dialect = "anthropic-messages"
    calls = [("call_1", "weather", {"city": "Oslo"}), ("call_2", "weather", {"city": "Rome"})]
    whole = answer(dialect, "One.", " Two.")
    told = [
        thoughtful(dialect, "Two cities.", "Let me see.", *calls),
        thoughtful(dialect, "Rain.", ("call_3", "final_result", {"sky": "grey"})),
        Recording.error(529, {"type": "error", "error": {"type": "overloaded_error"}}),
        whole.stopping("cut", whole.body.index(b" Two.")),
    ]
    found: list[Any] = []
    for make in (own, ours):
        with served(*told) as server:
            one = make(dialect, server)
            agent = Agent(one, tools=[weather], output_type=Forecast)
            async with agent.run_stream_events("How is the weather?") as events:
                read = [event async for event in events]
            assert isinstance(read[-1], AgentRunResultEvent)
            history = [shown(message) for message in read[-1].result.all_messages()]
            with pytest.raises(ModelHTTPError) as refused:
                await streamed(one)
            with pytest.raises(ModelConnectionError):
                await streamed(one)
            bodies = [request.json() for request in server.requests]
        thinking: Any = bodies[1]["messages"][1]["content"][0]  # type: ignore[index]
        kinds = {event.event_kind for event in read}
        found.append((history, kinds, read[-1].result.output, type(refused.value), thinking))
    assert found[0] == found[1]
    assert found[1][4]["signature"] == "c2lnbmVk"


def shown(message: Any) -> list[tuple[str, str]]:
    return [
        (part.part_kind, str(getattr(part, "content", None) or getattr(part, "args", None)))
        for part in message.parts
    ]


def test_a_synchronous_run_works_more_than_once() -> None:
    with served(answer("openai-chat", "Hello.")) as server:
        agent = Agent(ours("openai-chat", server))
        assert [agent.run_sync("Hi").output for _ in range(2)] == ["Hello.", "Hello."]


async def test_a_signature_returns_in_the_next_run() -> None:
    dialect = "anthropic-messages"
    with served(recording(dialect, "thinking-signature"), answer(dialect, "Yes.")) as server:
        agent = Agent(ours(dialect, server))
        history: Any = None
        for question in ("When?", "Sure?"):
            async with agent.run_stream_events(question, message_history=history) as events:
                last = [event async for event in events][-1]
            assert isinstance(last, AgentRunResultEvent)
            history = last.result.all_messages()
        sent: Any = server.requests[1].json()
    thinking = sent["messages"][1]["content"][0]
    assert thinking["signature"] == "EqQBCkgIARABGAIiQL+a/b=="


async def test_a_refusal_of_the_model_is_a_filtered_response() -> None:
    with served(recording("openai-chat", "refusal")) as server:
        _, response = await streamed(ours("openai-chat", server))
    assert response.finish_reason == "content_filter"
    assert (response.provider_details or {})["refusal"]
    assert not response.parts


async def test_signatures_are_where_the_own_model_has_them() -> None:
    with served(recording("anthropic-messages", "thinking-signature")) as server:
        found = [(await streamed(make("anthropic-messages", server)))[1] for make in (own, ours)]
    thinking = [response.parts[0] for response in found]
    assert all(isinstance(part, ThinkingPart) for part in thinking)
    signatures = [getattr(part, "signature", None) for part in thinking]
    names = [part.provider_name for part in thinking]
    assert signatures[0] == signatures[1] is not None
    assert names == ["anthropic", "anthropic"]


async def test_citations_are_the_framework_s() -> None:
    with served(recording("openai-responses", "annotations")) as server:
        found = [(await streamed(make("openai-responses", server)))[1] for make in (own, ours)]
    texts = [part for response in found for part in response.parts if isinstance(part, TextPart)]
    urls = [
        [getattr(source, "url", None) for one in part.citations or [] for source in one.sources]
        for part in texts
    ]
    assert urls[1] == ["https://a.example"]


async def test_a_history_survives_json() -> None:
    with served(recording("anthropic-messages", "thinking-signature")) as server:
        _, response = await streamed(ours("anthropic-messages", server))
    stored = ModelMessagesTypeAdapter.dump_json([response])
    assert ModelMessagesTypeAdapter.validate_json(stored) == [response]


async def test_requests_are_refused_where_the_framework_forbids_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)
    with served(answer("openai-chat", "Hi")) as server:
        with pytest.raises(RuntimeError, match="ALLOW_MODEL_REQUESTS"):
            await streamed(ours("openai-chat", server))
        assert not server.requests


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "gemini"])
async def test_log_probabilities_have_the_form_of_the_own_chat_model(dialect: str) -> None:
    asked: Any = {"openai_logprobs": True, "openai_top_logprobs": 2}
    given: Any = {"deltafold": {"top_logprobs": 2}}
    if dialect != "openai-responses":
        given["deltafold"]["logprobs"] = True
    parameters = models.ModelRequestParameters()
    with served(likely("openai-chat")) as server:
        async with own("openai-chat", server).request_stream(QUESTION, asked, parameters) as one:
            async for _ in one:
                pass
    expected = (one.get().provider_details or {})["logprobs"]
    with served(likely(dialect)) as server:
        async with ours(dialect, server).request_stream(QUESTION, given, parameters) as other:
            async for _ in other:
                pass
    streamed_details = other.get().provider_details or {}
    with served(whole_body(likely(dialect), dialect)) as server:
        whole = await ours(dialect, server).request(QUESTION, given, parameters)
    assert len(expected) == 2
    assert streamed_details["logprobs"] == expected
    assert (whole.provider_details or {})["logprobs"] == expected


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("case", [*REFUSED, *ALLOWED])
async def test_the_agent_runs_what_may_run(case: str, is_streamed: bool) -> None:
    ran: list[str] = []

    def pay(who: str = "?", note: str = "?") -> str:
        """Pay somebody."""
        ran.append(f"{who} {note}")
        return "paid"

    with served(*answers(case)) as server:
        agent = Agent(DeltafoldModel(model("anthropic-messages", server)), tools=[pay])
        if is_streamed:
            async with agent.run_stream("Pay.") as run:
                await run.get_output()
        else:
            await agent.run("Pay.")
    assert ran == (["Ann for tea"] if case in ALLOWED else [])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("case", CASES)
async def test_a_call_before_a_fallback_does_not_run(
    case: str, is_streamed: bool, whole: bool
) -> None:
    ran: list[str] = []

    def pay(who: str = "?") -> str:
        """Pay somebody."""
        ran.append(who)
        return "paid"

    with served(*handed_over(case, whole=whole)) as server:
        agent = Agent(DeltafoldModel(model("anthropic-messages", server)), tools=[pay])
        if is_streamed:
            async with agent.iter("Pay.") as run:
                async for node in run:
                    if Agent.is_model_request_node(node):
                        async with node.stream(run.ctx) as stream:
                            async for _ in stream:
                                pass
            result = run.result
        else:
            result = await agent.run("Pay.")
        last = server.requests[-1].json()
    assert ran == RUNS[case]
    assert result is not None
    assert result.output == ("Done." if RUNS[case] else "No.")
    if RUNS[case]:
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
        agent = Agent(DeltafoldModel(model("anthropic-messages", server)), tools=[pay])
        with contextlib.suppress(Exception):  # a call without arguments is asked for again
            await agent.run("Pay.")
    assert not ran
