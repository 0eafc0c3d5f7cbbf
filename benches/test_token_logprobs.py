"""Log probabilities of every token, with alternatives and without, streamed and in a whole body."""

from collections.abc import Callable
from typing import Final

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import logprob_body, logprob_feeds
from deltafold import Fold, fold
from measuring import measure, together
from peers import SDK_CREATE, SDK_HELPER
from readers import FOLD
from transports import openai_client

SDK_TOKENS = 2_000
# The helper grows with the square of the tokens.
HELPER_TOKENS = 500
MANY_TOKENS = 32_000

ALTERNATIVES = (0, 5)

DIALECT: Final = "openai-chat"


def ours(chunks: list[bytes]) -> Callable[[], int]:
    def read() -> int:
        folding = Fold(DIALECT, logprobs=True)
        for chunk in chunks:
            folding.feed(chunk)
        folding.close()
        logprobs = folding.message.meta.logprobs
        assert logprobs is not None
        return len(logprobs.logprobs)

    return read


def ours_whole(chunks: list[bytes]) -> Callable[[], int]:
    whole = b"".join(chunks)

    def read() -> int:
        logprobs = fold(whole, DIALECT, logprobs=True).meta.logprobs
        assert logprobs is not None
        return len(logprobs.logprobs)

    return read


def sdk_create(chunks: list[bytes]) -> Callable[[], int]:
    """Every chunk's tokens, as a caller gathers them who keeps all."""
    chat = openai_client(chunks).chat.completions

    def read() -> int:
        found: list[object] = []
        stream = chat.create(model="m", messages=[{"role": "user", "content": "?"}], stream=True)
        for chunk in stream:
            for choice in chunk.choices:
                found.extend((choice.logprobs and choice.logprobs.content) or ())
        return len(found)

    return read


def sdk_helper(chunks: list[bytes]) -> Callable[[], int]:
    chat = openai_client(chunks).chat.completions

    def read() -> int:
        with chat.stream(model="m", messages=[{"role": "user", "content": "?"}]) as stream:
            found = stream.get_final_completion().choices[0].logprobs
        assert found is not None
        return len(found.content or [])

    return read


def sdk_whole(chunks: list[bytes]) -> Callable[[], int]:
    chat = openai_client(chunks).chat.completions

    def read() -> int:
        completion = chat.create(model="m", messages=[{"role": "user", "content": "?"}])
        found = completion.choices[0].logprobs
        assert found is not None
        return len(found.content or [])

    return read


def body(how: str, tokens: int, alternatives: int) -> list[bytes]:
    if how == "whole":
        return [logprob_body(tokens, alternatives)]
    return logprob_feeds(tokens, alternatives)


@pytest.mark.parametrize("alternatives", ALTERNATIVES)
@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_logprobs(benchmark: BenchmarkFixture, how: str, alternatives: int) -> None:
    chunks = body(how, SDK_TOKENS, alternatives)
    own, sdk = (ours_whole, sdk_whole) if how == "whole" else (ours, sdk_create)
    reads = {FOLD: own(chunks), SDK_CREATE: sdk(chunks)}
    about = {"how": how, "tokens": SDK_TOKENS, "alternatives": alternatives}
    found = together(benchmark, reads, group="logprobs", **about)
    assert set(found.values()) == {SDK_TOKENS}


@pytest.mark.parametrize("alternatives", ALTERNATIVES)
@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_many_logprobs(benchmark: BenchmarkFixture, how: str, alternatives: int) -> None:
    own = ours_whole if how == "whole" else ours
    read = own(body(how, MANY_TOKENS, alternatives))
    about = {"reader": FOLD, "how": how, "tokens": MANY_TOKENS, "alternatives": alternatives}
    assert measure(benchmark, read, group="logprobs", **about) == MANY_TOKENS


def test_logprobs_by_the_helper_of_the_sdk(benchmark: BenchmarkFixture) -> None:
    read = sdk_helper(logprob_feeds(HELPER_TOKENS, 5))
    about = {"reader": SDK_HELPER, "how": "streamed", "tokens": HELPER_TOKENS, "alternatives": 5}
    assert measure(benchmark, read, group="logprobs", **about) == HELPER_TOKENS
