//! Facts of Gemini's Interactions API.  The words of the finish reasons are the statuses of an interaction.
//!
//! Source: ai.google.dev, "Interactions API: Interaction" (docs/protocols/decoding.md#facts).

use crate::contract::{ErrorCode, FinishReason};
use crate::dialect::gemini::facts as gemini;
use crate::facts::{Facts, FinishReasons, Row, UsageTable, usage_rows};

/// The tables.
pub const FACTS: Facts = Facts {
    finish_reasons: FinishReasons {
        rows: &[
            Row::own(FinishReason::Stop, &["completed"]),
            Row::own(FinishReason::Length, &["incomplete", "budget_exceeded"]),
            Row::own(FinishReason::ToolCalls, &["requires_action"]),
            Row::as_word(FinishReason::ContentFilter, "incomplete"),
            Row::as_word(FinishReason::Refusal, "completed"),
            Row::own(FinishReason::Pause, &["requires_continuation"]),
            Row::none(FinishReason::Error),
            Row::as_word(FinishReason::Other, "completed"),
        ],
        failures: &[("failed", ErrorCode::ServerError), ("cancelled", ErrorCode::Cancelled)],
    },
    usage: UsageTable {
        rows: usage_rows! {
            Input: ["total_input_tokens"],
            ToolInput: ["total_tool_use_tokens"],
            Output: ["total_output_tokens"],
            Total: ["total_tokens"],
            CacheRead: ["total_cached_tokens"],
            CacheWrite: [],
            // The second name is the older one.
            Reasoning: ["total_thought_tokens", "total_reasoning_tokens"],
            AudioInput: ["input_tokens_by_modality[AUDIO]"],
            AudioOutput: ["output_tokens_by_modality[AUDIO]"],
            Cost: [],
            CostTicks: [],
        },
        input_excludes_cache: false,
        output_excludes_reasoning: true,
    },
    errors: gemini::FACTS.errors,
};
