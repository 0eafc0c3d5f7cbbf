//! Evidence → error code of the closed list: a provider's word, an HTTP status, a phrase of a message.
//!
//! Source: mapping of error codes (protocols/mapping.md section 6).

use crate::contract::ErrorCode;

/// Names that say one thing, in lower case, by code.
const NAMES: [(ErrorCode, &[&str]); 12] = [
    (
        ErrorCode::Authentication,
        &[
            "authentication_error",
            "invalid_authentication_error",
            "invalid_api_key",
            "api_key_invalid",
            "unauthenticated",
            "unauthorized",
            "unrecognizedclientexception",
            "expiredtokenexception",
            "invalidsignatureexception",
        ],
    ),
    (
        ErrorCode::Permission,
        &[
            "permission_error",
            "permission_denied",
            "accessdeniedexception",
            "forbidden",
            "insufficient_permissions",
        ],
    ),
    (
        ErrorCode::NotFound,
        &["not_found_error", "model_not_found", "not_found", "resourcenotfoundexception"],
    ),
    (
        ErrorCode::ContextLengthExceeded,
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "exceed_context_size_error",
            "exceeds_context_size_error",
        ],
    ),
    (
        ErrorCode::QuotaExceeded,
        &[
            "insufficient_quota",
            "billing_error",
            "billing_hard_limit_reached",
            "credit_balance_exhausted",
            "exceeded_current_quota_error",
            "organization_usage_limit_exceeded",
            "payment_required",
            "servicequotaexceededexception",
        ],
    ),
    (
        ErrorCode::RateLimited,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limit_reached_error",
            "ramp_limit_exceeded",
            "resource_exhausted",
            "throttlingexception",
            "too_many_requests",
        ],
    ),
    (
        ErrorCode::Overloaded,
        &[
            "overloaded_error",
            "overloaded",
            "engine_overloaded_error",
            "server_is_overloaded",
            "insufficient_system_resource",
            "modelnotreadyexception",
            "service_unavailable",
            "serviceunavailableexception",
            "unavailable",
        ],
    ),
    (
        ErrorCode::Timeout,
        &["timeout_error", "timeout", "deadline_exceeded", "modeltimeoutexception"],
    ),
    (ErrorCode::Cancelled, &["cancelled", "canceled"]),
    (
        ErrorCode::ContentBlocked,
        &[
            "content_filter",
            "content_policy_violation",
            "content_blocked",
            "responsibleaipolicyviolation",
        ],
    ),
    (
        ErrorCode::InvalidRequest,
        &[
            "invalid_request_error",
            "invalid_request",
            "invalid_argument",
            "bad_request",
            "badrequesterror",
            "failed_precondition",
            "out_of_range",
            "request_too_large",
            "tool_use_failed",
            "validationexception",
        ],
    ),
    (
        ErrorCode::ServerError,
        &[
            "api_error",
            "server_error",
            "internal",
            "internal_server_error",
            "internalservererror",
            "internalserverexception",
            "modelerrorexception",
            "conflict_error",
            "aborted",
            "data_loss",
            "unknown",
        ],
    ),
];

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
    // Cohere writes a count behind the colon; without the colon it is Bedrock's word for throttling.
    "too many tokens:",
];

/// Returns the code of a provider's word, in any case.
pub fn from_word(word: &str) -> Option<ErrorCode> {
    let word = word.to_ascii_lowercase();
    let row = NAMES.iter().find(|(_, names)| names.contains(&word.as_str()));
    match row {
        Some((code, _)) => Some(*code),
        None if word.contains("spend_limit") => Some(ErrorCode::QuotaExceeded),
        None if word.contains("_policy") => Some(ErrorCode::ContentBlocked),
        None if word.starts_with("invalid_request_") => Some(ErrorCode::InvalidRequest),
        None => None,
    }
}

/// Returns the code of an HTTP status; `None` below 400 and above 599.
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

/// Makes a general code more specific by the words of the message: only a context that is too long, or an overload.
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
