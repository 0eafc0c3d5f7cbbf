"""Streams with one event more, which a gateway passes to a client of the same protocol.

In: a seed, the number of the first stream, and a count.  Out: how many streams ended in each way,
and the streams that break a law.

Laws: the client has what `on_message` has: its bytes fold to that message, and to an error where
there is one. No byte is changed, nothing passes behind the end of the stream, and nothing follows
the error after an event that cannot be read.  The official client, which knows nothing of our end
of a stream, reads no text and no call that `on_message` lacks, and no success where it has an
error. The client may read less: it refuses many of the streams.
"""

import asyncio
import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import httpx2

import judge_anthropic
import judge_gemini
import judge_openai
import judging
from any_name import AnyName
from client_requests import asked
from deltafold import Decoder, Message, MessageAssembler, ModelError, ProviderPart, ThinkingPart
from deltafold.gateway import ClientRequest, create_app
from deltafold.gateway.protocols import protocol_of
from deltafold.testing import Recording, ReplayTransport
from gateways import model_at
from inserted_events import (
    EVENT_ENDS,
    EVENTS,
    GARBAGE,
    PUT_IN,
    StreamWithEvent,
    streams_with_an_event,
)
from seeded import LoopResult, chance_of, drawn

JUDGE_EVERY: Final = 10
"""A client needs more time than the gateway: by default it reads one stream in so many."""
CLIENTS: Final[dict[str, Callable[[judging.Stream], judging.Answer]]] = {
    "openai-chat": judge_openai.chat,
    "openai-responses": judge_openai.responses,
    "anthropic-messages": judge_anthropic.read,
    "gemini": judge_gemini.read,
}

_Told = tuple[Message, ModelError | None]


def passed_streams(
    seed: int, first: int, count: int, *, with_corpus: bool = True, judge_every: int = JUDGE_EVERY
) -> LoopResult:
    """Let a gateway pass streams with an event more; official clients judge a part of them."""
    known = streams_with_an_event(with_corpus=with_corpus)
    chosen = {
        number: known[position]
        for number, position in enumerate(drawn(len(known), seed, first, count), first)
    }
    return passed(chosen, seed, judge_every=judge_every)


def passed(
    streams: Mapping[int, StreamWithEvent], seed: int = 0, *, judge_every: int = 1
) -> LoopResult:
    """Let a gateway pass streams, which have numbers.

    Args:
        streams: the streams by their numbers.
        seed: of the pieces in which they are sent.
        judge_every: an official client reads one stream in so many.
    """
    return asyncio.run(_passed(streams, seed, judge_every))


async def _passed(
    streams: Mapping[int, StreamWithEvent], seed: int, judge_every: int
) -> LoopResult:
    found = LoopResult(len(streams))
    transport = ReplayTransport(flat_out=True)
    told: list[_Told] = []

    async def on_message(_: ClientRequest, message: Message, error: ModelError | None) -> None:
        told.append((message, error))

    models = {dialect: model_at(dialect, transport) for dialect in EVENTS}
    application = httpx2.ASGITransport(create_app(models, on_message=on_message))
    async with httpx2.AsyncClient(transport=application, base_url="http://localhost") as client:
        for number, stream in streams.items():
            sent = stream.sent()
            told.clear()
            transport.requests.clear()
            transport.queue(Recording(_pieces(chance_of(seed, number), sent)))
            response = await _answer(client, stream.dialect)
            broken = list(_broken_laws(stream, sent, response, told, found))
            is_judged = number % judge_every == 0 and response.status_code == 200
            if is_judged and told:
                broken += _more_than_told(stream, response.content, *told[0], found)
            for law in broken:
                found.wrong.append(f"stream {number} of seed {seed}: {stream}: {law}")
    return found


async def _answer(client: httpx2.AsyncClient, dialect: AnyName) -> httpx2.Response:
    path, body = asked(dialect, streams=True)
    if dialect == "openai-chat":
        body["stream_options"] = {"include_usage": True}
    return await client.post(path.replace("/m:", f"/{dialect}:"), json=body | {"model": dialect})


def received(stream: StreamWithEvent) -> bytes:
    """Return the bytes that a client gets of a stream."""

    async def read() -> bytes:
        transport = ReplayTransport(flat_out=True)
        transport.queue(Recording(((0.0, stream.sent()),)))
        models = {stream.dialect: model_at(stream.dialect, transport)}
        application = httpx2.ASGITransport(create_app(models))
        async with httpx2.AsyncClient(transport=application, base_url="http://localhost") as client:
            return (await _answer(client, stream.dialect)).content

    return asyncio.run(read())


