"""The adapter of openai-agents: events, items, histories and failures."""

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

import agents
import openai
import pytest
from agents import (
    Agent,
    CodeInterpreterTool,
    ModelRetrySettings,
    ModelSettings,
    RunConfig,
    Runner,
    WebSearchTool,
    function_tool,
    retry_policies,
)
from agents.exceptions import AgentsException, ModelBehaviorError, UserError
from agents.models.interface import ModelTracing
from agents.tracing import TracingProcessor
from handed_over import BOUNDARY, CASES, RAN, RUNS, SENT, answer_of, call, sent
from handed_over import answers as handed_over
from openai import AsyncOpenAI
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItem
from pydantic import BaseModel, TypeAdapter
from refused import ALLOWED, LOOKS_WHOLE, REFUSED, answers
from served import LOGPROBS, NAMES, cases, folded, likely, model, recording, served, whole_body

import deltafold
from deltafold.dialects import DIALECTS
from deltafold.errors.model_error import ModelError
from deltafold.integrations.openai_agents import DeltafoldAgentsModel, DeltafoldProvider
from deltafold.integrations.openai_agents.history import conversation_of
from deltafold.message.messages import Message
from deltafold.testing import Recording, ReplayServer, answer

ALL = list(NAMES)


@pytest.fixture(autouse=True)
def no_export() -> Iterator[None]:
    """Keep the traces in this process."""
    agents.set_trace_processors([])
    yield
    agents.set_trace_processors([])


def ours(dialect: str, server: ReplayServer, **config: object) -> DeltafoldAgentsModel:
    return DeltafoldAgentsModel(model(dialect, server, **config))


def own(dialect: str, server: ReplayServer) -> Any:
    client = AsyncOpenAI(base_url=server.url, api_key="key", max_retries=0)
    if dialect == "openai-chat":
        return agents.OpenAIChatCompletionsModel(NAMES[dialect], client)
    return agents.OpenAIResponsesModel(NAMES[dialect], client)


def arguments(**changes: Any) -> dict[str, Any]:
    """Return the arguments of a call without an agent."""
    given: dict[str, Any] = {
        "system_instructions": None,
        "input": "Hi",
        "model_settings": ModelSettings(include_usage=True),
        "tools": [],
        "output_schema": None,
        "handoffs": [],
        "tracing": ModelTracing.DISABLED,
        "previous_response_id": None,
        "conversation_id": None,
        "prompt": None,
    }
    return {**given, **changes}


async def events_of(one: Any, **changes: Any) -> list[Any]:
    given = arguments(**changes)
    if not isinstance(one, DeltafoldAgentsModel):
        return [event async for event in one.stream_response(**given)]
    given["model_settings"] = changes.get("model_settings", ModelSettings())
    return [event async for event in one.stream_response(**given)]


def shown(response: Response) -> list[Any]:
    return [
        (item.type, getattr(item, "name", None), getattr(item, "arguments", None))
        if item.type == "function_call"
        else (item.type, texts(item))
        for item in response.output
    ]


def texts(item: Any) -> str:
    pieces = getattr(item, "content", None) or []
    return "".join(getattr(piece, "text", "") or piece.refusal for piece in pieces)


def without_made_up_ids(body: object) -> str:
    return re.sub(r"call_[0-9a-f]{16}", "made up", json.dumps(body, sort_keys=True, indent=1))


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
        if not is_answer(message):
            continue
        with served(recording(dialect, case)) as server:
            last = (await events_of(ours(dialect, server)))[-1]
        if not last.response.output:
            continue
        items = [
            json.loads(item.model_dump_json(exclude_unset=True)) for item in last.response.output
        ]
        back = conversation_of(None, items)
        expected = row.render([question, message, question], [], config).body
        found = row.render([question, *back, question], [], config).body
        assert without_made_up_ids(found) == without_made_up_ids(expected), case
        checked += 1
    assert checked > 20


@pytest.mark.parametrize("dialect", ALL)
async def test_every_fixture_gives_events_and_items_of_the_sdk(dialect: str) -> None:
    known: TypeAdapter[Any] = TypeAdapter(ResponseOutputItem)
    failed: list[str] = []
    for case in cases(dialect):
        with served(recording(dialect, case)) as server:
            try:
                events = await events_of(ours(dialect, server))
            except (AgentsException, openai.APIError):
                failed.append(case)
                continue
        assert isinstance(events[-1], ResponseCompletedEvent)
        for item in events[-1].response.output:
            if item.type in KNOWN:
                known.validate_python(item.model_dump(exclude={"provider_data"}))
    assert failed == [case for case in cases(dialect) if not is_answer(folded(dialect, case))]


