//! Operations that a dialect uses to emit deltas: frames, identity, bounded memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::calls::Call;
use super::counts::Counts;
use super::line::{Line, Phase};
use super::options::Options;
use super::parts::{Part, PartHandle};
use crate::contract::{ErrorCode, Failure, FinishReason, Output, Usage, Warnings};
use crate::json::Str;
use crate::markup::Markup;
use crate::provider_error::ErrorObject;

/// The finisher's state.
#[derive(Clone, Debug, PartialEq)]
pub struct Finisher {
    pub(super) line: Line,
    pub(super) parts: Vec<Part>,
    pub(super) calls: Vec<Call>,
    /// Every call before it has ended.
    pub(super) first_open: usize,
    pub(super) started_calls: usize,
    pub(super) ids: BTreeMap<String, u32>,
    pub(super) usage: Option<Usage<String>>,
    /// Counts from beside the message, and their record.
    pub(super) usage_beside: Option<Box<(Counts, String)>>,
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

impl Finisher {
    /// Before the first byte.
    pub fn new(options: Arc<Options>) -> Self {
        Self {
            markup: options.markup.as_ref().map(|wanted| Box::new(Markup::new(wanted))),
            line: Line {
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
                breach: None,
            },
            marked: None,
            parts: Vec::new(),
            calls: Vec::new(),
            first_open: 0,
            started_calls: 0,
            ids: BTreeMap::new(),
            usage: None,
            usage_beside: None,
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
        self.line.phase == Phase::Ended
    }

    /// The seq of the last delta that left.
    pub fn last_seq(&self) -> u64 {
        self.line.seq
    }
}

/// What `apply` may say.
pub struct DeltaSink<'a, O> {
    pub(super) finisher: &'a mut Finisher,
    pub(super) out: &'a mut O,
}

impl<'a, O: Output> DeltaSink<'a, O> {
    /// Lets `finisher` speak to `out`.
    pub fn new(finisher: &'a mut Finisher, out: &'a mut O) -> Self {
        Self { finisher, out }
    }

    /// What the caller knew before the first byte.
    pub fn options(&self) -> &Options {
        &self.finisher.line.options
    }

    /// Whether the terminal has left.
    pub fn ended(&self) -> bool {
        self.finisher.ended()
    }

    /// Whether content may still leave: no terminal, no limit reached, no error remembered.
    pub(super) fn is_open(&self) -> bool {
        !self.ended() && self.finisher.line.breach.is_none() && self.finisher.deferred.is_none()
    }

    /// Keeps the frame's JSON for its first delta, when asked for.
    pub fn begin_frame(&mut self, json: &str) {
        if self.options().provider_raw {
            self.finisher.line.raw = Some(json.to_owned());
        }
    }

    /// After each frame: a limit that was reached ends the stream.
    #[inline]
    pub fn end_frame(&mut self) {
        let line = &self.finisher.line;
        if line.raw.is_some() || line.breach.is_some() {
            self.settle_frame();
        }
    }

    #[cold]
    fn settle_frame(&mut self) {
        self.finisher.line.raw = None;
        if let Some(message) = self.finisher.line.breach.take() {
            self.error(Failure::new(ErrorCode::ProtocolError, message.into()));
        }
    }

    /// Names model and response id; the first name of each counts.  `start` leaves once both are known.
    #[inline]
    pub fn identity(&mut self, model: Option<Str<'_>>, response_id: Option<Str<'_>>) {
        let line = &self.finisher.line;
        // Most frames name again what is known.
        if line.phase == Phase::Waiting || (line.phase == Phase::Running && line.model.is_empty()) {
            self.learn_identity(model, response_id);
        }
    }

    fn learn_identity(&mut self, model: Option<Str<'_>>, response_id: Option<Str<'_>>) {
        let line = &mut self.finisher.line;
        if let Some(model) = model
            && line.model.is_empty()
            && line.is_identifier(model)
        {
            line.model = model.text();
        }
        if line.phase == Phase::Waiting {
            if let Some(id) = response_id
                && line.response_id.is_empty()
                && line.is_identifier(id)
            {
                line.response_id = id.text();
            }
            if !line.model.is_empty() && !line.response_id.is_empty() {
                line.start(self.out);
            }
        }
    }

    /// The message began anew: why an earlier one ended says nothing any more.
    pub fn restart(&mut self) {
        self.finisher.finish = None;
    }

    /// Another model took over.
    pub fn model_changed(&mut self, model: Str<'_>) {
        let line = &mut self.finisher.line;
        if line.is_identifier(model) {
            line.model = model.text();
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
        self.finisher.line.take_state_bytes(added)
    }

    /// Gives back what was counted for a block that leaves as a part, which is counted itself.
    pub fn give_back_state_bytes(&mut self, held: usize) {
        let line = &mut self.finisher.line;
        line.state_bytes = line.state_bytes.saturating_sub(held);
    }
}
