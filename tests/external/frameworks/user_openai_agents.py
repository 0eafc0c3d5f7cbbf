"""Code of a user of openai-agents, for the type checkers and the tests.

In: a deltafold model, or its name.  Out: the last output of a run.
"""

from typing import Any

from agents import Agent, RunConfig, Runner, function_tool

import deltafold
from deltafold.integrations.openai_agents import DeltafoldAgentsModel, DeltafoldProvider


@function_tool
def high_tide(place: str) -> str:
    """Look up the high tide of a place."""
    return f"17:42 at {place}"


async def answer_of(model: deltafold.Model[Any] | str, question: str) -> str:
    """Run an agent, and return its last output."""
    agent = Agent(name="Tides", model=DeltafoldAgentsModel(model), tools=[high_tide])
    result = Runner.run_streamed(agent, question)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


async def answer_by_name(name: str, question: str) -> str:
    """Run an agent whose model is found by its name."""
    config = RunConfig(model=name, model_provider=DeltafoldProvider())
    result = await Runner.run(Agent(name="Tides"), question, run_config=config)
    return str(result.final_output)
