//! Facts of Ollama.
//!
//! Its error bodies hold only a text.
//! Source: the API document of Ollama's repository (docs/protocols/decoding.md#facts).

use crate::contract::FinishReason;
use crate::dialect::cohere_chat::facts as cohere_chat;
use crate::facts::{Facts, FinishReasons, Row, UsageTable, usage_rows};

/// Finish words of a line that is no answer.
pub(super) const LOADED: [&str; 2] = ["load", "unload"];

/// The tables.
pub const FACTS: Facts = Facts {
    finish_reasons: FinishReasons {
        rows: &[
            Row::own(FinishReason::Stop, &["stop"]),
            Row::own(FinishReason::Length, &["length"]),
            // The call itself is a member of the message.
            Row::as_word(FinishReason::ToolCalls, "stop"),
            Row::as_word(FinishReason::ContentFilter, "stop"),
            Row::as_word(FinishReason::Refusal, "stop"),
            Row::as_word(FinishReason::Pause, "length"),
            // An encoder writes the error line.
            Row::none(FinishReason::Error),
            // The model was loaded or unloaded, and generated nothing.
            Row::own(FinishReason::Other, &LOADED).written_as("stop"),
        ],
        failures: &[],
    },
    usage: UsageTable {
        rows: usage_rows! {
            Input: ["prompt_eval_count"],
            ToolInput: [],
            Output: ["eval_count"],
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
    errors: cohere_chat::FACTS.errors,
};
