//! Facts of Amazon Bedrock's Converse API.
//!
//! Source: docs.aws.amazon.com, "ConverseStream: MessageStopEvent, TokenUsage, Errors"
//! (docs/protocols/decoding.md#facts).

use crate::contract::{ErrorCode, FinishReason};
use crate::facts::{ErrorCodes, Facts, FinishReasons, Row, UsageTable, usage_rows};

/// The tables.
pub const FACTS: Facts = Facts {
    finish_reasons: FinishReasons {
        rows: &[
            Row::own(FinishReason::Stop, &["end_turn", "stop_sequence"]),
            Row::own(FinishReason::Length, &["max_tokens", "model_context_window_exceeded"]),
            Row::own(FinishReason::ToolCalls, &["tool_use"]),
            Row::own(FinishReason::ContentFilter, &["content_filtered", "guardrail_intervened"]),
            Row::as_word(FinishReason::Refusal, "content_filtered"),
            Row::as_word(FinishReason::Pause, "max_tokens"),
            Row::own(FinishReason::Error, &["malformed_model_output", "malformed_tool_use"]),
            Row::as_word(FinishReason::Other, "end_turn"),
        ],
        failures: &[],
    },
    usage: UsageTable {
        rows: usage_rows! {
            Input: ["inputTokens"],
            ToolInput: [],
            Output: ["outputTokens"],
            Total: ["totalTokens"],
            // The second names are the older ones, which are sent beside the newer ones.
            CacheRead: ["cacheReadInputTokens", "cacheReadInputTokenCount"],
            CacheWrite: ["cacheWriteInputTokens", "cacheWriteInputTokenCount"],
            Reasoning: [],
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
            (
                Row::own(
                    ErrorCode::Authentication,
                    &[
                        "UnrecognizedClientException",
                        "ExpiredTokenException",
                        "InvalidSignatureException",
                    ],
                ),
                403,
            ),
            (Row::own(ErrorCode::Permission, &["AccessDeniedException"]), 403),
            (Row::own(ErrorCode::NotFound, &["ResourceNotFoundException"]), 404),
            (Row::own(ErrorCode::InvalidRequest, &["ValidationException"]), 400),
            (Row::as_word(ErrorCode::ContextLengthExceeded, "ValidationException"), 400),
            (Row::as_word(ErrorCode::ReplayRefused, "ValidationException"), 400),
            (Row::own(ErrorCode::RateLimited, &["ThrottlingException"]), 429),
            (Row::own(ErrorCode::QuotaExceeded, &["ServiceQuotaExceededException"]), 400),
            (
                Row::own(
                    ErrorCode::Overloaded,
                    &["ServiceUnavailableException", "ModelNotReadyException"],
                ),
                503,
            ),
            (
                Row::own(
                    ErrorCode::ServerError,
                    &["InternalServerException", "ModelErrorException"],
                ),
                500,
            ),
            (Row::own(ErrorCode::Timeout, &["ModelTimeoutException"]), 408),
            // `originalStatusCode` shows the actual failure, so the name alone is not read as a code.
            (Row::as_word(ErrorCode::ConnectionLost, "ModelStreamErrorException"), 424),
            (Row::as_word(ErrorCode::ContentBlocked, "ValidationException"), 400),
            (Row::as_word(ErrorCode::ProtocolError, "InternalServerException"), 502),
            (Row::as_word(ErrorCode::Cancelled, "InternalServerException"), 499),
        ],
    },
};
