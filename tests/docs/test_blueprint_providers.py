"""Providers and their clients, by the words of docs/blueprint.md#provider-clients.

Requests go over HTTP on the loopback interface, and answers are bytes of the providers' protocols.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any, TypeAlias, cast

import pytest

from deltafold import (
    AnthropicModel,
    Decoder,
    MessageDelta,
    MisuseError,
    ModelError,
    OpenAIChatModel,
    OpenAIResponsesModel,
    ToolCallPart,
    ToolSpec,
    load_model,
)
from deltafold.conversation import (
    AgentState,
    HistoryToolCallResult,
    LevelOfDetailSections,
    LlmRequest,
    ModelClient,
    ModelInputEntry,
    ModelInvocationDescriptor,
    ModelOutputAccumulator,
    ModelOutputDelta,
    ModelOutputEntry,
    ProviderClient,
    ProviderRouter,
    Route,
    StoredEntry,
    TokenUsage,
    TokenUsageCarrier,
    ToolCallRequest,
    ToolDefinition,
    ToolExecutionStatus,
    ToolExecutor,
    ToolOutcome,
    ToolResultsEntry,
    WidgetEntry,
)
from deltafold.testing import Recording, ReplayServer
from wires import claude, gpt

FAKE = ModelInvocationDescriptor("fake", "v1", "m")


def asked(text: str) -> ModelInputEntry:
    return ModelInputEntry(content_sections=LevelOfDetailSections.of_text(text))


def new_state() -> AgentState:
    state = AgentState.create_default("Be brief.")
    state.append_model_input(asked("question"))
    return state


def anthropic_client(server: ReplayServer) -> ModelClient:
    return ModelClient(AnthropicModel({"model_id": "c"}, base_url=server.url, api_key="k"))


def chat_client(server: ReplayServer) -> ModelClient:
    url = f"{server.url}/v1"
    return ModelClient(OpenAIChatModel({"model_id": "g"}, base_url=url, api_key="k"))


async def answer(
    client: ProviderClient, request: LlmRequest
) -> tuple[ModelOutputAccumulator, list[MessageDelta]]:
    """Read the whole answer of a client."""
    accumulator = ModelOutputAccumulator(request.invocation)
    deltas = [delta async for delta in accumulator.follow(client.call_model(request))]
    return accumulator, deltas


def ask(
    client: ModelClient, state: AgentState, tools: Sequence[Any] = ()
) -> tuple[ModelOutputAccumulator, list[MessageDelta]]:
    """Ask a client for the next answer of a conversation."""

    async def main() -> tuple[ModelOutputAccumulator, list[MessageDelta]]:
        request = LlmRequest(state.render_live_context(), tools, client.invocation)
        async with client.model:
            return await answer(client, request)

    return asyncio.run(main())


def body_of(server: ReplayServer, place: int = 0) -> Any:  # noqa: ANN401 - JSON
    return server.requests[place].json()


Kind: TypeAlias = tuple[str, dict[str, object]]
Call: TypeAlias = tuple[str, str, dict[str, object]]


class Fake:
    """A client that answers with given deltas, and keeps the requests."""

    def __init__(self, *deltas: Kind) -> None:
        self.deltas = [
            MessageDelta("run", seq, kind, payload)
            for seq, (kind, payload) in enumerate(deltas, start=1)
        ]
        self.requests: list[LlmRequest] = []

    async def call_model(self, request: LlmRequest) -> AsyncGenerator[ModelOutputDelta]:
        self.requests.append(request)
        for delta in self.deltas:
            yield delta


START: Kind = ("start", {"modelId": "m", "requestId": "r"})
HELLO: Kind = ("text", {"textDelta": "Hello"})
DONE: Kind = ("done", {"finishReason": "stop"})


# One history, several providers.


def test_one_history_is_sent_in_the_form_of_each_provider() -> None:
    state = new_state()
    calls = [ToolCallRequest("f", one, "{}", {}) for one in ("c1", "c2")]
    state.append_model_output(ModelOutputEntry(contents=["I look."], tool_calls=calls))
    sections = LevelOfDetailSections.of_text("done")
    results = [
        HistoryToolCallResult("f", one.tool_call_id, ToolExecutionStatus.SUCCESS, sections)
        for one in calls
    ]
    state.append_tool_results(ToolResultsEntry(results=results))
    with ReplayServer([Recording.of(claude("a")), Recording.of(gpt("b"))]) as server:
        ask(anthropic_client(server), state)
        ask(chat_client(server), state)
        to_claude, to_gpt = body_of(server, 0), body_of(server, 1)
    assert [turn["role"] for turn in to_claude["messages"]] == ["user", "assistant", "user"]
    blocks = to_claude["messages"][-1]["content"]
    assert [block["tool_use_id"] for block in blocks] == ["c1", "c2"]
    roles = [turn["role"] for turn in to_gpt["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]
    sent, report = state.messages_for("anthropic-messages")
    assert report.is_clean
    assert len(sent) == 4


def test_one_session_mixes_models_of_two_providers() -> None:
    state = new_state()
    with ReplayServer([Recording.of(claude("A plan.")), Recording.of(gpt("Done."))]) as server:
        for client in (anthropic_client(server), chat_client(server)):
            accumulator, _ = ask(client, state)
            state.append_model_output(accumulator.build_entry())
        second = body_of(server, 1)
    answers = [entry for entry in state.history if isinstance(entry, ModelOutputEntry)]
    assert [one.invocation and one.invocation.provider_id for one in answers] == [
        "anthropic",
        "openai",
    ]
    assert second["messages"][-1] == {"role": "assistant", "content": "A plan."}


def test_only_contextual_entries_reach_a_provider() -> None:
    state = new_state()
    state.log.append(StoredEntry(data={"secret": "stored"}))
    state.log.append(WidgetEntry(widget="w", change="secret change", source="secret source"))
    with ReplayServer([Recording.of(gpt("a"))]) as server:
        ask(chat_client(server), state)
        assert body_of(server)["messages"] == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "question"},
        ]


def test_sections_are_one_text_with_headings() -> None:
    state = AgentState.create_default("Be brief.")
    sections = [("Task", "Sail."), ("Weather", "Windy.")]
    state.append_model_input(
        ModelInputEntry(content_sections=LevelOfDetailSections.create_uniform(sections))
    )
    with ReplayServer([Recording.of(gpt("a"))]) as server:
        ask(chat_client(server), state)
        assert body_of(server)["messages"][-1] == {
            "role": "user",
            "content": "# Task\nSail.\n\n# Weather\nWindy.",
        }


def test_the_model_is_offered_the_tools_of_widgets() -> None:
    state = new_state()
    with ReplayServer([Recording.of(gpt("a"))]) as server:
        ask(chat_client(server), state, list(state.enumerate_widget_tools()))
        (tool,) = body_of(server)["tools"]
    assert tool["function"]["name"] == "memory_notebook_replace"
    assert tool["function"]["parameters"]["required"] == ["text"]


# Requests, clients, routes.


def test_a_request_has_a_strategy_an_invocation_and_tools_and_is_read_only() -> None:
    context: list[Any] = new_state().render_live_context()
    tools: list[Any] = [ToolSpec(name="f")]
    params: dict[str, Any] = {"stop": ["a"]}
    request: Any = LlmRequest(context, tools, FAKE, "plan", params)
    context.clear()
    tools.clear()
    params["stop"].append("b")
    assert (len(request.context), len(request.tools)) == (2, 1)
    assert (request.invocation, request.strategy) == (FAKE, "plan")
    assert request.params == {"stop": ("a",)}
    for member in ("context", "tools", "strategy"):
        with pytest.raises(FrozenInstanceError):
            setattr(request, member, ())
    with pytest.raises(TypeError):
        request.context[0] = None


def test_a_client_sees_the_request_and_not_the_state() -> None:
    state = new_state()
    fake = Fake(START, HELLO, DONE)
    request = LlmRequest(state.render_live_context(), (), FAKE)
    state.append_model_input(asked("later"))
    before = state.log.to_json()
    asyncio.run(answer(fake, request))
    (seen,) = fake.requests
    assert isinstance(seen, LlmRequest)
    assert len(seen.context) == 2
    assert state.log.to_json() == before


def test_a_fake_client_answers_with_given_deltas() -> None:
    class Scripted(Fake, ProviderClient):
        """A client that names its protocol."""

    fake = Scripted(START, HELLO, DONE)
    accumulator, deltas = asyncio.run(answer(fake, LlmRequest((), (), FAKE)))
    assert deltas == fake.deltas
    assert accumulator.build_entry().contents == ("Hello",)


def test_the_strategy_chooses_the_client() -> None:
    plan, execute = Fake(START, HELLO, DONE), Fake(START, DONE)
    router = ProviderRouter({"plan": Route(plan, FAKE), "execute": Route(execute, FAKE)})

    async def ask_for(strategy: str | None) -> list[str]:
        stream = router.call_model(router.request((), (), strategy))
        return [str(delta.kind) async for delta in stream]

    assert asyncio.run(ask_for("execute")) == ["start", "done"]
    assert asyncio.run(ask_for(None)) == ["start", "text", "done"]
    assert [request.strategy for request in plan.requests] == ["plan"]
    with pytest.raises(MisuseError, match="there are plan, execute"):
        router.request((), (), "dream")


def test_two_specifications_of_one_provider_are_two_endpoints() -> None:
    with ReplayServer() as server:
        url = f"{server.url}/v1"
        for cls in (OpenAIChatModel, OpenAIResponsesModel):
            ask(ModelClient(cls({"model_id": "g"}, base_url=url, api_key="k")), new_state())  # pyright: ignore[reportUnknownArgumentType]
        assert [request.path for request in server.requests] == [
            "/v1/chat/completions",
            "/v1/responses",
        ]
    assert ModelInvocationDescriptor("openai", "v1", "g").specification == "openai-chat"
    assert ModelInvocationDescriptor("openai", "responses", "g").specification == (
        "openai-responses"
    )


@pytest.mark.parametrize(("provider", "specification"), [("azure", "v1"), ("openai", "responses")])
def test_a_client_refuses_a_request_of_another_provider_or_specification(
    provider: str, specification: str
) -> None:
    with ReplayServer() as server:
        client = chat_client(server)
        other = ModelInvocationDescriptor(provider, specification, "g")
        with pytest.raises(MisuseError, match=f"openai openai-chat, not for {provider}"):
            client.call_model(LlmRequest(new_state().render_live_context(), (), other))
        assert isinstance(client, ModelClient)
        assert server.requests == []


def test_azure_and_vllm_share_the_client_of_openai() -> None:
    with ReplayServer([Recording.of(gpt("a")), Recording.of(gpt("b"))]) as server:
        for vendor in ("azure", "vllm"):
            model = load_model(f"{vendor}/g", base_url=f"{server.url}/v1", api_key="k")
            assert isinstance(model, OpenAIChatModel)
            accumulator, _ = ask(ModelClient(model), new_state())
            assert accumulator.build_entry().invocation == ModelInvocationDescriptor(
                vendor, "v1", "g"
            )
        assert body_of(server, 0) == body_of(server, 1)


# Streams.


def test_a_stream_is_deltas_of_one_type_with_text_and_calls() -> None:
    with ReplayServer([Recording.of(claude("Hm.", ("t1", "f", {"q": 1})))]) as server:
        _, deltas = ask(anthropic_client(server), new_state())
    assert all(isinstance(delta, ModelOutputDelta) for delta in deltas)
    assert "".join(delta.text or "" for delta in deltas) == "Hm."
    assert "".join(delta.args_text or "" for delta in deltas) == '{"q": 1}'


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_the_deltas_of_an_answer_become_one_entry(provider: str) -> None:
    calls: list[Call] = [("t1", "f", {"q": 1}), ("t2", "f", {"q": 2})]
    body = claude("Hm.", *calls) if provider == "anthropic" else gpt("Hm.", *calls)
    state = new_state()
    with ReplayServer([Recording.of_events(body)]) as server:
        client = anthropic_client(server) if provider == "anthropic" else chat_client(server)
        accumulator, _ = ask(client, state)
    assert isinstance(accumulator, ModelOutputAccumulator)
    entry = accumulator.build_entry(attempt=1)
    assert entry.contents == ("Hm.",)
    assert [call.arguments for call in entry.tool_calls] == [{"q": 1}, {"q": 2}]
    assert (entry.invocation, entry.metadata) == (client.invocation, {"attempt": 1})


def test_an_answer_and_its_results_are_one_entry_each() -> None:
    def square(number: int) -> int:
        """Square a number."""
        return number * number

    state = new_state()
    calls: list[Call] = [("t1", "square", {"number": 2}), ("t2", "square", {"number": 3})]
    with ReplayServer([Recording.of(gpt("", *calls))]) as server:
        accumulator, _ = ask(chat_client(server), state)
    entry = state.append_model_output(accumulator.build_entry())
    executor = ToolExecutor([ToolDefinition.from_function(square)])
    assert entry.message is not None
    outcomes = asyncio.run(executor.execute_all(entry.message.tool_calls))
    state.append_tool_results(
        ToolResultsEntry(results=[outcome.history_result() for outcome in outcomes])
    )
    _, output, results = state.history
    assert isinstance(output, ModelOutputEntry)
    assert isinstance(results, ToolResultsEntry)
    assert [one.tool_call_id for one in results.results] == ["t1", "t2"]
    assert [one.result.live[0].value for one in results.results] == ["4", "9"]


def test_nothing_of_a_stream_that_broke_enters_the_history() -> None:
    state = new_state()
    before = state.history
    body = gpt("Half an answer that goes on and on.")
    place = body.index(b"data: ", body.index(b"on and on"))
    with ReplayServer([Recording.of(body).stopping("cut", place)]) as server:
        accumulator, deltas = ask(chat_client(server), state)
    assert isinstance(accumulator, ModelOutputAccumulator)
    assert accumulator.snapshot().text
    assert deltas[-1].error_code is not None
    with pytest.raises(ModelError):
        accumulator.build_entry()
    assert state.history == before


def test_leaving_a_stream_closes_its_connection() -> None:
    body = claude("A long answer.")
    stalled = Recording.of_events(body).stopping("stall", len(body) // 2)

    async def main(server: ReplayServer) -> int:
        client = anthropic_client(server)
        request = LlmRequest(new_state().render_live_context(), (), client.invocation)
        accumulator = ModelOutputAccumulator(request.invocation)

        async def read() -> None:
            async for _ in accumulator.follow(client.call_model(request)):
                pass

        async with client.model:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(read(), 0.3)
            for _ in range(200):
                if server.open_connections == 0:
                    break
                await asyncio.sleep(0.01)
            return server.open_connections

    with ReplayServer([stalled]) as server:
        assert asyncio.run(main(server)) == 0


def test_leaving_a_stream_closes_the_generator_of_any_client() -> None:
    closed: list[str] = []

    class Careful(Fake):
        """A client that notes the end of its stream."""

        async def call_model(self, request: LlmRequest) -> AsyncGenerator[ModelOutputDelta]:
            try:
                async for delta in super().call_model(request):
                    yield delta
            finally:
                closed.append(request.strategy)

    async def main() -> list[str]:
        accumulator = ModelOutputAccumulator(FAKE)
        stream = Careful(START, HELLO, DONE).call_model(LlmRequest((), (), FAKE))
        async with aclosing(accumulator.follow(stream)) as deltas:
            async for _ in deltas:
                break
        return [*closed]

    assert asyncio.run(main()) == ["default"]


def test_arguments_that_do_not_parse_are_kept_with_the_reason() -> None:
    body = claude("", ("t1", "f", {"q": 1})).replace(b'{\\"q\\": 1}', b'{\\"q\\": nonsense}')
    with ReplayServer([Recording.of(body)]) as server:
        accumulator, _ = ask(anthropic_client(server), new_state())
    (call,) = accumulator.build_entry().tool_calls
    assert isinstance(call, ToolCallRequest)
    assert (call.raw_arguments, call.arguments) == ('{"q": nonsense}', None)
    assert call.parse_error


def test_usage_is_on_the_entry_after_the_stream() -> None:
    with ReplayServer([Recording.of(gpt("a"))]) as server:
        accumulator, _ = ask(chat_client(server), new_state())
    entry = accumulator.build_entry()
    assert isinstance(entry, TokenUsageCarrier)
    assert entry.usage == TokenUsage(80, 10, None)


XML = "<tool_call>\n<function=f>\n<parameter=q>\n1\n</parameter>\n</function>\n</tool_call>"
JSON = '<tool_call>\n{"name": "f", "arguments": {"q": 1}}\n</tool_call>'


@pytest.mark.parametrize(
    ("specification", "body"),
    [
        ("messages", claude("", ("c", "f", {"q": 1}))),
        ("v1", gpt("", ("c", "f", {"q": 1}))),
        ("json", gpt(JSON)),
        ("xml", gpt(XML)),
    ],
)
def test_every_specification_reads_its_own_form_of_arguments(
    specification: str, body: bytes
) -> None:
    schema: dict[str, object] = {"type": "object", "properties": {"q": {"type": "integer"}}}
    invocation = ModelInvocationDescriptor("p", specification, "m")
    tools = [ToolSpec(name="f", parameter_schema=schema)]
    decoder = Decoder(cast("Any", invocation.specification), tools=tools)
    accumulator = ModelOutputAccumulator(invocation)
    accumulator.consume(decoder.feed(body))
    accumulator.consume(decoder.close())
    (call,) = accumulator.build_entry().tool_calls
    assert (call.tool_name, call.arguments) == ("f", {"q": 1})
    assert json.loads(call.raw_arguments) == {"q": 1}


def test_the_executor_reports_duration_and_failure() -> None:
    async def slow() -> None:
        """Wait and fail."""
        await asyncio.sleep(0.02)
        raise LookupError("no chart")

    executor = ToolExecutor([ToolDefinition.from_function(slow)])
    call = ToolCallPart(tool_call_id="c", tool_name="slow", arguments={})
    outcome = asyncio.run(executor.execute(call))
    assert isinstance(outcome, ToolOutcome)
    result = outcome.history_result()
    assert result.status is ToolExecutionStatus.FAILED
    assert result.elapsed is not None
    assert timedelta(seconds=0.02) <= result.elapsed < timedelta(seconds=5)
    assert "no chart" in result.result.live[0].value
