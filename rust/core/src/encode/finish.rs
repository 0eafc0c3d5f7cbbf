//! The word of a target for a finish reason.

use super::draft::Draft;
use super::writer::Ending;
use crate::contract::FinishReason;
use crate::facts::{self, FinishReasons};

/// Return the word to write: the source's own if the target knows it for the same reason, else the word of the table.
///
/// A reason that the reader of the word would take for another one becomes a note, unless `implied` says that the content
/// tells it.
pub fn finish_word<'a>(
    draft: &mut Draft,
    ending: &Ending<'a>,
    table: &FinishReasons,
    known: &[&'static str],
    implied: bool,
) -> &'a str {
    let own = ending.raw.filter(|raw| {
        known.contains(raw)
            && table.rows.iter().any(|row| row.member == ending.reason && row.words.contains(raw))
    });
    let word = own.or_else(|| table.word(ending.reason, ending.has_calls)).unwrap_or("stop");
    let read_again = table.ending(word).map_or(FinishReason::Other, facts::Ending::reason);
    if !implied && ending.reason != FinishReason::ToolCalls && read_again != ending.reason {
        note_reason(draft, ending);
    }
    word
}

/// Note a finish reason that the target cannot say.
pub fn note_reason(draft: &mut Draft, ending: &Ending<'_>) {
    draft.notes.add("finish_reason", ending.raw.unwrap_or(ending.reason.as_str()));
}
