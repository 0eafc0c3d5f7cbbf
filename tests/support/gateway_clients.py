"""Official clients of four protocols that ask a gateway, and the answers of its upstreams."""

import json
from collections.abc import Iterator
from typing import Any, Final, Protocol

import anthropic
import openai
import pytest
from google import genai

from deltafold import (
    Message,
)
from deltafold.contract.usage import Usage
from deltafold.message.parts import TextPart, ToolCallPart
from deltafold.testing import Recording
from recorded_upstreams import written

CLIENTS: Final = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
TYPES: Final = {"ollama": "application/x-ndjson"}
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}}


def answer(*parts: TextPart | ToolCallPart) -> Message:
    message = Message.assistant(*parts)
    message.meta.usage = Usage(input_tokens=11, output_tokens=7, total_tokens=18)
    message.meta.response_id = "upstream-1"
    return message


TEXT: Final = answer(TextPart(text="Rain in Oslo, "), TextPart(text="sun in Rome."))
CALLS: Final = answer(
    TextPart(text="Two cities."),
    *(
        ToolCallPart(
            tool_call_id=f"call_{city}", tool_name="weather", raw_args_text=f'{{"city":"{city}"}}'
        )
        for city in ("Oslo", "Rome")
    ),
)


def recorded(message: Message, dialect: str) -> Recording:
    """Return the stream of a message as an upstream of a dialect sends it."""
    body = written(message, dialect)
    return Recording.of(body, piece_bytes=700, content_type=TYPES.get(dialect, "text/event-stream"))


OPEN: Final[list[Any]] = []
"""Clients of the test that runs."""


@pytest.fixture(autouse=True)
def clients() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def opened(client: object) -> object:
    """Return a client that is closed after the test."""
    OPEN.append(client)
    return client


class Client(Protocol):
    """Calls a gateway, and returns what an official client read."""

    def __call__(self, url: str, *, streams: bool) -> "Got": ...


class Got:
    """Answer as a client read it."""

    def __init__(self, text: str, calls: list[tuple[str, object]], tokens: tuple[int, int]) -> None:
        self.text, self.calls, self.tokens = text, calls, tokens


def by_chat(url: str, *, streams: bool) -> Got:
    client: Any = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": tools}
    if streams:
        asked["stream_options"] = {"include_usage": True}
        with client.chat.completions.stream(**asked) as stream:
            completion: Any = stream.get_final_completion()
    else:
        completion = client.chat.completions.create(**asked)
    said = completion.choices[0].message
    calls = [(c.function.name, json.loads(c.function.arguments)) for c in said.tool_calls or ()]
    usage = completion.usage
    return Got(said.content or "", calls, (usage.prompt_tokens, usage.completion_tokens))


def by_responses(url: str, *, streams: bool) -> Got:
    client: Any = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
    asked: Any = {
        "model": "m",
        "input": "?",
        "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}],
    }
    if streams:
        with client.responses.stream(**asked) as stream:
            response: Any = stream.get_final_response()
    else:
        response = client.responses.create(**asked)
    items = [item for item in response.output if item.type == "function_call"]
    calls = [(item.name, json.loads(item.arguments)) for item in items]
    usage = response.usage
    return Got(response.output_text, calls, (usage.input_tokens, usage.output_tokens))


def by_messages(url: str, *, streams: bool) -> Got:
    client: Any = opened(anthropic.Anthropic(base_url=url, api_key="k", max_retries=0))
    asked: Any = {
        "model": "m",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "?"}],
        "tools": [{"name": "weather", "input_schema": SCHEMA}],
    }
    if streams:
        with client.messages.stream(**asked) as stream:
            message: Any = stream.get_final_message()
    else:
        message = client.messages.create(**asked)
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    return Got(text, calls, (message.usage.input_tokens, message.usage.output_tokens))


def by_gemini(url: str, *, streams: bool) -> Got:
    options: Any = {"base_url": url}
    client: Any = opened(genai.Client(api_key="k", http_options=options))
    tools = [{"function_declarations": [{"name": "weather", "parameters_json_schema": SCHEMA}]}]
    asked: Any = {"model": "m", "contents": "?", "config": {"tools": tools}}
    if streams:
        chunks: list[Any] = list(client.models.generate_content_stream(**asked))
    else:
        chunks = [client.models.generate_content(**asked)]
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    text = "".join(part.text for part in parts if part.text)
    calls = [(p.function_call.name, p.function_call.args) for p in parts if p.function_call]
    usage = chunks[-1].usage_metadata
    return Got(text, calls, (usage.prompt_token_count, usage.candidates_token_count))


READ: Final[dict[str, Client]] = {
    "openai-chat": by_chat,
    "openai-responses": by_responses,
    "anthropic-messages": by_messages,
    "gemini": by_gemini,
}


PATHS: Final = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
"""The path of a streamed answer, by protocol."""


def body_of(message: Message, dialect: str) -> bytes:
    """Return a recorded answer as one body."""
    return b"".join(piece for _, piece in recorded(message, dialect).pieces)


def request_of(dialect: str, *, usage: bool = True) -> dict[str, object]:
    """Return the smallest streaming request of a protocol."""
    if dialect == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": "?"}]}]}
    asked: dict[str, object] = {"model": "m", "stream": True}
    if dialect == "openai-responses":
        return {**asked, "input": "?"}
    asked["messages"] = [{"role": "user", "content": "?"}]
    if dialect == "anthropic-messages":
        return {**asked, "max_tokens": 9}
    return {**asked, "stream_options": {"include_usage": True}} if usage else asked