def is_answer(message: Message | None) -> bool:
    """Return whether the SDK has an item for an answer, or a reason why there is none."""
    if message is None or message.meta.finish_reason == "error":
        return False
    kept = [part for part in message.parts if part.kind != "thinking"]
    return bool(kept) or message.meta.finish_reason not in {"length", "other"}


KNOWN = {"message", "reasoning", "function_call"}


@pytest.mark.parametrize("case", ["text", "parallel-calls", "tool-call", "refusal", "deepseek"])
async def test_a_chat_answer_is_that_of_the_own_model(case: str) -> None:
    with served(recording("openai-chat", case)) as server:
        found = [
            (await events_of(make("openai-chat", server)))[-1].response for make in (own, ours)
        ]
    expected, response = found
    kept = [one for one in shown(response) if one[0] != "reasoning"]
    assert kept == [one for one in shown(expected) if one[0] != "reasoning"]
    if expected.usage is not None:
        assert response.usage.total_tokens == expected.usage.total_tokens


async def test_a_responses_answer_is_that_of_the_own_model() -> None:
    told = answer("openai-responses", "Let me ", "see.", ("call_1", "f", {"x": 1}))
    with served(told) as server:
        expected, response = [
            (await events_of(make("openai-responses", server)))[-1].response for make in (own, ours)
        ]
    assert shown(response) == shown(expected)
    assert response.usage == expected.usage


@pytest.mark.parametrize("dialect", ALL[:3])
async def test_a_whole_response_is_the_streamed_one(dialect: str) -> None:
    message = deltafold.fold(recording(dialect, "parallel-calls").body, dialect)
    encoded = deltafold.encode_message(message, dialect)
    whole = Recording.of(encoded.body, content_type="application/json")
    with served(recording(dialect, "parallel-calls")) as server:
        streamed = (await events_of(ours(dialect, server)))[-1].response
    with served(whole) as server:
        found = await ours(dialect, server).get_response(
            **arguments(model_settings=ModelSettings())
        )
    types = [item.type for item in found.output]
    assert types == [item.type for item in streamed.output]
    calls = [item.arguments for item in found.output if item.type == "function_call"]
    assert calls == [item.arguments for item in streamed.output if item.type == "function_call"]
    assert found.usage.requests == 1


@function_tool
def weather(city: str) -> str:
    """Look up the weather of a city."""
    return f"Rain in {city}."


def two_turns(dialect: str) -> list[Recording]:
    calls = [("call_1", "weather", {"city": "Oslo"}), ("call_2", "weather", {"city": "Rome"})]
    return [answer(dialect, "Let me see.", *calls), answer(dialect, "Rain in both.")]


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("streams", [False, True])
async def test_an_agent_runs_parallel_tools(dialect: str, *, streams: bool) -> None:
    told = two_turns(dialect)
    if not streams:
        folded_turns = [deltafold.fold(one.body, dialect) for one in told]
        bodies = [deltafold.encode_message(one, dialect).body for one in folded_turns]
        told = [Recording.of(body, content_type="application/json") for body in bodies]
    with served(*told) as server:
        agent = Agent(name="Tides", model=ours(dialect, server), tools=[weather])
        result: Any
        if streams:
            result = Runner.run_streamed(agent, "How is the weather?")
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, "How is the weather?")
        sent = json.dumps(server.requests[1].json())
    assert result.final_output == "Rain in both."
    assert result.context_wrapper.usage.requests == 2
    assert "Rain in Oslo." in sent
    assert "Rain in Rome." in sent


async def test_a_run_has_the_items_of_the_own_model() -> None:
    found: list[Any] = []
    for make in (own, ours):
        with served(*two_turns("openai-chat")) as server:
            agent = Agent(name="Tides", model=make("openai-chat", server), tools=[weather])
            result = Runner.run_streamed(agent, "How is the weather?")
            kinds = [event.type async for event in result.stream_events()]
            items = [type(item).__name__ for item in result.new_items]
            found.append((items, result.final_output, set(kinds)))
    assert found[0] == found[1]


