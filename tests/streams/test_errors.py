"""The exception tree, and the way from anybody's failure to an error code."""

import copy
import pickle
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from deltafold.contract.exceptions import (
    ContractError,
    DeltafoldError,
    InternalError,
    MisuseError,
    UnknownDialectError,
)
from deltafold.contract.kinds import ErrorCode
from deltafold.errors.mapper import RETRYABLE, ErrorMapper
from deltafold.errors.model_error import ModelError, model_error_from_fold
from deltafold.message.messages import Message

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def mapper() -> ErrorMapper:
    return ErrorMapper(clock=lambda: NOW)


def an_error(**changes: object) -> ModelError:
    fields: dict[str, Any] = {"code": "rate_limited", "message": "too fast", "retryable": None}
    fields.update(changes)
    return model_error_from_fold(**fields)


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (ContractError, ValueError),
        (MisuseError, RuntimeError),
        (InternalError, RuntimeError),
        (UnknownDialectError, ValueError),
        (ModelError, Exception),
    ],
)
def test_each_error_is_of_the_tree_and_of_the_built_in_that_users_catch(
    cls: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(cls, DeltafoldError)
    assert issubclass(cls, builtin)


def test_the_retryable_table_covers_the_closed_list() -> None:
    assert set(RETRYABLE) == set(ErrorCode)


@pytest.mark.parametrize("code", list(ErrorCode))
def test_a_model_error_says_in_one_line_what_happened_and_what_to_do(code: ErrorCode) -> None:
    error = an_error(
        code=code.value,
        message="line one\nline two " + "x" * 10_000,
        status=429,
        retry_after=1.5,
        provider_code="slow_down",
        http_request_id="req_1",
    )
    line = str(error)
    assert line.startswith(f"{code}: line one line two x")
    assert "(HTTP 429, slow_down, request req_1, retry after 1.5 s); " in line
    assert "\n" not in line
    assert len(line) < 800
    assert error.retryable is RETRYABLE[code]


def test_a_code_of_any_length_leaves_the_line_readable() -> None:
    assert len(str(an_error(provider_code="9" * 5000))) < 300


def test_a_model_error_without_a_message_says_so() -> None:
    assert "rate_limited: no message; wait" in str(an_error(message=None))


def test_an_error_code_outside_the_closed_list_is_refused() -> None:
    with pytest.raises(ValueError, match="teapot"):
        an_error(code="teapot")


def test_a_model_error_survives_pickling_and_copying() -> None:
    error = an_error(
        retryable=False,
        retry_after=2.0,
        status=429,
        provider_code="p",
        http_request_id="r",
        warnings=[{"code": "noise", "message": "skipped"}],
        partial_message=Message.assistant("so far"),
    )
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert type(twin) is ModelError
        assert vars(twin) == vars(error)
        assert str(twin) == str(error)
        assert twin.args == error.args


def test_a_contract_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(ContractError("bad", seq=3, field="kind")))  # noqa: S301
    assert (str(error), error.seq, error.field) == ("bad", 3, "kind")


