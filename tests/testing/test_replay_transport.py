"""ReplayTransport: in this process what a server and an HTTP client are over a connection."""

import gzip
import threading
import time
from dataclasses import replace
from typing import TypeVar

import anyio
import pytest

from deltafold import ErrorCode, ErrorMapper
from deltafold.testing import Recording, ReplayServer, ReplayTransport
from deltafold.transports.http import http_client_kind, open_http, open_http_async
from deltafold.transports.sources import Transport
from deltafold.transports.timeouts import Timeouts
from http_ways import Answer, fetch, request_to

T = TypeVar("T")

EVENTS = b"data: 1\n\ndata: 2\n\ndata: 3\n\n"
WHOLE = Recording.of_events(EVENTS)
URL = "http://provider.test/v1/messages"

every_loop = pytest.mark.parametrize("loop", ["", "asyncio", "trio"])


def play(
    loop: str, transport: ReplayTransport, timeouts: Timeouts | None = None, url: str = URL
) -> Answer:
    """Send a request to a transport, and read its answer up to the end or the failure."""
    answer = Answer()
    request = request_to(url, timeouts)

    def use() -> None:
        source = open_http(transport, request)
        answer.status, answer.headers = source.status, dict(source.headers)
        for chunk in source.chunks:
            answer.body += chunk
        source.close()

    async def use_async() -> None:
        source = await open_http_async(transport, request)
        answer.status, answer.headers = source.status, dict(source.headers)
        async for chunk in source.chunks:
            answer.body += chunk
        await source.close()

    try:
        if loop:
            anyio.run(use_async, backend=loop)
        else:
            use()
    except Exception as exception:  # noqa: BLE001 - whatever fails is the subject
        answer.failure = exception
    return answer


@every_loop
def test_a_recording_is_the_answer_with_its_status_and_headers(loop: str) -> None:
    recording = replace(WHOLE, status=201, headers={"X-Request-Id": "r", "content-length": "3"})
    transport = ReplayTransport([recording])
    answer = play(loop, transport, url=f"{URL}?a=1")
    assert (answer.status, answer.headers, answer.body) == (201, {"x-request-id": "r"}, EVENTS)
    [sent] = transport.requests
    assert (sent.method, sent.path, sent.body) == ("POST", "/v1/messages?a=1", b"{}")


def test_it_is_a_transport_of_both_kinds() -> None:
    assert isinstance(ReplayTransport(), Transport)
    assert http_client_kind(ReplayTransport()) is None


def test_pieces_come_as_they_were_recorded() -> None:
    source = ReplayTransport([WHOLE]).open(request_to(URL))
    assert list(source.chunks) == [b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]


@every_loop
def test_answers_in_their_order_come_before_answers_by_path(loop: str) -> None:
    transport = ReplayTransport(
        {
            "/v1beta/models/*:streamGenerateContent": Recording.of(b"any model"),
            "/v1beta/models/gemini:streamGenerateContent": Recording.of(b"this model"),
        }
    )
    transport.queue(Recording.of(b"queued"))
    urls = ("a:generate", "a/b:streamGenerateContent?alt=sse", "gemini:streamGenerateContent", "x")
    answers = [play(loop, transport, url=f"http://g.test/v1beta/models/{url}") for url in urls]
    assert [answer.body for answer in answers[:3]] == [b"queued", b"any model", b"this model"]
    assert answers[3].status == 404
    assert b"no recording for /v1beta/models/x" in answers[3].body


