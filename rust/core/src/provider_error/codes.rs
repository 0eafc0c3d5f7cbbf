//! Error codes of the closed list from evidence: a provider's word, an HTTP status, a phrase of a message.
//!
//! The words are those of the tables in [`crate::facts`].
//! Source: mapping of error codes (protocols/mapping.md section 6).

use crate::contract::ErrorCode;
use crate::facts;

/// Phrases, in lower case, of messages about a prompt that is too long for the model.
const TOO_LONG: [&str; 9] = [
    "prompt is too long",
    "maximum context length",
    "input is too long",
    "exceeds the available context size",
    "reduce the length of the messages",
    "context length exceeded",
    "exceed context limit",
    "too many total text bytes",
    // Cohere writes a count after the colon.  Without the colon this is Bedrock's phrase for throttling.
    "too many tokens:",
];

/// Return the code of a provider's word, in any case.
pub fn from_word(word: &str) -> Option<ErrorCode> {
    let known = facts::error_code(word);
    let word = word.to_ascii_lowercase();
    if known.is_some() {
        known
    } else if word.contains("spend_limit") {
        Some(ErrorCode::QuotaExceeded)
    } else if word.contains("_policy") {
        Some(ErrorCode::ContentBlocked)
    } else if word.starts_with("invalid_request_") {
        Some(ErrorCode::InvalidRequest)
    } else {
        None
    }
}

/// Return the code of an HTTP status; `None` below 400 and above 599.
pub(super) fn from_status(status: u16) -> Option<ErrorCode> {
    Some(match status {
        401 | 498 => ErrorCode::Authentication,
        402 => ErrorCode::QuotaExceeded,
        403 | 451 => ErrorCode::Permission,
        404 => ErrorCode::NotFound,
        408 | 504 => ErrorCode::Timeout,
        409 | 424 => ErrorCode::ServerError,
        429 => ErrorCode::RateLimited,
        499 => ErrorCode::Cancelled,
        501 | 400..=499 => ErrorCode::InvalidRequest,
        503 | 529 => ErrorCode::Overloaded,
        500..=599 => ErrorCode::ServerError,
        _ => return None,
    })
}

/// Refine a general code by phrases of the message: a context that is too long, or an overload.
pub(super) fn refined(code: ErrorCode, message: &str) -> ErrorCode {
    if !matches!(code, ErrorCode::InvalidRequest | ErrorCode::ServerError) {
        return code;
    }
    let message = message.to_ascii_lowercase();
    if TOO_LONG.iter().any(|phrase| message.contains(phrase)) {
        ErrorCode::ContextLengthExceeded
    } else if code == ErrorCode::ServerError && message.contains("overloaded") {
        ErrorCode::Overloaded
    } else {
        code
    }
}
