//! A provider's error in every shape that is known, to the closed list: code, retryable, retry-after, status, the
//! provider's own code, message.

use crate::support::{decode_with, options};
use deltafold::contract::{ErrorCode, Failure, Payload};
use deltafold::decoder::Decoder;
use deltafold::dialect::VOCABULARY;
use deltafold::provider_error::{ErrorObject, Response};

const BOTH: [&str; 2] = ["anthropic-messages", "openai-chat"];

type Told<'a> = (&'a str, Option<&'a str>, &'a str);

fn response(status: u16, headers: &[(&str, &str)]) -> Response {
    Response::new(VOCABULARY, status, headers.iter().copied(), None)
}

/// The error in which a body ends.
fn failure_with(dialect: &str, response: Response, body: &str) -> Failure<Box<str>> {
    let mut options = options(dialect);
    options.stream.response = response;
    let deltas = decode_with(Decoder::new(options).unwrap(), [body.as_bytes()]);
    match &deltas.last().expect("a terminal").payload {
        Payload::Error(failure) => failure.clone(),
        other => panic!("{dialect} {body}: {other:?}"),
    }
}

fn failure(dialect: &str, status: u16, body: &str) -> Failure<Box<str>> {
    failure_with(dialect, response(status, &[]), body)
}

/// `(code, provider code, message)`
fn told(failure: &Failure<Box<str>>) -> Told<'_> {
    (
        failure.code.as_str(),
        failure.provider_code.as_deref(),
        failure.message.as_deref().unwrap_or("(none)"),
    )
}

/// Rows that are equal for all dialects: status, body, expected error.
fn check(dialects: &[&str], rows: &[(u16, &str, Told<'_>)]) {
    for (status, body, expected) in rows {
        for dialect in dialects {
            let found = failure(dialect, *status, body);
            assert_eq!(told(&found), *expected, "{dialect} {status} {body}");
            let retryable = ErrorCode::from_wire(expected.0).unwrap().retryable();
            assert_eq!(found.retryable, Some(retryable), "{dialect} {status} {body}");
        }
    }
}

#[test]
fn anthropic_bodies() {
    let body = |kind: &str| {
        format!(
            "{{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"m\"}},\"request_id\":\"req_1\"}}"
        )
    };
    for (status, kind, code) in [
        (400, "invalid_request_error", "invalid_request"),
        (401, "authentication_error", "authentication"),
        (402, "billing_error", "quota_exceeded"),
        (403, "permission_error", "permission"),
        (404, "not_found_error", "not_found"),
        (409, "conflict_error", "server_error"),
        (413, "request_too_large", "invalid_request"),
        (429, "rate_limit_error", "rate_limited"),
        (500, "api_error", "server_error"),
        (504, "timeout_error", "timeout"),
        (529, "overloaded_error", "overloaded"),
    ] {
        check(&BOTH, &[(status, &body(kind), (code, Some(kind), "m"))]);
        // In the stream the type alone decides.
        let event = format!("event: error\ndata: {}\n\n", body(kind));
        check(&["anthropic-messages"], &[(200, &event, (code, Some(kind), "m"))]);
    }
    check(
        &["anthropic-messages"],
        &[
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
                ("quota_exceeded", Some("enforced_spend_limit_reached"), "m"),
            ),
            (
                429,
                r#"{"type":"error","error":{"details":{"error_code":"ramp_limit_exceeded"},"type":"rate_limit_error","message":"m"}}"#,
                ("rate_limited", Some("ramp_limit_exceeded"), "m"),
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"something_new"}}}"#,
                ("rate_limited", Some("something_new"), "m"),
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                (
                    "context_length_exceeded",
                    Some("invalid_request_error"),
                    "prompt is too long: 210000 tokens > 200000 maximum",
                ),
            ),
            (
                200,
                "data: {\"type\":\"error\",\"error\":{\"type\":\"brand_new_error\",\"message\":\"m\"}}\n\n",
                ("server_error", Some("brand_new_error"), "m"),
            ),
            (
                200,
                "data: {\"type\":\"error\",\"error\":null}\n\n",
                ("server_error", None, "the provider sent an error without a message"),
            ),
        ],
    );
}

