"""The stream object of langchain-core reads every recording and fixture as its own events."""

import json
from http import HTTPStatus

from langchain_core.language_models.chat_model_stream import ChatModelStream

from corpus import needs_corpus
from judging import Answer, Call, Stream, parsed, shown, verdicts
from samples import sampled

pytestmark = needs_corpus


def read(stream: Stream) -> Answer:
    if stream.status != HTTPStatus.OK:
        # The client has no transport: an adapter raises what an HTTP error says.
        raise RuntimeError(stream.body.decode())
    reader = ChatModelStream()
    for line in stream.body.splitlines():
        reader.dispatch(json.loads(line))
    message = reader.output
    usage = message.usage_metadata
    # The message has two lists, of valid and of invalid calls; its content has them in order.
    calls: list[Call] = [
        (block["id"], block["name"], block["args"])
        if block["type"] == "tool_call"
        else (block["id"], block["name"], parsed(block["args"]))
        for block in message.content
        if isinstance(block, dict) and block["type"] in {"tool_call", "invalid_tool_call"}
    ]
    return Answer(
        reader.text.get(),
        reader.reasoning.get(),
        calls,
        message.response_metadata.get("finish_reason"),
        usage["input_tokens"] if usage else None,
        usage["output_tokens"] if usage else None,
    )


@sampled(10)
def test_langchain_core_reads_every_stream_as_its_message(every: int) -> None:
    count, found = verdicts("langchain", read, every=every)
    assert count > 1500 // every
    assert not found, shown(found)
