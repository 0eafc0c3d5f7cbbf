"""Reader of Ollama's chat: the official client."""

from typing import Any

import httpx
import ollama

from judging import Answer, Stream


def client_of(stream: Stream) -> ollama.Client:
    """Return a client whose every request is answered with the stream."""

    def answer_of(_: httpx.Request) -> httpx.Response:
        return httpx.Response(stream.status, headers=dict(stream.headers), content=stream.body)

    return ollama.Client(transport=httpx.MockTransport(answer_of))


def read(stream: Stream) -> Answer:
    answer = Answer()
    client: Any = client_of(stream)
    for record in client.chat(model="m", messages=[{"role": "user", "content": "?"}], stream=True):
        answer.text += record.message.content or ""
        answer.thinking += record.message.thinking or ""
        for call in record.message.tool_calls or ():
            # The client's type has no id of a call.
            answer.calls.append((None, call.function.name, dict(call.function.arguments)))
        if record.done:
            answer.finish = record.done_reason
            answer.input_tokens = record.prompt_eval_count
            answer.output_tokens = record.eval_count
    return answer
