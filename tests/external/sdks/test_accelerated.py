"""Accelerated clients of openai and anthropic beside plain ones: every recording, over loopback.

In: a server that answers with the recordings, one HTTP chunk an event.  Out: the objects of
`create` with `stream=True`, and the events and the message of the helper `stream()`, sync and
async.

Law: an accelerated client yields equal objects and raises equal exceptions; streams that differ are
listed with their reason. Each event of a helper holds the message so far, so that only the types of
the events are compared, and the message at the end.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import anthropic
import openai
import pytest

from corpus import needs_corpus
from deltafold.compat import anthropic as fast_anthropic
from deltafold.compat import openai as fast_openai
from deltafold.testing import Recording, ReplayServer
from sdk_objects import LISTED_RECORDINGS, Read, aread, difference, read, recordings


@dataclass(frozen=True)
class Sdk:
    """Requests for streams of a dialect through its SDK.

    Attributes:
        path: the path of the request, after the base URL.
        version: the end of the SDK's base URL.
        api: returns the part of a client that has `create` and `stream`.
        create: the arguments of `create`.
        helped: the arguments of `stream`.
        final: the method of the helper that returns the message.
    """

    path: str
    version: str
    api: Callable[[Any], Any]
    create: Mapping[str, object]
    helped: Mapping[str, object]
    final: str


CHAT: Final[dict[str, object]] = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
RESPONSES: Final[dict[str, object]] = {"model": "m", "input": "?"}
MESSAGES: Final[dict[str, object]] = {**CHAT, "max_tokens": 9}

SDKS: Final = {
    "openai-chat": Sdk(
        "/v1/chat/completions",
        "/v1",
        lambda client: client.chat.completions,
        {**CHAT, "stream": True},
        CHAT,
        "get_final_completion",
    ),
    "openai-responses": Sdk(
        "/v1/responses",
        "/v1",
        lambda client: client.responses,
        {**RESPONSES, "stream": True},
        RESPONSES,
        "get_final_response",
    ),
    "anthropic-messages": Sdk(
        "/v1/messages",
        "",
        lambda client: client.messages,
        {**MESSAGES, "stream": True},
        MESSAGES,
        "get_final_message",
    ),
}


@contextmanager
def served(dialect: str) -> Generator[tuple[str, list[str]]]:
    """Serve the recordings of a dialect; yields the address and their names."""
    sdk, names = SDKS[dialect], list[str]()
    answers: dict[str, Recording] = {}
    for name, body in recordings(dialect):
        answers[f"/{len(names)}{sdk.path}"] = Recording.of_events(body)
        names.append(name)
    with ReplayServer(answers, flat_out=True) as server:
        yield server.url, names


def clients(dialect: str, url: str, *, waits: bool) -> tuple[Any, Any]:
    """Return a plain client and an accelerated one."""
    options: Any = {"base_url": f"{url}{SDKS[dialect].version}", "api_key": "k", "max_retries": 0}
    if dialect == "anthropic-messages":
        kind = anthropic.AsyncAnthropic if waits else anthropic.Anthropic
        return kind(**options), fast_anthropic.accelerate(kind(**options))
    other = openai.AsyncOpenAI if waits else openai.OpenAI
    return other(**options), fast_openai.accelerate(other(**options))


def at(client: Any, sdk: Sdk, url: str) -> Any:  # noqa: ANN401 - of either SDK
    """Let a client ask for another recording, over the same connections."""
    client.base_url = f"{url}{sdk.version}"
    return client


def created(sdk: Sdk, client: Any) -> Iterator[object]:  # noqa: ANN401 - of either SDK
    """Yield the objects of `create`."""
    with sdk.api(client).create(**sdk.create) as stream:
        yield from stream


def helped(sdk: Sdk, client: Any) -> Iterator[object]:  # noqa: ANN401 - of either SDK
    """Yield the types of the helper's events, and the message at the end."""
    with sdk.api(client).stream(**sdk.helped) as stream:
        for event in stream:
            yield event.type
        yield getattr(stream, sdk.final)()


async def acreated(sdk: Sdk, client: Any) -> AsyncIterator[object]:  # noqa: ANN401 - of either SDK
    """Yield the objects of `create`."""
    async with await sdk.api(client).create(**sdk.create) as stream:
        async for one in stream:
            yield one


async def ahelped(sdk: Sdk, client: Any) -> AsyncIterator[object]:  # noqa: ANN401 - of either SDK
    """Yield the types of the helper's events, and the message at the end."""
    async with sdk.api(client).stream(**sdk.helped) as stream:
        async for event in stream:
            yield event.type
        yield await getattr(stream, sdk.final)()


class Compared:
    """The differences of a dialect's recordings, and how many objects the plain client gave."""

    def __init__(self) -> None:
        self.found: list[str | None] = []
        self.objects = 0

    def add(self, theirs: Read, ours: Read) -> None:
        """Compare the next recording."""
        self.found.append(difference(theirs, ours))
        self.objects += len(theirs.objects)

    def hold(self, dialect: str, names: list[str]) -> None:
        """Assert that recordings differ only where this is listed, and that they were read."""
        listed = LISTED_RECORDINGS[dialect]
        pairs = zip(names, self.found, strict=True)
        assert {name: how for name, how in pairs if (how is None) == (name in listed)} == {}
        # Two clients that were both refused would agree too.
        assert self.objects > 10 * len(names)


@needs_corpus
@pytest.mark.parametrize("objects", [created, helped])
@pytest.mark.parametrize("dialect", SDKS)
def test_an_accelerated_client_gives_what_a_plain_one_gives(
    dialect: str, objects: Callable[[Sdk, Any], Iterator[object]]
) -> None:
    sdk, compared = SDKS[dialect], Compared()
    with served(dialect) as (url, names):
        plain, fast = clients(dialect, url, waits=False)
        with plain, fast:
            for number in range(len(names)):
                place = f"{url}/{number}"
                theirs = read(objects(sdk, at(plain, sdk, place)))
                compared.add(theirs, read(objects(sdk, at(fast, sdk, place))))
    compared.hold(dialect, names)


@needs_corpus
@pytest.mark.parametrize("objects", [acreated, ahelped])
@pytest.mark.parametrize("dialect", SDKS)
def test_an_accelerated_asynchronous_client_gives_what_a_plain_one_gives(
    dialect: str, objects: Callable[[Sdk, Any], AsyncIterator[object]]
) -> None:
    async def compare(url: str, count: int) -> None:
        plain, fast = clients(dialect, url, waits=True)
        async with plain, fast:
            for number in range(count):
                place = f"{url}/{number}"
                theirs = await aread(objects(sdk, at(plain, sdk, place)))
                compared.add(theirs, await aread(objects(sdk, at(fast, sdk, place))))

    sdk, compared = SDKS[dialect], Compared()
    with served(dialect) as (url, names):
        asyncio.run(compare(url, len(names)))
    compared.hold(dialect, names)
