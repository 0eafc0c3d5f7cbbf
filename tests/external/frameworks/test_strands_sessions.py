"""The adapter of strands: long sessions with providers that bind their state."""

import base64
from typing import Any

from long_sessions import Ask, each_session, find, hold
from strands import (
    Agent,
    tool,  # pyright: ignore[reportUnknownVariableType] - an argument of it has no full type
)
from strands.agent.conversation_manager import NullConversationManager

from deltafold.integrations.strands import DeltafoldStrandsModel
from sessions import PNG


@each_session
def test_a_session_is_never_refused(name: str, seed: int) -> None:
    def begin(model: Any) -> Ask:
        agent = Agent(
            DeltafoldStrandsModel(model),
            tools=[tool(find)],
            callback_handler=None,
            conversation_manager=NullConversationManager(),
        )

        def ask(text: str, has_image: bool) -> None:
            image = {"image": {"format": "png", "source": {"bytes": base64.b64decode(PNG)}}}
            said: Any = [{"text": text}, *[image] * has_image]
            agent(said)

        return ask

    hold(name, seed, begin)
