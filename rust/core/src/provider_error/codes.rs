//! Error codes of the closed list from evidence: a provider's word, an HTTP status, a phrase of a message.
//!
//! The words of each protocol are in its tables, which the caller passes as [`ErrorTables`].
//! Source: mapping of error codes (docs/protocols/decoding.md#errors).

use crate::contract::ErrorCode;
use crate::facts::ErrorCodes;

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

/// Phrases, in lower case, of messages about reasoning or a signature that was sent back and refused.
///
/// Source: Anthropic's page "Troubleshooting thinking", which Bedrock's errors repeat; Google's page "Thought signatures" and
/// errors of its API (read 2026-11).
const REPLAY_REFUSED: [&str; 6] = [
    "invalid `signature` in `thinking` block",
    "blocks in the latest assistant message cannot be modified",
    "corrupted thought signature",
    "thought signature is not valid",
    "missing a `thought_signature`",
    "missing a thought_signature",
];

/// The error codes of all protocols.
///
/// One classifier reads the words of all of them, because gateways copy the error of one protocol into the body of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorTables(pub &'static [&'static ErrorCodes]);

impl ErrorTables {
    /// Return the error code of a word, in any case, and `None` for an unknown word.
    ///
    /// ```
    /// use deltafold::contract::ErrorCode;
    /// use deltafold::dialect::ERROR_TABLES;
    /// assert_eq!(ERROR_TABLES.code("throttlingException"), Some(ErrorCode::RateLimited));
    /// ```
    pub fn code(&self, word: &str) -> Option<ErrorCode> {
        let of_gateway = || {
            let own = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(word));
            OTHER_ERRORS.iter().find(|(_, names)| own(names)).map(|(code, _)| *code)
        };
        let known = self.0.iter().find_map(|table| table.code(word));
        known.or_else(of_gateway).or_else(|| from_part(word))
    }
}

/// Return the code of a word by the part of it that several providers use.
fn from_part(word: &str) -> Option<ErrorCode> {
    let word = word.to_ascii_lowercase();
    if word.contains("spend_limit") {
        Some(ErrorCode::QuotaExceeded)
    } else if word.contains("_policy") {
        Some(ErrorCode::ContentBlocked)
    } else if word.starts_with("invalid_request_") {
        Some(ErrorCode::InvalidRequest)
    } else {
        None
    }
}

/// Words of gateways, compatible vendors and older versions, which no encoder writes.
const OTHER_ERRORS: &[(ErrorCode, &[&str])] = &[
    (
        ErrorCode::Authentication,
        &["invalid_authentication_error", "API_KEY_INVALID", "unauthorized"],
    ),
    (ErrorCode::Permission, &["forbidden", "insufficient_permissions"]),
    (
        ErrorCode::ContextLengthExceeded,
        &["context_window_exceeded", "exceed_context_size_error", "exceeds_context_size_error"],
    ),
    (
        ErrorCode::QuotaExceeded,
        &[
            "billing_hard_limit_reached",
            "credit_balance_exhausted",
            "exceeded_current_quota_error",
            "organization_usage_limit_exceeded",
            "payment_required",
        ],
    ),
    (
        ErrorCode::RateLimited,
        &["rate_limit_reached_error", "ramp_limit_exceeded", "too_many_requests"],
    ),
    (
        ErrorCode::Overloaded,
        &[
            "overloaded",
            "engine_overloaded_error",
            "insufficient_system_resource",
            "service_unavailable",
        ],
    ),
    (ErrorCode::Timeout, &["timeout"]),
    (ErrorCode::Cancelled, &["canceled"]),
    (
        ErrorCode::ContentBlocked,
        &["content_policy_violation", "content_blocked", "ResponsibleAIPolicyViolation"],
    ),
    (
        ErrorCode::InvalidRequest,
        &[
            "invalid_request",
            "bad_request",
            "BadRequestError",
            "FAILED_PRECONDITION",
            "OUT_OF_RANGE",
            "tool_use_failed",
        ],
    ),
    (
        ErrorCode::ServerError,
        &["internal_server_error", "InternalServerError", "ABORTED", "DATA_LOSS", "unknown"],
    ),
];

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

/// Refine a general code by phrases of the message: a context that is too long, refused reasoning, or an overload.
pub(super) fn refined(code: ErrorCode, message: &str) -> ErrorCode {
    if !matches!(code, ErrorCode::InvalidRequest | ErrorCode::ServerError) {
        return code;
    }
    let message = message.to_ascii_lowercase();
    if TOO_LONG.iter().any(|phrase| message.contains(phrase)) {
        ErrorCode::ContextLengthExceeded
    } else if REPLAY_REFUSED.iter().any(|phrase| message.contains(phrase)) {
        ErrorCode::ReplayRefused
    } else if code == ErrorCode::ServerError && message.contains("overloaded") {
        ErrorCode::Overloaded
    } else {
        code
    }
}
