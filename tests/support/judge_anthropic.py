"""Reader of a stream of Messages: the official Anthropic client."""

from typing import TYPE_CHECKING

import anthropic
import httpx2
from anthropic.lib.streaming._messages import accumulate_event

from judging import Answer, Stream

if TYPE_CHECKING:
    from anthropic.types import ParsedMessage


def read(stream: Stream) -> Answer:
    def answer_of(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(stream.status, headers=dict(stream.headers), content=stream.body)

    client = anthropic.Anthropic(
        api_key="key",
        max_retries=0,
        http_client=httpx2.Client(transport=httpx2.MockTransport(answer_of)),
    )
    message: ParsedMessage[None] | None = None
    buffers: dict[int, bytes] = {}
    for event in client.messages.create(
        model="m", max_tokens=1, messages=[{"role": "user", "content": "?"}], stream=True
    ):
        message = accumulate_event(event=event, current_snapshot=message, json_bufs=buffers)
    assert message is not None
    usage = message.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    answer = Answer(
        finish=message.stop_reason,
        input_tokens=usage.input_tokens + cached,
        output_tokens=usage.output_tokens,
    )
    for block in message.content:
        if block.type == "text":
            answer.text += block.text
        elif block.type == "thinking":
            answer.thinking += block.thinking
        elif block.type == "tool_use":
            answer.calls.append((block.id, block.name, block.input))
    return answer
