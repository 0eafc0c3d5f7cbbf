//! Text and thinking parts: their start and end, text in chunks or whole, and attributes.
//!
//! In: operations of a dialect on a part.  Out: `text`, `thinking` and `part_end`.
//!
//! Laws: each part ends once: at its own event of the protocol, before the first delta of the next part, or before the
//! terminal.  After its end only attributes on an empty text follow.  Further text opens a new part.

use std::borrow::Cow;

use super::digest::Digest;
use super::emitter::{Emitter, EmitterSink};
use super::parts::{Part, PartHandle, PartKind, text_payload};
use crate::contract::{Logprobs, Payload, TextAttributes, TextOnlyDelta};
use crate::json::{self, Carry, Str};

impl EmitterSink<'_> {
    /// Open a part that ends before the first delta of the next part.  The part gets its number with its first delta.
    pub fn open_part(&mut self, kind: PartKind) -> PartHandle {
        self.add_part(kind, false, None)
    }

    /// Open a part that ends at an event of the protocol.  Such parts may interleave.
    pub fn open_block(&mut self, kind: PartKind) -> PartHandle {
        self.add_part(kind, true, None)
    }

    /// Open a part as [`Self::open_block`] does, whose protocol repeats the whole text at its end.  See
    /// [`Self::text_whole`].
    pub fn open_repeated_block(&mut self, kind: PartKind) -> PartHandle {
        self.add_part(kind, true, Some(Digest::default()))
    }

    fn add_part(&mut self, kind: PartKind, is_block: bool, said: Option<Digest>) -> PartHandle {
        let bound = self.options().limits.parts;
        let used = self.emitter.parts.len() + 1;
        // Empty parts get no number, but they use memory.
        if self.emitter.deltas.within("parts", used, bound) {
            self.emitter.parts.push(Part {
                kind,
                index: None,
                ended_index: None,
                is_block,
                carry: Carry::default(),
                said,
            });
        }
        PartHandle(used - 1)
    }

    /// Emit more text of a part.
    #[inline]
    pub fn text(&mut self, part: PartHandle, text: Str<'_>) {
        if text.is_empty() || !self.is_open() {
            return;
        }
        let Emitter { deltas, parts, scratch, .. } = &mut *self.emitter;
        let handle = part;
        let Some(part) = parts.get_mut(part.0) else {
            return;
        };
        let Some(index) = part.index else {
            return self.first_text(handle, text);
        };
        let lone = part.carry.lone;
        let plain = if !text.escaped && part.carry.high.is_none() {
            text.raw
        } else {
            scratch.clear();
            text.decode_into(scratch, &mut part.carry);
            scratch.as_str()
        };
        if !plain.is_empty() && deltas.take_message_bytes(plain.len()) {
            if let Some(said) = &mut part.said {
                said.take(plain);
            }
            match part.kind {
                PartKind::Text => {
                    let delta = TextOnlyDelta::Text { part: index, text: plain };
                    deltas.send_text_only(self.out, delta);
                }
                PartKind::Thinking => {
                    let delta = TextOnlyDelta::Thinking { part: index, text: plain };
                    deltas.send_text_only(self.out, delta);
                }
                kind @ PartKind::Refusal => {
                    let payload = text_payload(kind, index, plain, TextAttributes::default());
                    deltas.send(self.out, payload);
                }
            }
        }
        if part.carry.lone > lone {
            let carry = part.carry;
            self.warn_lone(carry);
        }
    }

    /// Emit the first text of a part, which also begins the part.
    #[cold]
    fn first_text(&mut self, handle: PartHandle, text: Str<'_>) {
        let Some(part) = self.emitter.parts.get_mut(handle.0) else { return };
        let lone = part.carry.lone;
        let plain = if !text.escaped && part.carry.high.is_none() {
            Cow::Borrowed(text.raw)
        } else {
            let mut plain = String::new();
            text.decode_into(&mut plain, &mut part.carry);
            Cow::Owned(plain)
        };
        let carry = part.carry;
        if !plain.is_empty() && self.emitter.deltas.take_message_bytes(plain.len()) {
            self.begin_with(handle, &plain, TextAttributes::default());
            if let Some(part) = self.emitter.parts.get_mut(handle.0)
                && let Some(said) = &mut part.said
            {
                said.take(&plain);
            }
        }
        if carry.lone > lone {
            self.warn_lone(carry);
        }
    }

    /// End the open part, number this part and emit its first delta.
    fn begin_with(&mut self, handle: PartHandle, text: &str, attributes: TextAttributes<&str>) {
        self.end_open_part();
        self.confirm_call();
        let Emitter { deltas, parts, open_part, .. } = &mut *self.emitter;
        let Some(part) = parts.get_mut(handle.0) else { return };
        part.index = deltas.open_part();
        if let Some(index) = part.index {
            if !part.is_block {
                *open_part = Some(handle);
            }
            deltas.send(self.out, text_payload(part.kind, index, text, attributes));
        }
    }

    /// End a part.  A pending high surrogate becomes U+FFFD.
    pub fn end_part(&mut self, part: PartHandle) {
        self.flush_part(part);
        let Emitter { deltas, parts, open_part, .. } = &mut *self.emitter;
        if *open_part == Some(part) {
            *open_part = None;
        }
        if let Some(part) = parts.get_mut(part.0)
            && let Some(part_index) = part.index.take()
        {
            part.ended_index = Some(part_index);
            deltas.send(self.out, Payload::PartEnd { part_index });
        }
    }

    /// End the part that ends before the first delta of another part.
    #[inline]
    pub(super) fn end_open_part(&mut self) {
        if let Some(part) = self.emitter.open_part {
            self.end_part(part);
        }
    }

    /// Take the whole text of a part after its chunks, and emit the suffix that was not streamed.
    ///
    /// On a mismatch the streamed text stays, with a warning.
    pub fn text_whole(&mut self, part: PartHandle, whole: Str<'_>) {
        if !self.is_open() {
            return;
        }
        let Some(state) = self.emitter.parts.get_mut(part.0) else { return };
        let whole = whole.text();
        match missing_suffix(&mut state.carry, state.said, &whole) {
            Some(rest) => self.text(part, Str::plain(rest)),
            None => self.warn_differing(),
        }
    }

    /// Return the rest of a text after all that a part said; `None` if the text does not begin with it.
    pub(crate) fn rest_after<'a>(&self, part: PartHandle, text: &'a str) -> Option<&'a str> {
        self.emitter.parts.get(part.0)?.said?.rest_of(text)
    }

    /// Begin another paragraph of a part.  The protocol repeats the whole text of each paragraph separately.
    pub fn begin_paragraph(&mut self, part: PartHandle) {
        self.flush_part(part);
        if let Some(part) = self.emitter.parts.get_mut(part.0) {
            part.said = Some(Digest::default());
        }
    }

    pub(crate) fn warn_differing(&mut self) {
        let message = "the whole text at its end differs from what was streamed, which stands";
        self.warn("final_text_differs", message, None);
    }

    /// Emit attributes of a part on an empty text.
    fn send_attributes(&mut self, handle: PartHandle, attributes: TextAttributes<&str>) {
        if !self.is_open() {
            return;
        }
        if attributes.logprobs.is_none() {
            // Log probabilities may come between the halves of a surrogate pair.  Every other attribute follows the whole
            // character.
            self.flush_part(handle);
        }
        let Emitter { deltas, parts, .. } = &mut *self.emitter;
        let texts = [attributes.annotations, attributes.provider_state];
        let texts: usize = texts.iter().flatten().map(|text| text.len()).sum();
        let bytes = texts + attributes.logprobs.map_or(0, Logprobs::bytes);
        let Some(part) = parts.get(handle.0).filter(|_| deltas.take_state_bytes(bytes)) else {
            return;
        };
        match part.index.or(part.ended_index) {
            Some(index) => deltas.send(self.out, text_payload(part.kind, index, "", attributes)),
            None => self.begin_with(handle, "", attributes),
        }
    }

    /// Add citations: a JSON array, or one citation alone.
    pub fn annotate(&mut self, part: PartHandle, annotations: &str) {
        let list;
        let annotations = if annotations.starts_with('[') {
            annotations
        } else {
            list = format!("[{annotations}]");
            &list
        };
        self.send_attributes(
            part,
            TextAttributes { annotations: Some(annotations), ..TextAttributes::default() },
        );
    }

    /// Add a list of the provider as one annotation `{type: name, <name>: list}`.
    pub fn annotate_list(&mut self, part: PartHandle, name: &'static str, list: &str) {
        let annotation = json::object(|annotation| {
            annotation.text("type", name);
            annotation.json(name, list);
        });
        self.annotate(part, &annotation);
    }

    /// Add log probabilities.
    pub fn logprobs(&mut self, part: PartHandle, logprobs: &Logprobs) {
        self.send_attributes(
            part,
            TextAttributes { logprobs: Some(logprobs), ..TextAttributes::default() },
        );
    }

    /// Set the provider state of a part; `data` is a JSON value.
    pub fn part_state(&mut self, part: PartHandle, data: &str) {
        let state = self.emitter.deltas.provider_state(data);
        self.send_attributes(
            part,
            TextAttributes { provider_state: Some(&state), ..TextAttributes::default() },
        );
    }

    /// Emit a whole thinking part of which only the provider state exists.
    pub fn redacted(&mut self, data: &str) -> PartHandle {
        let part = self.open_part(PartKind::Thinking);
        let state = self.emitter.deltas.provider_state(data);
        self.send_attributes(
            part,
            TextAttributes {
                redacted: true,
                provider_state: Some(&state),
                ..TextAttributes::default()
            },
        );
        self.end_part(part);
        part
    }

    /// Emit a pending high surrogate as U+FFFD.
    fn flush_part(&mut self, handle: PartHandle) {
        let Some(part) = self.emitter.parts.get_mut(handle.0) else {
            return;
        };
        if part.carry.high.is_none() {
            return;
        }
        let mut text = String::new();
        part.carry.flush(&mut text);
        let (kind, carry) = (part.kind, part.carry);
        match part.index {
            Some(index) => {
                let payload = text_payload(kind, index, &text, TextAttributes::default());
                self.emitter.deltas.send(self.out, payload);
            }
            None => self.begin_with(handle, &text, TextAttributes::default()),
        }
        self.warn_lone(carry);
    }
}

/// Return the suffix of a whole text that was not streamed; `None` if the whole text differs from the streamed one.
///
/// A pending high surrogate is dropped, because the suffix has both halves.
pub(crate) fn missing_suffix<'a>(
    carry: &mut Carry,
    streamed: Option<Digest>,
    whole: &'a str,
) -> Option<&'a str> {
    let rest = streamed.unwrap_or_default().rest_of(whole)?;
    if !rest.is_empty() {
        carry.high = None;
    }
    Some(rest)
}
