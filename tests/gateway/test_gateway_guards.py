"""A hook sees everything that a client would read: no member of an answer goes around it."""

import asyncio
import base64
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import httpx2
import pytest

import deltafold
from corpus import FIXTURES
from deltafold import DeltaKind, Encoder, MessageDelta, ThinkingPart
from deltafold.gateway import ClientRequest, read_request
from deltafold.gateway.guarded_text import Guard
from deltafold.streams.encoded import encode_message
from deltafold.testing import Recording
from gateways import gateway
from json_places import Path, at, members, places
from samples import sampled

MARK: Final = "sk-SECRET4711"
TARGETS: Final = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
ENCODED: Final = [base64.b64encode(b" " * shift + MARK.encode())[4:-4] for shift in range(3)]
FILES: Final = frozenset({"data", "inlineData", "inline_data"})


async def hide(_: ClientRequest, __: DeltaKind, text: str) -> str:
    return text.replace(MARK, "***")


async def keep(_: ClientRequest, __: DeltaKind, text: str) -> str:
    return text


@cache
def asked(target: str) -> ClientRequest:
    return read_request(
        target,
        b'{"model":"m","messages":[],"input":"?","contents":[]}',
        model_id="m",
    )


def written(deltas: list[MessageDelta], target: str, hook: Any, *, whole: bool) -> bytes:  # noqa: ANN401 - a hook
    """Return the answer of deltas behind a hook."""
    request = asked(target)
    guard = Guard(request, hook, 20)

    async def stream() -> bytes:
        encoder = Encoder(target, **request.options)
        left = [encoder.feed(delta) async for delta in guard.deltas(deltas)]
        return b"".join([*left, encoder.close()])

    async def body() -> bytes:
        assembler = deltafold.MessageAssembler()
        for delta in deltas:
            assembler.consume(delta)
        guarded, error = await Guard(request, hook, 0).whole(
            assembler.snapshot(), assembler.get_error()
        )
        if error is not None:
            return error.message.encode()
        return encode_message(guarded, target, **request.options).body

    return asyncio.run(body() if whole else stream())


def shows(answer: bytes) -> bool:
    return MARK.encode() in answer or any(piece in answer for piece in ENCODED)


def strings(value: object) -> Iterator[Path]:
    """Yield the places of the strings of a value, but for the bytes of files."""
    for path in places(value, most_items=2):
        found = at(value, path)
        if isinstance(found, str) and not found.startswith("data:"):
            yield path


def marked(value: Any, path: tuple[object, ...]) -> Any:  # noqa: ANN401 - of JSON
    """Return a value of JSON with the mark behind the string at a place."""
    if not path:
        return f"{value}{MARK}"
    key, *rest = path
    changed = value.copy()
    changed[key] = marked(value[key], tuple(rest))
    return changed


def events_of(body: bytes) -> list[bytes]:
    return [event + b"\n\n" for event in body.replace(b"\r\n", b"\n").split(b"\n\n") if event]


def marked_bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield a body with the mark in each member of each kind of event, once."""
    seen: set[object] = set()
    events = events_of(body)
    for index, event in enumerate(events):
        head, found, data = event.partition(b"data: ")
        if not found:
            continue
        try:
            value: Any = json.loads(data)
        except ValueError:
            continue
        kind = str(dict(members(value)).get("type"))
        if "audio" in kind:  # bytes of a file
            continue
        for path in strings(value):
            known = (kind, *(0 if isinstance(step, int) else step for step in path))
            if known in seen or not FILES.isdisjoint(path):
                continue
            seen.add(known)
            changed = head + b"data: " + json.dumps(marked(value, path)).encode() + b"\n\n"
            yield (
                "/".join(map(str, (kind, *path))),
                b"".join([*events[:index], changed, *events[index + 1 :]]),
            )


def fixtures() -> Iterator[tuple[str, str, bytes]]:
    for dialect in TARGETS:
        for path in sorted((FIXTURES / dialect).rglob("*.sse")):
            yield dialect, path.stem, path.read_bytes()


@sampled(40)
def test_a_mark_in_any_member_of_an_answer_is_hidden(every: int) -> None:
    count, shown = 0, set[str]()
    for number, (dialect, name, body) in enumerate(fixtures()):
        for place, changed in marked_bodies(body):
            count += 1
            if (count + number) % every:
                continue
            decoder = deltafold.Decoder(dialect)
            deltas = [*decoder.feed(changed), *decoder.close()]
            for target in TARGETS:
                for whole in (False, True):
                    answer = written(deltas, target, hide, whole=whole)
                    if shows(answer):
                        shown.add(f"{dialect}/{name} {place} -> {target}, whole {whole}")
    assert count > 1_000
    assert not shown, sorted(shown)[:40]


def folded(body: bytes, target: str) -> object:
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
    for number, (dialect, name, body) in enumerate(fixtures()):
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
