//! Token counts from the merged `usageMetadata` records of a stream.
//!
//! In: each record as JSON.  Out: the counts and the merged record, if it changed.
//!
//! Laws: a record that differs from the last one only in numbers is compared and counted in one pass, also where a template
//! matches its frame.  A record that was read ahead changes nothing before it is taken.
//! Source: ai.google.dev, "GenerateContentResponse: UsageMetadata".

use std::ops::Range;

use super::facts::FACTS;
use crate::emit::Counts;
use crate::facts::{UsageMember, UsageNumbers};
use crate::json::{self, Kind, Reader, Result, Str, leading_count};
use crate::template::{is_one_line, is_same};

/// The merged records of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Merged {
    record: String,
    /// The last record as it arrived, if it differs from the merged one.
    last: Option<String>,
    /// There is a record, and neither form of it has a line end.
    is_one_line: bool,
    /// Names of the record's members.
    names: Vec<String>,
    numbers: UsageNumbers,
    /// Positions of the members' numbers in the record.
    spans: MemberSpans,
    ahead: Ahead,
}

/// Record that a template read.  It is not part of the state, because a template that matches in part reads one too.
#[derive(Clone, Debug, Default)]
struct Ahead {
    news: News,
    record: String,
    /// Index of the first number that differs in a recounted record.
    first: usize,
    /// Position and value of this number and of each that follows.
    counts: Vec<(Range<usize>, u64)>,
}

impl PartialEq for Ahead {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Difference of a record from the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum News {
    #[default]
    Nothing,
    /// Only numbers of the members differ.
    Numbers,
    /// Not compared.
    Unknown,
}

type MemberSpans = Vec<(Range<usize>, Option<UsageMember>)>;

impl Merged {
    /// Return the length of the merged record.
    pub(super) fn bytes(&self) -> usize {
        self.record.len()
    }

    /// Return true if a record repeats the last one.
    pub(super) fn is_last(&self, new: &str) -> bool {
        self.last.as_ref().unwrap_or(&self.record) == new
    }

    /// Merge a record.  Returns the counts and the merged record, or `None` if the record repeats the last one.
    pub(super) fn take(&mut self, new: &str) -> Option<(Counts, &str)> {
        if self.is_last(new) {
            return None;
        }
        if self.recount(new) == Some(new.len()) {
            self.take_counts();
        } else {
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
            self.is_one_line = is_one_line(new.as_bytes());
        }
        new.clone_into(&mut self.record);
        self.last = None;
        Some((Counts::from_numbers(&FACTS.usage, &self.numbers), &self.record))
    }

    /// Read the record at a reader, and return whether it is a valid object.
    #[inline]
    pub(super) fn read_ahead(&mut self, reader: &mut Reader<'_>) -> bool {
        let rest = reader.cursor().rest();
        let known = self.last.as_ref().unwrap_or(&self.record);
        if self.is_one_line && rest.starts_with(known.as_str()) {
            self.ahead.news = News::Nothing;
            reader.advance(known.len());
            return true;
        }
        let counted = if self.is_one_line { self.recount(rest) } else { None };
        let (news, record) = match counted.and_then(|end| rest.get(..end)) {
            Some(record) => {
                reader.advance(record.len());
                (News::Numbers, record)
            }
            None => match reader.raw() {
                Ok(record) if rest.starts_with('{') && is_one_line(record.as_bytes()) => {
                    (News::Unknown, record)
                }
                _ => return false,
            },
        };
        self.ahead.news = news;
        record.clone_into(&mut self.ahead.record);
        true
    }

    /// Return true if the record that was read ahead differs from the last one.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.ahead.news != News::Nothing
    }

    /// Return the length of a record that was read ahead and differs from the last one.
    pub(super) fn bytes_ahead(&self) -> usize {
        self.ahead.record.len()
    }

    /// Merge the record that was read ahead, as [`Self::take`] does.
    pub(super) fn take_ahead(&mut self) -> Option<(Counts, &str)> {
        match self.ahead.news {
            News::Nothing => None,
            News::Numbers => {
                std::mem::swap(&mut self.record, &mut self.ahead.record);
                self.take_counts();
                self.last = None;
                Some((Counts::from_numbers(&FACTS.usage, &self.numbers), &self.record))
            }
            News::Unknown => {
                let new = std::mem::take(&mut self.ahead.record);
                let is_new = self.take(&new).is_some();
                self.ahead.record = new;
                is_new.then(|| {
                    (Counts::from_numbers(&FACTS.usage, &self.numbers), self.record.as_str())
                })
            }
        }
    }

    /// Exchange the prefetched record with another answer, which compares it with its own records.
    pub(super) fn swap_ahead(&mut self, other: &mut Self) {
        for merged in [&mut *self, &mut *other] {
            if merged.ahead.news == News::Nothing {
                merged.last.as_ref().unwrap_or(&merged.record).clone_into(&mut merged.ahead.record);
            }
            merged.ahead.news = News::Unknown;
        }
        std::mem::swap(&mut self.ahead, &mut other.ahead);
    }

    /// Compare the record at the start of `text` with the merged one, and return its end if only numbers differ.
    ///
    /// The numbers from the first different one on are kept for [`Self::take_counts`].
    fn recount(&mut self, text: &str) -> Option<usize> {
        let (known, text) = (self.record.as_bytes(), text.as_bytes());
        let Ahead { first, counts, .. } = &mut self.ahead;
        counts.clear();
        // Most numbers of a record repeat the last ones.
        let mut mine = 0;
        let repeats = |(span, _): &&(Range<usize>, _)| {
            let range = mine..span.end + 1;
            let (Some(known), Some(text)) = (known.get(range.clone()), text.get(range)) else {
                return false;
            };
            let repeats = is_same(known, text);
            mine = if repeats { span.end } else { mine };
            repeats
        };
        *first = self.spans.iter().take_while(repeats).count();
        let mut at = mine;
        for (span, _) in self.spans.iter().skip(*first) {
            let literal = known.get(mine..span.start)?;
            let start = at + literal.len();
            is_same(literal, text.get(at..start)?).then_some(())?;
            let (value, digits) = leading_count(text.get(start..)?)?;
            if digits > 1 && text.get(start) == Some(&b'0') {
                return None;
            }
            at = start + digits;
            mine = span.end;
            counts.push((start..at, value));
        }
        let tail = known.get(mine..)?;
        text.get(at..)?.starts_with(tail).then_some(())?;
        (!self.spans.is_empty()).then_some(at + tail.len())
    }

    /// Take over the numbers of the record that was compared last.
    fn take_counts(&mut self) {
        let Ahead { first, counts, .. } = &self.ahead;
        let changed = self.spans.get_mut(*first..).unwrap_or_default();
        for ((span, member), (place, value)) in changed.iter_mut().zip(counts) {
            span.clone_from(place);
            if let Some(member) = *member {
                self.numbers.set(member, Some(*value));
            }
        }
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
        self.is_one_line = [&self.record, new].iter().all(|text| is_one_line(text.as_bytes()));
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
