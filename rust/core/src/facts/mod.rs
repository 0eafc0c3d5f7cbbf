//! Facts about protocols as two-way tables: finish reasons, members of usage records, error codes.
//!
//! In: a word of a provider, or a member of a closed list of the contract.  Out: its counterpart.  Decoders and the
//! classifier of refusals map words to the contract, encoders map the contract to words.
//!
//! Laws, checked by a test for each dialect:
//! - Each table has exactly one row for each member of its closed list.
//! - A row without a word is explicit, and may name the word that an encoder writes instead.
//! - A word occurs in one row only.
//!
//! Sources: mapping of finish reasons, usage and error codes (protocols/mapping.md sections 4 to 6), words to write
//! (protocols/encode.md sections 11 and 12).

pub mod anthropic_messages;
pub mod bedrock_converse;
pub mod bedrock_invoke;
pub mod cohere_chat;
pub mod gemini;
pub mod gemini_interactions;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod table;
mod usage;

pub use table::{Ending, ErrorCodes, Facts, FinishReasons, Row};
pub use usage::{UsageMember, UsageNumbers, UsageRow, UsageTable};

use crate::contract::ErrorCode;

/// The facts of each protocol with tables of its own.
pub const ALL: &[(&str, &Facts)] = &[
    ("anthropic-messages", &anthropic_messages::FACTS),
    ("bedrock-converse", &bedrock_converse::FACTS),
    ("bedrock-invoke", &bedrock_invoke::FACTS),
    ("cohere-chat", &cohere_chat::FACTS),
    ("gemini", &gemini::FACTS),
    ("gemini-interactions", &gemini_interactions::FACTS),
    ("ollama", &ollama::FACTS),
    ("openai-chat", &openai_chat::FACTS),
    ("openai-responses", &openai_responses::FACTS),
];

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

/// Return the error code of a word of any provider; `None` for an unknown word.
///
/// Words are compared without regard to case.
pub fn error_code(word: &str) -> Option<ErrorCode> {
    let other = || {
        let own = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(word));
        OTHER_ERRORS.iter().find(|(_, names)| own(names)).map(|(code, _)| *code)
    };
    ALL.iter().find_map(|(_, facts)| facts.errors.code(word)).or_else(other)
}
