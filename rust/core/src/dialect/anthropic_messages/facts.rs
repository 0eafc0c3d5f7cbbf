//! Facts of the Anthropic Messages API.
//!
//! Source: docs.claude.com, "Handling stop reasons", "Errors" and "Messages: usage" (docs/protocols/decoding.md#facts).

use crate::contract::{ErrorCode, FinishReason};
use crate::facts::{ErrorCodes, Facts, FinishReasons, Row, UsageTable, usage_rows};

/// The tables.
pub const FACTS: Facts = Facts {
    finish_reasons: FinishReasons {
        rows: &[
            Row::own(FinishReason::Stop, &["end_turn", "stop_sequence"]),
            Row::own(FinishReason::Length, &["max_tokens", "model_context_window_exceeded"]),
            Row::own(FinishReason::ToolCalls, &["tool_use"]),
            Row::as_word(FinishReason::ContentFilter, "refusal"),
            Row::own(FinishReason::Refusal, &["refusal"]),
            Row::own(FinishReason::Pause, &["pause_turn", "compaction"]),
            // An encoder writes the error event.
            Row::none(FinishReason::Error),
            Row::as_word(FinishReason::Other, "end_turn"),
        ],
        failures: &[],
    },
    usage: UsageTable {
        rows: usage_rows! {
            Input: ["input_tokens"],
            ToolInput: [],
            Output: ["output_tokens"],
            Total: [],
            CacheRead: ["cache_read_input_tokens"],
            CacheWrite: ["cache_creation_input_tokens"],
            Reasoning: ["output_tokens_details.thinking_tokens"],
            AudioInput: [],
            AudioOutput: [],
            Cost: [],
            CostTicks: [],
        },
        input_excludes_cache: true,
        output_excludes_reasoning: false,
    },
    errors: ErrorCodes {
        rows: &[
            (Row::own(ErrorCode::Authentication, &["authentication_error"]), 401),
            (Row::own(ErrorCode::Permission, &["permission_error"]), 403),
            (Row::own(ErrorCode::NotFound, &["not_found_error"]), 404),
            (
                Row::own(
                    ErrorCode::InvalidRequest,
                    &["invalid_request_error", "request_too_large"],
                ),
                400,
            ),
            (Row::as_word(ErrorCode::ContextLengthExceeded, "invalid_request_error"), 400),
            (Row::as_word(ErrorCode::ReplayRefused, "invalid_request_error"), 400),
            (Row::own(ErrorCode::RateLimited, &["rate_limit_error"]), 429),
            (Row::own(ErrorCode::QuotaExceeded, &["billing_error"]), 402),
            (Row::own(ErrorCode::Overloaded, &["overloaded_error"]), 529),
            (Row::own(ErrorCode::ServerError, &["api_error", "conflict_error"]), 500),
            (Row::own(ErrorCode::Timeout, &["timeout_error"]), 504),
            (Row::as_word(ErrorCode::ConnectionLost, "api_error"), 502),
            (Row::as_word(ErrorCode::ContentBlocked, "invalid_request_error"), 400),
            (Row::as_word(ErrorCode::ProtocolError, "api_error"), 502),
            (Row::as_word(ErrorCode::Cancelled, "api_error"), 499),
        ],
    },
};
