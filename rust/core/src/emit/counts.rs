//! Token counts as a dialect merged them, and the contract's arithmetic over them.

use super::sink::{DeltaSink, Emitter};
use crate::contract::{Output, Payload, Usage};
use crate::json::{self, Result};

/// Bytes of provider state that one repeated byte of a usage record counts for: merging reads and writes it several times.
/// Known records have at most 2 KB and are repeated once or twice.
const REPEATED_BYTE_COST: usize = 16;

/// Merged counts of a dialect, before the contract's arithmetic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Tokens of the whole prompt.
    pub input: Option<u64>,
    /// Tokens generated.
    pub output: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
    /// Prompt tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Tokens spent on reasoning.
    pub reasoning: Option<u64>,
    /// Audio tokens of the prompt.
    pub audio_input: Option<u64>,
    /// Audio tokens generated.
    pub audio_output: Option<u64>,
}

impl Counts {
    /// Sets the input of a provider whose input count excludes what a cache gave and took.
    pub fn set_input_beside_cache(&mut self, input: Option<u64>) {
        let cached = self.cache_read.into_iter().chain(self.cache_write);
        self.input = input.map(|input| cached.fold(input, u64::saturating_add));
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The known record with these counts in its gaps.
    pub(super) fn fill(&self, known: Option<&Usage<String>>, raw: &str) -> Usage<String> {
        let beside = self.to_usage(String::new(), raw);
        let Some(known) = known else { return beside };
        let mut filled = known.clone();
        for (count, other) in [
            (&mut filled.input, beside.input),
            (&mut filled.output, beside.output),
            (&mut filled.cache_read, beside.cache_read),
            (&mut filled.cache_write, beside.cache_write),
        ] {
            *count = count.or(other);
        }
        filled.total =
            filled.input.zip(filled.output).and_then(|(input, output)| input.checked_add(output));
        filled
    }

    /// The contract's record; its details are written in the memory of `details`.
    ///
    /// Total = input + output; reasoning never exceeds output (13 of 2,023 recorded streams say it does).
    pub(super) fn to_usage(&self, mut details: String, raw: &str) -> Usage<String> {
        use std::fmt::Write as _;
        details.clear();
        details.reserve(raw.len() + "{\"raw\":}".len());
        details.push('{');
        for (name, value) in
            [("audioInputTokens", self.audio_input), ("audioOutputTokens", self.audio_output)]
        {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = write!(details, "\"{name}\":{value},");
            }
        }
        details.push_str("\"raw\":");
        details.push_str(raw);
        details.push('}');
        let total =
            self.input.zip(self.output).and_then(|(input, output)| input.checked_add(output));
        Usage {
            input: self.input,
            output: self.output,
            total,
            cost: self.cost,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self
                .reasoning
                .map(|count| self.output.map_or(count, |output| count.min(output))),
            details: Some(details),
        }
    }
}

impl<O: Output> DeltaSink<'_, O> {
    /// Merges a usage record into the `known` ones, where the last non-null value of each member wins, and sends the counts
    /// when they changed.
    pub fn merge_usage(
        &mut self,
        known: &mut Option<String>,
        new: &str,
        counts: fn(&str) -> Result<Counts>,
    ) {
        if !self.take_repeated_bytes(known.as_ref().map_or(0, String::len), new.len()) {
            return;
        }
        let merged = match known {
            Some(known) => json::merge_deep(known, new),
            None => json::compact(new),
        };
        if let Ok(counts) = counts(&merged) {
            self.usage(&counts, &merged);
        }
        *known = Some(merged);
    }

    /// Counts what a record of `new` bytes repeats of the `known` ones.  To merge it and to send it costs the bytes of both,
    /// so that many small records after a large one are a burden like provider state.  Records that say everything anew,
    /// as those of streams with a record in each event do, repeat nothing.
    pub fn take_repeated_bytes(&mut self, known: usize, new: usize) -> bool {
        self.take_state_bytes(known.saturating_sub(new).saturating_mul(REPEATED_BYTE_COST))
    }

    /// Takes the merged counts; a usage delta leaves when they changed.  `raw` is the provider's own record as JSON.
    pub fn usage(&mut self, counts: &Counts, raw: &str) {
        if self.ended() || counts.is_empty() {
            return;
        }
        let Emitter { deltas, usage, scratch, .. } = &mut *self.emitter;
        let later = counts.to_usage(std::mem::take(scratch), raw);
        if usage.as_ref() == Some(&later) {
            *scratch = later.details.unwrap_or_default();
        } else {
            deltas.send(self.out, Payload::Usage(later.map(String::as_str)));
            // The memory of the record before is that of the next.
            let before = usage.replace(later);
            *scratch = before.and_then(|usage| usage.details).unwrap_or_default();
        }
    }

    /// Takes counts from beside the message: at its end they stand in for those that its own record leaves out.
    pub fn usage_beside(&mut self, counts: Counts, raw: &str) {
        if !counts.is_empty() && self.take_state_bytes(raw.len()) {
            self.emitter.usage_beside = Some(Box::new((counts, raw.to_owned())));
        }
    }
}
