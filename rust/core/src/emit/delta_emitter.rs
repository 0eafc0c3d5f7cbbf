//! The outgoing side of the emitter: numbering, `start`, limits.

use std::sync::Arc;

use super::options::Options;
use crate::contract::{Delta, Output, Payload, TextOnlyDelta};
use crate::json::{Str, write_members};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Running,
    Ended,
}

/// The outgoing side: numbering, `start`, limits.  Apart from parts and calls so that a payload may borrow from those.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeltaEmitter {
    /// Whose parts and provider state these are.
    pub(super) dialect: &'static str,
    pub(super) options: Arc<Options>,
    pub(super) phase: Phase,
    pub(super) seq: u64,
    pub(super) model: String,
    pub(super) response_id: String,
    pub(super) started_model: String,
    pub(super) next_part: u32,
    pub(super) message_bytes: usize,
    pub(super) state_bytes: usize,
    /// The frame's JSON until its first delta leaves.
    pub(super) raw: Option<String>,
    /// The JSON of the frame that said how the stream ends, until the terminal leaves in a frame without JSON (`[DONE]`) or
    /// at the end of the body.
    pub(super) raw_of_end: Option<String>,
    /// The limit that was reached.
    pub(super) limit_reached: Option<String>,
}

impl DeltaEmitter {
    pub(super) fn send<O: Output>(&mut self, out: &mut O, payload: Payload<&str>) {
        if self.phase == Phase::Waiting {
            self.start(out);
        }
        self.seq += 1;
        let raw = self.raw.take();
        out.delta(&Delta { seq: self.seq, payload, provider_raw: raw.as_deref() });
    }

    /// Sends a delta of nothing but text.
    #[inline]
    pub(super) fn send_text_only<O: Output>(&mut self, out: &mut O, delta: TextOnlyDelta<'_>) {
        if self.phase == Phase::Waiting || self.raw.is_some() {
            return self.send(out, delta.into());
        }
        self.seq += 1;
        out.text_only(self.seq, delta);
    }

    pub(super) fn start<O: Output>(&mut self, out: &mut O) {
        if self.phase != Phase::Waiting {
            return;
        }
        self.phase = Phase::Running;
        let options = Arc::clone(&self.options);
        if self.response_id.is_empty() {
            self.response_id.push_str(options.request_id.as_deref().unwrap_or(&options.run_id));
        }
        // The caller's name stands in; what the body says later is still news then.
        let asked = options.model_id.as_deref().unwrap_or("");
        let model = if self.model.is_empty() { asked } else { self.model.as_str() };
        model.clone_into(&mut self.started_model);
        self.seq += 1;
        let payload = Payload::Start {
            model_id: self.started_model.as_str(),
            request_id: self.response_id.as_str(),
        };
        let raw = self.raw.take();
        out.delta(&Delta { seq: self.seq, payload, provider_raw: raw.as_deref() });
    }

    /// Counts `added` against a bound; false, once and for all, when it is reached.
    #[inline]
    pub(super) fn within(&mut self, which: &str, used: usize, bound: usize) -> bool {
        if used > bound {
            self.note_limit(which, bound);
        }
        self.limit_reached.is_none()
    }

    #[cold]
    fn note_limit(&mut self, which: &str, bound: usize) {
        if self.limit_reached.is_none() {
            self.limit_reached = Some(format!("limit reached: {which} ({bound})"));
        }
    }

    #[inline]
    pub(super) fn take_message_bytes(&mut self, added: usize) -> bool {
        self.message_bytes = self.message_bytes.saturating_add(added);
        let bound = self.options.limits.message_bytes;
        self.within("message_bytes", self.message_bytes, bound)
    }

    /// Counts a call's id or name, and holds it to the limit of an identifier.
    pub(super) fn take_identifier(&mut self, text: Str<'_>) -> bool {
        self.is_identifier(text) && self.take_message_bytes(text.raw.len())
    }

    /// Whether a text is no longer than an identifier may be.
    pub(super) fn is_identifier(&mut self, text: Str<'_>) -> bool {
        let bound = self.options.limits.identifier_bytes;
        self.within("identifier_bytes", text.raw.len(), bound)
    }

    pub(super) fn take_state_bytes(&mut self, added: usize) -> bool {
        self.state_bytes = self.state_bytes.saturating_add(added);
        let bound = self.options.limits.provider_state_bytes;
        self.within("provider_state_bytes", self.state_bytes, bound)
    }

    pub(super) fn open_part(&mut self) -> Option<u32> {
        let index = self.next_part;
        let bound = self.options.limits.parts;
        if !self.within("parts", index as usize + 1, bound) {
            return None;
        }
        self.next_part += 1;
        Some(index)
    }

    pub(super) fn provider_state(&self, data: &str) -> String {
        let mut out = String::with_capacity(data.len() + 64);
        write_members(&mut out, |object| {
            object.text("dialect", self.dialect);
            object.text("modelId", self.options.model_id.as_deref().unwrap_or(&self.model));
            object.json("data", data);
        });
        out
    }
}