async def test_a_signature_returns_in_the_next_run() -> None:
    dialect = "anthropic-messages"
    with served(recording(dialect, "thinking-signature"), answer(dialect, "Yes.")) as server:
        agent = Agent(name="Tides", model=ours(dialect, server))
        first = Runner.run_streamed(agent, "When?")
        [event async for event in first.stream_events()]
        second = Runner.run_streamed(
            agent, [*first.to_input_list(), {"role": "user", "content": "Sure?"}]
        )
        [event async for event in second.stream_events()]
        sent: Any = server.requests[1].json()
    thinking = sent["messages"][1]["content"][0]
    assert thinking == {
        "type": "thinking",
        "thinking": "First, the tide.",
        "signature": "EqQBCkgIARABGAIiQL+a/b==",
    }


def test_an_answer_that_lost_an_item_is_read_by_its_items() -> None:
    outline = {"types": ["reasoning", "message"], "parts": [{"kind": "text", "length": 2}]}
    content = [{"type": "output_text", "text": "Hi", "annotations": []}]
    last = {"type": "message", "role": "assistant", "status": "completed", "content": content}
    data = {"provider_data": {"deltafold": outline}}
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    found = conversation_of(None, [call, result, {**last, "id": "msg_1", **data}])
    assert [message.role for message in found] == ["assistant", "tool", "assistant"]


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("ending", ["cut", "reset"])
async def test_a_cut_stream_is_an_error_of_the_sdk(dialect: str, ending: Any) -> None:
    whole = answer(dialect, "One.", " Two.")
    cut = whole.stopping(ending, whole.body.index(b" Two."))
    with served(cut) as server:
        result = Runner.run_streamed(Agent(name="Tides", model=ours(dialect, server)), "Hi")
        with pytest.raises((ModelBehaviorError, openai.APIConnectionError)) as raised:
            [event async for event in result.stream_events()]
    failure = raised.value
    if ending == "cut":
        assert isinstance(failure, ModelBehaviorError)
        assert isinstance(failure, ModelError)
        assert failure.partial_message is not None
    else:
        # A reset may overtake the bytes before it.
        assert isinstance(failure, ModelError) or isinstance(failure.__cause__, ModelError)


async def test_the_own_model_takes_a_cut_stream_as_complete() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    cut = Recording.of(whole.body[: whole.body.index(b'data: {"id"', whole.body.index(b"One."))])
    with served(cut) as server:
        result = Runner.run_streamed(Agent(name="Tides", model=own("openai-chat", server)), "Hi")
        [event async for event in result.stream_events()]
        assert result.final_output == "One."
        with pytest.raises(ModelBehaviorError):
            await events_of(ours("openai-chat", server))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 418, 422, 429, 500, 529])
async def test_a_refusal_is_the_exception_of_the_own_model(status: int) -> None:
    body = {"error": {"message": "no", "code": "why", "param": "model", "type": "kind"}}
    refused = Recording.error(status, body, {"x-request-id": "req_1"})
    with served(refused) as server:
        with pytest.raises(openai.APIStatusError) as raised:
            await events_of(ours("openai-chat", server))
        with pytest.raises(openai.APIStatusError) as whole:
            await ours("openai-chat", server).get_response(**arguments())
        with pytest.raises(openai.APIStatusError) as expected:
            await events_of(own("openai-chat", server))
    for error in (raised.value, whole.value):
        assert type(error) is type(expected.value)
        assert error.status_code == status
        for name in ("request_id", "body", "code", "param", "type"):
            assert getattr(error, name) == getattr(expected.value, name), name
        assert isinstance(error.__cause__, ModelError)
        assert error.__cause__.status == status


async def test_a_connection_that_fails_is_the_exception_of_openai() -> None:
    with served(answer("openai-chat", "Hi.")) as server:
        gone = ours("openai-chat", server)
    with pytest.raises(openai.APIConnectionError) as raised:
        await events_of(gone)
    assert isinstance(raised.value.__cause__, ModelError)


