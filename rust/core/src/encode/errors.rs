//! Error objects that several targets share.

use crate::contract::{ErrorCode, Failure};
use crate::facts::ErrorCodes;
use crate::json::{ObjectWriter, object};

/// Return the message of a failure.
pub fn message<'a>(failure: &Failure<&'a str>) -> &'a str {
    failure.message.filter(|text| !text.is_empty()).unwrap_or(failure.code.as_str())
}

/// Write the members of an error object of OpenAI: `message`, `type`, `param`, `code`.
///
/// Source: platform.openai.com, "Error codes" (docs/protocols/encoding.md#errors).
pub fn openai_members(
    object: &mut ObjectWriter<'_>,
    table: &ErrorCodes,
    failure: &Failure<&str>,
) -> u16 {
    let (code, status) = table.word(failure.code);
    object.text("message", message(failure));
    object.text("type", openai_type(failure.code));
    object.json("param", "null");
    match code {
        Some(code) => object.text("code", code),
        None => object.json("code", "null"),
    }
    status
}

/// Return the `type` of an error object of OpenAI.
pub fn openai_type(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Authentication
        | ErrorCode::Permission
        | ErrorCode::NotFound
        | ErrorCode::InvalidRequest
        | ErrorCode::ContextLengthExceeded
        | ErrorCode::ReplayRefused
        | ErrorCode::ContentBlocked => "invalid_request_error",
        ErrorCode::RateLimited | ErrorCode::QuotaExceeded => "rate_limit_error",
        ErrorCode::Overloaded
        | ErrorCode::ServerError
        | ErrorCode::Timeout
        | ErrorCode::ConnectionLost
        | ErrorCode::ProtocolError
        | ErrorCode::Cancelled => "server_error",
    }
}

/// Return the HTTP status and a JSON body for targets that do not define one.
pub fn plain_refusal(failure: &Failure<&str>) -> (u16, String) {
    let body = object(|body| {
        body.text("message", message(failure));
        body.text("code", failure.code.as_str());
    });
    (status(failure.code), body)
}

/// Return the HTTP status of an error code.
///
/// Source: docs/protocols/encoding.md#errors.
pub fn status(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::Authentication => 401,
        ErrorCode::Permission => 403,
        ErrorCode::NotFound => 404,
        ErrorCode::InvalidRequest
        | ErrorCode::ContextLengthExceeded
        | ErrorCode::ReplayRefused
        | ErrorCode::ContentBlocked => 400,
        ErrorCode::RateLimited | ErrorCode::QuotaExceeded => 429,
        ErrorCode::Overloaded => 503,
        ErrorCode::ServerError => 500,
        ErrorCode::ProtocolError | ErrorCode::ConnectionLost => 502,
        ErrorCode::Timeout => 504,
        ErrorCode::Cancelled => 499,
    }
}
