"""An agent in one file: one conversation, two providers, tools, an approval, a broken stream.

A server on the loopback interface plays both providers.

    python examples/agent_loop.py
"""

import asyncio
from collections.abc import Callable

from deltafold import AnthropicModel, OpenAIChatModel
from deltafold.conversation import Agent, AgentEvent, AgentState, ProviderRouter
from deltafold.testing import Recording, ReplayServer, answer


def look_up_tide(place: str) -> str:
    """Look up the next high tide at a place."""
    if place == "Atlantis":
        raise LookupError("no such place on any chart")
    return f"high tide at {place}: 17:42"


def book_boat(place: str, time: str) -> str:
    """Book a boat; this costs money."""
    return f"boat booked at {place} for {time}"


def show(event: AgentEvent) -> str | None:
    """Return a line about an event, None for events of less interest."""
    if event.error is not None:
        return f"<- {event.error.code}, asked again in {event.seconds:.3f} s"
    if event.result is not None:
        return f"   {event.result.tool_name}: {event.result.status}"
    if event.run is not None:
        return f"=  {event.run.status}; {event.run.usage.total_tokens} tokens"
    return None if event.message is None else f"<- {event.message.text or 'calls'}"


def script() -> list[Recording]:
    """Return the answers of the two providers; the second breaks off."""
    brest = ("c1", "look_up_tide", {"place": "Brest"})
    atlantis = ("c2", "look_up_tide", {"place": "Atlantis"})
    note = ("c3", "memory_notebook_replace", {"text": "The trip goes to Brest."})
    book = answer("openai-chat", ("c4", "book_boat", {"place": "Brest", "time": "17:00"}))
    done = answer("openai-chat", "The boat waits at Brest at 17:00; Atlantis is on no chart.")
    plan = answer("anthropic-messages", "First the tides.", brest, atlantis, note)
    return [plan, book.stopping("cut", len(book.body) // 3), book, done]


async def converse(server: ReplayServer, say: Callable[[str], None] = print) -> AgentState:
    """Hold the conversation, and return it."""
    server.queue(*script())
    claude = AnthropicModel({"model_id": "claude-demo"}, base_url=server.url, api_key="unused")
    gpt = OpenAIChatModel({"model_id": "gpt-demo"}, base_url=f"{server.url}/v1", api_key="unused")
    agent = Agent(
        {"loop": {"retry_seconds": 0.01}, "tools": {"require_approval": ["book_boat"]}},
        [look_up_tide, book_boat],
        model=ProviderRouter.of_models({"plan": claude, "execute": gpt}),
        strategy=lambda turn: "plan" if turn == 1 else "execute",
        approve=lambda _tool, call: call.arguments is not None,
    )
    state = AgentState.create_default("You plan trips by the tides.")
    state.update_memory_notebook("The reader gets seasick.")
    question = "When can we sail from Brest, or from Atlantis?"
    async with claude, gpt:
        async for event in agent.stream(question, state=state):
            if (line := show(event)) is not None:
                say(line)
    return state


if __name__ == "__main__":
    with ReplayServer() as replay:
        asyncio.run(converse(replay))
