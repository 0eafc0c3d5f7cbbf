//! Text and thinking parts: opening, text in pieces or whole, and the attributes of a text.

use super::calls::CallEnd;
use super::digest::Digest;
use super::parts::{Part, PartHandle, PartKind, send_text};
use super::sink::{DeltaSink, Emitter};
use crate::contract::{Logprobs, Output, TextAttributes, TextOnlyDelta};
use crate::json::{self, Carry, Str};

impl<O: Output> DeltaSink<'_, O> {
    /// Opens a part; it gets its number when its first delta leaves.
    pub fn open_part(&mut self, kind: PartKind) -> PartHandle {
        self.add_part(kind, None)
    }

    /// Opens a part whose protocol says its text once more at the end, see [`Self::text_whole`].
    pub fn open_repeated_part(&mut self, kind: PartKind) -> PartHandle {
        self.add_part(kind, Some(Digest::default()))
    }

    fn add_part(&mut self, kind: PartKind, said: Option<Digest>) -> PartHandle {
        self.end_markup(CallEnd::Provider);
        let watched = self.watches(kind);
        let bound = self.options().limits.parts;
        let used = self.emitter.parts.len() + 1;
        // Parts that stay empty get no number, but they take memory.
        if self.emitter.deltas.within("parts", used, bound) {
            self.emitter.parts.push(Part {
                kind,
                index: None,
                carry: Carry::default(),
                said,
                watched,
            });
        }
        PartHandle(used - 1)
    }

    /// More text of a part.
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
        if part.watched {
            return self.watched_text(handle, text);
        }
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
            let delta = match (part.kind, part.index) {
                (PartKind::Text, Some(part)) => Some(TextOnlyDelta::Text { part, text: plain }),
                (PartKind::Thinking, Some(part)) => {
                    Some(TextOnlyDelta::Thinking { part, text: plain })
                }
                _ => None,
            };
            match delta {
                Some(delta) => deltas.send_text_only(self.out, delta),
                None => send_text(deltas, self.out, part, plain, TextAttributes::default()),
            }
        }
        if part.carry.lone > lone {
            let carry = part.carry;
            self.warn_lone(carry);
        }
    }

    /// The whole of a part's text, which came in pieces before, or not at all: what is missing of it is sent.  Where the
    /// pieces say something else they stand, and a warning says so.
    pub fn text_whole(&mut self, part: PartHandle, whole: Str<'_>) {
        let Some(state) = self.emitter.parts.get_mut(part.0) else { return };
        let whole = whole.text();
        match state.said.unwrap_or_default().rest_of(&whole) {
            Some("") => {}
            Some(rest) => {
                // A surrogate that waits for its other half has it in the rest.
                state.carry.high = None;
                self.text(part, Str::plain(rest));
            }
            None => self.warn_differing(),
        }
    }

    /// Another paragraph of a part begins, which will be said once more by itself.
    pub fn begin_paragraph(&mut self, part: PartHandle) {
        self.flush_part(part);
        if let Some(part) = self.emitter.parts.get_mut(part.0) {
            part.said = Some(Digest::default());
        }
    }

    pub(super) fn warn_differing(&mut self) {
        let message = "the whole text at its end differs from what was streamed, which stands";
        self.warn("final_text_differs", message, None);
    }

    /// What rides on a part beside its text, on an empty delta.
    fn send_attributes(&mut self, part: PartHandle, attributes: TextAttributes<&str>) {
        if !self.is_open() {
            return;
        }
        let part = self.attribute_part(part, &attributes);
        if attributes.logprobs.is_none() {
            // Log probabilities come between the halves of a text; everything else stands at its place in it.
            self.flush_part(part);
        }
        let Emitter { deltas, parts, .. } = &mut *self.emitter;
        let texts = [attributes.annotations, attributes.provider_state];
        let texts: usize = texts.iter().flatten().map(|text| text.len()).sum();
        let bytes = texts + attributes.logprobs.map_or(0, Logprobs::bytes);
        if let Some(part) = parts.get_mut(part.0)
            && deltas.take_state_bytes(bytes)
        {
            send_text(deltas, self.out, part, "", attributes);
        }
    }

    /// Adds citations: a JSON array, or one of them alone.
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
    pub fn annotate_list(&mut self, part: PartHandle, name: &str, list: &str) {
        let annotation = json::object(|annotation| {
            annotation.text("type", name);
            annotation.json(name, list);
        });
        self.annotate(part, &annotation);
    }

    /// Adds log probabilities.
    pub fn logprobs(&mut self, part: PartHandle, logprobs: &Logprobs) {
        self.send_attributes(
            part,
            TextAttributes { logprobs: Some(logprobs), ..TextAttributes::default() },
        );
    }

    /// Sets what the provider must get back with this part; `data` is a JSON value.
    pub fn part_state(&mut self, part: PartHandle, data: &str) {
        let state = self.emitter.deltas.provider_state(data);
        self.send_attributes(
            part,
            TextAttributes { provider_state: Some(&state), ..TextAttributes::default() },
        );
    }

    /// A thinking part of which only the provider state exists.
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
        part
    }

    /// No more text comes for now: a surrogate that waits for its other half stays alone.
    pub fn flush_part(&mut self, part: PartHandle) {
        if self.flush_watched(part) {
            return;
        }
        let Emitter { deltas, parts, scratch, .. } = &mut *self.emitter;
        let Some(part) = parts.get_mut(part.0) else {
            return;
        };
        if part.carry.high.is_none() {
            return;
        }
        scratch.clear();
        part.carry.flush(scratch);
        let carry = part.carry;
        send_text(deltas, self.out, part, scratch, TextAttributes::default());
        self.warn_lone(carry);
    }
}
