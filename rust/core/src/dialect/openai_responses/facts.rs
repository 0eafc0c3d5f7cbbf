//! Facts of OpenAI Responses and compatible servers.
//!
//! The words of the finish reasons are those of `incomplete_details.reason`.  A response that ended normally has the status
//! `completed`.
//! Source: platform.openai.com, "Responses: the response object" (docs/protocols/decoding.md#facts).

use std::borrow::Cow;

use crate::contract::{ErrorCode, FinishReason};
use crate::dialect::openai_chat::facts as openai_chat;
use crate::facts::{ErrorCodes, Facts, FinishReasons, Row};
use crate::json::Str;

/// Member of a response with what its tools used.
pub const TOOL_USAGE: &str = "tool_usage";

/// Items that OpenAI bills apart from tokens, by the call, the session or the image.
///
/// Source: developers.openai.com, "Pricing: built-in tools" (read 2026-11).
pub const BILLED_CALLS: [&str; 4] =
    ["code_interpreter_call", "file_search_call", "image_generation_call", "web_search_call"];

/// The tables.  The usage record has the members of Chat with the prefixes `input` and `output`, which Chat's table lists.
pub const FACTS: Facts = Facts {
    finish_reasons: FinishReasons {
        rows: &[
            Row::own(FinishReason::Stop, &["completed"]),
            Row::own(FinishReason::Length, &["max_output_tokens"]),
            // The call itself is an item of the output.
            Row::as_word(FinishReason::ToolCalls, "completed"),
            Row::own(FinishReason::ContentFilter, &["content_filter"]),
            // The refusal itself is a part of the message.
            Row::as_word(FinishReason::Refusal, "completed").beside_calls("content_filter"),
            Row::own(FinishReason::Pause, &["max_messages", "steered"]),
            // An encoder writes the status `failed`.
            Row::none(FinishReason::Error),
            Row::as_word(FinishReason::Other, "completed"),
        ],
        failures: &[],
    },
    usage: openai_chat::FACTS.usage,
    errors: ErrorCodes {
        rows: &[
            (Row::own(ErrorCode::Authentication, &["invalid_api_key"]), 401),
            (Row::none(ErrorCode::Permission), 403),
            (Row::own(ErrorCode::NotFound, &["model_not_found"]), 404),
            (Row::none(ErrorCode::InvalidRequest), 400),
            (Row::own(ErrorCode::ContextLengthExceeded, &["context_length_exceeded"]), 400),
            (Row::own(ErrorCode::ReplayRefused, &["invalid_encrypted_content"]), 400),
            (Row::own(ErrorCode::RateLimited, &["rate_limit_exceeded"]), 429),
            (Row::own(ErrorCode::QuotaExceeded, &["insufficient_quota"]), 429),
            (Row::own(ErrorCode::Overloaded, &["server_is_overloaded"]), 503),
            (Row::own(ErrorCode::ServerError, &["server_error"]), 500),
            (Row::as_word(ErrorCode::Timeout, "server_error"), 504),
            (Row::as_word(ErrorCode::ConnectionLost, "server_error"), 502),
            // `invalid_prompt` also means an invalid request, so it is not read as this code.
            (Row::as_word(ErrorCode::ContentBlocked, "invalid_prompt"), 400),
            (Row::as_word(ErrorCode::ProtocolError, "server_error"), 502),
            (Row::as_word(ErrorCode::Cancelled, "server_error"), 499),
        ],
    },
};

/// Return the name of a tool with its namespace.
///
/// A function that the provider loads later is called in a namespace of its own name: this name.
pub fn flat_name<'a>(namespace: Option<Str<'a>>, name: Str<'a>) -> Cow<'a, str> {
    let name = name.unescaped();
    match namespace.map(|namespace| namespace.unescaped()) {
        Some(namespace) if !namespace.is_empty() && namespace != name => {
            Cow::Owned(format!("{namespace}__{name}"))
        }
        _ => name,
    }
}
