//! `DeltaBatch`: the deltas of one feed, in one arena of text and small records.
//!
//! In: deltas, through [`Output`].  Out: the same deltas by position.
//!
//! Laws: a batch does not change after its feed.  Deltas that carry only text, and ends of parts, need no allocation of
//! their own.  Every other payload is stored whole in a separate list.  Sequence numbers rise by one within a batch.

use std::borrow::Cow;
use std::ops::Range;

use super::call_id::CallId;
use super::delta::{Delta, Payload};
use super::kinds::DeltaKind;
use super::output::Output;
use super::text_only::TextOnlyDelta;

#[derive(Clone, Debug, PartialEq)]
enum Record {
    Text { part: u32, text: Range<usize> },
    Thinking { part: u32, text: Range<usize> },
    Args { part: u32, id: CallId, text: Range<usize> },
    PartEnd { part: u32 },
    Rare(usize),
}

/// Deltas of one feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeltaBatch {
    first_seq: u64,
    arena: String,
    /// Separate from the others, because many feeds hold one delta.
    first: Option<Record>,
    more: Vec<Record>,
    /// Boxed, because batches are moved often and rarely hold any of these fields.
    rare_fields: Option<Box<RareFields>>,
}

/// Fields that few batches need.
#[derive(Clone, Debug, Default, PartialEq)]
struct RareFields {
    rare: Vec<Payload<Box<str>>>,
    /// JSON of frames by record position.
    raw: Vec<(usize, Box<str>)>,
}

