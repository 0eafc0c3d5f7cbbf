"""Failures of a call, for each protocol, through each kind of client.

In: a table with a row for each failure: the server's answer and the error that the caller gets.
Out: the deltas and the error of a call through the protocol's SDK and through plain HTTP clients,
in threads, under asyncio and under trio.

Law: a failed call leaves no socket, no task and no warning.
"""

import asyncio
import gc
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import aiohttp
import anthropic
import anyio
import httpx
import httpx2
import openai
import pytest
import trio

from any_name import AnyName
from corpus import FIXTURES
from deltafold import (
    AnthropicModel,
    ErrorCode,
    Fold,
    GeminiModel,
    Model,
    ModelError,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from deltafold.testing import Recording, ReplayServer
from deltafold.transports.timeouts import Timeouts

LIMIT_SECONDS: Final = 0.25
"""Limit where the server stalls."""
LONG_SECONDS: Final = 30.0
"""Limit elsewhere, which a busy machine does not reach."""
# Loading the certificates takes longer than the rest of a test.
CERTIFICATES: Final = ssl.create_default_context()


@dataclass(frozen=True)
class Adapter:
    """Model of a protocol, the clients of its SDK, and an error event of its streams."""

    model: type[Model[Any]]
    error_event: bytes
    base: str = ""
    sdk: Any = None
    clients: tuple[str, str] = ("", "")


ADAPTERS: Final = {
    "anthropic-messages": Adapter(
        AnthropicModel,
        b"event: error\n"
        b'data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}',
        sdk=anthropic,
        clients=("Anthropic", "AsyncAnthropic"),
    ),
    "openai-chat": Adapter(
        OpenAIChatModel,
        b'data: {"error":{"message":"busy","code":503}}',
        "/v1",
        openai,
        ("OpenAI", "AsyncOpenAI"),
    ),
    "openai-responses": Adapter(
        OpenAIResponsesModel,
        b'data: {"type":"error","code":"server_is_overloaded","message":"busy"}',
        "/v1",
        openai,
        ("OpenAI", "AsyncOpenAI"),
    ),
    "gemini": Adapter(
        GeminiModel, b'data: {"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}'
    ),
}


def parts_of(dialect: AnyName) -> tuple[bytes, bytes]:
    """Cut a recorded stream after the first event with text."""
    body = (FIXTURES / dialect / "text" / "wire.sse").read_bytes().replace(b"\r\n", b"\n")
    fold = Fold(dialect)
    said = b""
    for event in body.split(b"\n\n"):
        said += event + b"\n\n"
        fold.feed(event + b"\n\n")
        if fold.text:
            break
    return said, body[len(said) :]


Answer: TypeAlias = Callable[[bytes, bytes, bytes], Recording]


def always(recording: Recording) -> Answer:
    def answer(begin: bytes, rest: bytes, error: bytes) -> Recording:
        del begin, rest, error
        return recording

    return answer


@dataclass(frozen=True)
class Failure:
    """Answer of the server, and the error that the caller gets.

    Attributes:
        answer: makes the answer from a stream's beginning, its rest, and its error event.
        code: code of the error; None if the call succeeds.
        retryable: whether the error is retryable.
        retry_after: least and greatest seconds of the error; None if the error has no seconds.
        status: HTTP status of the error.
        keeps: whether the partial message has text.
        url: address of the call, in place of the server's.
    """

    answer: Answer
    code: ErrorCode | None
    retryable: bool = False
    retry_after: tuple[float, float] | None = None
    status: int | None = None
    keeps: bool = False
    url: str | None = None


def status(
    number: int,
    code: ErrorCode,
    *,
    retryable: bool = False,
    retry_after: tuple[float, float] | None = None,
    headers: dict[str, str] | None = None,
    **error: object,
) -> Failure:
    body = {"error": {"message": "no", **error}}
    recording = Recording.error(number, body, {"request-id": "r1", **(headers or {})})
    return Failure(
        always(recording), code, retryable=retryable, retry_after=retry_after, status=number
    )


def limited(
    seconds: float | tuple[float, float], headers: dict[str, str] | None = None, **error: object
) -> Failure:
    span = seconds if isinstance(seconds, tuple) else (seconds, seconds)
    return status(
        429,
        ErrorCode.RATE_LIMITED,
        retryable=True,
        retry_after=span,
        headers=headers,
        **error,
    )


def stopped(ending: Any, code: ErrorCode, *, before_headers: bool = False) -> Failure:  # noqa: ANN401 - an Ending
    def answer(begin: bytes, rest: bytes, _: bytes) -> Recording:
        whole = Recording.of_events(begin + rest)
        return whole.stopping(ending, len(begin) + 4, before_headers=before_headers)

    return Failure(answer, code, retryable=True, keeps=not before_headers)


def body(content: bytes, code: ErrorCode | None, **told: Any) -> Failure:  # noqa: ANN401 - fields
    """Return the failure of an answer with this body, by default with status 200."""
    headers = {"content-type": told.pop("content_type", "text/event-stream")}
    headers |= told.pop("headers", {})
    number = told.pop("number", 200)
    recording = replace(Recording.of(content), headers=headers, status=number)
    return Failure(always(recording), code, **told)


PAGE: Final = b"<!doctype html><html><body><h1>Bad gateway</h1></body></html>"
SOON: Final = datetime.now(UTC) + timedelta(hours=1)
# Importing this file makes the rows; the tests may run half an hour later.
AN_HOUR: Final = (1800.0, 3600.0)
BUSY: Final = (
    b'{"error":{"message":"busy","type":"overloaded_error","code":"overloaded",'
    b'"status":"UNAVAILABLE"}}'
)

FAILURES: Final = {
    "400": status(400, ErrorCode.INVALID_REQUEST),
    "401": status(401, ErrorCode.AUTHENTICATION),
    "403": status(403, ErrorCode.PERMISSION),
    "404": status(404, ErrorCode.NOT_FOUND),
    "413": status(413, ErrorCode.INVALID_REQUEST),
    "422": status(422, ErrorCode.INVALID_REQUEST),
    "429": status(429, ErrorCode.RATE_LIMITED, retryable=True),
    "429, retry-after in seconds": limited(3, {"retry-after": "3"}),
    "429, retry-after in milliseconds": limited(1.5, {"retry-after-ms": "1500"}),
    "429, retry-after as a date": limited(
        AN_HOUR, {"retry-after": format_datetime(SOON, usegmt=True)}
    ),
    "429, reset as a duration": limited(361, {"x-ratelimit-reset-tokens": "6m1s"}),
    "429, reset as an instant": limited(
        AN_HOUR, {"anthropic-ratelimit-requests-reset": SOON.isoformat()}
    ),
    "429, RetryInfo": limited(34.4, details=[{"retryDelay": "34.4s"}]),
    "429, in words": limited(20, message="Please try again in 20s."),
    "429, a date beyond the calendar": status(
        429,
        ErrorCode.RATE_LIMITED,
        retryable=True,
        headers={
            "retry-after": "Fri, 31 Dec 99999999999999999999 23:59:59 GMT",
            "retry-after-ms": "1e400",
            "x-ratelimit-limit-tokens": "9" * 5000,
            "x-ratelimit-reset-tokens": "9" * 5000 + "s",
            "anthropic-ratelimit-tokens-reset": "99999-01-01T00:00:00Z",
        },
    ),
    "400, lone surrogates": body(
        b'{"error":{"message":"bad: \\ud83d","code":"\\udc00","type":"\\ud83d"},'
        b'"request_id":"\\udfff"}',
        ErrorCode.INVALID_REQUEST,
        number=400,
        status=400,
        content_type="application/json",
        headers={"request-id": "r1"},
    ),
    "400, an event": body(
        b"event: error\r\n"
        b'data: {"type":"error","error":{"type":"overloaded_error","status":"UNAVAILABLE",\r\n'
        b'data: "code":"overloaded","message":"busy"}}\r\n\r\n',
        ErrorCode.OVERLOADED,
        retryable=True,
        number=400,
        status=400,
        headers={"request-id": "r1"},
    ),
    "500": status(500, ErrorCode.SERVER_ERROR, retryable=True),
    "503": status(503, ErrorCode.OVERLOADED, retryable=True),
    "529": status(529, ErrorCode.OVERLOADED, retryable=True),
    "a page with 502": body(
        PAGE,
        ErrorCode.SERVER_ERROR,
        retryable=True,
        number=502,
        status=502,
        content_type="text/html",
    ),
    "a page with 200": body(
        PAGE, ErrorCode.PROTOCOL_ERROR, retryable=True, content_type="text/html"
    ),
    "empty body": body(b"", ErrorCode.PROTOCOL_ERROR, retryable=True),
    "JSON error with 200": body(
        BUSY, ErrorCode.OVERLOADED, retryable=True, content_type="application/json"
    ),
    "no gzip": body(
        b"data: {}\n\n", ErrorCode.PROTOCOL_ERROR, headers={"content-encoding": "gzip"}
    ),
    "wrong content type": Failure(
        lambda begin, rest, _: Recording.of(begin + rest, content_type="text/plain"), None
    ),
    "header in ISO 8859-1": Failure(
        lambda begin, rest, _: replace(
            Recording.of(begin + rest),
            headers={"content-type": "text/event-stream", "x-region": "caf\xe9"},
        ),
        None,
    ),
    "silence behind the terminal": Failure(
        lambda begin, rest, _: Recording.of_events(begin + rest).stopping("stall"), None
    ),
    "error in the stream": Failure(
        lambda begin, _, error: Recording.of_events(begin + error + b"\n\n"),
        ErrorCode.OVERLOADED,
        retryable=True,
        keeps=True,
    ),
    "half an event": stopped("end", ErrorCode.CONNECTION_LOST),
    "cut in the body": stopped("cut", ErrorCode.CONNECTION_LOST),
    "reset in the body": stopped("reset", ErrorCode.CONNECTION_LOST),
    "stall in the body": stopped("stall", ErrorCode.TIMEOUT),
    "cut before the headers": stopped("cut", ErrorCode.CONNECTION_LOST, before_headers=True),
    "reset before the headers": stopped("reset", ErrorCode.CONNECTION_LOST, before_headers=True),
    "stall before the headers": stopped("stall", ErrorCode.TIMEOUT, before_headers=True),
    "refused": body(b"", ErrorCode.CONNECTION_LOST, retryable=True, url="http://127.0.0.1:9"),
    "no such host": body(
        b"", ErrorCode.CONNECTION_LOST, retryable=True, url="http://nowhere.invalid"
    ),
    "no TLS": body(b"", ErrorCode.CONNECTION_LOST, retryable=False, url="https://{server}"),
}
# Clients that send a request, each with its kind of concurrency.
WAYS: Final = (
    ("sdk", "threads"),
    ("sdk", "asyncio"),
    ("httpx", "threads"),
    ("httpx", "trio"),
    ("httpx2", "threads"),
    ("httpx2", "asyncio"),
    ("httpx2", "trio"),
    ("aiohttp", "asyncio"),
)
CASES: Final = [
    pytest.param(dialect, client, loop, id=f"{dialect}, {client}, {loop}")
    for dialect, adapter in ADAPTERS.items()
    for client, loop in WAYS
    if client != "sdk" or adapter.sdk is not None
]


@pytest.fixture(scope="module")
def server() -> Iterator[ReplayServer]:
    gc.collect()
    gc.freeze()  # Collections after each test skip the objects that the SDKs made before.
    with ReplayServer() as replay:
        yield replay
    gc.unfreeze()


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@contextmanager
def nothing_left(server: ReplayServer) -> Generator[None]:
    """Check that the block leaves no socket and no file open.

    The server notices a closed connection late, therefore the check waits.
    """
    gc.collect()
    before = open_files()
    yield
    gc.collect()  # Under `-W error`, the collection of an unclosed response fails the test.
    deadline = time.monotonic() + 5
    while (server.open_connections or open_files() > before) and time.monotonic() < deadline:
        time.sleep(0.002)
    assert server.open_connections == 0
    assert open_files() == before


@contextmanager
def made_client(adapter: Adapter, client: str, url: str, limit: float) -> Generator[Any]:
    if client == "sdk":
        http = adapter.sdk.DefaultHttpxClient(verify=CERTIFICATES)
        arguments = {"api_key": "key", "max_retries": 0, "timeout": limit}
        make = getattr(adapter.sdk, adapter.clients[0])
        with make(base_url=url, http_client=http, **arguments) as made:
            yield made
    else:
        package = httpx2 if client == "httpx2" else httpx
        with package.Client(verify=CERTIFICATES) as made:
            yield made


@asynccontextmanager
async def made_async_client(
    adapter: Adapter, client: str, url: str, limit: float
) -> AsyncGenerator[Any]:
    if client == "sdk":
        http = adapter.sdk.DefaultAsyncHttpxClient(verify=CERTIFICATES)
        arguments = {"api_key": "key", "max_retries": 0, "timeout": limit}
        make = getattr(adapter.sdk, adapter.clients[1])
        context = make(base_url=url, http_client=http, **arguments)
    elif client == "aiohttp":
        context = aiohttp.ClientSession()
    else:
        package = httpx2 if client == "httpx2" else httpx
        context = package.AsyncClient(verify=CERTIFICATES)
    async with context as made:
        yield made


@dataclass
class Story:
    """Kinds of the deltas of a call, and its error."""

    kinds: list[str] = field(default_factory=list[str])
    error: ModelError | None = None


def tell(adapter: Adapter, client: str, loop: str, url: str, limit: float = LONG_SECONDS) -> Story:
    """Send a request, read all deltas, then the message."""
    story = Story()
    settings: dict[str, Any] = {
        "base_url": url,
        "api_key": "key",
        "timeouts": Timeouts(first_byte=limit, idle=limit),
    }

    def waiting() -> None:
        with made_client(adapter, client, url, limit) as made:
            model = adapter.model({"model_id": "m"}, client=made, **settings)
            with model.stream_sync("Hello") as stream:
                story.kinds = [str(delta.kind) for delta in stream]
                try:
                    stream.final_message()
                except ModelError as error:
                    story.error = error

    async def awaiting() -> None:
        tasks = tasks_alive(loop)
        async with made_async_client(adapter, client, url, limit) as made:
            model = adapter.model({"model_id": "m"}, client=made, **settings)
            async with model.stream("Hello") as stream:
                story.kinds = [str(delta.kind) async for delta in stream]
                try:
                    await stream.final_message()
                except ModelError as error:
                    story.error = error
            assert tasks_alive(loop) == tasks

    if loop == "threads":
        waiting()
    else:
        anyio.run(awaiting, backend=loop)
    return story


def tasks_alive(loop: str) -> int:
    if loop == "trio":
        return trio.lowlevel.current_statistics().tasks_living
    return len(asyncio.all_tasks())


@pytest.mark.one_in(7)
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(("dialect", "client", "loop"), CASES)
def test_a_failure_is_told_as_what_it_is_and_leaves_nothing_behind(
    dialect: str, client: str, loop: str, failure: str, server: ReplayServer
) -> None:
    adapter, row = ADAPTERS[dialect], FAILURES[failure]
    server.recordings = {"*": row.answer(*parts_of(dialect), adapter.error_event)}
    url = server.url if row.url is None else row.url.format(server=server.url.partition("//")[2])
    with nothing_left(server):
        limit = LIMIT_SECONDS if row.code is ErrorCode.TIMEOUT else LONG_SECONDS
        story = tell(adapter, client, loop, url + adapter.base, limit)
    error = story.error
    assert (None if error is None else error.code) == row.code
    assert story.kinds[0] == "start"
    assert story.kinds.count("error") == (row.code is not None)
    if error is None:
        assert story.kinds[-1] == "done"
        return
    assert story.kinds[-1] == "error"
    assert error.retryable is row.retryable
    if failure != "error in the stream":  # the event may name a status
        assert error.status == row.status
    assert error.http_request_id == ("r1" if row.status and "page" not in failure else None)
    if row.retry_after is None:
        assert error.retry_after is None
    else:
        shortest, longest = row.retry_after
        assert error.retry_after is not None
        assert shortest <= error.retry_after <= longest
    assert error.message
    for text in (error.message, error.provider_code, error.body, str(error)):
        (text or "").encode()  # raises for a lone surrogate
    assert row.status is None or "<" not in error.message
    assert error.partial_message is not None
    assert bool(error.partial_message.text) is row.keeps


@pytest.mark.parametrize(("dialect", "client", "loop"), CASES)
def test_a_redirect_to_a_page_is_no_answer(
    dialect: str, client: str, loop: str, server: ReplayServer
) -> None:
    # The SDKs follow it with GET and find the page; plain clients do not follow it.
    page = replace(Recording.of(PAGE), headers={"content-type": "text/html"})
    server.recordings = {
        "/login": page,
        "*": Recording.error(302, {}, {"location": "/login"}),
    }
    with nothing_left(server):
        story = tell(ADAPTERS[dialect], client, loop, server.url + ADAPTERS[dialect].base)
    assert story.kinds == ["start", "error"]
    assert story.error is not None
    assert story.error.code is ErrorCode.PROTOCOL_ERROR
    if client != "sdk":
        assert "/login" in story.error.message
