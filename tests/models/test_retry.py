"""The recipe for retries: deltafold classifies the failure, tenacity decides on the next call."""

from collections.abc import Iterator
from typing import Any

import pytest
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_base, wait_exponential_jitter

from deltafold import ErrorCode, Message, ModelError, OpenAIChatModel
from deltafold.testing import Recording, ReplayServer
from wires import CHAT


# The recipe of docs/models.md.
class wait_as_told(wait_base):  # noqa: N801 - named as tenacity names its own
    """Waits as long as the provider asks, else as `fallback` says."""

    def __init__(self, fallback: wait_base) -> None:
        self.fallback = fallback

    def __call__(self, retry_state: RetryCallState) -> float:
        failure = retry_state.outcome.exception() if retry_state.outcome else None
        told = failure.retry_after if isinstance(failure, ModelError) else None
        return self.fallback(retry_state) if told is None else told


def worth_another_try(failure: BaseException) -> bool:
    return (
        isinstance(failure, ModelError)
        and failure.retryable
        # Text that a reader has already seen cannot be withdrawn.
        and not (failure.partial_message and failure.partial_message.parts)
    )


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer({"/chat/completions": Recording.of_events(CHAT)}) as replay:
        yield replay


def ask(server: ReplayServer, waits: list[float]) -> Message:
    retrying = Retrying(
        retry=retry_if_exception(worth_another_try),
        wait=wait_as_told(wait_exponential_jitter(max=60)),
        stop=stop_after_attempt(3),
        sleep=waits.append,
        reraise=True,
    )
    with OpenAIChatModel({"model_id": "m"}, base_url=server.url, api_key="k") as model:
        message: Message = retrying(model.send_message_sync, "Hello")
        return message


def refusal(status: int, **headers: str) -> Recording:
    return Recording.error(status, {"error": {"message": "no"}}, headers)


def test_a_busy_provider_is_asked_again_after_the_time_it_named(server: ReplayServer) -> None:
    waits: list[float] = []
    server.queue(refusal(429, **{"retry-after": "7"}), refusal(503))
    message = ask(server, waits)
    assert message.text
    assert waits[0] == 7.0
    assert 1.0 <= waits[1] <= 60.0


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_will_not_get_better_is_not_asked_again(status: int, server: ReplayServer) -> None:
    server.queue(refusal(status))
    with pytest.raises(ModelError):
        ask(server, [])
    assert len(server.requests) == 1


def test_the_last_failure_is_raised(server: ReplayServer) -> None:
    server.queue(*[refusal(500)] * 3)
    with pytest.raises(ModelError) as raised:
        ask(server, [])
    assert raised.value.code is ErrorCode.SERVER_ERROR
    assert len(server.requests) == 3


def test_an_answer_that_broke_off_after_text_is_not_asked_again(server: ReplayServer) -> None:
    server.queue(Recording.of_events(CHAT).stopping("cut", len(CHAT) // 2))
    with pytest.raises(ModelError) as raised:
        ask(server, [])
    assert raised.value.code is ErrorCode.CONNECTION_LOST
    partial: Any = raised.value.partial_message
    assert partial.parts
    assert len(server.requests) == 1
