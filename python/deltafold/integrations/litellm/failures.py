"""Failures of a call as exceptions of litellm.

In: `ModelError`.  Out: the exception of litellm in its category.

Laws: the categories are those in which litellm retries, cools down and falls back. The `ModelError`
with the partial message is the `__cause__`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx
from litellm import exceptions

from deltafold.contract.kinds import ErrorCode
from deltafold.errors.model_error import ModelError

PROVIDER: Final = "deltafold"

_CLASSES: Final[Mapping[ErrorCode, Callable[..., Exception]]] = {
    ErrorCode.AUTHENTICATION: exceptions.AuthenticationError,
    ErrorCode.NOT_FOUND: exceptions.NotFoundError,
    ErrorCode.INVALID_REQUEST: exceptions.BadRequestError,
    ErrorCode.REPLAY_REFUSED: exceptions.BadRequestError,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: exceptions.ContextWindowExceededError,
    ErrorCode.CONTENT_BLOCKED: exceptions.ContentPolicyViolationError,
    ErrorCode.RATE_LIMITED: exceptions.RateLimitError,
    ErrorCode.QUOTA_EXCEEDED: exceptions.RateLimitError,
    ErrorCode.OVERLOADED: exceptions.ServiceUnavailableError,
    ErrorCode.SERVER_ERROR: exceptions.InternalServerError,
    ErrorCode.TIMEOUT: exceptions.Timeout,
    ErrorCode.CONNECTION_LOST: exceptions.APIConnectionError,
}

_SERVER_ERROR: Final = 500


def exception_of(error: ModelError, model: str) -> Exception:
    """Return the exception of litellm for a failure.

    Args:
        error: the failure.
        model: the name of the requested model.
    """
    facts: dict[str, Any] = {"message": str(error), "llm_provider": PROVIDER, "model": model}
    if error.code is ErrorCode.PERMISSION:
        # litellm requires the response of this exception.
        request = httpx.Request("POST", f"https://{PROVIDER}")
        response = httpx.Response(error.status or 403, request=request)
        return exceptions.PermissionDeniedError(response=response, **facts)
    kind = _CLASSES.get(error.code)
    if kind is None:
        return exceptions.APIError(status_code=error.status or _SERVER_ERROR, **facts)
    return kind(**facts)
