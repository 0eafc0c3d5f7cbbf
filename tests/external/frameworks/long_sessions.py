"""Sessions over an adapter with providers that refuse a conversation whose state is not whole.

In: what one turn is in a framework.  Out: no refusal; each request repeats the one before.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from deltafold.message.messages import TextPart
from deltafold.models.base import Model
from sessions import PROVIDERS, SESSIONS, TURNS, assert_whole, questions, script_of

Ask: TypeAlias = Callable[[str, bool], object]
"""Sends a question, with an image or without one, and runs the tools until there is an answer."""

each_session = pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name in PROVIDERS for seed in range(SESSIONS)]
)


def find(place: str) -> str:
    """Look a place up."""
    return f"{place}: 17:42. " * 20


def hold(name: str, seed: int, begin: Callable[[Model[Any]], Ask], *, leads: bool = False) -> None:
    """Hold a session.

    Args:
        name: the provider.
        seed: decides the session.
        begin: makes the framework's conversation with a model.
        leads: whether the framework keeps one piece of reasoning, in front of an answer.
    """
    provider = PROVIDERS[name]
    reported = provider.reported if seed % 2 == 0 else None
    with provider.serve(script_of(seed, TURNS, leads=leads), reported=reported) as server:
        ask = begin(provider.connect(server.url, provider.model_id))
        for question in questions(seed, TURNS):
            text = question.parts[0]
            assert isinstance(text, TextPart)
            ask(text.text, len(question.parts) > 1)
    assert len(server.bodies) > TURNS
    assert_whole(server)
