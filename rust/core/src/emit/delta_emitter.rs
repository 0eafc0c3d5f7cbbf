//! `DeltaEmitter`: sequence numbers, the `start` delta and the limits of a stream.
//!
//! In: payloads.  Out: numbered deltas, to an [`Output`].
//!
//! Laws: `start` is emitted first, and only once.  A limit that was reached stays reached.  In debug builds each delta is
//! checked against the laws of the contract.

use std::sync::Arc;

use super::options::StreamOptions;
use crate::contract::{Delta, Laws, Output, Payload, TextOnlyDelta, Usage};
use crate::json::{Str, write_members};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Running,
    Ended,
}

/// Last stage of the emitter.  It is separate from parts and calls, so that a payload may borrow from those.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeltaEmitter {
    /// Dialect of the parts and the provider state.
    pub(super) dialect: &'static str,
    pub(super) options: Arc<StreamOptions>,
    pub(super) phase: Phase,
    pub(super) seq: u64,
    pub(super) model: String,
    pub(super) response_id: String,
    /// The model of `start`, if it is not `model`.
    pub(super) started_model: Option<String>,
    pub(super) next_part: u32,
    pub(super) message_bytes: usize,
    pub(super) state_bytes: usize,
    /// JSON of the current frame until its first delta is emitted.
    pub(super) raw: Option<String>,
    /// JSON of the frame that ended the message.
    ///
    /// The terminal carries it if the terminal is emitted in a frame without JSON (`[DONE]`) or at the end of the body.
    pub(super) raw_of_end: Option<String>,
    /// Message about the first limit that was reached.
    pub(super) limit_reached: Option<String>,
    /// Checks every delta in debug builds.
    pub(super) laws: Option<Box<Laws>>,
}

impl DeltaEmitter {
    pub(super) fn send(&mut self, out: &mut dyn Output, payload: Payload<&str>) {
        if self.phase == Phase::Waiting {
            self.start(out);
        }
        self.seq += 1;
        let raw = self.raw.take();
        let delta = Delta { seq: self.seq, payload, provider_raw: raw.as_deref() };
        check(&mut self.laws, &delta);
        out.delta(&delta);
    }

    /// Emit a delta that carries text and no attributes.
    #[inline]
    pub(super) fn send_text_only(&mut self, out: &mut dyn Output, delta: TextOnlyDelta<'_>) {
        if self.phase == Phase::Waiting || self.raw.is_some() {
            return self.send(out, delta.into());
        }
        self.seq += 1;
        if cfg!(debug_assertions) {
            let whole = Delta { seq: self.seq, payload: delta.into(), provider_raw: None };
            check(&mut self.laws, &whole);
        }
        out.text_only(self.seq, delta);
    }

    /// Emit a delta that carries token counts.
    pub(super) fn send_usage(&mut self, out: &mut dyn Output, usage: &Usage<String>) {
        if self.phase == Phase::Waiting || self.raw.is_some() {
            return self.send(out, usage.into());
        }
        self.seq += 1;
        if cfg!(debug_assertions) {
            let whole = Delta { seq: self.seq, payload: usage.into(), provider_raw: None };
            check(&mut self.laws, &whole);
        }
        out.usage_only(self.seq, usage);
    }

    pub(super) fn start(&mut self, out: &mut dyn Output) {
        if self.phase != Phase::Waiting {
            return;
        }
        self.phase = Phase::Running;
        let options = Arc::clone(&self.options);
        if self.response_id.is_empty() {
            self.response_id.push_str(options.request_id.as_deref().unwrap_or(&options.run_id));
        }
        let model_id = if self.model.is_empty() {
            // The requested model is used for now.  A model that the body names later still counts as a change.
            let asked = options.model_id.as_deref().unwrap_or("");
            self.started_model = Some(asked.to_owned());
            asked
        } else {
            self.model.as_str()
        };
        self.seq += 1;
        let payload = Payload::Start { model_id, request_id: self.response_id.as_str() };
        let raw = self.raw.take();
        let delta = Delta { seq: self.seq, payload, provider_raw: raw.as_deref() };
        check(&mut self.laws, &delta);
        out.delta(&delta);
    }

    /// Set the model of the answer.
    pub(super) fn set_model(&mut self, model: String) {
        let before = std::mem::replace(&mut self.model, model);
        if self.phase != Phase::Waiting {
            self.started_model.get_or_insert(before);
        }
    }

    /// Return the model of the answer, if `start` had another one.
    pub(super) fn changed_model(&self) -> Option<&str> {
        let started = self.started_model.as_deref()?;
        Some(self.model.as_str()).filter(|model| !model.is_empty() && *model != started)
    }

    /// Check `used` against a bound.  Returns false from the first excess on.
    #[inline]
    pub(super) fn within(&mut self, which: &str, used: usize, bound: usize) -> bool {
        if used > bound {
            self.note_limit(which, bound);
        }
        self.limit_reached.is_none()
    }

    #[cold]
    pub(super) fn note_limit(&mut self, which: &str, bound: usize) {
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

    /// Count the id or name of a call, and check the limit of an identifier.
    pub(super) fn take_identifier(&mut self, text: Str<'_>) -> bool {
        self.is_identifier(text) && self.take_message_bytes(text.raw.len())
    }

    /// Return true if a text is within the limit of an identifier.
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

/// Check a delta in debug builds.
#[inline]
fn check(laws: &mut Option<Box<Laws>>, delta: &Delta<&str>) {
    if cfg!(debug_assertions)
        && let Some(laws) = laws
    {
        let verdict = laws.check(delta);
        debug_assert!(verdict.is_ok(), "{verdict:?}");
    }
}
