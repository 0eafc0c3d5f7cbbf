"""Plugin of pytest that runs the SDK's own tests of its Chat handler against the adapter.

In: chunks of Chat Completions that a test of the SDK makes up.  Out: the adapter's events, in place
of those of `ChatCmplStreamHandler.handle_stream`.

Laws: the chunks become the bytes that a provider sends. The end marker follows the last one, unless
the SDK requires a finish reason that did not come.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents.models.chatcmpl_stream_handler import ChatCmplStreamHandler

from deltafold import Decoder, MessageAssembler
from deltafold.integrations.openai_agents.events import Events
from deltafold.integrations.openai_agents.failures import exception_of


async def handled(
    response: Any, stream: AsyncIterator[Any], *, require_finish_reason: bool = False, **_: Any
) -> AsyncIterator[Any]:
    """Yield the adapter's events of the chunks of a stream."""
    decoder, folded, events = Decoder("openai-chat", logprobs=True), MessageAssembler(), Events()

    def told(data: bytes) -> list[Any]:
        batch = decoder.feed(data)
        folded.consume(batch)
        return list(events.feed(batch))

    has_end = not require_finish_reason
    async for chunk in stream:
        has_end = has_end or any(choice.finish_reason for choice in chunk.choices)
        for event in told(b"data: %b\n\n" % chunk.model_dump_json().encode()):
            yield event
    for event in told(b"data: [DONE]\n\n" if has_end else b""):
        yield event
    folded.consume(decoder.close())
    error = folded.get_error()
    if error is not None:
        raise exception_of(error)
    yield events.end(folded.build_final_message(), getattr(response, "_request_id", None))


@pytest.fixture(autouse=True)
def use_the_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the handler of the SDK."""
    monkeypatch.setattr(ChatCmplStreamHandler, "handle_stream", staticmethod(handled))
