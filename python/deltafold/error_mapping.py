"""Anybody's failure becomes one error code, with what is needed to decide what to do next.

In: an exception of an SDK or HTTP client, or the status, headers and body of a response.  Out:
`ErrorFields`.

Laws: `ErrorCode` is a closed list. Evidence, most specific first: a named code (`error.code`,
`details.error_code`, an exception's name), then `error.type` or `error.status`, then a numeric
`error.code` read as an HTTP status, then the HTTP status itself, then phrases of the message, which
decide only between an invalid request, a context that is too long and an overload. Nothing is
imported to recognise an exception: attributes and class names decide. `x-should-retry` overrides
`retryable`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final, cast

from deltafold.contract import ErrorCode, json_array, json_object
from deltafold.error_bodies import as_json, error_object, parse_body, shown_body
from deltafold.error_causes import UNTRUSTED, NoConnection, address_of, causes, no_connection
from deltafold.foreign_text import well_formed
from deltafold.retry_after import retry_after_seconds

RETRYABLE: Final[Mapping[ErrorCode, bool]] = {
    ErrorCode.AUTHENTICATION: False,
    ErrorCode.PERMISSION: False,
    ErrorCode.NOT_FOUND: False,
    ErrorCode.INVALID_REQUEST: False,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: False,
    ErrorCode.RATE_LIMITED: True,
    ErrorCode.QUOTA_EXCEEDED: False,
    ErrorCode.OVERLOADED: True,
    ErrorCode.SERVER_ERROR: True,
    ErrorCode.TIMEOUT: True,
    ErrorCode.CONNECTION_LOST: True,
    ErrorCode.CONTENT_BLOCKED: False,
    ErrorCode.PROTOCOL_ERROR: False,
    ErrorCode.CANCELLED: False,
}
"""Whether the same request may succeed later, where nothing more specific is known."""

_STATUS_CODES: Final[Mapping[int, ErrorCode]] = {
    400: ErrorCode.INVALID_REQUEST,
    401: ErrorCode.AUTHENTICATION,
    402: ErrorCode.QUOTA_EXCEEDED,
    403: ErrorCode.PERMISSION,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.INVALID_REQUEST,
    408: ErrorCode.TIMEOUT,
    409: ErrorCode.SERVER_ERROR,
    413: ErrorCode.INVALID_REQUEST,
    415: ErrorCode.INVALID_REQUEST,
    422: ErrorCode.INVALID_REQUEST,
    424: ErrorCode.SERVER_ERROR,
    429: ErrorCode.RATE_LIMITED,
    451: ErrorCode.PERMISSION,
    498: ErrorCode.AUTHENTICATION,  # Cohere: invalid token
    499: ErrorCode.CANCELLED,
    501: ErrorCode.INVALID_REQUEST,
    503: ErrorCode.OVERLOADED,
    504: ErrorCode.TIMEOUT,
    529: ErrorCode.OVERLOADED,
}

_NAMES: Final[Mapping[ErrorCode, tuple[str, ...]]] = {
    ErrorCode.AUTHENTICATION: (
        "authentication_error",
        "invalid_api_key",
        "UNAUTHENTICATED",
        "API_KEY_INVALID",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "ExpiredTokenException",
        "NoCredentialsError",
    ),
    ErrorCode.PERMISSION: ("permission_error", "PERMISSION_DENIED", "AccessDeniedException"),
    ErrorCode.NOT_FOUND: (
        "not_found_error",
        "model_not_found",
        "NOT_FOUND",
        "ResourceNotFoundException",
    ),
    ErrorCode.INVALID_REQUEST: (
        "invalid_request_error",
        "INVALID_ARGUMENT",
        "FAILED_PRECONDITION",
        "ValidationException",
        "request_too_large",
        "tool_use_failed",
    ),
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: (
        "context_length_exceeded",
        "exceed_context_size_error",
        "exceeds_context_size_error",
    ),
    ErrorCode.RATE_LIMITED: (
        "rate_limit_error",
        "rate_limit_exceeded",
        "ThrottlingException",
        "RESOURCE_EXHAUSTED",
        "ramp_limit_exceeded",
    ),
    ErrorCode.QUOTA_EXCEEDED: (
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "credit_balance_exhausted",
        "organization_usage_limit_exceeded",
        "exceeded_current_quota_error",
        "ServiceQuotaExceededException",
    ),
    ErrorCode.OVERLOADED: (
        "overloaded_error",
        "overloaded",
        "server_is_overloaded",
        "UNAVAILABLE",
        "ServiceUnavailableException",
        "ModelNotReadyException",
        "insufficient_system_resource",
    ),
    ErrorCode.SERVER_ERROR: (
        "api_error",
        "server_error",
        "INTERNAL",
        "internalServerException",
        "ModelStreamErrorException",
        "ModelErrorException",
        "conflict_error",
    ),
    ErrorCode.TIMEOUT: ("timeout_error", "DEADLINE_EXCEEDED", "ModelTimeoutException"),
    ErrorCode.CONTENT_BLOCKED: ("content_filter", "content_policy_violation"),
    ErrorCode.CANCELLED: ("CANCELLED",),
}
_CODE_OF_NAME: Final[Mapping[str, ErrorCode]] = {
    name.lower(): code for code, names in _NAMES.items() for name in names
}
_CODE_OF_PATTERN: Final = (
    (re.compile(r"(^|_)spend_limit(_|$)"), ErrorCode.QUOTA_EXCEEDED),
    (re.compile(r"_policy(_|$)"), ErrorCode.CONTENT_BLOCKED),
)
_UNSPECIFIC: Final = frozenset({ErrorCode.INVALID_REQUEST, ErrorCode.SERVER_ERROR})
"""Codes that a phrase of the message may still make more specific."""

_CONTEXT_PHRASES: Final = (
    "prompt is too long",
    "maximum context length",
    "input is too long",
    "exceeds the available context size",
    "reduce the length of the messages",
)

# Names of exception classes, looked for along the whole inheritance, timeouts first: most SDKs
# derive theirs from their connection error.
_CODE_OF_CLASS: Final[tuple[tuple[ErrorCode, frozenset[str]], ...]] = (
    (
        ErrorCode.CANCELLED,
        frozenset({"CancelledError", "Cancelled", "GeneratorExit", "KeyboardInterrupt"}),
    ),
    (
        ErrorCode.TIMEOUT,
        frozenset(
            {
                "APITimeoutError",
                "TimeoutException",
                "ReadTimeoutError",
                "ConnectTimeoutError",
                "TimeoutError",
                "Timeout",
            }
        ),
    ),
    (
        ErrorCode.PROTOCOL_ERROR,
        frozenset(
            {
                "DecodingError",
                "ContentDecodingError",
                "DecodeError",
                "ContentEncodingError",
                "ProtocolViolationError",
                "RedirectError",
            }
        ),
    ),
    (
        ErrorCode.INVALID_REQUEST,
        frozenset({"LocalProtocolError", "UnsupportedProtocol", "InvalidURL", "TooManyRedirects"}),
    ),
    (
        ErrorCode.CONNECTION_LOST,
        frozenset(
            {
                "APIConnectionError",
                "TransportError",
                "ClientConnectionError",
                "ClientPayloadError",
                "ServerDisconnectedError",
                "ConnectionError",
                "ConnectionClosedError",
                "HTTPClientError",
                "HttpProcessingError",
                "IncompleteRead",
                "ProtocolError",
                "SSLError",
                "gaierror",
            }
        ),
    ),
)

_REQUEST_ID_HEADERS: Final = (
    "request-id",
    "x-request-id",
    "x-amzn-requestid",
    "apim-request-id",
    "x-goog-request-id",
)

_MAX_CODE_BITS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFields:
    """What is known of one failure.

    `retry_after` is in seconds; `provider_code` is the provider's own most specific word; `body` is
    the beginning of the response's body, as text. The texts are made well-formed: each lone
    surrogate becomes U+FFFD.
    """

    code: ErrorCode
    message: str
    retryable: bool
    retry_after: float | None = None
    status: int | None = None
    provider_code: str | None = None
    http_request_id: str | None = None
    body: str | None = None

    def __post_init__(self) -> None:
        """Make the texts well-formed; the extension refuses lone surrogates."""
        for name in ("message", "provider_code", "http_request_id", "body"):
            text = cast("str | None", getattr(self, name))
            if text is not None:
                object.__setattr__(self, name, well_formed(text))


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ErrorMapper:
    """Maps exceptions and error responses to `ErrorFields`.

    Subclass it to teach a Model about a gateway's own errors.
    """

    def __init__(self, *, clock: Callable[[], datetime] = _utc_now) -> None:
        """Take the clock against which HTTP dates are read."""
        self._clock: Callable[[], datetime] = clock

    def map(self, exception: BaseException) -> ErrorFields:
        """Say what an exception of an SDK or HTTP client means.

        An exception with an HTTP status or an error body is mapped as that response, any other by
        the names of its classes. One that carries no evidence at all is `server_error`, not
        retryable: nothing says that another try would go better.
        """
        status = _status_of(exception)
        headers = _headers_of(exception)
        body = _body_of(exception)
        message = _text(getattr(exception, "message", None)) or _said_by(exception)
        if status is not None or error_object(body) is not None:
            fields = self.map_response(status, headers, body, message=message)
            request_id = _text(getattr(exception, "request_id", None))
            if fields.http_request_id is None and request_id is not None:
                return replace(fields, http_request_id=request_id)
            return fields
        name = type(exception).__name__
        code = _code_of_name(name) or _code_of_classes(exception)
        fields = ErrorFields(
            code=code or ErrorCode.SERVER_ERROR,
            message=message or name,
            retryable=False if code is None else RETRYABLE[code],
            provider_code=name,
            http_request_id=_text(getattr(exception, "request_id", None)),
        )
        if code not in {None, ErrorCode.CONNECTION_LOST}:
            return fields
        found = no_connection(exception, implicit=code is not None)
        return fields if found is None else _of_no_connection(fields, found, exception)

    def map_response(
        self,
        status: int | None,
        headers: Mapping[str, str] | None = None,
        body: object = None,
        *,
        message: str = "",
    ) -> ErrorFields:
        """Say what an HTTP error response means.

        `body` is the body as bytes, text or parsed JSON; `message` stands in where the body has
        none.
        """
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        document = parse_body(body)
        error = error_object(document) or {}
        names = list(_names_in(error, lowered.get("x-amzn-errortype")))
        text = _message_in(error) or _plain_text(document) or _plain_text(message) or ""
        code = _decide(names, error, status, text)
        retryable = RETRYABLE[code]
        should_retry = lowered.get("x-should-retry", "").strip().lower()
        if should_retry in {"true", "false"}:
            retryable = should_retry == "true"
        return ErrorFields(
            code=code,
            message=text or (f"HTTP {status}" if status is not None else str(code)),
            retryable=retryable,
            retry_after=retry_after_seconds(
                lowered, error, text, now=self._clock(), limited=code is ErrorCode.RATE_LIMITED
            ),
            status=status,
            provider_code=names[0] if names else _number_text(error.get("code")),
            http_request_id=_request_id(lowered, document),
            body=shown_body(body),
        )


def _decide(
    names: list[str], error: Mapping[str, object], status: int | None, message: str
) -> ErrorCode:
    """Weigh the evidence in the order of the module's laws."""
    code = _refine_by_details(error, next(filter(None, map(_code_of_name, names)), None))
    if code is None:
        statuses = (_http_status(error.get("code")), status)
        failed = (one for one in statuses if one is not None and one >= HTTPStatus.BAD_REQUEST)
        code = next(map(_code_of_status, failed), ErrorCode.SERVER_ERROR)
    return _refine_by_phrase(message, code) if code in _UNSPECIFIC else code


