"""Fixtures and written answers over real HTTP, for the tests of the adapters.

In: the name of a dialect and of a case of tests/fixtures/streams.  Out: a server on the loopback
interface that answers every request with it, and deltafold models that call the server.

Law: bytes are sent one event per HTTP chunk, as a provider sends them.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import deltafold
from deltafold import Encoder, MessageDelta
from deltafold.models.adapters import adapter_of
from deltafold.models.base import Model
from deltafold.testing import Recording, ReplayServer

FIXTURES: Final = Path(__file__).parents[3] / "tests" / "fixtures" / "streams"
NAMES: Final = {
    "anthropic-messages": "claude-opus-4-8",
    "openai-chat": "gpt-5",
    "openai-responses": "gpt-5.2",
    "gemini": "gemini-3-pro-preview",
}
"""Requested model of each dialect; it is the one of the fixtures, so that their state goes back."""


def cases(dialect: str) -> list[str]:
    """Return the names of the streamed fixtures of a dialect."""
    return sorted(path.parent.name for path in (FIXTURES / dialect).glob("*/wire.sse"))


def body(dialect: str, case: str) -> bytes:
    """Return the bytes of a streamed fixture."""
    return (FIXTURES / dialect / case / "wire.sse").read_bytes()


def recording(dialect: str, case: str) -> Recording:
    """Return a streamed fixture as a recording."""
    return Recording.of_events(body(dialect, case))


@contextmanager
def served(*answers: Recording) -> Iterator[ReplayServer]:
    """Serve answers in their order; a single answer is served again and again."""
    recordings: Any = {"*": answers[0]} if len(answers) == 1 else list(answers)
    with ReplayServer(recordings) as server:
        yield server


def model(dialect: str, server: ReplayServer, **config: object) -> Model[Any]:
    """Return a deltafold model that calls a server."""
    make = adapter_of(dialect)
    if make is None:
        raise AssertionError(dialect)
    # The settings of a test arrive, whatever the model of the fixtures takes.
    settings = {"model_id": NAMES[dialect], "strict_settings": True, **config}
    return make(settings, base_url=server.url, api_key="key")


def folded(dialect: str, case: str) -> deltafold.Message | None:
    """Return the message of a fixture, folded by deltafold alone; None if its stream failed."""
    wire = body(dialect, case)
    with deltafold.stream([wire], dialect, model_id=NAMES[dialect]) as stream:
        for _ in stream.batches():
            pass
        return None if stream.error is not None else stream.message


def thoughtful(dialect: str, thinking: str, *content: str | tuple[str, str, Any]) -> Recording:
    """Return a streamed answer that begins with signed thinking; calls are id, name, arguments."""
    steps: list[tuple[str, dict[str, Any]]] = [
        ("start", {"modelId": NAMES[dialect], "requestId": "answer_1"}),
        ("thinking", {"textDelta": thinking, "partIndex": 0}),
        ("thinking", {"textDelta": "", "partIndex": 0, "providerState": _signed(dialect)}),
        ("part_end", {"partIndex": 0}),
    ]
    has_calls = False
    for index, item in enumerate(content, 1):
        if isinstance(item, str):
            steps.append(("text", {"textDelta": item, "partIndex": index}))
            steps.append(("part_end", {"partIndex": index}))
            continue
        has_calls = True
        call = {"toolCallId": item[0]}
        steps.append(("tool_call_start", {**call, "toolName": item[1], "partIndex": index}))
        steps.append(("tool_call_args", {**call, "argsTextDelta": json.dumps(item[2])}))
        steps.append(("tool_call_end", call))
    steps.append(("usage", {"inputTokens": 50, "outputTokens": 20, "totalTokens": 70}))
    steps.append(("done", {"finishReason": "tool_calls" if has_calls else "stop"}))
    return _written(dialect, steps)


LOGPROBS: Final[dict[str, Any]] = {
    "tokens": ["Hi", "!"],
    "logprobs": [-0.25, -1.5],
    "top": [[{"token": "Hi", "logprob": -0.25}, {"token": "Yo", "logprob": -2.0}], []],
}


def likely(dialect: str) -> Recording:
    """Return a streamed answer, "Hi!", with log probabilities."""
    return _written(
        dialect,
        [
            ("start", {"modelId": NAMES[dialect], "requestId": "answer_1"}),
            ("text", {"textDelta": "Hi!", "partIndex": 0, "logprobs": LOGPROBS}),
            ("part_end", {"partIndex": 0}),
            ("usage", {"inputTokens": 50, "outputTokens": 20, "totalTokens": 70}),
            ("done", {"finishReason": "stop"}),
        ],
    )


def whole_body(recorded: Recording, dialect: str) -> Recording:
    """Return a streamed answer as the body of an answer without a stream."""
    message = deltafold.fold(recorded.body, dialect, logprobs=True)
    encoded = deltafold.encode_message(message, dialect)
    return Recording.of(encoded.body, content_type="application/json")


def _written(dialect: str, steps: list[tuple[str, dict[str, Any]]]) -> Recording:
    encoder = Encoder(dialect)
    written = [
        encoder.feed(MessageDelta("run", seq, kind, payload))
        for seq, (kind, payload) in enumerate(steps, 1)
    ]
    return Recording.of_events(b"".join(written))


def _signed(dialect: str) -> dict[str, Any]:
    return {"dialect": dialect, "modelId": NAMES[dialect], "data": {"signature": "c2lnbmVk"}}