impl DeltaBatch {
    /// Return the number of deltas.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    /// Return true if the batch holds no delta.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.first.iter().chain(&self.more)
    }

    /// Return the visible text of all deltas, joined.
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.records().filter_map(|record| match record {
            Record::Text { text, .. } => Some(self.slice(text)),
            Record::Rare(at) => match self.rare(*at)? {
                Payload::Text { text, .. } => Some(text.as_ref()),
                _ => None,
            },
            Record::Thinking { .. } | Record::Args { .. } | Record::PartEnd { .. } => None,
        });
        let first = texts.next().unwrap_or("");
        match texts.next() {
            None => first.into(),
            Some(second) => [first, second].into_iter().chain(texts).collect(),
        }
    }

    fn record(&self, position: usize) -> Option<&Record> {
        match position.checked_sub(1) {
            None => self.first.as_ref(),
            Some(position) => self.more.get(position),
        }
    }

    fn rare(&self, at: usize) -> Option<&Payload<Box<str>>> {
        self.rare_fields.as_ref()?.rare.get(at)
    }

    /// Return the sequence number of the delta at `position`.
    #[inline]
    pub fn seq(&self, position: usize) -> u64 {
        self.first_seq + position as u64
    }

    /// Return the delta at `position`.
    pub fn get(&self, position: usize) -> Option<Delta<&str>> {
        let record = self.record(position)?;
        let payload = match record {
            Record::Rare(at) => self.rare(*at)?.as_deref(),
            Record::PartEnd { part } => Payload::PartEnd { part_index: *part },
            record => self.as_text_only(record)?.into(),
        };
        let raw = self.rare_fields.as_deref().and_then(|rare_fields| rare_fields.raw_of(position));
        Some(Delta { seq: self.seq(position), payload, provider_raw: raw })
    }

    /// Return the delta at `position` if it carries only text and no JSON of a frame.
    #[inline]
    pub fn text_only(&self, position: usize) -> Option<TextOnlyDelta<'_>> {
        match &self.rare_fields {
            Some(rare_fields) if !rare_fields.raw.is_empty() => None,
            _ => self.as_text_only(self.record(position)?),
        }
    }

    /// Return a copy with another message and provider code in its final error; `None` if the batch ends without an error.
    pub fn with_error_texts(
        &self,
        message: Box<str>,
        provider_code: Option<Box<str>>,
    ) -> Option<Self> {
        let mut changed = self.clone();
        match changed.rare_fields.as_deref_mut()?.rare.last_mut()? {
            Payload::Error(failure) => {
                failure.message = Some(message);
                failure.provider_code = provider_code;
            }
            _ => return None,
        }
        Some(changed)
    }

    /// Return all deltas, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Delta<&str>> {
        (0..self.len()).filter_map(|position| self.get(position))
    }

    /// Return the deltas from `position` on, as a batch of their own.
    #[must_use]
    pub fn rest(&self, position: usize) -> Self {
        let mut rest = Self::default();
        self.replay_from(position, &mut rest);
        rest
    }

    /// Send all deltas to `out`, oldest first.
    pub fn replay(&self, out: &mut impl Output) {
        self.replay_from(0, out);
    }

    fn replay_from(&self, start: usize, out: &mut impl Output) {
        for position in start..self.len() {
            if let Some(plain) = self.text_only(position) {
                out.text_only(self.seq(position), plain);
            } else if let Some(delta) = self.get(position) {
                out.delta(&delta);
            }
        }
    }

    /// Return the kind of the delta at `position`.
    pub fn kind(&self, position: usize) -> Option<DeltaKind> {
        self.get(position).map(|delta| delta.payload.kind())
    }

    fn slice(&self, range: &Range<usize>) -> &str {
        self.arena.get(range.clone()).unwrap_or("")
    }

    #[inline]
    fn as_text_only<'a>(&'a self, record: &'a Record) -> Option<TextOnlyDelta<'a>> {
        Some(match record {
            Record::Text { part, text } => {
                TextOnlyDelta::Text { part: *part, text: self.slice(text) }
            }
            Record::Thinking { part, text } => {
                TextOnlyDelta::Thinking { part: *part, text: self.slice(text) }
            }
            Record::Args { part, id, text } => {
                TextOnlyDelta::Args { part: *part, id, text: self.slice(text) }
            }
            Record::PartEnd { .. } | Record::Rare(_) => return None,
        })
    }

    #[inline]
    fn push(&mut self, seq: u64, record: Record) {
        if self.first.is_none() {
            self.first_seq = seq;
            self.first = Some(record);
        } else {
            self.more.push(record);
        }
    }

    #[inline]
    fn keep(&mut self, text: &str) -> Range<usize> {
        let start = self.arena.len();
        if start == 0 {
            // Often the only text of the batch, so the capacity is exact.
            self.arena = String::from(text);
        } else {
            self.arena.push_str(text);
        }
        start..self.arena.len()
    }

    fn rare_fields(&mut self) -> &mut RareFields {
        self.rare_fields.get_or_insert_default()
    }
}

impl RareFields {
    fn raw_of(&self, position: usize) -> Option<&str> {
        let at = self.raw.binary_search_by_key(&position, |(at, _)| *at).ok()?;
        self.raw.get(at).map(|(_, raw)| raw.as_ref())
    }
}

impl Output for DeltaBatch {
    fn delta(&mut self, delta: &Delta<&str>) {
        if let Some(raw) = delta.provider_raw {
            let position = self.len();
            self.rare_fields().raw.push((position, raw.into()));
        }
        if let Some(plain) = delta.payload.text_only() {
            return self.text_only(delta.seq, plain);
        }
        if let Payload::PartEnd { part_index } = delta.payload {
            return self.push(delta.seq, Record::PartEnd { part: part_index });
        }
        let rare = &mut self.rare_fields().rare;
        rare.push(delta.payload.to_owned());
        let record = Record::Rare(rare.len() - 1);
        self.push(delta.seq, record);
    }

    #[inline]
    fn text_only(&mut self, seq: u64, delta: TextOnlyDelta<'_>) {
        let record = match delta {
            TextOnlyDelta::Text { part, text } => Record::Text { part, text: self.keep(text) },
            TextOnlyDelta::Thinking { part, text } => {
                Record::Thinking { part, text: self.keep(text) }
            }
            TextOnlyDelta::Args { part, id, text } => {
                Record::Args { part, id: id.clone(), text: self.keep(text) }
            }
        };
        self.push(seq, record);
    }
}
