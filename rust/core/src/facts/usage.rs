//! Members of usage records: two-way mapping between paths in a provider's JSON and counts.
//!
//! A path has one of three forms:
//! - the name of a member;
//! - `outer.inner` for a member of an object;
//! - `list[AUDIO]` for the sum of `tokenCount` over the entries of a list whose `modality` is audio.
//!
//! Laws: if a count has several paths, the first one with a number counts.  Values that are not numbers are ignored.

use super::members::{UsageMember, UsageRow};
use super::paths::{PathIndex, Place};
use crate::json::{Kind, Reader, Result};

/// The rows of a table with an index of their paths, which the compiler builds.
#[derive(Clone, Copy, Debug)]
pub struct UsageRows {
    /// The rows, in the order of [`UsageMember::ALL`].
    pub list: &'static [UsageRow],
    index: PathIndex,
}

impl UsageRows {
    /// Index the paths of the rows.
    pub const fn new(list: &'static [UsageRow]) -> Self {
        Self { list, index: PathIndex::new(list) }
    }
}

/// The table of a protocol: one row for each member.
#[derive(Clone, Copy, Debug)]
pub struct UsageTable {
    /// The rows and their index.
    pub rows: UsageRows,
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
    /// A path held a cost, or a value other than a count.  Then the numbers of a merged record need a new reading.
    depends_on_order: bool,
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

    /// Return true if reading a later record into these numbers gives the numbers of the merged record.
    pub fn can_grow(&self) -> bool {
        !self.depends_on_order
    }

    /// Set the number of a member, as if its first path had provided it.
    #[inline]
    pub fn set(&mut self, member: UsageMember, count: Option<u64>) {
        if let Some(known) = self.counts.get_mut(member as usize) {
            *known = count;
        }
    }

    #[inline]
    fn take(&mut self, member: UsageMember, rank: u8, count: Option<u64>) {
        let at = member as usize;
        self.depends_on_order |= count.is_none();
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
        self.rows.list.iter().find(|row| row.member == member)?.paths.first().copied()
    }

    /// Return the member at a path.
    pub fn member(&self, path: &str) -> Option<UsageMember> {
        let found = self.rows.index.find(path, |place| place == Place::Whole);
        found.map(|found| found.member).or_else(|| {
            let is_at = |row: &&UsageRow| row.paths.contains(&path);
            self.rows.list.iter().find(is_at).map(|row| row.member)
        })
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
        let index = &self.rows.index;
        if !index.has_names_of_length(key) {
            return reader.skip();
        }
        let kind = reader.kind()?;
        let found = match kind {
            Kind::Object => return self.read_object(reader, key, numbers),
            Kind::Array => index.find(key, |place| place == Place::AudioList),
            _ => index.find(key, |place| place == Place::Whole),
        };
        let Some(path) = found else {
            // A path names another kind of value at this place.
            numbers.depends_on_order |= kind != Kind::Null && index.find(key, |_| true).is_some();
            return reader.skip();
        };
        if kind == Kind::Array {
            numbers.take(path.member, path.rank, audio_tokens(reader)?);
            return Ok(());
        }
        read_number(reader, path.member, path.rank, numbers)
    }

    /// Read the members of an object that paths `key.inner` name.
    fn read_object(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        numbers: &mut UsageNumbers,
    ) -> Result<()> {
        let index = &self.rows.index;
        numbers.depends_on_order |=
            index.find(key, |place| !matches!(place, Place::Inside(_))).is_some();
        if index.find(key, |place| matches!(place, Place::Inside(_))).is_none() {
            return reader.skip();
        }
        reader.object(|reader, inner| {
            match index.find(key, |place| place == Place::Inside(inner)) {
                Some(path) => read_number(reader, path.member, path.rank, numbers),
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
        UsageMember::Cost | UsageMember::CostTicks => {
            let unit = if member == UsageMember::Cost { 1.0 } else { 1e10 };
            numbers.cost = reader.float()?.map(|cost| cost / unit).or(numbers.cost);
            numbers.depends_on_order = true;
        }
        // A null member of a later record changes nothing.
        _ if reader.kind()? == Kind::Null => reader.skip()?,
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
        crate::facts::UsageRows::new(&[$(
            crate::facts::UsageRow { member: crate::facts::UsageMember::$member, paths: &$paths }
        ),*])
    };
}
pub(crate) use usage_rows;
