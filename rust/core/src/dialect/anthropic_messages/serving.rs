//! Token counts of the model that served an answer which another model had begun.
//!
//! In: the usage record of `message_delta`.  Out: the record with the counts of the serving model.
//!
//! Law: counts of two models are never mixed.  `message_start` has those of the model that declined, and the last record may
//! leave some of its own out.
//! Source: the provider's page "Refusals and fallback", streaming and billing; `BetaFallbackMessageIterationUsage` of
//! anthropic-sdk-python 2.14 (read 2026-11).

use crate::json::{Reader, members, merge_objects, object};

/// Members of a usage record that count the tokens of one model.
const COUNTS: [&str; 5] = [
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
];

/// Return a usage record with the counts of its last `fallback_message` where it has none; `None` without such an entry.
pub(super) fn with_serving_counts(usage: &str) -> Option<String> {
    let (_, iterations) = members(usage).into_iter().find(|(key, _)| key == "iterations")?;
    let mut serving = None;
    let read = Reader::trusted(iterations).maybe_array(|reader| {
        let entry = members(reader.raw()?);
        if entry.iter().any(|(key, value)| key == "type" && *value == "\"fallback_message\"") {
            serving = Some(entry);
        }
        Ok(())
    });
    let serving = serving.filter(|_| read.is_ok())?;
    let counts = object(|counts| {
        for (key, value) in &serving {
            if COUNTS.contains(&key.as_ref()) {
                counts.json_of(key, value);
            }
        }
    });
    Some(merge_objects(&counts, usage))
}
