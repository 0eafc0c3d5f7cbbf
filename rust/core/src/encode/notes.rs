//! `Notes`: what a target could not carry.
//!
//! Laws: a note never becomes bytes.  Equal notes are stored once and counted.  Number and length are bounded.

/// Maximum number of different notes of one stream.
const MAX_NOTES: usize = 1_000;
/// Maximum number of characters of a note's subject.
const MAX_CHARACTERS: usize = 256;

/// Something that the target could not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Kind of the loss: `provider_state`, `annotations`, `logprobs`, `part`, `call`, `usage`, `finish_reason`, `arguments`.
    pub code: &'static str,
    /// The lost or replaced content.
    pub what: String,
    /// Number of times.
    pub count: u64,
}

/// Notes in the order of their first appearance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(Vec<Note>);

impl Notes {
    /// Add a note, or count a known one.
    pub fn add(&mut self, code: &'static str, what: &str) {
        let end = what.char_indices().nth(MAX_CHARACTERS).map_or(what.len(), |(at, _)| at);
        let what = what.get(..end).unwrap_or(what);
        if let Some(known) = self.0.iter_mut().find(|note| note.code == code && note.what == what) {
            known.count = known.count.saturating_add(1);
        } else if self.0.len() < MAX_NOTES {
            self.0.push(Note { code, what: what.to_owned(), count: 1 });
        }
    }

    /// Return the notes so far.
    pub fn list(&self) -> &[Note] {
        &self.0
    }
}
