"""Failures of a call as exceptions of pydantic-ai.

In: `ModelError`.  Out: `ModelHTTPError` in its category, `ModelConnectionError`,
`ModelTimeoutError` or `ModelAPIError`.

Laws: a failure inside a stream has the status that the same failure has before a stream, as in the
framework's own models. The `ModelError` with the partial message is the `__cause__`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic_ai import exceptions

from deltafold.contract.kinds import ErrorCode
from deltafold.errors.model_error import ModelError
from deltafold.errors.sdk_exceptions import documented_status

_CATEGORIES: Final[Mapping[ErrorCode, Any]] = {
    ErrorCode.AUTHENTICATION: exceptions.ModelAuthenticationError,
    ErrorCode.PERMISSION: exceptions.ModelAuthenticationError,
    ErrorCode.NOT_FOUND: exceptions.ModelNotFoundError,
    ErrorCode.INVALID_REQUEST: exceptions.ModelRequestRejectedError,
    ErrorCode.REPLAY_REFUSED: exceptions.ModelRequestRejectedError,
    ErrorCode.CONTENT_BLOCKED: exceptions.ModelRequestRejectedError,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: exceptions.ModelContextWindowExceededError,
    ErrorCode.RATE_LIMITED: exceptions.ModelRateLimitError,
    ErrorCode.QUOTA_EXCEEDED: exceptions.ModelQuotaExceededError,
    ErrorCode.OVERLOADED: exceptions.ModelOverloadedError,
    ErrorCode.SERVER_ERROR: exceptions.ModelServerError,
}
"""Category of each failure that a provider reports."""

_FIRST_REFUSAL: Final = 400


def exception_of(
    error: ModelError, model_name: str, headers: Mapping[str, str] | None = None
) -> exceptions.ModelAPIError:
    """Return the framework's exception for a failure.

    Args:
        error: the failure.
        model_name: the name of the requested model.
        headers: the headers of the response, None if there was none.
    """
    if error.code is ErrorCode.TIMEOUT:
        return exceptions.ModelTimeoutError(
            model_name, error.message, retry_after=error.retry_after
        )
    if error.code in {ErrorCode.CONNECTION_LOST, ErrorCode.CANCELLED}:
        has_begun = error.partial_message is not None and bool(error.partial_message.parts)
        return exceptions.ModelConnectionError(
            model_name, error.message, phase="read" if has_begun else None
        )
    category = _CATEGORIES.get(error.code)
    is_refusal = error.status is not None and error.status >= _FIRST_REFUSAL
    claude = error.provider_code == "overloaded_error"
    status = error.status if is_refusal else documented_status(error.code, claude=claude)
    if status is None:
        return (category or exceptions.ModelAPIError)(
            model_name,
            error.message,
            provider_error_code=error.provider_code,
            retry_after=error.retry_after,
            in_stream=not is_refusal,
        )
    return exceptions.ModelHTTPError.for_category(
        category,
        status_code=status,
        model_name=model_name,
        body=_body_of(error),
        headers=headers if is_refusal else None,
        provider_error_code=error.provider_code,
        retry_after=error.retry_after,
        in_stream=not is_refusal,
    )


def _body_of(error: ModelError) -> object:
    """Return the JSON of the response's body, else its text; in a stream the error's members."""
    if error.body is None:
        return {"message": error.message, "code": error.provider_code}
    try:
        body: object = json.loads(error.body)
    except ValueError:
        return error.body
    return body
