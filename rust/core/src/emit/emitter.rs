//! `Emitter` and `EmitterSink`: the state of the emitted stream, and the operations on frames, identity and memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call::{Call, CallHandle};
use super::counts::Counts;
use super::delta_emitter::{DeltaEmitter, Phase};
use super::options::StreamOptions;
use super::parts::{Part, PartHandle};
use super::price_facts::PriceFacts;
use super::usage_record::UsageRecord;
use super::whole_sign::WholeSign;
use crate::contract::{ErrorCode, Failure, FinishReason, Laws, Output, Usage, Warnings};
use crate::json::Str;
use crate::provider_error::ErrorObject;

/// Maximum bytes of all members of an answer that no rule knows.
const MAX_UNKNOWN: usize = 16 * 1024;

/// State of the emitter.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of the answer, independent of the others"
)]
pub struct Emitter {
    pub(super) deltas: DeltaEmitter,
    pub(super) parts: Vec<Part>,
    /// The part that ends before the first delta of another part.
    pub(super) open_part: Option<PartHandle>,
    pub(super) calls: Vec<Call>,
    /// A call without arguments that its provider closed, and behind which nothing came.
    pub(super) unconfirmed: Option<CallHandle>,
    /// The other answers of the stream are followed too.
    pub(super) follows_all: bool,
    /// A call ended without all of its arguments.
    pub(super) has_incomplete_call: bool,
    /// A stop string ended the answer.
    pub(super) stopped_by_string: bool,
    /// Index before which every call has ended.
    pub(super) first_open: usize,
    /// Calls of the model that serves the answer: those of one that declined are no reason for its end.
    pub(super) served_calls: usize,
    pub(super) ids: BTreeMap<String, u32>,
    pub(super) usage: Option<Usage<String>>,
    /// Counts from outside the message, and their record.
    pub(super) usage_beside: Option<Box<(Counts, String)>>,
    /// Usage records of the provider, merged.
    pub(super) usage_record: Option<Box<UsageRecord>>,
    /// What sets the price beside the counts; `None` for most answers.
    pub(super) price_facts: Option<Box<PriceFacts>>,
    pub(super) finish: Option<(FinishReason, String)>,
    pub(super) whole: WholeSign,
    pub(super) deferred: Option<Box<Failure<Box<str>>>>,
    pub(super) refused: bool,
    /// The finish reason of an answer without one, and its word.
    pub(super) implied_finish: Option<(FinishReason, &'static str)>,
    /// Facts under the provider's names: a JSON object without its closing brace; empty without facts.
    pub(super) details: String,
    pub(super) detail_names: Vec<&'static str>,
    /// Facts of the answer whose last value counts: the provider's name, and the value as JSON.
    pub(super) late_details: Vec<(String, String)>,
    /// A fact got another value, so that no template may stand for the earlier one.
    pub(super) has_changed_fact: bool,
    /// Bytes that members which no rule knows may still have.
    pub(super) unknown_left: usize,
    pub(super) warnings: Warnings,
    pub(super) scratch: String,
}

impl Emitter {
    /// Build the state before the first byte.
    pub fn new(options: Arc<StreamOptions>) -> Self {
        Self {
            deltas: DeltaEmitter {
                dialect: options.dialect,
                options,
                phase: Phase::Waiting,
                seq: 0,
                model: String::new(),
                response_id: String::new(),
                started_model: None,
                next_part: 0,
                message_bytes: 0,
                state_bytes: 0,
                raw: None,
                raw_of_end: None,
                limit_reached: None,
                laws: cfg!(debug_assertions).then(|| Box::new(Laws::of_decoder())),
            },
            parts: Vec::new(),
            open_part: None,
            calls: Vec::new(),
            unconfirmed: None,
            follows_all: false,
            has_incomplete_call: false,
            stopped_by_string: false,
            first_open: 0,
            served_calls: 0,
            ids: BTreeMap::new(),
            usage: None,
            usage_beside: None,
            usage_record: None,
            price_facts: None,
            finish: None,
            whole: WholeSign::Missing,
            deferred: None,
            refused: false,
            implied_finish: None,
            details: String::new(),
            detail_names: Vec::new(),
            late_details: Vec::new(),
            has_changed_fact: false,
            unknown_left: MAX_UNKNOWN,
            warnings: Warnings::default(),
            scratch: String::new(),
        }
    }

    /// Return true after the terminal.
    pub fn ended(&self) -> bool {
        self.deltas.phase == Phase::Ended
    }

    /// Return true while an error waits for the end of the stream.
    pub fn holds_error(&self) -> bool {
        self.deferred.is_some() && !self.ended()
    }

    /// Return the sequence number of the last delta.
    pub fn last_seq(&self) -> u64 {
        self.deltas.seq
    }

    /// Return the caller's options.
    pub fn options(&self) -> &StreamOptions {
        &self.deltas.options
    }

    /// Follow the answer with this number.
    pub(crate) fn follow(&mut self, number: u64) {
        Arc::make_mut(&mut self.deltas.options).choice = number;
    }

    /// Record that the other answers of the stream are followed too.
    pub(crate) fn follow_all(&mut self) {
        self.follows_all = true;
    }

