"""Code of a user of pydantic-ai, for the type checkers and the tests.

In: a deltafold model, or its name.  Out: a typed output.
"""

from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent

import deltafold
from deltafold.integrations.pydantic_ai import DeltafoldModel, DeltafoldModelSettings


class Tide(BaseModel):
    """High tide at a place."""

    place: str
    hour: int


def high_tide(place: str) -> str:
    """Look up the high tide of a place."""
    return f"17:42 at {place}"


def agent_of(model: deltafold.Model[Any] | str) -> Agent[None, Tide]:
    """Make an agent with a tool and an output type."""
    settings = DeltafoldModelSettings(max_tokens=500, deltafold={"extra_headers": {"x-team": "a"}})
    adapter = DeltafoldModel(model, settings=settings)
    return Agent(adapter, output_type=Tide, tools=[high_tide])


async def hour_of(model: deltafold.Model[Any] | str, question: str) -> int:
    """Ask for a tide, and return its hour."""
    result = await agent_of(model).run(question)
    return result.output.hour
