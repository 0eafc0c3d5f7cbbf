//! Facts of the completion bodies of Amazon Bedrock's InvokeModel (Titan, Llama, Mistral, Cohere), decode only.
//!
//! Other bodies of InvokeModel use the protocol of another dialect, and the facts of that dialect.
//! Source: docs.aws.amazon.com, "Inference request parameters and response fields"
//! (docs/protocols/decoding.md#facts).

use crate::contract::{ErrorCode, FinishReason};
use crate::dialect::bedrock_converse::facts as bedrock_converse;
use crate::facts::{Facts, FinishReasons, Row, UsageTable, usage_rows};

/// The tables.
pub const FACTS: Facts = Facts {
    finish_reasons: FinishReasons {
        rows: &[
            Row::own(
                FinishReason::Stop,
                &[
                    "stop",
                    "finish",
                    "finished",
                    "complete",
                    "end_turn",
                    "stop_sequence",
                    "stop_criteria_met",
                ],
            ),
            Row::own(FinishReason::Length, &["length", "max_tokens"]),
            Row::own(FinishReason::ToolCalls, &["tool_calls", "tool_call", "tool_use"]),
            Row::own(FinishReason::ContentFilter, &["content_filtered", "error_toxic"]),
            Row::as_word(FinishReason::Refusal, "content_filtered"),
            Row::as_word(FinishReason::Pause, "length"),
            Row::none(FinishReason::Error),
            Row::as_word(FinishReason::Other, "stop"),
        ],
        failures: &[("error", ErrorCode::ServerError), ("timeout", ErrorCode::Timeout)],
    },
    usage: UsageTable {
        rows: usage_rows! {
            // Titan's name first, then that of Llama.
            Input: ["inputTextTokenCount", "prompt_token_count"],
            ToolInput: [],
            Output: ["totalOutputTextTokenCount", "generation_token_count", "tokenCount"],
            Total: [],
            CacheRead: [],
            CacheWrite: [],
            Reasoning: [],
            AudioInput: [],
            AudioOutput: [],
            Cost: [],
            CostTicks: [],
        },
        input_excludes_cache: false,
        output_excludes_reasoning: false,
    },
    errors: bedrock_converse::FACTS.errors,
};

/// Members of `amazon-bedrock-invocationMetrics`, which Bedrock adds to the last event of any body.
pub const METRICS: UsageTable = UsageTable {
    rows: usage_rows! {
        Input: ["inputTokenCount"],
        ToolInput: [],
        Output: ["outputTokenCount"],
        Total: [],
        CacheRead: ["cacheReadInputTokenCount"],
        CacheWrite: ["cacheWriteInputTokenCount"],
        Reasoning: [],
        AudioInput: [],
        AudioOutput: [],
        Cost: [],
        CostTicks: [],
    },
    input_excludes_cache: true,
    output_excludes_reasoning: false,
};
