"""The adapter of pydantic-ai: long sessions with providers that bind their state."""

import asyncio
import base64
from typing import Any

import pytest
from long_sessions import Ask, each_session, find, hold
from pydantic_ai import Agent, BinaryContent

from deltafold.integrations.pydantic_ai import DeltafoldModel
from sessions import PNG


@each_session
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_session_is_never_refused(name: str, seed: int, *, streams: bool) -> None:
    def begin(model: Any) -> Ask:
        agent = Agent(DeltafoldModel(model), tools=[find])
        history: list[Any] = []

        async def answer(said: list[Any]) -> list[Any]:
            if not streams:
                return (await agent.run(said, message_history=history)).all_messages()
            async with agent.iter(said, message_history=history) as run:
                async for node in run:
                    if Agent.is_model_request_node(node):
                        async with node.stream(run.ctx) as stream:
                            async for _ in stream:
                                pass
            assert run.result is not None
            return run.result.all_messages()

        def ask(text: str, has_image: bool) -> None:
            image = BinaryContent(base64.b64decode(PNG), media_type="image/png")
            history[:] = asyncio.run(answer([text, *[image] * has_image]))

        return ask

    hold(name, seed, begin)
