"""The adapter of openai-agents: long sessions with providers that bind their state."""

import asyncio
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from long_sessions import Ask, each_session, find, hold

from deltafold.integrations.openai_agents import DeltafoldAgentsModel
from sessions import PNG


@each_session
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_session_is_never_refused(name: str, seed: int, *, streams: bool) -> None:
    def begin(model: Any) -> Ask:
        agent = Agent(name="Tides", model=DeltafoldAgentsModel(model), tools=[function_tool(find)])
        history: list[Any] = []

        async def answer(asked: list[Any]) -> list[Any]:
            if not streams:
                return (await Runner.run(agent, asked, max_turns=20)).to_input_list()
            result = Runner.run_streamed(agent, asked, max_turns=20)
            async for _ in result.stream_events():
                pass
            return result.to_input_list()

        def ask(text: str, has_image: bool) -> None:
            image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
            said = [{"type": "input_text", "text": text}, *[image] * has_image]
            history[:] = asyncio.run(answer([*history, {"role": "user", "content": said}]))

        return ask

    hold(name, seed, begin)
