"""Code of a user of strands, for the type checkers and the tests.

In: a deltafold model, or its name.  Out: the text of an answer, the pieces of a text, an object.
"""

from collections.abc import AsyncIterator
from typing import Any

from pydantic import BaseModel
from strands import (
    Agent,
    tool,  # pyright: ignore[reportUnknownVariableType] - an argument of it has no full type
)

import deltafold
from deltafold.integrations.strands import DeltafoldStrandsModel


class Tide(BaseModel):
    """High tide at a place."""

    place: str
    hour: int


@tool
def high_tide(place: str) -> str:
    """Look up the high tide of a place."""
    return f"17:42 at {place}"


async def answer_of(model: deltafold.Model[Any] | str, question: str) -> str:
    """Run an agent with a tool, and return its answer."""
    agent = Agent(DeltafoldStrandsModel(model), tools=[high_tide], callback_handler=None)
    return str(await agent.invoke_async(question))


async def words_of(model: deltafold.Model[Any] | str, question: str) -> AsyncIterator[str]:
    """Yield the text of an answer while it arrives."""
    agent = Agent(DeltafoldStrandsModel(model), callback_handler=None)
    async for event in agent.stream_async(question):
        if "data" in event:
            yield str(event["data"])


async def tide_of(model: deltafold.Model[Any] | str, question: str) -> Tide:
    """Return a tide as an object."""
    messages: Any = [{"role": "user", "content": [{"text": question}]}]
    async for event in DeltafoldStrandsModel(model).structured_output(Tide, messages):
        if isinstance(found := event["output"], Tide):
            return found
    raise AssertionError
