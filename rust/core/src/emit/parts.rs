//! Text and thinking parts of a message: their state, and the delta of their text.

use super::digest::Digest;
use crate::contract::{Payload, TextAttributes};
use crate::json::Carry;

/// Content of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Visible text.
    Text,
    /// Visible text of a refusal.
    Refusal,
    /// Thinking (reasoning).
    Thinking,
}

/// Handle of a part that a dialect opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartHandle(pub(super) usize);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) kind: PartKind,
    /// Number of the part while it takes text; `None` before its first delta and after its end.
    pub(super) index: Option<u32>,
    /// Number of the part after its end: attributes may follow, further text opens a new part.
    pub(super) ended_index: Option<u32>,
    /// The protocol has an event for the end of this part, so the first delta of another part does not end it.
    pub(super) is_block: bool,
    pub(super) carry: Carry,
    /// Digest of the streamed text, if the protocol repeats the whole text at its end.
    pub(super) said: Option<Digest>,
}

/// Payload of more text of a part, or of attributes on an empty text.
pub(super) fn text_payload<'a>(
    kind: PartKind,
    index: u32,
    text: &'a str,
    attributes: TextAttributes<&'a str>,
) -> Payload<&'a str> {
    let part_index = Some(index);
    match kind {
        PartKind::Text => Payload::Text { text, part_index, attributes },
        PartKind::Refusal => Payload::Text {
            text,
            part_index,
            attributes: TextAttributes { refusal: true, ..attributes },
        },
        PartKind::Thinking => Payload::Thinking { text, part_index, attributes },
    }
}
