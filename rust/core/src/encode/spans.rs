//! `Spans`: positions of the parts in the joined text and the joined thinking of an answer.

use std::collections::BTreeMap;

use super::parts::{TextKind, TextPart};

/// Kind of a part, and its first and last position among all characters of this kind.  The last one is exclusive.
pub type Span = (TextKind, usize, usize);

/// Positions of the parts of one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spans {
    /// Characters so far, of text and of thinking.
    written: [usize; 2],
    /// Number of the open part, and the position of its first character.
    open: (usize, usize),
    /// Parts that ended, by their numbers: the state of one may come after others began.
    ended: BTreeMap<usize, Span>,
}

fn slot(kind: TextKind) -> usize {
    usize::from(kind == TextKind::Thinking)
}

impl Spans {
    /// Begin a part.
    pub fn open(&mut self, part: &TextPart) {
        self.open = (part.index, self.chars(part.kind));
    }

    /// Count a text of the open part.
    pub fn add(&mut self, part: &TextPart, text: &str) {
        if let Some(written) = self.written.get_mut(slot(part.kind)).filter(|_| !part.refusal) {
            *written += text.chars().count();
        }
    }

    /// Keep the span of the open part, which ends.
    pub fn end(&mut self, part: &TextPart) {
        if let Some(span) = self.of(part) {
            self.ended.insert(part.index, span);
        }
    }

    /// Return kind, beginning and end of the open part or of one that ended; `None` for another part and for a refusal.
    pub fn of(&self, part: &TextPart) -> Option<Span> {
        let (index, start) = self.open;
        if part.refusal {
            return None;
        }
        let open = || (index == part.index).then(|| (part.kind, start, self.chars(part.kind)));
        self.ended.get(&part.index).copied().or_else(open)
    }

    fn chars(&self, kind: TextKind) -> usize {
        self.written.get(slot(kind)).copied().unwrap_or_default()
    }
}