async def test_a_timeout_is_the_exception_of_openai() -> None:
    whole = answer("openai-chat", "One.")
    adapter = deltafold.OpenAIChatModel
    with served(whole.stopping("stall", 0)) as server:
        limits = deltafold.Timeouts(first_byte=0.05)
        client = adapter({"model_id": "m"}, base_url=server.url, api_key="key", timeouts=limits)
        with pytest.raises(openai.APITimeoutError) as raised:
            await events_of(DeltafoldAgentsModel(client))
        await client.aclose()
    assert isinstance(raised.value.__cause__, ModelError)


async def test_an_error_in_the_stream_is_the_exception_of_openai() -> None:
    failing = Recording.of_events(b'data: {"error": {"message": "no", "code": "why"}}\n\n')
    with served(failing) as server, pytest.raises(openai.APIError) as raised:
        await events_of(ours("openai-chat", server))
    assert isinstance(raised.value.__cause__, ModelError)


async def test_the_retry_policies_of_the_sdk_work() -> None:
    busy = Recording.error(503, {}, {"retry-after": "0"})
    policy = retry_policies.any(retry_policies.provider_suggested(), retry_policies.network_error())
    settings = ModelSettings(retry=ModelRetrySettings(max_retries=2, policy=policy))
    with served(busy, busy, answer("openai-chat", "Here.")) as server:
        agent = Agent(name="Tides", model=ours("openai-chat", server), model_settings=settings)
        result = Runner.run_streamed(agent, "Hi")
        [event async for event in result.stream_events()]
    assert result.final_output == "Here."


async def test_leaving_a_stream_closes_its_connection() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    with served(whole.stopping("stall", whole.body.index(b" Two."))) as server:
        begun = asyncio.Event()

        async def read() -> None:
            stream = ours("openai-chat", server).stream_response(**arguments())
            async for event in stream:
                if event.type == "response.output_text.delta":
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while server.open_connections:  # noqa: ASYNC110 - the server is a thread
            await asyncio.sleep(0.01)


class Spans(TracingProcessor):
    """Keeps the spans that end."""

    def __init__(self) -> None:
        self.ended: list[Any] = []

    def on_trace_start(self, trace: Any) -> None:
        """Ignore the trace."""

    def on_trace_end(self, trace: Any) -> None:
        """Ignore the trace."""

    def on_span_start(self, span: Any) -> None:
        """Ignore the beginning."""

    def on_span_end(self, span: Any) -> None:
        """Keep the span."""
        self.ended.append(span)

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self) -> None:
        """Do nothing."""


async def test_a_call_has_a_span_with_its_usage_or_its_failure() -> None:
    spans = Spans()
    agents.set_trace_processors([spans])
    with served(answer("openai-chat", "Hi."), Recording.error(500, {})) as server:
        agent = Agent(name="Tides", model=ours("openai-chat", server))
        for _ in range(2):
            result = Runner.run_streamed(agent, "Hi")
            with contextlib.suppress(openai.APIError):
                [event async for event in result.stream_events()]
    generations = [span for span in spans.ended if span.span_data.type == "generation"]
    good, bad = generations
    assert good.span_data.model == NAMES["openai-chat"]
    assert good.span_data.usage["output_tokens"] == 20
    assert good.span_data.output[0]["content"][0]["text"] == "Hi."
    assert good.error is None
    assert bad.error["message"] == "Error getting response"
    assert bad.span_data.usage["requests"] == 1


async def body_of(dialect: str, **changes: Any) -> dict[str, Any]:
    """Return the body of the request for the arguments of a call."""
    with served(answer(dialect, "Yes.")) as server:
        await events_of(ours(dialect, server), **changes)
        body: Any = server.requests[0].json()
        return body


async def test_settings_are_sent() -> None:
    settings = ModelSettings(
        temperature=0.5,
        max_tokens=100,
        parallel_tool_calls=False,
        tool_choice="weather",
        reasoning={"effort": "low"},  # type: ignore[arg-type]
        verbosity="low",
        extra_body={"custom": 1},
        extra_args={"seed": 7},
    )
    body = await body_of("openai-chat", model_settings=settings, tools=[weather])
    expected = {
        "temperature": 0.5,
        "max_completion_tokens": 100,
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "verbosity": "low",
        "custom": 1,
        "seed": 7,
    }
    assert {name: body[name] for name in expected} == expected
    assert body["tool_choice"]["function"]["name"] == "weather"
    assert body["tools"][0]["function"]["strict"] is True


