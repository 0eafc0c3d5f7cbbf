//! `Spans`: positions of the parts in the joined text and the joined thinking of an answer.

use super::parts::{TextKind, TextPart};

/// Positions of the parts of one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spans {
    /// Characters so far, of text and of thinking.
    written: [usize; 2],
    /// Number of the open part, and the position of its first character.
    open: (usize, usize),
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

    /// Return kind, beginning and end of the open part; `None` for another part and for a refusal.
    pub fn of(&self, part: &TextPart) -> Option<(TextKind, usize, usize)> {
        let (index, start) = self.open;
        let is_open = index == part.index && !part.refusal;
        is_open.then(|| (part.kind, start, self.chars(part.kind)))
    }

    fn chars(&self, kind: TextKind) -> usize {
        self.written.get(slot(kind)).copied().unwrap_or_default()
    }
}