RESPONSES: list[tuple[int | None, object, str, bool]] = [
    # the HTTP status alone
    (400, None, "invalid_request", False),
    (401, None, "authentication", False),
    (402, None, "quota_exceeded", False),
    (403, None, "permission", False),
    (404, None, "not_found", False),
    (405, None, "invalid_request", False),
    (408, None, "timeout", True),
    (409, None, "server_error", True),
    (413, None, "invalid_request", False),
    (415, None, "invalid_request", False),
    (418, None, "invalid_request", False),
    (422, None, "invalid_request", False),
    (424, None, "server_error", True),
    (429, None, "rate_limited", True),
    (451, None, "permission", False),
    (498, None, "authentication", False),
    (499, None, "cancelled", False),
    (500, None, "server_error", True),
    (501, None, "invalid_request", False),
    (502, "<html>bad gateway</html>", "server_error", True),
    (503, None, "overloaded", True),
    (504, None, "timeout", True),
    (522, None, "server_error", True),
    (529, None, "overloaded", True),
    (None, None, "server_error", True),
    # a named code beats the type, the type beats the status
    (429, {"error": {"code": "insufficient_quota"}}, "quota_exceeded", False),
    (429, {"error": {"type": "insufficient_quota", "code": None}}, "quota_exceeded", False),
    (400, {"error": {"code": "context_length_exceeded"}}, "context_length_exceeded", False),
    (400, {"error": {"code": "content_filter"}}, "content_blocked", False),
    (400, {"error": {"code": "cyber_policy_violation"}}, "content_blocked", False),
    (404, {"error": {"code": "model_not_found"}}, "not_found", False),
    (200, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded", True),
    (200, {"type": "error", "error": {"type": "api_error"}}, "server_error", True),
    (429, {"error": {"code": "project_spend_limit_exceeded"}}, "quota_exceeded", False),
    (
        429,
        {
            "error": {
                "type": "rate_limit_error",
                "details": {"error_code": "enforced_spend_limit_reached"},
            }
        },
        "quota_exceeded",
        False,
    ),
    (429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}, "rate_limited", True),
    (
        429,
        {
            "error": {
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerModel"}]}],
            }
        },
        "quota_exceeded",
        False,
    ),
    (400, [{"error": {"code": 400, "status": "INVALID_ARGUMENT"}}], "invalid_request", False),
    (
        400,
        {"error": {"status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}},
        "authentication",
        False,
    ),
    (429, {"error": {"type": "exceeded_current_quota_error"}}, "quota_exceeded", False),
    # a number in the body beats the status
    (200, {"error": {"code": 502, "message": "upstream"}}, "server_error", True),
    (200, {"error": {"code": "429", "message": "slow"}}, "rate_limited", True),
    (
        403,
        {"error": {"code": 403, "metadata": {"reasons": ["violence"]}}},
        "content_blocked",
        False,
    ),
    # phrases decide only between an invalid request, too long a context and an overload
    (
        400,
        {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}},
        "context_length_exceeded",
        False,
    ),
    (400, {"message": "Input is too long for requested model."}, "context_length_exceeded", False),
    (500, {"error": "the model is overloaded"}, "overloaded", True),
    (401, {"error": {"message": "maximum context length"}}, "authentication", False),
    # bodies in unexpected shapes
    (400, b'{"error": {"code": "content_filter"}}', "content_blocked", False),
    (400, "not json", "invalid_request", False),
    (400, b"\xff\xfe", "invalid_request", False),
    (400, [], "invalid_request", False),
    (400, {"error": None}, "invalid_request", False),
    (400, {"unrelated": 1}, "invalid_request", False),
    (400, {"error": {"code": ["x"], "type": {}, "details": 5}}, "invalid_request", False),
    (400, "[" * 100_000, "invalid_request", False),
    (400, '{"error": {"code": ' + "9" * 5000 + "}}", "invalid_request", False),
    (400, {"error": {"code": 10**5000}}, "invalid_request", False),
    (
        429,
        '{"error": {"type": "insufficient_quota", "n": ' + "9" * 5000 + "}}",
        "quota_exceeded",
        False,
    ),
    (400, 'data: {"error": {"code": "content_filter"}}\n\n', "content_blocked", False),
    (400, ': hi\r\rdata: {"error":\rdata: {"code": "content_filter"}}', "content_blocked", False),
    (400, 'data: [DONE]\n\ndata: {"error": {"code": "content_filter"}}', "content_blocked", False),
    (400, '{"done": false}\n{"error": {"code": "content_filter"}}\n', "content_blocked", False),
    (400, "data: not json\n\n", "invalid_request", False),
]


@pytest.mark.parametrize(("status", "body", "code", "retryable"), RESPONSES)
def test_a_response_is_mapped(
    mapper: ErrorMapper, status: int | None, body: object, code: str, *, retryable: bool
) -> None:
    fields = mapper.map_response(status, {}, body)
    assert (fields.code, fields.retryable) == (code, retryable)
    assert fields.message
    assert "<html" not in fields.message


def test_dates_are_read_against_the_real_clock_by_default() -> None:
    headers = {"retry-after": "Fri, 31 Dec 2100 00:00:00 GMT"}
    assert ErrorMapper().map_response(429, headers).retry_after == 86_400.0


def test_x_should_retry_overrides_the_table(mapper: ErrorMapper) -> None:
    assert mapper.map_response(400, {"X-Should-Retry": "true"}).retryable is True
    assert mapper.map_response(529, {"x-should-retry": "false"}).retryable is False
    assert mapper.map_response(529, {"x-should-retry": "perhaps"}).retryable is True


def test_an_aws_error_is_named_by_its_header(mapper: ErrorMapper) -> None:
    fields = mapper.map_response(
        400,
        {"x-amzn-ErrorType": "ThrottlingException:http://amazon", "x-amzn-RequestId": "aws-1"},
        {"message": "Rate exceeded"},
    )
    assert fields.code is ErrorCode.RATE_LIMITED
    assert fields.provider_code == "ThrottlingException"
    assert fields.http_request_id == "aws-1"


RETRY_AFTER: list[tuple[Mapping[str, str], object, float | None]] = [
    ({"retry-after-ms": "1500", "retry-after": "9"}, None, 1.5),
    ({"Retry-After": "20"}, None, 20.0),
    ({"retry-after": "0.25"}, None, 0.25),
    ({"retry-after": "0"}, None, 0.0),
    ({"retry-after": "-3"}, None, None),
    ({"retry-after": "nan"}, None, None),
    ({"retry-after": "inf"}, None, None),
    ({"retry-after": "1_000"}, None, None),
    ({"retry-after": "9" * 5000}, None, None),
    ({"retry-after-ms": "1e400", "retry-after": "9"}, None, 9.0),
    ({"retry-after-ms": "nan", "retry-after": "9"}, None, 9.0),
    ({"retry-after": "Fri, 31 Dec 99999999999999999999 23:59:59 GMT"}, None, None),
    ({"retry-after": f"Fri, 31 Dec {'9' * 5000} 23:59:59 GMT"}, None, None),
    ({"retry-after": "Fri, 31 Dec 2026 23:59:59 +99999999999999"}, None, None),
    ({"retry-after": "Fri, 31 Dec 2026 23:59:59 +" + "9" * 5000}, None, None),
    ({"retry-after": "\ud83d, 31 Dec"}, None, None),
    ({"x-ratelimit-reset-tokens": "9" * 5000 + "h"}, None, None),
    ({"anthropic-ratelimit-tokens-reset": "99999-01-01T00:00:00Z"}, None, None),
    ({"anthropic-ratelimit-tokens-reset": "0001-01-01T00:00:00+23:59"}, None, None),
    ({"anthropic-ratelimit-tokens-reset": "\ud83d"}, None, None),
    ({"retry-after": "99999999"}, None, 86_400.0),
    ({"retry-after": "Fri, 02 Jan 2026 03:04:35 GMT"}, None, 30.0),
    ({"retry-after": "Fri, 02 Jan 2026 03:04:35 -0000"}, None, 30.0),
    ({"retry-after": "Thu, 01 Jan 2026 00:00:00 GMT"}, None, None),
    ({"retry-after": "soon"}, None, None),
    ({"retry-after": ""}, None, None),
    ({"retry-after": "soon", "x-ratelimit-reset-tokens": "6m0s"}, None, 360.0),
    ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "12ms"}, None, 1.0),
    ({"x-ratelimit-reset-requests": "1h2m3.5s"}, None, 3723.5),
    ({"x-ratelimit-reset-requests": "later"}, None, None),
    ({"anthropic-ratelimit-tokens-reset": "2026-01-02T03:05:05Z"}, None, 60.0),
    ({"anthropic-ratelimit-tokens-reset": "never"}, None, None),
    ({}, {"error": {"details": [{"retryDelay": "34.4s"}]}}, 34.4),
    ({}, {"error": {"details": [{"x": 1}, 5, {"retryDelay": "bad"}]}}, None),
    (
        {},
        {"error": {"metadata": {"headers": {"X-RateLimit-Reset": "1767323055000"}}}},
        10.0,
    ),
    ({}, {"error": {"metadata": {"headers": {"X-RateLimit-Reset": 10**400}}}}, None),
    ({}, {"error": {"metadata": {"headers": {"X-RateLimit-Reset": "1e400"}}}}, None),
    ({}, {"error": {"metadata": {"headers": {"X-RateLimit-Reset": True}}}}, None),
    ({}, {"error": {"details": [{"retryDelay": "9" * 5000 + "s"}]}}, None),
    ({}, {"error": {"message": f"Please try again in {'9' * 5000}s."}}, None),
    ({}, {"error": {"message": "Please try again in 20s."}}, 20.0),
    ({}, {"error": {"message": "Please try again in 1m2.5s."}}, 62.5),
    ({}, {"error": {"message": "try again in 350ms"}}, 0.35),
    ({}, {"error": {"message": "try again in a while"}}, None),
]


