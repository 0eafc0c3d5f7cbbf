"""Failures of a call as the exceptions that the SDK's own models raise, and advice about retries.

In: `ModelError`.  Out: an exception of openai, or a `ModelBehaviorError`; `ModelRetryAdvice`.

Laws: code that catches `openai.RateLimitError` or `openai.APIConnectionError` works unchanged, and
the `__cause__` of the exception is the `ModelError`. An answer without its end is a
`ModelBehaviorError` and a `ModelError`, because the SDK has no exception of openai for it. An
answer that has begun is not safe to ask for again.
"""

import json
from typing import Final

import httpx2
import openai
from agents.exceptions import ModelBehaviorError
from agents.retry import ModelRetryAdvice, ModelRetryNormalizedError

from deltafold.compat.object_streams import member
from deltafold.compat.openai import stream_failure
from deltafold.contract.kinds import ErrorCode
from deltafold.errors.model_error import ModelError
from deltafold.integrations.failed import as_class


class DeltafoldBehaviorError(ModelError, ModelBehaviorError):
    """The answer was cut, or breaks the protocol."""


_BEHAVIOR: Final = frozenset({ErrorCode.CONNECTION_LOST, ErrorCode.PROTOCOL_ERROR})

_FIRST_ERROR_STATUS: Final = 400
_FIRST_SERVER_STATUS: Final = 500

_BY_STATUS: Final[dict[int, type[openai.APIStatusError]]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
}


def exception_of(error: ModelError) -> openai.APIError | DeltafoldBehaviorError:
    """Return a failure as the exception of the SDK; raise it from the failure.

    The request of the exception has no address, and the response has the status and the headers
    that the failure names.
    """
    if error.code in _BEHAVIOR and has_begun(error):
        return as_class(error, DeltafoldBehaviorError)
    request = httpx2.Request("POST", "")
    if error.code is ErrorCode.TIMEOUT and error.status is None:
        return openai.APITimeoutError(request)
    status = error.status
    if status is None or status < _FIRST_ERROR_STATUS:
        return stream_failure(error, request)
    other = openai.InternalServerError if status >= _FIRST_SERVER_STATUS else openai.APIStatusError
    kind = _BY_STATUS.get(status, other)
    response = httpx2.Response(status, headers=_headers(error), request=request)
    return kind(f"Error code: {status} - {error.message}", response=response, body=_body(error))


def model_error_of(error: BaseException) -> ModelError | None:
    """Return the failure behind an exception; None for exceptions of others."""
    for one in (error, error.__cause__):
        if isinstance(one, ModelError):
            return one
    return None


def _headers(error: ModelError) -> dict[str, str]:
    headers: dict[str, str] = {}
    if error.http_request_id is not None:
        headers["x-request-id"] = error.http_request_id
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    return headers


def _body(error: ModelError) -> object:
    """Return the error object in the body of a response, as the SDK does."""
    try:
        body: object = json.loads(error.body or "null")
    except ValueError:
        return error.body
    failure = member(body, "error")
    return body if failure is None else failure


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
