//! Parts of a message: what they hold, and how their text leaves.

use super::delta_emitter::DeltaEmitter;
use super::digest::Digest;
use crate::contract::{Output, Payload, TextAttributes};
use crate::json::Carry;

/// What a part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Visible text.
    Text,
    /// Visible text that declines.
    Refusal,
    /// Reasoning.
    Thinking,
}

/// A part that a dialect opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartHandle(pub(super) usize);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) kind: PartKind,
    pub(super) index: Option<u32>,
    pub(super) carry: Carry,
    /// What it said, where the protocol says the whole once more.
    pub(super) said: Option<Digest>,
    /// Markup looks at its text, and says it as parts of its own.
    pub(super) watched: bool,
}

/// Sends text of a part, or what rides on it; a part gets its number with its first delta.
pub(super) fn send_text<O: Output>(
    deltas: &mut DeltaEmitter,
    out: &mut O,
    part: &mut Part,
    text: &str,
    attributes: TextAttributes<&str>,
) {
    if part.index.is_none() {
        part.index = deltas.open_part();
    }
    if part.index.is_none() || (text.is_empty() && !attributes.allow_empty_text()) {
        return;
    }
    let part_index = part.index;
    let payload = match part.kind {
        PartKind::Text => Payload::Text { text, part_index, attributes },
        PartKind::Refusal => Payload::Text {
            text,
            part_index,
            attributes: TextAttributes { refusal: true, ..attributes },
        },
        PartKind::Thinking => Payload::Thinking { text, part_index, attributes },
    };
    deltas.send(out, payload);
}
