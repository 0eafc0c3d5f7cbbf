//! The response object of the first and the last events.

use crate::contract::{ErrorCode, Failure};
use crate::dialect::openai_responses::facts::FACTS;
use crate::encode::{Counts, Draft, facts_of, write_facts};
use crate::json::{object, write_list};

/// Members that repeat the request and that the clients require, and their values where the request is not known.
const REPEATED: [(&str, &str); 7] = [
    ("instructions", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("tool_choice", r#""auto""#),
    ("tools", "[]"),
    ("temperature", "null"),
    ("top_p", "null"),
];

/// Facts of an answer that the last response object has.
///
/// Source: the type `Response` of openai-python 3.57.
const OF_THE_ANSWER: [&str; 9] = [
    "billing",
    "completed_at",
    "content_filters",
    "conversation",
    "input_transformations",
    "moderation",
    "prompt_cache_diagnostics",
    "service_tier",
    "tool_usage",
];

/// Return the response object.
pub(super) fn json(
    draft: &mut Draft,
    status: &str,
    output: &[String],
    incomplete: Option<&str>,
    error: Option<&str>,
    details: Option<&str>,
) -> String {
    let mut facts = facts_of(details, &OF_THE_ANSWER);
    facts.retain(|(name, json)| name != "moderation" || !json.contains("\"moderation_results\""));
    let counts = if status == "in_progress" { None } else { counts(draft) };
    object(|response| {
        response.text("id", &draft.head.request_id);
        response.text("object", "response");
        response.number("created_at", draft.head.created_seconds());
        response.text("status", status);
        response.text("model", &draft.head.model_id);
        response.value("output", |out| write_list(out, output, |out, item| out.push_str(item)));
        response.json("error", error.unwrap_or("null"));
        match incomplete {
            Some(reason) => {
                response.object("incomplete_details", |details| details.text("reason", reason));
            }
            None => response.json("incomplete_details", "null"),
        }
        let asked = &draft.settings.response_fields;
        for (name, unknown) in REPEATED {
            response.json(name, asked.get(name).map_or(unknown, |value| value));
        }
        for (name, value) in asked.iter() {
            let is_written = REPEATED.iter().any(|(known, _)| *known == &**name)
                || facts.iter().any(|(known, _)| **known == **name);
            if !is_written {
                response.json_of(name, value);
            }
        }
        write_facts(response, &facts);
        match counts {
            None => response.json("usage", "null"),
            Some(counts) => response.object("usage", |usage| {
                let (cache_read, cache_write) = counts.cache();
                usage.number("input_tokens", counts.input);
                usage.object("input_tokens_details", |details| {
                    details.number("cached_tokens", cache_read.unwrap_or(0));
                    if let Some(tokens) = cache_write {
                        details.number("cache_write_tokens", tokens);
                    }
                });
                usage.number("output_tokens", counts.output);
                usage.object("output_tokens_details", |details| {
                    details.number("reasoning_tokens", counts.reasoning().unwrap_or(0));
                });
                usage.number("total_tokens", counts.total());
            }),
        }
    })
}

/// Return the counts of the last record.  The clients require the details, so unknown ones are 0.
fn counts(draft: &mut Draft) -> Option<Counts> {
    let counts = Counts::known(draft);
    match counts {
        None if draft.head.has_usage => {
            draft.notes.add("usage", "a usage record without both counts");
        }
        Some(counts) if counts.cache_read.is_none() || counts.reasoning.is_none() => {
            draft.notes.add("usage", "unknown cached or reasoning tokens are written as 0");
        }
        _ => {}
    }
    counts
}

/// Return the code of an error object.  Codex ends the turn for `invalid_prompt` and asks again for codes that it does not
/// know.
pub(super) fn error_code(draft: &Draft, failure: &Failure<&str>) -> &'static str {
    let word = FACTS.errors.word(failure.code).0;
    let ends_turn =
        matches!(failure.code, ErrorCode::ContextLengthExceeded | ErrorCode::QuotaExceeded);
    let retryable = failure.retryable.unwrap_or(failure.code.retryable());
    if draft.settings.final_errors_end_turn && !retryable && !ends_turn {
        return "invalid_prompt";
    }
    word.unwrap_or("invalid_prompt")
}
