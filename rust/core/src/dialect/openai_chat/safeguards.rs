//! Verdicts of a gateway on the tool calls of an answer.
//!
//! In: `safeguard_results` beside the choices.  Out: a warning for each flagged call, which stays runnable: the gateway did
//! not block it.
//!
//! Source: `safeguards` of OpenRouter's API, `ChatStreamChunk` of openrouter 1.3.84 (read 2026-11).

use crate::json::{Reader, Result, Str};
use crate::sink::DeltaSink;

/// Warn of each call that a safeguard flagged.
pub(super) fn warn_of_flagged_calls(results: &str, sink: &mut DeltaSink<'_>) {
    // `read` validated the JSON, so that an error here only means a value of another kind.
    let _ = Reader::trusted(results).maybe_array(|reader| read_result(reader, sink));
}

fn read_result(reader: &mut Reader<'_>, sink: &mut DeltaSink<'_>) -> Result<()> {
    let (mut kind, mut calls) = (None, None);
    reader.maybe_object(|reader, key| {
        match key {
            "type" => kind = reader.filled_string()?,
            "status" => reader.maybe_object(|reader, key| {
                match key {
                    "tool_uses" => calls = reader.opt_raw()?,
                    _ => reader.skip()?,
                }
                Ok(())
            })?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    let safeguard = kind.map_or("safeguard".into(), |kind| kind.text());
    let Some(calls) = calls else { return Ok(()) };
    Reader::trusted(calls).maybe_object(|reader, id| {
        let (mut outcome, mut explanation) = (None, None);
        reader.maybe_object(|reader, key| {
            match key {
                "outcome" => outcome = reader.filled_string()?,
                "explanation" => explanation = reader.filled_string()?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        if outcome.is_some_and(|outcome: Str<'_>| outcome.raw == "flagged") {
            let why = explanation.map_or(String::new(), |why: Str<'_>| format!(": {}", why.text()));
            let message = format!("{safeguard} flagged the tool call {id:?}{why}");
            sink.warn("flagged_call", &message, None);
        }
        Ok(())
    })
}
