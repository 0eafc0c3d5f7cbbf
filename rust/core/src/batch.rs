//! DeltaBatch: the deltas of one feed in one arena of text and small records, immutable after its feed.
//!
//! Laws: text, thinking and argument deltas that carry nothing but text cost no allocation of their own; everything rare
//! is kept whole in a side vector.  The seq of a batch rises by one from its first.

use std::borrow::Cow;
use std::ops::Range;

use crate::delta::{Delta, DeltaKind, Output, Payload, Plain, Riders};

#[derive(Clone, Debug, PartialEq)]
enum Record {
    Text { part: u32, text: Range<usize> },
    Thinking { part: u32, text: Range<usize> },
    Args { id: Range<usize>, text: Range<usize> },
    Rare(usize),
}

/// The deltas of one feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeltaBatch {
    now: u64,
    first_seq: u64,
    arena: String,
    /// Apart from the others, because many feeds hold one delta.
    first: Option<Record>,
    more: Vec<Record>,
    rare: Vec<Payload<Box<str>>>,
    /// Frame JSON by record number.
    raw: Vec<(usize, Box<str>)>,
    last_id: Range<usize>,
}

impl DeltaBatch {
    /// An empty batch of a feed at `now`, milliseconds since 1970 UTC.
    pub fn new(now: u64) -> Self {
        Self { now, ..Self::default() }
    }

    /// When the feed was, milliseconds since 1970 UTC.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How many deltas.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.first.iter().chain(&self.more)
    }

    /// The visible text, joined.
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.records().filter_map(|record| match record {
            Record::Text { text, .. } => Some(self.slice(text)),
            Record::Rare(at) => match self.rare.get(*at)? {
                Payload::Text { text, .. } => Some(text.as_ref()),
                _ => None,
            },
            Record::Thinking { .. } | Record::Args { .. } => None,
        });
        let first = texts.next().unwrap_or("");
        match texts.next() {
            None => first.into(),
            Some(second) => [first, second].into_iter().chain(texts).collect(),
        }
    }

    /// The delta at `position`.
    pub fn get(&self, position: usize) -> Option<Delta<&str>> {
        let record = match position.checked_sub(1) {
            None => self.first.as_ref()?,
            Some(position) => self.more.get(position)?,
        };
        let payload = match record {
            Record::Text { part, text } => Payload::Text {
                text: self.slice(text),
                part_index: Some(*part),
                riders: Riders::default(),
            },
            Record::Thinking { part, text } => Payload::Thinking {
                text: self.slice(text),
                part_index: Some(*part),
                riders: Riders::default(),
            },
            Record::Args { id, text } => {
                Payload::ToolCallArgs { id: self.slice(id), text: self.slice(text) }
            }
            Record::Rare(at) => self.rare.get(*at)?.as_deref(),
        };
        let raw = self.raw.binary_search_by_key(&position, |(at, _)| *at).ok();
        let provider_raw = raw.and_then(|at| self.raw.get(at)).map(|(_, raw)| raw.as_ref());
        Some(Delta { seq: self.first_seq + position as u64, payload, provider_raw })
    }

    /// All deltas, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Delta<&str>> {
        (0..self.len()).filter_map(|position| self.get(position))
    }

    /// Says everything again, oldest first.
    pub fn replay(&self, out: &mut impl Output) {
        for (position, record) in self.records().enumerate() {
            let plain = match record {
                // Frame JSON, where it was asked for, rides on whole deltas.
                _ if !self.raw.is_empty() => None,
                Record::Text { part, text } => {
                    Some(Plain::Text { part: *part, text: self.slice(text) })
                }
                Record::Thinking { part, text } => {
                    Some(Plain::Thinking { part: *part, text: self.slice(text) })
                }
                Record::Args { id, text } => {
                    Some(Plain::Args { id: self.slice(id), text: self.slice(text) })
                }
                Record::Rare(_) => None,
            };
            if let Some(plain) = plain {
                out.plain(self.first_seq + position as u64, plain);
            } else if let Some(delta) = self.get(position) {
                out.delta(&delta);
            }
        }
    }

    /// The kind of the delta at `position`.
    pub fn kind(&self, position: usize) -> Option<DeltaKind> {
        self.get(position).map(|delta| delta.payload.kind())
    }

    fn slice(&self, range: &Range<usize>) -> &str {
        self.arena.get(range.clone()).unwrap_or("")
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
        self.arena.push_str(text);
        start..self.arena.len()
    }
}

impl Output for DeltaBatch {
    fn delta(&mut self, delta: &Delta<&str>) {
        if let Some(raw) = delta.provider_raw {
            self.raw.push((self.len(), raw.into()));
        }
        match delta.payload {
            Payload::Text { text, part_index: Some(part), riders }
                if riders == Riders::default() =>
            {
                self.plain(delta.seq, Plain::Text { part, text });
            }
            Payload::Thinking { text, part_index: Some(part), riders }
                if riders == Riders::default() =>
            {
                self.plain(delta.seq, Plain::Thinking { part, text });
            }
            Payload::ToolCallArgs { id, text } => self.plain(delta.seq, Plain::Args { id, text }),
            payload => {
                self.rare.push(payload.to_owned());
                self.push(delta.seq, Record::Rare(self.rare.len() - 1));
            }
        }
    }

    #[inline]
    fn plain(&mut self, seq: u64, plain: Plain<'_>) {
        let record = match plain {
            Plain::Text { part, text } => Record::Text { part, text: self.keep(text) },
            Plain::Thinking { part, text } => Record::Thinking { part, text: self.keep(text) },
            Plain::Args { id, text } => {
                if self.last_id.is_empty() || self.slice(&self.last_id) != id {
                    self.last_id = self.keep(id);
                }
                Record::Args { id: self.last_id.clone(), text: self.keep(text) }
            }
        };
        self.push(seq, record);
    }
}