    /// Replace the options before the first byte; the number of the answer stays.
    pub(crate) fn set_options(&mut self, options: &Arc<StreamOptions>) {
        let number = self.deltas.options.choice;
        self.deltas.options = Arc::clone(options);
        self.deltas.dialect = options.dialect;
        if number != options.choice {
            self.follow(number);
        }
    }

    /// Note that a limit was reached.  The end of the frame ends the stream.
    pub(crate) fn exceed(&mut self, which: &str, bound: usize) {
        self.deltas.note_limit(which, bound);
    }
}

/// Operations that emit deltas: the emitter and its output.
///
/// The output is a trait object, so that the code of dialects, emitter and markup exists once in a binary, and not once for each
/// type of output.
pub struct EmitterSink<'a> {
    pub(super) emitter: &'a mut Emitter,
    pub(super) out: &'a mut dyn Output,
}

impl<'a> EmitterSink<'a> {
    /// Join an emitter and its output.
    pub fn new(emitter: &'a mut Emitter, out: &'a mut dyn Output) -> Self {
        Self { emitter, out }
    }

    /// Return the caller's options.
    #[inline]
    pub fn options(&self) -> &StreamOptions {
        self.emitter.options()
    }

    /// Return true after the terminal.
    pub fn ended(&self) -> bool {
        self.emitter.ended()
    }

    /// Return the sequence number of the last delta.
    pub(crate) fn last_seq(&self) -> u64 {
        self.emitter.last_seq()
    }

    /// Return true while content may be emitted: no terminal, no reached limit, no deferred error.
    pub(crate) fn is_open(&self) -> bool {
        !self.ended()
            && self.emitter.deltas.limit_reached.is_none()
            && self.emitter.deferred.is_none()
    }

    /// Keep the JSON of a frame for its first delta, if the options request it.
    pub fn begin_frame(&mut self, json: &str) {
        if self.options().provider_raw {
            self.emitter.deltas.raw = Some(json.to_owned());
        }
    }

    /// Return true if [`Self::end_frame`] must be called after a frame.
    #[inline]
    pub(crate) fn is_frame_open(&self) -> bool {
        let deltas = &self.emitter.deltas;
        deltas.raw.is_some() || deltas.limit_reached.is_some()
    }

    /// End a frame.  Returns the failure that must end the stream if a limit was reached.
    #[cold]
    pub(crate) fn end_frame(&mut self) -> Option<Failure<Box<str>>> {
        self.emitter.deltas.raw = None;
        let message = self.emitter.deltas.limit_reached.take()?;
        Some(Failure::new(ErrorCode::ProtocolError, message.into()))
    }

    /// Count text that markup holds against the bound of the message.
    pub(crate) fn check_held(&mut self, bytes: usize) {
        let deltas = &mut self.emitter.deltas;
        let bound = deltas.options.limits.message_bytes;
        deltas.within("message_bytes", deltas.message_bytes.saturating_add(bytes), bound);
    }

    /// Set the model and the response id.  The first value of each wins.  `start` is emitted once both are known.
    #[inline]
    pub fn identity(&mut self, model: Option<Str<'_>>, response_id: Option<Str<'_>>) {
        let deltas = &self.emitter.deltas;
        // Most frames repeat a known identity.
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
            deltas.set_model(model.text());
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

    /// Begin the message again.  The finish reason of an earlier message no longer applies.
    pub fn restart(&mut self) {
        self.emitter.finish = None;
    }

    /// Set the model that took over the answer.
    pub fn model_changed(&mut self, model: Str<'_>) {
        let deltas = &mut self.emitter.deltas;
        if deltas.is_identifier(model) {
            deltas.set_model(model.text());
        }
    }

    /// Return true if another model than that of `start` has taken over the answer.
    pub fn has_changed_model(&self) -> bool {
        self.emitter.deltas.changed_model().is_some()
    }

    /// Return true if the other answers of the stream are followed too.
    pub(crate) fn follows_all(&self) -> bool {
        self.emitter.follows_all
    }

    /// Return the failure that the JSON of a provider's error describes.
    pub fn failure(&self, json: &str) -> Failure<Box<str>> {
        self.failure_of(ErrorObject::read(json).unwrap_or_default())
    }

    /// Return the failure of an error whose name is outside of its JSON.
    pub fn named_failure(&self, name: Option<Str<'_>>, json: &str) -> Failure<Box<str>> {
        let error = ErrorObject::read(json).unwrap_or_default();
        self.failure_of(error.named(name.map_or("", |name| name.raw), ""))
    }

    /// Return the failure that a provider's error describes.
    pub fn failure_of(&self, error: ErrorObject) -> Failure<Box<str>> {
        error.failure(&self.options().response, "the provider sent an error without a message")
    }

    /// Count bytes that a dialect holds for a provider part.  Returns false if the limit is reached.
    pub fn take_state_bytes(&mut self, added: usize) -> bool {
        self.emitter.deltas.take_state_bytes(added)
    }

    /// Subtract the bytes of a held block.  The block is counted again when it is emitted as a part.
    pub fn give_back_state_bytes(&mut self, held: usize) {
        let deltas = &mut self.emitter.deltas;
        deltas.state_bytes = deltas.state_bytes.saturating_sub(held);
    }
}
