"""Code of a user of litellm, for the type checkers and the tests.

In: a deltafold model.  Out: the text of an answer, and the pieces of a text.
"""

from collections.abc import AsyncIterator
from typing import Any

import litellm

import deltafold
from deltafold.integrations.litellm import DeltafoldLLM


def register(model: deltafold.Model[Any]) -> None:
    """Make a model known to litellm as `deltafold/tides`."""
    handler = DeltafoldLLM({"tides": model})
    litellm.custom_provider_map = [{"provider": "deltafold", "custom_handler": handler}]


def answer_of(question: str) -> str:
    """Return the text of a whole answer."""
    messages = [{"role": "user", "content": question}]
    response: Any = litellm.completion("deltafold/tides", messages)
    return str(response.choices[0].message.content)


async def words_of(question: str) -> AsyncIterator[str]:
    """Yield the text of an answer while it arrives."""
    messages = [{"role": "user", "content": question}]
    stream: Any = await litellm.acompletion("deltafold/tides", messages, stream=True)
    async for chunk in stream:
        yield chunk.choices[0].delta.content or ""