#[test]
fn openai_chat_bodies() {
    check(
        &["openai-chat"],
        &[
            (
                401,
                r#"{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
                ("authentication", Some("invalid_api_key"), "m"),
            ),
            (
                404,
                r#"{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
                ("not_found", Some("model_not_found"), "m"),
            ),
            (
                400,
                r#"{"error":{"message":"m","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
                ("context_length_exceeded", Some("context_length_exceeded"), "m"),
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":null}}"#,
                (
                    "context_length_exceeded",
                    Some("invalid_request_error"),
                    "This model's maximum context length is 8192 tokens.",
                ),
            ),
            (
                400,
                r#"{"error":{"message":"Please reduce the length of the messages.","type":"BadRequestError","code":400}}"#,
                (
                    "context_length_exceeded",
                    Some("BadRequestError"),
                    "Please reduce the length of the messages.",
                ),
            ),
            (
                400,
                r#"{"error":{"message":"m","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
                ("content_blocked", Some("content_filter"), "m"),
            ),
            (
                400,
                r#"{"error":{"message":"m","code":"content_policy_violation"}}"#,
                ("content_blocked", Some("content_policy_violation"), "m"),
            ),
            (
                429,
                r#"{"error":{"message":"m","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
                ("rate_limited", Some("rate_limit_exceeded"), "m"),
            ),
            (
                429,
                r#"{"error":{"message":"m","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
                ("quota_exceeded", Some("insufficient_quota"), "m"),
            ),
            (
                429,
                r#"{"error":{"message":"m","type":"exceeded_current_quota_error"}}"#,
                ("quota_exceeded", Some("exceeded_current_quota_error"), "m"),
            ),
            (
                429,
                r#"{"error":{"message":"m","code":"project_spend_limit_exceeded"}}"#,
                ("quota_exceeded", Some("project_spend_limit_exceeded"), "m"),
            ),
            (
                429,
                r#"{"error":{"message":"m","code":"organization_usage_limit_exceeded"}}"#,
                ("quota_exceeded", Some("organization_usage_limit_exceeded"), "m"),
            ),
            (
                413,
                r#"{"error":{"message":"m","type":"tokens","code":"rate_limit_exceeded"}}"#,
                ("rate_limited", Some("rate_limit_exceeded"), "m"),
            ),
            (
                500,
                r#"{"error":{"message":"m","type":"server_error","param":null,"code":null}}"#,
                ("server_error", Some("server_error"), "m"),
            ),
            (
                503,
                r#"{"error":{"message":"m","type":"server_error","code":"server_is_overloaded"}}"#,
                ("overloaded", Some("server_is_overloaded"), "m"),
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}"#,
                ("context_length_exceeded", Some("exceed_context_size_error"), "m"),
            ),
            // A number that is not an HTTP status is a code.
            (
                400,
                r#"{"success":false,"errors":[{"code":7003,"message":"m"}]}"#,
                ("invalid_request", Some("7003"), "m"),
            ),
        ],
    );
}

/// The general word "invalid request" beside a status or a type that says more.
#[test]
fn a_general_word_gives_way_to_what_says_more() {
    check(
        &["openai-chat"],
        &[
            (
                401,
                r#"{"error":{"message":"no key","type":"invalid_request_error","param":null,"code":null}}"#,
                ("authentication", Some("invalid_request_error"), "no key"),
            ),
            (
                401,
                r#"{"error":{"message":"m","type":"authentication_error","param":null,"code":"invalid_request_error"}}"#,
                ("authentication", Some("invalid_request_error"), "m"),
            ),
            (
                402,
                r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
                ("quota_exceeded", Some("invalid_request_error"), "Insufficient Balance"),
            ),
            (
                429,
                r#"{"error":{"message":"m","type":"invalid_request_error","code":null}}"#,
                ("rate_limited", Some("invalid_request_error"), "m"),
            ),
            (
                422,
                r#"{"error":{"message":"m","type":"invalid_request_error"}}"#,
                ("invalid_request", Some("invalid_request_error"), "m"),
            ),
            (
                500,
                r#"{"error":{"message":"m","type":"invalid_request_error"}}"#,
                ("server_error", Some("invalid_request_error"), "m"),
            ),
        ],
    );
}

