//! Facts of Gemini's `generateContent`.
//!
//! Two services send finish reasons as numbers.  The tables list the numbers on which both agree.
//! Source: ai.google.dev, "GenerateContentResponse: FinishReason, UsageMetadata"; google.rpc.Code
//! (docs/protocols/decoding.md#facts).

use crate::contract::{ErrorCode, FinishReason};
use crate::facts::{ErrorCodes, Facts, FinishReasons, Row, UsageTable, usage_rows};

/// Member of the provider state and of a candidate.
pub const CONTINUATION: &str = "continuationToken";

/// The members that hold the sources of the text, by kind of source.
pub const METADATA: [&str; 3] = ["citationMetadata", GROUNDING, "urlContextMetadata"];

/// Member with the sources of a grounded text.
pub const GROUNDING: &str = "groundingMetadata";

/// Member of [`GROUNDING`] with the searches, which are billed apart from tokens.
///
/// Source: the pricing page of the Gemini API, "Grounding with Google Search" (read 2026-11).
pub const SEARCHES: &str = "webSearchQueries";

/// The tables.
pub const FACTS: Facts = Facts {
    finish_reasons: FinishReasons {
        rows: &[
            Row::own(FinishReason::Stop, &["STOP", "1"]),
            Row::own(FinishReason::Length, &["MAX_TOKENS", "2"]),
            // The call itself is a part of the content.
            Row::as_word(FinishReason::ToolCalls, "STOP"),
            Row::own(
                FinishReason::ContentFilter,
                &[
                    "SAFETY",
                    "3",
                    "RECITATION",
                    "4",
                    "LANGUAGE",
                    "BLOCKLIST",
                    "PROHIBITED_CONTENT",
                    "SPII",
                    "IMAGE_SAFETY",
                    "IMAGE_PROHIBITED_CONTENT",
                    "IMAGE_RECITATION",
                    "MODEL_ARMOR",
                    "ESCALATION",
                    "PUP_LIMITED_DISABLED",
                ],
            ),
            Row::as_word(FinishReason::Refusal, "SAFETY"),
            Row::own(FinishReason::Pause, &["CONTINUATION"]),
            Row::own(
                FinishReason::Error,
                &[
                    "MALFORMED_RESPONSE",
                    "MALFORMED_FUNCTION_CALL",
                    "UNEXPECTED_TOOL_CALL",
                    "TOO_MANY_TOOL_CALLS",
                    "MISSING_THOUGHT_SIGNATURE",
                ],
            ),
            Row::own(FinishReason::Other, &["OTHER", "NO_IMAGE"]),
        ],
        failures: &[],
    },
    usage: UsageTable {
        rows: usage_rows! {
            Input: ["promptTokenCount", "prompt_token_count"],
            ToolInput: ["toolUsePromptTokenCount", "tool_use_prompt_token_count"],
            // The Live API and older answers of Vertex use the last name.
            Output: ["candidatesTokenCount", "candidates_token_count", "responseTokenCount"],
            Total: ["totalTokenCount", "total_token_count"],
            CacheRead: ["cachedContentTokenCount", "cached_content_token_count"],
            CacheWrite: [],
            Reasoning: ["thoughtsTokenCount", "thoughts_token_count"],
            AudioInput: ["promptTokensDetails[AUDIO]", "prompt_tokens_details[AUDIO]"],
            AudioOutput: ["candidatesTokensDetails[AUDIO]", "candidates_tokens_details[AUDIO]"],
            Cost: [],
            CostTicks: [],
        },
        input_excludes_cache: false,
        output_excludes_reasoning: true,
    },
    errors: ErrorCodes {
        rows: &[
            (Row::own(ErrorCode::Authentication, &["UNAUTHENTICATED"]), 401),
            (Row::own(ErrorCode::Permission, &["PERMISSION_DENIED"]), 403),
            (Row::own(ErrorCode::NotFound, &["NOT_FOUND"]), 404),
            (Row::own(ErrorCode::InvalidRequest, &["INVALID_ARGUMENT"]), 400),
            (Row::as_word(ErrorCode::ContextLengthExceeded, "INVALID_ARGUMENT"), 400),
            (Row::as_word(ErrorCode::ReplayRefused, "INVALID_ARGUMENT"), 400),
            (Row::own(ErrorCode::RateLimited, &["RESOURCE_EXHAUSTED"]), 429),
            (Row::as_word(ErrorCode::QuotaExceeded, "RESOURCE_EXHAUSTED"), 429),
            (Row::own(ErrorCode::Overloaded, &["UNAVAILABLE"]), 503),
            (Row::own(ErrorCode::ServerError, &["INTERNAL"]), 500),
            (Row::own(ErrorCode::Timeout, &["DEADLINE_EXCEEDED"]), 504),
            (Row::as_word(ErrorCode::ConnectionLost, "UNAVAILABLE"), 502),
            (Row::as_word(ErrorCode::ContentBlocked, "INVALID_ARGUMENT"), 400),
            (Row::as_word(ErrorCode::ProtocolError, "INTERNAL"), 502),
            (Row::own(ErrorCode::Cancelled, &["CANCELLED"]), 499),
        ],
    },
};
