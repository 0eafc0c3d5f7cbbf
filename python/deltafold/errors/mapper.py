"""Exceptions and refused HTTP responses → `ErrorFields`: an error code and further facts.

In: an exception of an SDK or HTTP client, or the status, headers and body of a response.  Out:
`ErrorFields`.

Laws: `ErrorCode` is a closed list. The core classifies a response (`_core.classify_refusal`) by the
same rules as a body in a decoder. This module adds only facts that the class of an exception
states. An SDK or client is never imported to recognise its exceptions: attributes and class names
decide.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, cast

from deltafold import _core
from deltafold.contract.foreign_text import well_formed
from deltafold.contract.kinds import ErrorCode, json_array, json_object
from deltafold.errors.causes import (
    NO_TLS,
    UNTRUSTED,
    NoConnection,
    address_of,
    causes,
    no_connection,
)

RETRYABLE: Final[Mapping[ErrorCode, bool]] = {
    ErrorCode.AUTHENTICATION: False,
    ErrorCode.PERMISSION: False,
    ErrorCode.NOT_FOUND: False,
    ErrorCode.INVALID_REQUEST: False,
    ErrorCode.REPLAY_REFUSED: False,
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
"""Whether a repeated request may succeed, if nothing more specific is known."""

# Names of exception classes, looked for along the whole inheritance, timeouts before connection
# errors: most SDKs derive the former from the latter.
_CODE_OF_CLASS: Final[tuple[tuple[ErrorCode, frozenset[str]], ...]] = (
    (ErrorCode.AUTHENTICATION, frozenset({"NoCredentialsError"})),
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

_MAX_BODY_CHARACTERS: Final = 64 * 1024
"""Limit of `ErrorFields.body`; real ones (moderation details, echoed schemas) need a quarter."""

_MAX_DEPTH: Final = 16
"""Limit of nested values in a parsed body that JSON cannot hold whole."""

_MAX_CODE_BITS: Final = 64
"""Limit of an integer in such a body; `str` raises for one of 4,301 digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFields:
    """Facts about one failure.

    `retry_after` is in seconds. `provider_code` is the most specific code of the provider. `body`
    is the beginning of the response's body, as text. The texts are well-formed: each lone surrogate
    becomes U+FFFD.
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

    >>> fields = ErrorMapper().map_response(429, {"retry-after": "7"}, b"")
    >>> fields.code.value, fields.retryable, fields.retry_after
    ('rate_limited', True, 7.0)
    """

    def __init__(self, *, clock: Callable[[], datetime] = _utc_now) -> None:
        """Take the clock against which HTTP dates are read."""
        self._clock: Callable[[], datetime] = clock

    def map(self, exception: BaseException) -> ErrorFields:
        """Classify an exception of an SDK or HTTP client.

        An exception with an HTTP status or an error body is classified as that response, any other
        by the names of its classes. An exception without any evidence is `server_error`, not
        retryable: nothing suggests that another try would succeed.
        """
        status = _status_of(exception)
        body = _body_of(exception)
        message = _text(getattr(exception, "message", None)) or _first_text(exception)
        if status is not None or body is not None:
            words = message if body is None else ""
            fields = self.map_response(status, _headers_of(exception), body, message=words)
            request_id = _text(getattr(exception, "request_id", None))
            if fields.http_request_id is None and request_id is not None:
                return replace(fields, http_request_id=request_id)
            return fields
        name = type(exception).__name__
        word = _core.error_code_from_word(name)
        code = _code_of_classes(exception) if word is None else ErrorCode(word)
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
        """Classify an HTTP error response.

        Args:
            status: the HTTP status, None when unknown.
            headers: names in any case.
            body: the body as bytes, text or parsed JSON.
            message: the message of the result where the body has none.
        """
        fields = _core.classify_refusal(
            status or 0,
            headers or {},
            _as_bytes(body),
            fallback=well_formed(message),
            now=self._clock().timestamp(),
        )
        return ErrorFields(
            code=ErrorCode(fields["code"]),
            message=fields["message"],
            retryable=fields["retryable"],
            retry_after=fields["retry_after"],
            status=status,
            provider_code=fields["provider_code"],
            http_request_id=fields["http_request_id"],
            body=_shown_body(body),
        )


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


def _first_text(exception: BaseException) -> str:
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
        # A host name or a port may be back in a moment; a later try finds the same certificate, and
        # the same server without TLS.
        retryable=found.reason not in {UNTRUSTED, NO_TLS},
        provider_code=found.reason,
    )


def _as_bytes(body: object) -> bytes:
    """Return a body as the bytes that a response would have."""
    if isinstance(body, (bytes, bytearray)):
        return bytes(body[: _core.MAX_REFUSAL_BYTES])
    if body is None:
        return b""
    text = body if isinstance(body, str) else _as_json(body) or _as_json(_encodable(body))
    return well_formed(text[: _core.MAX_REFUSAL_BYTES]).encode()


def _shown_body(body: object) -> str | None:
    """Return the beginning of a body as text."""
    if isinstance(body, (bytes, bytearray)):
        body = body[: 4 * _MAX_BODY_CHARACTERS].decode("utf-8", errors="replace")
    if body is not None and not isinstance(body, str):
        body = _as_json(body)
    return body[:_MAX_BODY_CHARACTERS] if body else None


def _as_json(value: object) -> str:
    """Return a document as JSON text, "" if it cannot be encoded."""
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def _encodable(value: object, path: frozenset[int] = frozenset()) -> object:
    """Copy a document without values that JSON cannot hold: circles, huge integers, objects."""
    if id(value) in path or len(path) > _MAX_DEPTH:
        return None
    inner = path | {id(value)}
    members = json_object(value)
    if members is not None:
        return {str(name): _encodable(member, inner) for name, member in members.items()}
    items = json_array(value)
    if items:
        return [_encodable(item, inner) for item in items]
    is_number = isinstance(value, int) and value.bit_length() <= _MAX_CODE_BITS
    return value if is_number or isinstance(value, (str, float)) else None


def _status_of(exception: BaseException) -> int | None:
    if type(exception.__cause__).__name__ == "HttpProcessingError":
        return None  # aiohttp invents a 400 for an answer that is not HTTP
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
    """Return the HTTP response that botocore stores in its exceptions."""
    return json_object((json_object(response) or {}).get("ResponseMetadata")) or {}


def _body_of(exception: BaseException) -> object:
    """Return the body of the error response in an exception, None without one."""
    response = cast("object", getattr(exception, "response", None))
    # Body that httpx and requests have read. Their properties would read further.
    content = cast("object", getattr(response, "__dict__", {}).get("_content"))
    if isinstance(content, bytes):
        return content
    parsed = json_object(response) or {}
    candidates: tuple[object, ...] = (
        getattr(exception, "body", None),
        getattr(exception, "details", None),  # google-genai: the whole body
        parsed if "Error" in parsed else None,  # botocore: the parsed body, with metadata
    )
    for candidate in candidates:
        if isinstance(candidate, (str, bytes)) and candidate:
            return candidate
        if json_object(candidate) or json_array(candidate):
            return candidate
    return None


def _http_status(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == len("200"):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value in range(100, 600):
        return value
    return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
