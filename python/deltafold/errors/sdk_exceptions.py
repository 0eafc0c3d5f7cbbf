"""Failures as the exceptions that the SDKs of openai and anthropic raise for them.

In: the facts of a failure, as `ModelError` has them.  Out: an exception of the SDK.

Laws: code that catches or retries an SDK's exceptions works unchanged. An SDK is imported for an
exception of it alone. No header of the request is in an exception, so that it holds no key.
"""

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Literal, Protocol, TypeAlias

from deltafold.contract.kinds import ErrorCode, json_object
from deltafold.transports.sdks import import_sdk

SdkName: TypeAlias = Literal["openai", "anthropic"]

SDKS: Final[tuple[SdkName, ...]] = ("openai", "anthropic")

_FIRST_REFUSAL: Final = 400
_FIRST_SERVER_STATUS: Final = 500

# Source: `_make_status_error` of openai 3.57 and anthropic 2.14. A class that an older version
# lacks is that of its group.
_BY_STATUS: Final[Mapping[int, str]] = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    409: "ConflictError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    529: "OverloadedError",
}

# Sources: docs.anthropic.com/en/api/errors; platform.openai.com/docs/guides/error-codes.
_STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.AUTHENTICATION: 401,
    ErrorCode.PERMISSION: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.REPLAY_REFUSED: 400,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: 400,
    ErrorCode.CONTENT_BLOCKED: 400,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.QUOTA_EXCEEDED: 429,
    ErrorCode.OVERLOADED: 503,
    ErrorCode.SERVER_ERROR: 500,
}

_OVERLOADED_CLAUDE: Final = 529


def sdk_of(value: object) -> SdkName | None:
    """Return the SDK that the class of an object, or a base of it, belongs to."""
    found = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    return next((package for package in SDKS if package in found), None)


class Failure(Protocol):
    """The facts of a failure, as `ModelError` and `ErrorFields` have them."""

    @property
    def code(self) -> ErrorCode: ...  # noqa: D102 - as there
    @property
    def message(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> int | None: ...  # noqa: D102
    @property
    def provider_code(self) -> str | None: ...  # noqa: D102
    @property
    def http_request_id(self) -> str | None: ...  # noqa: D102
    @property
    def retry_after(self) -> float | None: ...  # noqa: D102
    @property
    def body(self) -> str | None: ...  # noqa: D102


def sdk_cause(failure: Failure, package: SdkName, url: str, cause: Exception | None) -> Exception:
    """Return the cause of a failure as an exception of the SDK, itself caused by the given one."""
    if cause is not None and sdk_of(cause) == package:
        return cause
    made = sdk_exception(failure, package, url)
    made.__cause__ = cause
    return made


def sdk_exception(failure: Failure, package: SdkName, url: str = "") -> Exception:
    """Return a failure as the exception of an SDK; the caller sets its cause.

    Args:
        failure: the facts.
        package: the SDK.
        url: the address of the request, without secrets.

    Raises:
        MisuseError: the SDK is not installed.
    """
    sdk = import_sdk(package)
    # The SDK's own class is made of one of httpx or httpx2.
    http = import_module(sdk.DefaultHttpxClient.__base__.__module__.partition(".")[0])
    request = http.Request("POST", url)
    refused = failure.status is not None and failure.status >= _FIRST_REFUSAL
    claude = package == "anthropic"
    status = failure.status if refused else documented_status(failure.code, claude=claude)
    made: Exception
    if status is not None:
        response = http.Response(status, headers=_headers(failure, package), request=request)
        message = f"Error code: {status} - {failure.message}" if refused else failure.message
        body = _body(failure, package)
        made = _class_of(sdk, status)(message, response=response, body=body)
    elif failure.code is ErrorCode.TIMEOUT:
        made = sdk.APITimeoutError(request)
    elif failure.code is ErrorCode.CONNECTION_LOST:
        made = sdk.APIConnectionError(message=failure.message, request=request)
    else:
        made = sdk.APIError(failure.message, request, body=failure.body)
    return made


def documented_status(code: ErrorCode, *, claude: bool) -> int | None:
    """Return the HTTP status of a failure that a stream has reported after a status of 200.

    Args:
        code: the code of the failure.
        claude: whether the Messages API reported it, which has a status of its own for an overload.
    """
    return _OVERLOADED_CLAUDE if claude and code is ErrorCode.OVERLOADED else _STATUS.get(code)


def _class_of(sdk: Any, status: int) -> Any:  # noqa: ANN401 - a class of an SDK
    group = "InternalServerError" if status >= _FIRST_SERVER_STATUS else "APIStatusError"
    return getattr(sdk, _BY_STATUS.get(status, group), None) or getattr(sdk, group)


def _headers(failure: Failure, package: SdkName) -> dict[str, str]:
    headers: dict[str, str] = {}
    if failure.http_request_id is not None:
        name = "x-request-id" if package == "openai" else "request-id"
        headers[name] = failure.http_request_id
    if failure.retry_after is not None:
        headers["retry-after"] = str(failure.retry_after)
    return headers


def _body(failure: Failure, package: SdkName) -> object:
    """Return the body as the SDK does: openai takes the error out of it, anthropic leaves it."""
    body: object = None
    try:
        body = json.loads(failure.body or "null")
    except (ValueError, RecursionError):
        return failure.body
    if body is None:  # of an event, whose members the failure has
        error = {"message": failure.message, "type": failure.provider_code}
        if package == "anthropic":
            return {"type": "error", "error": error}
        return {**error, "code": failure.provider_code, "param": None}
    found = (json_object(body) or {}).get("error")
    return body if package == "anthropic" or found is None else found