#[test]
fn odd_shapes() {
    check(
        &["openai-chat"],
        &[
            (200, "data: {\"error\":\"text\"}\n\n", ("server_error", None, "text")),
            (401, r#"{"error":"Unauthorized"}"#, ("authentication", None, "Unauthorized")),
            (
                400,
                r#"{"code":"Client specified an invalid argument","error":"text"}"#,
                ("invalid_request", Some("Client specified an invalid argument"), "text"),
            ),
            (
                200,
                "data: {\"error\":{\"error\":{\"message\":\"deep\",\"code\":\"429\"}}}\n\n",
                ("rate_limited", None, "deep"),
            ),
            (
                200,
                "data: {\"error\":{\"message\":\"m\",\"type\":\"\",\"param\":null,\"code\":\"500\"}}\n\n",
                ("server_error", None, "m"),
            ),
            (
                200,
                "data: {\"error\":{\"message\":\"m\",\"code\":502}}\n\n",
                ("server_error", None, "m"),
            ),
            (
                200,
                "data: {\"error\":{\"message\":\"m\",\"code\":null,\"type\":null}}\n\n",
                ("server_error", None, "m"),
            ),
            (
                200,
                "data: {\"error\":{}}\n\n",
                ("server_error", None, "the provider sent an error without a message"),
            ),
            (
                200,
                "data: {\"object\":\"error\",\"message\":\"m\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}\n\n",
                ("invalid_request", Some("BadRequestError"), "m"),
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error.missing"}]}"#,
                ("invalid_request", Some("value_error.missing"), "field required"),
            ),
            (404, r#"{"detail":"Not Found"}"#, ("not_found", None, "Not Found")),
            (
                403,
                r#"{"error":{"code":403,"message":"m","metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#,
                ("content_blocked", None, "m"),
            ),
            (
                403,
                r#"{"error":{"code":403,"message":"m","metadata":{"provider_name":"p"}}}"#,
                ("permission", None, "m"),
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[{"@type":"x/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}]"#,
                ("authentication", Some("API_KEY_INVALID"), "m"),
            ),
            (
                200,
                "event: error\ndata: {\"error\":{\"message\":\"m\",\"type\":\"invalid_request_error\",\"code\":\"tool_use_failed\",\"failed_generation\":\"<f>\",\"status_code\":400}}\n\n",
                ("invalid_request", Some("tool_use_failed"), "m"),
            ),
            (
                200,
                "event: error\ndata: upstream went away\n\n",
                ("server_error", None, "upstream went away"),
            ),
            (
                200,
                "event: error\ndata: model is overloaded\n\n",
                ("overloaded", None, "model is overloaded"),
            ),
            (
                200,
                "error: {\"code\":503,\"message\":\"Loading model\",\"type\":\"unavailable_error\"}\n\n",
                ("overloaded", Some("unavailable_error"), "Loading model"),
            ),
            (
                498,
                r#"{"message":"invalid api token"}"#,
                ("authentication", None, "invalid api token"),
            ),
        ],
    );
}

/// Errors of a gateway in front of the provider: whatever the dialect, the words and the status count.
#[test]
fn a_failed_response_is_an_error_in_any_shape() {
    check(
        &BOTH,
        &[
            (
                400,
                r#"{"error_code":"BAD_REQUEST","message":"Input is too long."}"#,
                ("context_length_exceeded", Some("BAD_REQUEST"), "Input is too long."),
            ),
            (403, r#"{"message":"Forbidden"}"#, ("permission", None, "Forbidden")),
            (
                403,
                r#"{"Message":"x","message":"The security token is expired","__type":"ExpiredTokenException"}"#,
                ("authentication", Some("ExpiredTokenException"), "The security token is expired"),
            ),
            (404, r#"{"detail":"Not Found"}"#, ("not_found", None, "Not Found")),
            (429, r#"{"message":"Too many","request_id":"x"}"#, ("rate_limited", None, "Too many")),
            (
                500,
                "{\n  \"message\": \"pretty\",\n  \"type\": \"x\"\n}\n",
                ("server_error", Some("x"), "pretty"),
            ),
            (503, "{}", ("overloaded", None, "HTTP status 503 without an error in the body")),
            (503, "", ("overloaded", None, "HTTP status 503 without an error in the body")),
            (502, "bad gateway\n", ("server_error", None, "bad gateway")),
            (502, "<html>nginx</html>", ("server_error", None, "nginx")),
            (
                502,
                "<!DOCTYPE html>\n<html><head><title>502 Bad\nGateway</title></head><body>x</body></html>",
                ("server_error", None, "502 Bad Gateway"),
            ),
            (302, "<a href=\"/\">Moved</a>.", ("server_error", None, "Moved .")),
            // A cut document: its complete members count.
            (
                429,
                "{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"cut",
                (
                    "quota_exceeded",
                    Some("insufficient_quota"),
                    "HTTP status 429 and an error without a message",
                ),
            ),
            (
                400,
                "{\"__type\":\"com.amazon.coral.service#ThrottlingException\",\"message\":\"m\"}",
                ("rate_limited", Some("ThrottlingException"), "m"),
            ),
            (
                402,
                "{\"error\":{\"message\":\"Insufficient Balance\",\"type\":\"unknown_error\",\"param\":null,\"code\":\"invalid_request_error\"}}",
                ("quota_exceeded", Some("invalid_request_error"), "Insufficient Balance"),
            ),
            (429, "data: {\"error\":{\"message\":\"m\"}}\n\n", ("rate_limited", None, "m")),
            (
                400,
                "{\"error\":{\"message\":\"cut",
                ("invalid_request", None, "HTTP status 400 without an error in the body"),
            ),
        ],
    );
}

#[test]
fn a_status_without_a_body_is_told_by_the_table() {
    for (status, code) in [
        (400, "invalid_request"),
        (401, "authentication"),
        (402, "quota_exceeded"),
        (403, "permission"),
        (404, "not_found"),
        (405, "invalid_request"),
        (408, "timeout"),
        (409, "server_error"),
        (413, "invalid_request"),
        (415, "invalid_request"),
        (422, "invalid_request"),
        (424, "server_error"),
        (429, "rate_limited"),
        (451, "permission"),
        (498, "authentication"),
        (499, "cancelled"),
        (500, "server_error"),
        (501, "invalid_request"),
        (502, "server_error"),
        (503, "overloaded"),
        (504, "timeout"),
        (520, "server_error"),
        (524, "server_error"),
        (526, "server_error"),
        (529, "overloaded"),
    ] {
        for dialect in BOTH {
            let found = failure(dialect, status, "");
            assert_eq!((found.code.as_str(), found.status), (code, Some(status)), "{dialect}");
        }
    }
}

#[test]
fn every_signal_of_the_table_has_its_code() {
    for (code, words) in [
        (
            "authentication",
            "authentication_error invalid_api_key UNAUTHENTICATED API_KEY_INVALID UnrecognizedClientException",
        ),
        ("permission", "permission_error PERMISSION_DENIED AccessDeniedException"),
        ("not_found", "not_found_error model_not_found NOT_FOUND ResourceNotFoundException"),
        (
            "invalid_request",
            "invalid_request_error INVALID_ARGUMENT ValidationException request_too_large tool_use_failed",
        ),
        ("context_length_exceeded", "context_length_exceeded exceed_context_size_error"),
        (
            "rate_limited",
            "rate_limit_error rate_limit_exceeded ThrottlingException RESOURCE_EXHAUSTED",
        ),
        (
            "quota_exceeded",
            "insufficient_quota billing_error contract_spend_limit_reached exceeded_current_quota_error ServiceQuotaExceededException billing_hard_limit_reached credit_balance_exhausted",
        ),
        (
            "overloaded",
            "overloaded_error server_is_overloaded UNAVAILABLE ServiceUnavailableException ModelNotReadyException insufficient_system_resource overloaded",
        ),
        ("server_error", "api_error server_error INTERNAL internalServerException conflict_error"),
        ("timeout", "timeout_error DEADLINE_EXCEEDED ModelTimeoutException"),
        ("content_blocked", "content_filter content_policy_violation usage_policy_violation"),
        ("cancelled", "CANCELLED"),
    ] {
        for word in words.split(' ') {
            for member in ["code", "type", "status"] {
                let json = format!("{{\"message\":\"m\",\"{member}\":\"{word}\"}}");
                let found = ErrorObject::read(&json).unwrap().failure(&response(0, &[]), "");
                assert_eq!(found.code.as_str(), code, "{json}");
                assert_eq!(found.provider_code.as_deref(), Some(word), "{json}");
                assert_eq!(found.status, None, "{json}");
            }
        }
    }
}

#[test]
fn evidence_counts_in_its_order() {
    for (http, json, code, status) in [
        // code, then type, then status, then number, then HTTP status, then phrases.
        (
            500,
            r#"{"code":"rate_limit_exceeded","type":"overloaded_error","status":"NOT_FOUND"}"#,
            "rate_limited",
            Some(500),
        ),
        (500, r#"{"type":"overloaded_error","status":"NOT_FOUND"}"#, "overloaded", Some(500)),
        (500, r#"{"status":"NOT_FOUND"}"#, "not_found", Some(500)),
        (500, r#"{"code":429}"#, "rate_limited", Some(500)),
        (500, r#"{"code":"429"}"#, "rate_limited", Some(500)),
        (200, r#"{"code":429}"#, "rate_limited", Some(429)),
        (500, r#"{"code":"new_code","message":"overloaded"}"#, "overloaded", Some(500)),
        (200, r#"{"code":"new_code","message":"currently Overloaded"}"#, "overloaded", None),
        (200, r#"{"message":"input is too long for this model"}"#, "context_length_exceeded", None),
        (429, r#"{"message":"input is too long"}"#, "rate_limited", Some(429)),
        (200, r#"{"message":"what"}"#, "server_error", None),
        (200, r#"{"code":99999999999,"message":"what"}"#, "server_error", None),
        (200, r#"{"code":-1}"#, "server_error", None),
        (200, r#"{"code":true,"type":{},"message":[]}"#, "server_error", None),
        (200, "[]", "server_error", None),
        (200, "17", "server_error", None),
        (200, "null", "server_error", None),
    ] {
        let found = ErrorObject::read(json).unwrap().failure(&response(http, &[]), "");
        assert_eq!((found.code.as_str(), found.status), (code, status), "{http} {json}");
    }
}

#[test]
fn headers_say_when_and_whether_to_try_again() {
    let after = |headers: &[(&str, &str)]| response(429, headers).retry_after;
    for (headers, expected) in [
        (&[("Retry-After", "20")][..], Some(20.0)),
        (&[("retry-after", " 1.5 ")], Some(1.5)),
        (&[("retry-after", "20"), ("retry-after-ms", "1500")], Some(1.5)),
        (&[("retry-after-ms", "1500"), ("retry-after", "20")], Some(1.5)),
        (&[("retry-after-ms", "x"), ("retry-after", "20")], Some(20.0)),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "NaN")], None),
        (&[("retry-after", "inf")], None),
        (&[("retry-after", "")], None),
        (&[("retry-after", "1e12")], Some(86_400.0)),
        (&[("retry-after", "0")], Some(0.0)),
        (&[], None),
    ] {
        assert_eq!(after(headers), expected, "{headers:?}");
    }
    let body = r#"{"error":{"type":"rate_limit_error","message":"m"}}"#;
    for (said, expected) in [("true", Some(true)), ("false", Some(false)), ("maybe", Some(true))] {
        for dialect in BOTH {
            let headers = [("X-Should-Retry", said), ("retry-after", "7"), ("Request-Id", "req_7")];
            let found = failure_with(dialect, response(429, &headers), body);
            assert_eq!(found.retryable, expected, "{said}");
            assert_eq!(found.retry_after, Some(7.0));
            assert_eq!(found.http_request_id.as_deref(), Some("req_7"));
        }
    }
    for name in ["request-id", "x-request-id", "X-Amzn-RequestId", "x-generation-id"] {
        assert_eq!(response(200, &[(name, "id")]).request_id.as_deref(), Some("id"), "{name}");
    }
}

#[test]
fn bodies_say_when_to_try_again() {
    let delay = |text: &str| {
        let json = format!(
            "[{{\"error\":{{\"code\":429,\"message\":\"m\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{{\"@type\":\"t/google.rpc.RetryInfo\",\"retryDelay\":\"{text}\"}}]}}}}]"
        );
        ErrorObject::read(&json).unwrap().failure(&response(429, &[("retry-after", "1")]), "")
    };
    assert_eq!(delay("34.4s").retry_after, Some(34.4));
    assert_eq!(delay("nonsense").retry_after, Some(1.0));
    assert_eq!(delay("-3s").retry_after, Some(1.0));
    let per_day = r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"t/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}]}}"#;
    let found = ErrorObject::read(per_day).unwrap().failure(&response(429, &[]), "");
    assert_eq!((found.code, found.retryable), (ErrorCode::QuotaExceeded, Some(false)));
}

#[test]
fn every_error_of_ours_carries_the_http_request_id() {
    for (name, body) in [
        ("connection lost", "data: {}\n\n".to_owned()),
        ("corrupt", "data: {\"a\":}\n\n".to_owned()),
        ("event bound", format!("data: {{{}\n\n", " ".repeat(4_096))),
        ("page", "<html>".to_owned()),
        ("empty", String::new()),
        ("message bound", "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"abcdefgh\"},\"choices\":[{\"delta\":{\"content\":\"abcdefgh\"}}]}\n\n".to_owned()),
    ] {
        for dialect in BOTH {
            let mut options = options(dialect);
            options.stream.limits.event_bytes = 1_024;
            options.stream.limits.message_bytes = 4;
            options.stream.response = response(200, &[("x-request-id", "http-1")]);
            let deltas = decode_with(Decoder::new(options).unwrap(), [body.as_bytes()]);
            let Payload::Error(failure) = &deltas.last().unwrap().payload else {
                panic!("{name}: no error");
            };
            assert_eq!(failure.http_request_id.as_deref(), Some("http-1"), "{dialect} {name}");
        }
    }
}