@pytest.mark.parametrize(("headers", "body", "seconds"), RETRY_AFTER)
def test_retry_after_is_found_in_every_form(
    mapper: ErrorMapper, headers: Mapping[str, str], body: object, seconds: float | None
) -> None:
    fields = mapper.map_response(429, headers, body)
    assert (fields.code, fields.retryable) == (ErrorCode.RATE_LIMITED, True)
    found = fields.retry_after
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_reset_headers_say_nothing_about_a_failure_that_no_limit_caused(
    mapper: ErrorMapper,
) -> None:
    headers = {"x-ratelimit-reset-requests": "6m0s"}
    assert mapper.map_response(400, headers).retry_after is None


class Response:
    """Attribute `.response` of SDK exceptions."""

    def __init__(self, status_code: int, headers: dict[str, str]) -> None:
        self.status_code = status_code
        self.headers = headers


def raised(
    name: str, bases: tuple[type[BaseException], ...] = (Exception,), **attributes: object
) -> BaseException:
    """Make an exception of an SDK that is not imported, known by its class name and attributes."""
    exception: BaseException = type(name, bases, {})("something broke")
    for attribute, value in attributes.items():
        setattr(exception, attribute, value)
    return exception


API_CONNECTION_ERROR = type("APIConnectionError", (Exception,), {})
TRANSPORT_ERROR = type("TransportError", (Exception,), {})

