"""Sessions of thirty turns with providers that refuse what is not whole: nothing is refused.

In: the seeds of sessions.py. DELTAFOLD_SESSIONS sets how many sessions each way has for each
provider, and DELTAFOLD_TURNS how long they are.  Out: no refusal; without a budget each request
repeats the one before it, with all state.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import pytest

from binding_server import ScriptedServer
from deltafold import Message, TextPart, ToolSpec
from deltafold.conversation import Agent, AgentState, ConversationLog, MemoryNotebookWidget
from deltafold.gateway import create_app
from deltafold.message.messages import Role
from gateways import served
from native_clients import NativeClient
from sessions import (
    PNG,
    PROVIDERS,
    SESSIONS,
    TURNS,
    assert_whole,
    breaks,
    questions,
    script_of,
)
from talks import Talk

CLIENTS: Final = ("anthropic-messages", "openai-responses", "gemini", "openai-chat")

each_provider = pytest.mark.parametrize("name", PROVIDERS)
each_seed = pytest.mark.parametrize("seed", range(SESSIONS))


def find(place: str) -> str:
    """Look a place up."""
    return f"{place}: 17:42. " * 20


def summary(messages: Sequence[Message]) -> str:
    return f"{len(messages)} messages about places"


def run_agent(name: str, seed: int, *, is_sync: bool, budget: int | None = None) -> ScriptedServer:
    """Run an agent for all turns; after each ten it begins anew from its log."""
    provider = PROVIDERS[name]
    reported = provider.reported if seed % 2 == 0 else None
    with provider.serve(script_of(seed, TURNS, notes=True), reported=reported) as server:
        state = AgentState.create_default("Be brief.")
        asked = list(questions(seed, TURNS))
        config: Any = {} if budget is None else {"context": {"token_budget": budget}}
        compact = summary if budget is not None and seed % 2 else None
        for begin in range(0, TURNS, 10):
            model = provider.connect(server.url, provider.model_id)
            recipe = Agent(config, [find], model=model, compact=compact)
            agent = Talk(recipe, state, (model,))
            if is_sync:
                for question in asked[begin : begin + 10]:
                    agent.run_sync(question)
                model.close()
            else:
                asyncio.run(_all(agent, asked[begin : begin + 10]))
            state = AgentState(
                ConversationLog.from_json(state.log.to_json()), [MemoryNotebookWidget()]
            )
    return server


async def _all(agent: Talk[None], asked: Sequence[Message]) -> None:
    async with agent:
        for question in asked:
            await agent.run(question)


@each_seed
@each_provider
@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_an_agent_is_never_refused(name: str, seed: int, *, is_sync: bool) -> None:
    assert_whole(run_agent(name, seed, is_sync=is_sync))


@each_seed
@each_provider
@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_an_agent_with_a_budget_is_never_refused(name: str, seed: int, *, is_sync: bool) -> None:
    server = run_agent(name, seed, is_sync=is_sync, budget=(1_500, 3_000, 6_000)[seed % 3])
    assert server.refusals == []
    assert len(breaks(server)) <= len(server.bodies) / 3


@each_seed
@each_provider
@pytest.mark.parametrize("way", ["sync", "async", "whole"])
def test_a_model_is_never_refused(way: str, name: str, seed: int) -> None:
    provider = PROVIDERS[name]
    reported = provider.reported if seed % 2 == 0 else None
    with provider.serve(script_of(seed, TURNS), reported=reported) as server:
        model = provider.connect(server.url, provider.model_id)
        tools = [ToolSpec.from_function(find)]

        async def streamed(history: Sequence[Message]) -> Message:
            async with model.stream(history, tools) as stream:
                return await stream.final_message()

        with asyncio.Runner() as runner:
            history: list[Message] = []
            for question in questions(seed, TURNS):
                history.append(question)
                while history[-1].role is not Role.ASSISTANT:
                    match way:
                        case "async":
                            answer = runner.run(streamed(history))
                        case "sync":
                            with model.stream_sync(history, tools) as stream:
                                answer = stream.final_message()
                        case _:
                            answer = model.send_message_sync(history, tools)
                    history.append(answer)
                    history += [
                        Message.tool_result(
                            call.tool_call_id, find(str((call.arguments or {})["place"]))
                        )
                        for call in answer.runnable_tool_calls
                    ]
            if way == "async":
                runner.run(model.aclose())
            else:
                model.close()
    assert_whole(server)


@pytest.mark.one_in(7)
@each_seed
@each_provider
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("protocol", CLIENTS)
def test_a_client_of_the_gateway_is_never_refused(
    protocol: str, name: str, seed: int, *, streams: bool
) -> None:
    provider = PROVIDERS[name]
    reported = provider.reported if seed % 2 == 0 else None
    # A message of Chat has one text of reasoning, in front of the others.
    script = script_of(seed, TURNS, leads=protocol == "openai-chat")
    with provider.serve(script, reported=reported) as server:
        server.has_text_state = protocol in {provider.dialect, "gemini", "openai-chat"}
        app = create_app({"fast": provider.connect(server.url, provider.model_id)})
        client = NativeClient(protocol, streams=streams)
        with served(app) as url:
            for question in questions(seed, TURNS):
                first, *image = question.parts
                assert isinstance(first, TextPart)
                client.body = client.asking(first.text, PNG if image else None)
                while True:
                    client.said = client.post(url, "fast")
                    client.body = client.next_body()
                    if not client.has_results:
                        break
    assert_whole(server)
