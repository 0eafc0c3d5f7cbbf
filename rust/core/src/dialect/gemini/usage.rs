//! Token counts from the merged `usageMetadata` records of a stream.
//!
//! In: each record as JSON.  Out: the counts and the merged record, if it changed.
//!
//! Law: a record that differs from the last one only in numbers is compared and counted in one pass.
//! Source: ai.google.dev, "GenerateContentResponse: UsageMetadata".

use std::ops::Range;

use super::facts::FACTS;
use crate::emit::Counts;
use crate::facts::{UsageMember, UsageNumbers};
use crate::json::{self, Kind, Reader, Result, Str, leading_count};

/// The merged records of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Merged {
    record: String,
    /// The last record as it arrived, if it differs from the merged one.
    last: Option<String>,
    /// Names of the record's members.
    names: Vec<String>,
    numbers: UsageNumbers,
    /// Positions of the members' numbers in the record.
    spans: MemberSpans,
}

type MemberSpans = Vec<(Range<usize>, Option<UsageMember>)>;

impl Merged {
    /// Return the length of the merged record.
    pub(super) fn bytes(&self) -> usize {
        self.record.len()
    }

    /// Merge a record.  Returns the counts and the merged record, or `None` if the record repeats the last one.
    pub(super) fn take(&mut self, new: &str) -> Option<(Counts, &str)> {
        if self.last.as_ref().unwrap_or(&self.record) == new {
            return None;
        }
        if !self.recount(new) {
            // Nearly all records of a stream have the same members.  Then the new record replaces the merged one.
            let mut known = self.names.iter();
            let mut whole = true;
            let found = read(new, |name, kind| {
                let next = known.next();
                whole &= kind != Kind::Null && next.is_some_and(|known| name.raw == known);
            });
            if !whole || known.next().is_some() {
                return self.merge(new);
            }
            (self.numbers, self.spans) = found.ok()?;
        }
        new.clone_into(&mut self.record);
        self.last = None;
        Some((Counts::from_numbers(&FACTS.usage, &self.numbers), &self.record))
    }

    /// Update the counts from a record that differs only in the numbers of its members.  Returns false for any other record.
    fn recount(&mut self, new: &str) -> bool {
        let known = self.record.as_bytes();
        let (mut mine, mut rest) = (0, new.as_bytes());
        for (span, member) in &mut self.spans {
            let literal = known.get(mine..span.start).unwrap_or_default();
            let value = rest.strip_prefix(literal).and_then(leading_count);
            let Some((value, digits)) = value else {
                // Earlier iterations have already moved some spans to their positions in the new record.
                self.spans.clear();
                return false;
            };
            mine = span.end;
            let start = new.len() - rest.len() + literal.len();
            *span = start..start + digits;
            if let Some(member) = *member {
                self.numbers.set(member, Some(value));
            }
            rest = new.as_bytes().get(span.end..).unwrap_or_default();
        }
        let same = !self.spans.is_empty() && known.get(mine..) == Some(rest);
        if !same {
            self.spans.clear();
        }
        same
    }

    fn merge(&mut self, new: &str) -> Option<(Counts, &str)> {
        let known = if self.record.is_empty() { "{}" } else { &self.record };
        let record = json::merge_objects(known, new);
        let (members, added) = (json::members(&record), json::members(new));
        let covers =
            members.len() == added.len() && added.iter().all(|(_, value)| *value != "null");
        let members = if covers { added } else { members };
        let written = json::write_object(&members);
        self.names = members.into_iter().map(|(name, _)| name.into_owned()).collect();
        self.record = written;
        self.last = (self.record != new).then(|| new.to_owned());
        (self.numbers, self.spans) = read(&self.record, |_, _| {}).ok()?;
        Some((Counts::from_numbers(&FACTS.usage, &self.numbers), &self.record))
    }
}

/// Read the numbers of a record and the spans of its members' numbers.  Calls `member` with each member.
fn read(usage: &str, mut member: impl FnMut(Str<'_>, Kind)) -> Result<(UsageNumbers, MemberSpans)> {
    let mut numbers = UsageNumbers::default();
    let mut spans = MemberSpans::new();
    Reader::trusted(usage).entries(|reader, key| {
        member(key, reader.kind()?);
        let start = reader.position();
        FACTS.usage.read_member(reader, key.raw, &mut numbers)?;
        if leading_count(reader.since(start).as_bytes())
            .is_some_and(|(_, digits)| start + digits == reader.position())
        {
            spans.push((start..reader.position(), FACTS.usage.member(key.raw)));
        }
        Ok(())
    })?;
    Ok((numbers, spans))
}