def _refine_by_details(error: Mapping[str, object], code: ErrorCode | None) -> ErrorCode | None:
    """Look where two providers keep the one fact that changes the meaning of their general code."""
    if code is ErrorCode.RATE_LIMITED and _has_daily_quota(error.get("details")):
        return (
            ErrorCode.QUOTA_EXCEEDED
        )  # Gemini: a per-day quota does not come back by waiting a moment
    metadata = json_object(error.get("metadata")) or {}
    forbidden = _http_status(error.get("code")) == HTTPStatus.FORBIDDEN
    if forbidden and ("reasons" in metadata or "flagged_input" in metadata):
        return ErrorCode.CONTENT_BLOCKED  # OpenRouter: 403 with what moderation found
    return code


def _has_daily_quota(details: object) -> bool:
    found = (json_object(detail) or {} for detail in json_array(details))
    violations = [json_array(detail.get("violations")) for detail in found]
    return "perday" in as_json(violations).lower()


def _code_of_name(name: str) -> ErrorCode | None:
    lowered = name.lower()
    known = _CODE_OF_NAME.get(lowered)
    if known is not None:
        return known
    return next((code for pattern, code in _CODE_OF_PATTERN if pattern.search(lowered)), None)


def _code_of_status(status: int) -> ErrorCode:
    known = _STATUS_CODES.get(status)
    if known is not None:
        return known
    return (
        ErrorCode.INVALID_REQUEST
        if status < HTTPStatus.INTERNAL_SERVER_ERROR
        else ErrorCode.SERVER_ERROR
    )


