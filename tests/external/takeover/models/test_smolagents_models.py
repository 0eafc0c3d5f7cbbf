"""The OpenAI model of smolagents over recordings."""

from collections.abc import Callable

from served import answered, recordings, served
from smolagents.models import ChatMessage, MessageRole, OpenAIModel, agglomerate_stream_deltas

QUESTION = [ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": "?"}])]


@recordings("openai-chat")
def test_chat(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    def ask() -> object:
        deltas = list(model.generate_stream(QUESTION))
        return [repr(agglomerate_stream_deltas(deltas)), len(deltas)]

    with served(path, body) as url:
        model = OpenAIModel(
            "m", api_base=f"{url}/v1", api_key="k", client_kwargs={"max_retries": 0}, retry=False
        )
        answer(answered(ask))
