"""Response bodies that the tests of streams and models share."""

import json
from importlib import resources
from typing import Final

from deltafold.testing import Recording, ReplayServer, answer
from deltafold.testing.answers import ScriptedCall

_RECORDINGS = resources.files("deltafold.cli.demo") / "recordings"

ANTHROPIC: Final = (_RECORDINGS / "anthropic-messages.tool-call.sse").read_bytes()
ANTHROPIC_CUT: Final = (_RECORDINGS / "anthropic-messages.cut.sse").read_bytes()
CHAT: Final = (_RECORDINGS / "openai-chat.parallel-calls.sse").read_bytes()
CHAT_ERROR: Final = (_RECORDINGS / "openai-chat.error.sse").read_bytes()

WHOLE: Final = {"anthropic-messages": ANTHROPIC, "openai-chat": CHAT}


def two_providers() -> ReplayServer:
    """Return a server that answers each request of the Messages API and of Chat."""
    return ReplayServer(
        {
            "/v1/messages": Recording.of_events(ANTHROPIC),
            "/v1/chat/completions": Recording.of_events(CHAT),
        }
    )


def claude(*content: str | ScriptedCall) -> bytes:
    """Write an answer of the Messages API."""
    return answer("anthropic-messages", *(one for one in content if one)).body


def gpt(*content: str | ScriptedCall) -> bytes:
    """Write an answer of Chat Completions."""
    said = (one for one in content if one)
    return answer("openai-chat", *said, input_tokens=80, output_tokens=10).body


def event(data: dict[str, object]) -> bytes:
    """Write one event of the Messages API."""
    return b"event: %b\ndata: %b\n\n" % (str(data["type"]).encode(), json.dumps(data).encode())


def chat(*texts: str, finish_reason: str | None = "stop", done: bool = True) -> bytes:
    """Write a Chat stream that says these texts, one event each."""
    events = [_chat_chunk({"content": text}) for text in texts]
    if finish_reason is not None:
        events.append(_chat_chunk({}, finish_reason))
    if done:
        events.append(b"data: [DONE]\n\n")
    return b"".join(events)


def _chat_chunk(delta: dict[str, object], finish_reason: str | None = None) -> bytes:
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