def _refine_by_phrase(message: str, code: ErrorCode) -> ErrorCode:
    lowered = message.lower()
    if any(phrase in lowered for phrase in _CONTEXT_PHRASES):
        return ErrorCode.CONTEXT_LENGTH_EXCEEDED
    if code is ErrorCode.SERVER_ERROR and "overloaded" in lowered:
        return ErrorCode.OVERLOADED
    return code


def _code_of_classes(exception: BaseException) -> ErrorCode | None:
    found: ErrorCode | None = None
    for cause in causes(exception, implicit=False):
        names = {cls.__name__ for cls in type(cause).__mro__}
        code = next((code for code, known in _CODE_OF_CLASS if names & known), None)
        if code is ErrorCode.CANCELLED and cause is not exception:
            break
        found = code or found
        # Clients wrap the exceptions of their libraries: aiohttp reports a body with a wrong
        # content encoding as a lost payload. A cause may refine the code, except to `cancelled`.
        if found not in {None, ErrorCode.CONNECTION_LOST}:
            break
    return found


def _said_by(exception: BaseException) -> str:
    """Return the first text in the chain of causes: exceptions of httpx often have none."""
    return next((text for text in map(str, causes(exception)) if text), "")


def _of_no_connection(
    fields: ErrorFields, found: NoConnection, exception: BaseException
) -> ErrorFields:
    """Add the reason and the host to the failure of a connection that was not made."""
    message = fields.message
    if found.text and found.text not in message:
        message = f"{message.rstrip('.')}: {found.text}"
    address = address_of(exception)
    if address is not None and address not in message:
        message = f"{message} ({address})"
    return replace(
        fields,
        code=ErrorCode.CONNECTION_LOST,
        message=message,
        # A host name or a port may be back in a moment; a later try finds the same certificate.
        retryable=found.reason != UNTRUSTED,
        provider_code=found.reason,
    )


