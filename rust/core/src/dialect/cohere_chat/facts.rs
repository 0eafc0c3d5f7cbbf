//! Facts of Cohere Chat, both versions.
//!
//! Its error bodies contain no code, so that only the HTTP status identifies the error.
//! Source: docs.cohere.com, "Chat with streaming", "Errors" (docs/protocols/decoding.md#facts).

use crate::contract::{ErrorCode, FinishReason};
use crate::facts::{ErrorCodes, Facts, FinishReasons, Row, UsageTable, usage_rows};

/// The tables.
pub const FACTS: Facts = Facts {
    finish_reasons: FinishReasons {
        rows: &[
            Row::own(FinishReason::Stop, &["COMPLETE", "STOP_SEQUENCE"]),
            Row::own(FinishReason::Length, &["MAX_TOKENS", "ERROR_LIMIT"]),
            Row::own(FinishReason::ToolCalls, &["TOOL_CALL"]),
            Row::own(FinishReason::ContentFilter, &["ERROR_TOXIC"]),
            Row::as_word(FinishReason::Refusal, "ERROR_TOXIC"),
            Row::as_word(FinishReason::Pause, "MAX_TOKENS"),
            Row::none(FinishReason::Error),
            Row::as_word(FinishReason::Other, "COMPLETE"),
        ],
        failures: &[
            ("ERROR", ErrorCode::ServerError),
            ("TIMEOUT", ErrorCode::Timeout),
            ("USER_CANCEL", ErrorCode::Cancelled),
        ],
    },
    usage: UsageTable {
        rows: usage_rows! {
            Input: ["tokens.input_tokens"],
            ToolInput: [],
            Output: ["tokens.output_tokens"],
            Total: [],
            CacheRead: ["cached_tokens"],
            CacheWrite: [],
            Reasoning: ["tokens.reasoning_tokens"],
            AudioInput: [],
            AudioOutput: [],
            Cost: [],
            CostTicks: [],
        },
        input_excludes_cache: false,
        output_excludes_reasoning: false,
    },
    errors: ErrorCodes { rows: STATUS_ONLY },
};

/// Error codes of a protocol whose error bodies hold only a text.
const STATUS_ONLY: &[(Row<ErrorCode>, u16)] = &[
    (Row::none(ErrorCode::Authentication), 401),
    (Row::none(ErrorCode::Permission), 403),
    (Row::none(ErrorCode::NotFound), 404),
    (Row::none(ErrorCode::InvalidRequest), 400),
    (Row::none(ErrorCode::ContextLengthExceeded), 400),
    (Row::none(ErrorCode::ReplayRefused), 400),
    (Row::none(ErrorCode::RateLimited), 429),
    (Row::none(ErrorCode::QuotaExceeded), 402),
    (Row::none(ErrorCode::Overloaded), 503),
    (Row::none(ErrorCode::ServerError), 500),
    (Row::none(ErrorCode::Timeout), 504),
    (Row::none(ErrorCode::ConnectionLost), 502),
    (Row::none(ErrorCode::ContentBlocked), 400),
    (Row::none(ErrorCode::ProtocolError), 502),
    (Row::none(ErrorCode::Cancelled), 499),
];
