"""Streams that tracing watches: it sees the objects of what we read, and the end that we see."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import repeat
from typing import Any, ClassVar, Final

import openai
import pytest

import deltafold
from deltafold import ModelError
from deltafold.compat import anthropic as compat_anthropic
from deltafold.compat import openai as compat_openai
from deltafold.transports import followed
from sdk_clients import (
    BASE_URL,
    HEADERS,
    OPENAI_HTTP,
    anthropic_client,
    async_anthropic_client,
    async_openai_client,
    openai_client,
)
from watchers import SHAPES, Passing, Seen, watch
from wires import chat, claude, gpt

BODY: Final = chat("High ", "tide ", "is at ", "17:42.")
ITEMS: Final = 5
"""Objects of `BODY`: four texts and the reason."""

ERROR: Final = b'data: {"error": {"message": "overloaded", "code": 503}}\n\n'
CORRUPT: Final = b"data: {nothing\n\n"

Chunks = Sequence[bytes]
shapes = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture(autouse=True)
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget which packages a warning has named."""
    named: set[str] = set()
    monkeypatch.setattr(followed, "_NAMED", named)


@pytest.fixture(params=["stream", "astream"])
def is_async(request: pytest.FixtureRequest) -> bool:
    """Tell the two directions apart."""
    return str(request.param) == "astream"


def outcome(error: ModelError | None, message: Any) -> tuple[object, ...]:  # noqa: ANN401
    partial = message if error is None else error.partial_message
    return (error and error.code, partial and partial.text, partial and partial.meta.finish_reason)


def read(
    chunks: Chunks,
    *,
    shape: str | None,
    is_async: bool,
    failure: Exception | None = None,
    parts: int | None = None,
    accelerated: bool = False,
) -> tuple[tuple[object, ...], Seen]:
    """Read a body through a client that is watched, and return what came of it.

    Args:
        chunks: the body.
        shape: the shape of the watcher, None for none.
        is_async: whether it is awaited.
        failure: ends the body.
        parts: after how many texts the stream is left; None reads to the end.
        accelerated: whether the streams of the client are those of `compat`.
    """
    client: Any = (async_openai_client if is_async else openai_client)(chunks, failure)
    if accelerated:
        compat_openai.accelerate(client)
    seen = Seen() if shape is None else watch(shape, client)
    create: Any = client.chat.completions.create

    async def awaited() -> tuple[object, ...]:
        response = await create(model="m", messages=[], stream=True)
        async with deltafold.astream(response) as stream:
            left = parts
            async for _ in stream.text():
                left = None if left is None else left - 1
                if left == 0:
                    return ("left",)
            return outcome(None, stream.message)

    def waited() -> tuple[object, ...]:
        response = create(model="m", messages=[], stream=True)
        with deltafold.stream(response) as stream:
            for number, _ in enumerate(stream.text(), 1):
                if number == parts:
                    return ("left",)
            return outcome(None, stream.message)

    try:
        return (asyncio.run(awaited()) if is_async else waited()), seen
    except ModelError as error:
        return outcome(error, None), seen


@shapes
@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("size", [1, 200, 10_000])
def test_a_watcher_sees_the_whole_answer(
    shape: str, size: int, *, accelerated: bool, is_async: bool
) -> None:
    chunks = [BODY[place : place + size] for place in range(0, len(BODY), size)]
    expected, _ = read(chunks, shape=None, is_async=is_async)
    got, seen = read(chunks, shape=shape, is_async=is_async, accelerated=accelerated)
    assert got == expected == (None, "High tide is at 17:42.", "stop")
    assert [type(item).__name__ for item in seen.items] == ["ChatCompletionChunk"] * ITEMS
    assert seen.ends == ["whole"]


@shapes
def test_a_watcher_learns_that_a_stream_was_left(shape: str, *, is_async: bool) -> None:
    chunks = [BODY[place : place + 100] for place in range(0, len(BODY), 100)]
    got, seen = read(chunks, shape=shape, is_async=is_async, parts=2)
    assert got == ("left",)
    assert seen.ends == ["closed"]
    assert 1 <= len(seen.items) < ITEMS