def _names_in(error: Mapping[str, object], aws_header: str | None) -> Iterator[str]:
    """Yield the words that name the failure, most specific first."""
    details = error.get("details")
    yield from _words((json_object(details) or {}).get("error_code"))
    for detail in json_array(details):  # Gemini: google.rpc.ErrorInfo
        yield from _words((json_object(detail) or {}).get("reason"))
    for member in ("code", "Code", "type", "status"):
        yield from _words(error.get(member))
    if aws_header is not None:
        yield from _words(aws_header.partition(":")[0])


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str) and value and not value.isdigit():
        yield value


def _message_in(error: Mapping[str, object]) -> str | None:
    members = ("message", "Message", "detail", "error")
    return next(filter(None, (_text(error.get(member)) for member in members)), None)


def _plain_text(document: object) -> str | None:
    """Return a body that is no JSON, unless it is a page: markup says nothing to a reader."""
    if not isinstance(document, str) or document.lstrip().startswith("<"):
        return None
    return document.strip() or None


def _request_id(headers: Mapping[str, str], document: object) -> str | None:
    for name in _REQUEST_ID_HEADERS:
        if headers.get(name):
            return headers[name]
    return _text((json_object(document) or {}).get("request_id"))


def _status_of(exception: BaseException) -> int | None:
    if type(exception.__cause__).__name__ == "HttpProcessingError":
        return None  # aiohttp, of an answer that is no HTTP: its 400 came from nobody
    response: object = getattr(exception, "response", None)
    candidates: tuple[object, ...] = (
        getattr(exception, "status_code", None),
        getattr(response, "status_code", None),
        _boto_metadata(response).get("HTTPStatusCode"),
        getattr(exception, "status", None),
        getattr(exception, "code", None),
    )
    return next(filter(None, map(_http_status, candidates)), None)


def _headers_of(exception: BaseException) -> Mapping[str, str] | None:
    response: object = getattr(exception, "response", None)
    candidates: tuple[object, ...] = (
        getattr(response, "headers", None),
        _boto_metadata(response).get("HTTPHeaders"),
        getattr(exception, "headers", None),
    )
    for headers in filter(None, map(json_object, candidates)):
        return {str(name): str(value) for name, value in headers.items()}
    return None


def _boto_metadata(response: object) -> Mapping[str, object]:
    """Find what botocore keeps of the HTTP response inside its exceptions."""
    return json_object((json_object(response) or {}).get("ResponseMetadata")) or {}


def _body_of(exception: BaseException) -> object:
    candidates: tuple[object, ...] = (
        getattr(exception, "body", None),
        getattr(exception, "details", None),  # google-genai keeps the whole body there
        getattr(exception, "response", None),  # botocore keeps a mapping there
    )
    for candidate in candidates:
        if isinstance(candidate, (str, bytes)) and candidate:
            return parse_body(candidate)
        if error_object(candidate) is not None:
            return candidate
    return None


def _http_status(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == len("200"):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value in range(100, 600):
        return value
    return None


def _number_text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    # Longer integers are ignored; `str` raises for one of 4,301 digits.
    short = isinstance(value, int) and value.bit_length() <= _MAX_CODE_BITS
    return str(value) if short else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
