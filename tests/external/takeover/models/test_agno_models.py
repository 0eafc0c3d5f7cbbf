"""agno's models over recordings."""

from collections.abc import Callable
from typing import Any

from agno.models.anthropic import Claude
from agno.models.base import MessageData
from agno.models.message import Message
from agno.models.openai import OpenAIChat, OpenAIResponses
from served import answered, recordings, served


def ask(model: Any) -> object:
    """Return the message that a model builds of its stream."""
    message, found = Message(role="assistant"), MessageData()
    question = [Message(role="user", content="?")]
    pieces = list(
        model.process_response_stream(
            messages=question, assistant_message=message, stream_data=found
        )
    )
    model._populate_assistant_message_from_stream_data(assistant_message=message, stream_data=found)
    held = message.to_dict()
    for name in ("id", "created_at", "metrics"):
        held.pop(name, None)
    counts = message.metrics
    return [held, counts.input_tokens, counts.output_tokens, counts.total_tokens, len(pieces)]


@recordings("openai-chat")
def test_chat(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    with served(path, body) as url:
        model = OpenAIChat(id="m", api_key="k", base_url=f"{url}/v1", max_retries=0)
        answer(answered(lambda: ask(model)))


@recordings("openai-responses")
def test_responses(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    with served(path, body) as url:
        model = OpenAIResponses(id="m", api_key="k", base_url=f"{url}/v1", max_retries=0)
        answer(answered(lambda: ask(model)))


@recordings("anthropic-messages")
def test_claude(path: str, body: bytes, answer: Callable[[object], None]) -> None:
    with served(path, body) as url:
        model = Claude(api_key="k", client_params={"base_url": url, "max_retries": 0})
        answer(answered(lambda: ask(model)))