FAULTS: dict[str, tuple[Recording, bytes, ErrorCode | None]] = {
    "none": (WHOLE, EVENTS, None),
    "half an event": (WHOLE.stopping("end", 13), EVENTS[:13], None),
    "cut": (WHOLE.stopping("cut", 13), EVENTS[:13], ErrorCode.CONNECTION_LOST),
    "reset": (WHOLE.stopping("reset", 9), EVENTS[:9], ErrorCode.CONNECTION_LOST),
    "stall": (WHOLE.stopping("stall", 9), EVENTS[:9], ErrorCode.TIMEOUT),
    "cut before the headers": (
        WHOLE.stopping("cut", before_headers=True),
        b"",
        ErrorCode.CONNECTION_LOST,
    ),
    "reset before the headers": (
        WHOLE.stopping("reset", before_headers=True),
        b"",
        ErrorCode.CONNECTION_LOST,
    ),
    "stall before the headers": (
        WHOLE.stopping("stall", before_headers=True),
        b"",
        ErrorCode.TIMEOUT,
    ),
    "late headers": (replace(WHOLE, headers_after=9), b"", ErrorCode.TIMEOUT),
    "a long pause": (Recording(((0, b"a"), (9, b"b"))), b"a", ErrorCode.TIMEOUT),
    "garbage": (WHOLE.garbled(9, 2), EVENTS[:9] + b"\x9b\x9e" + EVENTS[11:], None),
    "gzip": (
        replace(Recording.of(gzip.compress(EVENTS)), headers={"content-encoding": "gzip"}),
        EVENTS,
        None,
    ),
    "no gzip": (
        replace(WHOLE, headers={"content-encoding": "gzip"}),
        b"",
        ErrorCode.PROTOCOL_ERROR,
    ),
    "binary": (Recording.of(b"\0\xff", content_type="application/octet-stream"), b"\0\xff", None),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", ["", "asyncio", "trio", "httpx", "httpx, asyncio", "aiohttp"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_the_same_in_process_and_over_a_connection(way: str, fault: str) -> None:
    recording, body, code = FAULTS[fault]
    timeouts = Timeouts(first_byte=0.2, idle=0.2)
    if way in {"", "asyncio", "trio"}:
        answer = play(way, ReplayTransport([recording]), timeouts)
    else:
        with ReplayServer([recording]) as server:
            answer = fetch(way, request_to(server.url, timeouts))
    assert answer.body == body
    found = None if answer.failure is None else ErrorMapper().map(answer.failure).code
    assert found == code


@every_loop
@pytest.mark.parametrize(
    ("recording", "timeouts", "said"),
    [
        (WHOLE.stopping("stall", 0), Timeouts(first_byte=0.05), "0.05 s (timeouts.first_byte)"),
        (WHOLE.stopping("stall", 9), Timeouts(idle=0.05), "0.05 s (timeouts.idle)"),
        (WHOLE.stopping("stall", 9), Timeouts(total=0.05), "0.05 s (timeouts.total)"),
    ],
)
def test_a_missed_limit_is_named(
    loop: str, recording: Recording, timeouts: Timeouts, said: str
) -> None:
    answer = play(loop, ReplayTransport([recording]), timeouts)
    assert isinstance(answer.failure, TimeoutError)
    assert str(answer.failure).endswith(said)


@every_loop
def test_pauses_are_kept_unless_it_plays_flat_out(loop: str) -> None:
    recording = replace(Recording.of_events(EVENTS, delay=0.02), headers_after=0.02)
    begun = time.perf_counter()
    assert play(loop, ReplayTransport([recording])).body == EVENTS
    assert time.perf_counter() - begun >= 0.08
    slow = replace(Recording.of_events(EVENTS, delay=3600), headers_after=3600)
    assert play(loop, ReplayTransport([slow], flat_out=True)).body == EVENTS


def test_closing_ends_a_wait_in_another_thread() -> None:
    recording = WHOLE.stopping("stall", 0)
    source = ReplayTransport([recording]).open(request_to(URL, Timeouts(first_byte=None)))
    threading.Timer(0.05, source.close).start()
    with pytest.raises(ConnectionError, match="closed"):
        next(source.chunks)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_wait_can_be_cancelled(loop: str) -> None:
    async def main() -> None:
        transport = ReplayTransport([WHOLE.stopping("stall", 0)])
        source = await transport.open_async(request_to(URL, Timeouts(first_byte=None)))
        with anyio.move_on_after(0.05) as scope:
            await anext(source.chunks)
        assert scope.cancelled_caught
        await source.close()
        await source.close()

    anyio.run(main, backend=loop)