@shapes
def test_a_watcher_learns_of_a_lost_connection(shape: str, *, is_async: bool) -> None:
    chunks, lost = [BODY[:400], BODY[400:500]], ConnectionResetError("reset")
    expected, _ = read(chunks, shape=None, is_async=is_async, failure=lost)
    got, seen = read(chunks, shape=shape, is_async=is_async, failure=ConnectionResetError("reset"))
    assert got == expected
    assert seen.ends == ["ConnectionResetError"]


@shapes
def test_a_watcher_learns_of_an_error_of_the_provider(shape: str, *, is_async: bool) -> None:
    chunks = [chat("High ", finish_reason=None, done=False), ERROR]
    expected, _ = read(chunks, shape=None, is_async=is_async)
    got, seen = read(chunks, shape=shape, is_async=is_async)
    assert got == expected
    assert got[0] == "overloaded"
    assert seen.ends == ["APIError"]


@shapes
@pytest.mark.parametrize("place", ["apart", "together", "alone"])
def test_what_an_sdk_cannot_read_changes_nothing_of_the_message(
    shape: str, place: str, *, is_async: bool
) -> None:
    cut = BODY.index(b"\n\n") + 2
    bodies = {
        "apart": [BODY[:cut], CORRUPT, BODY[cut:]],
        "together": [BODY[:cut] + CORRUPT + BODY[cut:]],
        "alone": [CORRUPT],
    }
    chunks = bodies[place]
    expected, _ = read(chunks, shape=None, is_async=is_async)
    got, seen = read(chunks, shape=shape, is_async=is_async)
    assert got == expected
    assert seen.ends == ["JSONDecodeError"]


@shapes
def test_an_accelerated_client_keeps_its_watcher_whichever_came_first(
    shape: str, *, is_async: bool
) -> None:
    for first in ("watch", "accelerate"):
        client: Any = (async_openai_client if is_async else openai_client)([BODY])
        seen = Seen()
        for step in (first, "accelerate" if first == "watch" else "watch"):
            if step == "watch":
                seen = watch(shape, client)
            else:
                compat_openai.accelerate(client)
        create: Any = client.chat.completions.create

        async def all_of(create: Any = create) -> list[object]:  # noqa: ANN401
            return [item async for item in await create(model="m", messages=[], stream=True)]

        items = (
            asyncio.run(all_of()) if is_async else list(create(model="m", messages=[], stream=True))
        )
        assert len(items) == ITEMS
        assert (seen.items, seen.ends) == (items, ["whole"])


@shapes
def test_a_stream_of_events_is_watched_too(shape: str, *, is_async: bool) -> None:
    body = claude("High tide is at 17:42.")
    client: Any = (async_anthropic_client if is_async else anthropic_client)([body])
    compat_anthropic.accelerate(client)
    seen = watch(shape, client)
    given: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [], "stream": True}

    async def awaited() -> str:
        async with deltafold.astream(await client.messages.create(**given)) as stream:
            return (await stream.final_message()).text

    def waited() -> str:
        with deltafold.stream(client.messages.create(**given)) as stream:
            return stream.final_message().text

    assert (asyncio.run(awaited()) if is_async else waited()) == "High tide is at 17:42."
    assert type(seen.items[-1]).__name__.endswith("MessageStopEvent")
    assert seen.ends == ["whole"]


@shapes
def test_every_answer_of_a_request_is_watched(shape: str, *, is_async: bool) -> None:
    client: Any = (async_openai_client if is_async else openai_client)([gpt("17:42")])
    seen = watch(shape, client)
    create: Any = client.chat.completions.create

    async def awaited() -> Any:  # noqa: ANN401 - by the number of the choice
        return await deltafold.afold_choices(await create(model="m", messages=[], stream=True))

    folded = (
        asyncio.run(awaited())
        if is_async
        else deltafold.fold_choices(create(model="m", messages=[], stream=True))
    )
    assert [one.text for one in folded.values()] == ["17:42"]
    assert seen.ends == ["whole"]


