"""Recorder: the bytes pass untouched, a file has them, and nothing in it tells who asked."""

import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import anyio
import httpx
import pytest

import deltafold
import event_stream
from deltafold import MisuseError
from deltafold.testing import Ending, Recorder, Recording, ReplayServer, ReplayTransport
from deltafold.transports.http import (
    aclose_http_client,
    close_http_client,
    make_http_client,
    open_http,
)
from deltafold.transports.requests import HttpRequest
from deltafold.transports.responses import source_of
from deltafold.transports.sources import Source, Tap, Transport
from deltafold.transports.timeouts import Timeouts
from http_ways import WAYS, request_to, run_async
from wires import ANTHROPIC

EVENTS = b"data: 1\n\ndata: 2\n\ndata: \xc3\xa9\xff\n\n"
PIECES = [b"data: 1\n\n", b"data: 2\n\n", b"data: \xc3\xa9\xff\n\n"]
URL = "http://provider.test/v1/messages"


def recorded(way: str, recorder_folder: Path, url: str) -> tuple[bytes, list[Recording]]:
    """Read a response through a recorder around a client of this kind, to its end or failure."""
    package, backend = WAYS[way]
    request = request_to(url, Timeouts(first_byte=0.3, idle=0.3))
    body = b""

    async def main() -> None:
        nonlocal body
        client = make_http_client("asynchronous", package)
        source = await Recorder(client, recorder_folder).open_async(request)
        try:
            async for chunk in source.chunks:
                body += chunk
        finally:
            await source.close()
            await aclose_http_client(client)

    def main_sync() -> None:
        nonlocal body
        client = make_http_client("synchronous", package)
        source = Recorder(client, recorder_folder).open(request)
        try:
            for chunk in source.chunks:
                body += chunk
        finally:
            source.close()
            close_http_client(client)

    try:
        if backend:
            run_async(backend, main)
        else:
            main_sync()
    except Exception:  # noqa: BLE001, S110 - what the recording says of a failure is the subject
        pass
    return body, Recording.load_all(recorder_folder)


@pytest.mark.parametrize("way", WAYS)
def test_the_bytes_pass_and_the_file_has_them_with_their_bounds_and_pauses(
    way: str, tmp_path: Path
) -> None:
    sent = replace(Recording.of_events(EVENTS, delay=0.03), headers_after=0.03)
    with ReplayServer([sent]) as server:
        body, [recording] = recorded(way, tmp_path, f"{server.url}/v1/messages")
    assert body == recording.body == EVENTS
    assert [piece for _, piece in recording.pieces] == PIECES
    assert (recording.status, recording.ending) == (200, "end")
    assert recording.headers["content-type"] == "text/event-stream"
    assert recording.headers_after >= 0.03
    assert sum(after for after, _ in recording.pieces) >= 0.06
    assert recording.request is not None
    assert (recording.request.method, recording.request.path) == ("POST", "/v1/messages")
    assert recording.request.body is None


@pytest.mark.parametrize("way", ["httpx", "httpx, asyncio", "httpx, trio", "aiohttp"])
@pytest.mark.parametrize("ending", ["cut", "reset", "stall"])
def test_how_a_body_broke_off_is_recorded(way: str, ending: Ending, tmp_path: Path) -> None:
    with ReplayServer([Recording.of_events(EVENTS).stopping(ending, 9)]) as server:
        body, [recording] = recorded(way, tmp_path, server.url)
    assert body == recording.body == EVENTS[:9]
    assert recording.ending == ending


def test_a_response_that_is_left_early_is_recorded_as_far_as_it_was_read(tmp_path: Path) -> None:
    recorder = Recorder(ReplayTransport([Recording.of_events(EVENTS)]), tmp_path)
    source = recorder.open(request_to(URL))
    next(source.chunks)
    source.close()
    source.close()
    [recording] = Recording.load_all(tmp_path)
    assert (recording.body, recording.ending) == (b"data: 1\n\n", "end")


