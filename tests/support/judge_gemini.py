"""Reader of a stream of Gemini: the official client."""

import functools
from typing import Any

import httpx
from google import genai

from judging import Answer, Stream


class Server:
    """A server in this process; a client is expensive to make, so that one reads all streams."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        transport = httpx.Client(transport=httpx.MockTransport(self.answer))
        options = genai.types.HttpOptions(httpx_client=transport)
        self.client = genai.Client(api_key="key", http_options=options)

    def answer(self, _: httpx.Request) -> httpx.Response:
        """Answer any request with the stream."""
        assert self.stream is not None
        stream = self.stream
        return httpx.Response(stream.status, headers=dict(stream.headers), content=stream.body)


@functools.cache
def server() -> Server:
    return Server()


def read(stream: Stream) -> Answer:
    server().stream = stream
    models: Any = server().client.models
    answer = Answer()
    # The server would answer the request that goes on with the same stream.
    config = genai.types.GenerateContentConfig(automatic_continuation=False)
    for chunk in models.generate_content_stream(model="m", contents="?", config=config):
        for candidate in chunk.candidates or ():
            for part in (candidate.content.parts if candidate.content else None) or ():
                if part.thought:
                    answer.thinking += part.text or ""
                else:
                    answer.text += part.text or ""
                if call := part.function_call:
                    answer.calls.append((call.id, call.name or "", call.args or {}))
            if candidate.finish_reason:
                answer.finish = candidate.finish_reason.value
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            answer.finish = "SAFETY"
        if usage := chunk.usage_metadata:
            answer.input_tokens = usage.prompt_token_count
            if usage.candidates_token_count is not None:
                thoughts = usage.thoughts_token_count or 0
                answer.output_tokens = usage.candidates_token_count + thoughts
    return answer