@shapes
def test_objects_of_a_watched_stream_pass_as_the_sdk_makes_them(shape: str) -> None:
    client: Any = openai_client([BODY])
    seen = watch(shape, client)
    stream: Any = client.chat.completions.create(model="m", messages=[], stream=True)
    chunks: Any = compat_openai.chunks
    objects: Any = chunks(stream)
    assert list(objects) == seen.items
    assert objects.message.text == "High tide is at 17:42."
    assert seen.ends == ["whole"]


def test_the_stream_of_a_raw_response_is_watched() -> None:
    client: Any = openai_client([BODY])
    seen = watch("subclass", client)
    raw = client.chat.completions.with_raw_response.create(model="m", messages=[], stream=True)
    with deltafold.stream(raw) as stream:
        assert stream.final_message().text == "High tide is at 17:42."
    assert seen.ends == ["whole"]


class Deaf(Passing):
    """A wrapper whose iterator makes objects, or nothing, without the response."""

    def __next__(self) -> object:
        raise StopIteration

    async def __anext__(self) -> object:
        raise StopAsyncIteration


def deaf(*, is_async: bool) -> str:
    async def awaited() -> str:
        create: Any = async_openai_client([BODY]).chat.completions.create
        response = Deaf(await create(model="m", messages=[], stream=True), Seen())
        async with deltafold.astream(response) as stream:
            return (await stream.final_message()).text

    if is_async:
        return asyncio.run(awaited())
    create: Any = openai_client([BODY]).chat.completions.create
    with deltafold.stream(Deaf(create(model="m", messages=[], stream=True), Seen())) as stream:
        return stream.final_message().text


def test_a_wrapper_that_does_not_read_is_named_once(*, is_async: bool) -> None:
    with pytest.warns(RuntimeWarning, match=r"no answer: its Deaf .*\.otel\.instrument\(\)"):
        assert deaf(is_async=is_async) == "High tide is at 17:42."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert deaf(is_async=is_async) == "High tide is at 17:42."


def pings() -> Iterator[bytes]:
    """Yield comments, of which an SDK makes no object, and an answer."""
    yield from [b": ping\n\n"] * 40
    yield BODY


def test_a_wrapper_that_falls_behind_is_not_asked_any_more(
    monkeypatch: pytest.MonkeyPatch, *, is_async: bool
) -> None:
    monkeypatch.setattr(followed, "MAX_BEHIND", 100)
    with pytest.warns(RuntimeWarning, match="no answer"):
        got, seen = read(list(pings()), shape="proxy", is_async=is_async)
    assert got == (None, "High tide is at 17:42.", "stop")
    assert not seen.items
    assert len(seen.ends) == 1


