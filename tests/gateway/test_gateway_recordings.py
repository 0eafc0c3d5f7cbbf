"""The official Python clients read every recording and fixture through the gateway.

A client reads what it reads from the provider itself where the upstream speaks its protocol, and
the message of the source elsewhere.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

import judge_anthropic
import judge_gemini
import judge_openai
import judging
from corpus import needs_corpus
from recorded_upstreams import HEADER, application, same_answer, sources
from samples import sampled

pytestmark = needs_corpus

AT_ONCE: Final = 20

PARTS: Final = 4
"""Tests that share the recordings, so that each one ends well within its limit of time."""

HELLO: Final = [{"role": "user", "content": "?"}]
ASKING: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "openai-chat": (
        "/v1/chat/completions",
        {"messages": HELLO, "stream": True, "stream_options": {"include_usage": True}},
    ),
    "openai-responses": ("/v1/responses", {"input": "?", "stream": True}),
    "anthropic-messages": (
        "/v1/messages",
        {"messages": HELLO, "stream": True, "max_tokens": 1},
    ),
    "gemini": (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "?"}]}]},
    ),
}
READ: Final[dict[str, Callable[[judging.Stream], judging.Answer]]] = {
    "openai-chat": judge_openai.chat,
    "openai-responses": judge_openai.responses,
    "anthropic-messages": judge_anthropic.read,
    "gemini": judge_gemini.read,
}


async def answers(protocol: str, folder: Path, chosen: slice) -> list[judging.Stream]:
    """Return the gateway's answers to a client that asks for the chosen sources."""
    path, body = ASKING[protocol]
    app = application(folder)
    gate = asyncio.Semaphore(AT_ONCE)
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:

        async def asked(name: str, source: judging.Source) -> judging.Stream:
            async with gate:
                content = json.dumps({"model": "m"} | body)
                got = await client.post(path, content=content, headers={HEADER: name})
            headers = dict(got.headers)
            facts = (got.status_code, headers, got.content, frozenset[str]())
            return judging.Stream(source.name, source.dialect, *facts, protocol)

        return await asyncio.gather(*(asked(*one) for one in list(sources())[chosen]))


def read_by(
    read: Callable[[judging.Stream], judging.Answer], stream: judging.Stream
) -> judging.Answer | None:
    """Return what a client read, None if it raised."""
    try:
        return read(stream)
    except Exception:  # noqa: BLE001 - whatever a client raises is its answer
        return None


def wanted_answers(
    read: Callable[[judging.Stream], judging.Answer], source: judging.Source, protocol: str
) -> Iterator[judging.Answer | None]:
    """Yield what the client may read: the provider's own stream, or the source's message."""
    if source.dialect == protocol:
        yield read_by(read, judging.untranscoded(source))
    yield read_by(read, judging.written(source, protocol))


@sampled(30)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("protocol", ASKING)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_client_reads_every_recording_through_the_gateway(
    protocol: str, part: int, every: int, tmp_path: Path
) -> None:
    read, found = READ[protocol], list[str]()
    chosen = slice(part * every, None, PARTS * every)
    streams = asyncio.run(answers(protocol, tmp_path, chosen))
    assert len(streams) > 1400 // (PARTS * every)
    for (_, source), stream in zip(list(sources())[chosen], streams, strict=True):
        got = read_by(read, stream)
        if not any(
            wanted is got if got is None or wanted is None else same_answer(source, got, wanted)
            for wanted in wanted_answers(read, source, protocol)
        ):
            found.append(source.name)
    assert not found
