"""Recordings that the page is tested with: ten dialects, errors, cuts, garbage, hostile text.

In: the fixtures of the tests.  Out: recordings by name, with their dialects.
"""

import json
import random
from dataclasses import replace
from pathlib import Path

from deltafold.testing import Recording

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "streams"
DEMO = ROOT / "python" / "deltafold" / "cli" / "demo" / "recordings"

HOSTILE = (
    "</script><script>window.executed = 1</script><!--<script>"
    "<img src=x onerror='window.executed = 2'><svg onload='window.executed = 3'>"
    "<iframe src='javascript:window.executed = 4'></iframe>{{7*7}}"
    "\u202egnp.exe\u2028\u0000\u001b[31m"
)
"""Text that would run, load or disturb something in a page that takes it as HTML."""


def chat(*texts: str) -> bytes:
    """Return a stream of Chat that says texts, one in each event."""
    deltas: list[dict[str, object]] = [{"delta": {"content": text}} for text in texts]
    deltas.append({"delta": {}, "finish_reason": "stop"})
    chunks = [
        {"id": "chatcmpl-1", "model": "m", "choices": [{"index": 0, **one}]} for one in deltas
    ]
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def chat_call(arguments: str, *, name: str = "write", size: int = 7) -> bytes:
    """Return a stream of Chat that calls a tool; each event has `size` characters of arguments."""
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    calls: list[dict[str, object]] = [{"id": "call_1", "function": {"name": name, "arguments": ""}}]
    calls += [{"function": {"arguments": piece}} for piece in pieces]
    deltas = [{"delta": {"tool_calls": [{"index": 0, **call}]}} for call in calls]
    deltas.append({"delta": {}, "finish_reason": "tool_calls"})
    chunks = [
        {"id": "chatcmpl-1", "model": "m", "choices": [{"index": 0, **one}]} for one in deltas
    ]
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def with_times(name: str, *, seed: int = 1) -> Recording:
    """Return a recording of the demonstration with the pauses of a model that thinks and stalls."""
    chance = random.Random(seed)  # noqa: S311 - the same picture each time
    recording = Recording.read(DEMO / name)
    pieces = [(chance.expovariate(25), piece) for _, piece in recording.pieces]
    for place in (12, 30):
        pieces[place % len(pieces)] = (chance.uniform(0.6, 1.4), pieces[place % len(pieces)][1])
    return replace(recording, pieces=tuple(pieces), headers_after=0.62)


def tokens(count: int) -> bytes:
    """Return a stream of Chat that was cut: a token an event, of a third of a KB as a vendor's."""
    words = ["high", "tide", "comes", "twice", "a", "day", "and", "each", "day", "later"]
    chunk: dict[str, object] = {
        "id": "a1b2c3d4-0000-4000-8000-9f8e7d6c5b4a",
        "object": "chat.completion.chunk",
        "created": 1_752_000_000,
        "model": "m-reasoner",
        "system_fingerprint": "fp_0123456789_prod0623_fp8_kvcache",
    }
    deltas = [
        {"content": None, "reasoning_content": f" {words[n % len(words)]}"} for n in range(count)
    ]
    choices = [{"index": 0, "delta": delta, "logprobs": None} for delta in deltas]
    return b"".join(
        f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n".encode() for choice in choices
    )


def _fixture(dialect: str, name: str) -> tuple[str, Recording]:
    (wire,) = (FIXTURES / dialect / name).glob("wire.*")
    return dialect, Recording.of(wire.read_bytes())


def _timed(dialect: str, name: str, delay: float) -> tuple[str, Recording]:
    (wire,) = (FIXTURES / dialect / name).glob("wire.*")
    return dialect, replace(Recording.of_events(wire.read_bytes(), delay=delay), headers_after=0.4)


def _made() -> dict[str, tuple[str, Recording]]:
    lines = "one line without an end " * 44_000  # 1 MB
    return {
        "hostile text": ("openai-chat", Recording.of(chat("Look: ", HOSTILE, " and ", HOSTILE))),
        "hostile arguments": (
            "openai-chat",
            Recording.of(chat_call(json.dumps({HOSTILE: [HOSTILE, {"deep": [1, None, HOSTILE]}]}))),
        ),
        "hostile raw lines": (
            "openai-chat",
            Recording.of(HOSTILE.encode() + b"\n\n" + chat("still here") + HOSTILE.encode()),
        ),
        "lines of 1 MB": ("openai-chat", Recording.of(chat("short", lines, "end"))),
        "garbage": ("openai-chat", Recording.of(bytes(range(256)) * 64)),
        "html page": ("gemini", Recording.of(f"<html><body>{HOSTILE}</body></html>".encode())),
        "refusal": (
            "openai-responses",
            Recording.error(429, {"error": {"message": HOSTILE, "code": "rate_limit_exceeded"}}),
        ),
        "reset": (
            "openai-chat",
            replace(Recording.of_events(chat("on", "ce"), delay=0.3).stopping("reset", 300)),
        ),
    }


RECORDINGS: dict[str, tuple[str, Recording]] = {
    "anthropic-messages call": _timed("anthropic-messages", "tool-call", 0.05),
    "anthropic-messages cut": _fixture("anthropic-messages", "cut-mid-args"),
    "anthropic-messages error": _fixture("anthropic-messages", "in-band-error"),
    "bedrock-converse": _fixture("bedrock-converse", "tool-call"),
    "bedrock-converse checksum": _fixture("bedrock-converse", "checksum-wrong"),
    "bedrock-invoke": _fixture("bedrock-invoke", "anthropic-thinking-and-call"),
    "cohere-chat": _fixture("cohere-chat", "parallel-calls"),
    "gemini": _fixture("gemini", "thinking-signature"),
    "gemini array cut": _fixture("gemini", "array-cut"),
    "gemini-interactions": _fixture("gemini-interactions", "interleaved-calls"),
    "mistral": _fixture("mistral", "calls"),
    "ollama": _fixture("ollama", "thinking"),
    "openai-chat": _timed("openai-chat", "interleaved-calls", 0.02),
    "openai-chat UTF-8": _fixture("openai-chat", "invalid-utf8"),
    "openai-responses": _fixture("openai-responses", "reasoning-summary"),
    "openai-responses image": _fixture("openai-responses", "image-generation"),
    **_made(),
}