def test_a_compressed_body_is_recorded_as_what_it_was(tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        del request
        headers = {"content-encoding": "gzip", "content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, content=gzip.compress(EVENTS))

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        source = Recorder(client, tmp_path).open(request_to(URL))
        assert b"".join(source.chunks) == EVENTS
        source.close()
    [recording] = Recording.load_all(tmp_path)
    assert recording.body == EVENTS
    assert recording.headers == {"content-type": "text/event-stream"}
    assert b"".join(ReplayTransport([recording]).open(request_to(URL)).chunks) == EVENTS


SECRETS = {
    "Authorization": "Bearer sk-abcdefgh-1",
    "X-Api-Key": "sk-abcdefgh-2",
    "x-goog-api-key": "AIzaSyAbcdefgh3",
    "api-key": "azure-abcdefgh-4",
    "Cookie": "session=abcdefgh5",
    "X-Gateway-Token": "gateway-abcdefgh-6",
    "OpenAI-Organization": "org-abcdefgh-7",
}


def test_nothing_in_the_file_tells_who_asked(tmp_path: Path) -> None:
    said = b'{"error": "Incorrect API key sk-abcdefgh-1 or AIzaQueryKey8"}'
    answer = Recording(
        tuple((0.0, said[at : at + 5]) for at in range(0, len(said), 5)),
        401,
        {
            "Set-Cookie": "session=fromserver",
            "openai-organization": "org-fromserver",
            "x-echo": "sk-abcdefgh-2",
            "x-ratelimit-remaining-tokens": "7",
            "request-id": "r",
        },
    )
    headers = {**SECRETS, "anthropic-version": "2023-06-01", "content-type": "application/json"}
    query = {"key": "AIzaQueryKey8", "alt": "sse"}
    url = "http://name:userpassword@provider.test/v1beta/models/m:streamGenerateContent"
    request = HttpRequest("POST", url, headers, query, b'{"prompt": "private"}')
    source = Recorder(ReplayTransport([answer]), tmp_path).open(request)
    assert b"".join(source.chunks) == said
    source.close()
    [path] = tmp_path.iterdir()
    assert path.name == "0001-models-m-streamGenerateContent.jsonl"
    text = path.read_text()
    for secret in (*SECRETS.values(), "AIzaQueryKey8", "userpassword", "private", "fromserver"):
        assert secret.rpartition(" ")[2] not in text
    recording = Recording.load(path)
    assert recording.body == said.replace(b"sk-abcdefgh-1", b"*" * 13).replace(
        b"AIzaQueryKey8", b"*" * 13
    )
    assert recording.headers == {
        "x-echo": "*" * 13,
        "x-ratelimit-remaining-tokens": "7",
        "request-id": "r",
    }
    assert recording.request is not None
    assert recording.request.query == {"alt": "sse"}
    assert set(recording.request.headers) == {"anthropic-version", "content-type"}


def test_requests_are_kept_when_they_are_asked_for(tmp_path: Path) -> None:
    transport = ReplayTransport([Recording.of(b"a")])
    Recorder(transport, tmp_path, keep_requests=True).open(request_to(URL)).close()
    [recording] = Recording.load_all(tmp_path)
    assert recording.request is not None
    assert recording.request.body == b"{}"


def test_files_are_numbered_on_from_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "0041-old.jsonl").write_text("")
    (tmp_path / "mine.jsonl").write_text("")
    transport = ReplayTransport({"*": Recording.of(b"a")})
    recorder = Recorder(transport, tmp_path / "")
    sources = [recorder.open(request_to(url)) for url in (URL, "http://provider.test/")]
    for source in reversed(sources):
        source.close()
    assert sorted(path.name for path in tmp_path.iterdir() if path.stat().st_size) == [
        "0042-v1-messages.jsonl",
        "0043-response.jsonl",
    ]


def test_a_file_is_for_one_response(tmp_path: Path) -> None:
    transport = ReplayTransport({"*": Recording.of(b"a")})
    recorder = Recorder(transport, tmp_path / "one.jsonl")
    recorder.open(request_to(URL)).close()
    with pytest.raises(MisuseError, match="pass a folder"):
        recorder.open(request_to(URL))
    assert len(transport.requests) == 1


def test_it_is_a_transport_and_a_tap(tmp_path: Path) -> None:
    recorder = Recorder(object(), tmp_path)
    assert isinstance(recorder, Transport)
    assert isinstance(recorder, Tap)
    with pytest.raises(MisuseError, match="not a supported HTTP client"):
        recorder.open(request_to(URL))


@pytest.fixture
def sdk(tmp_path: Path) -> Iterator[tuple[anthropic.Anthropic, Recorder]]:
    with (
        ReplayServer({"/v1/messages": Recording.of_events(ANTHROPIC)}) as server,
        anthropic.Anthropic(base_url=server.url, api_key="sk-abcdefgh") as client,
    ):
        yield client, Recorder(client, tmp_path)


def test_a_response_that_an_sdk_opened_is_listened_to(
    sdk: tuple[anthropic.Anthropic, Recorder], tmp_path: Path
) -> None:
    client, recorder = sdk
    with client.messages.with_streaming_response.create(
        model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}], stream=True
    ) as response:
        source = recorder.tap(source_of(response), request_to(URL))
        message = deltafold.fold(source.chunks, "anthropic-messages", run_id="run")
        source.close()
    [recording] = Recording.load_all(tmp_path)
    assert recording.body == ANTHROPIC
    assert message.same_content(deltafold.fold(ANTHROPIC, "anthropic-messages", run_id="run"))


