"""A refused response is the same error, whichever way its body came in."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest

import deltafold
from deltafold import ErrorCode, ModelError, OpenAIChatModel
from deltafold.errors.mapper import RETRYABLE, ErrorMapper
from deltafold.testing import Recording, ReplayServer
from refusals import REFUSALS, Refusal

CHAT: Final = "openai-chat"
MESSAGES = [{"role": "user", "content": "hi"}]
NAMED = [pytest.param(row, id=f"{row.vendor}-{row.status}-{row.code}") for row in REFUSALS]


def fields(error: Any) -> tuple[object, ...]:  # noqa: ANN401 - a ModelError or ErrorFields
    """Return everything that a caller acts on."""
    return (
        str(error.code),
        error.message,
        error.retryable,
        error.retry_after,
        error.status,
        error.provider_code,
        error.http_request_id,
    )


def expected(row: Refusal) -> tuple[object, ...]:
    retryable = RETRYABLE[ErrorCode(row.code)] if row.retryable is None else row.retryable
    return (
        row.code,
        row.message,
        retryable,
        row.retry_after,
        row.status,
        row.provider_code,
        row.request_id,
    )


def headers_of(row: Refusal) -> dict[str, str]:
    return {"content-type": "application/json", **row.headers}


@pytest.fixture(scope="module")
def server() -> Iterator[ReplayServer]:
    recordings = {
        f"/{position}/*": Recording(
            ((0.0, row.body.encode()),) if row.body else (), row.status, headers_of(row)
        )
        for position, row in enumerate(REFUSALS)
    }
    with ReplayServer(recordings, flat_out=True) as replay:
        yield replay


@pytest.fixture
def url(server: ReplayServer, row: Refusal) -> str:
    return f"{server.url}/{REFUSALS.index(row)}"


def refused(call: Callable[[], object]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call()
    return caught.value


def test_the_table_has_sixty_bodies_of_twelve_vendors() -> None:
    assert len(REFUSALS) >= 60
    assert len({row.vendor for row in REFUSALS}) >= 12


@pytest.mark.parametrize("row", NAMED)
def test_a_whole_body_is_folded_to_the_error(row: Refusal) -> None:
    body, headers = row.body.encode(), headers_of(row)
    error = refused(lambda: deltafold.fold(body, CHAT, status=row.status, headers=headers))
    assert fields(error) == expected(row)


def test_the_body_of_a_refusal_is_read_and_kept_up_to_its_bounds() -> None:
    piece = b"x" * 4096
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        yield b'{"error":{"message":"no"},"rest":"'
        while True:
            taken += len(piece)
            yield piece

    error = refused(deltafold.stream(endless(), CHAT, status=500).final_message)
    assert error.status == 500
    assert 256 << 10 <= taken <= (256 << 10) + len(piece)
    assert len(error.body or "") == 65_536


def test_a_date_is_read_against_the_clock_of_the_stream() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    given: dict[str, Any] = {
        "status": 429,
        "headers": {"retry-after": "Fri, 02 Jan 2026 03:05:35 GMT"},
        "clock": lambda: now,
    }
    stream = deltafold.stream(iter([b"{}"]), CHAT, **given)
    for call in (stream.final_message, lambda: deltafold.fold(b"{}", CHAT, **given)):
        assert refused(call).retry_after == 90.0


@pytest.mark.parametrize("row", NAMED)
def test_the_error_does_not_depend_on_the_dialect_or_on_the_chunks(row: Refusal) -> None:
    body = row.body.encode()
    for dialect in deltafold.dialect_names():
        folding = deltafold.Fold(dialect, status=row.status, headers=headers_of(row))
        for at in range(0, len(body), 7):
            folding.feed(body[at : at + 7])
        folding.close()
        assert fields(refused(folding.assembler.build_final_message)) == expected(row)


@pytest.mark.parametrize("row", NAMED)
def test_a_stream_over_http_ends_in_the_error(row: Refusal, url: str) -> None:
    with (
        httpx.Client() as client,
        client.stream("POST", f"{url}/x") as response,
        deltafold.stream(response, CHAT) as stream,
    ):
        error = refused(stream.final_message)
    assert fields(error) == expected(row)


@pytest.mark.parametrize("row", NAMED)
def test_a_model_on_httpx2_raises_the_error(row: Refusal, url: str) -> None:
    with httpx2.Client() as client:
        model = OpenAIChatModel({"model_id": "m"}, client=client, base_url=url, api_key="key")
        error = refused(lambda: model.send_message_sync("hi"))
    assert fields(error) == expected(row)


@pytest.mark.parametrize("row", NAMED)
def test_a_model_on_aiohttp_raises_the_error(row: Refusal, url: str) -> None:
    async def call() -> None:
        async with aiohttp.ClientSession() as session:
            model = OpenAIChatModel({"model_id": "m"}, client=session, base_url=url, api_key="key")
            with pytest.raises(ModelError) as caught:
                await model.send_message("hi")
            assert fields(caught.value) == expected(row)

    asyncio.run(call())


@pytest.mark.parametrize("row", NAMED)
def test_an_exception_of_an_sdk_is_mapped_to_the_error(row: Refusal, url: str) -> None:
    with (
        openai.OpenAI(base_url=url, api_key="key", max_retries=0) as client,
        pytest.raises(openai.APIStatusError) as caught,
    ):
        client.chat.completions.create(model="m", messages=MESSAGES)  # type: ignore[arg-type]
    assert fields(ErrorMapper().map(caught.value)) == expected(row)
    with (
        anthropic.Anthropic(base_url=url, api_key="key", max_retries=0) as other,
        pytest.raises(anthropic.APIStatusError) as refusal,
    ):
        other.messages.create(model="m", messages=MESSAGES, max_tokens=1)  # type: ignore[arg-type]
    assert fields(ErrorMapper().map(refusal.value)) == expected(row)
