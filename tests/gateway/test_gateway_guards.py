"""A hook sees everything that a client would read: no member of an answer goes around it."""

import asyncio
import json

import httpx2
import pytest

import deltafold
from any_name import AnyName
from corpus import FIXTURES
from deltafold import DeltaKind, Encoder, MessageDelta, ThinkingPart
from deltafold.gateway import ClientRequest
from deltafold.gateway.guarded_text import Guard
from deltafold.testing import Recording
from gateways import gateway
from marked_answers import (
    MARK,
    TARGETS,
    asked,
    hide,
    marked_answers,
    places_for_marks,
    written,
)
from samples import sampled
from text_bodies import text_fixtures


async def keep(_: ClientRequest, __: DeltaKind, text: str) -> str:
    return text


@sampled(40)
def test_a_mark_in_any_member_of_an_answer_is_hidden(every: int) -> None:
    total = len(places_for_marks(with_corpus=False))
    assert total > 4_000
    found = marked_answers(seed=7, first=0, count=total // every, with_corpus=False)
    assert not found.wrong, "\n".join(found.wrong[:40])
    assert found.counts["gemini"] == 2 * (total // every)


def folded(body: bytes, target: AnyName) -> object:
    """Return the parts that a client reads, and how the answer ended."""
    assembler = deltafold.MessageAssembler()
    decoder = deltafold.Decoder(target)
    for delta in (*decoder.feed(body), *decoder.close()):
        assembler.consume(delta)
    message = assembler.snapshot()
    # A text that waits may come behind another part, and state has the id of the response.
    calls = [(call.tool_name, call.raw_args_text) for call in message.tool_calls]
    thinking = "".join(part.text for part in message.parts if isinstance(part, ThinkingPart))
    parts = (message.text, thinking, calls)
    return parts, message.meta.finish_reason, str(assembler.get_error()), message.meta.logprobs


@sampled(10)
def test_a_hook_that_changes_nothing_changes_nothing(every: int) -> None:
    for number, (dialect, name, body) in enumerate(text_fixtures()):
        if number % every:
            continue
        decoder = deltafold.Decoder(dialect)
        deltas = [*decoder.feed(body), *decoder.close()]
        for target in TARGETS:
            request = asked(target)
            encoder = Encoder(target, **request.options)
            plain = b"".join([*map(encoder.feed, deltas), encoder.close()])
            guarded = written(deltas, target, keep, whole=False)
            assert folded(plain, target) == folded(guarded, target), (dialect, name, target)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("text", "kept"), [(f"a {MARK} b", False), ("nothing to hide", True)])
def test_log_probabilities_are_dropped_where_the_hook_changed_the_text(
    text: str, *, kept: bool, streams: bool
) -> None:
    body = b"".join(
        b"data: "
        + json.dumps(
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "model": "m",
                "choices": [
                    {
                        "index": 0,
                        "delta": {"content": letter},
                        "finish_reason": None,
                        "logprobs": {
                            "content": [{"token": letter, "logprob": -0.5, "top_logprobs": []}]
                        },
                    }
                ],
            }
        ).encode()
        + b"\n\n"
        for letter in text
    )
    ending: dict[str, object] = {
        "id": "c",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    }
    body += b"data: " + json.dumps(ending).encode() + b"\n\ndata: [DONE]\n\n"
    with gateway("openai-chat", on_delta=hide, hold_back=20) as (url, server):
        server.queue(Recording.of_events(body))
        request = {
            "model": "m",
            "messages": [{"role": "user", "content": "?"}],
            "stream": streams,
            "logprobs": True,
        }
        answer = httpx2.post(url + "/v1/chat/completions", json=request).text
    told = answer.count('"logprob":')
    if kept:
        assert told == len(text)
    else:
        assert MARK not in answer
        assert "4" not in [line.partition('"token":"')[2][:1] for line in answer.split("{")]
        assert told < len(text)


@pytest.mark.parametrize(
    ("state", "is_seen"),
    [
        ({"data": MARK}, True),
        ({"data": MARK, "mimeType": "text/csv"}, True),
        ({"data": MARK, "mimeType": "image/png"}, False),
        ({"url": f"data:,{MARK}"}, True),
        ({"url": f"data:;base64,a text {MARK}"}, True),
        ({"url": "data:image/png;base64,c2stU0VDUkVU"}, False),
    ],
)
def test_only_the_bytes_of_a_file_go_around_a_hook(state: dict[str, str], *, is_seen: bool) -> None:
    seen: list[str] = []

    async def note(_: ClientRequest, __: DeltaKind, text: str) -> str:
        seen.extend(text.split("\n"))
        return text

    deltas = [
        MessageDelta("r", 1, DeltaKind.START, {"modelId": "m", "requestId": ""}),
        MessageDelta(
            "r", 2, DeltaKind.TEXT, {"partIndex": 0, "textDelta": "a", "providerState": state}
        ),
    ]

    async def read() -> None:
        async for _ in Guard(asked("openai-chat"), note, 0).deltas(deltas):
            pass

    asyncio.run(read())
    assert (next(iter(state.values())) in seen) is is_seen


def test_audio_waits_for_the_part_behind_its_transcript() -> None:
    body = (FIXTURES / "openai-chat" / "audio" / "wire.sse").read_bytes()
    decoder = deltafold.Decoder("openai-chat")
    deltas = [*decoder.feed(body), *decoder.close()]

    async def read() -> list[DeltaKind]:
        guard = Guard(asked("openai-chat"), keep, 0)
        return [delta.kind async for delta in guard.deltas(deltas)]

    left = asyncio.run(read())
    assert left == [delta.kind for delta in deltas if delta.kind is not DeltaKind.AUDIO]
    assert left.count(DeltaKind.PART) == 1
