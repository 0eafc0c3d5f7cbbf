//! Operations that a dialect uses to emit deltas: frames, identity, bounded memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::calls::Call;
use super::counts::Counts;
use super::delta_emitter::{DeltaEmitter, Phase};
use super::options::Options;
use super::parts::{Part, PartHandle};
use crate::contract::{ErrorCode, Failure, FinishReason, Output, Usage, Warnings};
use crate::json::Str;
use crate::markup::Markup;
use crate::provider_error::ErrorObject;

/// The emitter's state.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitter {
    pub(super) deltas: DeltaEmitter,
    pub(super) parts: Vec<Part>,
    /// The part that ends before the first delta of another part.
    pub(super) open_part: Option<PartHandle>,
    pub(super) calls: Vec<Call>,
    /// Every call before it has ended.
    pub(super) first_open: usize,
    pub(super) started_calls: usize,
    pub(super) ids: BTreeMap<String, u32>,
    pub(super) usage: Option<Usage<String>>,
    /// Counts from beside the message, and their record.
    pub(super) usage_beside: Option<Box<(Counts, String)>>,
    /// The usage records of the provider so far, merged.
    pub(super) usage_record: Option<String>,
    pub(super) finish: Option<(FinishReason, String)>,
    pub(super) deferred: Option<Box<Failure<Box<str>>>>,
    pub(super) refused: bool,
    /// Facts under the provider's names: a JSON object without its closing brace, empty where there are none.
    pub(super) details: String,
    pub(super) detail_names: Vec<&'static str>,
    pub(super) warnings: Warnings,
    pub(super) markup: Option<Box<Markup>>,
    /// The part whose text markup looks at.
    pub(super) marked: Option<PartHandle>,
    pub(super) scratch: String,
}

impl Emitter {
    /// Before the first byte.
    pub fn new(options: Arc<Options>) -> Self {
        Self {
            markup: options.markup.as_ref().map(|wanted| Box::new(Markup::new(wanted))),
            deltas: DeltaEmitter {
                dialect: options.dialect,
                options,
                phase: Phase::Waiting,
                seq: 0,
                model: String::new(),
                response_id: String::new(),
                started_model: String::new(),
                next_part: 0,
                message_bytes: 0,
                state_bytes: 0,
                raw: None,
                raw_of_end: None,
                limit_reached: None,
            },
            marked: None,
            parts: Vec::new(),
            open_part: None,
            calls: Vec::new(),
            first_open: 0,
            started_calls: 0,
            ids: BTreeMap::new(),
            usage: None,
            usage_beside: None,
            usage_record: None,
            finish: None,
            deferred: None,
            refused: false,
            details: String::new(),
            detail_names: Vec::new(),
            warnings: Warnings::default(),
            scratch: String::new(),
        }
    }

    /// Whether the terminal has left.
    pub fn ended(&self) -> bool {
        self.deltas.phase == Phase::Ended
    }

    /// The seq of the last delta that left.
    pub fn last_seq(&self) -> u64 {
        self.deltas.seq
    }
}

/// What `apply` may say.
pub struct DeltaSink<'a, O> {
    pub(super) emitter: &'a mut Emitter,
    pub(super) out: &'a mut O,
}

impl<'a, O: Output> DeltaSink<'a, O> {
    /// Lets `emitter` speak to `out`.
    pub fn new(emitter: &'a mut Emitter, out: &'a mut O) -> Self {
        Self { emitter, out }
    }

    /// What the caller knew before the first byte.
    pub fn options(&self) -> &Options {
        &self.emitter.deltas.options
    }

    /// Whether the terminal has left.
    pub fn ended(&self) -> bool {
        self.emitter.ended()
    }

    /// Whether content may still leave: no terminal, no limit reached, no error remembered.
    pub(super) fn is_open(&self) -> bool {
        !self.ended()
            && self.emitter.deltas.limit_reached.is_none()
            && self.emitter.deferred.is_none()
    }

    /// Keeps the frame's JSON for its first delta, when asked for.
    pub fn begin_frame(&mut self, json: &str) {
        if self.options().provider_raw {
            self.emitter.deltas.raw = Some(json.to_owned());
        }
    }

    /// After each frame: a limit that was reached ends the stream.
    #[inline]
    pub fn end_frame(&mut self) {
        let deltas = &self.emitter.deltas;
        if deltas.raw.is_some() || deltas.limit_reached.is_some() {
            self.settle_frame();
        }
    }

    #[cold]
    fn settle_frame(&mut self) {
        self.emitter.deltas.raw = None;
        if let Some(message) = self.emitter.deltas.limit_reached.take() {
            self.error(Failure::new(ErrorCode::ProtocolError, message.into()));
        }
    }

    /// Names model and response id; the first name of each counts.  `start` leaves once both are known.
    #[inline]
    pub fn identity(&mut self, model: Option<Str<'_>>, response_id: Option<Str<'_>>) {
        let deltas = &self.emitter.deltas;
        // Most frames name again what is known.
        if deltas.phase == Phase::Waiting
            || (deltas.phase == Phase::Running && deltas.model.is_empty())
        {
            self.learn_identity(model, response_id);
        }
    }

    fn learn_identity(&mut self, model: Option<Str<'_>>, response_id: Option<Str<'_>>) {
        let deltas = &mut self.emitter.deltas;
        if let Some(model) = model
            && deltas.model.is_empty()
            && deltas.is_identifier(model)
        {
            deltas.model = model.text();
        }
        if deltas.phase == Phase::Waiting {
            if let Some(id) = response_id
                && deltas.response_id.is_empty()
                && deltas.is_identifier(id)
            {
                deltas.response_id = id.text();
            }
            if !deltas.model.is_empty() && !deltas.response_id.is_empty() {
                deltas.start(self.out);
            }
        }
    }

    /// The message began anew: why an earlier one ended says nothing any more.
    pub fn restart(&mut self) {
        self.emitter.finish = None;
    }

    /// Another model took over.
    pub fn model_changed(&mut self, model: Str<'_>) {
        let deltas = &mut self.emitter.deltas;
        if deltas.is_identifier(model) {
            deltas.model = model.text();
        }
    }

    /// The failure that the JSON of a provider's error tells.
    pub fn failure(&self, json: &str) -> Failure<Box<str>> {
        self.failure_of(ErrorObject::read(json).unwrap_or_default())
    }

    /// The failure that a provider's error tells.
    pub fn failure_of(&self, error: ErrorObject) -> Failure<Box<str>> {
        error.failure(&self.options().response, "the provider sent an error without a message")
    }

    /// Counts bytes that a dialect holds for a provider part; false when the limit is reached.
    pub fn take_state_bytes(&mut self, added: usize) -> bool {
        self.emitter.deltas.take_state_bytes(added)
    }

    /// Gives back what was counted for a block that leaves as a part, which is counted itself.
    pub fn give_back_state_bytes(&mut self, held: usize) {
        let deltas = &mut self.emitter.deltas;
        deltas.state_bytes = deltas.state_bytes.saturating_sub(held);
    }
}
