"""Failures of a call as exceptions of openai-agents, and advice about another try.

In: `ModelError`.  Out: the same error, which is also an exception of the SDK; `ModelRetryAdvice`.

Laws: an answer without its end is a `ModelBehaviorError`, as the SDK calls an answer that it cannot
use. An answer that has begun is not safe to ask for again.
"""

from typing import Final

from agents.exceptions import AgentsException, ModelBehaviorError
from agents.retry import ModelRetryAdvice, ModelRetryNormalizedError

from deltafold.contract import ErrorCode
from deltafold.errors import ModelError
from deltafold.integrations.failed import as_class


class DeltafoldAgentsError(ModelError, AgentsException):
    """The provider refused the request, or failed."""


class DeltafoldBehaviorError(ModelError, ModelBehaviorError):
    """The answer was cut, or breaks the protocol."""


_BEHAVIOR: Final = frozenset({ErrorCode.CONNECTION_LOST, ErrorCode.PROTOCOL_ERROR})


def exception_of(error: ModelError) -> ModelError:
    """Return a failure as the exception of the SDK."""
    is_behavior = error.code in _BEHAVIOR and has_begun(error)
    kind = DeltafoldBehaviorError if is_behavior else DeltafoldAgentsError
    return as_class(error, kind)


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
