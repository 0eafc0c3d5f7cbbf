//! Facts of OpenAI Chat Completions and compatible servers.
//!
//! A comment names the vendor of a member or word that OpenAI does not send.
//! Source: platform.openai.com, "Chat Completions", "Error codes"; the servers' documents and recordings
//! (docs/protocols/decoding.md#facts).

use crate::contract::{ErrorCode, FinishReason};
use crate::facts::{ErrorCodes, Facts, FinishReasons, Row, UsageTable, usage_rows};

/// Member of a text's state that marks the text as the transcript of audio.
pub const AUDIO: &str = "audio";

/// The tables.
pub const FACTS: Facts = Facts {
    finish_reasons: FinishReasons {
        rows: &[
            Row::own(FinishReason::Stop, &["stop", "eos", "eos_token"]),
            Row::own(
                FinishReason::Length,
                &["length", "model_length", "model_context_window_exceeded"],
            ),
            Row::own(FinishReason::ToolCalls, &["tool_calls", "function_call"]),
            Row::own(FinishReason::ContentFilter, &["content_filter", "sensitive"]),
            // The refusal itself is a member of the message.
            Row::as_word(FinishReason::Refusal, "stop").beside_calls("content_filter"),
            Row::as_word(FinishReason::Pause, "length"),
            Row::own(FinishReason::Error, &["error", "network_error"]),
            Row::as_word(FinishReason::Other, "stop"),
        ],
        // The words of DeepSeek, and of vLLM and SGLang, which abort answers when new weights are loaded.
        failures: &[
            ("insufficient_system_resource", ErrorCode::Overloaded),
            ("abort", ErrorCode::ServerError),
        ],
    },
    usage: UsageTable {
        rows: usage_rows! {
            Input: ["prompt_tokens", "input_tokens"],
            ToolInput: [],
            Output: ["completion_tokens", "output_tokens"],
            Total: ["total_tokens"],
            CacheRead: [
                "prompt_tokens_details.cached_tokens",
                "input_tokens_details.cached_tokens",
                // The names of DeepSeek, of Together and Hugging Face, of Mistral, and of Databricks.
                "prompt_cache_hit_tokens",
                "cached_tokens",
                "num_cached_tokens",
                "cache_read_input_tokens",
            ],
            CacheWrite: [
                "prompt_tokens_details.cache_write_tokens",
                "input_tokens_details.cache_write_tokens",
                // The name of Databricks.
                "cache_creation_input_tokens",
            ],
            Reasoning: [
                "completion_tokens_details.reasoning_tokens",
                "output_tokens_details.reasoning_tokens",
                // The name of DeepSeek on Azure.
                "reasoning_tokens",
            ],
            AudioInput: ["prompt_tokens_details.audio_tokens", "input_tokens_details.audio_tokens"],
            AudioOutput: [
                "completion_tokens_details.audio_tokens",
                "output_tokens_details.audio_tokens",
            ],
            // OpenRouter sends a number, Perplexity an object.
            Cost: ["cost", "cost.total_cost"],
            CostTicks: ["cost_in_usd_ticks"],
        },
        input_excludes_cache: false,
        output_excludes_reasoning: false,
    },
    errors: ErrorCodes {
        rows: &[
            (Row::own(ErrorCode::Authentication, &["invalid_api_key"]), 401),
            (Row::none(ErrorCode::Permission), 403),
            (Row::own(ErrorCode::NotFound, &["model_not_found"]), 404),
            (Row::none(ErrorCode::InvalidRequest), 400),
            (Row::own(ErrorCode::ContextLengthExceeded, &["context_length_exceeded"]), 400),
            (Row::none(ErrorCode::ReplayRefused), 400),
            (Row::own(ErrorCode::RateLimited, &["rate_limit_exceeded"]), 429),
            (Row::own(ErrorCode::QuotaExceeded, &["insufficient_quota"]), 429),
            (Row::own(ErrorCode::Overloaded, &["server_is_overloaded"]), 503),
            (Row::own(ErrorCode::ServerError, &["server_error"]), 500),
            (Row::as_word(ErrorCode::Timeout, "server_error"), 504),
            (Row::as_word(ErrorCode::ConnectionLost, "server_error"), 502),
            (Row::own(ErrorCode::ContentBlocked, &["content_filter"]), 400),
            (Row::as_word(ErrorCode::ProtocolError, "server_error"), 502),
            (Row::as_word(ErrorCode::Cancelled, "server_error"), 499),
        ],
    },
};

/// Members of llama.cpp's `timings`, for servers that send no usage.
pub const TIMINGS: UsageTable = UsageTable {
    rows: usage_rows! {
        Input: ["prompt_n"],
        ToolInput: [],
        Output: ["predicted_n"],
        Total: [],
        CacheRead: ["cache_n"],
        CacheWrite: [],
        Reasoning: [],
        AudioInput: [],
        AudioOutput: [],
        Cost: [],
        CostTicks: [],
    },
    input_excludes_cache: true,
    output_excludes_reasoning: false,
};
