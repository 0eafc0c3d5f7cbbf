//! Facts about protocols as two-way tables: finish reasons, members of usage records, error codes.
//!
//! In: a word of a provider, or a member of a closed list of the contract.  Out: its counterpart.  Decoders and the classifier of
//! refusals read the tables from the words to the contract, encoders from the contract to the words.
//!
//! Laws (checked by a test for each dialect): each table has exactly one row for each member of its closed list.  A row without a
//! word says so, and names the word that an encoder writes instead, if there is one.  A word stands in one row.
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
mod usage;

pub use usage::{UsageMember, UsageNumbers, UsageRow, UsageTable};

use crate::contract::{ErrorCode, FinishReason};

/// One member of a closed list and the words of a protocol for it.
#[derive(Clone, Copy, Debug)]
pub struct Row<T> {
    /// The member.
    pub member: T,
    /// The words that mean the member and nothing else; the first one is written.
    pub words: &'static [&'static str],
    /// The word to write where `words` is empty; `None` where the protocol writes none.
    pub stand_in: Option<&'static str>,
}

impl<T: Copy + PartialEq> Row<T> {
    /// A member that has words of its own.
    const fn own(member: T, words: &'static [&'static str]) -> Self {
        Self { member, words, stand_in: None }
    }

    /// A member without a word, which is written as another member's word.
    const fn as_word(member: T, word: &'static str) -> Self {
        Self { member, words: &[], stand_in: Some(word) }
    }

    /// A member that the protocol cannot say by a word.
    const fn none(member: T) -> Self {
        Self { member, words: &[], stand_in: None }
    }

    /// The word to write.
    pub fn word(&self) -> Option<&'static str> {
        self.words.first().copied().or(self.stand_in)
    }
}

/// Finish reasons of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct FinishReasons {
    /// One row for each finish reason of the contract.
    pub rows: &'static [Row<FinishReason>],
    /// Words in the place of a finish reason that say that the answer failed.
    pub failures: &'static [(&'static str, ErrorCode)],
}

/// Meaning of a word in the place of a finish reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The message ended.
    Finish(FinishReason),
    /// The answer failed.
    Failure(ErrorCode),
}

impl FinishReasons {
    /// The finish reason of a word, in any case; `Other` for a word that is unknown or says that the answer failed.
    pub fn reason(&self, word: &str) -> FinishReason {
        let row =
            self.rows.iter().find(|row| row.words.iter().any(|own| own.eq_ignore_ascii_case(word)));
        row.map_or(FinishReason::Other, |row| row.member)
    }

    /// The finish reason of a word, or the error code of a word that says that the answer failed.
    ///
    /// ```
    /// use deltafold::contract::{ErrorCode, FinishReason};
    /// use deltafold::facts::{Ending, cohere_chat::FACTS};
    /// assert_eq!(FACTS.finish_reasons.ending("COMPLETE"), Ending::Finish(FinishReason::Stop));
    /// assert_eq!(FACTS.finish_reasons.ending("TIMEOUT"), Ending::Failure(ErrorCode::Timeout));
    /// ```
    pub fn ending(&self, word: &str) -> Ending {
        let failure = self.failures.iter().find(|(own, _)| own.eq_ignore_ascii_case(word));
        failure
            .map_or_else(|| Ending::Finish(self.reason(word)), |(_, code)| Ending::Failure(*code))
    }

    /// The word to write for a finish reason; `None` where the protocol says it in another way.
    pub fn word(&self, reason: FinishReason) -> Option<&'static str> {
        self.rows.iter().find(|row| row.member == reason)?.word()
    }
}

/// Error codes of a protocol: the word of the error object, and the HTTP status.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCodes {
    /// One row for each error code of the contract, with the HTTP status that an encoder writes.
    pub rows: &'static [(Row<ErrorCode>, u16)],
}

impl ErrorCodes {
    /// The error code of a word, in any case.
    pub fn code(&self, word: &str) -> Option<ErrorCode> {
        let own = |row: &Row<ErrorCode>| row.words.iter().any(|own| own.eq_ignore_ascii_case(word));
        self.rows.iter().find(|(row, _)| own(row)).map(|(row, _)| row.member)
    }

    /// The word and the HTTP status to write for an error code.
    pub fn word(&self, code: ErrorCode) -> (Option<&'static str>, u16) {
        let row = self.rows.iter().find(|(row, _)| row.member == code);
        row.map_or((None, 500), |(row, status)| (row.word(), *status))
    }
}

/// The facts of one dialect.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Finish reasons.
    pub finish_reasons: FinishReasons,
    /// Members of a usage record.
    pub usage: UsageTable,
    /// Error codes.
    pub errors: ErrorCodes,
}

/// The facts of every protocol that has some of its own.
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

/// The error code of a provider's word, whichever provider it is; `None` for a word that is unknown.
///
/// Words are compared without regard to case.
pub fn error_code(word: &str) -> Option<ErrorCode> {
    let other = || {
        let own = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(word));
        OTHER_ERRORS.iter().find(|(_, names)| own(names)).map(|(code, _)| *code)
    };
    ALL.iter().find_map(|(_, facts)| facts.errors.code(word)).or_else(other)
}
