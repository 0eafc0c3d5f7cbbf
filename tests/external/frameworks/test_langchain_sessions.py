"""The adapter of langchain: long sessions with providers that bind their state."""

from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from long_sessions import Ask, each_session, find, hold

from deltafold.integrations.langchain import ChatDeltafold
from sessions import PNG


@each_session
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_session_is_never_refused(name: str, seed: int, *, streams: bool) -> None:
    def begin(model: Any) -> Ask:
        chat = ChatDeltafold(client=model).bind_tools([find])
        history: list[BaseMessage] = []

        def answer() -> Any:
            if not streams:
                return chat.invoke(history)
            first, *others = chat.stream(history)
            whole: Any = first
            for chunk in others:
                whole += chunk
            return whole

        def ask(text: str, has_image: bool) -> None:
            image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
            said: Any = [{"type": "text", "text": text}, *[image] * has_image]
            history.append(HumanMessage(said))
            while True:
                history.append(answer())
                calls = history[-1].tool_calls  # type: ignore[attr-defined]
                if not calls:
                    return
                history.extend(
                    ToolMessage(find(call["args"]["place"]), tool_call_id=call["id"])
                    for call in calls
                )

        return ask

    hold(name, seed, begin)
