"""Code of a user of langchain, for the type checkers and the tests.

In: a deltafold model.  Out: texts, calls and objects.
"""

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.messages import HumanMessage
from pydantic import BaseModel, SecretStr

import deltafold
from deltafold.integrations.langchain import ChatDeltafold


class Tide(BaseModel):
    """High tide at a place."""

    place: str
    hour: int


def high_tide(place: str) -> str:
    """Look up the high tide of a place."""
    return f"17:42 at {place}"


def by_name(key: str) -> ChatDeltafold:
    """Make a chat model by the name of a vendor and a model."""
    return ChatDeltafold(model="anthropic/claude-opus-4-8", api_key=SecretStr(key), max_tokens=500)


async def words_of(model: deltafold.Model[Any], question: str) -> AsyncIterator[str]:
    """Yield the text of an answer while it arrives."""
    chat = ChatDeltafold(client=model, temperature=0)
    async for chunk in chat.astream([HumanMessage(question)]):
        yield str(chunk.text)


def called(model: deltafold.Model[Any], question: str) -> list[str]:
    """Return the names of the tools that the model calls."""
    chat = ChatDeltafold(client=model).bind_tools([high_tide], tool_choice="any")
    return [call["name"] for call in chat.invoke(question).tool_calls]


def tide_of(model: deltafold.Model[Any], question: str) -> object:
    """Return a tide as an object."""
    found: object = ChatDeltafold(client=model).with_structured_output(Tide).invoke(question)
    return found
