"""Retries of requests that failed before anything was received.

In: how often a request may be sent again.  Out: the attempts, by tenacity, which langchain-core
brings.

Laws: the wait is the one that the provider names, otherwise a random one that grows up to
eight seconds. An answer that has begun is never asked for again: its reader has seen a part of it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
)
from tenacity.wait import wait_random_exponential

from deltafold.errors.model_error import ModelError
from deltafold.integrations.langchain.failures import exception_of

_GROWING = wait_random_exponential(multiplier=0.5, max=8)


def attempts(max_retries: int) -> Retrying:
    """Return the attempts of a synchronous request."""
    return Retrying(**_policy(max_retries))


def async_attempts(max_retries: int) -> AsyncRetrying:
    """Return the attempts of an asynchronous request."""
    return AsyncRetrying(**_policy(max_retries))


def _policy(max_retries: int) -> dict[str, Any]:
    return {
        "retry": retry_if_exception(_is_worth_another),
        "stop": stop_after_attempt(max_retries + 1),
        "wait": _wait,
        "reraise": True,
    }


def _is_worth_another(failure: BaseException) -> bool:
    if not isinstance(failure, ModelError) or not failure.retryable:
        return False
    return not (failure.partial_message and failure.partial_message.parts)


def _wait(state: RetryCallState) -> float:
    failure = None if state.outcome is None else state.outcome.exception()
    named = failure.retry_after if isinstance(failure, ModelError) else None
    return _GROWING(state) if named is None else named


@contextmanager
def framework_errors() -> Generator[None]:
    """Raise failures as the exceptions of langchain-core."""
    try:
        yield
    except ModelError as error:
        raise exception_of(error) from error
