"""The agent of the demo: it plans with one provider, executes with another, and says what it does.

In: nothing; a server on this machine plays both providers.  Out: a line for each step.
"""

import asyncio

from deltafold import AnthropicModel, OpenAIChatModel, ToolCallPart
from deltafold.cli.demo.page import item, row
from deltafold.conversation import Agent, AgentEvent, AgentState, ProviderRouter, ToolCallRequest
from deltafold.testing import Recording, ReplayServer, answer

_QUESTION = "When can we sail from Brest, or from Atlantis? Book a boat."


def look_up_tide(place: str) -> str:
    """Look up the next high tide at a place."""
    if place == "Atlantis":
        raise LookupError("no such place on any chart")
    return f"high tide at {place}: 17:42"


def book_boat(place: str, time: str) -> str:
    """Book a boat; this costs money."""
    return f"boat booked at {place} for {time}"


def show() -> None:
    """Run the agent, and print each of its steps."""
    with ReplayServer() as server:
        server.queue(*_answers())
        asyncio.run(_converse(server))


def _answers() -> list[Recording]:
    """Return the answers of the two providers; the second breaks off."""
    tides = [("c1", "look_up_tide", {"place": "Brest"})]
    tides.append(("c2", "look_up_tide", {"place": "Atlantis"}))
    plan = answer("anthropic-messages", "First the tides.", *tides)
    book = answer("openai-chat", ("c3", "book_boat", {"place": "Brest", "time": "17:00"}))
    done = answer("openai-chat", "The boat waits at Brest at 17:00; Atlantis is on no chart.")
    return [plan, book.stopping("cut", len(book.body) // 3), book, done]


async def _converse(server: ReplayServer) -> None:
    claude = AnthropicModel({"model_id": "claude-demo"}, base_url=server.url, api_key="unused")
    gpt = OpenAIChatModel({"model_id": "gpt-demo"}, base_url=f"{server.url}/v1", api_key="unused")
    agent = Agent(
        {"loop": {"retry_seconds": 0.01}, "tools": {"require_approval": ["book_boat"]}},
        [look_up_tide, book_boat],
        model=ProviderRouter.of_models({"plan": claude, "execute": gpt}),
        strategy=lambda turn: "plan" if turn == 1 else "execute",
        approve=_approved,
    )
    item(
        "Anthropic plans, OpenAI executes, in one conversation. A tool that fails answers with "
        "its error. A call of an answer that was cut never runs."
    )
    row("you", _QUESTION)
    async with claude, gpt:
        async for event in agent.stream(_QUESTION, state=AgentState.create_default("Plan trips.")):
            _explain(event)


def _approved(_tool: object, call: ToolCallRequest) -> bool:
    row("approval", f"{call.tool_name} costs money, so the program is asked first: yes")
    return True


def _explain(event: AgentEvent) -> None:
    if event.error is not None:
        row("openai", f"{event.error.code} inside of a call; asked again")
    elif event.result is not None and event.call is not None:
        row("tool", f"{_written(event.call)}: {event.result.status}")
    elif event.run is not None:
        tokens = event.run.usage.total_tokens
        row("end", f"{event.run.status}, {event.run.turns} answers, {tokens} tokens")
    elif event.message is not None:
        said = [event.message.text] if event.message.text else []
        said += [f"-> {_written(call)}" for call in event.message.tool_calls]
        row("anthropic" if event.turn == 1 else "openai", " ".join(said))


def _written(call: ToolCallPart | ToolCallRequest) -> str:
    """Return a call as a program would write it."""
    values = ", ".join(map(repr, (call.arguments or {}).values()))
    return f"{call.tool_name}({values})"
