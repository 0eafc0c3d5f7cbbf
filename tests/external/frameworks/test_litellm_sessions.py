"""The adapter of litellm: long sessions with providers that bind their state."""

import json
from typing import Any

import litellm
import pytest
from long_sessions import Ask, each_session, find, hold

from deltafold.integrations.litellm import DeltafoldLLM
from sessions import PNG

TOOL = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Look a place up.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}


@each_session
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_session_is_never_refused(name: str, seed: int, *, streams: bool) -> None:
    def begin(model: Any) -> Ask:
        handler = DeltafoldLLM({"m": model})
        litellm.custom_provider_map = [{"provider": "deltafold", "custom_handler": handler}]
        history: list[Any] = []

        def answer() -> Any:
            response: Any = litellm.completion("deltafold/m", history, tools=[TOOL], stream=streams)
            if streams:
                response = litellm.stream_chunk_builder(list(response), messages=history)
            return response.choices[0].message

        def ask(text: str, has_image: bool) -> None:
            image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
            said = [{"type": "text", "text": text}, *[image] * has_image]
            history.append({"role": "user", "content": said})
            while True:
                message = answer()
                history.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return
                for call in message.tool_calls:
                    place = json.loads(call.function.arguments)["place"]
                    result = {"tool_call_id": call.id, "content": find(place)}
                    history.append({"role": "tool", **result})

        return ask

    # A message of Chat has one text of reasoning, in front of the others.
    hold(name, seed, begin, leads=True)
