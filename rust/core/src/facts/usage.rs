//! Members of usage records: two-way mapping between paths in a provider's JSON and counts.
//!
//! A path has one of three forms:
//! - the name of a member;
//! - `outer.inner` for a member of an object;
//! - `list[AUDIO]` for the sum of `tokenCount` over the entries of a list whose `modality` is audio.
//!
//! Laws: if a count has several paths, the first one with a number counts.  Values that are not numbers are ignored.

use crate::json::{Kind, Reader, Result};

/// A count of a usage record, as the provider counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageMember {
    /// Tokens of the prompt.
    Input,
    /// Tokens that tools added to the prompt, if they are not part of `Input`.
    ToolInput,
    /// Tokens generated.
    Output,
    /// Sum of prompt and generated tokens.
    Total,
    /// Prompt tokens read from a cache.
    CacheRead,
    /// Prompt tokens written to a cache.
    CacheWrite,
    /// Tokens spent on reasoning.
    Reasoning,
    /// Audio tokens of the prompt.
    AudioInput,
    /// Audio tokens generated.
    AudioOutput,
    /// US dollars.
    Cost,
    /// Ten billionths of a US dollar (xAI).
    CostTicks,
}

impl UsageMember {
    /// All members.
    pub const ALL: [Self; 11] = [
        Self::Input,
        Self::ToolInput,
        Self::Output,
        Self::Total,
        Self::CacheRead,
        Self::CacheWrite,
        Self::Reasoning,
        Self::AudioInput,
        Self::AudioOutput,
        Self::Cost,
        Self::CostTicks,
    ];
}

/// A count and its paths.  The first path is written.  The list is empty if the protocol has no such count.
#[derive(Clone, Copy, Debug)]
pub struct UsageRow {
    /// The count.
    pub member: UsageMember,
    /// The paths of the count in a record.
    pub paths: &'static [&'static str],
}

/// The table of a protocol: one row for each member.
#[derive(Clone, Copy, Debug)]
pub struct UsageTable {
    /// The rows, in the order of [`UsageMember::ALL`].
    pub rows: &'static [UsageRow],
    /// `Input` excludes tokens read from or written to a cache (Anthropic, Bedrock).
    pub input_excludes_cache: bool,
    /// `Output` excludes reasoning tokens (Gemini).
    pub output_excludes_reasoning: bool,
}

/// Numbers of one usage record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageNumbers {
    counts: [Option<u64>; UsageMember::ALL.len()],
    /// Position of the path that provided the count.
    ranks: [u8; UsageMember::ALL.len()],
    cost: Option<f64>,
}

impl UsageNumbers {
    /// Return the number of a member.
    #[inline]
    pub fn get(&self, member: UsageMember) -> Option<u64> {
        self.counts.get(member as usize).copied().flatten()
    }

    /// Return the cost in US dollars, from whichever member holds it.
    pub fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// Set the number of a member, as if its first path had provided it.
    #[inline]
    pub fn set(&mut self, member: UsageMember, count: Option<u64>) {
        if let Some(known) = self.counts.get_mut(member as usize) {
            *known = count;
        }
    }

    fn take(&mut self, member: UsageMember, rank: u8, count: Option<u64>) {
        let at = member as usize;
        if let (Some(known), Some(best), Some(_)) =
            (self.counts.get_mut(at), self.ranks.get_mut(at), count)
            && (known.is_none() || rank <= *best)
        {
            *known = count;
            *best = rank;
        }
    }
}

impl UsageTable {
    /// Return the first path of a member; `None` if the protocol has no such count.
    pub fn path(&self, member: UsageMember) -> Option<&'static str> {
        self.rows.iter().find(|row| row.member == member)?.paths.first().copied()
    }

    /// Return the member at a path.
    pub fn member(&self, path: &str) -> Option<UsageMember> {
        self.find(|own| own == path).map(|(member, _)| member)
    }

    /// Find the path that `is` accepts: its member, and its position among the member's paths.
    #[inline]
    fn find(&self, is: impl Fn(&str) -> bool) -> Option<(UsageMember, u8)> {
        for row in self.rows {
            for (path, rank) in row.paths.iter().zip(0..) {
                if is(path) {
                    return Some((row.member, rank));
                }
            }
        }
        None
    }

    /// Read a usage record that was validated before.
    pub fn read(&self, usage: &str) -> Result<UsageNumbers> {
        let mut numbers = UsageNumbers::default();
        Reader::trusted(usage)
            .maybe_object(|reader, key| self.read_member(reader, key, &mut numbers))?;
        Ok(numbers)
    }

    /// Read the value of one member of a record.
    pub fn read_member(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        numbers: &mut UsageNumbers,
    ) -> Result<()> {
        let kind = reader.kind()?;
        let found = match kind {
            Kind::Object => return self.read_object(reader, key, numbers),
            Kind::Array => self.find(|own| own.strip_suffix("[AUDIO]") == Some(key)),
            _ => self.find(|own| own == key),
        };
        match found {
            None => reader.skip(),
            Some((member, rank)) if kind == Kind::Array => {
                numbers.take(member, rank, audio_tokens(reader)?);
                Ok(())
            }
            Some((member, rank)) => read_number(reader, member, rank, numbers),
        }
    }

    /// Read the members of an object that paths `key.inner` name.
    fn read_object(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        numbers: &mut UsageNumbers,
    ) -> Result<()> {
        let inside = |own: &str| own.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        if self.find(inside).is_none() {
            return reader.skip();
        }
        reader.object(|reader, inner| {
            let path = |own: &str| {
                own.strip_prefix(key).and_then(|rest| rest.strip_prefix('.')) == Some(inner)
            };
            match self.find(path) {
                Some((member, rank)) => read_number(reader, member, rank, numbers),
                None => reader.skip(),
            }
        })
    }
}

fn read_number(
    reader: &mut Reader<'_>,
    member: UsageMember,
    rank: u8,
    numbers: &mut UsageNumbers,
) -> Result<()> {
    match member {
        UsageMember::Cost => numbers.cost = reader.float()?.or(numbers.cost),
        UsageMember::CostTicks => {
            numbers.cost = reader.float()?.map(|ticks| ticks / 1e10).or(numbers.cost);
        }
        member => numbers.take(member, rank, reader.count()?),
    }
    Ok(())
}

/// Return the sum of the audio tokens in a list `[{modality, tokenCount}]`.
fn audio_tokens(reader: &mut Reader<'_>) -> Result<Option<u64>> {
    let mut found: Option<u64> = None;
    reader.maybe_array(|reader| {
        let (mut is_audio, mut count) = (false, None);
        reader.maybe_object(|reader, key| {
            match key {
                "modality" => {
                    let name = reader.opt_string()?;
                    is_audio = name.is_some_and(|name| name.raw.eq_ignore_ascii_case("audio"));
                }
                "tokenCount" | "token_count" | "tokens" => count = reader.count()?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        if let Some(count) = count.filter(|_| is_audio) {
            found = Some(found.unwrap_or_default().saturating_add(count));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Shorthand for the rows of a table, in the order of [`UsageMember::ALL`].
macro_rules! usage_rows {
    ($($member:ident: $paths:expr),* $(,)?) => {
        &[$(crate::facts::UsageRow { member: crate::facts::UsageMember::$member, paths: &$paths }),*]
    };
}
pub(crate) use usage_rows;