async def test_a_setting_that_the_dialect_does_not_have_is_refused() -> None:
    with pytest.raises(UserError, match="frequency_penalty"):
        await body_of("anthropic-messages", model_settings=ModelSettings(frequency_penalty=1))
    with pytest.raises(UserError, match="previous_response_id"):
        await body_of("openai-chat", previous_response_id="resp_1")


async def test_hosted_tools_go_to_responses_only() -> None:
    hosted = [
        WebSearchTool(),
        CodeInterpreterTool(
            tool_config={"type": "code_interpreter", "container": {"type": "auto"}}
        ),
    ]
    body = await body_of("openai-responses", tools=[weather, *hosted])
    assert [tool["type"] for tool in body["tools"]] == [
        "function",
        "web_search",
        "code_interpreter",
    ]
    with pytest.raises(UserError, match="hosted"):
        await body_of("anthropic-messages", tools=hosted)


class City(BaseModel):
    """A city."""

    name: str


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic-messages", "openai-responses"])
async def test_an_output_type_is_the_schema_of_the_api(dialect: str) -> None:
    with served(answer(dialect, '{"name": ', '"Oslo"}')) as server:
        agent = Agent(name="Tides", model=ours(dialect, server), output_type=City)
        result = Runner.run_streamed(agent, "Where?")
        [event async for event in result.stream_events()]
        sent = json.dumps(server.requests[0].json())
    assert result.final_output == City(name="Oslo")
    assert '"json_schema"' in sent


async def test_an_agent_hands_over_to_another() -> None:
    call = ("call_1", "transfer_to_tides", {})
    with served(answer("openai-chat", call), answer("openai-chat", "High at noon.")) as server:
        tides = Agent(name="tides", model=ours("openai-chat", server))
        first = Agent(name="first", model=ours("openai-chat", server), handoffs=[tides])
        result = Runner.run_streamed(first, "When?")
        [event async for event in result.stream_events()]
    assert (result.final_output, result.last_agent.name) == ("High at noon.", "tides")


async def test_an_answer_that_a_filter_kept_back_is_a_refusal() -> None:
    choice = {"index": 0, "delta": {}, "finish_reason": "content_filter"}
    event = json.dumps({"id": "a", "model": "m", "choices": [choice]})
    with served(Recording.of(f"data: {event}\n\ndata: [DONE]\n\n".encode())) as server:
        last = (await events_of(ours("openai-chat", server)))[-1]
    (item,) = last.response.output
    assert item.content[0].type == "refusal"


async def test_a_limit_before_any_answer_is_an_error() -> None:
    choice = {"index": 0, "delta": {}, "finish_reason": "length"}
    event = json.dumps({"id": "a", "model": "m", "choices": [choice]})
    told = Recording.of(f"data: {event}\n\ndata: [DONE]\n\n".encode())
    with served(told) as server, pytest.raises(ModelBehaviorError, match="finish_reason='length'"):
        await events_of(ours("openai-chat", server))


async def test_a_request_without_counts_is_counted() -> None:
    choice = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
    event = json.dumps({"id": "a", "model": "m", "choices": [choice]})
    with served(Recording.of(f"data: {event}\n\ndata: [DONE]\n\n".encode())) as server:
        result = Runner.run_streamed(Agent(name="Tides", model=ours("openai-chat", server)), "Hi")
        [one async for one in result.stream_events()]
    assert result.context_wrapper.usage.requests == 1


async def test_a_provider_finds_models_by_name() -> None:
    with served(answer("anthropic-messages", "Hi.")) as server:

        def load(name: str) -> Any:
            return deltafold.load_model(name, base_url=server.url, api_key="key")

        provider = DeltafoldProvider(load, default="anthropic/claude-opus-4-8")
        config = RunConfig(model_provider=provider)
        result = Runner.run_streamed(Agent(name="Tides"), "Hi", run_config=config)
        [event async for event in result.stream_events()]
        assert result.final_output == "Hi."
        named = provider.get_model("anthropic/claude-opus-4-8")
        assert named is provider.get_model("anthropic/claude-opus-4-8")
        await provider.aclose()
    with pytest.raises(deltafold.MisuseError, match="default="):
        DeltafoldProvider().get_model(None)