EXCEPTIONS: list[tuple[BaseException, str, bool]] = [
    (raised("APITimeoutError", (API_CONNECTION_ERROR,)), "timeout", True),
    (API_CONNECTION_ERROR("x"), "connection_lost", True),
    (
        raised("ReadTimeout", (type("TimeoutException", (TRANSPORT_ERROR,), {}),)),
        "timeout",
        True,
    ),
    (raised("RemoteProtocolError", (TRANSPORT_ERROR,)), "connection_lost", True),
    (raised("DecodingError"), "protocol_error", False),
    (raised("NoCredentialsError"), "authentication", False),
    (TimeoutError(), "timeout", True),
    (ConnectionResetError("reset by peer"), "connection_lost", True),
    (KeyboardInterrupt(), "cancelled", False),
    (raised("CancelledError", (BaseException,)), "cancelled", False),
    (ZeroDivisionError("x"), "server_error", False),
    (raised("APIStatusError", status_code=529, body=None), "overloaded", True),
    (
        raised(
            "RateLimitError",
            status_code=429,
            body={"message": "out of money", "type": "insufficient_quota", "code": None},
        ),
        "quota_exceeded",
        False,
    ),
    (
        raised(
            "ClientError",
            response={
                "Error": {"Code": "ThrottlingException", "Message": "slow"},
                "ResponseMetadata": {"HTTPStatusCode": 400, "RequestId": "aws-1"},
            },
        ),
        "rate_limited",
        True,
    ),
    (
        raised(
            "ClientError",
            code=429,
            status="RESOURCE_EXHAUSTED",
            details={"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}},
        ),
        "rate_limited",
        True,
    ),
    (raised("ResponseError", status_code=404, error="model not found"), "not_found", False),
    (raised("SDKError", status_code=401, body="Unauthorized"), "authentication", False),
]


@pytest.mark.parametrize(("exception", "code", "retryable"), EXCEPTIONS)
def test_an_sdks_exception_is_mapped_by_what_it_carries(
    mapper: ErrorMapper, exception: BaseException, code: str, *, retryable: bool
) -> None:
    fields = mapper.map(exception)
    assert (fields.code, fields.retryable) == (code, retryable)
    assert fields.message


def caused(exception: BaseException, *causes: BaseException) -> BaseException:
    """Chain exceptions, the outermost first."""
    outer = exception
    for cause in causes:
        outer.__cause__ = cause
        outer = cause
    return exception


LOST = type("ClientPayloadError", (Exception,), {})


@pytest.mark.parametrize(
    ("exception", "code", "message"),
    [
        (caused(LOST("payload"), raised("ContentEncodingError")), "protocol_error", "payload"),
        (caused(API_CONNECTION_ERROR(""), TimeoutError("slow")), "timeout", "slow"),
        (
            caused(API_CONNECTION_ERROR("lost"), LOST(), raised("UnsupportedProtocol")),
            "invalid_request",
            "lost",
        ),
        (caused(LOST("lost"), ValueError("x")), "connection_lost", "lost"),
        # Waiting is broken off by cancelling; that is how, not why.
        (
            caused(LOST("lost"), raised("CancelledError", (BaseException,))),
            "connection_lost",
            "lost",
        ),
        (caused(TimeoutError("late"), raised("DecodingError")), "timeout", "late"),
        (caused(LOST(), LOST(), ConnectionResetError("reset")), "connection_lost", "reset"),
    ],
)
def test_a_cause_says_what_a_wrapper_does_not(
    mapper: ErrorMapper, exception: BaseException, code: str, message: str
) -> None:
    fields = mapper.map(exception)
    assert (fields.code, fields.message) == (code, message)


def test_all_facts_of_a_status_error_arrive_in_the_model_error(mapper: ErrorMapper) -> None:
    exception = raised(
        "RateLimitError",
        response=Response(429, {"Retry-After": "7", "x-request-id": "req_9"}),
        body={"error": {"type": "rate_limit_error", "message": "slow down"}},
    )
    partial = Message.assistant("so far")
    error = ModelError.from_fields(mapper.map(exception), partial_message=partial)
    assert error.code is ErrorCode.RATE_LIMITED
    assert error.message == "slow down"
    assert error.status == 429
    assert error.retry_after == 7.0
    assert error.provider_code == "rate_limit_error"
    assert error.http_request_id == "req_9"
    assert error.partial_message is partial


def test_the_request_id_of_the_exception_stands_in_for_the_headers(mapper: ErrorMapper) -> None:
    fields = mapper.map(raised("APIStatusError", status_code=500, request_id="req_2"))
    assert fields.http_request_id == "req_2"


def test_botocores_request_id_is_found(mapper: ErrorMapper) -> None:
    metadata = {"HTTPStatusCode": 400, "HTTPHeaders": {"x-amzn-requestid": "aws-7"}}
    exception = raised("ClientError", response={"Error": {}, "ResponseMetadata": metadata})
    assert mapper.map(exception).http_request_id == "aws-7"
