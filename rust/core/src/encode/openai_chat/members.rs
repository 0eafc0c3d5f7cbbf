//! Members that chunks and whole bodies of Chat share: calls, usage and state.
//!
//! In: calls, counts and JSON objects.  Out: members of an object.

use crate::contract::InputFormat;
use crate::encode::{Call, Counts, Fact, Settings, State, facts_of, optional};
use crate::json::{ObjectWriter, members};

const DIALECT: &str = "openai-chat";

/// Finish reasons that the official clients know.  `function_call` is none of them: it announces the member of that
/// name, and every call is written as one of `tool_calls`.
pub(super) const FINISH_REASONS: &[&str] = &["stop", "length", "tool_calls", "content_filter"];

/// Write the members of a JSON object.
pub(super) fn write_all(object: &mut ObjectWriter<'_>, json: &str) {
    for (key, value) in members(json) {
        object.json_of(&key, value);
    }
}

/// Write the members of a usage record.
pub(super) fn write_usage(object: &mut ObjectWriter<'_>, counts: Counts) {
    object.number("prompt_tokens", counts.input);
    object.number("completion_tokens", counts.output);
    object.number("total_tokens", counts.total());
    let (cache_read, cache_write) = counts.cache();
    if cache_read.is_some() || cache_write.is_some() {
        object.object("prompt_tokens_details", |details| {
            optional(details, "cached_tokens", cache_read);
            optional(details, "cache_write_tokens", cache_write);
        });
    }
    if let Some(reasoning) = counts.reasoning() {
        object.object("completion_tokens_details", |details| {
            details.number("reasoning_tokens", reasoning);
        });
    }
}

/// Write the members of a call that has these arguments.
pub(super) fn write_call(item: &mut ObjectWriter<'_>, call: &Call, args: &str) {
    item.text("id", &call.id);
    if call.format == InputFormat::Text {
        item.text("type", "custom");
        item.object("custom", |custom| {
            custom.text("name", &call.name);
            custom.text("input", args);
        });
    } else {
        item.text("type", "function");
        item.object("function", |function| {
            function.text("name", &call.name);
            function.text("arguments", args);
        });
    }
}

/// Return the `extra_content` that a call's own state holds, as JSON.
pub(super) fn own_extra<'a>(settings: &Settings, call: &'a Call) -> Option<&'a str> {
    let state = State::read(call.state.as_deref()?);
    let is_own = state.is_own(settings, DIALECT);
    state.member("extra_content").filter(|_| is_own)
}

/// Write a text or null.
pub(super) fn optional_text(object: &mut ObjectWriter<'_>, key: &'static str, text: Option<&str>) {
    match text {
        Some(text) => object.text(key, text),
        None => object.json(key, "null"),
    }
}

/// Facts of an answer that chunks and whole bodies have beside their choices.
///
/// Sources: the types `ChatCompletionChunk` of openai-python 3.57 and groq-python 1.7, `ChatStreamChunk` of openrouter 1.3.84.
const FACTS: [&str; 10] = [
    "alignment",
    "graph_data",
    "metadata",
    "moderation",
    "prompt_filter_results",
    "safeguard_results",
    "service_tier",
    "system_fingerprint",
    "time_info",
    "x_groq",
];

/// Return the facts that a chunk has.  The moderation of Responses has one result where that of Chat has a list.
pub(super) fn facts_of_chat(details: Option<&str>) -> Vec<Fact<'_>> {
    let mut facts = facts_of(details, &FACTS);
    facts.retain(|(name, json)| name != "moderation" || json.contains("\"moderation_results\""));
    facts
}