@pytest.mark.parametrize("piece_bytes", [1, 7, 100_000])
async def test_any_chunking_gives_the_same_response(piece_bytes: int) -> None:
    whole = recording("openai-chat", "parallel-calls")
    with served(whole) as server:
        expected = (await events_of(ours("openai-chat", server)))[-1].response
    with served(Recording.of(whole.body, piece_bytes=piece_bytes)) as server:
        found = (await events_of(ours("openai-chat", server)))[-1].response
    assert found.output == expected.output


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "gemini"])
async def test_log_probabilities_are_in_the_events_and_the_items(dialect: str) -> None:
    settings = ModelSettings(top_logprobs=2)
    with served(likely(dialect)) as server:
        events = await events_of(ours(dialect, server), model_settings=settings)
        body = server.requests[0].json()
    with served(whole_body(likely(dialect), dialect)) as server:
        given = arguments(model_settings=settings)
        response = await ours(dialect, server).get_response(**given)
    if dialect == "openai-chat":
        assert body["logprobs"] is True
    if dialect == "openai-responses":
        assert "message.output_text.logprobs" in body["include"]
    streamed = [
        (one.token, one.logprob)
        for event in events
        if event.type == "response.output_text.delta"
        for one in event.logprobs
    ]
    expected = list(zip(LOGPROBS["tokens"], LOGPROBS["logprobs"], strict=True))
    assert streamed == expected
    for answered in (events[-1].response, response):
        (item,) = answered.output
        logprobs = item.content[0].logprobs
        assert [(one.token, one.logprob) for one in logprobs] == expected
        assert [top.token for top in logprobs[0].top_logprobs] == ["Hi", "Yo"]


async def test_an_include_of_the_configuration_is_sent_beside_that_of_log_probabilities() -> None:
    given = ["reasoning.encrypted_content"]
    with served(likely("openai-responses")) as server:
        adapter = ours("openai-responses", server, include=given)
        await events_of(adapter, model_settings=ModelSettings(top_logprobs=2))
        body = server.requests[0].json()
    assert body["include"] == [*given, "message.output_text.logprobs"]


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("case", [*REFUSED, *ALLOWED])
async def test_the_runner_runs_what_may_run(case: str, is_streamed: bool) -> None:
    ran: list[str] = []

    @function_tool
    def pay(who: str = "?", note: str = "?") -> str:
        """Pay somebody."""
        ran.append(f"{who} {note}")
        return "paid"

    is_refused = case == "refused"
    with served(*answers(case)) as server:
        agent = Agent(name="a", model=ours("anthropic-messages", server), tools=[pay])
        context = pytest.raises(ModelBehaviorError) if is_refused else contextlib.nullcontext()
        with context:
            if is_streamed:
                run = Runner.run_streamed(agent, "Pay.")
                async for _ in run.stream_events():
                    pass
            else:
                await Runner.run(agent, "Pay.")
    assert ran == (["Ann for tea"] if case in ALLOWED else [])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("case", CASES)
async def test_a_call_before_a_fallback_does_not_run(
    case: str, is_streamed: bool, whole: bool
) -> None:
    ran: list[str] = []

    @function_tool
    def pay(who: str = "?") -> str:
        """Pay somebody."""
        ran.append(who)
        return "paid"

    with served(*handed_over(case, whole=whole)) as server:
        agent = Agent(name="a", model=ours("anthropic-messages", server), tools=[pay])
        result: Any
        if is_streamed:
            result = Runner.run_streamed(agent, "Pay.")
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, "Pay.")
        last = server.requests[-1].json()
    assert ran == RUNS[case]
    assert result.final_output == ("Done." if RUNS[case] else "No.")
    if RUNS[case]:
        assert sent(last) == [*SENT[case], *RAN]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_an_answer_of_a_declined_call_alone_is_an_error(is_streamed: bool) -> None:
    with served(answer_of([call("Ann"), BOUNDARY], "end_turn")) as server:
        adapter = ours("anthropic-messages", server)
        asking = events_of(adapter) if is_streamed else adapter.get_response(**arguments())
        with pytest.raises(ModelBehaviorError, match="no model served the answer"):
            await asking


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
        tides = Agent(
            name="Pays", model=ours("anthropic-messages", server), tools=[function_tool(pay)]
        )
        with contextlib.suppress(Exception):
            await Runner.run(tides, "Pay.")
    assert not ran
