"""Speed of reading one recording: through deltafold, and through the SDK's own helper.

In: recordings, extended to some thousand events and played without delay.  Out: events per second
of wall time over loopback HTTP, the median of several runs.  Both sides use the same client, so
that HTTP costs both the same.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import anthropic
import openai

from deltafold import AnthropicModel, OpenAIChatModel
from deltafold.cli.demo.scenes import SCENES
from deltafold.testing import Recording, ReplayServer

RUNS = 3
EVENTS = 2000

# Members of an event that only carries text. A repetition changes only the length of the text.
_TEXT_EVENT_MARKS = (b'"text_delta"', b'"delta":{"content":"')


@dataclass(frozen=True, slots=True)
class Speed:
    """Events per second of both sides."""

    ours: float
    sdk: float


def stretched(body: bytes, events: int = EVENTS) -> bytes:
    """Repeat the text events of an SSE body until it has about so many events."""
    pieces = [piece for _, piece in Recording.of_events(body).pieces]
    texts = sum(any(mark in piece for mark in _TEXT_EVENT_MARKS) for piece in pieces)
    times = max(1, (events - len(pieces)) // max(texts, 1))
    return b"".join(
        piece * times if any(mark in piece for mark in _TEXT_EVENT_MARKS) else piece
        for piece in pieces
    )


def measured() -> Iterator[tuple[str, Speed]]:
    """Yield the speed of the first recording of each protocol, by the name of the protocol."""
    first = {scene.dialect: scene.body for scene in reversed(SCENES)}
    for dialect in dict.fromkeys(scene.dialect for scene in SCENES):
        yield dialect, measure(dialect, first[dialect])


def measure(dialect: str, body: bytes) -> Speed:
    """Read the stretched recording through both sides, in turns."""
    long_body = stretched(body)
    events = long_body.count(b"\n\n")
    answer = Recording.of(long_body, piece_bytes=16 * 1024)
    paths = {"/v1/messages": answer, "/v1/chat/completions": answer}
    with ReplayServer(paths, flat_out=True) as server:
        sides = _chat_sides(server) if dialect == "openai-chat" else _anthropic_sides(server)
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(RUNS):
            for side, taken in zip(sides[:2], seconds, strict=True):
                began = time.perf_counter()
                side()
                taken.append(time.perf_counter() - began)
        sides[2]()
    ours, sdk = (events / statistics.median(taken) for taken in seconds)
    return Speed(ours, sdk)


Sides = tuple[Callable[[], object], Callable[[], object], Callable[[], None]]


def _anthropic_sides(server: ReplayServer) -> Sides:
    client = anthropic.Anthropic(base_url=server.url, api_key="unused", max_retries=0)
    model = AnthropicModel({"model_id": "claude-demo"}, client=client)

    def ours() -> object:
        return model.stream_sync("Hello").final_message()

    def sdk() -> object:
        with client.messages.stream(
            model="claude-demo",
            max_tokens=100,
            messages=[{"role": "user", "content": "Hello"}],
        ) as stream:
            return stream.get_final_message()

    return ours, sdk, client.close


def _chat_sides(server: ReplayServer) -> Sides:
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0)
    model = OpenAIChatModel({"model_id": "gpt-oss-120b"}, client=client)

    def ours() -> object:
        return model.stream_sync("Hello").final_message()

    def sdk() -> object:
        with client.chat.completions.stream(
            model="gpt-oss-120b", messages=[{"role": "user", "content": "Hello"}]
        ) as stream:
            return stream.get_final_completion()

    return ours, sdk, client.close
