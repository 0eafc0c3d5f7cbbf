"""Failures of a call as the exceptions that the SDK's own models raise, and advice about retries.

In: `ModelError`.  Out: an exception of openai, or a `ModelBehaviorError`; `ModelRetryAdvice`.

Laws: code that catches `openai.RateLimitError` or `openai.APIConnectionError` works unchanged, and
the `__cause__` of the exception is the `ModelError`. An answer without its end is a
`ModelBehaviorError` and a `ModelError`, because the SDK has no exception of openai for it. An
answer that has begun is not safe to ask for again.
"""

from typing import Final, cast

import openai
from agents.exceptions import ModelBehaviorError
from agents.retry import ModelRetryAdvice, ModelRetryNormalizedError

from deltafold.contract.kinds import ErrorCode
from deltafold.errors.model_error import ModelError
from deltafold.errors.sdk_exceptions import sdk_exception
from deltafold.integrations.failed import as_class


class DeltafoldBehaviorError(ModelError, ModelBehaviorError):
    """The answer was cut, or breaks the protocol."""


_BEHAVIOR: Final = frozenset({ErrorCode.CONNECTION_LOST, ErrorCode.PROTOCOL_ERROR})


def exception_of(error: ModelError) -> openai.APIError | DeltafoldBehaviorError:
    """Return a failure as the exception of the SDK; raise it from the failure.

    The request of the exception has no address, and the response has the status and the headers
    that the failure names.
    """
    if error.code in _BEHAVIOR and has_begun(error):
        return as_class(error, DeltafoldBehaviorError)
    return cast("openai.APIError", sdk_exception(error, "openai"))


def model_error_of(error: BaseException) -> ModelError | None:
    """Return the failure behind an exception; None for exceptions of others."""
    for one in (error, error.__cause__):
        if isinstance(one, ModelError):
            return one
    return None


def has_begun(error: ModelError) -> bool:
    """Return whether a part of the answer was received."""
    return error.partial_message is not None and bool(error.partial_message.parts)


def advice_of(error: ModelError) -> ModelRetryAdvice:
    """Return the advice for the SDK's retry policies."""
    started = has_begun(error)
    normalized = ModelRetryNormalizedError(
        status_code=error.status,
        error_code=error.provider_code or error.code.value,
        message=error.message,
        request_id=error.http_request_id,
        retry_after=error.retry_after,
        is_network_error=error.code is ErrorCode.CONNECTION_LOST,
        is_timeout=error.code is ErrorCode.TIMEOUT,
    )
    return ModelRetryAdvice(
        suggested=error.retryable,
        retry_after=error.retry_after,
        replay_safety="unsafe" if started else "safe",
        reason=str(error),
        normalized=normalized,
        response_started=started,
    )