def test_the_key_of_an_sdks_client_is_starred_out(
    sdk: tuple[anthropic.Anthropic, Recorder], tmp_path: Path
) -> None:
    _, recorder = sdk
    source = Source(iter([b"bad key sk-abc", b"defgh"]), lambda: None, 401, {})
    list(recorder.tap(source, request_to(URL)).chunks)
    [recording] = Recording.load_all(tmp_path)
    assert recording.body == b"bad key ***********"


def test_a_binary_body_is_recorded_as_it_came(
    sdk: tuple[anthropic.Anthropic, Recorder], tmp_path: Path
) -> None:
    _, recorder = sdk
    body = event_stream.event("contentBlockDelta", {"delta": {"text": "sk-abcdefgh"}})
    headers = {"content-type": "application/vnd.amazon.eventstream", "x-key": "sk-abcdefgh"}
    source = Source(iter([body[:50], body[50:]]), lambda: None, 200, headers)
    list(recorder.tap(source, request_to(URL)).chunks)
    [recording] = Recording.load_all(tmp_path)
    assert recording.body == body
    assert recording.headers.get("x-key", "***********") == "***********"


def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    first = ReplayTransport([Recording.of_events(EVENTS), Recording.of(b"second")])
    recorder = Recorder(first, tmp_path)

    async def read() -> list[bytes]:
        bodies: list[bytes] = []
        for _ in range(2):
            source = await recorder.open_async(request_to(URL))
            bodies.append(b"".join([chunk async for chunk in source.chunks]))
            await source.close()
        return bodies

    bodies = anyio.run(read)
    again = ReplayTransport(Recording.load_all(tmp_path))
    assert [b"".join(open_http(again, request_to(URL)).chunks) for _ in range(2)] == bodies


def clients_of(kind: str, url: str) -> Any:  # noqa: ANN401 - two unrelated classes
    if kind == "sdk":
        return anthropic.Anthropic(base_url=url, api_key="sk-abcdefgh", max_retries=0)
    return httpx.Client()


@pytest.mark.parametrize("kind", ["sdk", "http"])
def test_a_model_records_through_any_client_and_plays_it_back(kind: str, tmp_path: Path) -> None:
    run = {"run_id": "run"}
    settings: dict[str, Any] = {"api_key": "sk-abcdefgh"}
    with ReplayServer({"/v1/messages": Recording.of_events(ANTHROPIC)}) as server:
        settings["base_url"] = server.url
        with clients_of(kind, server.url) as client:
            recorder = Recorder(client, tmp_path, keep_requests=True)
            model = deltafold.AnthropicModel({"model_id": "m"}, client=recorder, **settings)
            first = model.stream_sync("Hello", request_metadata=run).final_message()
    [recording] = Recording.load_all(tmp_path)
    assert recording.body == ANTHROPIC
    assert recording.request is not None
    assert recording.request.path == "/v1/messages"
    assert b"Hello" in (recording.request.body or b"")
    assert "sk-abcdefgh" not in next(tmp_path.iterdir()).read_text()
    again = deltafold.AnthropicModel(
        {"model_id": "m"}, client=ReplayTransport([recording], flat_out=True), **settings
    )
    assert again.stream_sync("Hello", request_metadata=run).final_message().same_content(first)


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_call_that_is_awaited_is_recorded_when_its_body_is_over(
    transport: str, tmp_path: Path
) -> None:
    async def call(url: str) -> str:
        client = make_http_client("asynchronous", transport)
        recorder = Recorder(client, tmp_path)
        options: dict[str, Any] = {"client": recorder, "base_url": url, "api_key": "sk-abcdefgh"}
        message = await deltafold.AnthropicModel({"model_id": "m"}, **options).send_message("Hello")
        await aclose_http_client(client)
        return message.text

    with ReplayServer({"/v1/messages": Recording.of_events(ANTHROPIC)}) as server:
        text = anyio.run(call, server.url)
    [recording] = Recording.load_all(tmp_path)
    assert recording.body == ANTHROPIC
    assert text == deltafold.fold(ANTHROPIC, "anthropic-messages").text
