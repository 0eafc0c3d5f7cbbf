//! Log probabilities in the form of Gemini's `logprobsResult`.
//!
//! In: the tokens of an answer with their alternatives.  Out: the members `topCandidates` and `chosenCandidates`.

use crate::contract::Logprobs;
use crate::json::{ObjectWriter, write_list, write_members};

/// Write the members of `logprobsResult`.
pub(super) fn write_logprobs(result: &mut ObjectWriter<'_>, logprobs: &Logprobs) {
    let candidate = |out: &mut String, token: &str, logprob: f64| {
        write_members(out, |object| {
            object.text("token", token);
            if logprob.is_finite() {
                object.number("logProbability", logprob);
            }
        });
    };
    let alternatives = logprobs.alternatives().into_iter();
    let mut rows = alternatives.flat_map(|top| top.texts().zip(top.values().iter().copied()));
    let mut ends = logprobs.offsets().iter().skip(1);
    let mut taken = 0;
    result.value("topCandidates", |out| {
        write_list(out, 0..logprobs.len(), |out, _| {
            let end = ends.next().and_then(|end| usize::try_from(*end).ok()).unwrap_or(taken);
            let count = end.saturating_sub(taken);
            taken = end.max(taken);
            write_members(out, |object| {
                object.value("candidates", |out| {
                    write_list(out, rows.by_ref().take(count), |out, (token, value)| {
                        candidate(out, token, value);
                    });
                });
            });
        });
    });
    let tokens = logprobs.tokens();
    result.value("chosenCandidates", |out| {
        let rows = tokens.texts().zip(tokens.values().iter().copied());
        write_list(out, rows, |out, (token, value)| candidate(out, token, value));
    });
}
