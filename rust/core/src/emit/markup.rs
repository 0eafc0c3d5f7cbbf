//! Text that may hold markup: what the emitter does with it before it leaves.
//!
//! In: the text of watched parts.  Out: what [`Markup`] makes of it, through the same sink, as parts of its own.
//! Laws: thinking and calls of the protocol itself never come here; another part ends the markup of the one before; what
//! is held counts against the limit of the message's bytes.

use super::calls::CallEnd;
use super::parts::{PartHandle, PartKind};
use super::sink::DeltaSink;
use crate::contract::{FinishReason, Output, TextAttributes};
use crate::json::Str;
use crate::markup::Markup;

impl<O: Output> DeltaSink<'_, O> {
    /// Whether text of this kind is looked at.
    pub(super) fn watches(&self, kind: PartKind) -> bool {
        kind == PartKind::Text && self.emitter.markup.is_some()
    }

    fn is_watched(&self, part: PartHandle) -> bool {
        self.emitter.parts.get(part.0).is_some_and(|part| part.watched)
    }

    /// More text of a watched part.
    #[cold]
    pub(super) fn watched_text(&mut self, part: PartHandle, text: Str<'_>) {
        self.emitter.marked = Some(part);
        let mut scratch = std::mem::take(&mut self.emitter.scratch);
        scratch.clear();
        if let Some(part) = self.emitter.parts.get_mut(part.0) {
            let lone = part.carry.lone;
            text.decode_into(&mut scratch, &mut part.carry);
            if let Some(said) = &mut part.said {
                said.take(&scratch);
            }
            let carry = part.carry;
            self.with_markup(|markup, sink| markup.feed(&scratch, sink));
            if carry.lone > lone {
                self.warn_lone(carry);
            }
        }
        self.emitter.scratch = scratch;
    }

    /// Lets the markup speak through this sink.
    fn with_markup(&mut self, f: impl FnOnce(&mut Markup, &mut Self)) {
        if let Some(mut markup) = self.emitter.markup.take() {
            f(&mut markup, self);
            let held = markup.held();
            self.emitter.markup = Some(markup);
            let deltas = &mut self.emitter.deltas;
            let bound = deltas.options.limits.message_bytes;
            deltas.within("message_bytes", deltas.message_bytes.saturating_add(held), bound);
        }
    }

    /// Where what rides on a part belongs: a watched part is said as other parts.
    pub(super) fn attribute_part(
        &mut self,
        part: PartHandle,
        attributes: &TextAttributes<&str>,
    ) -> PartHandle {
        if !self.is_watched(part) {
            return part;
        }
        if attributes.logprobs.is_none() {
            self.flush_carry(part);
        }
        let mut target = part;
        let citations = attributes.annotations.is_some();
        self.with_markup(|markup, sink| target = markup.attribute_part(citations, sink));
        target
    }

    /// A surrogate that waits for its other half stays alone.
    fn flush_carry(&mut self, part: PartHandle) {
        let Some(state) = self.emitter.parts.get_mut(part.0) else { return };
        if state.carry.high.is_some() {
            let mut text = String::new();
            state.carry.flush(&mut text);
            let carry = state.carry;
            self.with_markup(|markup, sink| markup.feed(&text, sink));
            self.warn_lone(carry);
        }
    }

    /// Flushes a watched part; false for any other.  Its markup stays: the next part or the terminal ends it, and only the
    /// terminal says whether a call that is still open was cut.
    pub(super) fn flush_watched(&mut self, part: PartHandle) -> bool {
        let watched = self.is_watched(part);
        if watched {
            self.flush_carry(part);
        }
        watched
    }

    /// Says what markup holds, and ends its calls.
    pub(super) fn end_markup(&mut self, how: CallEnd) {
        // While markup speaks it is not there, and what it opens ends nothing.
        if self.emitter.markup.is_some()
            && let Some(part) = self.emitter.marked.take()
        {
            self.flush_carry(part);
            self.with_markup(|markup, sink| markup.flush(how, sink));
        }
    }

    /// Ends the markup of the whole message.
    pub(super) fn settle_markup(&mut self, how: CallEnd) {
        self.end_markup(how);
        let finished = matches!(how, CallEnd::Finish(reason) if reason != FinishReason::Length);
        if finished && self.emitter.markup.as_ref().is_some_and(|markup| markup.unclosed()) {
            let message = "thinking was never closed: all of it may have been the answer";
            self.warn("unclosed_thinking", message, None);
        }
    }
}
