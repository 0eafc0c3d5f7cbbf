//! `Counts`: token counts of a provider, and the contract's arithmetic over them.
//!
//! Law: total = input + output, and reasoning tokens never exceed the output.

use crate::contract::Usage;
use crate::facts::{UsageMember, UsageNumbers, UsageTable};
use crate::json::{Result, write_members};

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
    /// Reads a provider's record that was validated before.
    pub fn read(table: &UsageTable, record: &str) -> Result<Self> {
        Ok(Self::from_numbers(table, &table.read(record)?))
    }

    /// Translates the numbers of a provider's record.
    ///
    /// A record with more cached tokens than prompt tokens counts the cached ones beside the prompt (xAI).  A total that is the
    /// sum of prompt, completion and reasoning says that the completion excludes reasoning (xAI).
    pub fn from_numbers(table: &UsageTable, numbers: &UsageNumbers) -> Self {
        let get = |member| numbers.get(member);
        let (prompt, cached) = (get(UsageMember::Input), get(UsageMember::CacheRead));
        let written = get(UsageMember::CacheWrite).filter(|_| table.input_excludes_cache);
        let beside = cached.filter(|cached| {
            table.input_excludes_cache || prompt.is_some_and(|prompt| *cached > prompt)
        });
        let input = sum([prompt, get(UsageMember::ToolInput)])
            .map(|input| [beside, written].into_iter().flatten().fold(input, u64::saturating_add));
        let (completion, reasoning) = (get(UsageMember::Output), get(UsageMember::Reasoning));
        let all = sum([completion, reasoning]);
        let total = sum([prompt, all]);
        let is_beside = reasoning.is_some_and(|count| count > 0)
            && completion.is_some()
            && prompt.is_some()
            && total == get(UsageMember::Total);
        Self {
            input,
            output: if table.output_excludes_reasoning || is_beside { all } else { completion },
            cost: numbers.cost(),
            cache_read: cached,
            cache_write: get(UsageMember::CacheWrite),
            reasoning,
            audio_input: get(UsageMember::AudioInput),
            audio_output: get(UsageMember::AudioOutput),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Return the known record with its missing counts filled by these.
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

    /// Return the contract's record; its details reuse the memory of `details`.
    ///
    /// Reasoning is cut to the output: in 13 of 2,023 recorded streams it is larger.
    pub(super) fn to_usage(&self, mut details: String, raw: &str) -> Usage<String> {
        details.clear();
        details.reserve(raw.len() + "{\"raw\":}".len());
        write_members(&mut details, |object| {
            for (name, value) in
                [("audioInputTokens", self.audio_input), ("audioOutputTokens", self.audio_output)]
            {
                if let Some(value) = value {
                    object.number(name, value);
                }
            }
            object.json("raw", raw);
        });
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

/// The sum of the known counts; unknown when none is known.
fn sum<const N: usize>(counts: [Option<u64>; N]) -> Option<u64> {
    counts.into_iter().flatten().reduce(u64::saturating_add)
}