def test_nobody_is_asked_where_nobody_watches(
    monkeypatch: pytest.MonkeyPatch, *, is_async: bool
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a stream that nobody watches has a wrapper")

    monkeypatch.setattr(followed.FollowedChunks, "__init__", refused)
    monkeypatch.setattr(followed.AwaitedFollowedChunks, "__init__", refused)
    for accelerated in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got, _ = read([BODY], shape=None, is_async=is_async, accelerated=accelerated)
        assert got == (None, "High tide is at 17:42.", "stop")


def test_the_response_has_its_own_members_again(*, is_async: bool) -> None:
    client: Any = (async_openai_client if is_async else openai_client)([BODY])
    watch("proxy", client)
    create: Any = client.chat.completions.create

    async def awaited() -> Any:  # noqa: ANN401 - of httpx
        stream = await create(model="m", messages=[], stream=True)
        async with deltafold.astream(stream) as read:
            await read.final_message()
        return stream.response

    def waited() -> Any:  # noqa: ANN401 - of httpx
        stream = create(model="m", messages=[], stream=True)
        with deltafold.stream(stream) as read:
            read.final_message()
        return stream.response

    response = asyncio.run(awaited()) if is_async else waited()
    assert response.is_closed
    assert not [
        name for name in ("iter_bytes", "aiter_bytes", "close", "aclose") if name in vars(response)
    ]


class Bare:
    """A wrapper with nothing but its iterator."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - of any SDK
        self.response = stream.response
        self._stream = stream

    def __iter__(self) -> Iterator[object]:
        return iter(self._stream)

    def __aiter__(self) -> AsyncIterator[object]:
        return aiter(self._stream)


def test_a_wrapper_needs_no_method_but_its_iterator(*, is_async: bool) -> None:
    client: Any = (async_openai_client if is_async else openai_client)([BODY])
    create: Any = client.chat.completions.create
    chunks_of: Any = compat_openai.chunks

    async def awaited() -> int:
        async with chunks_of(Bare(await create(model="m", messages=[], stream=True))) as chunks:
            return len([chunk async for chunk in chunks])

    if is_async:
        assert asyncio.run(awaited()) == ITEMS
        return
    response = create(model="m", messages=[], stream=True)
    with chunks_of(Bare(response)) as chunks:
        assert len(list(chunks)) == ITEMS
    assert response.response.is_closed


class Leaving(Passing):
    """A wrapper that wants one object alone."""

    def __iter__(self) -> Iterator[object]:
        for item in self.__dict__["__wrapped"]:
            yield item
            return

    async def __aiter__(self) -> AsyncIterator[object]:
        async for item in self.__dict__["__wrapped"]:
            yield item
            return


class Endless(Passing):
    """A wrapper whose objects never end."""

    def __iter__(self) -> Iterator[object]:
        yield from self.__dict__["__wrapped"]
        yield from repeat(None)

    async def __aiter__(self) -> AsyncIterator[object]:
        async for item in self.__dict__["__wrapped"]:
            yield item
        for item in repeat(None):
            yield item


class Impatient(Passing):
    """A wrapper that gives a read up as soon as it waits."""

    async def __anext__(self) -> object:
        reading = asyncio.ensure_future(anext(self.__dict__["__wrapped"]))
        await Silent.waits.wait()
        reading.cancel()
        await asyncio.wait([reading])
        raise TimeoutError


class Silent:
    """A body that never comes."""

    waits: ClassVar = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.waits.set()
        await asyncio.Event().wait()
        yield b""


async def wrapped(client: Any, kind: type[Passing]) -> tuple[object, ...]:  # noqa: ANN401
    response = await client.chat.completions.create(model="m", messages=[], stream=True)
    try:
        async with deltafold.astream(kind(response, Seen())) as stream:
            return outcome(None, await stream.final_message())
    except ModelError as error:
        return outcome(error, None)


@pytest.mark.parametrize("kind", [Leaving, Endless])
@pytest.mark.parametrize("size", [1, 200, 10_000])
def test_a_wrapper_with_an_end_of_its_own_changes_nothing(
    size: int, kind: type[Passing], *, is_async: bool
) -> None:
    chunks = [BODY[place : place + size] for place in range(0, len(BODY), size)]
    if is_async:
        got = asyncio.run(wrapped(async_openai_client(chunks), kind))
    else:
        response: Any = openai_client(chunks).chat.completions.create(
            model="m", messages=[], stream=True
        )
        with deltafold.stream(kind(response, Seen())) as stream:
            got = outcome(None, stream.final_message())
    assert got == (None, "High tide is at 17:42.", "stop")


def test_the_time_limit_of_a_wrapper_is_the_failure_of_the_stream() -> None:
    """The limit cancels the read of the connection, which cannot go on then."""

    def answer(_: object) -> object:
        return OPENAI_HTTP.Response(200, headers=HEADERS, content=Silent())

    http = OPENAI_HTTP.AsyncClient(transport=OPENAI_HTTP.MockTransport(answer))
    client = openai.AsyncOpenAI(api_key="k", base_url=BASE_URL, http_client=http, max_retries=0)
    code, *_ = asyncio.run(wrapped(client, Impatient))
    assert code == "timeout"
