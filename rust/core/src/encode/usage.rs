//! Token counts in the conventions of the targets.

use super::draft::Draft;
use crate::json::ObjectWriter;

/// Counts of a stream with what each convention needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tokens of the prompt, including cached ones.
    pub input: u64,
    /// Generated tokens, including reasoning.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning: Option<u64>,
}

impl Counts {
    /// Return the counts if input and output are both known.
    pub fn known(draft: &Draft) -> Option<Self> {
        let usage = &draft.head.usage;
        Some(Self { input: usage.input?, output: usage.output?, ..Self::details(draft) })
    }

    /// Return the counts with 0 for each that is unknown, and note it.
    pub fn filled(draft: &mut Draft) -> Self {
        let (input, output) = (draft.head.usage.input, draft.head.usage.output);
        for (name, count) in [("input tokens", input), ("output tokens", output)] {
            if count.is_none() {
                draft.notes.add("usage", &format!("unknown {name} are written as 0"));
            }
        }
        Self { input: input.unwrap_or(0), output: output.unwrap_or(0), ..Self::details(draft) }
    }

    fn details(draft: &Draft) -> Self {
        let usage = &draft.head.usage;
        Self {
            input: 0,
            output: 0,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning: usage.reasoning,
        }
    }

    /// Return `input + output`.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Return the counts of the cache, unless together they exceed the prompt.
    pub fn cache(self) -> (Option<u64>, Option<u64>) {
        let sum = self.cache_read.unwrap_or(0).saturating_add(self.cache_write.unwrap_or(0));
        if sum > self.input { (None, None) } else { (self.cache_read, self.cache_write) }
    }

    /// Return the tokens of the prompt without those of the cache.
    pub fn input_without_cache(self) -> u64 {
        let (read, write) = self.cache();
        self.input - read.unwrap_or(0) - write.unwrap_or(0)
    }

    /// Return the tokens of reasoning, at most those of the output.
    pub fn reasoning(self) -> Option<u64> {
        self.reasoning.map(|reasoning| reasoning.min(self.output))
    }
}

/// Write the members of a count that may be unknown.
pub fn optional(object: &mut ObjectWriter<'_>, key: &'static str, count: Option<u64>) {
    if let Some(count) = count {
        object.number(key, count);
    }
}