def _pieces(chance: random.Random, body: bytes) -> tuple[tuple[float, bytes], ...]:
    """Cut a body: whole, event by event, or into pieces of one size."""
    size = chance.choice((len(body), 1 << 16, 1 << 10, 97))
    if chance.random() < 0.5:
        ends = [found.end() for found in EVENT_ENDS.finditer(body)]
        cuts = [0, *ends, len(body)]
    else:
        cuts = [*range(0, len(body), size), len(body)]
    return tuple((0.0, body[a:b]) for a, b in itertools.pairwise(cuts) if a < b)


def _broken_laws(
    stream: StreamWithEvent,
    sent: bytes,
    response: httpx2.Response,
    told: list[_Told],
    found: LoopResult,
) -> Iterator[str]:
    """Yield the laws that an answer breaks, and count how it ended."""
    if len(told) != 1:
        yield f"on_message was called {len(told)} times"
        return
    ((message, error),) = told
    received = response.content
    if response.status_code != 200:  # the first event was an error, which has a status
        found.counts["refused"] += 1
        if error is None:
            yield f"status {response.status_code} for an answer"
        return
    found.counts["done" if error is None else str(error.code)] += 1
    decoder = Decoder(stream.dialect, run_id=message.run_id or "")
    read, failure = _folded(decoder, received)
    if (failure is None) != (error is None):
        yield f"the client has {failure!r}, on_message {error!r}"
    if _content(read) != _content(message):
        yield f"the client has {_content(read)}, on_message {_content(message)}"
    behind = received[decoder.ended_at or len(received) :].strip(b"\r\n")
    if error is None:
        if not stream.body.startswith(b"{"):  # a whole answer becomes events
            yield from _changes(stream.dialect, sent, received, behind)
        return
    if GARBAGE.strip() in received:
        yield "an event that cannot be read was passed"
    # An error that is no event is told in one.
    again, repeated = _folded(Decoder(stream.dialect), behind + b"\n\n")
    if behind and (repeated is None or again.parts):
        yield f"{behind[:200]!r} follows the error {error.code}"


def _changes(dialect: str, sent: bytes, received: bytes, behind: bytes) -> Iterator[str]:
    """Yield what a stream that succeeded has beyond the upstream's bytes and its closing event."""
    closing = protocol_of(dialect).closing
    allowed = (b"", b"" if closing is None else closing[1].strip())
    kept = received.rstrip(b"\r\n")
    if not any(sent.startswith(kept.removesuffix(end).rstrip(b"\r\n")) for end in allowed):
        yield f"the upstream did not send {received[-200:]!r}"
    if behind not in allowed:
        yield f"{behind[:200]!r} follows the end"


def _folded(decoder: Decoder, body: bytes) -> _Told:
    assembler = MessageAssembler(decoder.run_id)
    for deltas in (decoder.feed(body), decoder.close()):
        assembler.consume(deltas)
    return assembler.snapshot(), assembler.get_error()


def _content(message: Message) -> tuple[object, ...]:
    calls = [
        (call.tool_call_id, call.tool_name, call.raw_args_text, call.incomplete)
        for call in message.tool_calls
    ]
    thinking = "".join(part.text for part in message.parts if isinstance(part, ThinkingPart))
    others = [part.block for part in message.parts if isinstance(part, ProviderPart)]
    return message.text, thinking, calls, others, message.meta.finish_reason


def _more_than_told(
    stream: StreamWithEvent,
    received: bytes,
    message: Message,
    error: ModelError | None,
    found: LoopResult,
) -> Iterator[str]:
    """Yield what the official client reads beyond the message that `on_message` has."""
    source = judging.Source(stream.name, stream.dialect, received, message, error is not None)
    try:
        answer = CLIENTS[stream.dialect](judging.untranscoded(source))
    except Exception:  # noqa: BLE001 - whatever a client raises is its answer
        found.counts["the client raises"] += 1
        return
    found.counts["the client reads it"] += 1
    succeeded = answer.finish in judging.WORDS[stream.dialect].values()
    if error is not None and succeeded and not judging.may_end(stream.dialect, answer):
        yield f"the client has an answer, on_message {error!r}"
    # The reader of Gemini joins the texts of all candidates.
    is_joined = stream.dialect == "gemini" and re.search(rb'"index":\s*[1-9]', received)
    if len(_utf16(answer.text)) > len(_utf16(message.text)) and not is_joined:
        yield f"the client has {answer.text!r}, on_message {message.text!r}"
    names = [call.tool_name for call in message.tool_calls]
    others = sum(isinstance(part, ProviderPart) for part in message.parts)
    read = [call[1] for call in answer.calls if call[1]]  # pieces of a call have no name
    if len(read) > len(names) + others or (PUT_IN in read and PUT_IN not in names):
        yield f"the client has the calls {read}, on_message {names}"


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")
