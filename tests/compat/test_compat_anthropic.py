"""`deltafold.compat.anthropic`: the events of anthropic's own stream, equal to the SDK's."""

import asyncio
import pickle
from collections.abc import AsyncIterable, Iterable, Sequence
from typing import Any, Final, cast

import anthropic
import pytest
from anthropic.types import RawMessageStreamEvent

from corpus import FIXTURES, needs_corpus
from deltafold import ErrorCode, MisuseError, ModelError
from deltafold.compat import anthropic as fast
from deltafold.compat.object_streams import ObjectStream
from samples import sampled
from sdk_clients import ANTHROPIC_HTTP, anthropic_client, async_anthropic_client
from sdk_objects import (
    CUT,
    LISTED_RECORDINGS,
    NO_STREAM,
    aread,
    difference,
    differences,
    dumps,
    fixtures,
    read,
    recordings,
)

LISTED: Final[dict[str, str]] = {
    "cut-mid-args": CUT,
    "cut-mid-event": CUT,
    "json-error-body": NO_STREAM,
    "no-event-lines": "an event without a name has the name of its type; the SDK skips it",
}
VERSION: Final = tuple(map(int, anthropic.__version__.split(".")[:2]))
YIELDS_UNKNOWN_EVENTS: Final = (1, 16)
TRACES: Final = (1, 14)
if VERSION < YIELDS_UNKNOWN_EVENTS:
    LISTED["unknown-events"] = "an event of an unknown type; the SDK skips it before version 1.16"
REQUEST: Final[Any] = {"model": "m", "max_tokens": 1, "messages": [], "stream": True}


def messages(chunks: Sequence[bytes], failure: Exception | None = None) -> Any:  # noqa: ANN401 - as the SDK's `create`
    client: Any = anthropic_client(chunks, failure)
    return client.messages.create(**REQUEST)


async def amessages(
    chunks: Sequence[bytes],
) -> anthropic.AsyncStream[RawMessageStreamEvent]:
    client: Any = async_anthropic_client(chunks)
    stream: anthropic.AsyncStream[RawMessageStreamEvent] = await client.messages.create(**REQUEST)
    return stream


def fast_events(stream: object) -> ObjectStream[RawMessageStreamEvent]:
    return fast.events(cast("anthropic.Stream[RawMessageStreamEvent]", stream))


def ours(chunks: Sequence[bytes]) -> Iterable[object]:
    return fast_events(messages(chunks))


def wire(name: str) -> bytes:
    return (FIXTURES / "anthropic-messages" / name / "wire.sse").read_bytes()


def test_every_fixture_yields_the_objects_and_exceptions_of_the_sdk() -> None:
    assert differences(fixtures("anthropic-messages"), messages, ours, LISTED) == {}


@needs_corpus
def test_every_recording_yields_the_objects_and_exceptions_of_the_sdk() -> None:
    found = differences(
        recordings("anthropic-messages"), messages, ours, LISTED_RECORDINGS["anthropic-messages"]
    )
    assert found == {}


@needs_corpus
def test_every_recording_yields_the_objects_of_the_beta() -> None:
    def beta(chunks: Sequence[bytes]) -> Any:  # noqa: ANN401 - untyped, as the request
        client: Any = anthropic_client(chunks)
        return client.beta.messages.create(**REQUEST)

    found = differences(
        recordings("anthropic-messages"),
        beta,
        lambda chunks: fast_events(beta(chunks)),
        LISTED_RECORDINGS["anthropic-messages"],
    )
    assert found == {}


def test_asynchronous_streams_yield_what_synchronous_ones_do() -> None:
    async def differing() -> list[str]:
        found: list[str] = []
        for name, body in fixtures("anthropic-messages"):
            there = await aread(fast.events(await amessages([body])))
            if difference(read(ours([body])), there) is not None:
                found.append(name)
        return found

    assert asyncio.run(differing()) == []


@sampled(13)
@pytest.mark.parametrize("name", ["text", "crlf", "lone-cr", "in-band-error"])
def test_a_chunk_may_end_anywhere(name: str, every: int) -> None:
    body = wire(name)
    whole = read(ours([body]))
    for cut in range(1, len(body), every):
        assert difference(whole, read(ours([body[:cut], body[cut:]]))) is None, cut
    assert difference(whole, read(ours([bytes([byte]) for byte in body]))) is None


def test_a_cut_stream_raises_with_what_was_received() -> None:
    found = read(ours([wire("cut-mid-args")]))
    assert type(found.raised) is anthropic.APIConnectionError
    cause = found.raised.__cause__
    assert isinstance(cause, ModelError)
    assert cause.code is ErrorCode.CONNECTION_LOST
    assert cause.partial_message is not None
    assert cause.partial_message.tool_calls


