"""Accelerated clients of openai and anthropic beside plain ones: every recording, over loopback.

In: a server that answers with the recordings, one HTTP chunk an event.  Out: what `create` with
`stream=True` and the helper `stream()` give, to synchronous and asynchronous code.

Law: an accelerated client yields equal objects and raises equal exceptions; streams that differ are
listed with their reason. The events of a helper hold the message as far as it came, so that their
types are compared, and the message at the end.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
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
from sdk_objects import LISTED_RECORDINGS, Read, difference, recordings


@dataclass(frozen=True)
class Sdk:
    """How the streams of a dialect are asked for.

    Attributes:
        path: the path of the request, after the base URL.
        version: what the SDK's base URL ends in.
        api: returns the part of a client that has `create` and `stream`.
        create: the arguments of `create`.
        helped: the arguments of `stream`.
        final: the method of the helper that returns what came together.
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


def created(sdk: Sdk, client: Any) -> Read:  # noqa: ANN401 - of either SDK
    """Read the objects of `create`."""
    found: list[object] = []
    try:
        with sdk.api(client).create(**sdk.create) as stream:
            found.extend(stream)
    except Exception as raised:  # noqa: BLE001 - compared with the other's
        return Read(found, raised)
    return Read(found, None)


def helped(sdk: Sdk, client: Any) -> Read:  # noqa: ANN401 - of either SDK
    """Read the types of the helper's events, and what came together."""
    found: list[object] = []
    try:
        with sdk.api(client).stream(**sdk.helped) as stream:
            found.extend(event.type for event in stream)
            found.append(getattr(stream, sdk.final)())
    except Exception as raised:  # noqa: BLE001 - compared with the other's
        return Read(found, raised)
    return Read(found, None)


async def acreated(sdk: Sdk, client: Any) -> Read:  # noqa: ANN401 - of either SDK
    """Read the objects of `create`."""
    found: list[object] = []
    try:
        async with await sdk.api(client).create(**sdk.create) as stream:
            async for one in stream:
                found.append(one)  # noqa: PERF401 - what came before an exception counts
    except Exception as raised:  # noqa: BLE001 - compared with the other's
        return Read(found, raised)
    return Read(found, None)


async def ahelped(sdk: Sdk, client: Any) -> Read:  # noqa: ANN401 - of either SDK
    """Read the types of the helper's events, and what came together."""
    found: list[object] = []
    try:
        async with sdk.api(client).stream(**sdk.helped) as stream:
            async for event in stream:
                found.append(event.type)  # noqa: PERF401 - what came before an exception counts
            found.append(await getattr(stream, sdk.final)())
    except Exception as raised:  # noqa: BLE001 - compared with the other's
        return Read(found, raised)
    return Read(found, None)


def differing(names: list[str], found: list[str | None], listed: Mapping[str, str]) -> object:
    """Return the differences that are not listed, and listed ones that are none."""
    pairs = zip(names, found, strict=True)
    return {name: how for name, how in pairs if (how is None) == (name in listed)}


@needs_corpus
@pytest.mark.parametrize("read", [created, helped])
@pytest.mark.parametrize("dialect", SDKS)
def test_an_accelerated_client_gives_what_a_plain_one_gives(
    dialect: str, read: Callable[[Sdk, Any], Read]
) -> None:
    sdk, found = SDKS[dialect], list[str | None]()
    with served(dialect) as (url, names):
        plain, fast = clients(dialect, url, waits=False)
        with plain, fast:
            for number in range(len(names)):
                place = f"{url}/{number}"
                theirs, ours = read(sdk, at(plain, sdk, place)), read(sdk, at(fast, sdk, place))
                found.append(difference(theirs, ours))
    assert differing(names, found, LISTED_RECORDINGS[dialect]) == {}


@needs_corpus
@pytest.mark.parametrize("read", [acreated, ahelped])
@pytest.mark.parametrize("dialect", SDKS)
def test_an_accelerated_asynchronous_client_gives_what_a_plain_one_gives(
    dialect: str, read: Callable[[Sdk, Any], Any]
) -> None:
    async def differences(url: str, count: int) -> list[str | None]:
        found: list[str | None] = []
        plain, fast = clients(dialect, url, waits=True)
        async with plain, fast:
            for number in range(count):
                place = f"{url}/{number}"
                theirs = await read(sdk, at(plain, sdk, place))
                found.append(difference(theirs, await read(sdk, at(fast, sdk, place))))
        return found

    sdk = SDKS[dialect]
    with served(dialect) as (url, names):
        found = asyncio.run(differences(url, len(names)))
    assert differing(names, found, LISTED_RECORDINGS[dialect]) == {}