def test_every_stream_that_ends_before_its_stop_reason_raises() -> None:
    events = wire("text").removesuffix(b"\n\n").split(b"\n\n")
    for count in range(len(events) - 1):
        body = b"".join(event + b"\n\n" for event in events[:count])
        assert isinstance(read(ours([body])).raised, anthropic.APIError), count
    assert read(ours([wire("text")])).raised is None


def test_a_failure_of_the_connection_raises_what_the_sdk_raises() -> None:
    failure = ANTHROPIC_HTTP.ReadError("reset")
    body = wire("cut-mid-args")
    here = read(fast_events(messages([body], failure)))
    assert here.raised is failure
    assert difference(read(messages([body], failure)), here) is None


def test_events_without_names_are_those_with_names() -> None:
    body = wire("text")
    lines = body.splitlines(keepends=True)
    nameless = b"".join(line for line in lines if not line.startswith(b"event:"))
    assert difference(read(messages([body])), read(ours([nameless]))) is None


def test_an_error_without_a_name_raises() -> None:
    body = wire("in-band-error")
    lines = body.splitlines(keepends=True)
    nameless = b"".join(line for line in lines if not line.startswith(b"event:"))
    assert difference(read(messages([body])), read(ours([nameless]))) is None


def test_the_message_is_folded_from_the_same_bytes() -> None:
    stream = fast_events(messages([wire("cache-usage")]))
    assert len(list(stream)) > 0
    usage = stream.message.meta.usage
    assert usage is not None
    assert usage.cache_read_tokens


def test_objects_survive_pickling() -> None:
    found = read(ours([wire("tool-call")])).objects
    again: list[object] = pickle.loads(pickle.dumps(found))  # noqa: S301 - made here
    assert again == found
    assert dumps(again) == dumps(read(messages([wire("tool-call")])).objects)


def test_a_client_that_frames_its_events_itself_is_refused() -> None:
    class EventStreamDecoder:
        """Of another framing."""

    stream = messages([wire("text")])
    stream._decoder = EventStreamDecoder()
    with pytest.raises(MisuseError, match="frames its events itself"):
        fast_events(stream)


@pytest.mark.parametrize("name", ["text", "tool-call", "in-band-error"])
def test_an_accelerated_client_yields_the_same_objects(name: str) -> None:
    client: Any = fast.accelerate(anthropic_client([wire(name)]))
    stream: object = client.messages.create(**REQUEST)
    assert isinstance(stream, anthropic.Stream)
    objects = cast("Iterable[object]", stream)
    assert difference(read(messages([wire(name)])), read(objects)) is None


def test_the_helper_of_an_accelerated_client_folds_the_same_message() -> None:
    def folded(client: anthropic.Anthropic) -> object:
        with client.messages.stream(model="m", max_tokens=1, messages=[]) as stream:
            return stream.get_final_message()

    client = fast.accelerate(anthropic_client([wire("tool-call")]))
    assert folded(client) == folded(anthropic_client([wire("tool-call")]))


def test_the_helper_of_an_accelerated_client_reports_a_cut_stream() -> None:
    client = fast.accelerate(anthropic_client([wire("cut-mid-args")]))
    with (
        pytest.raises(anthropic.APIConnectionError),
        client.messages.stream(model="m", max_tokens=1, messages=[]) as stream,
    ):
        stream.get_final_message()


def test_an_accelerated_asynchronous_client_yields_the_same_objects() -> None:
    async def objects() -> Iterable[object]:
        client: Any = fast.accelerate(async_anthropic_client([wire("text")]))
        stream = await client.messages.create(**REQUEST)
        return (await aread(cast("AsyncIterable[object]", stream))).objects

    assert asyncio.run(objects()) == read(messages([wire("text")])).objects


class Observer:
    """Of the SDK's tracing."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def begin(self) -> None:
        self.seen.append("begin")

    def item(self, _: object, /) -> None:
        self.seen.append("item")

    def end(self, how: str, _: BaseException | None = None) -> None:
        self.seen.append(how)


@pytest.mark.skipif(VERSION < TRACES, reason="the SDK traces since version 1.14")
@pytest.mark.parametrize("name", ["text", "in-band-error"])
def test_tracing_learns_what_it_learns_from_the_sdk(name: str) -> None:
    def traced(stream: Any) -> object:  # noqa: ANN401 - untyped, as the request
        return stream.response.stream.stream_observer.seen

    def with_observer(stream: Any) -> Any:  # noqa: ANN401 - as above
        stream.response.stream.stream_observer = Observer()
        return stream

    theirs = with_observer(messages([wire(name)]))
    read(theirs)
    here = with_observer(messages([wire(name)]))
    read(fast_events(here))
    assert traced(here) == traced(theirs)
